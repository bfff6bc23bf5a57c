"""Many machines: `tenuto worker` and `tenuto attempt` on those that work, `tenuto cluster` for who prepares the
database, `tenuto workers` for who wants to see them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from tenuto.entrypoints.cli.frame import Answer, Command, Group, open_here
from tenuto.entrypoints.cli.terminal import Table, say
from tenuto.errors import BadInput, TenutoError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.cluster.machines import MachinesView, WorkerView
    from tenuto.cluster.worker import Worker
    from tenuto.entrypoints.cli.terminal import Part

_HOME_HELP = "Where it keeps code and attempts, and finds them after a restart; one worker to a folder."
_LABEL_HELP = "What this machine has; a task that asks for labels goes to a worker that has all of them."


def worker_home(given: str | None, pool: str) -> str:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.abspath(given or f"{state}/tenuto/worker-{pool}")


def _worker(home: str | None, pool: str, slots: int, labels: tuple[str, ...]) -> Worker:
    from tenuto import __version__
    from tenuto.cluster.worker import Place, Worker, stop_on_signals

    if not pool.replace("-", "a").replace("_", "a").isalnum():
        raise BadInput("bad-name", f"{pool!r} is no name of a pool", "letters, digits, - and _")
    made = Worker(_address(), Place(worker_home(home, pool), pool, slots, labels, __version__), say)
    stop_on_signals(made)
    return made


@click.command(
    "worker",
    cls=Command,
    examples=[
        ("tenuto worker", "work for the pool `default`, two attempts at a time"),
        ("tenuto worker --pool big --slots 8 --label gpu", "for another pool, with a label"),
    ],
)
@click.option("--pool", default="default", help="Whose attempts it carries out.")
@click.option("--slots", type=click.IntRange(1, 1000), default=2, help="How many at a time.")
@click.option("--label", "labels", multiple=True, help=_LABEL_HELP)
@click.option("--home", default=None, metavar="FOLDER", help=_HOME_HELP)
def worker(pool: str, slots: int, labels: tuple[str, ...], home: str | None) -> Answer:
    """Carry out attempts of runs that are driven elsewhere.

    TENUTO_CLUSTER says where the database is. Ctrl-C or SIGTERM: nothing more is taken, and it ends when all that is
    under way has ended; once more, and it ends at once. Started again in its folder, it takes up what still runs.
    """
    done = _worker(home, pool, slots, labels).work()
    return Answer({"carried_out": done}, [f"{done} carried out"])


@click.command(
    "attempt",
    cls=Command,
    examples=[
        ("tenuto attempt --pool big", "whatever waits first, and no other"),
        ("tenuto attempt dark-mode design-1-designer-1", "this one, as a job of Kubernetes or SLURM"),
    ],
)
@click.argument("run", required=False)
@click.argument("attempt", required=False)
@click.option("--pool", default="default", help="The pool that it waits in.")
@click.option("--label", "labels", multiple=True, help=_LABEL_HELP)
@click.option("--home", default=None, metavar="FOLDER", help=_HOME_HELP)
def attempt(run: str | None, attempt: str | None, pool: str, labels: tuple[str, ...], home: str | None) -> Answer:
    """Carry out one attempt, and end: a worker for one piece of work. It waits until there is one."""
    wanted = "/".join(word for word in (run, attempt) if word)

    def is_meant(task: str) -> bool:
        of_run = task.partition("/")[2]
        return not wanted or of_run == wanted or of_run.startswith(f"{wanted}/")

    done = _worker(home, pool, 1, labels).work(is_meant)
    return Answer({"carried_out": done}, [f"{done} carried out"])


@click.command(
    "workers",
    cls=Command,
    examples=[
        ("tenuto workers", "who is there, what waits and what is under way"),
        ("tenuto workers --json", "all of it"),
    ],
)
def workers() -> Answer:
    """Workers and pools, what is under way on which machine, and reports that came too late."""
    from tenuto.cluster.database import Line
    from tenuto.cluster.machines import machines_view

    line = Line(_address())
    try:
        view = machines_view(line)
    finally:
        line.close()
    return Answer(view, _shown(view))


def _shown(view: MachinesView) -> Iterator[Part]:
    for pool in view["pools"]:
        yield f"pool {pool['pool']}: {pool['running']} of {pool['cap']} under way, {pool['queued']} waiting"
    if not view["workers"]:
        yield "no worker has registered yet: tenuto worker"
        return
    heads = ("worker", "pool", "state", "busy", "version", "host")
    yield Table(heads, [_row(one) for one in view["workers"]])
    if view["under_way"]:
        leases = [(one, f"{max(0.0, one['seconds_left']):.0f} s") for one in view["under_way"]]
        rows = [(one["run"], one["attempt"], one["worker"], left) for one, left in leases]
        yield Table(("run", "attempt", "worker", "lease"), rows)
    if view["late"]:
        late = [(one["at"], one["run"], one["attempt"], one["worker"]) for one in view["late"]]
        yield Table(("too late at", "run", "attempt", "worker"), late)


def _row(one: WorkerView) -> tuple[str, ...]:
    return (one["worker"], one["pool"], one["state"], f"{one['busy']}/{one['slots']}", one["software"], one["host"])


def _address() -> str:
    """Of the database, also where the current folder is in no repository."""
    from tenuto.cluster.database import address

    try:
        state = open_here().state
    except TenutoError:
        state = ""
    return address(state)


# ---- the database


@click.group(
    "cluster",
    cls=Group,
    examples=[
        ("tenuto cluster demo", "see it at work on this machine"),
        ("tenuto cluster init postgresql://db/tenuto?sslmode=verify-full", "prepare a database, as its owner"),
        ("tenuto cluster pool big --cap 32", "make a pool, or change one"),
    ],
)
def cluster() -> None:
    """Prepare what machines share: a database with pools, and logins for workers and drivers."""


@cluster.command("demo", cls=Command, examples=[("tenuto cluster demo --remove", "watch it, and keep nothing")])
@click.option("--remove", is_flag=True, help="Remove the project of the demo at the end.")
def demo(remove: bool) -> Answer:
    """A private PostgreSQL, three workers and the demo project; one of everything is killed, and every claim checked.

    It needs the extra `cluster` and the programs of PostgreSQL; no container, no network, no model.
    """
    words = [sys.executable, "-I", "-m", "tenuto.demo_machines", *(["--remove"] if remove else [])]
    return Answer({}, status=subprocess.run(words, check=False).returncode)


@cluster.command(
    "init",
    cls=Command,
    examples=[
        ("tenuto cluster init postgresql:///tenuto", "on this machine"),
        ("tenuto cluster init postgresql:///tenuto --project shop", "and the tables of a project's journal"),
    ],
)
@click.argument("address", required=False)
@click.option("--project", default="", metavar="NAME", help="The tables and roles of this project's journal, too.")
def init(address: str | None, project: str) -> Answer:
    """Make the schema in a database, as its owner, or bring a project's tables up to date.

    What is there already stays as it is.
    """
    from tenuto.cluster import database

    where = address or _address()
    fresh = database.install(where)
    line = "the database is prepared, with one pool: default" if fresh else "the database was prepared before"
    made = _journal_of(where, project) if project else []
    tries = "  try: tenuto cluster login NAME, and on each machine: tenuto worker"
    return Answer({"made": fresh, "journal": made}, [line, *made, tries])


def _journal_of(address: str, project: str) -> list[str]:
    from tenuto.workspace.moving import set_up

    return set_up(open_here(), address, project)


@cluster.command("pool", cls=Command, examples=[("tenuto cluster pool big --cap 32", "32 at a time, on all machines")])
@click.argument("name")
@click.option("--cap", type=click.IntRange(0, 100_000), default=None, help="Attempts at a time, over all workers.")
@click.option("--lease", type=click.IntRange(10, 86_400), default=None, help="Seconds; 120 where nothing is said.")
def pool(name: str, cap: int | None, lease: int | None) -> Answer:
    """Make a pool, or change one. What is under way keeps the lease that it has."""
    from tenuto.cluster import database

    line = database.Line(_address())
    question = """
        INSERT INTO pool (name, cap, lease_seconds) VALUES (%s, coalesce(%s, 16), coalesce(%s, 120))
        ON CONFLICT (name) DO UPDATE SET cap = coalesce(%s, pool.cap), lease_seconds = coalesce(%s, pool.lease_seconds)
        RETURNING name, cap, lease_seconds"""
    made, size, seconds = line.row(question, name, cap, lease, cap, lease)
    line.close()
    data = {"pool": made, "cap": size, "lease_seconds": seconds}
    return Answer(data, [f"pool {name}: {size!s} at a time, leases of {seconds!s} s"])


@cluster.command("login", cls=Command, examples=[("tenuto cluster login worker-7", "a worker's own login")])
@click.argument("name")
@click.option("--driver", is_flag=True, help="For who drives runs, instead of for a worker.")
def login(name: str, driver: bool) -> Answer:
    """Let a login of the database work, or drive. It is made where there is none; its password is yours to set."""
    from tenuto.cluster import database

    role = database.DRIVERS if driver else database.WORKERS
    database.allow(_address(), name, role)
    return Answer({"login": name, "role": role}, [f"{name} may {'drive' if driver else 'work'}"])
