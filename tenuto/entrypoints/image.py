"""The bytecode of a hot command in one file: what __pycache__ is for one module, for all that such a process loads.

Finding three dozen modules, one folder and one file after the other, takes a hook longer than running them. So the
first process that had to look for them puts what it loaded into one image, and the next ones take it from there.

An image is a cache like any .pyc: every module is compared with its source (time and size) when it is
imported, and what does not fit, or is not there, is imported the ordinary way and put into the next
image. Deleting it costs a few milliseconds once. Nothing is written where Python writes no bytecode.
"""

from __future__ import annotations

import marshal
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    Kept = tuple[bool, int, int, bytes]  # is it a package; time and size of its source; its code

_Spec: Any = type(sys.__spec__)
# Loaded before there is an image.
_ITSELF = ("tenuto", "tenuto.entrypoints", "tenuto.entrypoints.image", "tenuto.entrypoints.launch", "tenuto.__main__")


class Image:
    """Finds and loads modules of Tenuto. Anything unexpected is left to the ordinary way."""

    def __init__(self, root: str, command: str) -> None:
        self._root = root
        self._path = f"{root}/tenuto/__pycache__/{command}.{sys.implementation.cache_tag}.image"
        self._kept: dict[str, Kept] = {}
        self._taken = set(_ITSELF)
        self._code: dict[str, Any] = {}
        try:
            made_by, kept = marshal.loads(_read(self._path))
            if made_by == _interpreter() and type(kept) is dict:
                self._kept = kept
        except (OSError, ValueError, EOFError, TypeError):
            pass  # there is none, or not a whole one

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        kept = self._kept.get(name)
        if kept is None:
            return None
        try:
            self._code[name] = marshal.loads(kept[3])
        except (ValueError, EOFError, TypeError, LookupError):
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

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code.pop(module.__name__), module.__dict__)  # noqa: S102  # what an import does

    def save(self) -> None:
        """If this process had to look elsewhere, the next one shall not."""
        missed = [name for name in sys.modules if name.startswith("tenuto.") and name not in self._taken]
        folder = self._path.rpartition("/")[0]
        if not missed or sys.dont_write_bytecode or not posix.access(folder, posix.W_OK):
            return
        for name in missed:
            spec: Any = sys.modules[name].__spec__
            package = spec.submodule_search_locations is not None
            before = _stamp(self._source(name, package))
            code = spec.loader.get_code(name)
            if before == _stamp(spec.origin):
                self._kept[name] = (package, *before, marshal.dumps(code))
        new = f"{self._path}.{posix.getpid()}"
        try:
            with open(new, "xb") as file:
                file.write(marshal.dumps((_interpreter(), self._kept)))
            posix.rename(new, self._path)
        except OSError:
            pass  # no room, no right: the next one looks for itself, too

    def _source(self, name: str, package: bool) -> str:
        return f"{self._root}/{name.replace('.', '/')}{'/__init__' if package else ''}.py"


def install(root: str, command: str = "hot") -> Image:
    """Commands that load different modules have an image each: all of it is read each time."""
    image = Image(root, command)
    sys.meta_path.insert(0, image)
    return image


def _interpreter() -> tuple[str, bytes]:
    """Code is for one version of Python, down to its last letter."""
    return sys.version, sys.modules["_frozen_importlib_external"].MAGIC_NUMBER


def _stamp(source: str) -> tuple[int, int]:
    try:
        found = posix.stat(source)
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def _read(path: str) -> bytes:
    file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return posix.read(file, posix.fstat(file).st_size)
    finally:
        posix.close(file)
