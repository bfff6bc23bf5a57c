"""The door: who comes in, from where, with what."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.web.grounds import Served, program, run_of

CARD = "/runs/dark-mode/answer"


@pytest.fixture(scope="module")
def door(made: Path) -> Iterator[Served]:
    """One server for the tests that change nothing, with a session."""
    with Served(made) as server:
        server.enter()
        yield server


def test_a_link_or_a_typed_code_lets_a_browser_in_once(root: Path) -> None:
    with Served(root) as server:
        code = server.code()
        typed = f" {code[:5].lower()}-{code[5:].lower()} "
        answer = server.ask("/in", {"code": typed})
        assert answer.status == 303 and answer.header("location") == "/"
        cookie = answer.header("set-cookie")
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
        server.session = cookie.partition(";")[0]
        assert server.ask("/").status == 200
        again = server.ask("/in", {"code": code})
        assert again.status == 403 and "used before" in again.text and "session that it gave is ended" in again.text
        server.hear("a second time")
        assert server.ask("/", method="HEAD").status == 401, "the session is ended"
        server.press_enter()
        server.enter()
        assert server.ask("/").status == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""])
def test_a_name_that_is_not_this_servers_is_answered_with_421(door: Served, host: str) -> None:
    """DNS rebinding: another site's name is made to point here."""
    answer = door.ask("/", Host=host.format(port=door.port))
    assert answer.status in ((421,) if host else (400, 421)), answer.text
    assert "Dark mode" not in answer.text


@pytest.mark.parametrize("site", ["cross-site", "same-site", "something-new"])
def test_no_other_site_or_port_reads_a_page(door: Served, site: str) -> None:
    headers = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "image"}
    assert door.ask("/runs/dark-mode", told=headers).status == 403
    assert door.ask("/runs/dark-mode", told=headers, Origin="http://127.0.0.1:1").status == 403
    framed = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"}
    assert door.ask("/runs/dark-mode", told=framed).status == 403


def test_a_link_from_another_site_opens_the_page_once_the_cookie_comes_along(door: Served) -> None:
    visit = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document", "Cookie": ""}
    answer = door.ask("/runs/dark-mode?at=3", told=visit)
    assert answer.status == 200 and "0;url=/runs/dark-mode?at=3" in answer.text and "Dark mode" not in answer.text
    away = door.ask("//evil.example/runs", told=visit)
    assert "url=/evil.example/runs" in away.text, "it never leads to another host"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_no_form_of_another_site_changes_anything(door: Served, headers: dict[str, str]) -> None:
    form = {**door.fields(), "answer": "approve"}
    told = {name: value.format(port=door.port) for name, value in headers.items()}
    answer = door.ask(CARD, form, told=told)
    assert answer.status == 403 and "not sent from a page of this server" in answer.text
    assert run_of(door.root)["status"] == "waiting_gate"


def test_a_form_needs_the_token_of_its_own_session(door: Served) -> None:
    fields = door.fields()
    for token in ("", "x" * 43, fields["token"][:-1], "\u00e9"):
        answer = door.ask(CARD, {**fields, "token": token, "answer": "approve"})
        assert answer.status == 403 and "not of a page that this server made for you" in answer.text
    twice = [*fields.items(), ("token", fields["token"]), ("answer", "approve")]
    assert door.ask(CARD, twice).status == 403
    assert run_of(door.root)["status"] == "waiting_gate"


@pytest.mark.parametrize("cookie", ["", "x", "{name}=", "{name}=x", "{own}; {own}", "{own}x"])
def test_without_the_cookie_of_a_session_nothing_is_shown_or_done(door: Served, cookie: str) -> None:
    forged = cookie.format(name=door.session.partition("=")[0], own=door.session)
    fields = door.fields()
    shown = door.ask("/runs/dark-mode", Cookie=forged)
    assert shown.status == 303 and shown.header("location") == "/in" and not shown.text
    assert door.ask("/live", Cookie=forged, Sec_Fetch_Dest="empty").status == 401
    assert door.ask(CARD, {**fields, "answer": "approve"}, Cookie=forged).status == 401
    assert door.ask("/in", Cookie=forged).status == 200, "only the page that asks for the code"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"])
def test_there_are_three_methods(door: Served, method: str) -> None:
    assert door.ask("/runs/dark-mode", method=method).status in (400, 405)


def test_no_header_or_field_makes_another_method_of_a_look(door: Served) -> None:
    override = {"X_HTTP_Method_Override": "POST", "X_Method_Override": "POST"}
    query = "&".join(f"{name}={value}" for name, value in {**door.fields(), "answer": "approve"}.items())
    for path in (f"{CARD}?{query}", "/runs/dark-mode?_method=POST&answer=approve"):
        door.ask(path.replace(" ", "+"), told=override)
        door.ask(path.replace(" ", "+"), method="HEAD", told=override)
    assert run_of(door.root)["status"] == "waiting_gate"


def test_a_head_is_answered_without_a_body_and_never_streams(door: Served) -> None:
    for path in ("/", "/runs/dark-mode", "/live", "/static/tenuto.css", "/in"):
        answer = door.ask(path, method="HEAD")
        assert answer.status == 200 and not answer.text


def test_every_answer_carries_the_protecting_headers(door: Served) -> None:
    answers = [
        door.ask("/"),
        door.ask("/nothing/here"),
        door.ask("/", Host="evil.example"),
        door.ask("/", method="PUT"),
        door.ask("/static/tenuto.js"),
        door.ask(CARD, {"token": "x"}),
        door.ask("/in", Cookie=""),
    ]
    for answer in answers:
        policy = answer.header("content-security-policy")
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy and "form-action 'self'" in policy
        assert answer.header("x-content-type-options") == "nosniff"
        assert answer.header("cross-origin-opener-policy") == answer.header("cross-origin-resource-policy")
        assert answer.header("referrer-policy") == "same-origin"
        assert answer.header("cache-control") in ("no-store", "no-cache")
        assert not answer.header("server") and not answer.header("access-control-allow-origin")


@pytest.mark.parametrize(
    ("form", "status"),
    [
        (b"token=" + b"x" * 70_000, 413),
        (b"&".join(b"a%d=1" % number for number in range(500)), 400),
        (b"token=%ff%fe", 400),
        (b"\xff\xfe", 400),
        (b"no equals sign", 400),
        (b"", 403),
    ],
)
def test_a_form_that_is_none_is_refused(door: Served, form: bytes, status: int) -> None:
    assert door.ask(CARD, form).status == status
    assert door.ask("/").status == 200, "and the server lives on"


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x", ""])
def test_only_forms_are_taken(door: Served, kind: str) -> None:
    assert door.ask(CARD, {**door.fields(), "answer": "approve"}, Content_Type=kind).status == 415


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: -5\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Host: evil.example\r\n",
        "Origin: http://evil.example\r\n",
        "X: a\rb\r\n",
        " folded: x\r\n",
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused(door: Served, lines: str) -> None:
    """Smuggling: what a program in between and the server take for the end of a form must be one place."""
    with socket.create_connection(("127.0.0.1", door.port)) as connection:
        head = (
            f"POST {CARD} HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\nOrigin: {door.address}\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nCookie: {door.session}\r\nConnection: close\r\n"
        )
        connection.sendall(f"{head}{lines}\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n".encode())
        connection.shutdown(socket.SHUT_WR)
        said = b""
        while part := connection.recv(1 << 16):
            said += part
    answers = [part[:3] for part in said.split(b"HTTP/1.1 ")[1:]]
    assert answers and set(answers) <= {b"400", b"403", b"421"}, said
    assert run_of(door.root)["status"] == "waiting_gate"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../page.py",
        "/static/%2e%2e/page.py",
        "/static/%2e%2e%2fpage.py",
        "/static//etc/passwd",
        "/runs/..%2f..%2fetc%2fpasswd",
        "/runs/%00",
        "/runs/%ff",
        "/runs/@",
        "/runs/%40",
        "/runs/a%0d%0aSet-Cookie:%20x=y",
        "/runs/" + "a" * 8000,
        "/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/runs/dark-mode/attempts/..",
        "/runs/dark-mode/answer",
        "/nothing",
    ],
)
def test_a_name_leads_nowhere_but_to_a_run(door: Served, path: str) -> None:
    answer = door.ask(path)
    assert answer.status in (400, 404), answer.text
    assert "root:" not in answer.text and "<script>alert" not in answer.text and not answer.header("set-cookie")


def test_a_flood_of_streams_is_refused_and_pages_are_answered(door: Served) -> None:
    ask = f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\nCookie: {door.session}\r\n\r\n".encode()
    with ExitStack() as opened:
        streams = [opened.enter_context(socket.create_connection(("127.0.0.1", door.port))) for _ in range(40)]
        for stream in streams:
            stream.sendall(ask)
        answers = [stream.recv(12) for stream in streams]
        assert answers.count(b"HTTP/1.1 200") == 32 and answers.count(b"HTTP/1.1 403") == 8
        assert door.ask("/runs/dark-mode").status == 200


def test_too_many_wrong_codes_take_the_code_away(root: Path) -> None:
    with Served(root) as server:
        code = server.code()
        for number in range(10):
            assert server.ask("/in", {"code": f"WRONG{number:05d}"}).status == 403
        server.hear("too many wrong codes")
        assert server.ask("/in", {"code": code}).status == 403


def test_an_agent_does_not_come_in_with_a_code_that_it_has_read(root: Path) -> None:
    with Served(root, judge="agent") as server:
        answer = server.ask("/in", {"code": server.code()})
        assert answer.status == 403 and "only a person can" in answer.text and not answer.header("set-cookie")


def test_without_a_terminal_it_only_shows_or_does_not_start(root: Path) -> None:
    done = program(root, "ui", "--port", "0")
    assert done.returncode == 4 and "there is no terminal" in done.stderr and "--look-only" in done.stderr


def test_a_port_that_is_taken_is_said(root: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = program(root, "ui", "--look-only", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 4 and "port-taken" in done.stderr


def test_where_the_extra_is_missing_the_command_says_how_to_get_it(root: Path, tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(
        "import importlib.util as u\nfound = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'uvicorn' else found(name, *more)\n"
    )
    around = f"{Path(__file__).resolve().parents[2]}:{tmp_path / 'hidden'}"
    done = program(root, "ui", "--look-only", PYTHONPATH=around)
    assert done.returncode == 4 and "extra-missing" in done.stderr and "pip install" in done.stderr


def test_ctrl_c_ends_it_at_once_with_streams_open(root: Path) -> None:
    with Served(root) as server:
        server.enter()
        with socket.create_connection(("127.0.0.1", server.port)) as stream:
            stream.sendall(
                f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {server.session}\r\n\r\n".encode()
            )
            assert stream.recv(1 << 16).startswith(b"HTTP/1.1 200")
            assert server.end() == 0
            while stream.recv(1 << 16):
                pass
