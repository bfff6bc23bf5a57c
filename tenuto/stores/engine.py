"""SQLite's C module, without what it drags along.

`_sqlite3` asks functools for lru_cache, to keep compiled statements, and functools brings collections: together
half as much as starting the interpreter. The cache itself is C code that needs neither, so a process that has
not loaded functools yet hands `_sqlite3` that code directly. Where anything is different than expected, the
module is imported the ordinary way.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3 as _sqlite3
    from collections.abc import Callable
    from typing import Any
else:

    def _import_lean() -> None:
        try:
            from _functools import _lru_cache_wrapper
        except ImportError:
            return
        stand_in = type(sys)("functools")
        stand_in.lru_cache = _lru_cache(_lru_cache_wrapper)
        sys.modules["functools"] = stand_in
        try:
            __import__("_sqlite3")
        except Exception:  # noqa: BLE001  # it wants more of functools than we know of: the ordinary way
            sys.modules.pop("_sqlite3", None)
        finally:
            del sys.modules["functools"]

    def _lru_cache(wrapper: Callable[..., Any]) -> Callable[[int], Any]:
        def sized(maxsize: int = 128) -> Callable[[Callable[..., Any]], Any]:
            return lambda call: wrapper(call, maxsize, False, tuple)

        return sized

    if "functools" not in sys.modules and "_sqlite3" not in sys.modules:
        _import_lean()
    import _sqlite3

DatabaseError = _sqlite3.DatabaseError
InterfaceError = _sqlite3.InterfaceError
IntegrityError = _sqlite3.IntegrityError
OperationalError = _sqlite3.OperationalError
ProgrammingError = _sqlite3.ProgrammingError
connect = _sqlite3.connect
