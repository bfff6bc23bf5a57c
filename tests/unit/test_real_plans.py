"""Four plans that real planners wrote, read word by word and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.core.items import arrange, partition, passed_limits
from tenuto.knowledge.plans import Plan, read_plan

PLANS = Path(__file__).resolve().parent.parent / "data" / "plans"


def plan(name: str) -> Plan:
    return read_plan((PLANS / f"{name}.plan.md").read_text())


def waves(found: Plan) -> list[str]:
    """Each wave as the numbers of its items."""
    numbers = {item["id"]: item["id"].removeprefix("TASK-").partition("-")[0] for item in found["items"]}
    return [" ".join(numbers[name] for name in wave) for wave in arrange(found["items"])["waves"]]


def depends(found: Plan) -> dict[str, str]:
    """Who depends on whom, by number, where anybody does."""

    def short(name: str) -> str:
        return name.removeprefix("TASK-").partition("-")[0]

    return {short(i["id"]): " ".join(map(short, i["depends_on"])) for i in found["items"] if i["depends_on"]}


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("agent-improvements-8c0c493", 11),
        ("agent-system-overhaul-HEAD", 18),
        ("arch-upgrade-remaining-concerns-8c0c493", 13),
        ("self-improvement-system-HEAD", 11),
    ],
)
def test_every_item_is_found_once_and_nothing_else_is_one(name: str, count: int) -> None:
    """Success criteria, risks, pre-mortems, file lists and graphs are not items; nothing needs a warning."""
    found = plan(name)
    assert len(found["items"]) == count
    assert found["warnings"] == []


def test_agent_improvements_contradicts_its_own_waves() -> None:
    """06 stands beside the 05 it depends on, 10 beside 09: three items move, and the reasons are named."""
    found = plan("agent-improvements-8c0c493")
    assert [item["id"] for item in found["items"]][:4] == [
        "01-researcher",
        "02-spec",
        "03-designer",
        "04-critical-thinker",
    ]
    assert [item["wave"] for item in found["items"]] == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3]
    assert depends(found) == {"06": "05", "09": "05 06 07 08", "10": "09", "11": "07"}
    assert waves(found) == ["01 02 03 04", "05 07 08", "06 11", "09", "10"]
    assert arrange(found["items"])["moves"] == [
        {"item": "06-verifier", "from_wave": 2, "to_wave": 3, "because": ["05-implementer"]},
        {"item": "09-orchestrator", "from_wave": 3, "to_wave": 4, "because": ["06-verifier"]},
        {"item": "10-prompt", "from_wave": 3, "to_wave": 5, "because": ["09-orchestrator"]},
    ]
    assert found["items"][9]["files"] == ["feature-workflow.prompt.md"]
    assert [line for item in found["items"] for line in passed_limits(item)] == [
        "item 09-orchestrator has 4 dependencies; the limit is 2"
    ]


def test_agent_system_overhaul_agrees_with_itself() -> None:
    """An index table with waves and dependencies, and a table of files per wave: one plan, no move."""
    found = plan("agent-system-overhaul-HEAD")
    assert [item["id"] for item in found["items"]] == [f"TASK-{n:03d}" for n in range(1, 19)]
    assert depends(found) == {
        "006": "002",
        "007": "002",
        "008": "004",
        "010": "006 007",
        "011": "004 006",
        "012": "005 006",
        "013": "005 006",
        "014": "003 005",
        "015": "002 003",
        "016": "002 003",
        "017": "003 008",
        "018": "003 005",
    }
    assert waves(found) == ["001 002 003 004", "005 006 007 009", "008 014 015 016", "010 011 012 013", "017 018"]
    assert arrange(found["items"])["moves"] == []
    assert [item["lines"] for item in found["items"]] == [
        100,
        130,
        110,
        130,
        130,
        160,
        300,
        50,
        10,
        400,
        150,
        250,
        180,
        180,
        80,
        60,
        50,
        60,
    ]
    assert found["items"][0]["title"] == "Create Instruction File Infrastructure"
    assert found["items"][0]["files"] == [
        ".github/copilot-instructions.md",
        ".github/instructions/pipeline-conventions.md",
    ]
    assert found["items"][10]["files"] == ["NewAgents/.github/agents/adversarial-reviewer.agent.md"]


def test_arch_upgrade_has_a_wave_of_eight_and_three_items_over_the_limit() -> None:
    """The plan itself says that 02 to 04 pass the limit of three files."""
    found = plan("arch-upgrade-remaining-concerns-8c0c493")
    assert depends(found) == {"08": "01", "10": "04", "11": "08", "12": "09 11", "13": "12"}
    assert waves(found) == ["01", "02 03 04 05 06 07 08 09", "10 11", "12", "13"]
    assert arrange(found["items"])["moves"] == []
    assert [len(group) for group in partition(arrange(found["items"])["waves"][1], 4)] == [4, 4]
    assert [line for item in found["items"] for line in passed_limits(item)] == [
        f"item {name} has 4 production files; the limit is 3" for name in ("02", "03", "04")
    ]
    assert {item["effort"] for item in found["items"]} == {"Low", "Medium"}
    assert found["items"][8]["files"] == ["NewAgentsAndPrompts/dispatch-patterns.md"]


def test_self_improvement_names_files_in_a_table_by_file() -> None:
    """Which file belongs to which task is told file by file; two tasks change one file, in different waves."""
    found = plan("self-improvement-system-HEAD")
    assert found["items"][5]["id"] == "06-agent-eval-ct-security-scalability-maintainability"
    assert depends(found) == {
        "05": "01",
        "06": "01",
        "07": "01",
        "08": "01",
        "09": "01",
        "10": "02 03",
        "11": "10 09",
    }
    assert waves(found) == ["01 02 03 04", "05 06 07 08 09 10", "11"]
    assert arrange(found["items"])["moves"] == []
    files = {item["id"][:2]: item["files"] for item in found["items"]}
    assert files["03"] == files["10"] == [".github/agents/orchestrator.agent.md"]
    assert files["09"] == [".github/agents/r-quality.agent.md", ".github/agents/r-testing.agent.md"]
    assert files["11"] == []
