"""The page of a run, and its card."""

from __future__ import annotations

import gzip
from typing import Any

from tenuto.pages.page import changed, document
from tenuto.pages.run import Asked, run_page
from tenuto.pages.score import drawing
from tests.unit.pages.records import LOOK_ONLY, SITE, Markup, at_gate, page_of, played, shown


def html_of(view: Any, site: Any = SITE, **more: Any) -> str:
    return document(run_page(view, site, **more), site)


def test_a_run_that_should_go_on_and_that_nobody_drives_says_so_with_the_command() -> None:
    html = html_of(page_of(played(20)))
    assert "running, and nobody drives it" in html
    assert "tenuto resume r" in html


def test_every_answer_of_a_gate_has_its_rehearsal_its_button_and_its_command() -> None:
    html = html_of(page_of(at_gate()), shown=shown())
    for command in ("tenuto approve r", "tenuto reject r", "tenuto revise r --feedback"):
        assert command in html
    values = [one["value"] for one in Markup(html).all("button") if one.get("name") == "answer"]
    assert values == ["approve+go_on", "approve", "reject", "revise"]
    assert "starts spec-1-spec-1" in html and "the run ends as failed" in html


def test_a_button_says_what_is_left_of_the_limits_behind_it() -> None:
    play = at_gate()
    play.say({"do": "ChangeBudget", "limits": {"attempts": 100}, "steps": {"spec": {"attempts": 1}}})
    html = html_of(page_of(play), shown=shown())
    used = play.run["budget"]["spent"]["attempts"]
    assert f"leaves {99 - used} attempts of 100 attempts" in html and "leaves 0 attempts of 1 attempt of spec" in html
    assert html.count("of 100 attempts</p>") <= 2, "a run that ends leaves nothing to anybody"


def test_decisions_stand_there_with_who_made_them_and_what_they_rest_on() -> None:
    made: Any = {
        "seq": 7,
        "at": "2026-11-15T10:00:00.000Z",
        "name": "look",
        "step": "look",
        "decision": "revise",
        "who": "ada",
        "level": "signed",
        "signer": "ada@example.org",
        "feedback": "too short",
        "answers": {"env": "prod"},
        "shown": [{"path": "docs/plan.md", "sha256": "ab" * 32}],
    }
    html = html_of(page_of(played()), asked=Asked(decisions=[made]))
    for words in ("look: sent back by ada", "gates signed", "signed by ada@example.org", "abababababab", "env: prod"):
        assert words in html
    assert '<a href="/runs/r?at=7">event 7</a>' in html and "too short" in html


def test_the_form_is_for_the_gate_and_the_bytes_that_the_card_shows() -> None:
    view = page_of(at_gate())
    fields = [(one.get("name"), one.get("value")) for one in Markup(html_of(view, shown=shown())).all("input")]
    assert view["waiting"] is not None
    assert ("gate", view["waiting"]["gate"]) in fields and ("shown", f"{'ab' * 32} docs/plan.md") in fields
    assert ("token", "token") in fields


def test_a_file_that_has_changed_locks_every_decision() -> None:
    html = html_of(page_of(at_gate()), shown=shown(has_changed=True))
    buttons = [one for one in Markup(html).all("button") if one.get("name") == "answer"]
    assert buttons and all("disabled" in one for one in buttons)
    assert "changed after it was shown here" in html


def test_a_server_that_only_shows_has_no_form_that_changes_anything() -> None:
    html = html_of(page_of(at_gate()), LOOK_ONLY, shown=shown())
    assert all(one.get("method") == "get" for one in Markup(html).all("form"))
    assert "tenuto approve r" in html and "This server only shows" in html


def test_signed_decisions_are_no_button_that_decides() -> None:
    html = html_of(page_of(at_gate()), shown=shown(), asked=Asked(level="signed"))
    assert "Approve: sign it" in html and "approve+go_on" not in html
    assert "The key never reaches this server" in html


def test_the_fields_of_a_form_have_labels_kinds_and_what_is_required() -> None:
    fields: Any = {
        "environment": {
            "type": "choice",
            "choices": ["test", "live"],
            "default": None,
            "required": True,
            "description": "where",
        },
        "why": {"type": "text", "choices": [], "default": None, "required": False, "description": ""},
        "replicas": {"type": "number", "choices": [], "default": 3, "required": True, "description": ""},
        "hosts": {"type": "list", "choices": [], "default": None, "required": True, "description": ""},
        "checks": {"type": "several", "choices": ["a", "b"], "default": ["a"], "required": True, "description": ""},
        "sure": {"type": "flag", "choices": [], "default": None, "required": True, "description": ""},
    }
    markup = Markup(html_of(page_of(at_gate(fields=fields)), shown=shown()))
    controls = {one["name"]: one for tag in ("input", "textarea") for one in markup.all(tag) if one.get("name")}
    assert set(controls) >= {f"field.{name}" for name in fields}
    assert controls["field.environment"]["type"] == "radio" and "required" in controls["field.environment"]
    assert "required" not in controls["field.why"] and controls["field.replicas"]["value"] == "3"
    labelled = {one.get("for") for one in markup.all("label")}
    assert {"field.why", "field.replicas", "field.hosts", "feedback"} <= labelled


def test_the_past_is_shown_with_what_was_due_and_without_a_form() -> None:
    view = page_of(at_gate(), is_past=True)
    markup = Markup(html_of(view))
    assert all(one.get("method") == "get" for one in markup.all("form"))
    assert [one["value"] for one in markup.all("input") if one.get("type") == "range"] == [str(view["at"])]


def test_the_same_record_makes_the_same_sections_and_only_others_are_sent() -> None:
    view = page_of(played(40))
    page = run_page(view, SITE)
    have = {one["name"]: one["digest"] for one in changed(page, {})}
    assert changed(run_page(view, SITE), have) == []
    later = {**view, "history": {**view["history"], "lines": view["history"]["lines"][:-1]}}
    assert [one["name"] for one in changed(run_page(later, SITE), have)] == ["history"]  # type: ignore[arg-type]


def test_a_run_of_2000_attempts_is_bounded_by_pixels() -> None:
    """The page of a long run stays under 60 kB as it is sent, and the drawing has no more bars than fit."""
    view = page_of(played())
    [lane] = [one for one in view["score"]["lanes"] if one["step"] == "implementation"]
    bar = lane["bars"][0]
    lane["bars"] = [
        {**bar, "attempt": f"implementation-1-implementer.{n}-1", "left": n * 40, "right": n * 40 + 37, "lane": n % 4}
        for n in range(2_000)
    ]
    lane["rows"], view["score"]["width"] = 4, 80_000
    one = next(attempt for attempt in view["run"]["attempts"] if attempt["step"] == "implementation")
    view["run"]["attempts"] += [{**one, "attempt": f"implementation-1-implementer.{n}-1"} for n in range(2_000)]
    html = html_of(view)
    assert len(gzip.compress(html.encode())) <= 60_000
    assert (
        sum(1 for one in Markup(html).all("rect") if "bar" in one.get("class", "").split()) <= 4 * 910 / 2
    )  # four rows, two pixels each


def test_a_score_in_a_file_of_its_own_leads_nowhere() -> None:
    view = page_of(played())
    assert not list(Markup(str(drawing("", view["score"]))).all("a"))
    assert list(Markup(str(drawing("r", view["score"]))).all("a"))
