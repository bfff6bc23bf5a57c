"""`tenuto feature ...`: one feature from discovery to commit, kept in .feature-state.json.

    tenuto feature start "OAuth login" "Let people sign in with their provider"
    tenuto feature answer problem "Passwords are forgotten"
    tenuto feature done spec
    tenuto feature answer approval --approve
    tenuto feature task add "Provider" "Token storage"
    tenuto feature task 1 completed --next 2 --file src/auth/oauth.ts
    tenuto feature status
    tenuto feature resume
    tenuto feature commit -m "Sign in with a provider"
    tenuto feature cancel "Not needed any more"

start NAME [DESCRIPTION]   --skip discovery|test   --gate block  --files PATTERNS  --verdicts on  --stop block
answer KEY TEXT | KEY=TEXT ...                     problem, users, outcome, constraints, successCriteria
answer approval --approve | --revise FEEDBACK      a person decides; never an agent
done PHASE | skip PHASE                            a phase is completed, or left out (discovery, test)
task add TEXT ... | N STATUS [--next N] [--file PATH] | - (a payload on standard input)
commit [-m MESSAGE | --hash HASH]                  commits what is staged, or records a commit (HEAD)
All: --json
"""

from __future__ import annotations

import os
import sys

from tenuto.dialects.feature_state import FILE, PHASES
from tenuto.encoding import NotJson, loads_strict
from tenuto.entrypoints.opening import open_here
from tenuto.errors import BadInput
from tenuto.hosts.surroundings import session
from tenuto.workspace.guard import require_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json
    from tenuto.workspace.turn import Workspace

_TAKES_VALUE = ("--skip", "--gate", "--files", "--verdicts", "--stop", "--session", "--revise", "--feedback",
                "--next", "--file", "-m", "--message", "--hash")  # fmt: skip
_FLAGS = ("--json", "--approve", "--help", "-h")


def main(words: list[str]) -> int:
    plain, options = divide(words)
    if "--help" in options or "-h" in options:
        sys.stdout.write(__doc__ or "")
        return 0
    verb, *rest = plain or [""]
    act = VERBS.get(verb)
    if act is None:
        raise BadInput("usage", f"tenuto feature has no {verb!r}; it has {', '.join(VERBS)}", "tenuto feature --help")
    workspace = open_here()
    answer = act(workspace, rest, options)
    for warning in workspace.warnings:
        sys.stderr.write(f"tenuto: {warning}\n")
    show(verb, answer, "--json" in options)
    return 0


def divide(words: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Plain words, and options with their values. Everything after `--` is plain."""
    plain: list[str] = []
    options: dict[str, list[str]] = {}
    rest = iter(words)
    for word in rest:
        if word == "--":
            plain += rest
        elif word in _FLAGS:
            options[word] = []
        elif word.partition("=")[0] in _TAKES_VALUE:
            name, equals, value = word.partition("=")
            value = value if equals else next(rest, "")
            options.setdefault(name, []).append(value)
        elif word.startswith("-") and word != "-":
            raise BadInput("usage", f"tenuto feature does not know {word}", "tenuto feature --help")
        else:
            plain.append(word)
    return plain, options


def start(workspace: Workspace, words: list[str], options: dict[str, list[str]]) -> Json:
    if not words:
        raise BadInput("usage", "a feature needs a name", 'tenuto feature start "OAuth login"')
    from tenuto.drivers.hooks.declaring import parse, remember

    pairs = [
        f"{key}={options[f'--{key}'][-1]}" for key in ("gate", "files", "verdicts", "stop") if f"--{key}" in options
    ]
    hooks = parse(pairs)
    of = (options.get("--session") or [session(os.environ)])[-1]
    description = " ".join(words[1:])
    answer: Json = _commands(workspace).start(
        words[0], description, skip=options.get("--skip", []), hooks=hooks, session=of
    )
    remember(workspace, hooks, answer["run"])
    return answer


def answer(workspace: Workspace, words: list[str], options: dict[str, list[str]]) -> Json:
    if words[:1] == ["approval"]:
        return _approval(workspace, words[1:], options)
    if not words:
        raise BadInput("usage", "what is answered?", 'tenuto feature answer problem "Passwords are forgotten"')
    if all("=" in word for word in words):
        answers = dict(word.split("=", 1) for word in words)
    else:
        answers = {words[0]: " ".join(words[1:])}
    return _commands(workspace).answer(answers)  # type: ignore[no-any-return]


def _approval(workspace: Workspace, words: list[str], options: dict[str, list[str]]) -> Json:
    require_person("give an approval", "tenuto feature answer approval --approve")
    who = os.environ.get("USER") or os.environ.get("LOGNAME") or f"uid {os.getuid()}"
    if "--approve" in options or words[:1] in (["approve"], ["approved"], ["yes"]):
        return _commands(workspace).approve(who, " ".join(options.get("--feedback", [])))  # type: ignore[no-any-return]
    feedback = " ".join([*options.get("--revise", []), *options.get("--feedback", []), *words]).strip()
    if not feedback:
        raise BadInput("usage", "approved, or what is to be revised?", "tenuto feature answer approval --approve")
    return _commands(workspace).revise(who, feedback)  # type: ignore[no-any-return]


def done(workspace: Workspace, words: list[str], options: dict[str, list[str]]) -> Json:
    if len(words) != 1:
        raise BadInput("usage", f"which phase is done? {', '.join(PHASES)}", "tenuto feature done spec")
    return _commands(workspace).phase(words[0])  # type: ignore[no-any-return]


def skip(workspace: Workspace, words: list[str], options: dict[str, list[str]]) -> Json:
    if len(words) != 1:
        raise BadInput("usage", "which phase is left out? discovery or test", "tenuto feature skip test")
    return _commands(workspace).skip(words[0])  # type: ignore[no-any-return]


def task(workspace: Workspace, words: list[str], options: dict[str, list[str]]) -> Json:
    commands = _commands(workspace)
    if not words:
        return commands.status()  # type: ignore[no-any-return]
    if words == ["-"]:
        return commands.report(_standard_input())  # type: ignore[no-any-return]
    if words[0] == "add" and words[1:]:
        return commands.plan(words[1:])  # type: ignore[no-any-return]
    if len(words) != 2:
        raise BadInput("usage", "which task became what?", "tenuto feature task 2 completed --next 3")
    payload: Json = {
        "type": "task_update", "taskId": _number(words[0]), "newStatus": words[1],
        "filesCreated": options.get("--file", []), "timestamp": workspace.clock(),
    }  # fmt: skip
    if "--next" in options:
        payload["nextTaskId"] = _number(options["--next"][-1])
    return commands.report(payload)  # type: ignore[no-any-return]


def status(workspace: Workspace, words: list[str], options: dict[str, list[str]]) -> Json:
    return _commands(workspace).status()  # type: ignore[no-any-return]


def resume(workspace: Workspace, words: list[str], options: dict[str, list[str]]) -> Json:
    return _commands(workspace).resume((options.get("--session") or [session(os.environ)])[-1])  # type: ignore[no-any-return]


def cancel(workspace: Workspace, words: list[str], options: dict[str, list[str]]) -> Json:
    return _commands(workspace).cancel(" ".join(words))  # type: ignore[no-any-return]


def commit(workspace: Workspace, words: list[str], options: dict[str, list[str]]) -> Json:
    from tenuto.entrypoints.feature_commit import commit_staged, find_commit

    commands = _commands(workspace)
    commands.refuse_commit()
    message = "\n\n".join([*options.get("-m", []), *options.get("--message", [])])
    if message:
        made, said = commit_staged(workspace.root, message), message
    else:
        made, said = find_commit(workspace.root, (options.get("--hash") or ["HEAD"])[-1])
    return commands.commit(made, said)  # type: ignore[no-any-return]


VERBS = {
    "start": start, "answer": answer, "task": task, "status": status, "resume": resume, "cancel": cancel,
    "commit": commit, "done": done, "skip": skip,
}  # fmt: skip


def show(verb: str, answer: Json, as_json: bool) -> None:
    if as_json:
        from tenuto.entrypoints.envelope import success

        sys.stdout.write(success(answer) + "\n")
        return
    from tenuto.entrypoints.inert import inert

    if verb == "resume":
        sys.stdout.write(inert(answer["context"], "\n") + "\n")
        return
    feature, counted = answer["state"]["currentFeature"], answer["tasks"]
    lines = [f"{feature['name']}: {answer['phase']} ({answer['status']})"]
    if verb in ("status", "task"):
        lines += [f"  {phase:15}{state}" for phase, state in answer["state"]["phases"].items()]
        lines += [f"  task {t['id']}: {t['description']} ({t['status']})" for t in answer["state"]["tasks"]]
        lines.append(f"  {counted['completed']} of {counted['total']} tasks completed; state in {FILE}")
    if answer["paused"]:
        lines.append(f"  paused since {answer['paused']['at']}: {answer['paused']['reason']}")
    sys.stdout.write("\n".join(inert(line) for line in lines) + "\n")


def _commands(workspace: Workspace) -> Any:
    return workspace.feature_state


def _number(word: str) -> Any:
    return int(word) if word.isdecimal() else word


def _standard_input() -> Json:
    try:
        given = loads_strict(sys.stdin.buffer.read(1 << 20))
    except NotJson as problem:
        raise BadInput("not-json", f"the payload is not JSON: {problem}") from None
    if not isinstance(given, dict):
        raise BadInput("not-json", "the payload is no object")
    return given
