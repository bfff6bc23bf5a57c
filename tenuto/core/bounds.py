"""The worst case of a pipeline, before launch.

    worst_case(pipeline, items) -> Bound      how many attempts at most, and which step makes them
    explain(bound)              -> lines      the same in words

Rule 1: every retry is used, every route is taken as often as it may be. What is left are additions,
no products: a route ends with the step that took it, and goes on with what waited behind, so taking
it costs its hops and nothing else. Routes inside its hops have counters of their own.
Rule 2: a counter that a restart resets can be used up once more for each restart.
Rule 3: a hop may leave its route by a go_on. What then runs between is added if it is not a hop anyway.
Rule 4: each plan names at most `items` items. A person's decisions (a gate's revise, a retry after a
pause) begin a new account: the bound holds until the run ends or waits for a person.
Rule 5: attempts and starts are counted apart. An agent that is seldom tried again may be the one that is
restarted most, so the way with the most attempts need not be the way with the most starts.

The bound is sound for every pipeline that `check` accepts: no run can exceed it. For the shipped ones
a run exists that reaches it.
"""

from __future__ import annotations

from tenuto.core.definition.graph import jumps, outcomes, routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenuto.core.pipeline_records import Bound, Contribution, Hop, Pipeline, Route, Seat, Step, Visits

    Way = tuple[int, tuple[tuple[str, int], ...]]  # the sum, and each visit

ON_THE_WAY = "on the way"
_NOWHERE: Way = (0, ())


def worst_case(
    pipeline: Pipeline, items: int, losses: bool = False, switches: Mapping[str, bool] | None = None
) -> Bound:
    """`losses`: attempts whose outcome is never known are counted too. `switches`: as the run sets them; all on if left out."""
    attempts = _Account(pipeline, items, losses, switches, starts=False)
    starts = _Account(pipeline, items, losses, switches, starts=True)
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
        self, pipeline: Pipeline, items: int, losses: bool, switches: Mapping[str, bool] | None, starts: bool
    ) -> None:  # fmt: skip
        self.items = items
        self.losses = losses
        self.starts = starts  # count these; else attempts
        self.steps = {step["id"]: step for step in pipeline["steps"]}
        self.order = {step["id"]: index for index, step in enumerate(pipeline["steps"])}
        self.first = pipeline["steps"][0]["id"]
        self.switches = switches
        self.counters = self.share()

    def runs(self, step: Step) -> bool:
        return step["when"] == "always" or self.switches is None or bool(self.switches.get(step["when"]))

    # ---- one visit ---------------------------------------------------------------------------------

    def visit(self, step: Step, hop: Hop | None = None) -> int:
        if not self.runs(step):
            return 0
        if step["kind"] == "agent":
            return self.cost([step["modes"][hop["mode"]] if hop and hop["mode"] else step["agent"]])
        if step["kind"] == "cluster":
            first = [step["cluster"]["first"]] if step["cluster"]["first"] else []
            members = [*first, *step["cluster"]["members"]]
            wanted = [seat for seat in members if not hop or not hop["only"] or seat["id"] in hop["only"]]
            return self.cost([*wanted, *([step["aggregate"]] if step["aggregate"] else [])])
        if step["kind"] == "waves":
            return self.waves(step["waves"]["seats"], step["waves"]["per_item"], step["waves"]["no_items"])
        return 0

    def waves(self, seats: list[Seat], per_item: str, no_items: str) -> int:
        """Each item once, with the dearest of its seats, or with all of them."""
        each = self.cost(seats) if per_item != "named" else max(self.cost([seat]) for seat in seats)
        number = max(self.items, 1) if no_items == "one" else self.items
        return each * number

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
        """The dearest way along a route's hops, from the last one backwards."""
        hops = route["route"]
        best: list[Way] = [_NOWHERE] * (len(hops) + 1)
        known: dict[tuple[str, int], Way] = {}
        for index, hop in reversed(list(enumerate(hops))):
            step = self.steps[hop["step"]]
            onward = [best[index + 1]]
            if index < len(hops) - 1:
                onward += [self.leave(jump["to"], hops, index + 1, best, known) for jump in jumps(step)]
            best[index] = self.join(hop["step"], self.visit(step, hop), max(onward, key=lambda way: way[0]))
        return best[0]

    def leave(self, to: str, hops: list[Hop], index: int, best: list[Way], known: dict[tuple[str, int], Way]) -> Way:
        """A go_on out of a hop: the hops before its target are dropped, the target runs, then the rest."""
        while index < len(hops) and self.order[hops[index]["step"]] < self.order[to]:
            index += 1
        if index < len(hops) and hops[index]["step"] == to:
            return best[index]
        if (to, index) not in known:
            further = [self.leave(jump["to"], hops, index, best, known) for jump in jumps(self.steps[to])]
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
