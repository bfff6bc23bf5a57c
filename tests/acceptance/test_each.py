"""`each`: a step for every element of a list, with real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenuto.engine.begin import start
from tests.acceptance.rehearsing import Stage
from tests.acceptance.test_command_steps import play, stage_with


def keys(run: Any, step: str) -> dict[str, str]:
    """What became of each element, by its key."""
    found = run["items"].values()
    return {item["extra"]["key"]: item["status"] for item in found if item["extra"].get("step") == step}


def resumed(stage: Stage, run: str) -> Any:
    with stage.workspace.turn() as turn:
        turn.do(run, {"do": "Resume", "decision": "retry"})
    return stage.drive(run)


def events(stage: Stage, run: str) -> list[Any]:
    with stage.workspace.journal.read() as reader:
        return list(reader.events(run))


def test_a_command_for_every_element_gets_its_fields_as_arguments(tmp_path: Path) -> None:
    """Each as one argument, whatever it holds; the key goes into names of files."""
    steps = """
params: {who: {type: list, default: [Ann Lee, "$(id); {slug}", Bo]}}
steps:
  - id: greet
    each: {param: who}
    command: {run: [printf, "%s|", "{each.value}", "{item}"], stdout: "said/{item}.txt"}
"""
    stage = stage_with(tmp_path, steps)
    run = play(stage)
    assert run["status"] == "completed", run["failure"]
    assert keys(run, "greet") == {"Ann-Lee": "completed", "id-slug": "completed", "Bo": "completed"}
    assert stage.text("docs/add-dark-mode/said/Ann-Lee.txt") == "Ann Lee|Ann-Lee|"
    assert stage.text("docs/add-dark-mode/said/id-slug.txt") == "$(id); {slug}|id-slug|"
    assert "said/Bo.txt" in run["artifacts"] and "greet-1-printf.Ann-Lee-1" in run["attempts"]


def test_two_steps_may_have_the_same_keys_and_each_does_its_own_work(tmp_path: Path) -> None:
    steps = """
params: {who: {type: list, default: [a, b]}}
steps:
  - {id: one, each: {param: who}, command: ["true"]}
  - {id: two, each: {param: who}, command: ["true"]}
"""
    run = play(stage_with(tmp_path, steps))
    assert run["status"] == "completed"
    assert (keys(run, "one"), keys(run, "two")) == ({"a": "completed", "b": "completed"},) * 2
    assert len(run["attempts"]) == 4


def test_an_agent_for_every_file_may_touch_that_file_only(tmp_path: Path) -> None:
    steps = """
steps:
  - id: mend
    each: {files: "src/*.py", cap: 1, when: {not: {element: stem, is: keep}}}
    agent: {role: implementer, out: "notes/{item}.md"}
"""
    answers = [
        {"for": {"item": "src-a.py"}, "files": {"src/a.py": "mended\n", "{out}": "x\n"}},
        {"for": {"item": "src-b.py"}, "files": {"src/keep.py": "taken\n", "{out}": "x\n"}},
    ]
    stage = stage_with(tmp_path, steps, answers)
    (stage.root / "src").mkdir()
    for name in ("a", "b", "keep"):
        (stage.root / f"src/{name}.py").write_text("old\n")
    run = play(stage)
    assert keys(run, "mend") == {"src-a.py": "completed", "src-b.py": "failed"}, "keep.py is left out"
    assert "outside" in run["attempts"]["mend-1-implementer.src-b.py-1"]["summary"]
    prompt = Path(stage.workspace.state) / "attempts/add-dark-mode/mend-1-implementer.src-a.py-1/1/prompt"
    assert "src-a.py: src/a.py" in prompt.read_text() and "notes/src-a.py.md" in prompt.read_text()


def test_rows_of_a_table_wait_for_each_other(tmp_path: Path) -> None:
    steps = """
existing: [modules.md]
steps:
  - id: port
    each: {table: modules.md, key: module, depends_on: needs}
    command: [sh, -c, 'echo "$0" >> order.txt', "{item}"]
    touches: order.txt
"""
    stage = stage_with(tmp_path, steps)
    table = "# Modules\n\n| Module | Needs |\n|---|---|\n| app | db, web |\n| web | db |\n| db | - |\n"
    (stage.root / "docs/add-dark-mode").mkdir(parents=True)
    (stage.root / "docs/add-dark-mode/modules.md").write_text(table)
    run = play(stage)
    assert run["status"] == "completed", run["failure"]
    assert stage.text("order.txt").split() == ["db", "web", "app"]


LISTS = {
    "a circle": ("| a | b |\n| b | a |", "these items wait for each other: a -> b -> a"),
    "unknown": (
        "| a | bb |\n| bbb | |",
        "element 1 (a) depends on 'bb', which is no key of the list; did you mean 'bbb'?",
    ),
    "twice": ("| a | |\n| A | |", "elements 1 ('a') and 2 ('A') have the same key 'A'"),
    "hostile": ("| ../../etc/passwd | |", "element 1 ('../../etc/passwd'): the key '../../etc/passwd' cannot be used"),
    "reserved": ("| nul | |", "some systems reserve it"),
    "dots": ("| a..b | |", "its dots are not where a name may have some"),
    "direction": ("| a\u202eb | |", "it holds the character U+202E"),
    "a dash": ("| -rf | |", "it begins with a dash"),
    "too many": ("\n".join(f"| m{n} | |" for n in range(6)), "the list has 6 elements; at most 5 are allowed"),
}


@pytest.mark.parametrize("case", LISTS)
def test_a_list_that_cannot_be_carried_out_is_refused_with_the_element(tmp_path: Path, case: str) -> None:
    rows, message = LISTS[case]
    steps = """
existing: [modules.md]
steps:
  - {id: port, each: {table: modules.md, key: module, depends_on: needs, max: 5}, command: ["true"]}
"""
    stage = stage_with(tmp_path, steps)
    (stage.root / "docs/add-dark-mode").mkdir(parents=True)
    (stage.root / "docs/add-dark-mode/modules.md").write_text(f"| Module | Needs |\n|---|---|\n{rows}\n")
    run = play(stage)
    assert run["status"] == "failed" and not run["attempts"]
    assert message in run["failure"]["error"]


def test_a_cluster_for_every_element_has_its_own_quorum_and_aggregator(tmp_path: Path) -> None:
    steps = """
params: {langs: {type: list, default: [de, fr]}}
steps:
  - id: judge
    each: {param: langs}
    cluster:
      quorum: 1
      members: [{role: researcher, id: a, out: "a-{item}.md"}, {role: researcher, id: b, out: "b-{item}.md"}]
    aggregate: {role: designer, id: all, out: "all-{item}.md"}
"""
    failing = [{"for": {"step": "judge", "item": "de", "outputs": "*b-de.md"}, "reply": "ERROR: no"}]
    failing += [{"for": {"step": "judge", "item": "fr", "role": "researcher"}, "reply": "ERROR: no"}]
    run = play(stage_with(tmp_path, steps, failing))
    assert keys(run, "judge") == {"de": "completed", "fr": "failed"}
    seats = [attempt["extra"]["seat"] for attempt in run["attempts"].values()]
    assert "all@judge.de" in seats and "all@judge.fr" not in seats, "too few outputs: no aggregator"


ONCE = """
params: {who: {type: list, default: [a, b, c]}}
steps:
  - id: work
    each: {param: who%s}
    command: [sh, -c, 'echo "$0" >> log; test "$0" != b || test -e mended', "{item}"]
    touches: log
    on: {ERROR: {pause: look}}
"""


def log(stage: Stage) -> list[str]:
    return sorted(stage.text("log").split())


def test_only_the_failing_ones_are_tried_again(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, ONCE % "")
    run = play(stage)
    assert (run["status"], keys(run, "work")["b"]) == ("paused", "failed")
    (stage.root / "mended").touch()
    run = resumed(stage, run["id"])
    assert run["status"] == "completed" and log(stage) == ["a", "b", "b", "c"]


def test_enough_that_ended_well_are_enough(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, ONCE % ", quorum: 60%")
    run = play(stage)
    assert run["status"] == "completed" and keys(run, "work")["b"] == "failed"
    ended = [event for event in events(stage, run["id"]) if event["type"] == "StepEnded"]
    assert ended[-1]["summary"] == "2 of 3 ended well; not: work.b"
    other = stage_with(tmp_path / "other", ONCE % ", quorum: 3")
    assert play(other)["status"] == "paused"


def test_after_an_error_no_further_element_starts_where_the_step_says_so(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, (ONCE % ", cap: 1, on_error: stop"))
    run = play(stage)
    assert run["status"] == "paused" and log(stage) == ["a", "b"]
    (stage.root / "mended").touch()
    assert resumed(stage, run["id"])["status"] == "completed" and log(stage) == ["a", "b", "b", "c"]


def test_an_empty_list_is_done_and_says_so(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, 'steps:\n  - {id: work, each: {lines: ["true"]}, command: ["false"]}\n')
    run = play(stage)
    ended = [event for event in events(stage, run["id"]) if event["type"] == "StepEnded"]
    assert (run["status"], ended[-1]["summary"]) == ("completed", "the list is empty: there was nothing to do")


def test_a_command_that_does_not_print_its_list_fails_the_step(tmp_path: Path) -> None:
    stage = stage_with(
        tmp_path,
        'steps:\n  - {id: work, each: {lines: [sh, -c, "echo a; exit 3"]}, command: ["true"], retry: {ERROR: 1}}\n',
    )
    run = play(stage)
    assert run["status"] == "failed" and list(run["attempts"]) == ["work-1-list-1", "work-1-list-2"]
    assert "there is no list" in run["failure"]["error"]


def test_a_field_of_a_result_is_a_list_whose_elements_have_fields(tmp_path: Path) -> None:
    steps = """
steps:
  - id: find
    command: [printf, '{"found": {"modules": [{"id": "web", "size": 3, "needs": ["db"]}, {"id": "db", "size": 1}]}}']
    result: {schema: {type: object}}
  - id: port
    each: {result: find, field: found.modules, key: id, depends_on: needs}
    command: {run: [echo, "{each.id} {each.size}"], stdout: "{item}.txt"}
"""
    stage = stage_with(tmp_path, steps)
    run = play(stage)
    assert run["status"] == "completed", run["failure"]
    assert stage.text("docs/add-dark-mode/web.txt") == "web 3\n"
    assert list(run["attempts"])[1:] == ["port-1-echo.db-1", "port-1-echo.web-1"]


def test_one_s_own_list_for_waves_and_a_document_of_its_lines(tmp_path: Path) -> None:
    steps = """
steps:
  - {id: find, command: {run: [printf, "x\\\\ny\\\\n"], stdout: found.txt}}
  - id: build
    waves: {each: {lines: found.txt}, roles: [{command: ["true"]}], order: barrier, record: built.json}
"""
    stage = stage_with(tmp_path, steps)
    run = play(stage)
    assert run["status"] == "completed", run["failure"]
    assert keys(run, "build") == {"x": "completed", "y": "completed"}
    assert '"build.x"' in stage.text("docs/add-dark-mode/built.json")


def test_a_hundred_thousand_lines_are_refused_and_say_what_to_do(tmp_path: Path) -> None:
    stage = stage_with(
        tmp_path, 'steps:\n  - {id: work, each: {lines: [seq, "100000"], max: 10000}, command: ["true"]}\n'
    )
    run = play(stage)
    assert (
        run["status"] == "failed"
        and "the list has 100000 elements; at most 10000 are allowed" in run["failure"]["error"]
    )
    assert list(run["attempts"]) == ["work-1-list-1"]


ENGINE = """
import sys
sys.path.insert(0, sys.argv[1])
import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.loop import Engine
print(Engine(tenuto.open(sys.argv[2]), sys.argv[3], Roster("command:true"), {}).drive()["status"])
"""


def test_killed_at_arbitrary_moments_no_element_that_ended_runs_twice(tmp_path: Path) -> None:
    """Each element asks for the engine's death, some of them, and goes on only when it is dead."""
    steps = """
cap: 2
steps:
  - id: work
    each: {lines: [seq, "8"]}
    command:
      - sh
      - -c
      - |
        echo "$0" >> log
        case $0 in 2|5|7) mkdir ask-$0 && until test -e dead-$0; do sleep 0.01; done;; esac
      - "{item}"
    touches: ["log", "ask-*", "dead-*"]
    retry: {LOST: 3}
  - {id: after, each: {param: who}, command: ["true"]}
params: {who: {type: list, default: [x, y]}}
"""
    stage = stage_with(tmp_path, steps)
    run = start(stage.workspace, "Add dark mode", "own")["id"]
    root = str(Path(__file__).resolve().parents[2])
    killed = 0
    while True:
        engine = subprocess.Popen([sys.executable, "-c", ENGINE, root, str(stage.root), run], stdout=subprocess.DEVNULL)
        while engine.poll() is None:
            asking = [
                n for n in (2, 5, 7) if (stage.root / f"ask-{n}").exists() and not (stage.root / f"dead-{n}").exists()
            ]
            if asking:
                engine.kill()
                engine.wait()
                killed += 1
                for n in asking:
                    (stage.root / f"dead-{n}").touch()
        if engine.returncode == 0:
            break
    found = stage.workspace.load(run)
    assert found["status"] == "completed", (found["failure"], [one["summary"] for one in found["attempts"].values()])
    assert killed >= 2
    assert log(stage) == [str(n) for n in range(1, 9)], "each once"
    assert {**keys(found, "work"), **keys(found, "after")} == dict.fromkeys(
        [*map(str, range(1, 9)), "x", "y"], "completed"
    )
