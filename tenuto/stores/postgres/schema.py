"""The schema of a project: its tables, how an older one becomes a newer one, and who may do what in it.

    part      which version each part of the schema has (the journal is one)
    head      one row: how many commits there were; it changes with every one
    turn      the marks of the last ones: whether a turn was committed can be told after a connection broke
    event .. note   as in SQLite (stores/database.py says what each is), with PostgreSQL's types
    piece     large artifacts, in rows of 1 MiB

Rule 1: text is `text`, never `jsonb`: an event comes back letter by letter. Names compare byte by byte ("C").

Rule 2: a schema goes forward only, one transaction for each step, under one lock, by its owner. A program that finds a
newer one stops with exit status 6, and so does one that finds an older one and is not its owner.

Rule 3: three roles, each with the least that it needs. The owner makes and changes tables. A driver reads all, adds
events, and changes their text only (`forget`); it cannot remove one, nor change its number or its place in the chain.
A worker has nothing here but what a part of the schema grants it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import psycopg

from tenuto.errors import BadInput, Refused
from tenuto.stores.postgres.faults import fault, newer_schema, older_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenuto.stores.postgres.link import Row

TURNS_KEPT = 1000
_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_LONGEST_PROJECT = 40  # PostgreSQL cuts names off at 63 characters, and roles are named after a project


class Project(NamedTuple):
    """One project in a database, by its name."""

    name: str

    @property
    def schema(self) -> str:
        return f"tenuto_{self.name}".replace("-", "_")

    @property
    def channel(self) -> str:
        """Where a commit is announced."""
        return self.schema

    @property
    def lock(self) -> int:
        """The number of its lock: who holds it writes."""
        from tenuto.encoding import sha256

        return int.from_bytes(sha256(self.schema.encode()).digest()[:8], "big", signed=True)

    def role(self, what: str) -> str:
        return f"{self.schema}_{what}"


def project_named(name: str) -> Project:
    if not set(name) <= _SIGNS or not name[:1].isalpha() or len(name) > _LONGEST_PROJECT:
        raise BadInput(
            "bad-project",
            f"{name!r} cannot be the name of a project in a database",
            f"lower-case letters, digits and '-', a letter first, {_LONGEST_PROJECT} at most",
        )
    return Project(name)


class Part(NamedTuple):
    """A part of the schema with versions of its own."""

    name: str
    steps: Sequence[str]
    """The statements that lead to version 1, 2, ...; never changed once they were released."""
    rights: Mapping[str, Sequence[str]]
    """By role: what is granted to it. `{}` stands for the role."""


_TABLES = """
CREATE TABLE head(one boolean PRIMARY KEY DEFAULT true CHECK (one), commits bigint NOT NULL) WITH (fillfactor=50);
INSERT INTO head(commits) VALUES(0);
CREATE TABLE turn(slot integer PRIMARY KEY, n bigint NOT NULL, token text NOT NULL) WITH (fillfactor=50);
CREATE TABLE event(
  run text COLLATE "C" NOT NULL, seq bigint NOT NULL, key text COLLATE "C", body text NOT NULL,
  digest bytea NOT NULL, chain bytea NOT NULL, redacted text,
  PRIMARY KEY(run, seq));
CREATE UNIQUE INDEX event_key ON event(run, key) WHERE key IS NOT NULL;
CREATE TABLE run(
  id text COLLATE "C" PRIMARY KEY, created text COLLATE "C" NOT NULL, seq bigint NOT NULL DEFAULT 0,
  chain bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
  tail bigint NOT NULL DEFAULT 0, kept bigint NOT NULL DEFAULT 0, dialects text COLLATE "C" NOT NULL DEFAULT '',
  card text COLLATE "C" NOT NULL DEFAULT '{}', open_in text COLLATE "C", digest bytea);
CREATE INDEX run_created ON run(created DESC, id);
CREATE INDEX run_open ON run(open_in) WHERE open_in IS NOT NULL;
CREATE TABLE state(
  run text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL, fold bigint NOT NULL, body text NOT NULL,
  digest bytea NOT NULL);
CREATE TABLE render(
  path text COLLATE "C" NOT NULL, n bigint NOT NULL, run text COLLATE "C" NOT NULL, seq bigint NOT NULL,
  sha256 text COLLATE "C" NOT NULL, body bytea,
  PRIMARY KEY(path, n));
CREATE INDEX render_kept ON render(run, path) WHERE body IS NOT NULL;
CREATE INDEX render_hash ON render(sha256);
CREATE TABLE log(path text COLLATE "C" NOT NULL, pos bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY(path, pos));
CREATE TABLE logged(path text COLLATE "C" PRIMARY KEY, length bigint NOT NULL, digest bytea NOT NULL);
CREATE TABLE blob(sha256 text COLLATE "C" PRIMARY KEY, body bytea NOT NULL);
ALTER TABLE blob ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE piece(sha256 text COLLATE "C" NOT NULL, n integer NOT NULL, body bytea NOT NULL, PRIMARY KEY(sha256, n));
ALTER TABLE piece ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TEXT SEARCH DICTIONARY stem (TEMPLATE = pg_catalog.snowball, Language = english);
CREATE TEXT SEARCH CONFIGURATION words (COPY = pg_catalog.simple);
ALTER TEXT SEARCH CONFIGURATION words ALTER MAPPING FOR asciiword, word, numword WITH stem;
CREATE TABLE passage(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run text COLLATE "C", source text COLLATE "C",
  path text COLLATE "C", heading text, body text, digest bytea, found_by tsvector NOT NULL);
CREATE INDEX passage_source ON passage(run, source);
CREATE INDEX passage_words ON passage USING gin(found_by) WITH (fastupdate=off);
CREATE TABLE note(name text COLLATE "C" PRIMARY KEY, value text NOT NULL, digest bytea NOT NULL);
"""

CONTENT = ("event", "run", "state", "render", "log", "logged", "blob", "piece", "passage", "note")
_ALL = "SELECT, INSERT, UPDATE, DELETE"
JOURNAL = Part(
    "journal",
    [_TABLES],
    {
        "driver": [
            "GRANT SELECT ON part TO {}",
            "GRANT SELECT, UPDATE ON head TO {}",
            "GRANT SELECT, INSERT, UPDATE ON turn TO {}",
            "GRANT SELECT, INSERT, UPDATE (key, body, redacted) ON event TO {}",
            "GRANT SELECT, INSERT, UPDATE ON run TO {}",
            f"GRANT {_ALL} ON state, render, log, logged, blob, piece, passage, note TO {{}}",
        ]
    },
)
ROLES = ("driver", "worker")
FIND_VERSION = "SELECT version FROM part WHERE name='journal'"


def check_version(found: int, address: str, part: Part = JOURNAL) -> None:
    known = len(part.steps)
    if found > known:
        raise newer_schema(address, found, known)
    if found < known:
        raise older_schema(address, found, known)


def set_up(
    connection: psycopg.Connection[Row], project: Project, address: str, parts: Sequence[Part] = (JOURNAL,)
) -> list[str]:
    """By its owner: make the schema and its roles, or bring them up to date. What was done, in words.

    Two that do it at once: one waits for the other, and finds nothing left to do.
    """
    try:
        return _set_up(connection, project, address, parts)
    except psycopg.Error as error:
        raise fault(error, address) from error


def _set_up(connection: psycopg.Connection[Row], project: Project, address: str, parts: Sequence[Part]) -> list[str]:
    done: list[str] = []

    def run(statement: str) -> psycopg.Cursor[Row]:
        return connection.execute(statement.encode())

    (encoding,) = run("SHOW server_encoding").fetchone() or ("",)
    if encoding != "UTF8":
        raise Refused("bad-encoding", f"{address} holds text as {encoding}", "make a database with ENCODING 'UTF8'")
    with connection.transaction():
        run(f"SELECT pg_advisory_xact_lock({project.lock})")
        if not run(f"SELECT 1 FROM pg_namespace WHERE nspname='{project.schema}'").fetchone():
            run(f'CREATE SCHEMA "{project.schema}"')
            done.append(f"schema {project.schema}")
        run(f'SET LOCAL search_path TO "{project.schema}"')
        run('CREATE TABLE IF NOT EXISTS part(name text COLLATE "C" PRIMARY KEY, version integer NOT NULL)')
        for role in ROLES:
            name = project.role(role)
            if not run(f"SELECT 1 FROM pg_roles WHERE rolname='{name}'").fetchone():
                run(f'CREATE ROLE "{name}" NOLOGIN')
                done.append(f"role {name}")
            run(f'GRANT USAGE ON SCHEMA "{project.schema}" TO "{name}"')
    for part in parts:
        done += _migrate(connection, project, address, part)
    return done


def _migrate(connection: psycopg.Connection[Row], project: Project, address: str, part: Part) -> list[str]:
    """Each step is one transaction, so a crash leaves a whole version."""
    done: list[str] = []
    while True:
        with connection.transaction():
            connection.execute(f"SELECT pg_advisory_xact_lock({project.lock})".encode())
            connection.execute(f'SET LOCAL search_path TO "{project.schema}"'.encode())
            row = connection.execute("SELECT version FROM part WHERE name=%s", (part.name,)).fetchone()
            found = row[0] if row else 0
            if found > len(part.steps):
                raise newer_schema(address, found, len(part.steps))
            if found == len(part.steps):
                for role, grants in part.rights.items():
                    for grant in grants:
                        connection.execute(grant.format(f'"{project.role(role)}"').encode())
                return done
            connection.execute(part.steps[found].encode())
            connection.execute(
                "INSERT INTO part VALUES(%s, %s) ON CONFLICT(name) DO UPDATE SET version=excluded.version",
                (part.name, found + 1),
            )
            done.append(f"{part.name} {found + 1}")
