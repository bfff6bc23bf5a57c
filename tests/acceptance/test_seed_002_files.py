"""Seed 002, the rows about files and processes: the documentation tree, the memory life cycle, review tiers, prompts.

One run with scripted agents is made once and looked at from many sides; in it the design is revised, an item fails
verification, and the agents write memory as their roles say.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.actions import _tier
from tenuto.engine.begin import start
from tenuto.engine.loop import Engine

D = "docs/feature/add-dark-mode"
TREE = [
    "analysis.md",
    "ct-review/ct-maintainability.md",
    "ct-review/ct-scalability.md",
    "ct-review/ct-security.md",
    "ct-review/ct-strategy.md",
    "decisions.md",
    "design.md",
    "design_critical_review.md",
    "feature.md",
    "initial-request.md",
    "memory.md",
    "plan.md",
    "research/architecture.md",
    "research/dependencies.md",
    "research/impact.md",
    "research/patterns.md",
    "review.md",
    "review/knowledge-suggestions.md",
    "review/r-knowledge.md",
    "review/r-quality.md",
    "review/r-security.md",
    "review/r-testing.md",
    "tasks/01-a.md",
    "tasks/02-b.md",
    "tasks/03-docs.md",
    "verification/v-build.md",
    "verification/v-feature.md",
    "verification/v-tasks.md",
    "verification/v-tests.md",
    "verifier.md",
]
TEMPLATE = """# Operational Memory

## Artifact Index

| Artifact | Key Sections | Last Updated By |

## Recent Decisions

<!-- Format: - [agent-name, step-N] Decision summary. Rationale: ... -->

## Lessons Learned

<!-- Never pruned. Format: - [agent-name, step-N] Issue → Resolution. -->

## Recent Updates

<!-- Format: - [agent-name, step-N] Updated `artifact-path` — summary. -->
"""


def remember(who: str, step: str, text: str) -> str:
    """A shell command that adds a decision to memory.md, as an agent would."""
    return f"sed -i 's/^## Lessons Learned/- [{who}, step-{step}] {text}\\\\n\\\\n\\\\0/' {D}/memory.md"


def answers(root: Path) -> str:
    keep = root / ".git" / "seen"
    seen = f"mkdir -p {keep}; cp {D}/memory.md {keep}/$TENUTO_ATTEMPT"
    return f"""
answers:
  - for: {{role: researcher, step: synthesis}}
    run: "{seen}; {remember("researcher", "1.2", "Themes are tokens.")}"
  - for: {{role: spec}}
    run: "{seen}; {remember("spec", "2", "Two themes.")}"
  - for: {{role: designer, visit: 1}}
    run: "{seen}; {remember("designer", "3", "A registry of visit 1.")}"
  - for: {{role: designer, visit: 2}}
    run: "{seen}; {remember("designer", "3", "A registry of visit 2.")}"
  - for: {{role: ct-aggregator, visit: 1}}
    run: "{seen}; {remember("ct-aggregator", "3b", "The registry leaks.")}"
    reply: "NEEDS_REVISION: the registry leaks"
  - for: {{role: planner, visit: 1}}
    run: "{seen}"
    files:
      {D}/plan.md: |
        ## Wave 1
        - 01-a (depends_on: none)
        - 03-docs (depends_on: none)
        ## Wave 2
        - 02-b (depends_on: 01-a)
      {D}/tasks/01-a.md: "# A"
      {D}/tasks/02-b.md: "# B"
      {D}/tasks/03-docs.md: "**agent:** documentation-writer\n**files:** GUIDE.md"
  - for: {{role: implementer, item: 01-a}}
    run: "{seen}; echo one > a.txt"
    reply: |
      - Tests hung → closed the file handle
      DONE: a
  - for: {{role: implementer, item: 02-b}}
    run: "{seen}; echo b >> b.txt"
  - for: {{role: documentation-writer}}
    run: "echo '# Guide' > GUIDE.md"
  - for: {{role: v-aggregator, visit: 1}}
    run: "{seen}"
    files: {{"{D}/verifier.md": "- [High] task 02-b does nothing"}}
    reply: "NEEDS_REVISION: 1 task failed verification — task IDs: 02-b"
  - for: {{role: planner, visit: 2}}
    run: "{seen}; echo again >> {D}/plan.md; echo again >> {D}/tasks/02-b.md"
    files: {{}}
  - for: {{role: r-knowledge}}
    run: "{seen}; mkdir -p {D}/review; echo '- use tokens everywhere' > {D}/review/knowledge-suggestions.md; echo '- decided' >> {D}/decisions.md; echo fine > {D}/review/r-knowledge.md"
    files: {{}}
  - for: {{role: "*"}}
    run: "{seen}"
"""  # noqa: E501


class Made:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "repository"
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        (self.root / "README.md").write_text("hello\n")
        subprocess.run(["git", "-C", str(self.root), "add", "."], check=True)
        subprocess.run(["git", "-C", str(self.root), "commit", "-q", "-m", "begin"], check=True)
        script = folder / "answers.yaml"
        script.write_text(answers(self.root))
        self.workspace = tenuto.open(str(self.root))
        self.name = start(self.workspace, "Add dark mode", "eight-step")["id"]
        self.at_start = (self.root / D / "memory.md").read_text()
        self.told: list[str] = []
        watcher = lambda run, fresh: self.told.extend(
            f"{run['attempts'][n]['step']}: {run['attempts'][n]['role']}" for n in fresh
        )
        self.run = Engine(self.workspace, self.name, Roster(f"scripted:{script}"), {}, watcher).drive()
        with self.workspace.journal.read() as reader:
            self.events: list[Any] = list(reader.events(self.name))

    def memory_seen_by(self, attempt: str) -> str:
        return (self.root / ".git" / "seen" / f"{self.name}.{attempt}.1").read_text()

    def prompt(self, attempt: str) -> str:
        return Path(self.workspace.state, "attempts", self.name, attempt, "1", "prompt").read_text()

    def memory(self) -> str:
        return (self.root / D / "memory.md").read_text()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, _only_the_test: None) -> Made:
    return Made(tmp_path_factory.mktemp("seed-002"))


def test_the_run_completes_after_one_design_revision_and_one_replan(made: Made) -> None:
    assert made.run["status"] == "completed", (
        made.run["failure"],
        [(n, a["summary"]) for n, a in made.run["attempts"].items() if a["verdict"] == "ERROR"],
    )
    steps = [visit["step"] for visit in made.run["visits"]]
    assert steps.count("design") == 2 and steps.count("verification") == 2


def test_documentation_structure(made: Made) -> None:
    folder = made.root / D
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == TREE


def test_every_artifact_of_the_tree_is_recorded_with_its_hash(made: Made) -> None:
    from tenuto.workspace.objects import hash_at

    for name in TREE:
        if name not in ("initial-request.md", "memory.md"):
            artifact = made.run["artifacts"][name]
            assert artifact["sha256"] == hash_at(str(made.root), f"{D}/{name}"), name


def test_each_dispatch_shows_step_and_agent(made: Made) -> None:
    assert made.told[0] == "research: researcher" and made.told[-1] == "review: r-aggregator"
    assert len(made.told) == len(made.run["attempts"])


# ---- memory lifecycle actions --------------------------------------------------------------------------


def test_initialize_step_0_creates_memory_with_the_empty_template(made: Made) -> None:
    assert made.at_start == TEMPLATE


def test_prune_after_steps_1_2_and_2_and_4_removes_older_entries(made: Made) -> None:
    """The specification still sees step 1's decision; after step 4 it is gone, and so is step 2's."""
    assert [e["action"] for e in made.events if e["type"] == "ActionDone" and "prune" in e["action"]] == [
        "after:prune-memory"
    ] * 4
    assert "Themes are tokens." in made.memory_seen_by("spec-1-spec-1")
    assert "Themes are tokens." in made.memory_seen_by("design-1-designer-1")
    after_planning = made.memory_seen_by("implementation-1-implementer.01-a-1")
    assert "Themes are tokens." not in after_planning and "Two themes." not in after_planning
    assert "visit 2" in after_planning  # step 3 is the previous one


def test_prune_preserves_artifact_index_and_lessons_learned(made: Made) -> None:
    assert "Tests hung → closed the file handle" in made.memory()
    assert "| GUIDE.md |" in made.memory() or "documentation-writer" in made.memory_seen_by(
        "implementation-1-implementer.02-b-1"
    )


def test_extract_lessons_between_implementation_waves(made: Made) -> None:
    assert "Tests hung" not in made.memory_seen_by("implementation-1-implementer.01-a-1")
    assert "- [implementer, step-5] Tests hung → closed the file handle" in made.memory_seen_by(
        "implementation-1-implementer.02-b-1"
    )


def test_between_waves_documentation_writer_outputs_enter_the_artifact_index_and_recent_updates(made: Made) -> None:
    seen = made.memory_seen_by("implementation-1-implementer.02-b-1")
    assert "| GUIDE.md | Guide | documentation-writer |" in seen
    assert "- [documentation-writer, step-5] Updated `GUIDE.md` — " in seen


def test_invalidate_on_revision_before_dispatching_the_revision_agent(made: Made) -> None:
    seen = made.memory_seen_by("design-2-designer-1")
    assert "[designer, step-3] [INVALIDATED — design-review asks for a revision] A registry of visit 1." in seen
    assert "[ct-aggregator, step-3b] [INVALIDATED — design-review asks for a revision] The registry leaks." in seen
    assert "- [spec, step-2] Two themes." in seen


def test_clean_invalidated_after_the_revision_agent_completes(made: Made) -> None:
    seen = made.memory_seen_by("design-review-2-ct-security-1")
    assert "INVALIDATED" not in seen and "visit 1" not in seen and "visit 2" in seen


def test_validate_warns_when_a_sequential_agent_did_not_write_memory_and_stops_nothing(made: Made) -> None:
    notes = [e["text"] for e in made.events if e["type"] == "Noted"]
    assert f"planning-1-planner-1 did not write to {D}/memory.md" in notes
    assert not any("spec-1-spec-1 did not" in note for note in notes)


# ---- what agents are given -----------------------------------------------------------------------------

INPUTS = {
    "research-1-researcher-impact-1": [],
    "synthesis-1-researcher-1": ["research/architecture.md", "research/patterns.md"],
    "spec-1-spec-1": ["analysis.md"],
    "design-1-designer-1": ["analysis.md", "feature.md"],
    "design-2-designer-1": ["analysis.md", "feature.md", "design_critical_review.md"],
    "design-review-1-ct-security-1": ["design.md", "feature.md"],
    "design-review-1-ct-aggregator-1": ["ct-review/ct-security.md", "ct-review/ct-strategy.md", "design.md"],
    "planning-1-planner-1": ["analysis.md", "feature.md", "design.md", "design_critical_review.md"],
    "planning-2-planner-1": ["verifier.md"],
    "implementation-1-implementer.01-a-1": ["tasks/01-a.md", "feature.md", "design.md"],
    "verification-1-v-build-1": ["feature.md", "design.md", "plan.md", "tasks/01-a.md"],
    "verification-1-v-tests-1": ["verification/v-build.md"],
    "verification-1-v-tasks-1": ["verification/v-build.md", "plan.md", "tasks/02-b.md"],
    "verification-1-v-feature-1": ["verification/v-build.md", "feature.md"],
    "verification-1-v-aggregator-1": ["verification/v-build.md", "verification/v-feature.md"],
    "review-1-r-aggregator-1": ["review/r-quality.md", "review/r-knowledge.md", "review/knowledge-suggestions.md"],
}


@pytest.mark.parametrize("attempt", INPUTS)
def test_each_agent_gets_its_inputs_as_explicit_paths(made: Made, attempt: str) -> None:
    prompt = made.prompt(attempt)
    for name in ("initial-request.md", "memory.md", *INPUTS[attempt]):
        assert f"\n- {D}/{name}\n" in prompt, name


def test_each_researcher_is_told_its_focus(made: Made) -> None:
    for focus in ("architecture", "impact", "dependencies", "patterns"):
        assert f"- focus: {focus}\n" in made.prompt(f"research-1-researcher-{focus}-1")


@pytest.mark.parametrize("role", ["r-quality", "r-security", "r-testing", "r-knowledge"])
def test_r_agents_are_told_the_tier_and_all_four_run_in_every_tier(made: Made, role: str) -> None:
    assert '<data name="review tier"' in made.prompt(f"review-1-{role}-1") and "\nLightweight\n" in made.prompt(
        f"review-1-{role}-1"
    )


@pytest.mark.parametrize("role", ["r-quality", "r-security", "r-testing"])
def test_r_agents_get_the_git_diff_since_the_runs_start(made: Made, role: str) -> None:
    prompt = made.prompt(f"review-1-{role}-1")
    assert made.run["settings"]["base_commit"] in prompt and "GUIDE.md" in prompt


def test_knowledge_suggestions_and_decisions_are_preserved_and_never_applied(made: Made) -> None:
    assert {"review/knowledge-suggestions.md", "decisions.md"} <= set(made.run["artifacts"])
    changed = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=made.root, capture_output=True, text=True, check=True
    ).stdout
    assert {line[3:] for line in changed.splitlines() if not line[3:].startswith(D)} == {"GUIDE.md", "a.txt", "b.txt"}


def test_only_failing_items_run_again_in_the_replan_loop(made: Made) -> None:
    """02-b was named and changed; 01-a is done and unchanged."""
    assert [n for n in made.run["attempts"] if n.startswith("implementation-2-")] == [
        "implementation-2-implementer.02-b-1"
    ]


# ---- the review tier -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "tier"),
    [
        ({"src/login.py": 1}, "Full"),
        ({f"src/{n}.py": 1 for n in range(11)}, "Full"),
        ({"src/a.py": 501}, "Full"),
        ({f"docs/{n}.md": 40 for n in range(5)}, "Lightweight"),
        ({"src/a.py": 20, "src/b.py": 30}, "Lightweight"),
        ({"src/a.py": 51}, "Standard"),
        ({f"src/{n}.py": 1 for n in range(4)}, "Standard"),
        ({"auth.md": 1}, "Full"),
    ],
)
def test_determine_review_tier(tmp_path: Path, files: dict[str, int], tier: str) -> None:
    """Full: a security-relevant path, more than 10 files or 500 lines; Lightweight: documentation only, or at most 3
    files and 50 lines; else Standard. Committed or not, since the run's start; always with the reason."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "commit", "-q", "--allow-empty", "-m", "begin"], check=True)
    base = subprocess.run(
        ["git", "-C", str(tmp_path), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    for number, (name, lines) in enumerate(files.items()):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n" * lines)
        if number % 2:
            subprocess.run(["git", "-C", str(tmp_path), "add", name], check=True)
            subprocess.run(["git", "-C", str(tmp_path), "commit", "-q", "-m", name], check=True)
    found, reason = _tier(str(tmp_path), base, D)
    assert found == tier and reason


# ---- the program's own words ---------------------------------------------------------------------------


def program(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    package = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": package}
    return subprocess.run(
        [sys.executable, "-m", "tenuto", *words],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (tmp_path / "fails.yaml").write_text("answers:\n  - for: {step: research}\n    reply: 'ERROR: no network'\n")
    (tmp_path / "works.yaml").write_text("answers: []\n")
    return root


def test_the_last_line_of_a_run_that_cannot_complete_is_error_and_the_summary(empty: Path) -> None:
    told = program(empty, "run", "Add dark mode", "--agent", "scripted:../fails.yaml")
    assert told.returncode == 1
    assert told.stdout.splitlines()[-1].startswith("ERROR: ") and "fewer than 2 outputs" in told.stdout.splitlines()[-1]


def test_a_gate_that_nobody_can_be_asked_at_waits_with_exit_code_5_and_nothing_moves(empty: Path) -> None:
    told = program(empty, "run", "Add dark mode", "--approval", "--agent", "scripted:../works.yaml")
    assert told.returncode == 5 and "approve" in told.stdout
    before = tenuto.open(str(empty)).load("add-dark-mode")["version"]
    assert program(empty, "run", "--agent", "scripted:../works.yaml").returncode == 5
    run = tenuto.open(str(empty)).load("add-dark-mode")
    assert (run["status"], run["version"], run["position"]) == ("waiting_gate", before, "post-research")
