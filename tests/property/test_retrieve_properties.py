"""What holds for every text: nothing crashes, nothing is invented, nothing disappears, the numbers add up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenuto.knowledge.condense.declarations import find_declarations
from tenuto.knowledge.condense.outline import split_document
from tenuto.knowledge.phases import FULL, PHASES
from tenuto.knowledge.retrieve import make_pack, render_pack, render_receipts
from tenuto.knowledge.tokens import estimate_tokens

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
├── src/a.ts|└── b.ts|src/a.py   new|If it is missing, it is an error. We asked.|Verdict: DESIGN_FLAW|a.py:12 is wrong|Given x|\u2028|\x0b|\x00|\r""".replace(
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


def is_line_subset(text: str, whole: str) -> bool:
    """Each line of the one is a line of the other, in the same order."""
    rest = iter(whole.split("\n"))
    return all(line in rest for line in text.split("\n"))


@given(artifacts(), phases, st.none() | st.integers(1, 400))
def test_every_part_is_lines_of_its_artifact(given_: list[Artifact], phase: str, limit: int | None) -> None:
    """Word for word and in order: retrieval selects, it never writes."""
    by_path = {artifact["path"]: artifact["text"] for artifact in given_}
    for part in make_pack(given_, phase, (), limit)["parts"]:
        assert is_line_subset(part["text"], by_path[part["path"]])
        assert part["text"].strip()


@given(texts, phases)
def test_something_always_comes_back(text: str, phase: str) -> None:
    """A text that says anything yields something for each phase that reads it, flagged if it is all of it."""
    for row in PHASES[phase]:
        pack = make_pack([{"name": row.need, "path": "a.md", "text": text, "sha256": ""}], phase, (row.need,))
        assert bool(pack["parts"]) == bool(text.strip())
        assert bool(render_pack(pack)) == bool(text.strip())
        if any(part["whole"] for part in pack["parts"]):
            assert [part["text"] for part in pack["parts"]] == [text]


@given(artifacts(), phases, st.none() | st.integers(1, 400))
def test_tokens_in_and_left_out_are_the_artifact(given_: list[Artifact], phase: str, limit: int | None) -> None:
    pack = make_pack(given_, phase, (), limit)
    sizes = {artifact["path"]: estimate_tokens(artifact["text"]) for artifact in given_}
    for receipt in pack["receipts"]:
        assert receipt["tokens_in"] + receipt["tokens_left_out"] == sizes[receipt["path"]]
        assert min(receipt["tokens_in"], receipt["tokens_left_out"]) >= 0
    assert {part["path"] for part in pack["parts"]} <= {receipt["path"] for receipt in pack["receipts"]}
    assert len(render_receipts(pack)) == len(pack["receipts"])
    assert all(part["tokens"] == estimate_tokens(part["text"]) for part in pack["parts"])


@given(artifacts(), phases, st.integers(1, 400))
def test_a_budget_holds_unless_full_parts_are_larger(given_: list[Artifact], phase: str, limit: int) -> None:
    """What is printed fits; else only full parts and the notes about the rest are left."""
    pack = make_pack(given_, phase, (), limit)
    if estimate_tokens(render_pack(pack)) > limit:
        assert all(part["by"] == FULL[0] for part in pack["parts"])
    dropped = [part for part in pack["dropped"] if part["reason"].startswith("budget")]
    everything = make_pack(given_, phase)
    kept, all_ = (sum(part["tokens"] for part in each["parts"]) for each in (pack, everything))
    assert kept + sum(part["tokens"] for part in dropped) == all_


@given(artifacts(), phases, st.none() | st.integers(1, 400))
def test_the_same_artifacts_give_the_same_pack(given_: list[Artifact], phase: str, limit: int | None) -> None:
    assert make_pack(given_, phase, (), limit) == make_pack(given_, phase, (), limit)


@given(st.text())
def test_any_text_has_an_outline(text: str) -> None:
    """Lines are kept as they are, blocks follow each other, regions lie inside each other."""
    document = split_document(text)
    assert "\n".join(document["lines"]) == text
    end = 0
    for block in document["blocks"]:
        assert end <= block["start"] <= block["first"] <= block["last"] <= block["end"] <= len(document["lines"])
        end = block["end"]
    for region in document["regions"]:
        assert region["line"] <= region["start"] <= max(region["start"], region["end"])


@given(st.lists(lines, max_size=30), st.booleans())
def test_any_code_can_be_scanned(code: list[str], generous: bool) -> None:
    found = find_declarations([line.replace("\n", " ") for line in code], generous)
    assert found.lines() | found.tests <= set(range(len(code)))


def test_deep_nesting_is_no_danger() -> None:
    """Neither types nor namespaces nor items nested a thousand times exhaust the stack or the clock."""
    for opening in ("class A {", "namespace a {", "impl A {", "module M {", "interface I {"):
        find_declarations([opening] * 1500 + ["}"] * 1500)
    deep = "\n".join(" " * depth + "- if empty: ignored" for depth in range(1500))
    assert make_pack([{"name": "spec", "path": "a", "text": deep, "sha256": ""}], "implementation")["parts"]
