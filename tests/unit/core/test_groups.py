"""How several work together: the teams of items, quorums as numbers and shares, lists of one's own for waves."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.pipeline.check import check


def waves(**more: Any) -> tuple[Any, list[tuple[list[Any], str, str]]]:
    own = {"plan": "plan.md", "roles": ["a", "b", "c"], **more}
    step = {"id": "work", "waves": {key: value for key, value in own.items() if value is not None}}
    checked, problems = check({"name": "trial", "existing": ["plan.md"], "steps": [step]})
    found = checked["steps"][0]["waves"] if checked else None  # type: ignore[typeddict-item]
    return found, [(list(one["path"][2:]), one["message"], one["hint"]) for one in problems]


def each(step: Any = None, **more: Any) -> tuple[Any, list[tuple[list[Any], str, str]]]:
    body = {"id": "work", "each": {"files": "*", **more}, **(step or {"agent": "w"})}
    checked, problems = check({"name": "trial", "existing": ["plan.md", "l.txt"], "steps": [body]})
    found = checked["steps"][0] if checked else None
    return found, [(list(one["path"][2:]), one["message"], one["hint"]) for one in problems]


@pytest.mark.parametrize(("quorum", "kept"), [(1, 1), (7, 7), ("1%", "1%"), ("80%", "80%"), ("100%", "100%"), ("", "")])
def test_a_quorum_is_a_number_or_a_share(quorum: Any, kept: Any) -> None:
    assert waves(quorum=quorum)[0]["quorum"] == kept
    assert each(quorum=quorum)[0]["waves"]["quorum"] == kept


def test_without_a_quorum_all_must_end_well() -> None:
    assert waves()[0]["quorum"] == "" and each()[0]["waves"]["quorum"] == ""


@pytest.mark.parametrize("quorum", ["0%", "101%", "80", "%", "x%", "8.5%", "²%", "-1%"])
def test_what_is_no_share_is_refused(quorum: str) -> None:
    said = f"the quorum cannot be '{quorum}'", "a whole number, or a share like 80%"
    assert waves(quorum=quorum) == (None, [(["waves", "quorum"], *said)])
    assert each(quorum=quorum) == (None, [(["each", "quorum"], *said)])


def test_a_quorum_of_nobody_is_refused() -> None:
    assert "it must be from 1" in waves(quorum=0)[1][0][1]


def test_one_s_own_list_and_a_plan_are_not_both_given() -> None:
    said = (["waves", "each"], "`each` and a plan are both given", "keep one of them")
    assert waves(each={"files": "*"})[1] == [said]
    assert waves(plan=None, each={"files": "*"}, items="plan.md")[1] == [said]
    assert waves(plan=None, each={"files": "*"})[1] == []
    assert waves(items="plan.md")[1] == []


@pytest.mark.parametrize(
    ("cluster", "team"),
    [
        ({}, {"first": "", "aggregate": "", "quorum": 2, "rule": "quorum"}),
        ({"first": "a"}, {"first": "a", "aggregate": "", "quorum": 0, "rule": "quorum"}),
        ({"aggregate": "c"}, {"first": "", "aggregate": "c", "quorum": 2, "rule": "quorum"}),
        (
            {"first": "a", "aggregate": "c", "quorum": 1},
            {"first": "a", "aggregate": "c", "quorum": 1, "rule": "quorum"},
        ),
        ({"quorum": 3, "rule": "ct"}, {"first": "", "aggregate": "", "quorum": 3, "rule": "ct"}),
    ],
)
def test_how_the_seats_of_an_item_work_together(cluster: Any, team: Any) -> None:
    found, problems = waves(cluster=cluster)
    assert problems == [] and (found["cluster"], found["per_item"]) == (team, "cluster")


@pytest.mark.parametrize(
    ("cluster", "path", "message", "hint"),
    [
        (
            {"frist": "a"},
            ["frist"],
            "how the seats of an item work together has no key 'frist'",
            "did you mean 'first'?",
        ),
        ({"first": "z"}, ["first"], "'z' is none of the roles", "did you mean 'a'?"),
        ({"aggregate": "cc"}, ["aggregate"], "'cc' is none of the roles", "did you mean 'c'?"),
        ({"quorum": 4}, ["quorum"], "the quorum is 4 of 3 members", "lower it"),
        ({"aggregate": "c", "quorum": 3}, ["quorum"], "the quorum is 3 of 2 members", "lower it"),
        ({"rule": "w"}, ["rule"], "the rule cannot be 'w'", "did you mean 'r'?"),
    ],
)
def test_what_is_wrong_with_a_team(cluster: Any, path: list[str], message: str, hint: str) -> None:
    found, problems = waves(cluster=cluster)
    assert found is None and (["waves", "cluster", *path], message, hint) in [
        (where, said, way) if said == message else (where, message if message in said else said, way)
        for where, said, way in problems
    ]


def test_one_role_alone_is_a_quorum_of_one() -> None:
    assert waves(roles=["a"], cluster={})[0]["cluster"]["quorum"] == 1


def test_an_agent_may_change_the_file_that_its_element_is() -> None:
    """And whatever the pipeline lets all agents touch; what is not about files touches nothing by itself."""
    assert each()[0]["waves"]["seats"][0]["touches"] != []
    listed = {"id": "work", "each": {"lines": "l.txt"}, "agent": "w"}
    about = {**listed, "each": {"table": "l.txt", "files_of": "path"}}
    for step, touches in ((listed, False), (about, True)):
        checked, problems = check({"name": "trial", "existing": ["l.txt"], "steps": [step]})
        assert checked is not None, problems
        assert bool(checked["steps"][0]["waves"]["seats"][0]["touches"]) is touches  # type: ignore[typeddict-item]


def test_elements_are_done_by_one_by_several_in_turn_or_by_a_team() -> None:
    one = each()[0]["waves"]
    assert (one["per_item"], one["order"], one["on_item_error"], one["at_once"]) == (
        "named",
        "rolling",
        "skip-dependents",
        None,
    )
    assert (one["no_items"], one["max_items"], one["strict"], one["plan"]) == ("refuse", None, False, [])
    turns = each({"in_turn": ["a", {"command": ["true"]}]}, cap=2, on_error="stop", order="barrier")[0]["waves"]
    assert [seat["id"] for seat in turns["seats"]] == ["a", "true"] and turns["per_item"] == "in-turn"
    assert (turns["at_once"], turns["on_item_error"], turns["order"], turns["default"]) == (2, "halt", "barrier", "a")
    team = each({"cluster": {"first": "f", "members": ["a", "b"], "quorum": 2}, "aggregate": "c"})[0]["waves"]
    assert [seat["id"] for seat in team["seats"]] == ["f", "a", "b", "c"]
    assert team["cluster"] == {"first": "f", "aggregate": "c", "quorum": 2, "rule": team["cluster"]["rule"]}
    assert each({"cluster": ["a", "b"]})[0]["waves"]["cluster"]["first"] == ""


@pytest.mark.parametrize("word", ["NEEDS_REVISION", "NOT_DONE", "ERROR"])
def test_an_agent_may_ask_for_a_revision_where_something_follows_it(word: str) -> None:
    found, problems = each({"agent": "w", "on": {word: "pause"}})
    assert problems == []
    assert ("NEEDS_REVISION" in found["waves"]["seats"][0]["verdicts"]) is (word != "ERROR")


def test_who_prints_the_lines_is_a_command_with_a_document_of_its_own() -> None:
    def lister(lines: Any) -> Any:
        checked, problems = check(
            {"name": "trial", "existing": ["l.txt"], "steps": [{"id": "a:b", "each": {"lines": lines}, "agent": "w"}]}
        )
        assert checked is not None, problems
        return checked["steps"][0]["waves"]["each"]  # type: ignore[typeddict-item]

    assert (lister(["ls"])["lines"], lister(["ls"])["seat"]["id"]) == ("a-b.list.txt", "list")
    assert lister({"run": ["ls"], "stdout": "mine.txt"})["lines"] == "mine.txt"
    assert (lister("l.txt")["lines"], lister("l.txt")["seat"]) == ("l.txt", None)


def test_names_are_as_long_as_a_folder_allows() -> None:
    def problems(step: str, seat: str) -> list[Any]:
        raw = {"id": step, "each": {"files": "*"}, "agent": {"role": "w", "id": seat}}
        return check({"name": "trial", "steps": [raw]})[1]

    assert problems("x" * 60, "y" * 10) == []
    assert [one["path"] for one in problems("x" * 60, "y" * 11)] == [["steps", 0, "id"]]


def test_what_follows_from_a_list_that_is_none_is_not_said_again() -> None:
    assert waves(plan=None, each="files")[1] == [
        (["waves", "each"], "each must be a mapping, not the text 'files'", waves(plan=None, each="files")[1][0][2])
    ]
