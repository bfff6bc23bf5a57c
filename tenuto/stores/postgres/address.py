"""How a PostgreSQL is named, and whether the way to it is safe.

Rule 1: no password stands in an address. libpq finds it in .pgpass, or in the file that pg_service.conf names.

Rule 2: over a network the server proves who it is: sslmode=verify-full, which is taken where nothing is said, and
anything weaker is refused. A Unix socket and the loopback address need none of it.

An address is a libpq URL or a list of `name=value`. What it does not say is taken from the service that it names
(pg_service.conf), then from libpq's variables (PGHOST, PGSSLMODE ...), as libpq itself does.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tenuto.errors import BadInput, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMES = ("postgresql://", "postgres://")
_LOOPBACK = ("localhost", "127.", "::1")
_VARIABLES = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "passfile": "PGPASSFILE",
    "sslkey": "PGSSLKEY",
}
# A connection over a network that hears nothing is given up after half a minute: no look and no turn waits for ever.
_PATIENCE = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "tenuto",
}
_SERVICES = "~/.pg_service.conf"


def checked(address: str) -> str:
    """The address as it may be kept: without a password, over a safe way."""
    found = _parsed(address)
    if found.get("password"):
        raise BadInput("password-in-address", "an address holds no password", "put it into .pgpass, mode 0600")
    _check_way(found)
    return address


def shown(address: str) -> str:
    """For people: where it is, without options."""
    try:
        found = _parsed(address)
    except BadInput:
        return "PostgreSQL"
    if found.get("service"):
        return f"PostgreSQL (service {found['service']})"
    host, port, name = found.get("host") or "", found.get("port"), found.get("dbname") or found.get("user") or ""
    return f"postgresql://{host or 'localhost'}{f':{port}' if port else ''}/{name}"


def connection_words(address: str) -> str:
    """What libpq is given."""
    found = _parsed(address)
    _check_way(found)
    more = {name: value for name, value in _PATIENCE.items() if name not in found}
    if _weakest(found) == "" and any(not _is_near(host) for host in _hosts(found)):
        more["sslmode"] = "verify-full"
        if not _of(found, "sslrootcert"):
            more["sslrootcert"] = "system"
    if len(_hosts(found)) > 1 and "target_session_attrs" not in found:
        more["target_session_attrs"] = "read-write"
    return make_conninfo(address, **more)


def logins(address: str) -> list[str]:
    """The files that libpq would log in with, where they are there."""
    found = _parsed(address)
    named = [_of(found, name) for name in ("passfile", "sslkey")]
    usual = [os.environ.get("PGPASSFILE", "~/.pgpass"), "~/.postgresql/postgresql.key"]
    paths = [os.path.expanduser(path) for path in (*named, *usual) if path]
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]


def _parsed(address: str) -> dict[str, str]:
    try:
        found = conninfo_to_dict(address)
    except psycopg.ProgrammingError as error:
        words = str(error).strip().splitlines()[0]
        message = f"this is no address of a PostgreSQL: {words}"
        raise BadInput("bad-address", message, "postgresql://HOST/DATABASE") from None
    return {name: str(value) for name, value in found.items() if value is not None}


def _check_way(found: dict[str, str]) -> None:
    mode = _weakest(found)
    for host in _hosts(found):
        if not _is_near(host) and mode not in ("", "verify-full"):
            raise Refused(
                "not-verified",
                f"over a network to {host}, sslmode={mode} does not show that it is the right server",
                "sslmode=verify-full, and sslrootcert=FILE where your own CA signed its certificate",
            )


def _hosts(found: dict[str, str]) -> list[str]:
    """Every place that libpq may try."""
    named = _of(found, "hostaddr") or _of(found, "host")
    return named.split(",") if named else ["/"]  # libpq's own default is a socket


def _is_near(host: str) -> bool:
    return not host or host.startswith(("/", "@", *_LOOPBACK))


def _weakest(found: dict[str, str]) -> str:
    return _of(found, "sslmode")


def _of(found: dict[str, str], name: str) -> str:
    """As libpq takes it: from the address, its service, the environment."""
    if name in found:
        return found[name]
    service = found.get("service") or os.environ.get("PGSERVICE", "")
    told = dict(_of_service(service)) if service else {}
    return told.get(name) or os.environ.get(_VARIABLES[name], "")


def _of_service(service: str) -> Iterator[tuple[str, str]]:
    """From the first file that describes it; a file that is not there is libpq's to complain about."""
    for path in (
        os.environ.get("PGSERVICEFILE") or os.path.expanduser(_SERVICES),
        os.path.join(os.environ.get("PGSYSCONFDIR", "/etc/postgresql-common"), "pg_service.conf"),
    ):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file]
        except OSError:
            continue
        if f"[{service}]" in lines:
            for line in lines[lines.index(f"[{service}]") + 1 :]:
                if line.startswith("["):
                    return
                name, equals, value = line.partition("=")
                if equals and not line.startswith("#"):
                    yield name.strip(), value.strip()
            return
