"""Where code goes: paths in text, and trees of files.

Rules: a word with a known ending is a file, two slashes or a slash at the end make a path; `and/or` is
neither. A sentence places a file if it says what becomes of it, or begins with it.
"""

from __future__ import annotations

from tenuto.knowledge.patterns import pattern

_ENDINGS = set(
    """ts tsx js jsx mjs cjs py pyi go rs java kt kts cs swift rb php c h cc cpp hpp m mm hs ml mli scala ex exs erl sql proto
    graphql gql vue svelte css scss less html htm json jsonc yaml yml toml md mdx rst txt sh bash ps1 tf lua dart zig clj
    cljs cljc r jl nim pl pm sol prisma xml gradle cfg ini lock env cmake mk csproj fs fsx vb elm adoc snap wasm sum mod
    razor cshtml erb haml twig blade hbs ejs""".split()
)
_PATH = pattern(r"(?:^|(?<=[\s`\"'(|*\[]))[\w.@~+/{}<>\[\]*-]*[./][\w.@~+/{}<>\[\]*-]*")
_WORD = pattern(r"[a-z0-9]+")
_PLACING = set(
    """create creates created creating modify modifies modified add adds added new update updates updated edit edits edited
    extend extends extended delete deletes deleted remove removes removed rename renames renamed move moves moved lives live
    placed place goes go put belongs file files module path touch touches touched change changes changed write under inside
    register registers wire""".split()
)
_DRAWN = ("├", "└", "|--", "+--", "`--")
# A path alone on its line, or with a remark set apart from it.
_TREE_ENTRY = pattern(r"^\s*[\w.@*/{}\[\]-]+(?:/|\.\w+)(?:\s*$|\s{2,}\S|\s+[#(←—-]|(?:\s+[^\s(=:]+){1,2}$)")


def _paths(text: str) -> list[tuple[int, str]]:
    if "." not in text and "/" not in text:
        return []
    return [(found.start(), found.group()) for found in _PATH.finditer(text) if _is_path(found.group())]


def _is_path(word: str) -> bool:
    word = word.strip(".,:;)*[]<>")
    if word.startswith(("http:", "//", "www.")) or not word.strip("./-"):
        return False
    if word.count("/") >= 2 or (word.endswith("/") and len(word) > 1):
        return True
    stem, _, ending = word.rpartition(".")
    return bool(stem) and ending.lower() in _ENDINGS


def names_a_file(text: str) -> bool:
    return bool(_paths(text))


def places_a_file(text: str) -> bool:
    """Names a file and says what becomes of it, or begins with one."""
    found = _paths(text)
    if not found:
        return False
    before = text[: found[0][0]].lower()
    return not _WORD.search(before) or not _PLACING.isdisjoint(_WORD.findall(text.lower()))


def is_file_tree(code: list[str]) -> bool:
    if sum(any(sign in line for sign in _DRAWN) for line in code) >= 2:
        return True
    named = [line for line in code if line.strip()]
    return len(named) >= 2 and all(_TREE_ENTRY.match(line) for line in named)
