"""Which sections of a text are kept, and which lines of its code: whole sections, whole lists, whole types."""

from __future__ import annotations

import pytest

from tenuto.knowledge.condense import AROUND, DISCARDED, choose, read, read_code
from tenuto.knowledge.packs import CONTRACT, make_pack, part_text, render_pack

SPEC = """# Orders

A service.

## Background

It was slow. Nobody knew why.

## Data model

| Column | Type |
|---|---|
| id | uuid |
| customer id | uuid |
| created at | timestamptz |

## API

`place(order)` answers with an id.

## Error handling

- an empty order is refused

## Files

- `src/orders.py`

## Notes for implementers

Always append; never overwrite.

## Alternatives considered

Two queues.
"""


def kept(text: str, kinds: tuple[str, ...] = CONTRACT) -> list[str]:
    document = read(text)
    return [document.sections[number].title for number in sorted(choose(document, kinds, AROUND | DISCARDED).kept)]


def why_whole(text: str, kinds: tuple[str, ...] = CONTRACT) -> str:
    return choose(read(text), kinds, AROUND | DISCARDED).whole


def pack(text: str, phase: str = "implementation", limit: int | None = None) -> str:
    return render_pack(make_pack([{"name": "spec", "path": "spec.md", "text": text, "sha256": ""}], phase, (), limit))


# ---- sections --------------------------------------------------------------------------------------


def test_asides_go_and_everything_else_stays() -> None:
    """Also a section whose heading says nothing: edge cases stand anywhere."""
    assert kept(SPEC) == ["Orders", "Data model", "API", "Error handling", "Files", "Notes for implementers"]


def test_a_table_is_kept_with_all_its_rows() -> None:
    assert "| id | uuid |\n| customer id | uuid |\n| created at | timestamptz |\n" in pack(SPEC)


@pytest.mark.parametrize(
    "heading",
    "Background|1. Background|## Background ##|BACKGROUND|**Background**|Background and motivation|License|"
    "Rationale & Alternatives|📚 References|2.3 Prior art|Motivation / Background".split("|"),
)
def test_an_aside_is_known_by_its_whole_heading(heading: str) -> None:
    assert heading.strip("#* ") not in kept(SPEC.replace("Background", heading.strip("# "), 1))
    assert "It was slow." not in pack(SPEC.replace("Background", heading.strip("# "), 1))


@pytest.mark.parametrize(
    "heading", ["Background jobs", "References to orders", "License keys", "Why", "History", "Context"]
)
def test_a_heading_that_says_more_is_no_aside(heading: str) -> None:
    assert heading in kept(SPEC.replace("Background", heading, 1))


def test_an_aside_goes_with_everything_below_it() -> None:
    text = SPEC.replace("It was slow.", "It was slow.\n\n### The year before\n\nSlower.\n\n#### Long ago\n\nFast.")
    assert "Slower" not in pack(text)
    assert "Fast" not in pack(text)


@pytest.mark.parametrize(
    "line",
    [
        "### Error codes",
        "**Edge cases:**",
        "- **Errors**: none",
        "| Field | Type |\n|---|---|\n| id | int |",
        "Errors:",
    ],
)
def test_an_aside_stays_where_something_in_it_is_named_like_what_the_phase_needs(line: str) -> None:
    assert "Background" in kept(SPEC.replace("It was slow.", f"It was slow.\n\n{line}\n\nmore."))


@pytest.mark.parametrize(
    "line",
    [
        "**What to build**",
        "WHAT TO BUILD",
        "What to build",
        "What to build\n^^^^^^^^^^^^^",
        "<h2>What</h2>",
        "== What",
    ],
)
def test_an_aside_stays_where_another_notation_may_begin_a_section_in_it(line: str) -> None:
    """The reader knows no other headings than Markdown's; what stands below one must not go with the aside above."""
    assert "Background" in kept(SPEC.replace("It was slow.", f"It was slow.\n\n{line}\n\nA queue."))


def test_below_a_heading_that_the_phase_needs_everything_stays() -> None:
    assert "License" in kept(
        SPEC.replace("`place(order)`", "### License\n\nGET /license\n\n### Place\n\n`place(order)`")
    )


def test_a_title_over_the_whole_text_is_no_aside() -> None:
    assert kept(SPEC.replace("# Orders", "# Motivation", 1))[0] == "Motivation"
    assert "API" in kept(SPEC.replace("# Orders", "# Motivation", 1))


def test_a_title_that_names_a_kind_keeps_no_asides() -> None:
    assert "Background" not in kept(SPEC.replace("# Orders", "# Orders API", 1))


# ---- in doubt, the whole text ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gone", "kind"),
    [
        ("## Error handling\n\n- an empty order is refused\n", "edge-cases"),
        ("## API", "signatures"),
        ("- `src/orders.py`", ""),
    ],
)
def test_where_a_kind_is_not_found_the_text_is_kept_whole(gone: str, kind: str) -> None:
    text = SPEC.replace(gone, "## Words" if gone.startswith("## ") else "- here")
    assert why_whole(text) == (f"no {kind} found" if kind else "")
    assert ("It was slow." in pack(text)) == bool(kind)


def test_a_text_in_another_language_is_kept_whole() -> None:
    german = (
        "# Bestellungen\n\n## Hintergrund\n\nLangsam.\n\n## Sonderfälle\n\n- leere Bestellung: Fehler\n"
        "\n## Dateien\n\n- `a/b.py`\n"
    )
    assert why_whole(german) == "a heading is not in English letters"
    assert german.strip() in pack(german)
    unmarked = german.replace("Sonderfälle", "Grenzen")
    assert why_whole(unmarked) == "no signatures and no types and no edge-cases found"


def test_a_word_that_two_languages_share_is_no_aside_in_the_other() -> None:
    """`Motivation` is German, too, and may hold a rule."""
    assert "It was slow." in pack(SPEC.replace("## Background", "## Motivation") + "\n## Sonderfälle\n\nleer\n")
    assert "📚 References" not in kept(SPEC.replace("Background", "📚 References", 1))


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("Just words.\n", "it has no headings"),
        (SPEC + "\n```python\nx = 1\n", "a code block is not closed"),
        (SPEC + "\n- item\n\n  ```python\n  x = 1\n\nMore.\n", "a code block is not closed"),
        (
            SPEC + "\n```text\nINIT\n```\nINIT task\n```\nCreates:\n  ```json\n  {}\n  ```\n```\n",
            "a code block holds fences",
        ),
        (SPEC + "\n````markdown\n```\nx\n```\n````\n", "a code block holds fences"),
        (SPEC + "\n```markdown\n## Something\n```\n", "a code block holds headings"),
        (SPEC + "\n```\n## Something\n```\n", "a code block holds headings"),
        (SPEC + "\n```sh\n# Files\nls\n```\n", "a code block holds headings"),
        (SPEC + "\n~~~sh\n# list them\nls\n~~~\n", ""),
    ],
)
def test_a_text_whose_sections_cannot_be_trusted_is_kept_whole(text: str, doubt: str) -> None:
    assert read(text).doubt == doubt
    assert (text.strip() in pack(text)) == bool(doubt)


def test_edge_cases_stay_with_their_task_when_fences_are_nested() -> None:
    """Each command's prompt holds fences of its own; nothing may move to another command."""
    prompt = (
        "```markdown\n### {0}\n```\n{0} task\n```\nCreates:\n  ```json\n  {{}}\n  ```\n```\n"
        "**Edge Cases:**\n- {0} twice\n"
    )
    text = "\n".join(f"### {at}. Update {name}\n{prompt.format(name)}" for at, name in enumerate(("INIT", "START"), 1))
    assert text.strip() in pack(text)


def test_front_matter_is_no_heading() -> None:
    document = read("---\ntitle: x\nstatus: draft\n---\n" + SPEC)
    assert [section.title for section in document.sections][:2] == ["", "Orders"]
    assert pack("---\ntitle: x\n---\n" + SPEC).startswith(
        "=== spec: spec.md (condensed) ===\n---\ntitle: x\n---\n# Orders"
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_do_not_matter(end: str) -> None:
    document = read(SPEC.replace("\n", end))
    assert "".join(document.lines) == SPEC.replace("\n", end)
    assert [section.title for section in document.sections] == [section.title for section in read(SPEC).sections]


# ---- code ------------------------------------------------------------------------------------------


def left(language: str, code: str) -> str:
    """The code without its bodies."""
    lines = code.splitlines()
    gone = {line for run in read_code(lines, language).bodies for line in run}
    return "\n".join(line for number, line in enumerate(lines) if number not in gone)


FUNCTIONS = {
    "python": "def add(a: int,\n        b: int) -> int:\n    inner = a\n    return inner + b\n",
    "typescript": "export const add = async (a: A): Promise<B> => {\n  const inner = a;\n  return inner;\n};\n",
    "ts": "function add(\n  a: number,\n): number {\n  let inner = a;\n  for (;;) { inner += 1; }\n}\n",
    "go": "func (s *Store) Get(k string) (interface{}, bool) {\n\tinner := s.m[k]\n\treturn inner, true\n}\n",
    "rust": (
        "pub fn read(&mut self, b: &[u8]) -> io::Result<usize> {\n    let inner = b.len();\n    return Ok(inner);\n}\n"
    ),
    "java": "public int add(int a) {\n    int inner = a;\n    return inner;\n}\n",
    "csharp": "public int Add(object a)\n{\n    var inner = a;\n    return inner;\n}\n",
    "kotlin": "fun add(a: Int): Int {\n    val inner = a\n    return inner\n}\n",
    "swift": "func add(_ a: Int) -> Int {\n    let inner = a\n    return inner\n}\n",
    "ruby": "def add(a)\n  inner = a\n  return inner\nend\n",
    "php": "<?php\nfunction add(int $a): int {\n    $inner = $a;\n    return $inner;\n}\n",
    "c": "int add(int a) {\n    int inner = a;\n    return inner;\n}\n",
    "elixir": "def add(a) do\n  inner = a\n  if inner, do: a\nend\n",
    "lua": "function add(a)\n  local inner = a\n  return inner\nend\n",
}


@pytest.mark.parametrize("language", FUNCTIONS)
def test_the_body_of_a_function_goes_and_its_head_stays(language: str) -> None:
    lines = FUNCTIONS[language].splitlines()
    [body] = read_code(lines, language).bodies
    assert list(body) == [number for number, line in enumerate(lines) if "inner" in line]


MEMBERS = {
    "typescript": (
        "interface Store {\n  load(key: string): {\n    name: string;\n  };\n  get: () => {\n    a: string;\n  };\n}\n"
    ),
    "ts": "type F = (x: string) => {\n  a: string;\n  b: number;\n};\n",
    "python": (
        "class Store(Base):\n    name: str\n    if DEBUG:\n        level: int = 1\n\n"
        "    def load(self, key: str) -> bytes: ...\n"
    ),
    "kotlin": "class Store(val a: Int) : Base() {\n    val b = 1\n    fun load(key: String): ByteArray\n}\n",
    "csharp": "public record Store(int A)\n{\n    public int B { get; init; }\n    public int C { get; init; }\n}\n",
    "rust": (
        "macro_rules! make {\n    ($x:expr) => {\n        $x\n    };\n}\n\npub trait Read {\n"
        "    fn read(&mut self);\n}\n"
    ),
    "go": "type Store interface {\n\tLoad(key string) ([]byte, error)\n\tClose() error\n}\n",
    "swift": "enum Kind {\n    case small(Int)\n    case large(Int)\n}\n",
    "sql": (
        "CREATE TABLE orders (\n    id uuid PRIMARY KEY,\n    total bigint NOT NULL CHECK (total >= 0)\n"
        ");\nSELECT f(x)\n  FROM t\n  FOR UPDATE;\n"
    ),
    "protobuf": (
        "service Orders {\n  rpc Place (Order) returns (Id) {\n"
        '    option (google.api.http) = { post: "/orders" };\n  }\n}\n'
    ),
    "graphql": (
        "type Query {\n  order(id: ID!): Order\n}\nquery Find($id: ID!) {\n  order(id: $id) {\n    total\n  }\n}\n"
    ),
    "css": "@media (max-width: 10px) {\n  .a {\n    color: red;\n  }\n}\n",
    "yaml": "on:\n  push:\n    branches: [main]\nif: (a):\n  return: x\n",
    "nobody-knows-it": "def add(a):\n    b = a\n    return b\n",
    "": "def add(a):\n    b = a\n    return b\n",
    "js": (
        "describe('add', () => {\n  it('adds', () => {\n    expect(add(1)).toBe(2);\n  });\n});\n"
        "if (x) {\n  a();\n  return;\n}\n"
    ),
}


@pytest.mark.parametrize("language", MEMBERS)
def test_members_of_types_data_and_what_is_not_certain_stay(language: str) -> None:
    assert left(language, MEMBERS[language]) == MEMBERS[language].rstrip("\n")


def test_two_types_with_the_same_methods_are_both_shown_with_them() -> None:
    store = (
        "class {0} {{\n  async load(key: string): Promise<Buffer> {{\n    const x = await {0}(key);\n"
        "    return x;\n  }}\n}}\n"
    )
    text = "".join(f"\n```ts\n{store.format(name)}```\n" for name in ("FileStore", "S3Store"))
    shown = pack(SPEC + "\n## Classes\n" + text)
    assert shown.count("  async load(key: string): Promise<Buffer> {\n    [2 lines left out]\n  }\n}") == 2
    assert "await" not in shown


def test_doc_strings_comments_and_bodies_that_raise_stay() -> None:
    code = (
        'def a(x):\n    """Adds.\n\n    An empty one is skipped.\n    """\n    y = x\n'
        "    # never twice\n    z = y\n    return z\n\n"
        "def b(x):\n    if not x:\n        raise ValueError('empty')\n    return x\n"
    )
    assert left("python", code) == code.replace("    z = y\n    return z\n", "").rstrip("\n")


def test_code_inside_a_list_stays_as_it_is() -> None:
    """A list is kept or left out as one."""
    item = "- do this:\n\n  ```python\n  def add(a):\n      b = a\n      return b\n  ```\n"
    assert item in pack(SPEC + "\n## Steps\n\n" + item + "\n- and that\n")


@pytest.mark.parametrize("code", ["def add(a:\n    b = a\n    return b\n", "func f() {\n  return\n"])
def test_brackets_that_do_not_meet_keep_the_block(code: str) -> None:
    assert left("python" if code.startswith("def") else "go", code) == code.rstrip("\n")


def test_what_code_declares_is_found() -> None:
    assert read_code(["def f(x):", "    pass"], "python").declares == {"signatures"}
    assert read_code(["interface A { x: string }"], "ts").declares == {"types"}
    assert read_code(["CREATE TABLE t (id int);"], "sql").declares == {"types"}


def test_a_part_says_how_many_lines_of_code_are_left_out() -> None:
    made = make_pack(
        [
            {
                "name": "spec",
                "path": "s",
                "text": f"{SPEC}\n## Code\n\n```python\n" + FUNCTIONS["python"] + "```\n",
                "sha256": "",
            }
        ],
        "implementation",
    )
    assert "        b: int) -> int:\n    [2 lines left out]\n```" in part_text(made["parts"][-1])
    assert (
        made["receipts"][0]["note"] == "condensed; left out: Background; Alternatives considered; code inside 1 bodies"
    )
