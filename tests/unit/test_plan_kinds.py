"""Plans in the layouts of many people and programs: what is an item, who waits for whom, what is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.core.items import arrange
from tenuto.knowledge.plans import Plan, explain_plan, read_plan

KINDS = Path(__file__).resolve().parent.parent / "data" / "plans" / "kinds"

# id@wave<dependencies; the codes of the warnings behind it
EXPECTED: dict[str, tuple[str, str]] = {
    "amounts-zero": ("01 02<01 03<01 04<02+03 05<04", ""),
    "amounts-none": ("TASK-01@1 TASK-02@1 TASK-03@2<TASK-01+TASK-02 TASK-04@2<TASK-01 TASK-05@3<TASK-03+TASK-04", ""),
    "amounts-counted": ("step-1 step-2<step-1 step-3<step-1+step-2", ""),
    "arrows-backwards": ("1@1 2@2<1 3@2<1 4@3<2 5@3<3", ""),
    "arrows-forwards": ("A1 A2<A1 A3<A2 A4<A3 A5<A3", ""),
    "arrows-behind": (
        "task-01@1 task-02@1 task-03@2<task-01+task-02 task-04@2<task-02 task-05@3<task-03",
        "",
    ),
    "checked-by-hand": (
        (
            "01-formats@1 02-layouts@1 03-renderer@2<01-formats+02-layouts 04-mailer@2<01-formats "
            "05-scheduler@2<01-formats+02-layouts 06-handbook@3<03-renderer+05-scheduler"
        ),
        "",
    ),
    "mermaid": ("T1 T2<T1 T3<T1 T4<T3 T5<T2+T4", ""),
    "checklist": ("T001@1 T002@1 T003@2 T004@2<T003+T002 T005@3", "phases ticked"),
    "one-annotated": ("T001 T002<T001 T003<T001+T002", "ticked"),
    "italian": ("01-schema@1 02-modello@1 3@2<02-modello 4@2<01-schema+02-modello", ""),
    "nested-numbers": ("1 2.1 2.2<2.1 3.1 3.2<2.2+3.1 4<3.1+3.2", ""),
    "german": ("1@1 2@2<1 3@3<1+2 4@1", ""),
    "french": ("01-modele@1 02-schema@1 03-service@2<01-modele+02-schema 04-doc@3<03-service", ""),
    "spanish": ("1 2<1 3<2", ""),
    "chinese": ("1@1 2@1 3@2<1+2", ""),
    "dropped": (
        "task-01 task-03<task-01 task-05<task-01 task-07<task-03+task-05",
        "dropped dropped dropped dropped dropped-dependency",
    ),
    "target-column": ("task-1@1 task-2@2<task-1 task-3@2<task-1", ""),
    "headings": ("TASK-001 TASK-002<TASK-001 TASK-003<TASK-002+TASK-001", ""),
    "wave-columns": (
        (
            "db-schema@1 api-types@1 api-server@2<db-schema+api-types web-client@2<api-types "
            "release-notes@3<db-schema+api-types+api-server+web-client"
        ),
        "",
    ),
    "ticket-keys": ("SHP-101 SHP-102<SHP-101 SHP-103<SHP-101 SHP-104<SHP-102", ""),
    "dotted": ("1.1@1 1.2@1<1.1 2.1@2<1.2 2.10@2<1.2+2.1", "phases"),
    "sentences": (
        "01-config 02-router<01-config 03-limits<02-router 04-logs<02-router",
        "not-read not-read",
    ),
    "data": ("core@1 shell@2<core handbook@2<core", ""),
}
FILES: dict[str, dict[str, list[str]]] = {
    "amounts-zero": {"03": ["src/consumer.py", "src/ack.py"]},
    "arrows-backwards": {"3": ["src/read_xml.py"], "5": ["src/cli.py"]},
    "arrows-behind": {
        "task-01": ["rules.md", "severity.md"],
        "task-02": ["tool-matrix.md"],
        "task-03": ["runner.agent.md"],
        "task-04": [],
        "task-05": [],
    },
    "mermaid": {"T1": ["api/schema.graphql"], "T2": ["api/resolvers/*.ts"], "T5": ["tests/e2e/"]},
    "checklist": {"T002": ["migrations/0007_tokens.sql"], "T005": ["docs/reset.md"]},
    "german": {"3": ["src/versand.py"]},
    "french": {"03-service": ["src/service.rs"]},
    "target-column": {
        "task-2": ["lib/auth/login.rb", "lib/auth/logout.rb"],
        "task-3": ["config/routes.rb"],
    },
    "headings": {"TASK-001": ["src/token.ts"], "TASK-002": ["src/store.ts", "src/store.test.ts"], "TASK-003": []},
    "dotted": {"2.10": ["src/lint.rs"]},
}


def plan(name: str) -> Plan:
    return read_plan((KINDS / f"{name}.md").read_text("utf-8"))


def shown(found: Plan) -> str:
    return " ".join(
        item["id"]
        + (f"@{item['wave']}" if item["wave"] else "")
        + ("<" + "+".join(item["depends_on"]) if item["depends_on"] else "")
        for item in found["items"]
    )


def test_every_document_is_expected() -> None:
    assert sorted(path.stem for path in KINDS.glob("*.md")) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_items_waves_and_dependencies(name: str) -> None:
    found = plan(name)
    assert (shown(found), " ".join(warning["code"] for warning in found["warnings"])) == EXPECTED[name]
    assert arrange(found["items"])["waves"]


@pytest.mark.parametrize("name", FILES)
def test_files(name: str) -> None:
    found = {item["id"]: item["files"] for item in plan(name)["items"]}
    assert {key: found[key] for key in FILES[name]} == FILES[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_every_line_is_accounted_for(name: str) -> None:
    """Every line that holds something is read, or there is a reason why not; every item and every edge has a line."""
    text = (KINDS / f"{name}.md").read_text("utf-8")
    found = explain_plan(text)
    assert [line["line"] for line in found["lines"]] == [n for n, t in enumerate(text.split("\n"), 1) if t.strip()]
    assert all(line["read"] or line["ignored"] for line in found["lines"])
    facts = [fact for line in found["lines"] for fact in line["read"]]
    for item in found["plan"]["items"]:
        assert any(fact.split(" (")[0] == f"item {item['id']}" for fact in facts), item["id"]
        waits = [f for f in facts if f.startswith(f"{item['id']} waits for ")]
        named = {name for fact in waits for name in fact.partition(" waits for ")[2].split(", ")}
        assert set(item["depends_on"]) <= named, item["id"]


@pytest.mark.parametrize(
    ("second", "waits"),
    [
        ("- task-b: the tests `b.py` needs task-a", None),
        ("- task-b: as in TASK-A, but for writers", None),
        ("- task-b: the tests; needs task-a", ["task-a"]),
        ("- task-b: the tests", []),
    ],
)
def test_an_entry_that_names_another_one_waits_for_it_or_says_that_this_was_not_understood(
    second: str, waits: list[str] | None
) -> None:
    plan = read_plan(f"# Tasks\n- task-a: the code\n{second}\n")
    by_id = {item["id"]: item for item in plan["items"]}
    said = [warning["items"] for warning in plan["warnings"] if warning["code"] == "names-alone"]
    assert by_id["task-b"]["depends_on"] == (waits or [])
    assert said == ([["task-b", "task-a"]] if waits is None else [])
