"""The bytecode of a hot command in one file: what __pycache__ is for one module, for all that such a process loads.

Finding three dozen modules, one folder and one file after the other, takes a hook longer than running them. So the
first process that had to look for them puts what it loaded into one image, and the next ones take it from there. Its
index comes first; of the code behind it a process reads what it imports, however much there is for other commands.

An image is a cache like any .pyc: every module is compared with its source (time and size) when it is
imported, and what does not fit, or is not there, is imported the ordinary way and put into the next
image. Deleting it costs a few milliseconds once. Nothing is written where Python writes no bytecode.
"""

import marshal
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    Kept = tuple[bool, int, int, int, int]  # is it a package; time and size of its source; where its code begins behind the index, and its length

_Spec: "Any" = type(sys.__spec__)
_Code = type((lambda: None).__code__)
# Loaded before there is an image.
_ITSELF = ("tenuto", "tenuto.entrypoints", "tenuto.entrypoints.image", "tenuto.entrypoints.launch", "tenuto.__main__")

_HEAD = 8  # bytes: how long the index is
_DAMAGED = (OSError, ValueError, EOFError, TypeError, LookupError, OverflowError, MemoryError)


class Image:
    """Finds and loads modules of Tenuto. Anything unexpected is left to the ordinary way."""

    def __init__(self, root: str, command: str) -> None:
        self._root = root
        self._path = f"{root}/tenuto/__pycache__/{command}.{sys.implementation.cache_tag}.image"
        self._kept: dict[str, Kept] = {}
        self._taken = set(_ITSELF)
        self._code: dict[str, Any] = {}
        try:
            self._file = posix.open(self._path, posix.O_RDONLY | posix.O_CLOEXEC)
            self._size = posix.fstat(self._file).st_size
            index = int.from_bytes(posix.pread(self._file, _HEAD, 0), "little")
            self._behind = _HEAD + index
            made_by, kept = marshal.loads(self._part(_HEAD, index))
            if made_by == _interpreter() and type(kept) is dict:
                self._kept = kept
        except _DAMAGED:
            pass  # there is none, or not a whole one

    def _part(self, at: int, length: int) -> bytes:
        if length > self._size:
            raise ValueError("longer than its file")
        return posix.pread(self._file, length, at)

    def _code_of(self, kept: "Kept") -> bytes:
        return self._part(self._behind + kept[3], kept[4])

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        kept = self._kept.get(name)
        if kept is None:
            return None
        try:
            self._code[name] = _loaded(self._code_of(kept))
        except _DAMAGED:
            return None  # damaged: found the ordinary way, and in the next image it is whole
        source = self._source(name, kept[0])
        if _stamp(source) != kept[1:3]:
            return None
        self._taken.add(name)
        spec = _Spec(name, self, origin=source, is_package=kept[0])
        spec.has_location = True
        if kept[0]:
            spec.submodule_search_locations.append(source.rpartition("/")[0])
        return spec

    def create_module(self, spec: "Any") -> None:
        return None

    def exec_module(self, module: "ModuleType") -> None:
        exec(self._code.pop(module.__name__), module.__dict__)  # noqa: S102  # what an import does

    def save(self) -> None:
        """If this process had to look elsewhere, the next one shall not."""
        missed = [name for name in sys.modules if name.startswith("tenuto.") and name not in self._taken]
        folder = self._path.rpartition("/")[0]
        if not missed or sys.dont_write_bytecode or not posix.access(folder, posix.W_OK):
            return
        codes = self._codes()
        for name in missed:
            spec: Any = sys.modules[name].__spec__
            package = spec.submodule_search_locations is not None
            before = _stamp(self._source(name, package))
            try:
                code = marshal.dumps(_lean(spec.origin))
            except (OSError, SyntaxError, ValueError):
                continue  # its source is gone, or changes at this moment
            if before == _stamp(spec.origin):
                codes[name] = (package, *before, code)
        new = f"{self._path}.{posix.getpid()}"
        try:
            with open(new, "xb") as file:
                file.write(_laid_out(codes))
            posix.rename(new, self._path)
        except OSError:
            pass  # no room, no right: the next one looks for itself, too

    def _codes(self) -> dict[str, tuple[bool, int, int, bytes]]:
        """All that this image holds, whole as it is."""
        found = {}
        for name, kept in self._kept.items():
            try:
                code = self._code_of(kept)
                _loaded(code)
                found[name] = (*kept[:3], code)
            except _DAMAGED:
                pass
        return found

    def _source(self, name: str, package: bool) -> str:
        return f"{self._root}/{name.replace('.', '/')}{'/__init__' if package else ''}.py"


def install(root: str, command: str = "hot") -> Image:
    """Commands that load different modules have an image each: all of it is read each time."""
    image = Image(root, command)
    sys.meta_path.insert(0, image)
    return image


def _loaded(code: bytes) -> "Any":
    """Nothing but code: a text would be run as well."""
    found = marshal.loads(code)
    if type(found) is not _Code:
        raise ValueError("no code")
    return found


def _lean(source: str) -> "Any":
    """The code without what only its readers need, and each process would build anew: annotations and docstrings of functions. (Those of
    modules are help texts.)"""
    import __future__

    import ast

    with open(source, "rb") as file:
        tree = ast.parse(file.read(), source)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, False) is not None:
            node.body[0] = ast.copy_location(ast.Pass(), node.body[0])
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    return compile(tree, source, "exec", __future__.annotations.compiler_flag, dont_inherit=True)


def _laid_out(codes: dict[str, tuple[bool, int, int, bytes]]) -> bytes:
    kept: dict[str, Kept] = {}
    begin = 0
    for name, (package, changed, size, code) in codes.items():
        kept[name] = (package, changed, size, begin, len(code))
        begin += len(code)
    index = marshal.dumps((_interpreter(), kept))
    return len(index).to_bytes(_HEAD, "little") + index + b"".join(code for *_, code in codes.values())


def _interpreter() -> tuple[str, bytes]:
    """Code is for one version of Python, down to its last letter."""
    return sys.version, sys.modules["_frozen_importlib_external"].MAGIC_NUMBER


def _stamp(source: str) -> tuple[int, int]:
    try:
        found = posix.stat(source)
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)
