"""STORE: an artifact goes to its file in the task's folder, and nothing that stood there is lost.

Artifacts are named by their phase: architect, architect-revision-1, implementation/task-001, ...
Small ones are checked (a breakdown of tasks, an audit's answer); large ones are streamed and only stored.

An audit is also added to audit-history.json, and says what follows:

    {"audit_type", "verdict", "iteration", "issues": [...], "kickback_context", "memory_candidates"}

An answer in JSON (alone, or in a code block) is added as it is; prose as {audit_type, iteration, text}. What the
verdict amounts to, and how often work goes back, is decided in core/.

With debt.md a POC is complete; when it graduates, debt.md says when.

debt.md, the document of a POC: made, checked, and given the time of its graduation. Text in, text out.

Front matter is checked before anything is written. What most people write (keys, quoted or bare values, lists
in brackets or with dashes) is recognised here, in microseconds; everything else is put to a YAML parser.
Aliases are refused: a few lines of them can become gigabytes.
"""

from __future__ import annotations

from tenuto.dialects.context.language import NOTHING, in_words, wrong
from tenuto.dialects.context.tasks import for_change
from tenuto.encoding import NotJson, dumps, loads_strict, pretty
from tenuto.errors import BadInput, NotFound, Refused, TenutoError
from tenuto.knowledge.passages import INDEXED, passages_of
from tenuto.names import slug as slug_of
from tenuto.views.context.state import (
    COUNTED,
    CURRENT,
    HISTORY,
    NAME,
    PER_TASK,
    PHASE_FILES,
    extra_of,
    folder_of,
    is_current,
    manifest_of,
    status_of,
)

TYPE_CHECKING = False


if TYPE_CHECKING:
    from typing import TypedDict

    from tenuto.core.records.run import Artifact, Json, Run
    from tenuto.dialects.context.language import Stored
    from tenuto.workspace.workspace import Turn, Workspace

    class Audit(TypedDict):
        """An audit that was added to the history."""

        iteration: int
        files: list[str]
        next: str  # the command that follows; empty where the audit does not say
        report: str  # what STORE says about it

    Content = tuple[bytes | None, str]  # the content itself, or the name of the file that holds it

AUDITS = ("impl-audit", "design-audit")
_AUDIT_TYPES = {"impl-audit": "implementation", "design-audit": "design"}
WITH_TASK_ID = (*PER_TASK, "implementation-fix")
PLANNING = ("architect", "architect-revision", "spec")
LOOKED_INTO = 4 << 20  # bytes; a larger document is stored unread
_AGAIN = {"DESIGN_FLAW": "architect-revision", "IMPLEMENTATION_FLAW": "implementation-fix"}
_ONWARD = {"design-audit": "SET_GATE gate: design", "impl-audit": "SET_GATE gate: final"}


def store(
    workspace: Workspace, phase: str, content: bytes | None, source: str, task_id: str, iteration: str, task: str
) -> Stored:
    """`content`, or the file `source`: one of the two."""
    name, number = _phase(phase, iteration)
    _refuse_empty(name, content, source)
    if name in COUNTED and not number:
        raise wrong(f"STORE phase: {name} requires an iteration number")
    if task_id and name not in WITH_TASK_ID:
        raise wrong(f"STORE phase: {name} takes no task_id; {', '.join(WITH_TASK_ID[:-1])} and {WITH_TASK_ID[-1]} do")
    if name in PER_TASK and number > 1 and not task_id:
        raise wrong(f"STORE phase: {name} iteration: {number} requires a task_id: the task whose {name} these are")
    with workspace.turn() as turn:
        run = for_change(turn, task)
        try:
            if name == "debt":
                return _store_debt(turn, run, _bytes(content, source))
            if name == "graduate-complete":
                return _graduate(turn, run, content, source)
            return _store_phase(turn, run, name, (content, source), task_id, number)
        except TenutoError as refusal:
            raise in_words("STORE", refusal, run) from None


def _refuse_empty(phase: str, content: bytes | None, source: str) -> None:
    """Nothing is never stored in the place of something."""
    if source:
        if not _head(source).strip():
            raise wrong(f"Content is empty: {source}")
    elif phase != "graduate-complete" and not (content or b"").strip():
        raise wrong("Missing required parameter: content")


def _head(source: str) -> bytes:
    """The first bytes of a file that are not blank, as far as they tell that it is not empty."""
    try:
        with open(source, "rb") as file:
            while piece := file.read(1 << 16):
                if piece.strip():
                    return piece
    except (OSError, ValueError) as error:
        raise _unreadable(source, error) from None
    return b""


def _phase(phase: str, iteration: str) -> tuple[str, int]:
    """The phase and the iteration; `architect-revision-2` says both."""
    name = "-".join(phase.lower().replace("_", "-").split())
    given = "" if iteration.strip().lower() in NOTHING else iteration.strip().lower()
    base, _, last = name.rpartition("-")
    if name not in PHASE_FILES and base in COUNTED and last.isascii() and last.isdecimal():
        name, given = base, given or last
        if given.lstrip("0") != last.lstrip("0"):
            raise wrong(f"Iteration given twice: {last} in the phase and {iteration.strip()}")
    if not name:
        raise wrong("Missing required parameter: phase")
    if name not in PHASE_FILES:
        raise wrong(f"Unknown phase: {phase.strip()}. Use {', '.join(PHASE_FILES)}")
    digits = given.removeprefix("iteration").lstrip(" -#") if given.startswith("iteration") else given.lstrip("#")
    if given and not (digits.isascii() and digits.isdecimal() and len(digits) < 7 and int(digits) > 0):
        raise wrong(f"Invalid iteration: {iteration.strip()}. Use a number from 1")
    return name, int(digits) if given else 0


def _store_phase(turn: Turn, run: Run, phase: str, content: Content, task_id: str, iteration: int) -> Stored:
    artifact, file = _place_of(turn, run, phase, task_id, iteration)
    path = f"{folder_of(run['id'])}/{file}"
    small = _if_small(*content)
    touched, report, following = [path], "", ""
    if phase in AUDITS:
        audit = record_audit(turn, run, phase, small, iteration, path)
        iteration, touched, report, following = audit["iteration"], audit["files"], audit["report"], audit["next"]
    planned = _plan_items(turn, run, small) if phase in PLANNING and small else ""
    stored = keep(turn, run, artifact, path, content, phase, f"iteration-{iteration}" if iteration else None)
    data = f"{artifact} stored | {stored['size']} bytes | sha256: {stored['sha256']}{planned}{report}"
    return _answer(turn, run, data, touched, artifact, stored, following)


def _answer(
    turn: Turn, run: Run, data: str, touched: list[str], artifact: str, stored: Artifact, following: str = ""
) -> Stored:
    files = [*touched, manifest_of(run["id"]), HISTORY]
    if is_current(run, turn.repo):
        files.append(CURRENT)
    record: Stored = {
        "status": "success",
        "task": run["id"],
        "data": data,
        "files_touched": files,
        "artifact": artifact,
        "path": stored["path"],
        "sha256": stored["sha256"],
        "size": stored["size"],
    }
    if following:
        record["next"] = following
    return record


def keep(
    turn: Turn, run: Run, artifact: str, path: str, content: Content, step: str, attempt: str | None = None
) -> Artifact:
    """Store it, show it, and let it be found; returns the artifact's record."""
    body, source = content
    where: Json = {"step": step} if attempt is None else {"step": step, "attempt": attempt}
    if body is None:
        turn.store_file(run["id"], artifact, path, source, **where)
    else:
        turn.store(run["id"], artifact, path, body, **where)
    stored = run["artifacts"][artifact]
    head = body if body is not None else turn.workspace.files().stored(turn.tx, stored["sha256"], INDEXED)
    turn.tx.index(run["id"], artifact, path, passages_of(head))
    return stored


# ---- names and numbers -----------------------------------------------------------------------------


def _place_of(turn: Turn, run: Run, phase: str, task_id: str, iteration: int) -> tuple[str, str]:
    """The artifact's name, and its file below the task's folder."""
    if phase in COUNTED:
        artifact, file = f"{phase}-{iteration}", f"{PHASE_FILES[phase]}{iteration}"
        if not task_id:
            return artifact, f"{file}.md"
        return f"{artifact}/{task_name(task_id)}", f"{file}-{task_name(task_id)}.md"  # a fix of one task
    if phase in PER_TASK:
        task = task_name(task_id) if task_id else _next_task(turn, run, phase)
        return f"{phase}/{task}", f"{PHASE_FILES[phase]}{task}.md"
    return phase, PHASE_FILES[phase]


def task_name(task_id: str) -> str:
    """1, task-1 and 001 are task-001; other names (wave-1) are kept."""
    bare = "-".join(task_id.lower().removesuffix(".md").replace("_", "-").replace(":", "-").split())
    digits = bare.removeprefix("task").lstrip("-#") if not bare.startswith("-") else ""
    # What is no number and no name (1.5, ../x, 0) is somebody's mistake: another file than they meant.
    if not digits or not digits.strip("0") or any(sign in bare for sign in "./\\"):
        raise wrong(f"Invalid task_id: {task_id}. Use a number from 1")
    if digits.isascii() and digits.isdecimal() and len(digits) < 7:
        return f"task-{int(digits):03d}"
    try:
        return slug_of(task_id)
    except BadInput:
        raise wrong(f"Invalid task_id: {task_id}. Use a number from 1") from None


def _next_task(turn: Turn, run: Run, phase: str) -> str:
    names = [name.partition("/")[2] for name in run["artifacts"] if name.startswith(f"{phase}/")]
    names += turn.workspace.files().names(f"{folder_of(run['id'])}/{PHASE_FILES[phase].rstrip('/')}")
    numbers = [name.removesuffix(".md").removeprefix("task-") for name in names]
    return f"task-{max((int(n) for n in numbers if n.isascii() and n.isdecimal()), default=0) + 1:03d}"


# ---- what a document says --------------------------------------------------------------------------


def _plan_items(turn: Turn, run: Run, content: bytes) -> str:
    """A breakdown of tasks inside the document becomes the run's items. Returns what to say about it."""
    if b"taskBreakdown" not in content:
        return ""
    from tenuto.views.context.manifest import as_items, find_breakdown, plan

    breakdown = find_breakdown(content.decode("utf-8", "replace"))
    if breakdown is None or breakdown == extra_of(run).get("breakdown"):
        return ""
    tasks, waves = plan(breakdown)
    turn.do(run["id"], {"do": "PlanItems", "items": as_items(tasks), "waves": waves})
    turn.do(
        run["id"],
        {
            "do": "AbsorbEdit",
            "dialect": NAME,
            "path": "",
            "sha256": "",
            "extra": {"breakdown": breakdown},
            "drop": [["breakdown"]],
        },
    )
    return f" | {len(tasks)} task{'s' * (len(tasks) != 1)} in {len(waves)} wave{'s' * (len(waves) != 1)}"


def _if_small(content: bytes | None, source: str) -> bytes:
    """The content where it is small enough to be read, else nothing."""
    if content is None:
        import os

        try:
            if os.stat(source).st_size > LOOKED_INTO:
                return b""
        except (OSError, ValueError) as error:
            raise _unreadable(source, error) from None
        return _bytes(None, source)
    return content if len(content) <= LOOKED_INTO else b""


def _bytes(content: bytes | None, source: str) -> bytes:
    if content is not None:
        return content
    try:
        with open(source, "rb") as file:
            body = file.read(LOOKED_INTO + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(source, error) from None
    if len(body) > LOOKED_INTO:
        raise Refused("too-large", f"This document is larger than {LOOKED_INTO} bytes")
    return body


def _unreadable(source: str, error: Exception) -> NotFound:
    """Also where no file can have this name: one with a NUL in it, or with half a character."""
    return NotFound(
        "no-such-file", f"Content file cannot be read: {source}: {getattr(error, 'strerror', None) or error}"
    )


# ---- audits ----------------------------------------------------------------------------------------


def record_audit(turn: Turn, run: Run, phase: str, small: bytes, iteration: int, path: str) -> Audit:
    """`small`: the audit itself; empty where it is too large to be read. `iteration`: 0 where the caller names none."""
    number = iteration or _last_number(run, phase) + 1
    text = small.decode("utf-8", "replace")
    from tenuto.knowledge.findings import answer as find_answer

    kind = _AUDIT_TYPES[phase]
    answer = find_answer(text, ("verdict", "audit_type"))
    if answer is not None:
        entry: Json = {"audit_type": kind, **answer, "iteration": answer.get("iteration", number)}
        number = iteration or _as_number(answer.get("iteration")) or number
    else:
        told = text if small else f"(too large to be repeated here; see {path})"
        entry = {"audit_type": kind, "iteration": number, "text": told}
        answer = _in_prose(text, kind)
    log = _audit_history(run)
    history = read_audits(turn, run)
    if entry not in history:
        turn.store(run["id"], "audit-history", log, pretty([*history, entry]).encode(), step=phase)
    following, report = _what_follows(run, phase, answer)
    return {"iteration": number, "files": [path, log], "next": following, "report": report}


def _audit_history(run: Run) -> str:
    return f"{folder_of(run['id'])}/audit-history.json"


def _last_number(run: Run, phase: str) -> int:
    from tenuto.views.context.manifest import latest_of, number_of

    latest = latest_of(run, phase)
    return number_of(run, latest) if latest else 0


def _as_number(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, value)
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 7 else 0


def _in_prose(text: str, kind: str) -> Json | None:
    """What an audit in prose says, in the words of an answer; None where it names no verdict, or several."""
    from tenuto.core.rules import AUDIT_VERDICTS
    from tenuto.knowledge.findings import findings, verdict_in

    verdict = verdict_in(text, AUDIT_VERDICTS)
    return {"audit_type": kind, "verdict": verdict, "issues": [*findings(text)]} if verdict else None


def read_audits(turn: Turn, run: Run) -> list[object]:
    """The audits of this task so far, with what others wrote into their file."""
    path = _audit_history(run)
    turn.look(run["id"], path, "audit-history")
    known = run["artifacts"].get("audit-history")
    if known is None:
        return []
    try:
        history: object = loads_strict(turn.workspace.files().stored(turn.tx, known["sha256"]))
    except NotJson as error:
        raise Refused("bad-audit-history", f"{path} cannot be read: {error}", "correct it, or move it away") from None
    # Another shape is somebody else's: theirs stays, as the first entry.
    return history if isinstance(history, list) else [history]


def _what_follows(run: Run, phase: str, answer: Json | None) -> tuple[str, str]:
    """(the command that follows, what STORE says about it)"""
    if answer is None:
        return "", ""
    from tenuto.core.rules import after_audit, audit

    judged = audit(_with_issues(answer))
    verdict = judged["verdict"]
    again = _AGAIN.get(verdict, "")
    names = [name.partition("/")[0] for name in run["artifacts"] if again and name.startswith(f"{again}-")]
    rounds = len(set(names))
    following = {"on": _ONWARD[phase], "again": f"{again} iteration: {rounds + 1}", "pause": "PAUSE"}[
        after_audit(verdict, rounds)
    ]
    because = f" ({judged['reason']})" if judged["reason"] else ""
    return following, f" | verdict: {verdict}{because} | next: {following}"


def _with_issues(answer: Json) -> Json:
    """Auditors put their issues at the top, or inside their review."""
    if "issues" in answer:
        return answer
    for review in ("design_review", "implementation_review"):
        inner = answer.get(review)
        if isinstance(inner, dict) and isinstance(inner.get("issues"), list):
            return {**answer, "issues": inner["issues"]}
    return answer


# ---- the life of a POC -----------------------------------------------------------------------------


def _store_debt(turn: Turn, run: Run, content: bytes) -> Stored:

    if run["mode"] != "poc":
        raise Refused("not-poc", "STORE phase: debt only valid for POC mode tasks", mode=run["mode"])
    document = with_front_matter(content)
    if run["status"] != "poc-complete":
        turn.do(run["id"], {"do": "Finish", "outcome": "poc-complete"})
    path = debt_of(run)
    stored = keep(turn, run, "debt", path, (document, ""), "debt")
    return _answer(turn, run, f"debt stored | status: {status_of(run)}", [path], "debt", stored)


def debt_of(run: Run) -> str:
    return f"{folder_of(run['id'])}/debt.md"


def _graduate(turn: Turn, run: Run, content: bytes | None, source: str) -> Stored:
    refuse_ungraduated(run)
    path = debt_of(run)
    turn.look(run["id"], path, "debt")
    if "debt" not in run["artifacts"]:
        raise Refused("no-debt", "Missing debt.md required for graduation")
    document = graduated_debt(turn, run)
    turn.do(run["id"], {"do": "Finish", "outcome": "graduated"})
    stored = keep(turn, run, "debt", path, (document, ""), "debt")
    touched = [path]
    if content or source:
        report = f"{folder_of(run['id'])}/graduate-complete.md"
        keep(turn, run, "graduate-complete", report, (content or None, source), "graduate-complete")
        touched.append(report)
    return _answer(turn, run, f"Task graduated | graduated_at: {turn.at}", touched, "debt", stored)


def graduated_debt(turn: Turn, run: Run) -> bytes:
    """debt.md with the time of graduation in its front matter."""

    debt = turn.workspace.files().stored(turn.tx, run["artifacts"]["debt"]["sha256"])
    return with_graduation(with_front_matter(debt), turn.at)


def refuse_ungraduated(run: Run) -> None:
    """The first two conditions of a graduation: it is a POC, and a complete one."""
    if run["mode"] != "poc":
        raise Refused("not-poc", f"Cannot graduate non-POC task. Task mode is '{run['mode']}'", mode=run["mode"])
    if run["status"] != "poc-complete":
        raise Refused("not-ready", f"Task not ready for graduation, current status: '{status_of(run)}'")


# ---- debt ------------------------------------------------------------


if TYPE_CHECKING:
    from typing import TypedDict

    class Issue(TypedDict):
        phase: str
        description: str
        severity: str


INVALID = "Invalid YAML frontmatter in debt document"
_LARGEST = 1 << 20


def debt_document(skipped: list[str], issues: list[Issue], at: str) -> bytes:
    """What a POC left out, and what the documents of the task call wrong with it."""
    lines = ["---", f"skipped_phases: [{', '.join(skipped)}]"]
    lines.append("known_issues:" if issues else "known_issues: []")
    for issue in issues:
        lines += [f"  - phase: {dumps(issue['phase'])}", f"    description: {dumps(issue['description'])}"]
        lines += [f"    severity: {dumps(issue['severity'])}", '    mitigation: "Graduation makes up for it"']
    lines += [f'created_at: "{at}"', "graduated_at: null", "---", "", "# Technical Debt", ""]
    lines.append("This is a proof of concept. These phases were left out; graduation makes up for them:\n")
    lines += [f"- {phase}" for phase in skipped]
    return ("\n".join(lines) + "\n").encode()


def with_front_matter(content: bytes) -> bytes:
    """The document as it will be stored; bare YAML gets its two lines of dashes."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise wrong(INVALID) from None
    matter, _ = split_matter(text)
    if matter is None:
        if not _is_mapping(text):
            raise wrong(INVALID)
        return f"---\n{text.strip()}\n---\n".encode()
    if not _is_mapping(matter):
        raise wrong(INVALID)
    return content


def split_matter(text: str) -> tuple[str | None, str]:
    """(what stands between the two lines of dashes, what follows); None where it does not begin with one."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return None, text
    for at, line in enumerate(lines[1:], 1):
        if line.rstrip() in ("---", "..."):
            return "".join(lines[1:at]), "".join(lines[at + 1 :])
    raise wrong(INVALID)


def with_graduation(document: bytes, at: str) -> bytes:
    """The time of graduation in the front matter; everything else as it stands."""
    lines = document.decode("utf-8-sig").splitlines(keepends=True)
    end = next(number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "..."))
    entry = f'graduated_at: "{at}"\n'
    for number in range(1, end):
        if lines[number].startswith("graduated_at:"):
            lines[number] = entry
            return "".join(lines).encode()
    return "".join([*lines[:end], entry, *lines[end:]]).encode()


def _is_mapping(matter: str) -> bool:
    if len(matter) > _LARGEST:
        return False
    return _is_plain(matter) or _is_yaml_mapping(matter)


def _is_plain(matter: str) -> bool:
    """`key: value` lines, lists with dashes, one level of keys below a dash; nothing that YAML reads in another way."""
    keys: set[str] = set()
    opened = False  # the last key has no value: a list may follow
    within: set[str] | None = None  # the keys of the entry we are in
    for line in matter.splitlines():
        bare = line.strip()
        if not line.isprintable():
            return False
        if not bare:
            continue
        entry = bare.removeprefix("- ")
        key, colon, value = entry.partition(":")
        if line[0] != " ":
            if entry != bare or not colon or not _is_key(key) or key in keys or not _is_value(value):
                return False
            keys.add(key)
            opened, within = not value.strip(), None
            continue
        if entry != bare:
            if not opened or not line.startswith("  - "):
                return False
            within = set() if colon else None
            if not colon and not _is_value(f" {entry}"):
                return False
        elif within is None or not line.startswith("    ") or line[4] == " " or not colon:
            return False
        if colon and within is not None:
            if not _is_key(key) or key in within or not value.strip() or not _is_value(value):
                return False
            within.add(key)
    return bool(keys)


def _is_key(key: str) -> bool:
    return bool(key) and key.isascii() and key.replace("_", "a").replace("-", "a").isalnum() and key[0].isalpha()


def _is_value(value: str) -> bool:
    bare = value.strip()
    if not bare:
        return True
    if value[0] != " ":
        return False
    if bare[0] == "[":
        inner = bare[1:-1]
        words = inner.split(",") if inner.strip() else []
        return bare[-1] == "]" and all(_is_word(word.strip()) for word in words)
    if bare[0] == '"':
        return len(bare) > 1 and bare[-1] == '"' and '"' not in bare[1:-1] and "\\" not in bare
    return _is_word(bare)


def _is_word(word: str) -> bool:
    """Text that cannot be anything but a plain scalar."""
    return bool(word) and word[0].isalnum() and not any(sign in word for sign in ":#,[]{}&*!|>'\"%@`\\")


def _is_yaml_mapping(matter: str) -> bool:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import AliasEvent

    try:
        parser = YAML(typ="safe", pure=True)
        depth = 0
        for event in parser.parse(matter):
            depth += {"+": 1, "-": -1}.get(_step(event), 0)
            if isinstance(event, AliasEvent) or depth > 64:
                return False
        return isinstance(YAML(typ="safe", pure=True).load(matter), dict)
    except (YAMLError, ValueError, RecursionError):
        return False


def _step(event: object) -> str:
    name = type(event).__name__
    return "+" if name.endswith("StartEvent") else "-" if name.endswith("EndEvent") else ""
