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

from tenuto.entrypoints.options import FLAG, TEXT, TEXTS, WORD, Command, Option, read_call
from tenuto.entrypoints.speak import open_here
from tenuto.errors import BadInput, NotFound, Refused, TenutoError
from tenuto.views.feature_state import FILE
from tenuto.workspace.guard import require_person, session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records.run import Json
    from tenuto.dialects.feature import FeatureCommands
    from tenuto.files.git import Answer
    from tenuto.workspace.workspace import Workspace


_NUMBER = Option("json")
TAKES = {
    "start": Command(
        ("name", "description..."),
        {"skip": TEXTS, "gate": TEXT, "files": TEXT, "verdicts": TEXT, "stop": TEXT, "session": TEXT},
        required=("name",),
        words_only=True,
    ),
    "answer": Command(("words[]",), {"approve": FLAG, "revise": TEXT, "feedback": TEXT}, words_only=True),
    "task": Command(
        ("words[]",),
        {
            "next": Option("json", "nextTaskId"),
            "file": Option("texts", "filesCreated"),
            "type": TEXT,
            "taskId": _NUMBER,
            "newStatus": TEXT,
            "nextTaskId": _NUMBER,
            "filesCreated": TEXTS,
            "filesModified": TEXTS,
            "timestamp": TEXT,
        },
    ),
    "status": Command(words_only=True),
    "resume": Command((), {"session": TEXT}, words_only=True),
    "cancel": Command(("reason...",), {"reason": TEXT}, words_only=True),
    "commit": Command((), {"m": TEXTS, "message": Option("texts", "m"), "hash": WORD}, words_only=True),
    "done": Command(("phase",), required=("phase",), words_only=True),
    "skip": Command(("phase",), required=("phase",), words_only=True),
}


def main(words: list[str]) -> int:
    call = read_call("feature", "command", TAKES, words, __doc__ or "")
    if call is None:
        return 0
    workspace = open_here()
    answer = VERBS[call.name](workspace, call.fields)
    for warning in workspace.warnings:
        sys.stderr.write(f"tenuto: {warning}\n")
    show(call.name, answer, call.as_json)
    return 0


def start(workspace: Workspace, fields: Json) -> Json:
    from tenuto.hooks.gates import parse, remember

    hooks = parse([f"{key}={fields[key]}" for key in ("gate", "files", "verdicts", "stop") if key in fields])
    of = fields.get("session") or session(os.environ)
    answer: Json = _commands(workspace).start(
        fields["name"], fields.get("description", ""), skip=fields.get("skip", []), hooks=hooks, session=of
    )
    remember(workspace, hooks, answer["run"])
    return answer


def answer(workspace: Workspace, fields: Json) -> Json:
    words = fields.get("words", [])
    if words[:1] == ["approval"]:
        return _approval(workspace, words[1:], fields)
    if not words:
        raise BadInput("usage", "what is answered?", 'tenuto feature answer problem "Passwords are forgotten"')
    if all("=" in word for word in words):
        answers = dict(word.split("=", 1) for word in words)
    elif len(words) > 1:
        answers = {words[0]: " ".join(words[1:])}
    else:
        raise BadInput("missing-value", f"what is the answer to {words[0]}?", f"{words[0]} TEXT; {words[0]}= erases it")
    return _commands(workspace).answer(answers)


def _approval(workspace: Workspace, words: list[str], fields: Json) -> Json:
    require_person(workspace.caller, "give an approval", "tenuto feature answer approval --approve")
    who = os.environ.get("USER") or os.environ.get("LOGNAME") or f"uid {os.getuid()}"
    if "approve" in fields or words[:1] in (["approve"], ["approved"], ["yes"]):
        return _commands(workspace).approve(who, fields.get("feedback", ""))
    feedback = " ".join([fields.get("revise", ""), fields.get("feedback", ""), *words]).strip()
    if not feedback:
        raise BadInput("usage", "approved, or what is to be revised?", "tenuto feature answer approval --approve")
    return _commands(workspace).revise(who, feedback)


def done(workspace: Workspace, fields: Json) -> Json:
    return _commands(workspace).phase(fields["phase"])


def skip(workspace: Workspace, fields: Json) -> Json:
    return _commands(workspace).skip(fields["phase"])


def task(workspace: Workspace, fields: Json) -> Json:
    commands, words = _commands(workspace), fields.pop("words", [])
    if not words:
        return commands.task(fields) if fields else commands.status()
    if words[0] == "add" and words[1:] and not fields:
        return commands.plan(words[1:])
    if len(words) != 2:
        raise BadInput("usage", "which task became what?", "tenuto feature task 2 completed --next 3")
    payload: Json = {
        "type": "task_update",
        "taskId": _number(words[0]),
        "newStatus": words[1],
        "filesCreated": [],
        "timestamp": workspace.clock(),
    }
    return commands.task(payload | fields)


def status(workspace: Workspace, fields: Json) -> Json:
    return _commands(workspace).status()


def resume(workspace: Workspace, fields: Json) -> Json:
    return _commands(workspace).resume(fields.get("session") or session(os.environ))


def cancel(workspace: Workspace, fields: Json) -> Json:
    return _commands(workspace).cancel(fields.get("reason", ""))


def commit(workspace: Workspace, fields: Json) -> Json:
    commands = _commands(workspace)
    commands.refuse_commit()
    message = "\n\n".join(fields.get("m", []))
    if message:
        return commands.commit(commit_staged(workspace.root, message), message)
    commit_hash, subject = find_commit(workspace.root, fields.get("hash", "HEAD"))
    return commands.commit(commit_hash, subject)


VERBS = {
    "start": start,
    "answer": answer,
    "task": task,
    "status": status,
    "resume": resume,
    "cancel": cancel,
    "commit": commit,
    "done": done,
    "skip": skip,
}


def show(verb: str, answer: Json, as_json: bool) -> None:
    if as_json:
        from tenuto.entrypoints.speak import success

        sys.stdout.write(success(answer) + "\n")
        return
    from tenuto.encoding import escape_terminal

    if verb == "resume":
        sys.stdout.write(escape_terminal(answer["context"], "\n") + "\n")
        return
    feature, counted = answer["state"]["currentFeature"], answer["tasks"]
    lines = [f"{feature['name']}: {answer['phase']} ({answer['status']})"]
    if verb in ("status", "task"):
        lines += [f"  {phase:15}{state}" for phase, state in answer["state"]["phases"].items()]
        lines += [f"  task {t['id']}: {t['description']} ({t['status']})" for t in answer["state"]["tasks"]]
        lines.append(f"  {counted['completed']} of {counted['total']} tasks completed; state in {FILE}")
    if answer["paused"]:
        lines.append(f"  paused since {answer['paused']['at']}: {answer['paused']['reason']}")
    sys.stdout.write("\n".join(escape_terminal(line) for line in lines) + "\n")


def _commands(workspace: Workspace) -> FeatureCommands:
    from tenuto.dialects.feature import FeatureCommands

    return FeatureCommands(workspace)


def _number(word: str) -> int | str:
    return int(word) if word.isdecimal() else word


# ---- git's part of `tenuto feature commit` ----------------------------------


def commit_staged(root: str, message: str) -> str:
    """Commit what is staged, flushed to disk, and return its hash."""
    if _git(root, "diff", "--cached", "--quiet").status == 0:
        raise Refused("nothing-staged", "nothing is staged, so there is nothing to commit", "git add, then again")
    done = _git(root, "commit", "--quiet", "-m", message)
    if done.status:
        reason = done.errors or done.out.strip() or f"exit status {done.status}"
        raise TenutoError("commit-failed", f"git did not commit: {reason}", "see what git says, then again")
    return find_commit(root, "HEAD")[0]


def find_commit(root: str, name: str) -> tuple[str, str]:
    """(hash, subject) of a commit in this repository."""
    done = _git(root, "log", "-1", "--format=%H%n%s", "--end-of-options", name)
    found, _, subject = done.out.partition("\n")
    if done.status or not found:
        raise NotFound("no-such-commit", f"there is no commit {name!r} in this repository", "git log")
    return found, subject.strip()


def _git(root: str, *words: str) -> Answer:
    from tenuto.files import git

    answer = git.ask(root, *words)
    if answer.status == git.NOT_STARTED:
        raise NotFound("no-git", f"git cannot be started: {answer.errors}", "install git")
    return answer
