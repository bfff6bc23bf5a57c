"""What an implementer is given: a context pack, against the whole specification it is made from.

The specifications are those of tests/data/retrieve, in several languages of markup; beside each lies a list of what an implementer
cannot do without. A pack that is short because it lost something would be no gain.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from bench.measured import ROOT, Bars, Figure, Section, Table, interleave, median_ms, number, timed
from tenuto.encoding import digest
from tenuto.knowledge.retrieve import make_pack, render_pack
from tenuto.knowledge.tokens import estimate_tokens

DATA = ROOT / "tests" / "data" / "retrieve"
LABELS = ("# signatures", "# types", "# edge cases", "# files")
ORDINARY_LINES = 150  # shorter texts have little besides their contract


def measure() -> Section:
    rows, shares, lost, wanted = [], [], 0, 0
    sizes: list[tuple[int, int, int]] = []  # lines, tokens, tokens in the pack
    for path in sorted(DATA.iterdir()):
        must = path.with_name(path.stem + ".must.txt")
        if path.name.endswith(".must.txt") or not must.is_file():
            continue
        text = path.read_text()
        pack = pack_for(path, text)
        needed = [line for line in must.read_text().splitlines() if line.strip() and line not in LABELS]
        kept = [line for line in needed if flat(line) in flat(pack)]
        whole, condensed = estimate_tokens(text), estimate_tokens(pack)
        rows.append(
            [path.name, f"{whole:,}", f"{condensed:,}", number(condensed / whole), f"{len(kept)} of {len(needed)}"]
        )
        shares.append(condensed / whole)
        lost, wanted = lost + len(needed) - len(kept), wanted + len(needed)
        sizes.append((len(text.splitlines()), whole, condensed))
    full, packed = sum(size[1] for size in sizes), sum(size[2] for size in sizes)
    ordinary = [size for size in sizes if size[0] >= ORDINARY_LINES]
    rows.append(["all", f"{full:,}", f"{packed:,}", number(packed / full), f"{wanted - lost} of {wanted}"])
    largest = max(DATA.glob("*.md"), key=lambda path: path.stat().st_size)
    condensing = timed(lambda: pack_for(largest, largest.read_text()))
    taken = median_ms(interleave({"pack": condensing}, 9), "pack")
    figures = [
        Figure(
            "tokens of context packs, of texts of 150 lines or more", sum(size[2] for size in ordinary) / sum(size[1] for size in ordinary),
            0.4, "x", "the whole artifacts",
        ),
        Figure("lines that must be in a pack, and are not", lost, 0, ""),
    ]  # fmt: skip
    table = Table(
        "RETRIEVE for an implementer", ["specification", "tokens", "in the pack", "share", "must be kept"], rows
    )
    bars = [
        ("the whole artifact", 1.0),
        ("Tenuto, median pack", statistics.median(shares)),
        ("Tenuto, shortest", min(shares)),
        ("Tenuto, longest", max(shares)),
    ]
    text = (
        "What the next agent reads. A pack holds the parts of earlier artifacts that its phase needs, word for word, with a receipt of what "
        f"was left out. A token is a quarter of the bytes. The largest takes {taken:.1f} ms to condense."
    )
    return Section(
        "Context packs",
        text,
        figures,
        [table],
        [Bars("packs.svg", "Tokens of context packs, to the whole artifact", bars)],
    )


def pack_for(path: Path, text: str) -> str:
    artifact: Any = {"name": "spec", "path": path.name, "text": text, "sha256": digest(text.encode())}
    return render_pack(make_pack([artifact], "implementation"))


def flat(text: str) -> str:
    return " ".join(text.split())
