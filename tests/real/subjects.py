"""Who is held to the contract of test_contract.py, and how each is made to play a scene.

A subject says how its agent is spelled, what environment its program needs, and what happens in each scene that it can
play:

    done        writes out.md, says DONE: wrote it
    revise      writes out.md, says NEEDS_REVISION: not good yet
    unproven    says DONE, and has written nothing
    talk        says something that is no verdict
    hang        has begun, and goes on only when `go` exists
    half-way    has written half.md, and waits for `go`; when told that it was interrupted it writes out.md and says
                DONE: went on
    limit       a usage limit that ends at a stated time
    busy        a rate limit that does not say when it ends; the second time it works
    passing     the model is overloaded; the second time it works
    lasting     the model refuses the request for good
    garbage     what the model answers is nothing the program knows
    cut         the model's answer ends in the middle, every time

To add an agent: make a subclass of ModelSubject, say what differs, and put it into SUBJECTS.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.real.conftest import Lab
from tests.real.model import Asked, Model

LATER = int(time.time()) // 86400 * 86400 + 20 * 86400 + 26_800  # seconds: in twenty days, at 07:26:40
WHEN_LATER = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(LATER))
GOES_ON = "You were interrupted"


class Subject:
    name = ""
    scenes: tuple[str, ...] = ("done", "revise", "unproven", "talk", "hang", "half-way", "limit")
    usage: dict[str, int] = {}  # noqa: RUF012  # after `done`
    until = LATER * 1000
    """When the usage limit of `limit` is taken to end, in milliseconds."""
    goes_on = False
    """It takes up what an interrupted attempt had said; others start over."""

    def __init__(self, lab: Lab, folder: Path, find: Callable[[str], str]) -> None:
        self.lab, self.folder, self.find = lab, folder, find
        self.work = folder / "repository"
        self.go = folder / "go"
        self.prepare()

    def prepare(self) -> None:
        """Skip here where the program is not installed."""

    def spelling(self, scene: str) -> str:
        raise NotImplementedError

    def environment(self, scene: str) -> dict[str, str]:
        raise NotImplementedError

    def play(self, scene: str) -> None:
        """Before the agent starts."""
        raise NotImplementedError

    def wait_until_begun(self) -> None:
        """Until the agent of `hang` or `half-way` has got as far as it gets."""
        raise NotImplementedError

    def wait(self, path: Path) -> None:
        self.wait_for(path.exists, str(path))

    def wait_for(self, so: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + 280
        while not so():
            if time.monotonic() > end:
                raise TimeoutError(f"{what} never came")
            time.sleep(0.02)


class CommandSubject(Subject):
    name = "command"
    scenes = (*Subject.scenes, "lasting", "garbage")

    def spelling(self, scene: str) -> str:
        return f"command:sh '{self.folder}/agent.sh'"

    def environment(self, scene: str) -> dict[str, str]:
        return self.lab.environment("claude")

    def play(self, scene: str) -> None:
        self.lab.model({})
        wait = f"while [ ! -e '{self.go}' ]; do sleep 0.05; done"
        again = f"if [ -e '{self.folder}/begun' ]; then echo x > out.md; echo 'DONE: started over'; exit; fi"
        scripts = {
            "done": "echo x > out.md; echo 'DONE: wrote it'",
            "revise": "echo x > out.md; echo 'NEEDS_REVISION: not good yet'",
            "unproven": "echo 'DONE: nothing'",
            "talk": "echo I think it works",
            "hang": f"touch '{self.folder}/begun'; {wait}",
            "half-way": f"{again}; touch '{self.folder}/begun'; {wait}",
            "limit": f"echo 'PARKED: {WHEN_LATER} the usage limit is reached'",
            "lasting": "echo x > out.md; echo 'DONE: wrote it'; echo 'this model does not exist' >&2; exit 1",
            "garbage": "echo x > out.md; printf '\\377\\000\\033[2J half DONE'",
        }
        (self.folder / "agent.sh").write_text(scripts[scene] + "\n")

    def wait_until_begun(self) -> None:
        self.wait(self.folder / "begun")


class ScriptedSubject(Subject):
    name = "scripted"
    usage = {"tokens": 120, "micro_usd": 7}  # noqa: RUF012

    def spelling(self, scene: str) -> str:
        return f"scripted:{self.folder}/answers.yaml"

    def environment(self, scene: str) -> dict[str, str]:
        return self.lab.environment("claude")

    def play(self, scene: str) -> None:
        self.lab.model({})
        waits = f'run: touch "{self.folder}/begun" && while [ ! -e "{self.go}" ]; do sleep 0.05; done\n    files: {{}}'
        told = {
            "done": 'files: {out.md: "x\\n"}\n    reply: "DONE: wrote it"\n    usage: {tokens: 120, micro_usd: 7}',
            "revise": 'files: {out.md: "x\\n"}\n    reply: "NEEDS_REVISION: not good yet"',
            "unproven": 'files: {}\n    reply: "DONE: nothing"',
            "talk": 'files: {}\n    reply: "I think it works"',
            "hang": waits,
            "half-way": waits,
            "limit": f'files: {{}}\n    reply: "PARKED: {WHEN_LATER} the usage limit is reached"',
        }[scene]
        again = (
            '  - for: {try: 2}\n    files: {out.md: "x\\n"}\n    reply: "DONE: started over"\n'
            if scene == "half-way"
            else ""
        )
        (self.folder / "answers.yaml").write_text(f'answers:\n{again}  - for: {{role: "*"}}\n    {told}\n')

    def wait_until_begun(self) -> None:
        self.wait(self.folder / "begun")


class ModelSubject(Subject):
    """A real program, and a model that plays the scene."""

    scenes = (*Subject.scenes, "busy", "passing", "lasting", "garbage", "cut")
    goes_on = True
    program = ""
    kind = ""
    """Whose environment of the lab it gets: claude, codex, gemini, opencode."""
    record = ("", "")
    """Where the program writes its conversation down, and what is in there once the first half is: it does that a
    moment after it happened, and who is killed before has only begun."""
    model: Model

    def prepare(self) -> None:
        self.find(self.program)

    def spelling(self, scene: str) -> str:
        return self.name

    def environment(self, scene: str) -> dict[str, str]:
        return self.lab.environment(self.kind)

    def write(self, name: str, text: str) -> Any:
        """The program's own tool call that writes a file of the work directory."""
        raise NotImplementedError

    def limit(self) -> Any:
        """The turn that tells of a usage limit which ends at LATER."""
        raise NotImplementedError

    def turns(self, scene: str) -> Any:
        done = [["Writing.", self.write("out.md", "x\n")], ["DONE: wrote it"]]
        return {
            "done": done,
            "revise": [done[0], ["NEEDS_REVISION: not good yet"]],
            "unproven": [["DONE: nothing"]],
            "talk": [["I think it works"]],
            "hang": [{"until": self.go, "say": ["DONE: late"]}],
            "half-way": self.half_way,
            "limit": [self.limit()],
            "busy": self.once(
                {
                    "status": 429,
                    "type": "rate_limit_error",
                    "message": "too many requests",
                    "headers": {"retry-after": "3600"},
                }
            ),
            "passing": self.once({"status": 529, "type": "overloaded_error", "message": "Overloaded"}),
            "lasting": [
                {"fail": {"status": 400, "type": "invalid_request_error", "message": "this model does not exist"}}
            ],
            "garbage": [{"garbage": True, "say": ["DONE: half"]}],
            "cut": [{"cut": True, "say": ["DONE: half of it"]}],
        }[scene]

    def once(self, failure: dict[str, Any]) -> Callable[[Asked], Any]:
        """The first request fails; whatever is asked later works."""

        def answer(asked: Asked) -> Any:
            if self.model.count("work") == 1:
                return {"fail": failure}
            return ["DONE: wrote it"] if asked.results else [self.write("out.md", "x\n")]

        return answer

    def half_way(self, asked: Asked) -> Any:
        if GOES_ON in asked.latest:
            written = (self.work / "out.md").exists()
            return ["DONE: went on"] if written else [self.write("out.md", "x\n")]
        return (
            {"until": self.go, "say": ["DONE: late"]} if asked.results else [self.write("half.md", "the first half\n")]
        )

    def play(self, scene: str) -> None:
        self.model = self.lab.model({"work": self.turns(scene)})

    def wait_until_begun(self) -> None:
        self.model.wait_until_asked(lambda one: bool(one.asked.results) or self.model.scripts["work"] != self.half_way)
        folder, word = self.record
        if folder and self.model.scripts["work"] == self.half_way:
            kept = self.lab.home / folder
            self.wait_for(lambda: any(word in one.read_text() for one in kept.rglob("*.jsonl")), f"{word} in {kept}")


class ClaudeSubject(ModelSubject):
    name = program = kind = "claude"
    usage = {"tokens": 240, "micro_usd": 1600}  # noqa: RUF012
    record = (".claude/projects", "tool_result")

    def environment(self, scene: str) -> dict[str, str]:
        more = {"CLAUDE_CODE_MAX_RETRIES": "0"}
        if scene == "limit":  # such limits are those of a subscription
            more |= {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-none", "ANTHROPIC_API_KEY": ""}
        return {**super().environment(scene), **more}

    def spelling(self, scene: str) -> str:
        return "claude:model=claude-opus-5-5"

    def write(self, name: str, text: str) -> Any:
        return {"tool": "Write", "input": {"file_path": str(self.work / name), "content": text}}

    def limit(self) -> Any:
        unified = {
            "status": "rejected",
            "reset": str(LATER),
            "representative-claim": "five_hour",
            "overage-status": "rejected",
        }
        headers = {f"anthropic-ratelimit-unified-{name}": value for name, value in unified.items()}
        return {"fail": {"status": 429, "type": "rate_limit_error", "message": "limit reached", "headers": headers}}


SUBJECTS: list[type[Subject]] = [CommandSubject, ScriptedSubject, ClaudeSubject]


def playing(scene: str) -> pytest.MarkDecorator:
    """The subjects that can play this scene, as parameters of a test."""
    from tests.real.other_subjects import OTHERS

    able = [subject for subject in [*SUBJECTS, *OTHERS] if scene in subject.scenes]
    return pytest.mark.parametrize("subject", able, ids=[subject.name for subject in able], indirect=True)
