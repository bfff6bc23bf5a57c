"""Which artifacts feed which phase, and which of their parts: the table behind RETRIEVE.

    rows_for(phase, needs) -> the rows that apply

Rules: FULL is returned whole whatever the budget; WHOLE is returned whole and gives way to a budget; anything
else lists kinds of parts, the most useful first, which is also the order in which a budget spares them. A row
marked `instead` is looked into only for kinds that the rows above it did not yield, unless it was asked for
by name. `memory` may be asked for in every phase and is never included by itself.

An unknown phase or need is refused with the names that would do.
"""

from __future__ import annotations

from tenuto.errors import BadInput

FULL = ("full",)
WHOLE = ("whole",)
DESIGN = ("decisions", "files", "constraints", "patterns")
# Edge cases are often told where behavior is, so an implementer gets that too; it gives way to a budget first.
CONTRACT = ("signatures", "types", "edge-cases", "files", "behaviors")
CHECKS = ("signatures", "types", "edge-cases", "behaviors", "checks")
# Kinds that many good texts do not have: not finding them is no news.
OPTIONAL = {"behaviors", "checks"}
FEEDBACK = ("fix", "issues", "preserve", "tests")


class Row:
    def __init__(self, need: str, parts: tuple[str, ...], instead: bool = False) -> None:
        self.need = need
        self.parts = parts
        self.instead = instead


PHASES: dict[str, tuple[Row, ...]] = {
    "design-audit": (
        Row("architect", FULL),
        Row("design-audit", FEEDBACK),  # the previous one; the caller has none in the first iteration
    ),
    "spec": (Row("architect", DESIGN),),
    "implementation": (
        Row("spec", CONTRACT),
        Row("architect", CONTRACT, instead=True),
    ),
    "testing": (
        Row("spec", CHECKS),
        Row("architect", CHECKS, instead=True),
        Row("implementation", CHECKS),
    ),
    "impl-audit": (
        Row("architect", FULL),
        Row("spec", FULL),
        Row("implementation", WHOLE),
        Row("tests", WHOLE),
        Row("test-results", WHOLE),
        Row("impl-audit", FEEDBACK),
    ),
    "revision": (
        Row("architect", FULL),
        Row("design-audit", FEEDBACK),
    ),
    "fix": (
        Row("impl-audit", FEEDBACK),
        Row("implementation", WHOLE),
        Row("tests", ("tests", "files")),
        Row("test-results", ("failures",)),
    ),
    "graduate": (
        Row("architect", FULL),
        Row("implementation", WHOLE),
        Row("debt", FULL),
        Row("manifest", FULL),  # the task's metadata: mode and status
    ),
    "resume": (Row("manifest", FULL),),
}
MEMORY = Row("memory", FULL)

# Other names users of that system write for the same things.
SAME_AS = {
    "architect-output": "architect",
    "architect-signatures": "architect",
    "architect-revision": "architect",
    "spec-signatures": "spec",
    "spec-output": "spec",
    "implementations": "implementation",
    "implementation-output": "implementation",
    "implementation-fix": "implementation",
    "test": "tests",
    "test-output": "tests",
    "design-audit-feedback": "design-audit",
    "impl-audit-feedback": "impl-audit",
    "metadata": "manifest",
}
EVERYTHING = "all"


class UnknownName(BadInput, ValueError):
    """A phase or a need that the table does not have; `allowed` are those it has."""

    def __init__(self, what: str, name: str, allowed: tuple[str, ...], where: str = "") -> None:
        self.name, self.allowed = name, allowed
        super().__init__(
            f"unknown-{what}",
            f"Unknown {what}: {name}{where}. Use {', '.join(allowed)}",
            f"use one of: {', '.join(allowed)}",
            name=name,
            allowed=list(allowed),
        )


def rows_for(phase: str, needs: tuple[str, ...]) -> list[Row]:
    """The rows of a phase that `needs` select; all of them if it selects none or says `all`."""
    if phase not in PHASES:
        raise UnknownName("phase", phase, tuple(PHASES))
    rows = [*PHASES[phase], MEMORY]
    allowed = tuple(row.need for row in rows)
    asked = {SAME_AS.get(need, need) for need in needs}
    for need in needs:
        if SAME_AS.get(need, need) not in {*allowed, EVERYTHING}:
            raise UnknownName("need", need, allowed, f" for phase {phase}")
    everything = EVERYTHING in asked or not asked
    chosen = [row for row in rows if row.need in asked or (everything and row is not MEMORY)]
    # Who names a row wants it, whatever the rows above it yield.
    return [Row(row.need, row.parts, row.instead and row.need not in asked) for row in chosen]
