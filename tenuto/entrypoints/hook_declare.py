"""`tenuto hook declare [KEY=VALUE ...] [--run RUN] [--json]`: what hooks may insist on. Without a pair: what is declared."""

from __future__ import annotations

import sys

from tenuto.core.boundaries import settings_of
from tenuto.drivers.hooks.declaring import declare, parse
from tenuto.entrypoints.opening import open_here
from tenuto.errors import BadInput
from tenuto.workspace.guard import require_person


def main(words: list[str]) -> int:
    run, pairs, as_json = "", [], False
    rest = iter(words)
    for word in rest:
        if word == "--json":
            as_json = True
        elif word == "--run":
            run = next(rest, "")
        elif word.startswith("-"):
            raise BadInput(
                "usage", f"tenuto hook declare does not know {word}", "tenuto hook declare gate=block --run NAME"
            )
        else:
            pairs.append(word)
    workspace = open_here()
    if pairs:
        require_person("change what hooks insist on", f"tenuto hook declare {' '.join(pairs)}")
        declared = declare(workspace, parse(pairs), run)
    else:
        with workspace.journal.read() as reader:
            found = reader.load(run) if run else None
            declared = settings_of(reader.load_repo()["settings"], found)
    if as_json:
        from tenuto.entrypoints.envelope import success

        sys.stdout.write(success({"hooks": declared}) + "\n")
    else:
        sys.stdout.write("".join(f"{key} = {value}\n" for key, value in declared.items()) or "nothing is declared\n")
    return 0
