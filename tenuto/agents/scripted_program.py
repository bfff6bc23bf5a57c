"""The process behind ScriptedAgent: finds the answer for this attempt, writes its files, replies or fails."""

from __future__ import annotations

import fnmatch
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable


Answer = TypedDict(
    "Answer",
    {
        "for": dict[str, str | int | float],
        "reply": str,
        "run": str,
        "fault": str,
        "wait": str,
        "files": dict[str, str],
        "usage": dict[str, int],
        "exit": int,
    },
    total=False,
)
"""One entry of `answers`."""


def main(script: str) -> int:
    answer = choose(read_script(script), dict(os.environ))
    code = os.environ.get("TENUTO_ITEM_FILES", "").splitlines()
    outputs = [line for line in os.environ["TENUTO_OUTPUTS"].splitlines() if line and line not in code]
    if "wait" in answer:
        while not Path(answer["wait"]).exists():
            time.sleep(0.02)
    if "run" in answer:
        subprocess.run(answer["run"], shell=True, check=True, stdout=sys.stderr)
    write_files(answer, outputs)
    if not {"files", "run", "fault"} & set(answer) and answer.get("reply", "DONE:").startswith("DONE:"):
        write_code(code)
    fail(str(answer.get("fault", "")))
    sys.stdout.write(answer.get("reply", f"DONE: {os.environ['TENUTO_ROLE']} did its part") + "\n")
    return answer.get("exit", 0)


def read_script(path: str) -> list[Answer]:
    from ruamel.yaml import YAML

    document = YAML(typ="safe", pure=True).load(Path(path).read_text(encoding="utf-8"))
    answers = (document or {}).get("answers", [])
    if not isinstance(answers, list):
        raise TypeError("`answers` is no list")
    for number, answer in enumerate(answers, 1):
        problem = wrong(answer)
        if problem:
            raise ValueError(f"answer {number}: {problem}")
    return answers


def wrong(answer: object) -> str:
    """Why it is no answer; nothing where it is one."""
    if not isinstance(answer, dict):
        return "it is no mapping"
    for key, value in answer.items():
        if key in TEXTS:
            if not isinstance(value, str):
                return f"{key}: {value!r} is no text; put it in quotes"
            if key == "fault" and not is_fault(value):
                return f"fault: there is no {value!r}; there are {', '.join(FAULTS)}, some with a number"
        elif key == "exit":
            if type(value) is not int or not 0 <= value <= 255:
                return f"exit: {value!r} is no exit status; a whole number up to 255"
        elif key not in MAPPINGS:
            return f"there is no {key!r}; there are {', '.join((*TEXTS, 'exit', *MAPPINGS))}"
        elif not isinstance(value, dict):
            return f"{key}: {value!r} is no mapping"
        else:
            fits, kind = MAPPINGS[key]
            bad = next((entry for entry in value.items() if not fits(*entry)), None)
            if bad is not None:
                return f"{key}: {bad[0]!r}: {bad[1]!r} is no {kind}"
    return ""


def is_fault(word: str) -> bool:
    kind, blank, number = word.partition(" ")
    return kind in FAULTS and (not blank or number.isdecimal())


FAULTS = ("hang", "exit", "signal", "flood", "silent", "daemon", "ignore-signals")
PLACES = ("role", "step", "member", "item", "try", "visit", "outputs")
TEXTS = ("reply", "run", "fault", "wait")
MAPPINGS: dict[str, tuple[Callable[[object, object], bool], str]] = {
    "for": (
        lambda name, value: name in PLACES and isinstance(value, (str, int, float)) and type(value) is not bool,
        f"place ({', '.join(PLACES)}: a word or a number)",
    ),
    "files": (lambda name, value: isinstance(name, str) and isinstance(value, str), "file and its text"),
    "usage": (
        lambda name, value: isinstance(name, str) and type(value) is int and value >= 0,
        "unit and a whole number",
    ),
}


def choose(answers: list[Answer], environment: dict[str, str]) -> Answer:
    here = {key: environment.get(f"TENUTO_{key.upper()}", "") for key in PLACES}
    for answer in answers:
        wanted = answer.get("for", {})
        if all(fnmatch.fnmatchcase(here[key], str(value)) for key, value in wanted.items()):
            return answer
    return {}


def write_files(answer: Answer, outputs: list[str]) -> None:
    files: dict[str, str] = answer.get("files", {})
    for name, text in files.items():
        here = name.replace("{run}", os.environ.get("TENUTO_RUN", ""))
        path = Path(here.replace("{out}", outputs[0] if outputs else "reply.md"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if "files" not in answer and answer.get("fault") != "silent":
        for output in outputs:
            path = Path(output.replace("*", "1"))
            path.parent.mkdir(parents=True, exist_ok=True)
            stamp = f"{os.environ['TENUTO_ATTEMPT']}\n"
            path.write_text(f"# {os.environ['TENUTO_ROLE']}\n\nWritten by {stamp}", encoding="utf-8")


def write_code(paths: list[str]) -> None:
    """A line at the end: what was there before stays."""
    for name in paths:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"# {os.environ['TENUTO_ATTEMPT']}\n")


def fail(fault: str) -> None:
    kind, _, number = fault.partition(" ")
    match kind:
        case "hang":
            while True:
                time.sleep(3600)
        case "exit":
            sys.exit(int(number or 1))
        case "signal":
            os.kill(os.getpid(), int(number or 9))
        case "flood":
            for _ in range(int(number or 64)):
                sys.stdout.write("x" * (1 << 20) + "\n")
        case "silent":
            sys.exit(0)
        case "daemon":
            subprocess.Popen(["sleep", "3600"], start_new_session=True)
        case "ignore-signals":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                time.sleep(3600)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
