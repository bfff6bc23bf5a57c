"""A DONE for an item whose files nobody changed: when it counts all the same.

    answers_for_item(seat)                is there nothing else by which its work could be known?
    unproven(run, attempt, seat, seen)    -> {"problem", "note"}: why it does not count; what is said where it does

An item names the files that it is about. They are what its agent delivers, unless that agent has outputs of its own. The rows
are tried from the top, the first that holds decides:

    it changed something                                            counts
    its item's files are not as they were when the run began        counts, and is said: an earlier attempt (also one that was
                                                                    lost), another item or a person did the work
    an earlier DONE for the item came with changes                  counts, and is said: who comes after it may find nothing left to do
    none of the files exists                                        does not count
    it says `nothing to do`                                         counts, and is said: the work was there before the run, which
                                                                    is a claim of its own, and verification holds it to that
    nobody knows how the files were when the run began              counts, and is said
    otherwise                                                       does not count

An agent with outputs of its own is held to those; that it changed none of the item's files is said, no more.
"""

from __future__ import annotations

from tenuto.core.definition.paths import ITEM_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from tenuto.core.pipeline_records import Seat
    from tenuto.core.records import Run

    class Seen(TypedDict):
        said: str  # the words after DONE:
        changed: bool  # did it certainly change something besides documents?
        there: bool  # is one of the item's files there now?
        since_start: bool | None  # does one of them differ from what it was when the run began? None: nobody knows

NOTHING_TO_DO = "nothing to do"


def answers_for_item(seat: Seat) -> bool:
    return ITEM_FILES in seat["touches"] and not seat["out"]


def unproven(run: Run, attempt: str, seat: Seat, seen: Seen) -> dict[str, str]:
    item = run["attempts"][attempt]["item"]
    files = ", ".join(run["items"][item]["files"]) if item in run["items"] else ""
    if not item or not files or seen["changed"]:
        return {"problem": "", "note": ""}
    note = f"{attempt} says DONE and changed none of its item's files: {files}"
    if not answers_for_item(seat) or seen["since_start"] or _worked_on(run, item):
        return {"problem": "", "note": note}
    if not seen["there"]:
        return {"problem": f"none of its item's files exists: {files}", "note": ""}
    if seen["said"].strip().casefold().startswith(NOTHING_TO_DO):
        return {"problem": "", "note": f"{note}; it says: {seen['said'].strip()}"}
    if seen["since_start"] is None:
        return {"problem": "", "note": note}
    hint = f"where the work was there before, the word is `DONE: {NOTHING_TO_DO}: ...`"
    return {"problem": f"none of its item's files changed since the run began: {files} ({hint})", "note": ""}


def _worked_on(run: Run, item: str) -> bool:
    """What an attempt that failed has changed may lie on a branch of its own, or where it must not."""
    earlier = [one for one in run["attempts"].values() if one["item"] == item and one["verdict"] == "DONE"]
    return any(one["receipt"].get("touched") for one in earlier)
