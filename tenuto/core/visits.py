"""What is ready, what has settled, in the stay a run is in. Pure questions; todo() and the deciders ask them.

A seat is settled when its last result is DONE or no attempt is left for that kind of result: retries are
counted per kind (ERROR, NEEDS_REVISION, LOST, QUESTION), as the seat says. A verdict that the seat may
not give is an ERROR. An attempt whose outcome nobody knows, with no LOST left, is an ERROR too, and is made again as one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tenuto.core.pipeline_records import Pipeline, Seat, Step
    from tenuto.core.records import Run, SeatState, Stay

    Place = tuple[str, Seat, str | None]  # key in the stay, the seat, the item


_seen_at: dict[str, int] = {}  # where a step of this name stood when it was last looked for: a hint, never an answer


def step_of(pipeline: Pipeline, name: str) -> Step:
    steps = pipeline["steps"]
    place = _seen_at.get(name, 0)
    if place < len(steps) and steps[place]["id"] == name:
        return steps[place]
    for place, step in enumerate(steps):
        if step["id"] == name:
            _seen_at[name] = place
            return step
    raise KeyError(name)


def key_for(seat: Seat, item: str | None) -> str:
    return seat["id"] if item is None else f"{seat['id']}@{item}"


def result_of(seat: Seat, result: str) -> str:
    if result in ("LOST", "QUESTION"):
        return result
    return result if result in seat["verdicts"] else "ERROR"


def attempts_left(seat: Seat, state: SeatState | None) -> bool:
    """May this seat be taken (again)? Not while an attempt is in flight."""
    if state is None or not state["results"]:
        return state is None or state["open"] is None
    if state["open"] is not None:
        return False
    results = [result_of(seat, result) for result in state["results"]]
    last, retry = results[-1], seat["retry"]
    if last == "DONE":
        return False
    if last == "QUESTION":
        return results.count(last) <= seat["questions"]
    if last == "NEEDS_REVISION":
        return results.count(last) <= retry["NEEDS_REVISION"]
    beyond = results.count("LOST") - retry["LOST"]
    if last == "LOST" and beyond <= 0:
        return True
    return results.count("ERROR") + max(beyond, 0) <= retry["ERROR"]


def lost_its_tries(seat: Seat, state: SeatState | None) -> bool:
    """Has it failed only because attempts of it were lost? Its errors alone would have left it another try."""
    results = [result_of(seat, result) for result in state["results"]] if state else []
    return word_of(seat, state) == "ERROR" and "LOST" in results and results.count("ERROR") <= seat["retry"]["ERROR"]


def unfinished(run: Run, attempt: str) -> str:
    """This attempt, where the next one of its seat goes on with it: nobody knows its end, it was set aside, or it asked something.
    Any other end is one that the next attempt starts over from."""
    found = run["attempts"].get(attempt)
    if found is None:
        return ""
    return attempt if found["status"] == "lost" or found["verdict"] in ("PARKED", "QUESTION") else ""


def settled(seat: Seat, state: SeatState | None) -> bool:
    return state is not None and state["open"] is None and bool(state["results"]) and not attempts_left(seat, state)


def word_of(seat: Seat, state: SeatState | None) -> str | None:
    """The last verdict of a seat; None where it never answered."""
    if state is None or not state["results"]:
        return None
    last = result_of(seat, state["results"][-1])
    return "ERROR" if last in ("LOST", "QUESTION") else last


def ready(pipeline: Pipeline, run: Run, step: Step, stay: Stay, most: int) -> list[Place]:
    """The places that may be taken now, in order. Of a thousand items only as many are looked at as `most` asks for."""
    if step["kind"] == "agent":
        return _open_places([(agent_seat(step, stay), None)], stay)
    if step["kind"] == "cluster":
        return _open_places([(seat, None) for seat in _cluster_turn(step, stay)], stay)
    if step["kind"] == "waves":
        return _wave_places(step, run, stay, most)
    return []


def agent_seat(step: Any, stay: Stay) -> Seat:
    mode = stay["hop"].get("mode", "")
    return step["modes"][mode] if mode else step["agent"]  # type: ignore[no-any-return]


def seat_at(step: Any, stay: Stay, key: str) -> Seat:
    """The seat of this key in the stay."""
    if step["kind"] == "agent":
        return agent_seat(step, stay)
    name = key.partition("@")[0]
    every = step["waves"]["seats"] if step["kind"] == "waves" else [*members_of(step), *([step["aggregate"]] if step["aggregate"] else [])]
    return next(seat for seat in every if seat["id"] == name)  # type: ignore[no-any-return]


def _open_places(seats: list[tuple[Seat, str | None]], stay: Stay) -> list[Place]:
    places = [(key_for(seat, item), seat, item) for seat, item in seats]
    return [place for place in places if attempts_left(place[1], stay["seats"].get(place[0]))]


# ---- clusters --------------------------------------------------------------------------------------


def members_of(step: Any) -> list[Seat]:
    first = step["cluster"]["first"]
    return [*([first] if first else []), *step["cluster"]["members"]]


def outputs_of(step: Any, stay: Stay) -> int:
    """Members that delivered: anything but an ERROR."""
    words = [word_of(seat, stay["seats"].get(seat["id"])) for seat in members_of(step)]
    return sum(1 for word in words if word in ("DONE", "NEEDS_REVISION"))


def _cluster_turn(step: Any, stay: Stay) -> list[Seat]:
    """Whose turn it is: the first alone, then the members, then the aggregator."""
    only, first = stay["hop"].get("only", []), step["cluster"]["first"]
    if first and (not only or first["id"] in only) and not settled(first, stay["seats"].get(first["id"])):
        return [first]
    skip = first is not None and word_of(first, stay["seats"].get(first["id"])) == "ERROR"
    members = [] if skip else [m for m in step["cluster"]["members"] if not only or m["id"] in only]
    if not all(settled(member, stay["seats"].get(member["id"])) for member in members):
        return members
    if step["aggregate"] is None or outputs_of(step, stay) < step["cluster"]["quorum"]:
        return []
    return [step["aggregate"]]


# ---- waves -----------------------------------------------------------------------------------------


def seats_for(step: Any, item: Any) -> list[Seat]:
    """The seats that work on an item, in the order they take turns."""
    seats: list[Seat] = step["waves"]["seats"]
    if step["waves"]["per_item"] != "named":
        return seats
    if not item["agent"]:
        return [seat for seat in seats if seat["id"] == step["waves"]["default"]]
    from tenuto.core.selection import agent_for

    asked: Any = {"id": "", "agent": item["agent"]}
    name, _ = agent_for(asked, [seat["id"] for seat in seats], step["waves"]["default"])
    return [seat for seat in seats if seat["id"] == name]


def _wave_places(step: Any, run: Run, stay: Stay, most: int) -> list[Place]:
    """Started items first (their next seat), then items that may start."""
    room = step["waves"]["at_once"] or len(stay["left"])
    started = len(stay["busy"])
    places: list[Place] = []
    for item in stay["busy"]:
        places += _item_places(step, run, stay, item)
    for item in _startable(step, run, stay):
        if started >= room or len(places) >= most:
            break
        started += 1
        places += _item_places(step, run, stay, item)
    return places


def _item_places(step: Any, run: Run, stay: Stay, item: str) -> list[Place]:
    seats = seats_for(step, run["items"][item])
    if step["waves"]["per_item"] == "in-turn":
        for seat in seats:
            if not settled(seat, stay["seats"].get(key_for(seat, item))):
                return _open_places([(seat, item)], stay)
        return []
    return _open_places([(seat, item) for seat in seats], stay)


def _startable(step: Any, run: Run, stay: Stay) -> Iterator[str]:
    """Under the barrier: the rest of the current sub-wave. Rolling: whatever its dependencies let start."""
    left, busy = stay["left"], stay["busy"]
    if not left:
        return
    if step["waves"]["order"] == "rolling":
        items = run["items"]
        for item in left:
            if item not in busy and all(_allows(run, stay, before) for before in items[item]["depends_on"]):
                yield item
        return
    current, wave = stay["group_of"][left[0]], stay["wave_of"][left[0]]
    if step["waves"]["on_item_error"] == "stop" and any(stay["wave_of"][one] < wave for one in stay["stopped_by"]):
        return
    for item in left:
        if item not in busy and stay["group_of"][item] == current:
            yield item


def _allows(run: Run, stay: Stay, before: str) -> bool:
    known = run["items"].get(before)
    if known is None or known["status"] == "completed":
        return True
    return known["status"] == "failed" and before not in stay["stopped_by"]


def item_word(
    step: Any, run: Run, stay: Stay, item: str, but: tuple[str, SeatState] | None = None
) -> str | None:  # fmt: skip
    """The worst last word of the item's seats; None while one of them has not settled. `but`: with this seat as given."""
    from tenuto.core.rules import worse

    words: list[str | None] = []
    for seat in seats_for(step, run["items"][item]):
        key = key_for(seat, item)
        state = but[1] if but is not None and but[0] == key else stay["seats"].get(key)
        if not settled(seat, state):
            return None
        words.append(word_of(seat, state))
        if words[-1] != "DONE" and step["waves"]["per_item"] == "in-turn":
            break  # those behind it never start
    return worse(*words)
