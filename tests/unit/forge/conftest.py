"""A forge of one's own: an API that answers over HTTP, a bare repository that takes pushes, and `gh` and `glab` as they
are called: real programs on the PATH that ask that API."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.unit.engine.conftest import repository, say, script

__all__ = ["Api", "api", "place", "programs", "repository", "say", "script"]

# What a test looks at is what arrived there, never what was called on the way.
PROGRAM = """\
#!{python}
import json, os, sys, urllib.request
words = sys.argv[1:]
with open(os.environ["FORGE_CALLS"], "a") as calls:
    calls.write(json.dumps([os.getcwd(), words]) + "\\n")
if words[:2] == ["auth", "git-credential"]:
    sys.exit(0)
assert words[0] == "api", words
options = {{words[n]: words[n + 1] for n in range(1, len(words) - 1) if words[n].startswith("--")}}
values = set(options.values())
(path,) = [word for word in words[1:] if not word.startswith("--") and word not in values]
body = sys.stdin.buffer.read() if "--input" in options else None
request = urllib.request.Request(os.environ["FORGE_API"] + "/" + path, body, method=options["--method"])
request.add_header("X-Host", options["--hostname"])
try:
    with urllib.request.urlopen(request) as answer:
        sys.stdout.write(answer.read().decode())
except urllib.error.HTTPError as error:
    sys.stderr.write(f"gh: {{error.reason}} (HTTP {{error.code}})\\n")
    sys.exit(1)
"""


class Api:
    """What the forge knows: by path, what is read; and everything that was sent."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}
        self.sent: list[tuple[str, str, Any]] = []
        self.requests: dict[str, dict[str, Any]] = {}
        self.comments: list[dict[str, Any]] = []

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        if method != "GET":
            self.sent.append((method, path, body))
        if path in self.known and method == "GET":
            found = self.known[path]
            return found if not isinstance(found, list) or query.get("page", ["1"]) == ["1"] else []
        if re.fullmatch(r"(repos|projects)(/[^/]+)+/(pulls|merge_requests)", path):
            return self.all_requests(method, path, query, body)
        if one := re.fullmatch(r".*/(?:pulls|merge_requests)/(\d+)", path):
            self.requests[one[1]] |= body or {}
            return self.requests[one[1]]
        if re.fullmatch(r".*/(?:issues/\d+/comments|notes)", path):
            return self.comments if method == "GET" else self.comment(body)
        if one := re.fullmatch(r".*/(?:comments|notes)/(\d+)", path):
            self.comments[int(one[1]) - 1]["body"] = body["body"]
            return self.comments[int(one[1]) - 1]
        return None

    def all_requests(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        if method == "POST":
            number = str(len(self.requests) + 7)
            url = f"https://forge.example/{number}"
            self.requests[number] = {**body, "number": int(number), "iid": int(number), "html_url": url, "web_url": url}
            return self.requests[number]
        wanted = (query.get("head") or query.get("source_branch") or [""])[0].rpartition(":")[2]
        return [one for one in self.requests.values() if wanted in (one.get("head"), one.get("source_branch"))]

    def comment(self, body: Any) -> Any:
        self.comments.append({"id": len(self.comments) + 1, "body": body["body"], "created_at": "2026-01-01T00:00:00Z"})
        return self.comments[-1]


@pytest.fixture
def api() -> Iterator[tuple[str, Api]]:
    forge = Api()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            # A project of GitLab's is one part of the path, with its slash spelled out.
            found = forge.answer(self.command, unquote(asked.path.lstrip("/")), parse_qs(asked.query), body)
            told = json.dumps(found if found is not None else {"message": "Not Found"}).encode()
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        do_POST = do_PATCH = do_PUT = do_GET

        def log_message(self, *words: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", forge
    server.shutdown()
    server.server_close()


@pytest.fixture
def programs(tmp_path: Path, api: tuple[str, Api], monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("gh", "glab"):
        (folder / name).write_text(PROGRAM.format(python=sys.executable))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setenv("FORGE_API", api[0])
    monkeypatch.setenv("FORGE_CALLS", str(tmp_path / "calls"))
    return folder


@pytest.fixture
def place(
    repository: Path, tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[Path, Path]]:
    """The repository with a remote of this address, which git reaches as a bare repository here."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    def made(address: str = "https://github.com/our-org/app.git") -> tuple[Path, Path]:
        bare = tmp_path / "forge.git"
        subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
        subprocess.run(["git", "remote", "add", "origin", address], check=True)
        own = tmp_path / "home/.config/tenuto"
        own.mkdir(parents=True)
        (own / "git-remotes").write_text(f'[url "file://{bare}"]\n\tinsteadOf = {address}\n')
        (own / "git-remotes").chmod(0o600)
        return repository, bare

    return made
