"""What holds for every text: nothing crashes, nothing is invented, nothing disappears, the numbers add up."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tenuto.knowledge.condense import read, read_code
from tenuto.knowledge.packs import (
    PHASES,
    estimate_tokens,
    make_pack,
    part_text,
    render_pack,
    render_receipts,
    tokens_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.knowledge.packs import Artifact

# Lines that mean something to one of the readers, in any order and combination, between lines that mean nothing.
MEANINGFUL = """# Title|## Edge cases|### Types|Files:|**Edge Cases:**|- **Signatures:** `f(x: int) -> str`|EDGE CASES|Types|-----|=====
~~~~~~~|<h2>API</h2>|<edge_cases>|</edge_cases>|<details><summary>Errors</summary>|== Design ==|1. Overview|2.1 Constraints|---|***
```ts|```|````markdown|~~~|[source,go]|----|.. code-block:: python|{code:java}|{code}|<pre>|</pre>|#+begin_src c|#+end_src
| Case | Result |\n|---|---|\n| empty | null ||=====  =====|+---+---+
export interface A {|  x: string;|}|def f(a, b=1) -> int:|    return a|class B:|func (s *S) Get(k string) error {|fn x<T>(t: T) where|impl A for B {
namespace a {|module M|type T =|  \\| 'a'|CREATE TABLE t (|);|template <typename T>|@Override|#[derive(Debug)]|"\"\"\"|/* comment|*/|// if empty, returns null
{|  "issues": [|    {"severity": "major"},|  ],|  "verdict": "PASS"|  "edgeCases": ["a"]|}
- when the list is empty, return []|- [ ] must handle null|  - nested: ignored|1. first\t|* `src/a.py` (new)|> quoted|> ## Quoted heading
├── src/a.ts|└── b.ts|src/a.py   new|If it is missing, it is an error. We asked.|Verdict: DESIGN_FLAW|a.py:12 is wrong|Given x|\u2028|\x0b|\x00|\r""".replace(  # noqa: E501
    "\n", "|"
).split("|")

lines = st.one_of(
    st.sampled_from(MEANINGFUL),
    st.text(max_size=40),
    st.sampled_from(["", "", "Some words that say nothing."]),
    st.builds(lambda depth, line: " " * depth + line, st.integers(0, 8), st.sampled_from(MEANINGFUL)),
)
texts = st.lists(lines, max_size=40).map("\n".join)
phases = st.sampled_from(sorted(PHASES))


@st.composite
def artifacts(draw: st.DrawFn) -> list[Artifact]:
    names = sorted({row.need for rows in PHASES.values() for row in rows})
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
    return [
        {"name": name, "path": f"docs/{number}-{name}.md", "text": draw(texts), "sha256": f"{number:064}"}
        for number, name in enumerate(chosen)
    ]


LEFT_OUT = re.compile(r"\s*\[\d+ lines left out\]")


def is_line_subset(text: str, whole: str) -> bool:
    """Each line of the one is a line of the other, in the same order, or says how many were left out."""
    rest = iter(whole.split("\n"))
    return all(LEFT_OUT.fullmatch(line) or line in rest for line in text.split("\n"))


@given(artifacts(), phases, st.none() | st.integers(1, 400))
def test_every_part_is_lines_of_its_artifact(given_: list[Artifact], phase: str, limit: int | None) -> None:
    """Word for word and in order: retrieval selects, it never writes."""
    by_path = {artifact["path"]: artifact["text"] for artifact in given_}
    for part in make_pack(given_, phase, (), limit)["parts"]:
        assert is_line_subset(part_text(part).rstrip("\n"), by_path[part["path"]])


@given(texts, phases)
def test_something_always_comes_back(text: str, phase: str) -> None:
    """A text that says anything yields something for each phase that reads it, flagged if it is all of it."""
    for row in PHASES[phase]:
        for needs in ((row.need,), (), ("all",)):
            pack = make_pack([{"name": row.need, "path": "a.md", "text": text, "sha256": ""}], phase, needs)
            assert bool(pack["parts"]) == bool(text.strip())
            assert bool(render_pack(pack)) == bool(text.strip())
            if text.strip() and pack["notes"]["a.md"].startswith("whole"):
                assert "".join(map(part_text, pack["parts"])) == text


@given(artifacts(), phases, st.none() | st.integers(1, 400))
def test_tokens_in_and_left_out_are_the_artifact(given_: list[Artifact], phase: str, limit: int | None) -> None:
    """There is a receipt for each artifact, also for those that the phase does not read."""
    pack = make_pack(given_, phase, (), limit)
    assert [receipt["path"] for receipt in pack["receipts"]] == [artifact["path"] for artifact in given_]
    for receipt, artifact in zip(pack["receipts"], given_, strict=True):
        assert receipt["tokens_in"] + receipt["tokens_left_out"] == estimate_tokens(artifact["text"])
        assert min(receipt["tokens_in"], receipt["tokens_left_out"]) >= 0
        size = sum(size for part in pack["parts"] if part["path"] == receipt["path"] for _, size in part["blocks"])
        assert receipt["tokens_in"] == tokens_of(size)
    assert len(render_receipts(pack)) == len(pack["receipts"])


@given(artifacts(), phases, st.integers(1, 400))
def test_a_budget_holds_unless_full_parts_are_larger(given_: list[Artifact], phase: str, limit: int) -> None:
    """What is printed fits; else only full parts and the notes about the rest are left."""
    pack = make_pack(given_, phase, (), limit)
    if estimate_tokens(render_pack(pack)) > limit:
        assert all(part["manner"] == "full" for part in pack["parts"])


@given(artifacts(), phases, st.integers(1, 400))
def test_a_budget_drops_whole_sections(given_: list[Artifact], phase: str, limit: int) -> None:
    """At most one is cut, and only where nothing else that could be dropped is left."""
    everything = {(part["path"], str(part["headings"])): part for part in make_pack(given_, phase)["parts"]}
    pack = make_pack(given_, phase, (), limit)
    spare = [part for part in pack["parts"] if part["manner"] == "sections"]
    cut = [
        part
        for part in spare
        if (key := (part["path"], str(part["headings"]))) in everything and part != everything[key]
    ]
    assert not cut or len(spare) == 1


@given(artifacts(), phases, st.none() | st.integers(1, 400))
def test_the_same_artifacts_give_the_same_pack(given_: list[Artifact], phase: str, limit: int | None) -> None:
    assert make_pack(given_, phase, (), limit) == make_pack(given_, phase, (), limit)


@given(st.text() | texts)
def test_any_text_has_sections_that_are_together_the_text(text: str) -> None:
    document = read(text)
    assert "".join(document.lines) == text
    assert bool(document.doubt) != bool(document.sections)
    if document.sections:
        assert [section.start for section in document.sections] == [0, *(one.end for one in document.sections[:-1])]
        assert document.sections[-1].end == len(document.lines)


@given(
    st.lists(lines, max_size=30), st.sampled_from(["python", "ts", "go", "rust", "sql", "ruby", "yaml", "console", ""])
)
def test_any_code_can_be_read(code: list[str], language: str) -> None:
    found = read_code([line.replace("\n", " ") for line in code], language)
    assert {line for run in found.bodies for line in run} <= set(range(len(code)))


def test_deep_nesting_is_no_danger() -> None:
    """Neither types nor items nested a thousand times exhaust the stack."""
    for opening in ("class A {", "namespace a {", "impl A {", "fn f() {"):
        read_code([opening] * 1500 + ["}"] * 1500, "rust")
    deep = "\n".join(" " * depth + "- if empty: ignored" for depth in range(1500))
    assert make_pack([{"name": "spec", "path": "a", "text": deep, "sha256": ""}], "implementation")["parts"]
