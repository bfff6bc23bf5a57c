"""What may still be spent: attempts, tokens, money and time, by the run and by each of its steps.

    reservation(pipeline, run, step)   what one attempt sets aside before it starts
    shortage(run, step, wanted, ...)   the first limit that it would pass; None: it is admitted
    untouched(run, step, used)         may the same attempt start its program once more?
    time_left(run, step, now)          of the wall clock, in milliseconds; None: no limit
    unmetered(pipeline, limits, ...)   a limit that nobody could hold, because an agent does not report what it uses

Rule 1: an attempt is admitted when what is spent, what is set aside for those under way and what it sets aside
itself fit the limit together. So the limit holds whatever they report, up to what was set aside for them.

Rule 2: an attempt sets aside itself and the figures the pipeline gives (attempt_tokens, attempt_micro_usd). Where a
limit has no such figure: what the dearest attempt of the run has used so far, and at least a twentieth of the limit.

Rule 3: it is charged what it reports. What it does not report, and a lost attempt as a whole, is charged as set aside.

Rule 4: the wall clock runs while at least one attempt is under way: waiting for a person costs nothing. Where it is set
back meanwhile, what the attempt took by its supervisor's measure counts.

Rule 5: an attempt sets aside once, however often its program is started. Where a limit is in what the program used, or
does not tell, it is not started again in the same attempt: the next attempt is admitted like any other.

Nothing is ever given back or reset. The way on is a person who raises the limit.

The worst case of a pipeline, before launch.

    fewest(pipeline, items) -> int            attempts when all goes well
    worst_case(pipeline, items) -> Bound      how many attempts at most, and which step makes them
    explain(bound)              -> lines      the same in words

Rule 1: every retry is used, every route is taken as often as it may be. What is left are additions,
no products: a route ends with the step that took it, and goes on with what waited behind, so taking
it costs its legs and nothing else. Routes inside its legs have counters of their own.
Rule 2: a counter that a restart resets can be used up once more for each restart.
Rule 3: a leg may leave its route by a go_on. What then runs between is added if it is not a leg anyway.
Rule 4: each plan names at most `items` items, a list of `each` at most its `max`, and where it is a parameter that is
known, as many as that has. A person's decisions (a gate's revise, a retry after a
pause) begin a new account: the bound holds until the run ends or waits for a person.
Rule 5: attempts and starts are counted apart. An agent that is seldom tried again may be the one that is
restarted most, so the way with the most attempts need not be the way with the most starts.

The bound is sound for every pipeline that `check` accepts: no run can exceed it. For the shipped ones
a run exists that reaches it.

When an agent may not work: until when, and whether somebody else may instead.

    parked_agents(run, now)   agents that reached a limit which has not ended yet, with the time it ends
    later(now)                until when to wait for a limit that does not say when it ends

Rule 1: a usage limit that says when it ends parks the attempt: no try is used up, and nothing is started with that
agent before then.

Rule 2: a limit that does not say may pass by itself, so the attempt starts its program again, as often as its seat
allows; after that it waits for a few minutes like any other limit. Agents that would be turned away are not started
one after another.

Rule 3: where the settings name another agent for it, that one takes over and the run goes on. Otherwise the run waits.
"""

from __future__ import annotations

from tenuto.core.pipeline.check import jumps, outcomes, routes
from tenuto.core.pipeline.conditions import decided
from tenuto.core.pipeline.each import length
from tenuto.core.times import between, iso, milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from tenuto.core.pipeline.records import (
        Bound,
        Budget,
        Contribution,
        Leg,
        Pipeline,
        Route,
        Seat,
        Step,
        Visits,
        Waves,
    )
    from tenuto.core.records.action import Shortage, Unmetered
    from tenuto.core.records.run import Account, Amounts, Limits, ParamValue, Run, Unit

    Way = tuple[int, tuple[tuple[str, int], ...]]  # the sum, and each visit


UNITS: tuple[Unit, ...] = ("attempts", "tokens", "micro_usd", "wall_clock")
_REPORTED = ("tokens", "micro_usd")  # what agents report; attempts and time are counted here
_SHARE = 20


def reservation(pipeline: Pipeline, run: Run, step: Step) -> Amounts:
    amounts: Amounts = {"attempts": 1}
    own, whole = step["budget"], pipeline["budget"]
    tokens = own["attempt_tokens"] or whole["attempt_tokens"] or _usual(run, step["id"], "tokens")
    money = own["attempt_micro_usd"] or whole["attempt_micro_usd"] or _usual(run, step["id"], "micro_usd")
    if tokens:
        amounts["tokens"] = tokens
    if money:
        amounts["micro_usd"] = money
    return amounts


def _usual(run: Run, step: str, unit: str) -> float:
    limits = [account["limits"].get(unit) for _, account in _accounts(run, step)]
    shares = [max(1, limit // _SHARE) for limit in limits if limit is not None]
    return max([run["budget"]["dearest"].get(unit, 0), *shares]) if shares else 0


def shortage(
    run: Run, step: str, wanted: Mapping[str, float], more: Mapping[str, float] | None = None
) -> Shortage | None:
    """`more`: what the same answer has promised already."""
    for name, account in _accounts(run, step):
        for unit, limit in account["limits"].items():
            if limit is None or unit == "wall_clock":
                continue
            held = account["spent"].get(unit, 0) + account["reserved"].get(unit, 0) + (more or {}).get(unit, 0)
            if held + wanted.get(unit, 0) > limit:
                return {"unit": unit, "step": name, "limit": limit, "held": held, "wanted": wanted.get(unit, 0)}
    return None


def untouched(run: Run, step: str, used: Mapping[str, object]) -> bool:
    """Is all that an attempt of this step set aside still there, as far as there are limits?"""
    return all(
        used.get(unit) == 0
        for _, account in _accounts(run, step)
        for unit, limit in account["limits"].items()
        if limit is not None and unit in _REPORTED
    )


def time_left(run: Run, step: str, now: str) -> int | None:
    left: int | None = None
    for _, account in _accounts(run, step):
        limit = account["limits"].get("wall_clock")
        if limit is not None:
            rest = limit * 1000 - _busy(run, account, now)
            left = rest if left is None else min(left, rest)
    return left


def _busy(run: Run, account: Account, now: str) -> int:
    since = run["budget"]["busy_since"]
    return account["busy_ms"] + (between(since, now) if since else 0)


def time_is_up(run: Run, step: str, now: str) -> Shortage | None:
    """The shortage of time; None while there is some left."""
    for name, account in _accounts(run, step):
        limit = account["limits"].get("wall_clock")
        if limit is not None:
            held = _busy(run, account, now) // 1000
            if held >= limit:
                return {"unit": "wall_clock", "step": name, "limit": limit, "held": held, "wanted": 0}
    return None


def _accounts(run: Run, step: str) -> list[tuple[str, Account]]:
    budget = run["budget"]
    own = budget["steps"].get(step)
    return [("", budget), (step, own)] if own is not None else [("", budget)]


def in_words(short: Shortage) -> str:
    """Why nothing more is admitted."""
    who = f"step {short['step']}" if short["step"] else "the run"
    noun = "seconds" if short["unit"] == "wall_clock" else short["unit"]
    more = f", and the next attempt needs {short['wanted']}" if short["wanted"] else ""
    return f"{who} may use {short['limit']} {noun}: {short['held']} are used or promised{more}"


def money(micro_usd: float) -> str:
    dollars = micro_usd / 1_000_000
    return f"${dollars:,.2f}" if dollars >= 0.01 or not dollars else f"${dollars:.4f}"


def limit_name(short: Shortage) -> str:
    """As it is given on the command line: attempts, or attempts@design."""
    return f"{short['unit']}@{short['step']}" if short["step"] else short["unit"]


def limits_of(pipeline: Pipeline) -> tuple[Limits, dict[str, Limits]]:
    """The pipeline's own limits: of the run, and of its steps."""
    return _limits(pipeline["budget"]), {
        step["id"]: limits for step in pipeline["steps"] if (limits := _limits(step["budget"]))
    }


def _limits(budget: Budget) -> Limits:
    return {unit: budget[unit] for unit in UNITS if budget[unit] is not None}


def unmetered(
    pipeline: Pipeline,
    limits: Mapping[str, int | None],
    of_steps: Mapping[str, Mapping[str, int | None]],
    reports: Callable[[Seat], Collection[str]],
) -> Unmetered | None:
    """The first seat whose agent does not report a unit that a limit is in."""
    from tenuto.core.pipeline.check import seats

    for step in pipeline["steps"]:
        for unit in _REPORTED:
            limit = of_steps.get(step["id"], {}).get(unit, limits.get(unit))
            if limit is None:
                continue
            for seat in seats(step):
                if unit not in reports(seat):
                    return {"unit": unit, "limit": limit, "step": step["id"], "seat": seat}
    return None


ON_THE_WAY = "on the way"
_NOWHERE: Way = (0, ())


def worst_case(
    pipeline: Pipeline,
    items: int,
    losses: bool = False,
    switches: Mapping[str, bool] | None = None,
    params: Mapping[str, ParamValue] | None = None,
) -> Bound:
    """`losses`: attempts whose outcome is never known are counted too. `switches`, `params`: as the run sets them.
    A step counts unless they say that it is left out."""
    attempts = _Account(pipeline, items, losses, switches, params, starts=False)
    starts = _Account(pipeline, items, losses, switches, params, starts=True)
    visits: dict[str, dict[str, Visits]] = {step["id"]: {} for step in pipeline["steps"]}

    def enter(because: str, tried: Way, started: Way, times: int) -> None:
        for step, number in tried[1]:
            if number and times:
                _visits(visits[step], because, times)["attempts"] += number
        for step, number in started[1]:
            if number and times:
                _visits(visits[step], because, times)["starts"] += number

    enter(ON_THE_WAY, attempts.main_line(), starts.main_line(), 1)
    used = {counter: attempts.times(counter) for counter in attempts.counters}
    for counter, times in used.items():
        enter(counter, attempts.dearest(counter), starts.dearest(counter), times)
    lines = [_contribution(step, list(found.values())) for step, found in visits.items() if found]
    return {
        "items": items,
        "attempts": sum(line["attempts"] for line in lines),
        "starts": sum(line["starts"] for line in lines),
        "steps": lines,
        "routes": used,
    }


def fewest(pipeline: Pipeline, items: int) -> int:
    """Attempts when all goes well: every step on the way once, every agent once."""
    number = 0
    for step in pipeline["steps"]:
        if step["aside"] or decided(step["when"], pipeline["switches"]) is False:
            continue
        if step["kind"] == "agent":
            number += 1
        elif step["kind"] == "cluster":
            several = [step["cluster"]["first"], *step["cluster"]["members"], step["aggregate"]]
            number += sum(1 for seat in several if seat is not None)
        elif step["kind"] == "waves":
            each = step["waves"]["each"]
            number += 1 if each and each["seat"] else 0
            most = min(items, length(each, None)) if each else items
            number += most * (1 if step["waves"]["per_item"] == "named" else len(step["waves"]["seats"]))
    return number


def _visits(found: dict[str, Visits], because: str, times: int) -> Visits:
    return found.setdefault(because, {"because": because, "times": times, "attempts": 0, "starts": 0})


def explain(bound: Bound) -> list[str]:
    lines = [f"at most {bound['attempts']} attempts ({bound['starts']} starts) for {bound['items']} items"]
    for step in bound["steps"]:
        lines.append(f"  {step['step']}: {step['attempts']} attempts")
        for visit in step["visits"]:
            lines.append(f"    {visit['because']}: {visit['times']} x {visit['attempts']}")
    return lines


def attempts_of(seat: Seat, losses: bool = False) -> int:
    """Per visit."""
    retry = seat["retry"]
    return 1 + retry["ERROR"] + retry["NEEDS_REVISION"] + seat["questions"] + (retry["LOST"] if losses else 0)


def _contribution(step: str, lines: list[Visits]) -> Contribution:
    return {
        "step": step,
        "visits": lines,
        "attempts": sum(line["times"] * line["attempts"] for line in lines),
        "starts": sum(line["times"] * line["starts"] for line in lines),
    }


class _Account:
    def __init__(
        self,
        pipeline: Pipeline,
        items: int,
        losses: bool,
        switches: Mapping[str, bool] | None,
        params: Mapping[str, ParamValue] | None,
        starts: bool,
    ) -> None:
        self.items = items
        self.losses = losses
        self.starts = starts  # count these; else attempts
        self.steps = {step["id"]: step for step in pipeline["steps"]}
        self.order = {step["id"]: index for index, step in enumerate(pipeline["steps"])}
        self.first = pipeline["steps"][0]["id"]
        self.switches = switches
        self.params = params
        self.counters = self.share()

    def runs(self, step: Step) -> bool:
        return decided(step["when"], self.switches, self.params) is not False

    # ---- one visit ---------------------------------------------------------------------------------

    def visit(self, step: Step, leg: Leg | None = None) -> int:
        if not self.runs(step):
            return 0
        if step["kind"] == "agent":
            return self.cost([step["modes"][leg["mode"]] if leg and leg["mode"] else step["agent"]])
        if step["kind"] == "cluster":
            first = [step["cluster"]["first"]] if step["cluster"]["first"] else []
            members = [*first, *step["cluster"]["members"]]
            asked = [seat for seat in members if decided(seat["when"], self.switches, self.params) is not False]
            wanted = [seat for seat in asked if not leg or not leg["only"] or seat["id"] in leg["only"]]
            return self.cost([*wanted, *([step["aggregate"]] if step["aggregate"] else [])])
        if step["kind"] == "waves":
            return self.waves(step["waves"])
        return 0

    def waves(self, waves: Waves) -> int:
        """Each item once, with the dearest of its seats, or with all of them. A list has its own bound, and may have
        somebody who prints it."""
        seats, each = waves["seats"], waves["each"]
        one = self.cost(seats) if waves["per_item"] != "named" else max(self.cost([seat]) for seat in seats)
        if each is not None:
            return one * length(each, self.params) + (self.cost([each["seat"]]) if each["seat"] else 0)
        return one * (max(self.items, 1) if waves["no_items"] == "one" else self.items)

    def cost(self, seats: list[Seat]) -> int:
        return sum(attempts_of(seat, self.losses) * (1 + seat["transient"] if self.starts else 1) for seat in seats)

    # ---- ways --------------------------------------------------------------------------------------

    def main_line(self) -> Way:
        """The dearest way from the first step to the end without any route. go_on leads forward only."""
        best: dict[str, Way] = {}
        for name in reversed(self.order):
            step = self.steps[name]
            onward = [best[outcome["to"]] for outcome in outcomes(step) if outcome["do"] == "go_on"]
            best[name] = self.join(name, self.visit(step), max(onward, key=lambda way: way[0], default=_NOWHERE))
        return best[self.first]

    def join(self, step: str, cost: int, rest: Way) -> Way:
        return (cost + rest[0], ((step, cost), *rest[1]))

    def dearest(self, counter: str) -> Way:
        return max((self.episode(route) for route in self.counters[counter]), key=lambda way: way[0])

    def episode(self, route: Route) -> Way:
        """The dearest way along a route's legs, from the last one backwards."""
        legs = route["route"]
        best: list[Way] = [_NOWHERE] * (len(legs) + 1)
        known: dict[tuple[str, int], Way] = {}
        for index, leg in reversed(list(enumerate(legs))):
            step = self.steps[leg["step"]]
            onward = [best[index + 1]]
            if index < len(legs) - 1:
                onward += [self.leave(jump["to"], legs, index + 1, best, known) for jump in jumps(step)]
            best[index] = self.join(leg["step"], self.visit(step, leg), max(onward, key=lambda way: way[0]))
        return best[0]

    def leave(self, to: str, legs: list[Leg], index: int, best: list[Way], known: dict[tuple[str, int], Way]) -> Way:
        """A go_on out of a leg: the legs before its target are dropped, the target runs, then the rest."""
        while index < len(legs) and self.order[legs[index]["step"]] < self.order[to]:
            index += 1
        if index < len(legs) and legs[index]["step"] == to:
            return best[index]
        if (to, index) not in known:
            further = [self.leave(jump["to"], legs, index, best, known) for jump in jumps(self.steps[to])]
            onward = max([best[index], *further], key=lambda way: way[0])
            known[to, index] = self.join(to, self.visit(self.steps[to]), onward)
        return known[to, index]

    # ---- counters ----------------------------------------------------------------------------------

    def share(self) -> dict[str, list[Route]]:
        """Bounded counters of steps that run, each with the routes that share it."""
        found: dict[str, list[Route]] = {}
        for step in self.steps.values():
            if self.runs(step):
                for route in routes(step):
                    if route["at_most"] is not None:
                        found.setdefault(route["counter"], []).append(route)
        return found

    def times(self, counter: str) -> int:
        """How often a counter can be used up in all: once, and once more for every reset."""
        resetting = [other for other, those in self.counters.items() if any(counter in one["resets"] for one in those)]
        return (self.counters[counter][0]["at_most"] or 0) * (1 + sum(self.times(other) for other in resetting))


_A_WHILE = 300_000  # milliseconds


def parked_agents(run: Run, now: str) -> dict[str, str]:
    at, found = milliseconds(now) or 0, {}
    for attempt in run["attempts"].values():
        until = attempt["extra"].get("parked_until", "") if attempt["verdict"] == "PARKED" else ""
        if (milliseconds(until) or 0) > at:
            found[attempt["agent"]] = until
    return found


def later(now: str) -> str:
    return iso((milliseconds(now) or 0) + _A_WHILE)
