"""Reviews, coverage and revisions: shorthand for routes.

`review` stands for: a second opinion, then fixes, then the whole stage again, then a person.
`coverage` stands for: back to where tests are written, so many times, then a person.
A gate's `revise` stands for: back to this step, whenever a person says so.

The bounds may come from the pipeline's settings, under the names that the staged state file uses.
"""

from __future__ import annotations

from tenuto.core.definition.values import View, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from tenuto.core.pipeline_records import Step

_SEVERITIES = ("LOW", "MEDIUM", "HIGH")


class Setting:
    """What a step inherits from its pipeline."""

    __slots__ = ("defaults", "given", "roles", "settings", "switches")

    def __init__(
        self,
        defaults: View,
        given: list[str],
        roles: Collection[str] | None,
        settings: dict[str, Any],
        switches: Collection[str],
    ) -> None:
        self.defaults = defaults
        self.given = given
        self.roles = roles
        self.settings = settings
        self.switches = switches


def severity(view: View, setting: Setting) -> str:
    view.is_mapping(
        "a review",
        ("policy", "min_block_severity", "supplementary", "fix", "max_fix_attempts", "restart", "max_stage_restarts"),
    )
    stated = view.get("min_block_severity")
    return (stated if stated.value is not None else _policy(view, setting).get("minBlockSeverity")).choice(
        "the severity", _SEVERITIES, "LOW"
    )


def _policy(view: View, setting: Setting) -> View:
    name = view.get("policy").text("the policy")
    if not name:
        return View({}, view.path, view.problems)
    if name not in setting.settings:
        view.get("policy").note(
            "unknown-setting", f"there is no setting '{name}'", did_you_mean(name, setting.settings)
        )
    return View(setting.settings.get(name), ("settings", name), view.problems)


def threshold(view: View, setting: Setting) -> int:
    view.is_mapping("coverage", ("threshold", "back_to", "at_most", "then"))
    stated = view.get("threshold")
    if isinstance(stated.value, str):
        if stated.value not in setting.settings:
            stated.note(
                "unknown-setting", f"there is no setting '{stated.value}'", did_you_mean(stated.value, setting.settings)
            )
            return 0
        stated = View(setting.settings[stated.value], ("settings", stated.value), view.problems)
    if stated.value is None:
        view.note("missing", "coverage needs a threshold", "for example threshold: 90")
    return stated.number("the threshold", 0, most=100)


def implied(view: View, step: Step, setting: Setting) -> dict[str, View]:
    """The routes that `review`, `coverage` and `revise` stand for, in the language's own words."""
    found: dict[str, View] = {}
    value: dict[str, object]
    if step["kind"] == "gate" and view.get("gate").has("revise"):
        target = view.get("gate").get("revise")
        value = {
            "route": target.value if isinstance(target.value, list) else [target.value],
            "counter": f"{step['id']}.revise",
        }
        found["NEEDS_REVISION"] = View(value, target.path, view.problems)
    if step["kind"] != "agent":
        return found
    review, coverage = view.get("review"), view.get("coverage")
    if any(review.has(key) for key in ("fix", "restart", "supplementary")):
        found["NEEDS_REVISION"] = View(_review_route(review, step, setting), review.path, view.problems)
    if coverage.has("back_to"):
        value = {
            "route": [coverage.get("back_to").value], "at_most": coverage.get("at_most").value,
            "counter": f"{step['id']}.coverage", "then": coverage.get("then").value if coverage.has("then") else "block",
        }  # fmt: skip
        found["LOW_COVERAGE"] = View(value, coverage.path, view.problems)
    return found


def _review_route(review: View, step: Step, setting: Setting) -> dict[str, object]:
    """First a second opinion, then fixes, then the whole stage again, then a person."""
    policy = _policy(review, setting)

    def bound(own: str, theirs: str, default: int) -> int:
        stated = review.get(own) if review.has(own) else policy.get(theirs)
        return stated.number(own, default, most=1000)

    outcome: dict[str, object] = {"block": f"{step['name']} does not pass"}
    if review.has("restart"):
        bounded = bound("max_stage_restarts", "maxStageRestarts", 3)
        outcome = {"restart": review.get("restart").value, "at_most": bounded, "then": outcome}
    if review.has("fix"):
        bounded = bound("max_fix_attempts", "maxFixAttempts", 10)
        outcome = {
            "route": [review.get("fix").value, step["id"]],
            "at_most": bounded,
            "counter": f"{step['id']}.fix",
            "then": outcome,
        }
    if review.get("supplementary").choice("supplementary", ("on-issues", "never"), "never") == "on-issues":
        again = [{"step": step["id"], "mode": "supplementary"}]
        outcome = {"route": again, "at_most": 1, "counter": f"{step['id']}.supplementary", "then": outcome}
    return outcome
