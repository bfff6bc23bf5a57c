"""plan.md and tasks/*.md -> items, with their waves and dependencies resolved, and what was read from which line.

    explain_plan(text, item_files)

The other modules of this folder say what stands where (sections, fields, mentions, data) and which mentions are one
item (merge). Here the places of a plan are compared: waves are numbered from 1, dependencies become ids, and every
difference between two places, every hole and every doubt becomes a warning. The rules are in the folder's docstring.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypedDict

from tenuto.core.items import PlanRefused, arrange, directory, names_in, shared_files
from tenuto.knowledge.markdown import find_code
from tenuto.knowledge.plans.data import digest_of, read_block, read_records
from tenuto.knowledge.plans.mentions import ID, Dependency, Mention, amount_in, role_of_label, split_id
from tenuto.knowledge.plans.merge import (
    Group,
    Resolved,
    group_mentions,
    items_of,
    key_of,
    names_of,
    parts,
    resolve,
    united,
    without_parents,
)
from tenuto.knowledge.plans.sections import Arrows, PlanText, Trace, WaveNote, read_item_file, read_text

if TYPE_CHECKING:
    from tenuto.core.items import Directory
    from tenuto.core.records.run import PlannedItem
    from tenuto.knowledge.plans.data import BlockItem


class PlanWarning(TypedDict):
    code: str
    message: str
    items: list[str]


class Plan(TypedDict):
    items: list[PlannedItem]
    warnings: list[PlanWarning]


class PlanLine(TypedDict):
    """One line of the plan, or of an item's file, and what it was taken for."""

    file: str  # "" for the plan itself
    line: int
    text: str
    read: list[str]
    ignored: str  # why nothing was read; "" where something was


class Explained(TypedDict):
    plan: Plan
    lines: list[PlanLine]


def explain_plan(text: str, item_files: Mapping[str, str] | None = None, name: str = "plan.md") -> Explained:
    """`item_files`: file name -> text. `name`: what problems call the plan."""
    files = {file: body for file, body in (item_files or {}).items() if _is_item_file(file)}
    block = read_block(text, files, name)
    if block is not None:
        return _from_block(block, text, files)
    return _Reading(text, files).result()


def _is_item_file(name: str) -> bool:
    file = name.rsplit("/", 1)[-1]
    return file.endswith(".md") and not re.match(r"(?i)(?:readme|index|template|overview|plan)\b|[._]", file)


def _from_block(block: list[BlockItem], text: str, files: Mapping[str, str]) -> Explained:
    warnings: list[PlanWarning] = []
    items = [one.item for one in block]
    bodies = {file.rsplit("/", 1)[-1]: body for file, body in files.items()}
    for item in items:
        item["digest"] = digest_of(item, bodies.get(item.get("source", ""), ""))
    for file in sorted(files):
        if not any(item.get("source") == file.rsplit("/", 1)[-1] for item in items):
            _warn(warnings, "not-in-plan", f"{file} is not listed in the plan; it is not run")
    _note_shared_files(items, warnings)
    facts: dict[tuple[str, int], list[str]] = {}
    for one in block:
        facts.setdefault(("", one.line), []).append(f"item {one.item['id']}")
        for field, line in one.places.items():
            if field != "id":
                facts.setdefault(("", line), []).append(f"{field} of {one.item['id']}")
    return {"plan": {"items": items, "warnings": warnings}, "lines": _lines(text, facts, {}, {})}


def _warn(warnings: list[PlanWarning], code: str, message: str, *items: str) -> None:
    warnings.append({"code": code, "message": message, "items": list(items)})


def _note_shared_files(items: list[PlannedItem], warnings: list[PlanWarning]) -> None:
    try:
        waves = arrange(items)["waves"]
    except PlanRefused:
        return  # said where the plan is used, with all names
    for file, names in shared_files(waves, items):
        _warn(warnings, "shared-file", f"{' and '.join(names)} run side by side and both change {file}", *names)


class _Reading:
    """One plan in running text, from its mentions to its items."""

    def __init__(self, text: str, files: Mapping[str, str]) -> None:
        self.text, self.files = text, files
        self.found: PlanText = read_text(text)
        self.warnings: list[PlanWarning] = []
        self.file_traces: dict[str, list[Trace]] = {}
        self.amounts: dict[int, str] = {}  # line -> what on it is an amount
        self.unread: dict[int, str] = {}  # line -> why it was not understood
        self.edges: dict[int, list[str]] = {}  # line -> what it says about the order
        own = [self._file_mention(name) for name in sorted(files)]
        groups = self._groups(own)
        self.groups, self.parents = without_parents(groups)
        self.items = items_of(self.groups)
        self.names = names_of(self.items, self.groups)
        self.listing = directory(self.items)  # by the ids alone
        self.order = [item["id"] for item in self.items]
        self.written = {mention.id for group in self.groups for mention in group}
        self.by_id = {item["id"]: item for item in self.items}
        self.places = {name: at for at, name in reversed(list(enumerate(self.order)))}
        self.sections: dict[str, list[str]] = {}
        self._set_waves()
        self._set_parents()
        self._leave_out_amounts()
        self._set_dependencies()
        self._set_arrows()
        self._note_names_alone()
        self._add_files()
        self._note_sources()
        self._drop()
        for item, group in self._pairs():
            item["digest"] = digest_of(item, "".join(mention.text for mention in group))
        _note_shared_files(self.kept, self.warnings)
        if not self.kept:
            self.warn("no-items", "no item was found in the plan")

    def warn(self, code: str, message: str, *items: str) -> None:
        _warn(self.warnings, code, message, *items)

    def _pairs(self) -> Iterable[tuple[PlannedItem, Group]]:
        return zip(self.items, self.groups, strict=True)

    # ---- which items there are

    def _file_mention(self, name: str) -> Mention:
        mention, trace = read_item_file(name, self.files[name])
        self.file_traces[name] = trace
        return mention

    def _groups(self, own: list[Mention]) -> list[Group]:
        """What the plan lists, by the surest notation that it uses; each with its own file."""
        found = self.found
        lists = {mention.block for mention in found.mentions if mention.kind == "list"}
        # Where one entry of a checklist is an item, all of its entries with an id are.
        beside = [mention for mention in found.boxed if mention.block in lists]
        listed = (
            sorted([*found.mentions, *beside], key=lambda mention: mention.line)
            or found.boxed
            or self._noted(self._from_wave_notes())
            or self._noted(read_records(self.text))
            or self._noted(found.nodes)
            or ([] if own else self._loose())
        )
        groups = group_mentions([*listed, *own])
        if not listed:
            if own and self.text.strip():
                self.warn("from-files", "the plan lists no item; its task files are taken as the items")
            return groups
        alone = [all(mention.kind == "file" for mention in group) for group in groups]
        kept = [group for group, unlisted in zip(groups, alone, strict=True) if not unlisted]
        for mention in (group[0] for group, unlisted in zip(groups, alone, strict=True) if unlisted):
            self.warn("not-in-plan", f"{_path(self.files, mention.stem)} is not listed in the plan; it is not run")
        return kept

    def _noted(self, listed: list[Mention]) -> list[Mention]:
        for mention in listed:
            self.found.note(mention.line, "item", "", mention)
        return listed

    def _from_wave_notes(self) -> list[Mention]:
        """`Wave 1: 01-a, 02-b` and nothing else: what is listed there is the plan."""
        made: list[Mention] = []
        for note in self.found.wave_notes:
            for piece in parts(note.text):
                name, title = split_id(piece)
                if name:
                    made.append(Mention(name, title, "note", note.line, note.line, wave=note.label))
        return made

    def _loose(self) -> list[Mention]:
        """Entries without ids: their numbers if these are unique, else their words become ids."""
        numbers = [mention.id for mention in self.found.loose]
        if not all(numbers) or len(dict.fromkeys(numbers)) < len(numbers):
            for mention in self.found.loose:
                mention.id = ""
        if self.found.loose:
            self.warn("no-ids", "the plan's items carry no ids; they are named by their number or their words")
        return self.found.loose

    def _set_parents(self) -> None:
        names = {id(group): item["id"] for item, group in self._pairs()}
        for key, parts_ in self.parents.items():
            self.sections[f"part {key}"] = [names[id(part)] for part in parts_ if id(part) in names]

    def _places(self) -> dict[str, list[int]]:
        """Where the items of a name stand."""
        found: dict[str, list[int]] = {}
        for at, item in enumerate(self.items):
            found.setdefault(item["id"], []).append(at)
        return found

    # ---- waves

    def _set_waves(self) -> None:
        """Number the written waves from 1; and what "wave 1" and "phase 2" stand for in dependencies."""
        labels = [[m.wave for m in group if m.wave] for group in self.groups]
        counted = _counting_waves(self.found.wave_notes, len(self.items))
        places = self._places()
        for note in self.found.wave_notes:
            if note.table in counted:
                self.amounts[note.line] = "how many tasks the wave has, not which"
                continue
            for name in _listed(note.text, self.listing):
                for at in places[name]:
                    labels[at].append(note.label)
        phases = [next((m.group for m in group if m.group), None) for group in self.groups]
        for item, phase in zip(self.items, phases, strict=True):
            if phase:
                self.sections.setdefault(phase, []).append(item["id"])
        if not any(labels) and len(self.sections) > 1 and len({phase.split()[0] for phase in self.sections}) == 1:
            labels = [[phase.split()[1]] if phase else [] for phase in phases]
            self.warn("phases", f"no waves are written; {', '.join(self.sections)} are read as waves")
        numbers = _numbers([label for own in labels for label in own])
        for item, own in zip(self.items, labels, strict=True):
            self._set_wave(item, own, numbers)
        self.sections = {name: list(dict.fromkeys(ids)) for name, ids in self.sections.items()}

    def _set_wave(self, item: PlannedItem, own: list[str], numbers: Mapping[str, int]) -> None:
        waves = list(dict.fromkeys(numbers[label] for label in own if numbers.get(label)))
        for label in dict.fromkeys(label for label in own if not numbers.get(label)):
            self.warn("wave-unreadable", f"item {item['id']} is in wave '{label}', which is no wave", item["id"])
        if waves:
            item["wave"] = max(waves)
        if len(waves) > 1:
            both = " and ".join(str(wave) for wave in waves)
            self.warn("waves-differ", f"item {item['id']} is in wave {both}; the later one counts", item["id"])
        for label in own:
            self.sections.setdefault(f"wave {_short(label)}", []).append(item["id"])

    # ---- amounts

    def _leave_out_amounts(self) -> None:
        """A column that counts dependencies names none."""
        tables = dict.fromkeys(d.table for group in self.groups for m in group for d in m.depends if d.table)
        of_table: dict[int, list[tuple[PlannedItem, Mention, Dependency]]] = {}
        for item, group in self._pairs():
            for mention in group:
                for dependency in mention.depends:
                    of_table.setdefault(dependency.table, []).append((item, mention, dependency))
        for table in tables:
            rows = of_table[table]
            if self._counts([(item, dependency) for item, _, dependency in rows], table):
                for _, mention, dependency in rows:
                    mention.depends.remove(dependency)
                    if amount_in(dependency.text) is not None:
                        self.amounts[dependency.line] = "how many dependencies, not which"

    def _counts(self, rows: list[tuple[PlannedItem, Dependency]], table: int) -> bool:
        amounts = [amount_in(dependency.text) for _, dependency in rows]
        if any(
            amount is None and parts(dependency.text) for amount, (_, dependency) in zip(amounts, rows, strict=True)
        ):
            return False  # a list, a range, `02`: these are ids
        if all(amount is None for amount in amounts):
            return False
        written = self.written
        if 0 in amounts and "0" not in {key_of(name) for name in written}:
            return True
        if None not in amounts and len(rows) == len(self.items):
            return True  # somebody must depend on nothing
        if self.found.counted.get(table) and not any(str(amount) in written for amount in amounts):
            return True
        elsewhere = [self._said_elsewhere(item, table) for item, _ in rows]
        return any(elsewhere) and all(
            (amount or 0) == len(names) for amount, names in zip(amounts, elsewhere, strict=True)
        )

    def _said_elsewhere(self, item: PlannedItem, table: int) -> list[str]:
        group = self.groups[self.places[item["id"]]]
        texts = [d.text for m in group for d in m.depends if d.table != table and not d.inherited]
        return list(dict.fromkeys(name for text in texts for name in self._resolve(text, item["id"]).ids))

    # ---- dependencies

    def _resolve(self, text: str, own: str) -> Resolved:
        return resolve(text, self.names, self.order, self.sections, own)

    def _set_dependencies(self) -> None:
        for item, group in self._pairs():
            places: list[list[str]] = []
            for dependency in (d for mention in group for d in mention.depends):
                names = self._names_in(item, dependency)
                if names is not None and not dependency.inherited and not dependency.weak:
                    places.append(names)
                item["depends_on"] += [name for name in names or () if name not in item["depends_on"]]
            if any(sorted(other) != sorted(places[0]) for other in places):
                both = "; ".join(", ".join(names) or "none" for names in places)
                message = f"item {item['id']} depends on: {both}; all of them count"
                self.warn("dependencies-differ", message, item["id"])
        for item, group in self._pairs():
            for dependency in (d for mention in group for d in mention.blocks):
                for follower in self._resolve(dependency.text, item["id"]).ids:
                    self._wait(follower, item["id"], dependency.line)
        for note in self.found.wave_notes:
            for who, what in _POINTED.findall(note.text):
                self._order(who, what.partition(";")[0], note.line)
        for order in self.found.orders:
            self._order(order.who, order.what, order.line)

    def _note_names_alone(self) -> None:
        """`task-b: the tests, needs task-a`: where an entry names another one and nothing was made of it, that is
        said. Plain numbers stand for too much else."""
        lines = self.text.splitlines()
        names = {name: re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE) for name in self.order}
        for item, group in self._pairs():
            own = item["id"]
            said = "\n".join(lines[m.line - 1] for m in group if m.kind in ("list", "heading") and not m.dropped)
            for name, pattern in names.items() if said else ():
                if name == own or name.isdecimal() or not pattern.search(said):
                    continue
                if name not in item["depends_on"] and own not in self.by_id[name]["depends_on"]:
                    message = f"item {own} names {name}, and it was not understood whether one waits for the other"
                    self.warn("names-alone", message, own, name)

    def _names_in(self, item: PlannedItem, dependency: Dependency) -> list[str] | None:
        result = self._resolve(dependency.text, item["id"])
        for gap in result.gaps:
            message = f"item {item['id']} depends on '{dependency.text}', which has no item {gap}"
            self.warn("gap", message, item["id"])
        if result.ids:
            self.edges.setdefault(dependency.line, []).append(f"{item['id']} waits for {', '.join(result.ids)}")
        if dependency.weak:
            if result.ids and result.unknown:
                self._not_read(dependency.line, f"'{', '.join(result.unknown)}' is no item")
            return result.ids or None
        for word in result.unknown:
            message = f"item {item['id']} depends on '{word}', which is no item"
            self.warn("unknown-dependency", message, item["id"])
        return [*result.ids, *result.unknown]

    def _wait(self, follower: str, name: str, line: int) -> None:
        self.edges.setdefault(line, []).append(f"{follower} waits for {name}")
        item = self.by_id[follower]
        if name not in item["depends_on"] and name != follower:
            item["depends_on"].append(name)

    def _order(self, who: str, what: str, line: int) -> None:
        """`02 depends on 01`: only where both sides are items."""
        followers = self._resolve(who, "") if re.search(r"\w", who) else None
        if followers is None or followers.unknown or not followers.ids:
            if names_in(f"{who} {what}", self.listing) and _is_id(who):
                self._not_read(line, f"'{who}' is no item")
            return
        for follower in followers.ids:
            result = self._resolve(what, follower)
            for name in result.ids:
                self._wait(follower, name, line)
            if result.unknown:
                self._not_read(line, f"'{', '.join(result.unknown)}' is no item")

    def _not_read(self, line: int, why: str) -> None:
        if line not in self.unread:
            self.unread[line] = why
            self.warn("not-read", f"line {line} seems to say something about the order and was not understood: {why}")

    # ---- arrows

    def _set_arrows(self) -> None:
        """Which end of the arrows of one list comes first is seen from the plan: written waves and dependencies, else
        the order in which the items are listed. Arrows that contradict each other are not read."""
        blocks: dict[tuple[int, bool], list[Arrows]] = {}
        for arrows in self.found.arrows:
            blocks.setdefault((arrows.block, arrows.drawn), []).append(arrows)
        for block, lines in blocks.items():
            chains = [(one, chain) for one in lines if (chain := self._chain(one))]
            ordering = [(one, chain) for one, chain in chains if _orders(one.label)]
            pairs = [pair for _, chain in ordering for pair in _pairs_in(chain)]
            forwards = self._direction(pairs, block[1])
            for one, chain in ordering:
                for first, then in _pairs_in(chain):
                    if forwards is not None:
                        self._wait(then if forwards else first, first if forwards else then, one.line)
                if forwards is None:
                    self._not_read(one.line, "these arrows point both ways")
            for one, chain in chains:
                if not _orders(one.label) and not all(self._is_known(a, b) for a, b in _pairs_in(chain)):
                    self._not_read(one.line, f"are the arrows behind '{one.label}' an order?")

    def _chain(self, arrows: Arrows) -> list[list[str]]:
        """The items of each piece; empty where a piece is no list of items. A bare `1` is not item 01."""
        bare = [name for piece in arrows.pieces for name in parts(piece) if re.fullmatch(r"[1-9]\d*", name)]
        if any(name not in self.written for name in bare):
            return []
        chain = [self._resolve(piece, "") for piece in arrows.pieces]
        return [piece.ids for piece in chain] if all(piece.ids and not piece.unknown for piece in chain) else []

    def _direction(self, pairs: list[tuple[str, str]], drawn: bool) -> bool | None:
        sure = [vote for first, then in pairs if (vote := self._known_order(first, then)) is not None]
        votes = sure or [self.places[first] < self.places[then] for first, then in pairs]
        if all(votes):
            return True
        if not any(votes):
            return False
        return True if drawn and not sure else None

    def _known_order(self, first: str, then: str) -> bool | None:
        if self._is_before(first, then):
            return True
        if self._is_before(then, first):
            return False
        waves = self.by_id[first]["wave"], self.by_id[then]["wave"]
        return None if None in waves or waves[0] == waves[1] else (waves[0] or 0) < (waves[1] or 0)

    def _is_known(self, first: str, then: str) -> bool:
        return self._is_before(first, then) or self._is_before(then, first)

    def _is_before(self, first: str, then: str) -> bool:
        """Whether `then` waits for `first`, directly or through others."""
        waiting, seen = [then], {then}
        while waiting:
            for name in self.by_id[waiting.pop()]["depends_on"]:
                if name == first:
                    return True
                if name in self.by_id and name not in seen:
                    seen.add(name)
                    waiting.append(name)
        return False

    # ---- files and remarks

    def _add_files(self) -> None:
        for files, who, _ in self.found.file_notes:
            for name in self._resolve(re.sub(r"\s*(?:→|->)\s*", ", ", who), "").ids:
                self.by_id[name]["files"] = united([*self.by_id[name]["files"], *files])

    def _note_sources(self) -> None:
        for item, group in self._pairs():
            name, kinds = item["id"], [mention.kind for mention in group]
            agents = list(dict.fromkeys(mention.agent for mention in group if mention.agent))
            if len(agents) > 1:
                message = f"item {name} names the agents {', '.join(agents)}; {item['agent']} counts"
                self.warn("agents-differ", message, name)
            if self.files and "file" not in kinds:
                self.warn("no-item-file", f"item {name} has no file of its own", name)
        ticked = [item["id"] for item, group in self._pairs() if any(mention.ticked for mention in group)]
        if ticked:
            message = f"{', '.join(ticked)}: ticked in the plan; a run knows by itself what is done, so they count"
            self.warn("ticked", message, *ticked)

    def _drop(self) -> None:
        reasons = {item["id"]: why for item, group in self._pairs() if (why := _first(m.dropped for m in group))}
        self.dropped = reasons
        self.kept = [item for item in self.items if item["id"] not in reasons]
        for name, why in reasons.items():
            self.warn("dropped", f"item {name} is not run: {why}", name)
        for item in self.kept:
            lost = [name for name in item["depends_on"] if name in reasons]
            if lost:
                item["depends_on"] = [name for name in item["depends_on"] if name not in reasons]
                message = f"item {item['id']} does not wait for {', '.join(lost)}, which the plan drops"
                self.warn("dropped-dependency", message, item["id"])

    # ---- line by line

    def result(self) -> Explained:
        owners = {id(m): item["id"] for item, group in self._pairs() for m in group}
        facts: dict[tuple[str, int], list[str]] = {}
        ignored: dict[tuple[str, int], str] = {}
        for file, traces in [("", self.found.trace), *self.file_traces.items()]:
            for trace in traces:
                fact, why = self._fact(trace, owners)
                if fact:
                    facts.setdefault((file, trace.line), []).append(fact)
                if why:
                    ignored.setdefault((file, trace.line), why)
        for line, edges in self.edges.items():
            facts.setdefault(("", line), []).extend(edges)
        for line, why in {**self.amounts, **self.unread}.items():
            ignored[("", line)] = f"not understood: {why}" if line in self.unread else f"an amount: {why}"
        plan: Plan = {"items": self.kept, "warnings": self.warnings}
        return {"plan": plan, "lines": _lines(self.text, facts, ignored, self.files)}

    def _fact(self, trace: Trace, owners: Mapping[int, str]) -> tuple[str, str]:
        """What was read, and what was not."""
        item = owners.get(id(trace.mention), "")
        match trace.what:
            case "item" if item:
                wave = self.by_id[item]["wave"]
                kept = "not run: " + self.dropped[item] if item in self.dropped else f"wave {wave}" if wave else ""
                return f"item {item}{f' ({kept})' if kept else ''}", ""
            case "item":
                return "", "it is no item here: the plan lists its items elsewhere, or it stands over its parts"
            case "section":
                return f"section: {trace.value}", ""
            case "waves":
                return ("", "") if trace.line in self.amounts else (f"the items of wave {trace.value}", "")
            case "file":
                return f"a file of {trace.value}", ""
            case "files" | "agent" | "wave" | "effort" | "lines" | "status" if item and trace.value:
                return f"{trace.what} of {item}: {trace.value}", ""
            case "ignored":
                return "", trace.value
            case _:
                return "", ""


def _lines(
    text: str,
    facts: Mapping[tuple[str, int], list[str]],
    ignored: Mapping[tuple[str, int], str],
    files: Mapping[str, str],
) -> list[PlanLine]:
    found: list[PlanLine] = []
    for file, body in [("", text), *sorted(files.items())]:
        written = body.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        code = {at for block in find_code(written)[0] for at in range(block["start"], block["end"])}
        for at, line in enumerate(written):
            read = list(dict.fromkeys(facts.get((file, at + 1), ())))
            kind = "code" if at in code else "table" if line.lstrip().startswith("|") else "text"
            why = ignored.get((file, at + 1), "" if read else kind)
            # Of an item's file, only what was taken: the rest is for its agent.
            if line.strip() and (read or not file):
                found.append({"file": file, "line": at + 1, "text": line.strip(), "read": read, "ignored": why})
    return found


_POINTED = re.compile(rf"({ID})\s*\(\s*←\s*([^)]*)\)")  # `Wave 2: #7 (←6)`


def _path(files: Mapping[str, str], stem: str) -> str:
    return next((file for file in files if file.rsplit("/", 1)[-1] == f"{stem}.md"), stem)


def _first(values: Iterable[str]) -> str:
    return next((value for value in values if value), "")


def _is_id(text: str) -> bool:
    return bool(re.fullmatch(rf"#?{ID}", text)) or split_id(text) == (text, "")


def _orders(label: str) -> bool:
    """Whether arrows behind this label say what comes first."""
    words = label.casefold().split()
    return not label or role_of_label(label) in ("depends", "after") or any(w in ("order", "sequence") for w in words)


def _pairs_in(chain: list[list[str]]) -> list[tuple[str, str]]:
    return [(a, b) for one, two in pairwise(chain) for a in one for b in two if a != b]


def _counting_waves(notes: Sequence[WaveNote], items: int) -> set[int]:
    """Tables of waves whose column of tasks says how many: the amounts add up to all items, or one is there twice."""
    found: set[int] = set()
    for table in dict.fromkeys(note.table for note in notes if note.table):
        amounts = [amount_in(note.text) for note in notes if note.table == table]
        known = [amount for amount in amounts if amount is not None]
        if len(known) == len(amounts) and (sum(known) == items or 0 in known or len(set(known)) < len(known)):
            found.add(table)
    return found


def _listed(text: str, names: Directory) -> dict[str, None]:
    """The items in a list behind a wave's label; "(3 tasks)" and "4 items in parallel" are amounts."""
    bare = re.sub(r"\([^()]*\)|\b\d+\s+(?:\w+\s+)?(?:tasks?|items?|files?|agents?)\b", " ", text)
    return names_in(f"tasks: {bare}", names)


def _short(label: str) -> str:
    found = re.search(r"\d+\s*[a-z]?\b|\b[a-z]\b", label.lower())
    return found.group().replace(" ", "") if found else ""


def _numbers(labels: Sequence[str]) -> dict[str, int]:
    """Whole numbers stay what they are (counted from 1); `1a`, `1b` and letters are ranked."""
    keys: dict[str, tuple[int, str]] = {}
    for label in labels:
        short = _short(label)
        digits = re.match(r"\d+", short)
        if digits:
            keys[label] = (int(digits.group()), short[digits.end() :])
        elif short:
            keys[label] = (ord(short) - ord("a") + 1, "")
    if any(letter for _, letter in keys.values()):
        ranks = {key: rank for rank, key in enumerate(sorted(dict.fromkeys(keys.values())), start=1)}
        return {label: ranks[key] for label, key in keys.items()}
    shift = 1 if any(number == 0 for number, _ in keys.values()) else 0
    return {label: number + shift for label, (number, _) in keys.items()}
