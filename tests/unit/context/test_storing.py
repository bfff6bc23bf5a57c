"""STORE: which file, what is checked, and that nothing that stood there is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenuto.encoding import digest
from tenuto.errors import BadInput, NotFound
from tenuto.workspace.objects import stored_version
from tests.unit.context.conftest import TASKS, Repository, error

FOLDER = f"{TASKS}/t"


@pytest.fixture
def task(repository: Repository) -> Repository:
    repository.must("INIT task: t")
    return repository


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("STORE phase: architect", "architect.md"),
        ("STORE phase: spec", "spec.md"),
        ("STORE phase: implementation task_id: 1", "implementations/task-001.md"),
        ("STORE phase: implementation task_id: task-2", "implementations/task-002.md"),
        ("STORE phase: implementation task_id: 003", "implementations/task-003.md"),
        ("STORE phase: implementation task_id: wave-1", "implementations/wave-1.md"),
        ("STORE phase: implementation", "implementations/task-001.md"),
        ("STORE phase: tests task_id: 12", "tests/task-012.md"),
        ("STORE phase: test-results", "test-results.md"),
        ("STORE phase: impl-audit", "impl-audit.md"),
        ("STORE phase: design-audit iteration: 2", "design-audit.md"),
        ("STORE phase: architect-revision iteration: 1", "architect-revision-1.md"),
        ("STORE phase: architect-revision-2", "architect-revision-2.md"),
        ("STORE phase: implementation-fix iteration: 3", "implementation-fix-3.md"),
        ("STORE iteration: 3 phase: implementation-fix", "implementation-fix-3.md"),
    ],
)
def test_each_phase_has_its_file(task: Repository, text: str, file: str) -> None:
    record = task.ask(f"{text} content: some text\n")
    assert task.read(f"{FOLDER}/{file}") == "some text\n"
    assert record["path"] == f"{FOLDER}/{file}"
    assert record["sha256"] == digest(b"some text\n")
    assert f"{FOLDER}/{file}" in record["files_touched"]


def test_without_a_task_id_the_next_number_is_taken(task: Repository) -> None:
    task.must("STORE phase: implementation content: a", "STORE phase: implementation task_id: 7 content: b")
    task.write(f"{FOLDER}/implementations/task-009.md", "somebody's")
    task.must("STORE phase: implementation content: c")
    assert task.read(f"{FOLDER}/implementations/task-010.md") == "c"
    task.must("STORE phase: tests content: d")
    assert task.read(f"{FOLDER}/tests/task-001.md") == "d"


def test_refusals(task: Repository) -> None:
    assert task.say("STORE phase: architect-revision content: x") == error(
        "STORE phase: architect-revision requires an iteration number"
    )
    assert task.say("STORE phase: poem content: x").startswith(
        "STATUS: error\nERROR: Unknown phase: poem. Use architect,"
    )
    assert task.say("STORE phase: architect") == error("Missing required parameter: content")
    assert task.say("STORE phase: architect content:") == error("Missing required parameter: content")
    assert task.say("STORE phase: implementation-fix iteration: two content: x") == error(
        "Invalid iteration: two. Use a number from 1"
    )
    assert task.say("STORE phase: spec task_id: 1 content: x") == error(
        "STORE phase: spec takes no task_id; implementation, tests and implementation-fix do"
    )


def test_content_is_kept_word_for_word(task: Repository) -> None:
    content = "  indented\n\ttab\r\nphase: spec content: again \u00fc\u20ac\U0001f600  \n\n"
    task.must(f"STORE phase: architect content: {content}")
    assert (task.root / FOLDER / "architect.md").read_bytes() == content.encode()


def test_every_replaced_version_stays_readable_by_its_hash(task: Repository) -> None:
    texts = [f"version {number}\n" for number in range(12)]
    for text in texts:
        task.must(f"STORE phase: architect content: {text}")
    for text in texts:
        assert stored_version(task.workspace, digest(text.encode())) == text.encode()


def test_an_edit_of_an_artifact_is_taken_in_before_it_is_replaced(task: Repository) -> None:
    task.must("STORE phase: architect content: ours\n")
    task.write(f"{FOLDER}/architect.md", "theirs\n")
    task.must("STORE phase: architect content: ours again\n")
    assert task.read(f"{FOLDER}/architect.md") == "ours again\n"
    assert stored_version(task.workspace, digest(b"theirs\n")) == b"theirs\n"


def test_an_artifact_somebody_else_wrote_is_found_by_retrieve(task: Repository) -> None:
    task.write(f"{FOLDER}/architect.md", "# Design\n\n## Design Decisions\n\nWe use tabs.\n")
    assert "We use tabs." in task.say("RETRIEVE for_phase: spec")
    assert task.workspace.load("t")["artifacts"]["architect"]["by"] == "external"


def test_an_edited_artifact_is_found_by_its_new_words(task: Repository) -> None:
    task.must("STORE phase: architect content: # Design\n\nold words\n")
    task.write(f"{FOLDER}/architect.md", "# Design\n\nfresh wording\n")
    task.must("RETRIEVE for_phase: spec")
    assert task.ask("QUERY question: fresh")["passages"]
    assert not [p for p in task.ask("QUERY question: old")["passages"] if p["path"].endswith("architect.md")]


def test_provenance_is_recorded(task: Repository) -> None:
    task.must("STORE phase: design-audit iteration: 2 content: fine")
    artifact = task.workspace.load("t")["artifacts"]["design-audit"]
    assert (artifact["step"], artifact["attempt"], artifact["by"], artifact["at"]) == (
        "design-audit",
        "iteration-2",
        "ada",
        task.time,
    )


def test_a_content_file_is_stored(task: Repository, tmp_path: Path) -> None:
    (tmp_path / "spec.md").write_bytes(b"bytes \xff\x00 as they are")
    task.context.store("spec", content_file=str(tmp_path / "spec.md"))
    assert (task.root / FOLDER / "spec.md").read_bytes() == b"bytes \xff\x00 as they are"


def test_a_missing_content_file_is_named(task: Repository) -> None:
    with pytest.raises(Exception, match=r"Content file cannot be read: nowhere\.md"):
        task.context.store("spec", content_file="nowhere.md")


@pytest.mark.parametrize("name", ["a\0b", "half \ud83d"])
@pytest.mark.parametrize("phase", ["spec", "design-audit", "architect"])
def test_so_is_one_that_no_file_can_have_as_its_name(task: Repository, phase: str, name: str) -> None:
    with pytest.raises(NotFound, match="Content file cannot be read"):
        task.context.store(phase, content_file=name)


# ---- breakdowns ------------------------------------------------------------------------------------


def planned(*tasks: dict[str, object]) -> str:
    return f"# Design\n\n```json\n{json.dumps({'taskBreakdown': {'tasks': list(tasks)}}, indent=2)}\n```\n"


def test_a_breakdown_plans_items_and_waves(task: Repository) -> None:
    text = planned(
        {"id": 1, "name": "a", "files": ["a.py"], "dependencies": [], "description": "first"},
        {"id": 2, "name": "b", "files": ["b.py"], "dependencies": []},
        {"id": 3, "name": "c", "files": ["a.py"], "dependencies": [1, "2"]},
    )
    said = task.say(f"STORE phase: architect content: {text}")
    assert "3 tasks in 2 waves" in said
    run = task.workspace.load("t")
    assert [wave["items"] for wave in run["waves"]] == [["1", "2"], ["3"]]
    told = task.manifest("t")["waves"]
    assert told["task_breakdown"]["tasks"][0]["description"] == "first"
    assert [entry["waveNumber"] for entry in told["execution"]] == [1, 2]


@pytest.mark.parametrize(
    ("tasks", "reason"),
    [
        ([{"id": n, "files": []} for n in range(9)], "9 tasks, at most 8 are allowed"),
        ([{"id": 1, "dependencies": [2]}], "depends on '2'"),
        ([{"id": 1, "dependencies": [2]}, {"id": 2, "dependencies": [1]}], "wait for each other"),
        ([{"id": 1}, {"id": 1}], "the id 1 is used twice"),
        ([{"id": 1, "files": ["x"]}, {"id": 2, "files": ["./x"]}], "tasks 1 and 2 of one wave both change x"),
        ([{"name": "no id"}], "task number 1 has no id"),
        ([{"id": 1, "files": "x"}], "files of task 1 is not a list"),
    ],
)
def test_a_wrong_breakdown_is_refused_by_name_and_nothing_is_stored(
    task: Repository, tasks: list[dict[str, object]], reason: str
) -> None:
    said = task.say(f"STORE phase: architect content: {planned(*tasks)}")
    assert said.startswith("STATUS: error\nERROR: Invalid taskBreakdown: ")
    assert reason in said
    assert not (task.root / FOLDER / "architect.md").exists()


@pytest.mark.parametrize(
    "text",
    [
        '{"taskBreakdown": {"tasks": [{"id": 1}]}}',
        '## taskBreakdown\n\n```json\n{"tasks": [{"id": 1}]}\n```\n',
        '**taskBreakdown:**\n```json\n{"taskBreakdown": {"tasks": [{"id": "task-1"}]}}\n```\n',
        'prose about taskBreakdown first\n\n```\n"taskBreakdown": {"tasks": [{"id": "001"}]}\n```\n',
    ],
)
def test_breakdowns_are_found_as_people_write_them(task: Repository, text: str) -> None:
    task.must(f"STORE phase: spec content: {text}")
    assert list(task.workspace.load("t")["items"]) == ["1"]


# ---- audits ----------------------------------------------------------------------------------------

FLAW = {
    "audit_type": "design",
    "verdict": "DESIGN_FLAW",
    "iteration": 1,
    "issues": [{"severity": "major", "description": "too big"}],
}


def test_audits_are_added_to_the_audit_history(task: Repository) -> None:
    task.must(f"STORE phase: design-audit iteration: 1 content: {json.dumps(FLAW)}")
    task.must("STORE phase: design-audit iteration: 2 content: Looks good now.\n\nVerdict: PASS")
    task.must("STORE phase: impl-audit content: fine")
    history = json.loads(task.read(f"{FOLDER}/audit-history.json"))
    assert history == [
        FLAW,
        {"audit_type": "design", "iteration": 2, "text": "Looks good now.\n\nVerdict: PASS"},
        {"audit_type": "implementation", "iteration": 1, "text": "fine"},
    ]


def test_an_audit_without_a_number_gets_the_next(task: Repository) -> None:
    for text in ("a", "b", "c"):
        task.must(f"STORE phase: design-audit content: {text}")
    assert [entry["iteration"] for entry in json.loads(task.read(f"{FOLDER}/audit-history.json"))] == [1, 2, 3]


def test_the_same_audit_twice_is_one_entry(task: Repository) -> None:
    for _ in range(2):
        task.must("STORE phase: design-audit iteration: 1 content: same")
    assert len(json.loads(task.read(f"{FOLDER}/audit-history.json"))) == 1


def test_somebody_elses_audit_history_is_kept_and_a_broken_one_refused(task: Repository) -> None:
    task.write(f"{FOLDER}/audit-history.json", '[{"iteration": 1, "by": "hand"}]')
    task.must("STORE phase: design-audit content: b")
    assert json.loads(task.read(f"{FOLDER}/audit-history.json"))[0] == {"iteration": 1, "by": "hand"}
    task.write(f"{FOLDER}/audit-history.json", "[{broken")
    assert task.say("STORE phase: design-audit content: c").startswith(
        f"STATUS: error\nERROR: {FOLDER}/audit-history.json cannot be read"
    )
    assert task.read(f"{FOLDER}/audit-history.json") == "[{broken"


@pytest.mark.parametrize(
    ("audit", "revisions", "following"),
    [
        (FLAW, 0, "architect-revision iteration: 1"),
        (FLAW, 1, "architect-revision iteration: 2"),
        (FLAW, 2, "PAUSE"),
        ({**FLAW, "issues": [{"severity": "minor"}]}, 0, "SET_GATE gate: design"),
        ({**FLAW, "verdict": "PASS", "issues": []}, 0, "SET_GATE gate: design"),
        ({**FLAW, "verdict": "PASS"}, 0, "architect-revision iteration: 1"),
        ({**FLAW, "verdict": "ESCALATE"}, 0, "PAUSE"),
    ],
)
def test_what_an_audit_leads_to(task: Repository, audit: dict[str, object], revisions: int, following: str) -> None:
    """At most two loops, then a pause; minor findings never loop; a PASS with a major finding is none."""
    for number in range(1, revisions + 1):
        task.must(f"STORE phase: architect-revision iteration: {number} content: r")
    assert task.ask(f"STORE phase: design-audit content: {json.dumps(audit)}")["next"] == following


# ---- the POC life cycle ----------------------------------------------------------------------------

DEBT = """\
---
skipped_phases: [design-audit, spec-writer, test-writer, test-runner, impl-audit]
known_issues:
  - phase: "implementation"
    description: "Sorting not implemented"
    severity: "medium"
    mitigation: "Will add in graduation"
created_at: "2026-01-19T10:00:00Z"
graduated_at: null
---

# Technical Debt

Some narrative.
"""


def test_debt_is_for_pocs_only(task: Repository) -> None:
    assert task.say(f"STORE phase: debt content: {DEBT}") == error("STORE phase: debt only valid for POC mode tasks")
    assert not (task.root / FOLDER / "debt.md").exists()


def test_debt_that_is_stored_after_the_final_gate_makes_the_poc_ready_to_graduate(repository: Repository) -> None:
    repository.must("INIT task: t mode: poc", "SET_GATE gate: final prompt: x", "RESUME decision: approve")
    assert "status: completed" in repository.say("LIST")
    assert "debt stored | status: poc-complete" in repository.say(f"STORE phase: debt content: {DEBT}")
    assert repository.manifest("t")["status"] == "poc-complete"
    repository.must("STORE phase: graduate-complete content: done")
    assert repository.say(f"STORE phase: debt content: {DEBT}") == error("Cannot store debt on graduated task")


def test_debt_completes_a_poc_and_may_be_overwritten(repository: Repository) -> None:
    repository.must("INIT task: t mode: poc", f"STORE phase: debt content: {DEBT}")
    assert repository.read(f"{FOLDER}/debt.md") == DEBT
    assert repository.manifest("t")["status"] == "poc-complete"
    changed = DEBT.replace("medium", "high")
    repository.must(f"STORE phase: debt content: {changed}")
    assert repository.read(f"{FOLDER}/debt.md") == changed
    assert stored_version(repository.workspace, digest(DEBT.encode())) == DEBT.encode()


@pytest.mark.parametrize(
    "matter",
    [
        "a: [1, 2\n",
        "a: b: c\n",
        "- just\n- a list\n",
        "a: *nothing\n",
        "a: &x 1\nb: *x\n",
        "\ta: 1\n",
        "a: 1\na: 2\n",
        "just text\n",
        "a: 'open\n",
        "{a: 1\n",
        "a: @bad\n",
    ],
)
def test_front_matter_that_is_no_yaml_mapping_is_refused(repository: Repository, matter: str) -> None:
    repository.must("INIT task: t mode: poc")
    before = repository.files()
    assert repository.say(f"STORE phase: debt content: ---\n{matter}---\n\ntext") == error(
        "Invalid YAML frontmatter in debt document"
    )
    assert repository.files() == before


@pytest.mark.parametrize("text", ["no front matter at all", "---\na: 1\nnever closed", "---\n---\n"])
def test_debt_without_front_matter_is_refused(repository: Repository, text: str) -> None:
    repository.must("INIT task: t mode: poc")
    assert repository.say(f"STORE phase: debt content: {text}") == error("Invalid YAML frontmatter in debt document")


def test_bare_yaml_becomes_front_matter(repository: Repository) -> None:
    """The way the POC workflow writes it: keys without the lines of dashes."""
    repository.must("INIT task: t mode: poc")
    repository.must(
        "STORE phase: debt content:\ntask: t\nstatus: poc-complete\nskipped: design-audit, spec\nfiles: src/a.ts"
    )
    assert repository.read(f"{FOLDER}/debt.md") == (
        "---\ntask: t\nstatus: poc-complete\nskipped: design-audit, spec\nfiles: src/a.ts\n---\n"
    )


@pytest.mark.parametrize(
    "matter",
    [
        DEBT.split("---\n")[1],
        "nested:\n  deeper:\n    still: [a, {b: c}]\n",
        "text: |\n  a block\n  of text\n",
        "quoted: 'it''s'\n# a comment\nempty:\n",
        "known_issues: []\n",
    ],
)
def test_yaml_of_every_shape_is_accepted(repository: Repository, matter: str) -> None:
    repository.must("INIT task: t mode: poc", f"STORE phase: debt content: ---\n{matter}---\n")


@pytest.mark.parametrize("line", ["graduated_at: null\n", ""])
def test_graduation_is_written_to_manifest_and_debt(repository: Repository, line: str) -> None:
    debt = DEBT.replace("graduated_at: null\n", line)
    repository.must("INIT task: t mode: poc", f"STORE phase: debt content: {debt}")
    repository.wait(5000)
    repository.must("STORE phase: graduate-complete")
    told = repository.manifest("t")
    assert (told["status"], told["graduated_at"], told["updated_at"]) == ("graduated", repository.time, repository.time)
    stored = repository.read(f"{FOLDER}/debt.md")
    assert f'graduated_at: "{repository.time}"\n---\n' in stored
    assert stored.replace(f'graduated_at: "{repository.time}"\n', line) == debt


GRADUATE = "RETRIEVE needs: implementation,architect,debt for_phase: graduate"


def test_graduation_is_refused_in_the_listed_order(repository: Repository) -> None:
    repository.must("INIT task: standard")
    assert repository.say(GRADUATE) == error("Cannot graduate non-POC task. Task mode is 'standard'")
    repository.must("INIT task: t mode: poc")
    assert repository.say(GRADUATE) == error("Task not ready for graduation, current status: 'running'")
    repository.must(f"STORE phase: debt content: {DEBT}")
    (repository.root / FOLDER / "debt.md").unlink()
    assert repository.say(GRADUATE) == error("Missing debt.md required for graduation")
    repository.must(f"STORE phase: debt content: {DEBT}")
    assert repository.say(GRADUATE) == error("Missing architect.md required for graduation")
    repository.must("STORE phase: architect content: # Design\n\nall of it\n")
    assert repository.say(GRADUATE) == error("Missing implementation files required for graduation")
    repository.must("STORE phase: implementation content: what was done\n", "STORE phase: spec content: never shown\n")
    said = repository.say(GRADUATE)
    assert "all of it" in said
    assert "what was done" in said
    assert "Sorting not implemented" in said
    assert "mode: poc\nstatus: poc-complete" in said
    assert "never shown" not in said


def test_a_missing_debt_document_is_the_first_missing_file(repository: Repository) -> None:
    """A POC that was complete when it was adopted, without its debt.md."""
    repository.write(f"{FOLDER}/manifest.json", '{"name": "t", "mode": "poc", "status": "poc-complete"}')
    assert repository.say(f"{GRADUATE} task: t") == error("Missing debt.md required for graduation")


@pytest.mark.parametrize("iteration", ["-1", "0", "-", "1.5", "--2", "two", "1e3", "#-1"])
def test_an_iteration_that_is_no_number_from_1_is_refused(task: Repository, iteration: str) -> None:
    task.must("STORE phase: architect-revision iteration: 1 content: first")
    said = task.say(f"STORE phase: architect-revision iteration: {iteration} content: x")
    assert said.startswith("STATUS: error\nERROR: ")
    assert task.read(f"{FOLDER}/architect-revision-1.md") == "first"


@pytest.mark.parametrize("iteration", ["1", "01", "#1", "iteration 1", "iteration-1", "Iteration #1"])
def test_an_iteration_in_other_spellings(task: Repository, iteration: str) -> None:
    task.must(f"STORE phase: architect-revision iteration: {iteration} content: x")
    assert task.read(f"{FOLDER}/architect-revision-1.md") == "x"


def test_an_iteration_in_the_phase_and_another_beside_it_is_refused(task: Repository) -> None:
    assert task.say("STORE phase: architect-revision-2 iteration: 3 content: x") == error(
        "Iteration given twice: 2 in the phase and 3"
    )


def test_empty_content_is_refused_wherever_it_comes_from(task: Repository, tmp_path: Path) -> None:
    task.must("STORE phase: spec content: kept")
    for empty in ("", "   ", "\n\n  \t\n"):
        assert task.say(f"STORE phase: spec content:{empty}") == error("Missing required parameter: content")
        file = tmp_path / "empty.md"
        file.write_text(empty)
        with pytest.raises(BadInput, match="Content is empty"):
            task.context.store("spec", content_file=str(file))
        with pytest.raises(BadInput, match="Missing required parameter: content"):
            task.context.store("spec", empty)
    assert task.read(f"{FOLDER}/spec.md") == "kept"


def test_a_second_round_of_a_tasks_output_says_which_task(task: Repository) -> None:
    task.must("STORE phase: tests content: first")
    assert task.say("STORE phase: tests iteration: 2 content: x") == error(
        "STORE phase: tests iteration: 2 requires a task_id: the task whose tests these are"
    )
    task.must("STORE phase: tests task_id: 1 iteration: 2 content: second")
    assert task.read(f"{FOLDER}/tests/task-001.md") == "second"


def test_a_fix_may_be_of_one_task(task: Repository) -> None:
    """Several tasks are fixed in one round: no fix replaces another, and the round counts once."""
    for number in (3, 5):
        task.must(f"STORE phase: implementation-fix task_id: {number} iteration: 1 content: fixes {number}")
    assert task.read(f"{FOLDER}/implementation-fix-1-task-003.md") == "fixes 3"
    said = task.say("RETRIEVE needs: implementation for_phase: fix")
    assert "fixes 3" in said and "fixes 5" in said
    flaw = {**FLAW, "audit_type": "implementation", "verdict": "IMPLEMENTATION_FLAW"}
    assert "next: implementation-fix iteration: 2" in task.say(f"STORE phase: impl-audit content: {json.dumps(flaw)}")


VERDICTS = {
    "# Audit\n\n## Verdict: DESIGN_FLAW\n\nToo big.": "DESIGN_FLAW | next: architect-revision iteration: 1",
    "**Verdict:** DESIGN_FLAW": "DESIGN_FLAW | next: architect-revision iteration: 1",
    "## Verdict\n\n**Design flaw**\n": "DESIGN_FLAW | next: architect-revision iteration: 1",
    "- Overall verdict: `PASS`": "PASS | next: SET_GATE gate: design",
    "Verdict: PASS\n\n- [Critical] tokens never expire": (
        "DESIGN_FLAW (PASS, but 1 issues are major or worse) | next: architect-revision iteration: 1"
    ),
    "The verdict: it depends": "",
    "Verdict: PASS\n\nVerdict: DESIGN_FLAW": "",
    "It would PASS.": "",
    'Before:\n\n```json\n{"verdict": "PASS"}\n```\n\n```json\n{"verdict": "DESIGN_FLAW", "issues": []}\n```\n': (
        "DESIGN_FLAW | next: architect-revision iteration: 1"
    ),
}


@pytest.mark.parametrize("text", VERDICTS)
def test_an_audit_in_prose_says_what_follows_where_it_names_one_verdict(task: Repository, text: str) -> None:
    said = task.ask(f"STORE phase: design-audit content: {text}")["data"]
    assert (said.partition("verdict: ")[2] or "") == VERDICTS[text]
