"""Two runs of one repository: each in a tree of its own, none at the cost of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.houses import House, until


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_run_gets_a_tree_of_its_own_and_clean_takes_it_away_when_it_is_merged(house: House) -> None:
    (house.root / "README.md").write_text("my own work, not committed\n")
    done = house.say("run", "Dark mode", "--pipeline", "small", "--agent", house.script(), "--tree")
    assert done.returncode == 0, done.stderr
    tree = house.root / ".tenuto" / "runs" / "dark-mode"
    assert (tree / "README.md").read_text() == "hello\n" and (tree / "docs/dark-mode/design.md").exists()
    assert (house.root / "README.md").read_text() == "my own work, not committed\n"
    assert house.git("symbolic-ref", "--short", "HEAD") == "main"
    assert house.git("status", "--porcelain") == "M README.md", "and no tree of ours among it"
    kept = house.data("clean")
    assert kept["removed"] == [] and "git merge tenuto/dark-mode" in kept["kept"][0]["why"]
    house.git("stash", "-q")
    house.git("merge", "-q", "tenuto/dark-mode")
    assert house.data("clean")["removed"][0]["why"] == "all of it is on main"
    assert not tree.exists() and "dark-mode" not in house.git("worktree", "list")
    assert house.data("status", "dark-mode")["status"] == "completed"


def test_a_gate_of_a_run_in_its_own_tree_is_decided_from_where_you_are(house: House) -> None:
    agent = house.script()
    assert house.say("run", "Dark mode", "--pipeline", "gated", "--agent", agent, "--tree").returncode == 5
    waiting = house.data("status", "dark-mode")["view"]["waiting"]
    assert waiting["shown"][0]["sha256"], "the file is found in the tree of the run"
    assert house.say("approve", "dark-mode").returncode == 0
    gone_on = house.say("resume", "dark-mode")
    assert gone_on.returncode == 0 and ".tenuto/runs/dark-mode" in gone_on.stderr


def test_a_name_that_is_taken_leads_to_another_tree(house: House) -> None:
    agent = house.script()
    for _ in range(2):
        assert house.say("run", "Dark mode", "--pipeline", "gated", "--agent", agent, "--tree").returncode == 5
    assert sorted(one.name for one in (house.root / ".tenuto/runs").iterdir() if one.is_dir()) == [
        "dark-mode",
        "dark-mode-2",
    ]


def test_a_refused_run_leaves_no_tree(house: House) -> None:
    refused = house.say("run", "x", "--pipeline", "small", "--agent", "command:true", "--tree", "--limit", "tokens=5")
    assert refused.returncode == 4 and "unmetered" in refused.stderr
    assert [one.name for one in (house.root / ".tenuto/runs").iterdir()] == [".gitignore"]
    assert house.git("worktree", "list").count("\n") == 0


def test_what_a_tree_needs_is_put_there_and_a_set_up_that_fails_starts_no_agent(tmp_path: Path) -> None:
    house = House(tmp_path, "setup: {run: ['test -e .env && test -e ok'], copy: [.env]}\n")
    (house.root / ".gitignore").write_text(".env\nok\n")
    (house.root / ".env").write_text("A=1\n")
    house.git("add", ".gitignore")
    house.git("commit", "-q", "-m", "ignore")
    agent = house.script()
    failed = house.say("run", "Dark mode", "--pipeline", "small", "--agent", agent, "--tree")
    assert failed.returncode == 5 and "the set-up command" in failed.stdout, failed
    assert house.run("dark-mode")["attempts"] == {}
    (house.root / ".tenuto/runs/dark-mode/ok").write_text("")
    assert house.say("resume", "dark-mode", "--agent", agent).returncode == 0
    assert (house.root / ".tenuto/runs/dark-mode/.env").read_text() == "A=1\n"


def test_a_second_run_in_one_tree_is_refused_by_name_with_the_way_on(house: House) -> None:
    stop = house.folder / "stop"
    agent = house.script(f"answers:\n  - {{run: 'until [ -e {stop} ]; do sleep 0.02; done'}}\n")
    first = house.start("run", "First", "--pipeline", "small", "--agent", agent)
    until(lambda: (house.root / ".git/tenuto").exists() and "driven_here" in str(_driven(house)))
    refused = house.say("run", "Second", "--pipeline", "small", "--agent", house.script(name="b.yaml"))
    assert refused.returncode == 4 and "run first" in refused.stderr and "--tree" in refused.stderr
    second = house.say("run", "Second", "--pipeline", "small", "--agent", house.script(name="b.yaml"), "--tree")
    assert second.returncode == 0, second.stderr
    stop.touch()
    first.communicate()
    assert first.returncode == 0 and house.run("first")["status"] == house.run("second")["status"] == "completed"


def _driven(house: House) -> str:
    listed = house.data("list")["runs"]
    return "driven_here" if any(one["driven"]["by"] == "engine" for one in listed) else ""


@pytest.mark.parametrize("how", [("--branch",), ("--workspace", "worktree"), ("--branch", "--dirty", "stash")])
def test_no_run_takes_the_documents_of_another_away(house: House, how: tuple[str, ...]) -> None:
    """It was the hint of the refusal that led to it: --dirty stash."""
    agent = house.script()
    assert house.say("run", "First", "--pipeline", "gated", "--agent", agent).returncode == 5
    refused = house.say("run", "Second", "--pipeline", "gated", "--agent", agent, *how)
    assert refused.returncode == 4 and "tree-in-use" in refused.stderr and "run first" in refused.stderr
    assert (house.root / "docs/first/design.md").exists() and house.git("stash", "list") == ""


def test_the_stash_takes_your_changes_and_leaves_the_documents_of_a_live_run(house: House) -> None:
    agent = house.script()
    assert house.say("run", "First", "--pipeline", "gated", "--agent", agent).returncode == 5
    (house.root / "README.md").write_text("mine\n")
    done = house.say("run", "Second", "--pipeline", "small", "--agent", agent, "--dirty", "stash")
    assert done.returncode == 0, done.stderr
    assert (house.root / "docs/first/design.md").exists() and (house.root / "README.md").read_text() == "hello\n"


def test_the_same_request_once_more_is_said_with_the_way_on(house: House) -> None:
    agent = house.script()
    words = ("run", "Dark mode", "--pipeline", "gated", "--agent", agent)
    assert house.say(*words).returncode == 5
    again = house.say(*words)
    assert "run dark-mode has this very request, and is waiting_gate" in again.stderr
    assert "Dark mode" in house.run("dark-mode-2")["request"], "without a terminal nobody can be asked"


def test_a_run_whose_engine_was_killed_is_said_to_be_driven_by_nobody(house: House) -> None:
    agent = house.script("answers:\n  - {fault: hang}\n")
    engine = house.start("run", "Dark mode", "--pipeline", "small", "--agent", agent)
    until(lambda: _driven(house))
    assert "an engine on this machine drives it" in house.say("status", "dark-mode").stdout
    engine.kill()
    engine.communicate()
    told = house.say("status", "dark-mode").stdout
    assert "nobody drives it" in told and "try: tenuto resume dark-mode" in told
    assert "running, nobody drives" in house.say("list").stdout
    assert house.data("list")["runs"][0]["driven"]["by"] == "nobody"
    assert house.say("cancel", "dark-mode").returncode == 0
