"""The way to a PostgreSQL: no password in an address, and a server that proves who it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tenuto.cluster.private_postgres import PrivatePostgres
from tenuto.errors import BadInput, NotFound, Refused
from tenuto.stores.postgres.address import checked, connection_words, shown
from tenuto.stores.postgres.journal import PostgresJournal
from tenuto.stores.postgres.schema import project_named, set_up
from tests.support.certificates import Authority
from tests.support.journals import append, started

HOST = "db.example.org"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://db.example.org/x?sslmode=require",
        "host=db.example.org sslmode=verify-ca",
        "postgresql://10.0.0.7/x?sslmode=disable",
        "postgresql://localhost,db.example.org/x?sslmode=prefer",
        "host=localhost hostaddr=10.0.0.7 sslmode=require",
    ],
)
def test_over_a_network_anything_weaker_than_verify_full_is_refused(address: str) -> None:
    for ask in (checked, connection_words):
        with pytest.raises(Refused) as refused:
            ask(address)
        assert refused.value.code == "not-verified" and "verify-full" in refused.value.hint


def test_what_the_service_or_the_environment_says_counts_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    services = tmp_path / "services"
    services.write_text("[other]\nhost=/tmp\n[weak]\n# ours\nhost=db.example.org\nsslmode=require\n[good]\nhost=h\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    with pytest.raises(Refused):
        checked("postgresql:///x?service=weak")
    assert checked("service=other") and conninfo_to_dict(connection_words("service=good"))["sslmode"] == "verify-full"
    monkeypatch.setenv("PGSSLMODE", "require")
    with pytest.raises(Refused):
        checked("postgresql://db.example.org/x")
    monkeypatch.delenv("PGSSLMODE")
    monkeypatch.setenv("PGHOST", "db.example.org")
    assert conninfo_to_dict(connection_words("dbname=x"))["sslmode"] == "verify-full"


@pytest.mark.parametrize("address", ["postgresql:///x", "host=/run/postgresql", "postgresql://127.0.0.1/x", "host=::1"])
def test_near_by_nothing_needs_to_be_proved(address: str) -> None:
    assert checked(address) == address and "sslmode" not in conninfo_to_dict(connection_words(address))


def test_over_a_network_verify_full_is_taken_where_nothing_is_said() -> None:
    words = conninfo_to_dict(connection_words("postgresql://db.example.org/x"))
    assert (words["sslmode"], words["sslrootcert"]) == ("verify-full", "system")
    assert words["connect_timeout"] and words["tcp_user_timeout"], "a silent network is given up"
    own = conninfo_to_dict(connection_words("postgresql://db.example.org/x?sslrootcert=/ca.pem&connect_timeout=3"))
    assert (own["sslmode"], own["sslrootcert"], own["connect_timeout"]) == ("verify-full", "/ca.pem", "3")
    several = conninfo_to_dict(connection_words("postgresql://a.example.org,b.example.org/x"))
    assert several["target_session_attrs"] == "read-write", "after a failover, the one that takes writes"


def test_no_password_stands_in_an_address() -> None:
    with pytest.raises(BadInput) as refused:
        checked("postgresql://ada:hunter2hunter2@localhost/x")
    assert refused.value.code == "password-in-address" and "hunter2" not in refused.value.message


def test_what_is_no_address_is_said() -> None:
    with pytest.raises(BadInput) as refused:
        checked("postgresql://host:port/with spaces=x")
    assert refused.value.code == "bad-address"


def test_an_address_is_shown_without_what_nobody_needs_to_see() -> None:
    assert shown("postgresql://ada@db.example.org:5433/x?sslmode=verify-full") == "postgresql://db.example.org:5433/x"
    assert shown("service=team") == "PostgreSQL (service team)"


# ---- a server with a certificate of its own ---------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("Tests")


@pytest.fixture(scope="module")
def server(authority: Authority) -> Iterator[PrivatePostgres]:
    from tests.support.postgres import shared_server

    shared_server()  # skips where there is none
    signed = authority.sign(HOST)
    with PrivatePostgres.start(
        settings={"ssl": "on", "password_encryption": "scram-sha-256"},
        rules=["hostnossl all all 0.0.0.0/0 reject", "hostssl all all 127.0.0.1/32 scram-sha-256"],
        files={"server.crt": signed.certificate, "server.key": signed.key},
        on_loopback=True,
    ) as made:
        with psycopg.connect(made.url(), autocommit=True) as owner:
            owner.execute("CREATE ROLE ada LOGIN PASSWORD 'hunter2hunter2'")
            set_up(owner, project_named("shop"), "here")
            owner.execute("GRANT tenuto_shop_driver TO ada")
        yield made


@pytest.fixture
def address(server: PrivatePostgres, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """As a machine of the team names it: its password is in .pgpass, and the name is not looked up."""
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"{HOST}:{server.port}:*:ada:hunter2hunter2\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    (tmp_path / "other.pem").write_bytes(Authority("Others").certificate)
    return (
        f"host={HOST} hostaddr=127.0.0.1 port={server.port} dbname=postgres user=ada"
        f" sslmode=verify-full sslrootcert={tmp_path}/ca.pem"
    )


def test_a_team_writes_over_an_encrypted_way_to_the_right_server(address: str, tmp_path: Path) -> None:
    journal = PostgresJournal(str(tmp_path / "state"), checked(address), "shop")
    append(journal, "a", 0, started("a"))
    assert journal.link().connection.pgconn.ssl_in_use
    (way,) = [check for check in journal.health() if check["name"] == "tls"]
    assert way["status"] == "ok" and "proved" in way["message"]
    journal.close()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("ca.pem", "other.pem"), "not-trusted"),  # another CA
        ((f"host={HOST}", "host=elsewhere.example.org"), "not-trusted"),  # another server's name
        (("ca.pem", "no.pem"), "not-trusted"),
        (("sslmode=verify-full", "sslmode=disable"), "no-login"),  # near by it may be left out: this server insists
        (("user=ada", "user=eve"), "no-login"),
        (("dbname=postgres", "service=nowhere"), "no-service"),
    ],
)
def test_another_server_or_another_user_is_refused_by_name(
    address: str, change: tuple[str, str], code: str, tmp_path: Path
) -> None:
    journal = PostgresJournal(str(tmp_path / "state"), address.replace(*change), "shop")
    with pytest.raises((Refused, NotFound)) as refused:
        journal.pulse()
    assert refused.value.code == code and "hunter2" not in refused.value.message
