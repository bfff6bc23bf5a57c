"""Condensed retrieval: what a phase needs to know from the artifacts before it, in few tokens, with a receipt.

    make_pack(artifacts, phase, needs, max_tokens) -> Pack
    render_pack(pack) -> Markdown          render_receipts(pack) -> RECEIPT lines

Rules
- Which artifacts, and which parts of them, is the table in phases.py.
- A part is a run of lines of its artifact, word for word, in the artifact's order.
- An artifact in which no heading and no code matches is returned whole and flagged; never nothing.
- A kind of part that an artifact does not have is named in `absent`; the artifact is not returned whole for it.
- Full parts ignore a budget; the others give way to it, the least useful first (budget.py).
- Receipts count tokens of the artifact: in the pack, and left out; together they are the artifact.

Pure: texts in, texts out. Never reads a file and never hashes; the caller knows where artifacts are, which
revision stands for the original, and whether there is an audit before this one.
"""

from __future__ import annotations

from tenuto.errors import BadInput
from tenuto.knowledge.budget import dropped, fit
from tenuto.knowledge.packs import REPEATED, heading_text, render_dropped, render_pack, render_receipts
from tenuto.knowledge.phases import FEEDBACK, FULL, OPTIONAL, SAME_AS, WHOLE, rows_for
from tenuto.knowledge.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenuto.knowledge.condense.cuts import Piece
    from tenuto.knowledge.packs import Artifact, Pack, Part, Receipt
    from tenuto.knowledge.phases import Row

__all__ = ["make_pack", "render_dropped", "render_pack", "render_receipts"]


def make_pack(
    artifacts: Sequence[Artifact], phase: str, needs: Sequence[str] = (), max_tokens: int | None = None
) -> Pack:
    """The pack for a phase; `needs` selects among the phase's artifacts, none given means all of them."""
    if max_tokens is not None and max_tokens < 1:
        raise BadInput("bad-budget", f"max_tokens must be 1 or more, not {max_tokens}", "leave it out for no limit")
    rows = rows_for(phase, tuple(needs))
    pack: Pack = {"phase": phase, "parts": [], "dropped": [], "receipts": [], "missing": [], "absent": []}
    yielded: set[str] = set()
    used: list[Artifact] = []
    for row in rows:
        chosen = [artifact for artifact in artifacts if SAME_AS.get(artifact["name"], artifact["name"]) == row.need]
        if not chosen and not row.instead:
            pack["missing"].append(row.need)
        sought = tuple(kind for kind in row.parts if not (row.instead and kind in yielded))
        for artifact in chosen if sought else []:
            yielded |= _add_artifact(pack, artifact, row, sought)
            used.append(artifact)
    if max_tokens is not None:
        fit(pack, max_tokens, rows)
    pack["receipts"] = [_receipt(pack, artifact) for artifact in used]
    return pack


def _add_artifact(pack: Pack, artifact: Artifact, row: Row, sought: tuple[str, ...]) -> set[str]:
    """Add an artifact's parts to the pack; the kinds it yielded."""
    if not artifact["text"].strip():
        return set()
    if row.parts in (FULL, WHOLE):
        pack["parts"].append(_whole_part(artifact, row.parts[0], False))
        return set()
    # Loaded here: what is returned whole needs none of it, and it is most of what a process would load.
    from tenuto.knowledge.condense.cuts import condense

    # Feedback is short and every finding counts: only what is plainly aside is left out of it.
    condensed = condense(artifact["text"], sought, rest="issues" if row.parts == FEEDBACK else "")
    # A few sentences that read like it are no match: without a heading or code, nobody knows what was missed.
    if all(piece["by"] == "line" for piece in condensed["pieces"]):
        if not row.instead:
            pack["parts"].append(_whole_part(artifact, sought[0], True))
        return set()
    pack["parts"] += _without_repeats(pack, [_part(artifact, piece) for piece in condensed["pieces"]])
    if row.parts != FEEDBACK:
        lacking = [kind for kind in sought if kind not in condensed["kinds"] and kind not in OPTIONAL]
        pack["absent"] += [f"{artifact['name']}: {kind}" for kind in lacking]
    return condensed["kinds"]


def _whole_part(artifact: Artifact, kind: str, flagged: bool) -> Part:
    return {
        "artifact": artifact["name"],
        "path": artifact["path"],
        "heading": "",
        "kind": kind,
        "text": artifact["text"],
        "whole": flagged,
        "by": "full" if kind == FULL[0] else "whole",
        "line": 1,
        "tokens": estimate_tokens(artifact["text"]),
    }


def _part(artifact: Artifact, piece: Piece) -> Part:
    return {
        "artifact": artifact["name"],
        "path": artifact["path"],
        "heading": heading_text(piece["heading"]),
        "kind": piece["kind"],
        "text": piece["text"],
        "whole": False,
        "by": piece["by"],
        "line": piece["line"],
        "tokens": estimate_tokens(piece["text"]),
    }


def _without_repeats(pack: Pack, parts: list[Part]) -> list[Part]:
    """Without parts whose every line stands already in a part of another artifact."""
    known = {line.strip() for part in pack["parts"] for line in part["text"].split("\n")}
    kept = [part for part in parts if not {line.strip() for line in part["text"].split("\n")} <= known]
    pack["dropped"] += [dropped(part, REPEATED) for part in parts if part not in kept]
    return kept


def _receipt(pack: Pack, artifact: Artifact) -> Receipt:
    total = estimate_tokens(artifact["text"])
    mine = (artifact["name"], artifact["path"])
    texts = [part["text"] for part in pack["parts"] if (part["artifact"], part["path"]) == mine]
    taken = min(total, estimate_tokens("\n".join(texts)))
    return {
        "artifact": artifact["name"],
        "path": artifact["path"],
        "sha256": artifact["sha256"],
        "tokens_in": taken,
        "tokens_left_out": total - taken,
    }
