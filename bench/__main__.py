"""`make bench`: every figure, side by side with its limit, in one run.

make bench                    all of them
make bench ARGS='hook'        some of them
"""

from __future__ import annotations

import sys
from importlib import import_module

PARTS = {
    "hook": "a hook as a fresh process, against a bare interpreter and durable bash + jq",
    "journal": "appends, loads and writers, against bare SQLite",
    "context": "the context manager's commands as processes; LIST and QUERY at size",
    "engine": "durable chains and fan-out, scheduling, restarts",
}


def main(words: list[str]) -> int:
    unknown = [word for word in words if word not in PARTS]
    if unknown:
        print(f"no such part: {', '.join(unknown)}; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    for name in words or PARTS:
        print(f"\n== {name}: {PARTS[name]}", flush=True)
        import_module(f"bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
