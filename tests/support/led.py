"""Lead a run as another orchestrator would, with agents that are functions: quick, real files, no process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.core.records.run import Run
from tenuto.engine.guided import Work, accept, hand_out
from tenuto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tenuto.workspace.settings import Settings

Answer = str | Callable[[Work], str]
"""The last line of the reply, or what acts and gives it. "" writes nothing and answers ERROR."""


class Led:
    """`answers`: patterns over attempts (step-visit-agent-try) -> an answer. Others write outputs and say DONE."""

    def __init__(
        self,
        workspace: Workspace,
        run: str,
        answers: Mapping[str, Answer],
        files: Mapping[str, str],
        settings: Settings,
    ) -> None:
        self.workspace, self.name, self.answers, self.files, self.settings = workspace, run, answers, files, settings
        self.handed: dict[str, Work] = {}  # every attempt, as it was handed out

    def play(self, most: int = 200) -> Run:
        for _ in range(most):
            run, works = hand_out(self.workspace, self.name, self.settings)
            if not works:
                return run
            for work in works:
                self.handed[work["attempt"]] = work
                accept(self.workspace, self.name, work["attempt"], {"reply": self.answer(work)}, self.settings)
        raise AssertionError("the run does not come to rest")

    def answer(self, work: Work) -> str:
        given = next(
            (one for pattern, one in self.answers.items() if fnmatchcase(work["attempt"], pattern)), "DONE: ok"
        )
        if given == "":
            return "ERROR: it could not be done"
        self.write(work)
        return given(work) if callable(given) else given

    def write(self, work: Work) -> None:
        for path in work["outputs"]:
            if "*" not in path:
                text = next(
                    (text for end, text in self.files.items() if path.endswith(end)), f"# By {work['attempt']}\n"
                )
                target = Path(work["workdir"]) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
                os.utime(target, ns=(1, len(self.handed)))  # written again, also where the text is the same
        for path, text in self.files.items():
            if path.startswith("tasks/") and any("tasks/*" in one for one in work["outputs"]):
                folder = os.path.dirname(next(one for one in work["outputs"] if "tasks/*" in one))
                target = Path(work["workdir"]) / folder / os.path.basename(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
                os.utime(target, ns=(1, len(self.handed)))

    def data(self, attempt: str, name: str) -> str:
        """What the attempt was told under this name."""
        mark, _, rest = self.handed[attempt]["prompt"].partition(f'<data name="{name}" mark="')[2].partition('">\n')
        return rest.partition(f'\n</data mark="{mark}">')[0]

    def inputs(self, attempt: str) -> list[str]:
        """The names of its inputs below the documents."""
        return [path.partition(f"/{self.name}/")[2] for path in self.handed[attempt]["inputs"]]
