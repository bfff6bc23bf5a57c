"""Promise 9: declared secrets never reach disk, logs or output; an agent's environment is the allow-list exactly.

Canaries sit in the environment that Tenuto is started with: some that nobody declared, which no agent may see, some
that the settings hand on (`environment:`), which agents get and nobody else, and some that are declared secret
(`secrets:`), which an agent says out loud, also while it kills its engine, which are told to every command that takes a
text, and which somebody writes into the state files that the next command takes in. After a run, with every way to look
at it, none of them stands in any file or in anything that was said. Others slip in through every door there is (a
request, a reply, an artifact, memory, a question's answer, a hook, the other dialects); `tenuto forget` takes them out,
and the chain still verifies. Not tried: one that stands in the name of a run, where `forget` refuses.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from prove.frame import ROOT, Amount, Progress, Result, dice, place, repository, spread
from prove.gated import tenuto_words
from tenuto.encoding import dumps, loads

# The allow-list as docs and users know it, not as the code has it.
ENVIRONMENT = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TMPDIR",
    "TZ",
    "NO_COLOR",
)
# Variables in which people really keep them; the others have made-up names.
KNOWN = (
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "NPM_TOKEN",
    "DATABASE_URL",
    "SSH_AUTH_SOCK",
    "LD_PRELOAD_KEY",
    "PYTHONSTARTUP_KEY",
    "HOME_TOKEN",
    "LC_SECRET",
    "TENUTO_TOKEN",
    "TENUTO_SECRET",
)
WORLDS, EACH = 5, 40
HIDDEN, DECLARED = 18, 8  # of a world's canaries; the others slip in. Half of the declared ones are secret
PIPELINE = """\
name: small
documents: docs/feature/{slug}
shown_as: feature_docs
memory: run
given: [initial-request.md, memory.md]
steps:
  - {id: setup, action: [write-request, initialize-memory]}
  - id: draft
    agent: {role: designer, out: design.md, memory: write, questions: 1}
    retry: {ERROR: 1}
    on: {ERROR: halt}
  - id: build
    agent: {role: implementer, out: built.md}
    on: {ERROR: halt}
"""
# It keeps its environment where Tenuto does not look, and leaks what it was told to.
AGENT = """#!/bin/sh
cat > /dev/null
cp /proc/self/environ {folder}/seen-$TENUTO_ATTEMPT
if [ "$TENUTO_ROLE" = designer ] && [ ! -e {folder}/asked ]; then
  touch {folder}/asked; echo "QUESTION: is {question} right, or $DECLARED_5_KEY?"; exit 0
fi
if [ "$TENUTO_ROLE" = designer ] && [ ! -e {folder}/killed ]; then
  touch {folder}/killed; echo "- [designer, step-2] Before the end: $DECLARED_7_KEY" >> docs/feature/x/memory.md; kill -9 $(cat {folder}/engine)
fi
for path in $TENUTO_OUTPUTS; do mkdir -p "$(dirname $path)"; echo "# $TENUTO_ROLE: {artifact}" > $path; done
[ "$TENUTO_ROLE" = designer ] && printf '%s\\n' "- [designer, step-2] {memory}" "- [designer, step-2] Lesson → $DECLARED_6_KEY" >> docs/feature/x/memory.md
echo "to the log: {error} $DECLARED_4_KEY$DECLARED_5_KEY" >&2
echo "I was given $DECLARED_6_KEY, and $DECLARED_7_KEY"
echo "DONE: {reply} $DECLARED_4_KEY"
"""  # noqa: E501
LOOKS = (
    ["list"],
    ["status", "x"],
    ["history", "x"],
    ["logs", "x"],
    ["artifacts", "x"],
    ["memory", "x"],
    ["metrics", "x", "--format", "detailed"],
    ["show", "x"],
    ["plan"],
    ["doctor"],
    ["verify"],
    ["status", "x", "--json"],
    ["export"],
    ["watch", "x"],
    ["page", "x"],
    ["runs"],
    ["costs"],
    ["diff", "x"],
    ["replay", "x"],
    ["repair"],
    ["adopt"],
    ["clean"],
    ["context", "LIST"],
    ["context", "SUMMARY task: y"],
    ["context", "QUERY task: y question: with"],
    ["flow", "get_current_state", "T-1"],
    ["staged", "read"],
    ["feature", "status"],
    ["feature", "resume"],
    ["next", "x", "--json"],
)
# What somebody may edit, and commands that take such an edit in.
TAKEN_IN = ("manifest.json", "history.md", "memory.md", "state.json", "flow-state.json")
NEXT = (
    ["context", "START_PHASE phase: spec task: w"],
    ["flow", "update_delegation", "T-1", "--agent", "deep_research", "--task", "more"],
    ["staged", "stop"],
    ["hook", "SubagentStart"],
    ["feature", "resume"],
    ["pause", "second"],
    ["repair"],
)
DOORS = (
    "question",
    "artifact",
    "memory",
    "error",
    "reply",
    "request",
    "answer",
    "hook",
    "store",
    "note",
    "feedback",
    "prompt",
    "ticket",
    "staged",
)


class Found(NamedTuple):
    canaries: int
    said: int
    violations: list[str]


def prove(amount: Amount, tell: Progress) -> Result:
    numbers = range(WORLDS if amount.full else 1)
    seen = list(spread(_try, numbers, min(amount.jobs, 2), tell))
    violations = [words for one in seen for words in one.violations]
    figures = {
        "canaries": str(sum(one.canaries for one in seen)),
        "commands that spoke": str(sum(one.said for one in seen)),
        "found again": str(len(violations)),
    }
    return Result(sum(one.canaries for one in seen), violations, figures)


def control(amount: Amount) -> Result:
    """Before anything is forgotten, what slipped in is found: the search works."""
    with place() as folder:
        world = World(folder, 0)
        world.leak()
        return Result(len(world.slipped), list(world.traces(world.slipped.values())), {})


def _try(number: int) -> Found:
    with place() as folder:
        world = World(folder, number)
        world.leak()
        shut = [*world.tell(), *world.leave()]
        world.look()
        found = [f"world {number}: {words}: refused, so that was not tried" for words in shut]
        found += [
            f"world {number}: {words}"
            for words in (*world.environments(), *world.traces([*world.hidden.values(), *world.declared.values()]))
        ]
        shut = [door for door, canary in world.slipped.items() if not world.traces([canary])]
        if shut:
            found.append(f"world {number}: nothing slipped in by {', '.join(shut)}: forgetting that was not tried")
        world.forget()
        found += [f"world {number}: after forget: {words}" for words in world.traces(world.slipped.values())]
        sound = world.tenuto("verify")
        if sound.returncode:
            found.append(f"world {number}: after forget, verify ends with {sound.returncode}: {sound.stderr[-300:]!r}")
        return Found(EACH, len(world.said), found)


class World:
    def __init__(self, folder: Path, number: int) -> None:
        chance = dice("secrets", number)
        canaries = [f"canary{chance.randrange(16**12):012x}" for _ in range(EACH)]
        self.folder, self.root, self.home = folder, repository(folder / "repository"), folder / "home"
        names = [*KNOWN, *(f"HIDDEN_{i}_TOKEN" for i in range(HIDDEN))]
        self.hidden = dict(zip(names, canaries[:HIDDEN], strict=False))
        self.declared = {f"DECLARED_{i}_KEY": text for i, text in enumerate(canaries[HIDDEN : HIDDEN + DECLARED])}
        self.slipped = dict(zip(DOORS, canaries[HIDDEN + DECLARED :], strict=True))
        self.said: list[tuple[str, str]] = []
        self.home.mkdir()
        (self.root / ".tenuto" / "pipelines").mkdir(parents=True)
        (self.root / ".tenuto" / "pipelines" / "small.yaml").write_text(PIPELINE)
        (self.root / ".tenuto" / "config.yaml").write_text(
            f"environment: [{', '.join(list(self.declared)[:4])}]\nsecrets: [{', '.join(list(self.declared)[4:])}]\n"
        )
        agent = folder / "agent.sh"
        text = AGENT.replace("{folder}", str(folder))
        for door, canary in self.slipped.items():
            text = text.replace("{" + door + "}", canary)
        agent.write_text(text)
        agent.chmod(0o755)
        (folder / "witness").mkdir()
        self.tenuto("trust", "--yes")

    @property
    def outer(self) -> dict[str, str]:
        """What Tenuto is started with."""
        kept = {name: os.environ[name] for name in ("PATH", "LC_ALL", "GIT_CONFIG_NOSYSTEM") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.home),
            "TERM": "dumb",
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
            **self.hidden,
            **self.declared,
        }

    def tenuto(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        told = ["sh", "-c", f'echo $$ > {self.folder}/engine; exec "$@"', "sh", *tenuto_words(*words)]
        done = subprocess.run(
            told, cwd=self.root, env=self.outer, input=given, capture_output=True, text=True, timeout=120, check=False
        )
        self.said.append((" ".join(words), done.stdout + done.stderr))
        return done

    def leak(self) -> None:
        s = self.slipped
        agent = ("--agent", f"command:{self.folder}/agent.sh")
        self.tenuto("run", f"Add {s['request']}", "--pipeline", "small", "--name", "x", *agent)
        self.tenuto("answer", "x", f"yes, {s['answer']}")
        self.tenuto("run", *agent)  # its agent kills it, with a secret in a file that the next one takes in
        self.tenuto("run", *agent)
        self.tenuto("context", "INIT task: y")
        self.tenuto("context", f"SET_GATE task: y gate: design prompt: with {s['prompt']}")
        self.tenuto("flow", "initialize_workflow", "T-1", "--context_summary", f"with {s['ticket']}")
        self.tenuto("flow", "update_delegation", "T-1", "--agent", "deep_research", "--task", f"find {s['ticket']}")
        self.tenuto("staged", "init", "--task", "explore")
        self.tenuto("staged", "record-output", "0", "--content-file", "-", given=f"explored {s['staged']}\n")
        self.tenuto("feature", "start", "z", "--session", "s")
        payload = {"session_id": "s", "agent_type": "t", "agent_id": "a1", "cwd": str(self.root)}
        self.tenuto("hook", "SubagentStart", given=dumps({**payload, "hook_event_name": "SubagentStart"}))
        ended = {"hook_event_name": "SubagentStop", "last_assistant_message": f"DONE: {s['hook']}"}
        self.tenuto("hook", "SubagentStop", given=dumps({**payload, **ended}))
        import tenuto

        workspace = tenuto.open(str(self.root))
        with workspace.turn() as turn:
            turn.do("x", {"do": "Note", "text": f"noted {s['note']}", "key": f"note:{s['note']}"})
            turn.store("x", "dump", "docs/feature/x/dump.txt", f"KEY={s['store']}\n".encode())
            turn.do("x", {"do": "SetFlags", "flags": {"feedback": s["feedback"]}})
        workspace.journal.close()

    def tell(self) -> list[str]:
        """Secrets, to whoever takes a text. Returns the commands that did not take it."""
        secret = list(self.declared.values())[4:]
        told = (
            ("context", "INIT task: w"),
            ("context", f"STORE phase: spec task: w content: the key is {secret[0]}"),
            ("context", "INIT task: v"),
            ("context", f"SET_GATE task: v gate: design prompt: with {secret[1]}"),
            ("context", f"QUERY question: {secret[2]}"),
            ("flow", "update_delegation", "T-1", "--agent", "deep_research", "--task", f"find {secret[3]}"),
            ("staged", "record-output", "0", "--content-file", "-"),
            ("hook", "SubagentStart"),
            ("hook", "SubagentStop"),
            ("hook", "UserPromptSubmit"),
            ("run", f"Add {secret[0]}", "--pipeline", "small", "--start-only", "--name", "second"),
            ("answer", "x", secret[1]),
            ("status", secret[2]),
            ("memory", "add", "decision", f"use {secret[3]}"),
        )
        event = {
            "session_id": "s",
            "agent_type": "t",
            "agent_id": "a2",
            "cwd": str(self.root),
            "last_assistant_message": secret[0],
            "prompt": secret[1],
        }
        piped = f"explored {secret[1]}\n"
        done = [
            (
                words,
                self.tenuto(*words, given=dumps(event) if words[0] == "hook" else piped if words[-1] == "-" else ""),
            )
            for words in told
        ]
        return [" ".join(words[:2]) for words, one in done if one.returncode and words[0] not in ("answer", "status")]

    def leave(self) -> list[str]:
        """Secrets, in every file that somebody may edit and the next command takes in."""
        secret = list(self.declared.values())[4:]
        shown = [
            path
            for folder in ("docs", ".agents", ".ai-workspace")
            for path in (self.root / folder).rglob("*")
            if path.name in TAKEN_IN
        ]
        for number, path in enumerate((self.root / ".feature-state.json", *shown)):
            text, key = path.read_text(), secret[number % len(secret)]
            path.write_text(
                dumps({**loads(text), "note": f"the key is {key}"})
                if path.suffix == ".json"
                else f"{text}- by hand: {key}\n"
            )
        event = dumps({"session_id": "s", "agent_type": "t", "agent_id": "a3", "cwd": str(self.root)})
        done = [(words, self.tenuto(*words, given=event if words[0] == "hook" else "")) for words in NEXT]
        missing = sorted(set(TAKEN_IN) - {path.name for path in shown})
        return [*missing, *(" ".join(words[:2]) for words, one in done if one.returncode)]

    def look(self) -> None:
        for words in LOOKS:
            self.tenuto(*words)

    def forget(self) -> None:
        for canary in self.slipped.values():
            self.tenuto("forget", "-", given=canary + "\n")
        self.said.clear()
        self.look()

    # ---- what is found

    def environments(self) -> list[str]:
        """Every agent's environment: what is on the list and set, what is declared, what Tenuto tells it, and
        nothing else."""
        told = {f"TENUTO_{name}" for name in ("RUN", "STEP", "ATTEMPT", "ROLE", "ITEM", "OUTPUTS", "WORKDIR")}
        allowed = {name: value for name, value in self.outer.items() if name in ENVIRONMENT or name in self.declared}
        found = []
        seen = list(self.folder.glob("seen-*"))
        for path in seen:
            pairs = dict(entry.split("=", 1) for entry in path.read_text().rstrip("\0").split("\0"))
            pairs.pop("PWD", None)  # the shell's own
            pairs.pop("OLDPWD", None)
            pairs.pop("_", None)
            pairs.pop("SHLVL", None)
            ours = {name: pairs.pop(name) for name in told if name in pairs}
            if pairs != allowed or set(ours) != told:
                odd = sorted(set(pairs) ^ set(allowed)) + sorted(told - set(ours))
                found.append(f"{path.name}: the environment differs in {odd or 'a value'}")
        return found if len(seen) >= 3 else [*found, f"only {len(seen)} agents were seen"]

    def traces(self, canaries: object) -> list[str]:
        """Where one of them stands: a file below the repository or the home, or something that was said."""
        # By its end: an index keeps words that begin alike without their beginning.
        wanted = [text[-9:].encode() for text in canaries]  # type: ignore[attr-defined]
        found = []
        for path in (*self.root.rglob("*"), *self.home.rglob("*")):
            if path.is_file() and not path.is_symlink():
                body = path.read_bytes()
                found += [
                    f"{text.decode()} stands in {path.relative_to(self.folder)}" for text in wanted if text in body
                ]
        for words, text in self.said:
            found += [f"{canary.decode()} was said by tenuto {words}" for canary in wanted if canary.decode() in text]
        return found
