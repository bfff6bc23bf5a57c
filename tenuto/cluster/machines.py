"""What there is to see of many machines: workers, pools, what is under way, what came too late. Data; who prints it is
elsewhere. A driver's login may look, a worker's may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

if TYPE_CHECKING:
    from tenuto.cluster.database import Line

_SILENT = 60.0  # seconds without a word, after which a worker is said to be silent


class WorkerView(TypedDict):
    worker: str
    pool: str
    state: str  # at work, draining, silent, gone
    busy: int
    slots: int
    labels: list[str]
    software: str
    protocol: int
    host: str
    login: str
    seen_seconds_ago: float


class PoolView(TypedDict):
    pool: str
    cap: int
    queued: int
    running: int
    lease_seconds: float


class UnderWay(TypedDict):
    run: str
    attempt: str
    pool: str
    worker: str
    epoch: int
    seconds_left: float  # of its lease


class Late(TypedDict):
    run: str
    attempt: str
    worker: str
    login: str
    epoch: int
    at: str


class MachinesView(TypedDict):
    pools: list[PoolView]
    workers: list[WorkerView]
    under_way: list[UnderWay]
    late: list[Late]


def machines_view(line: Line, late: int = 20) -> MachinesView:
    return {"pools": _pools(line), "workers": _workers(line), "under_way": _under_way(line), "late": _late(line, late)}


def _pools(line: Line) -> list[PoolView]:
    question = """
        SELECT w.pool, w.cap, w.queued, w.running, p.lease_seconds FROM waiting w JOIN pool p ON p.name = w.pool
        ORDER BY w.pool"""
    names = ("pool", "cap", "queued", "running", "lease_seconds")
    return [cast(PoolView, dict(zip(names, row, strict=True))) for row in line.rows(question)]


def _workers(line: Line) -> list[WorkerView]:
    question = """
        SELECT w.id, w.pool,
               CASE WHEN w.gone THEN 'gone' WHEN w.seen < clock_timestamp() - make_interval(secs => %s) THEN 'silent'
                    WHEN w.draining THEN 'draining' ELSE 'at work' END,
               (SELECT count(*) FROM lease l WHERE l.worker = w.id), w.slots, w.labels, w.software, w.protocol, w.host,
               w.login, extract(epoch FROM clock_timestamp() - w.seen)::double precision
        FROM worker w WHERE NOT w.gone OR w.seen > clock_timestamp() - interval '1 day'
        ORDER BY w.gone, w.pool, w.id"""
    names = WorkerView.__annotations__
    return [cast(WorkerView, dict(zip(names, row, strict=True))) for row in line.rows(question, _SILENT)]


def _under_way(line: Line) -> list[UnderWay]:
    question = """
        SELECT t.run, t.attempt, t.pool, l.worker, l.epoch,
               extract(epoch FROM l.until - clock_timestamp())::double precision
        FROM lease l JOIN task t ON t.id = l.task ORDER BY l.began"""
    names = UnderWay.__annotations__
    return [cast(UnderWay, dict(zip(names, row, strict=True))) for row in line.rows(question)]


def _late(line: Line, at_most: int) -> list[Late]:
    question = """
        SELECT coalesce(t.run, ''), coalesce(t.attempt, l.task), l.worker, l.login, l.epoch,
               to_char(l.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        FROM late l LEFT JOIN task t ON t.id = l.task ORDER BY l.number DESC LIMIT %s"""
    names = Late.__annotations__
    return [cast(Late, dict(zip(names, row, strict=True))) for row in line.rows(question, at_most)]
