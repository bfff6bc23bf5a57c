"""A real process under strace, and what it did to the files below a root, as operations of the disk model."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from prove.disk import Op
from prove.frame import environment
from prove.scenes import Command, words

TRACED = (
    "openat,open,creat,write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range,ftruncate,truncate,fallocate,"
    "rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat,"
    "fsync,fdatasync,sync_file_range,sync,syncfs,lseek,chdir"
)
_LINE = re.compile(r"^(?:(\d+)\s+)?(\w+)\((.*)\)\s+= (\d+)")
_HEX = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_OPEN = re.compile(r"<((?:\\x[0-9a-f]{2})*)>")
_STANDARD_OUTPUT = "1<"


class Traced:
    def __init__(self, ops: list[Op], status: int, output: bytes) -> None:
        self.ops = ops
        self.status = status
        self.output = output


def trace(root: Path, command: Command, log: Path) -> Traced:
    """Run the command in `root` and say what it did there. `answer` stands where success was said."""
    done = trace_process(root, *words(command), log)
    if not any(op.kind == "answer" for op in done.ops):
        done.ops.append(Op("answer", ""))  # a hook says it by ending well
    return done


def trace_process(root: Path, arguments: list[str], text: bytes, log: Path) -> Traced:
    strace = ["strace", "--seccomp-bpf", "-f", "-y", "-xx", "-s", "10000000", "-o", str(log), "-e", f"trace={TRACED}"]
    done = subprocess.run(
        [*strace, *arguments], cwd=root, input=text, capture_output=True, check=False, env=environment()
    )
    ops = list(_ops(log, str(root)))
    os.unlink(log)
    return Traced(ops, done.returncode, done.stdout + done.stderr)


def _plain(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _ops(log: Path, root: str) -> Iterator[Op]:
    first, halves = "", dict[str, str]()
    positions: dict[tuple[str, str], int] = {}  # (process, descriptor) -> where its next write goes; -1: the end
    links: dict[str, str] = {}  # made outside the root, where they lead into it
    folders: dict[str, str] = {}  # process -> where it works
    with log.open() as file:
        for line in file:
            pid = line.split(" ", 1)[0]
            first = first or pid
            if "<unfinished ...>" in line:
                halves[pid] = line.partition("<unfinished")[0].rstrip()
                continue
            if "resumed>" in line:
                line = halves.pop(pid, "") + line.partition("resumed>")[2]
            found = _LINE.match(line)
            if found is not None:
                if found[2] in ("symlink", "symlinkat"):
                    target, link = (os.fsdecode(_plain(text)) for text, _ in _HEX.findall(found[3])[:2])
                    if target.startswith(root + "/") and not link.startswith(root + "/"):
                        links[link] = target
                for op in _op(pid, found[2], found[3], int(found[4]), root, positions, links, folders):
                    if op.kind != "answer" or pid == first:  # what a helper says is no answer
                        yield op


def _op(
    pid: str,
    call: str,
    given: str,
    result: int,
    root: str,
    positions: dict[tuple[str, str], int],
    links: dict[str, str],
    folders: dict[str, str],
) -> Iterator[Op]:
    texts = [_plain(text) for text, _ in _HEX.findall(given)]
    places = [os.fsdecode(_plain(text)) for text in _OPEN.findall(given)]

    if given.startswith("AT_FDCWD<"):
        folders[pid] = places[0]
    elif call == "chdir":
        folders[pid] = os.path.normpath(os.path.join(folders.get(pid, "/"), os.fsdecode(texts[0])))

    def inside(path: str) -> str:
        path = os.path.normpath(os.path.join(folders.get(pid, "/"), path))
        for link, target in links.items():  # git works through a stand-in for the repository's own folder
            if path.startswith(link + "/"):
                path = target + path[len(link) :]
        return path[len(root) + 1 :] if path.startswith(root + "/") else ""

    def named(place: int, text: int) -> str:
        path = os.fsdecode(texts[text])
        return inside(os.path.normpath(path if path.startswith("/") else os.path.join(places[place], path)))

    descriptor = (pid, str(result) if call == "openat" else given.partition("<")[0])
    if call == "openat":
        positions[descriptor] = -1 if "O_APPEND" in given else 0
    elif call == "lseek" and positions.get(descriptor) != -1:
        positions[descriptor] = result
    if call in ("write", "writev") and given.startswith(_STANDARD_OUTPUT):
        yield Op("answer", "")
        return
    if call in ("openat", "mkdirat", "unlinkat"):
        path = named(0, 0)
        if call == "mkdirat" and path:
            yield Op("mkdir", path)
        elif call == "unlinkat" and path:
            yield Op("unlink", path)
        elif call == "openat" and path and "O_CREAT" in given:
            yield Op("create", path)
        if call == "openat" and path and "O_TRUNC" in given:
            yield Op("truncate", path)
    elif call in ("mkdir", "unlink", "rmdir", "open", "creat"):
        path = inside(os.fsdecode(texts[0]))
        if path and call in ("mkdir", "unlink", "rmdir"):
            yield Op(call, path)
        elif path:
            raise AssertionError(f"{call} is not followed")
    elif call in ("rename", "link"):
        one, other = (inside(os.fsdecode(text)) for text in texts)
        if one or other:
            yield Op(call, one, other)
    elif call in ("renameat", "renameat2", "linkat"):
        one, other = named(0, 0), named(1, 1) if len(places) > 1 else named(0, 1)
        if one or other:
            kind = "link" if call == "linkat" else "exchange" if "RENAME_EXCHANGE" in given else "rename"
            yield Op(kind, one, other)
    elif places and places[0] == root and call in ("fsync", "fdatasync"):
        yield Op("sync", "")
    elif places and (path := inside(places[0])) and not path.endswith("-shm"):
        at = positions.get(descriptor, -1)
        if call in ("write", "sendfile") and at >= 0:
            positions[descriptor] = at + result
        if call == "sendfile":
            yield Op("copy", path, inside(places[1]), at, b"", result)
            return
        yield from _on_open_file(call, given, result, path, texts, at)


def _on_open_file(call: str, given: str, result: int, path: str, texts: list[bytes], at: int) -> Iterator[Op]:
    if call == "pwrite64":
        yield Op("write", path, "", int(given.rsplit(",", 1)[1]), texts[-1][:result])
    elif call == "write":
        yield Op("write", path, "", at, texts[-1][:result])
    elif call == "ftruncate":
        yield Op("truncate", path, "", int(given.rsplit(",", 1)[1]))
    elif call in ("fsync", "fdatasync"):
        yield Op("sync", path)
    elif call in ("writev", "pwritev", "pwritev2", "copy_file_range", "fallocate"):
        raise AssertionError(f"{call} is not followed: {path}")
