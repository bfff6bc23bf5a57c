"""Actions: what a pipeline may ask to be done without an agent, and which part of Tenuto carries each of them out.

    CARRIED_OUT_BY[action]         ENGINE, or the dialect whose files or store the action is about
    group_of(steps, last)          the steps of a sub-pipeline, by the one behind it, which does nothing but end it
    carries_out(action, dialects)  does anything carry it out in a run that is shown in these dialects?

Rule: an action without anything to carry it out is refused when the pipeline is checked. It is never recorded as done.

    write-request        feature_docs   initial-request.md stands in the run's folder
    initialize-memory    feature_docs   memory.md stands in the run's folder
    prune-memory         engine         memory keeps what later steps need
    extract-lessons      engine         lessons of the items that have ended go to memory
    choose-review-tier   engine         how deep the review looks, by the size of the change
    promote-memory       context        what a run has learned goes to the project's memory
    record-debt          context        what a proof of concept left out is written down
    check-graduation     context        may a proof of concept become the real thing?
    mark-graduated       context        it has
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tenuto.core.pipeline.records import ActionName, Step

ENGINE = "engine"
CARRIED_OUT_BY: dict[ActionName, str] = {
    "write-request": "feature_docs",
    "initialize-memory": "feature_docs",
    "prune-memory": ENGINE,
    "extract-lessons": ENGINE,
    "choose-review-tier": ENGINE,
    "promote-memory": "context",
    "record-debt": "context",
    "check-graduation": "context",
    "mark-graduated": "context",
}


def carries_out(action: ActionName, dialects: Collection[str]) -> bool:
    by = CARRIED_OUT_BY[action]
    return by == ENGINE or by in dialects


def group_of(steps: Sequence[Step], last: Step) -> list[str]:
    """The steps of the sub-pipeline that ends here, in their order, but for those aside; the last one among them."""
    if not is_end(last):
        return [last["id"]]
    mine = [one for one in steps if one["id"].startswith(f"{last['id']}.")]
    return [one["id"] for one in mine if not one["aside"] or last["aside"]] + [last["id"]]


def is_end(step: Step) -> bool:
    """Is this the step behind a sub-pipeline, which has the name of the whole?"""
    return step["kind"] == "action" and bool(step.get("ends"))
