"""A DONE counts only with a receipt. Each false claim here is made by a real process, and found out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tenuto
from tenuto.agents.roster import Roster
from tenuto.encoding import dumps
from tenuto.engine.begin import Place, start
from tenuto.engine.gates import answer_question
from tenuto.engine.loop import Engine
from tenuto.errors import Refused
from tenuto.knowledge.definitions import load
from tests.support.trusting import trust

if TYPE_CHECKING:
    from tenuto.workspace.settings import Settings

D = "docs/feature/add-dark-mode"
PIPELINE = """
name: small
documents: docs/feature/{slug}
shown_as: feature_docs
memory: run
given: [initial-request.md, memory.md]
steps:
"""
ONE = """
  - id: design
    number: "1"
    agent: {role: designer, out: design.md, memory: write}
    retry: {ERROR: 1}
    on: {ERROR: halt}
"""
GROUP = """
  - id: research
    number: "1"
    cluster:
      members:
        - {role: researcher, mode: focused, focus: architecture, out: research/architecture.md}
        - {role: researcher, mode: focused, focus: impact, out: research/impact.md}
      quorum: 1
      retry: {ERROR: 0}
    on: {ERROR: halt}
"""
PLAN = """
  - id: planning
    number: "1"
    agent: {role: planner, out: plan.md, memory: write}
    retry: {ERROR: 1}
    on: {ERROR: halt}
  - id: implementation
    number: "2"
    waves: {plan: plan.md, roles: [{role: implementer}], default: implementer}
    on: {NOT_DONE: halt}
"""
KNOWLEDGE = """
  - id: review
    number: "1"
    agent: {role: r-knowledge, out: review/r-knowledge.md, optional: [decisions.md], append_only: decisions.md}
    retry: {ERROR: 0}
    on: {ERROR: halt}
"""
CHECKED = """
  - id: build
    number: "1"
    agent: {role: v-build, out: v-build.md, checks: [{name: build, run: %s, time_limit: %s}]}
    retry: {ERROR: 0}
    on: {ERROR: halt}
"""


class Ground:
    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "repository"
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        (self.root / "code.txt").write_text("code\n")
        (self.root / ".tenuto" / "pipelines").mkdir(parents=True)

    def drive(
        self,
        steps: str,
        answers: str,
        settings: Settings | None = None,
        before: Any = None,
        place: Place | None = None,
        switches: Any = None,
    ) -> Any:
        (self.root / ".tenuto" / "pipelines" / "small.yaml").write_text(PIPELINE + steps)
        subprocess.run(["git", "-C", str(self.root), "add", "."], check=True)
        subprocess.run(["git", "-C", str(self.root), "commit", "-q", "-m", "begin"], check=True)
        script = self.folder / "answers.yaml"
        script.write_text("answers:\n" + answers)
        trust(self.root)
        self.workspace = tenuto.open(str(self.root))
        name = start(self.workspace, "Add dark mode", "small", place=place, switches=switches)["id"]
        if before:
            before(self.root / D)
        return Engine(self.workspace, name, Roster(f"scripted:{script}"), settings or {}).drive()


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ("files: {}", f"the output {D}/design.md does not exist"),
        (f"files: {{{D}/design.md: ''}}", f"the output {D}/design.md is empty"),
        (f"files: {{{D}/design.md: '  '}}", f"the output {D}/design.md is empty"),
        (f"run: mkdir -p {D}; ln -s /etc/passwd {D}/design.md\n    files: {{}}", "is a link that leads outside"),
        (f"run: mkdir -p {D}; mkdir {D}/design.md\n    files: {{}}", f"the output {D}/design.md does not exist"),
    ],
    ids=["missing", "empty", "blank", "link", "folder"],
)
def test_a_done_without_its_output_is_an_error_with_the_reason_and_is_retried(
    ground: Ground, lie: str, reason: str
) -> None:
    """The next attempt is told why the last one did not count."""
    run = ground.drive(ONE, f"  - for: {{try: 1}}\n    {lie}\n  - for: {{try: 2}}\n    run: rm -rf {D}/design.md\n")
    first, second = run["attempts"].values()
    assert (first["verdict"], second["verdict"], run["status"]) == ("ERROR", "DONE", "completed")
    assert first["summary"].startswith("claimed DONE, but ") and reason in first["summary"]
    assert second["extra"]["why_again"] == first["summary"]


def test_an_output_that_was_there_before_and_not_written_is_no_output(ground: Ground) -> None:
    def before(folder: Path) -> None:
        (folder / "design.md").write_text("from before\n")

    run = ground.drive(ONE, "  - for: {}\n    files: {}\n", before=before)
    assert run["status"] == "failed" and "was not written" in run["attempts"]["design-1-designer-1"]["summary"]


def test_an_output_written_again_with_the_same_bytes_counts(ground: Ground) -> None:
    """A second build report may say what the first said; it was still written."""

    def before(folder: Path) -> None:
        (folder / "design.md").write_text("same\n")

    run = ground.drive(ONE, f'  - for: {{}}\n    files: {{{D}/design.md: "same\\n"}}\n', before=before)
    assert run["status"] == "completed"


ITEMS = PLAN.replace("out: plan.md", "out: [plan.md, tasks/*.md]").replace(
    "plan: plan.md", "plan: plan.md, items: tasks/*.md"
)
HALT, ON = "on: {NOT_DONE: halt}", "on: {NOT_DONE: {route: [{implementation: failing}], at_most: 1, then: halt}}"


def planned(plan: str = "", /, **files: str) -> str:
    """The planner's answer: items, and which files each of them is about."""
    plan = plan or "## Wave 1\n" + "".join(f"- {name.strip('_')} (depends_on: none)\n" for name in files)
    tasks = {f"{D}/tasks/{name.strip('_')}.md": f"# {name}\n**files:** {text}\n" for name, text in files.items()}
    return f"  - for: {{role: planner}}\n    files: {dumps({f'{D}/plan.md': plan, **tasks})}\n"


def notes(ground: Ground, run: Any) -> list[str]:
    with ground.workspace.journal.read() as reader:
        return [
            event["text"] for event in reader.events(run["id"]) if event["type"] == "Noted" and "files" in event["text"]
        ]


def said(run: Any) -> dict[str, str]:
    return {a["item"]: a["summary"] for a in run["attempts"].values() if a["item"]}


@pytest.mark.parametrize("isolated", [False, True])
def test_who_is_done_with_an_item_and_changed_none_of_its_files_is_an_error(ground: Ground, isolated: bool) -> None:
    """The one that names no files has claimed nothing that could be looked at."""
    answers = planned(a="a.txt", b="b.txt, code.txt", c="code.txt", d="") + (
        "  - for: {item: b}\n    run: echo more >> b.txt\n  - for: {role: implementer}\n    files: {}\n"
    )
    run = ground.drive(ITEMS, answers, place=Place("worktree" if isolated else ""))
    verdicts = {attempt["item"]: attempt["verdict"] for attempt in run["attempts"].values() if attempt["item"]}
    assert verdicts == {"a": "ERROR", "b": "DONE", "c": "ERROR", "d": "DONE"} and run["status"] == "failed"
    assert said(run)["a"] == "claimed DONE, but none of its item's files exists: a.txt"
    assert said(run)["c"].startswith("claimed DONE, but none of its item's files changed since the run began: code.txt")
    assert notes(ground, run) == []


@pytest.mark.parametrize("isolated", [False, True])
def test_an_item_whose_work_an_earlier_item_did_is_done_and_that_is_said(ground: Ground, isolated: bool) -> None:
    plan = "## Wave 1\n- a (depends_on: none)\n## Wave 2\n- b (depends_on: a)\n"
    answers = (
        planned(plan, a="code.txt", b="code.txt")
        + "  - for: {item: a}\n    run: echo more >> code.txt\n  - for: {item: b}\n    files: {}\n"
    )
    run = ground.drive(ITEMS, answers, place=Place("worktree" if isolated else ""))
    assert run["status"] == "completed"
    assert notes(ground, run) == [
        "implementation-1-implementer.b-1 says DONE and changed none of its item's files: code.txt"
    ]


def test_what_an_earlier_attempt_left_is_there_for_the_next_one(ground: Ground) -> None:
    """It failed after it had done the work, or was lost: whoever looks again finds nothing left to do."""
    answers = planned(a="code.txt") + (
        "  - for: {item: a, visit: 1}\n    run: echo more >> code.txt\n    reply: 'ERROR: the tests hang'\n  - "
        "for: {item: a}\n    files: {}\n"
    )
    run = ground.drive(ITEMS.replace(HALT, ON), answers)
    assert [a["verdict"] for a in run["attempts"].values() if a["item"]] == ["ERROR", "DONE"] and run[
        "status"
    ] == "completed"


def test_what_a_failed_attempt_left_on_a_branch_of_its_own_is_not_there(ground: Ground) -> None:
    answers = planned(a="code.txt") + (
        "  - for: {item: a, visit: 1}\n    run: echo more >> code.txt\n    reply: 'ERROR: the tests hang'\n  - "
        "for: {item: a}\n    files: {}\n"
    )
    run = ground.drive(ITEMS.replace(HALT, ON), answers, place=Place("worktree"))
    assert [a["verdict"] for a in run["attempts"].values() if a["item"]] == ["ERROR", "ERROR"]


def test_work_that_was_there_before_the_run_is_claimed_in_words_and_said(ground: Ground) -> None:
    """Not for files that do not exist: nothing can have been there."""
    answers = (
        planned(a="code.txt", b="b.txt")
        + "  - for: {role: implementer}\n    files: {}\n    reply: 'DONE: Nothing to do: line 1 has it'\n"
    )
    run = ground.drive(ITEMS, answers)
    assert {a["item"]: a["verdict"] for a in run["attempts"].values() if a["item"]} == {"a": "DONE", "b": "ERROR"}
    assert notes(ground, run) == [
        (
            "implementation-1-implementer.a-1 says DONE and changed none of its item's files: code.txt; it says: "
            "Nothing to do: line 1 has it"
        )
    ]


def test_a_file_that_git_does_not_see_counts_when_it_was_written(ground: Ground) -> None:
    (ground.root / ".gitignore").write_text("*.env\n")
    answers = (
        planned(a="a.env", b="b.env")
        + "  - for: {item: a}\n    run: echo KEY=1 > a.env\n  - for: {item: b}\n    files: {}\n"
    )
    run = ground.drive(ITEMS, answers)
    assert {a["item"]: a["verdict"] for a in run["attempts"].values() if a["item"]} == {"a": "DONE", "b": "ERROR"}


def test_an_agent_with_an_output_of_its_own_is_held_to_that(ground: Ground) -> None:
    """Whoever writes tests or a report for an item need not change the item's files; it is said where they did not."""
    steps = ITEMS.replace("{role: implementer}", "{role: implementer, mode: task, out: 'report-{item}.md'}")
    run = ground.drive(steps, planned(a="code.txt"))
    assert run["status"] == "completed" and len(notes(ground, run)) == 1


def test_a_scripted_agent_without_an_answer_does_the_item(ground: Ground) -> None:
    run = ground.drive(ITEMS, planned(a="code.txt, new/b.txt"))
    assert run["status"] == "completed" and notes(ground, run) == []
    assert (ground.root / "code.txt").read_text().startswith("code\n") and (ground.root / "new/b.txt").exists()


def test_a_false_done_that_persists_takes_the_route_of_an_error(ground: Ground) -> None:
    run = ground.drive(ONE, "  - for: {}\n    files: {}\n")
    assert run["status"] == "failed" and len(run["attempts"]) == 2


def test_a_forbidden_write_in_a_shared_tree_fails_everyone_then_running_and_names_them(ground: Ground) -> None:
    gone = ground.folder / "gone"
    answers = (
        f"  - for: {{outputs: '*architecture*'}}\n    run: echo x >> code.txt; touch {gone}\n"
        f"  - for: {{outputs: '*impact*'}}\n    run: until [ -e {gone} ]; do sleep 0.01; done\n"
    )
    run = ground.drive(GROUP, answers)
    assert {attempt["verdict"] for attempt in run["attempts"].values()} == {"ERROR"}
    summaries = [attempt["summary"] for attempt in run["attempts"].values()]
    assert all("code.txt" in said for said in summaries)
    assert any(
        "research-1-researcher-architecture-1, research-1-researcher-impact-1 were running" in said
        for said in summaries
    )


def test_an_agent_that_commits_what_it_must_not_touch_is_found_out_all_the_same(ground: Ground) -> None:
    commit = "git -c user.name=u -c user.email=u@localhost commit -qam x"
    run = ground.drive(ONE, f"  - for: {{}}\n    run: echo x >> code.txt; {commit}\n")
    assert "code.txt" in run["attempts"]["design-1-designer-1"]["summary"]


def test_the_retry_is_not_blamed_for_what_the_first_attempt_did(ground: Ground) -> None:
    run = ground.drive(ONE, "  - for: {try: 1}\n    run: echo x >> code.txt\n")
    assert [attempt["verdict"] for attempt in run["attempts"].values()] == ["ERROR", "DONE"]


def test_memory_written_by_parallel_members_is_undone_and_fails_those_running(ground: Ground) -> None:
    gone = ground.folder / "gone"
    answers = (
        f"  - for: {{outputs: '*architecture*'}}\n    run: echo mine >> {D}/memory.md; touch {gone}\n"
        f"  - for: {{outputs: '*impact*'}}\n    run: until [ -e {gone} ]; do sleep 0.01; done\n"
    )
    run = ground.drive(GROUP, answers)
    assert {attempt["verdict"] for attempt in run["attempts"].values()} == {"ERROR"}
    assert all("memory.md" in attempt["summary"] for attempt in run["attempts"].values())
    assert "mine" not in (ground.root / D / "memory.md").read_text()


def test_an_unreadable_memory_is_a_warning_and_the_run_goes_on(ground: Ground) -> None:
    run = ground.drive(ONE, f"  - for: {{}}\n    run: head -c 100 /dev/zero > {D}/memory.md\n")
    assert run["status"] == "completed", run["attempts"]
    assert (ground.root / D / "memory.md").read_text().startswith("# Operational Memory")


def test_an_append_only_file_keeps_its_old_bytes_as_prefix(ground: Ground) -> None:
    def before(folder: Path) -> None:
        (folder / "decisions.md").write_text("- old\n")

    run = ground.drive(
        KNOWLEDGE,
        f"  - for: {{}}\n    run: echo '- new' >> {D}/decisions.md\n    files: {{{D}/review/r-knowledge.md: x}}\n",
        before=before,
    )
    assert run["status"] == "completed" and (ground.root / D / "decisions.md").read_text() == "- old\n- new\n"


def test_an_append_only_file_that_became_a_link_is_put_back_and_what_it_led_to_stays(ground: Ground) -> None:
    away = ground.folder / "theirs"
    away.write_text("theirs\n")

    def before(folder: Path) -> None:
        (folder / "decisions.md").write_text("- old\n")

    answers = f"  - for: {{}}\n    run: ln -sf {away} {D}/decisions.md\n    files: {{{D}/review/r-knowledge.md: x}}\n"
    run = ground.drive(KNOWLEDGE, answers, before=before)
    decisions = ground.root / D / "decisions.md"
    assert away.read_text() == "theirs\n"
    assert not decisions.is_symlink() and decisions.read_text() == "- old\n"
    assert "may only be appended to" in run["attempts"]["review-1-r-knowledge-1"]["receipt"]["problem"]


def test_a_link_is_no_output_and_the_agent_that_left_it_is_told(ground: Ground) -> None:
    """Also one that it need not have written: the run is not stopped by it."""
    (ground.folder / "theirs").write_text("theirs\n")
    answers = (
        f"  - for: {{}}\n    run: ln -s {ground.folder}/theirs {D}/decisions.md\n    files: "
        f"{{{D}/review/r-knowledge.md: x}}\n"
    )
    run = ground.drive(KNOWLEDGE, answers)
    problem = run["attempts"]["review-1-r-knowledge-1"]["receipt"]["problem"]
    assert problem == f"the output {D}/decisions.md is a link, or lies behind one"


@pytest.mark.parametrize("reply", ["DONE: tidied", "ERROR: gave up"])
def test_an_append_only_file_that_was_rewritten_is_put_back_whatever_the_verdict(ground: Ground, reply: str) -> None:
    def before(folder: Path) -> None:
        (folder / "decisions.md").write_text("- old\n")

    answers = (
        f"  - for: {{}}\n    run: echo '- mine' > {D}/decisions.md\n    files: {{{D}/review/r-knowledge.md: x}}\n  "
        f"  reply: '{reply}'\n"
    )
    run = ground.drive(KNOWLEDGE, answers, before=before)
    assert run["status"] == "failed" and (ground.root / D / "decisions.md").read_text() == "- old\n"
    assert "may only be appended to" in run["attempts"]["review-1-r-knowledge-1"]["receipt"]["problem"]


@pytest.mark.parametrize("strict", [False, True])
def test_planner_limits_are_warnings_or_send_the_plan_back_under_strict_plan(ground: Ground, strict: bool) -> None:
    """Four production files where three are allowed. The planner is told which limit, and asked again."""
    files = {f"{D}/plan.md": "- 01-a (depends_on: none)\n", f"{D}/tasks/01-a.md": "**files:** a.py, b.py, c.py, d.py\n"}
    steps = PLAN.replace("out: plan.md", "out: [plan.md, tasks/*.md]").replace(
        "plan: plan.md", "plan: plan.md, items: tasks/*.md, limits: {files: 3}, strict: strict_plan"
    )
    answers = f"  - for: {{role: planner}}\n    files: {dumps(files)}\n"
    run = ground.drive(f"{steps}switches: {{strict_plan: false}}\n", answers, switches={"strict_plan": strict})
    said = "item 01-a has 4 production files; the limit is 3"
    if strict:
        assert run["status"] == "failed" and "implementation" not in run["steps"]
        first, second = run["attempts"].values()
        assert said in first["summary"] and second["extra"]["why_again"] == first["summary"]
        return
    assert run["status"] == "completed"
    with ground.workspace.journal.read() as reader:
        assert said in [note for e in reader.events(run["id"]) if e["type"] == "ItemsPlanned" for note in e["notes"]]


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ("- 01-a (depends_on: 02-b)\n        - 02-b (depends_on: 01-a)", "01-a"),
        ("- 01-a (depends_on: 07-nobody)", "07-nobody"),
        ("nothing to do", "no item was found in plan.md"),
    ],
    ids=["cycle", "unknown id", "no items"],
)
def test_a_plan_that_cannot_be_carried_out_makes_the_planners_done_false(
    ground: Ground, plan: str, reason: str
) -> None:
    answers = (
        f"  - for: {{role: planner, try: 1}}\n    files:\n      {D}/plan.md: |\n        {plan}\n  - for: "
        f"{{role: planner}}\n    files: {{{D}/plan.md: '- 01-a (depends_on: none)'}}\n"
    )
    run = ground.drive(PLAN, answers)
    first = run["attempts"]["planning-1-planner-1"]
    assert first["verdict"] == "ERROR" and reason in first["summary"]
    assert run["status"] == "completed" and list(run["items"]) == ["01-a"]


def test_a_plan_in_the_planners_form_comes_back_line_by_line(ground: Ground) -> None:
    """The planner hears which line, what is wrong there and what is wanted; its second plan is carried out."""
    wrong = "# Plan\n\n```tenuto-plan\n- id: 01-a\n  wave: one\n- id: 02-b\n  wave: 2\n  depend_on: [01-a]\n```\n"
    right = wrong.replace("one", "1").replace("depend_on", "depends_on")
    answers = (
        f"  - for: {{role: planner, try: 1}}\n    files: {dumps({f'{D}/plan.md': wrong})}\n"
        f"  - for: {{role: planner}}\n    files: {dumps({f'{D}/plan.md': right})}\n"
    )
    run = ground.drive(PLAN, answers)
    first, second = list(run["attempts"].values())[:2]
    assert first["verdict"] == "ERROR" and second["extra"]["why_again"] == first["summary"]
    assert "plan.md:5: wave must be a whole number from 1 on, and is 'one'; write for example" in first["summary"]
    assert "plan.md:8: no field is called 'depend_on'; did you mean 'depends_on'?" in first["summary"]
    assert run["status"] == "completed" and run["items"]["02-b"]["depends_on"] == ["01-a"]


REPLAN = """
  - id: planning
    number: "1"
    agent: {role: planner, out: [plan.md, tasks/*.md], memory: write}
    modes: {replan: {out: plan.md, optional: tasks/*.md, if_present: verifier.md}}
    retry: {ERROR: 0}
    on: {ERROR: halt}
  - id: implementation
    number: "2"
    waves: {plan: plan.md, items: tasks/*.md, roles: [{role: implementer}], default: implementer}
    on: {NOT_DONE: {go_on: verification}}
  - id: verification
    number: "3"
    agent: {role: v-aggregator, out: verifier.md}
    on:
      NEEDS_REVISION: {route: [{planning: replan}, {implementation: due}, verification], at_most: 1, then: halt}
      ERROR: halt
"""


def test_a_replan_may_write_plan_md_only_and_drops_what_it_does_not_list(ground: Ground) -> None:
    """02-b failed and is left out of the new plan: its task file is still there, is named, and is not run."""
    one = "## Wave 1\n- 01-a (depends_on: none)\n"
    both = planned(f"{one}- 02-b (depends_on: none)\n", **{"01-a": "", "02-b": ""})
    answers = (
        both.replace("{role: planner}", "{role: planner, visit: 1}")
        + f"  - for: {{role: planner}}\n    files: {dumps({f'{D}/plan.md': one})}\n"
        "  - for: {item: 02-b}\n    reply: 'ERROR: it cannot be done'\n"
        f"  - for: {{role: v-aggregator, visit: 1}}\n    files: {{{D}/verifier.md: x}}\n"
        "    reply: 'NEEDS_REVISION: 02-b failed'\n"
    )
    run = ground.drive(REPLAN, answers)
    assert run["status"] == "completed", run["attempts"]
    assert [a["item"] for a in run["attempts"].values() if a["item"]] == ["01-a", "02-b"] and list(run["items"]) == [
        "01-a"
    ]
    with ground.workspace.journal.read() as reader:
        planned_twice = [event["notes"] for event in reader.events(run["id"]) if event["type"] == "ItemsPlanned"]
    assert planned_twice == [[], ["tasks/02-b.md is not listed in the plan; it is not run"]]


def test_the_replan_of_eight_step_must_write_the_plan_and_may_write_task_files() -> None:
    planning = next(step for step in load("eight-step")["steps"] if step["id"] == "planning")
    assert planning["kind"] == "agent"
    assert planning["agent"]["out"] == ["plan.md", "tasks/*.md"]
    replan = planning["modes"]["replan"]
    assert (replan["out"], replan["optional"]) == (["plan.md"], ["tasks/*.md"])


def test_a_check_is_run_by_the_engine_and_its_output_is_kept(ground: Ground) -> None:
    run = ground.drive(CHECKED % ("'echo building; echo broken >&2; exit 3'", 60), "  - for: {}\n")
    attempt = run["attempts"]["build-1-v-build-1"]
    assert attempt["verdict"] == "ERROR" and "exit status 3" in attempt["summary"] and "broken" in attempt["summary"]
    [check] = attempt["receipt"]["checks"]
    assert (check["exit"], Path(check["log"]).read_text()) == (3, "building\nbroken\n")


def test_a_check_that_passes_leaves_a_receipt(ground: Ground) -> None:
    run = ground.drive(CHECKED % ("'true'", 60), "  - for: {}\n")
    assert run["status"] == "completed"
    assert [(c["name"], c["exit"], c["reason"]) for c in run["attempts"]["build-1-v-build-1"]["receipt"]["checks"]] == [
        ("build", 0, "")
    ]


def test_the_time_limit_of_a_check_binds_its_whole_tree(ground: Ground) -> None:
    """The daemon it left is gone when the verdict is there."""
    pid = ground.folder / "pid"
    run = ground.drive(
        CHECKED % (f"'setsid sh -c \"echo \\$\\$ > {pid}; exec sleep 3600\" & sleep 3600'".replace("\\$", "$"), 5),
        "  - for: {}\n",
    )
    assert "the time limit of 5 s was reached" in run["attempts"]["build-1-v-build-1"]["summary"]
    assert not Path(f"/proc/{int(pid.read_text())}").exists()


def test_a_check_does_not_see_the_users_environment(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it runs may be what an agent wrote."""
    monkeypatch.setenv("SECRET_TOKEN", "canary")
    run = ground.drive(CHECKED % ("'! env | grep canary'", 60), "  - for: {}\n")
    assert run["status"] == "completed"


def test_what_a_check_leaves_behind_is_nobody_elses_doing(ground: Ground) -> None:
    """Two members with checks that write into the tree: neither is blamed for the other's build."""
    members = GROUP.replace(
        "out: research/architecture.md", "out: research/architecture.md, checks: [{name: a, run: 'echo a > built-a'}]"
    )
    members = members.replace(
        "out: research/impact.md", "out: research/impact.md, checks: [{name: b, run: 'echo b > built-b'}]"
    )
    run = ground.drive(members, "  - for: {}\n")
    assert {attempt["verdict"] for attempt in run["attempts"].values()} == {"DONE"}, run["attempts"]


def test_a_check_runs_when_no_agent_works_in_the_tree(ground: Ground) -> None:
    """One member has ended and wants its build; the other still writes. The build waits."""
    busy, attempts = ground.folder / "busy", ground.root / ".git/tenuto/attempts/add-dark-mode"
    ended, begun = (
        attempts / "research-1-researcher-architecture-1" / name
        for name in ("1/result.json", "checks/check-a-1/result.json")
    )
    members = GROUP.replace("architecture.md", f"architecture.md, checks: [{{name: a, run: 'test ! -e {busy}'}}]")
    wait = f"until [ -e {ended} ]; do sleep 0.01; done; for n in $(seq 50); do [ -e {begun} ] || sleep 0.01; done"
    answers = f"  - for: {{outputs: '*impact*'}}\n    run: touch {busy}; {wait}; rm {busy}\n"
    run = ground.drive(members, answers)
    assert [attempt["verdict"] for attempt in run["attempts"].values()] == ["DONE", "DONE"], run["attempts"]


def test_an_agent_that_puts_back_what_it_wrote_is_heard_again(ground: Ground) -> None:
    """Its retry is told what was wrong, and may undo it: that is no second forbidden change."""
    script = f"""
  - for: {{role: designer, try: 1}}
    run: echo mine > code.txt; mkdir -p {D}; echo one > {D}/design.md
    files: {{}}
  - for: {{role: designer}}
    run: echo code > code.txt; echo two > {D}/design.md
    files: {{}}
"""
    run = ground.drive(ONE, script)
    assert run["status"] == "completed", [one["summary"] for one in run["attempts"].values()]


def test_a_question_where_the_pipeline_allows_none_is_an_error(ground: Ground) -> None:
    """Nobody is asked for an answer that would not be heard; it is retried and routed as any other ERROR."""
    run = ground.drive(ONE, "  - for: {role: designer}\n    reply: 'QUESTION: which colour?'\n")
    assert run["status"] == "failed"
    assert [one["verdict"] for one in run["attempts"].values()] == ["ERROR", "ERROR"]
    assert (
        run["failure"]["error"]
        == "design ended with ERROR (designer): it asked a person, which it may not: which colour?"
    )


def test_a_question_too_many_is_an_error(ground: Ground) -> None:
    run = ground.drive(
        ONE.replace("memory: write", "memory: write, questions: 1"),
        "  - for: {role: designer}\n    reply: 'QUESTION: which colour?'\n",
    )
    assert (run["status"], run["pause"]["kind"]) == ("paused", "question")
    answer_question(ground.workspace, run["id"], "blue")
    run = Engine(ground.workspace, run["id"], Roster(f"scripted:{ground.folder}/answers.yaml"), {}).drive()
    assert run["status"] == "failed"
    assert [one["verdict"] for one in run["attempts"].values()] == ["QUESTION", "ERROR", "ERROR"]


def test_an_agent_that_floods_its_output_is_heard_by_its_end(ground: Ground) -> None:
    """Only the end of a reply is read for its verdict: nobody waits while thirty megabytes are searched for one."""
    run = ground.drive(ONE, "  - for: {role: designer}\n    fault: flood 40\n")
    assert run["status"] == "completed"


def test_a_log_of_the_run_inside_its_own_tree_is_nobodys_doing(ground: Ground) -> None:
    """`tenuto run ... > run.log`: the file grows while agents work, and none of them is blamed."""
    ground.drive(
        GROUP,
        (
            "  - for: {outputs: '*impact*'}\n    run: '[ ! -e run.log ] || until grep -q DONE run.log; do sleep "
            "0.01; done'\n"
        ),
    )
    words = [
        sys.executable,
        "-m",
        "tenuto",
        "run",
        "Another one",
        "--pipeline",
        "small",
        "--agent",
        f"scripted:{ground.folder}/answers.yaml",
    ]
    around = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with (ground.root / "run.log").open("w") as log:
        done = subprocess.run(
            words, cwd=ground.root, env=around, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False
        )
    assert done.returncode == 0
    assert "ERROR" not in (ground.root / "run.log").read_text()


@pytest.mark.parametrize("isolated", [False, True])
def test_a_plan_may_name_files_shortly_and_their_agents_may_change_what_is_meant(
    ground: Ground, isolated: bool
) -> None:
    """As planners do: without the folder, without the ending. A file that is there by that very path is meant, and
    no other."""
    for name in ("agents/spec.agent.md", "agents/ct-security.agent.md", "sub/code.txt", "parts/one.txt"):
        (ground.root / name).parent.mkdir(exist_ok=True)
        (ground.root / name).write_text("old\n")
    write = "\n".join(
        f"  - for: {{item: {name}}}\n    run: mkdir -p $(dirname {path}); echo new >> {path}"
        for name, path in {
            "a": "agents/spec.agent.md",
            "b": "agents/ct-security.agent.md",
            "c": "sub/code.txt",
            "d": "parts/two.txt",
            "e": f"{D}/design.md",
        }.items()
    )
    answers = planned(a="spec.agent.md", b="ct-security", c="code.txt", d="parts", e="design.md") + write + "\n"
    run = ground.drive(
        ITEMS.replace("default: implementer", "default: implementer, at_once: 1"),
        answers,
        place=Place("worktree" if isolated else ""),
    )
    verdicts = {a["item"]: a["verdict"] for a in run["attempts"].values() if a["item"]}
    assert verdicts == {"a": "DONE", "b": "DONE", "c": "ERROR", "d": "DONE", "e": "ERROR"}, said(run)
    assert "outside the boundary were changed: sub/code.txt" in said(run)["c"] and "design.md" in said(run)["e"]


@pytest.mark.parametrize("where", [f"{D}/design.md", "code.txt"])
def test_a_file_that_nobody_could_read_to_its_end_is_an_error_and_no_end_of_the_engine(
    ground: Ground, where: str
) -> None:
    """300 GiB of nothing, which take no room on the disk: the next attempt may put it right."""
    answers = (
        f"  - for: {{try: 1}}\n    run: mkdir -p {D}; echo x > {D}/design.md; truncate -s 300G {where}\n    files: "
        f"{{}}\n"
    )
    run = ground.drive(ONE, answers + "  - for: {try: 2}\n    run: git checkout code.txt\n")
    first, second = run["attempts"].values()
    assert f"files of more than 256 MiB were written, which nobody can keep: {where}" in first["summary"]
    assert (first["verdict"], second["verdict"], run["status"]) == ("ERROR", "DONE", "completed")


@pytest.mark.parametrize("isolated", [False, True])
def test_nor_is_it_merged_or_committed(ground: Ground, isolated: bool) -> None:
    answers = planned(a="big.bin") + "  - for: {item: a}\n    run: truncate -s 300G big.bin\n    files: {}\n"
    run = ground.drive(ITEMS, answers, place=Place("worktree" if isolated else "shared", own_branch=True))
    assert (
        "files of more than 256 MiB were written, which nobody can keep: big.bin" in said(run)["a"]
        and run["status"] == "failed"
    )
    told = subprocess.run(
        ["git", "-C", str(ground.root), "log", "--all", "--format=", "--name-only"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "big.bin" not in told and f"{D}/summary.md" in told


def test_a_state_file_that_nobody_could_read_to_its_end_is_refused_by_name(ground: Ground) -> None:
    """Nothing hangs and nothing is lost: whoever moves it away goes on with the agent's result."""
    with pytest.raises(Refused, match=f"{D}/memory.md has 322122547200 bytes"):
        ground.drive(ONE, f"  - for: {{}}\n    run: truncate -s 300G {D}/memory.md\n")
    (ground.root / D / "memory.md").unlink()
    run = Engine(ground.workspace, "add-dark-mode", Roster(f"scripted:{ground.folder / 'answers.yaml'}"), {}).drive()
    assert run["status"] == "completed" and len(run["attempts"]) == 1
