"""What the next agent reads: context packs, against the whole artifacts they are made from.

The documents are those of tests/data/packs, marked by hand with the lines that a phase cannot do without; a folder of
other documents with marks in the same format can be given: `python -m bench.packs FOLDER`. A pack that is short because
it lost something would be no gain, so the lines that are lost are the figure; how short the packs are stands beside it.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import NamedTuple

from bench.measured import ROOT, Bars, Figure, Section, Table, interleave, median_ms, number, timed
from tenuto.encoding import digest
from tenuto.knowledge.packs import PHASES, SAME_AS, estimate_tokens, make_pack, render_pack
from tests.support.marked import Marks, by_task, lost_lines, marked_lines, read_marks, torn_units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.knowledge.packs import Artifact

DATA = ROOT / "tests" / "data" / "packs"


class Packed(NamedTuple):
    """A document in the pack of a phase."""

    document: str
    phase: str
    tokens: int  # of the documents that the phase reads
    in_pack: int
    marked: int
    lost: list[str]
    torn: int
    manner: str
    condensed: bool  # the phase asks for sections of it, not for all of it


def measure(folder: Path = DATA) -> Section:
    packed, absent = pack_all(folder)
    lost = sum(len(one.lost) for one in packed)
    torn = sum(one.torn for one in packed)
    rows = [
        [
            one.document,
            one.phase,
            f"{one.tokens:,}",
            f"{one.in_pack:,}",
            number(one.in_pack / one.tokens),
            f"{one.marked - len(one.lost)} of {one.marked}",
            one.manner,
        ]
        for one in packed
    ]
    short = [one for one in packed if one.condensed]
    shares = [one.in_pack / one.tokens for one in short]
    share = sum(one.in_pack for one in short) / max(1, sum(one.tokens for one in short))
    largest = max(folder.iterdir(), key=lambda path: path.stat().st_size).read_text()
    taken = median_ms(
        interleave({"pack": timed(lambda: pack_for([artifact("spec", "", largest)], "testing"))}, 9), "pack"
    )
    figures = [
        Figure("marked lines that are not in their pack", lost, 0, ""),
        Figure("paragraphs, lists and tables that are torn", torn, 0, ""),
    ]
    whole = sum(one.manner.startswith("whole:") for one in short)
    text = (
        "A pack holds the sections of earlier artifacts that its phase needs, word for word, with a receipt of what "
        f"was left out. A token is a quarter of the bytes. {len({one.document for one in packed})} documents, "
        f"marked by hand; {sum(one.marked for one in packed):,} marked lines, {lost} lost. Of {len(short)} packs for a "
        f"specification writer, an implementer or a tester, {whole} hold the whole artifact because something that the "
        f"phase needs was not found, or because its sections cannot be trusted. They have {number(share)} x the tokens "
        "of the whole artifacts, the lines that name artifacts included. That is no target: a pack may be long, not "
        f"wrong. The largest takes {taken:.1f} ms."
    )
    head = ["document", "phase", "tokens", "in the pack", "share", "marked lines kept", "how"]
    bars = [
        ("the whole artifact", 1.0),
        ("Tenuto, all packs", share),
        ("Tenuto, median pack", statistics.median(shares)),
        ("Tenuto, shortest", min(shares)),
    ]
    return Section(
        "Context packs",
        text,
        figures,
        [Table("RETRIEVE, by document and phase", head, rows)],
        [Bars("packs.svg", "Tokens of context packs, to the whole artifact", bars)],
        absent,
    )


def pack_all(folder: Path) -> tuple[list[Packed], list[str]]:
    """Every document in the pack of every phase that it is marked for; and the documents that are not as they were."""
    packed: list[Packed] = []
    absent: list[str] = []
    for group in by_task(read_marks(folder)):
        texts: dict[str, str] = {}
        for marks in group:
            path = folder / marks["document"]
            body = path.read_bytes() if path.is_file() else b""
            if not body or ("source" in marks and digest(body) != marks["source"]["sha256"]):
                absent.append(f"{marks['document']} is not there, or not as it was when it was marked")
            else:
                texts[marks["document"]] = body.decode()
        there = [marks for marks in group if marks["document"] in texts]
        artifacts = [artifact(marks["stored_as"], marks["document"], texts[marks["document"]]) for marks in there]
        for phase in sorted({phase for marks in there for phase in marks["needs"]}):
            packed += _packed(there, artifacts, phase)
    return packed, absent


def _packed(group: list[Marks], artifacts: list[Artifact], phase: str) -> list[Packed]:
    pack = make_pack(artifacts, phase)
    text = render_pack(pack)
    read = {part["path"] for part in pack["parts"]}
    tokens = sum(estimate_tokens(one["text"]) for one in artifacts if one["path"] in read)
    result = []
    for marks, one in zip(group, artifacts, strict=True):
        if phase not in marks["needs"]:
            continue
        ranges = marks["needs"][phase]
        lost = [f"{line.number}: {line.text}" for line in lost_lines(one["text"], ranges, text)]
        torn = len(torn_units(one["text"], text)) if marks.get("units", True) else 0
        rows = [row for row in PHASES[phase] if row.need == one["name"]]
        condensed = any(row.manner == "sections" for row in rows)
        marked = len([line for line in marked_lines(one["text"], ranges) if line.text.strip()])
        manner = pack["notes"][one["path"]].partition(";")[0]
        packed = Packed(one["path"], phase, tokens, estimate_tokens(text), marked, lost, torn, manner, condensed)
        result.append(packed)
    return result


def artifact(stored_as: str, path: str, text: str) -> Artifact:
    name = stored_as.rstrip("0123456789").rstrip("-")
    return {"name": SAME_AS.get(name, name), "path": path, "text": text, "sha256": digest(text.encode())}


def pack_for(artifacts: list[Artifact], phase: str) -> str:
    return render_pack(make_pack(artifacts, phase))


if __name__ == "__main__":
    for one in pack_all(Path(sys.argv[1]) if sys.argv[1:] else DATA)[0]:
        print(f"{one.document:44} {one.phase:14} {one.in_pack / max(1, one.tokens):5.2f} {one.manner:60.60}", end="")
        print(f" lost {len(one.lost)}, torn {one.torn}" if one.lost or one.torn else "")
        for line in one.lost[:8]:
            print(f"    {line:.110}")
    from bench import page

    print(page.printed(measure(Path(sys.argv[1]) if sys.argv[1:] else DATA)))
