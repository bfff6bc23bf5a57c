"""docs/performance.md and its plots, from what was measured just now: nobody writes a figure by hand."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from bench.drawing import draw
from bench.measured import ROOT, Bars, Figure, Section, Table, file_system, number, scratch

LOAD = os.getloadavg()[0]
PAGE = ROOT / "docs" / "performance.md"
PLOTS = ROOT / "docs" / "performance"

HEAD = """\
# Performance

Measured by `make bench` on {when}, {machine}. The whole page is written by that command, and so are the plots; run it to
have the same for your machine. Ratios travel between machines, milliseconds do not.

How it is measured: everything that is compared takes turns, round by round, so that whatever else the machine does falls on all
of it. A time is the median of the rounds, a ratio the median of the ratios within them. A *limit* is a bare program that does the same work as durably;
it has none of the rules, no recovery and no files to keep. The peers are installed as they come, in environments of their own.

## Targets

"""  # noqa: E501


def write(sections: list[Section]) -> Path:
    lines = [HEAD.format(when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), machine=machine())]
    PLOTS.mkdir(parents=True, exist_ok=True)
    for picture in PLOTS.glob("*.svg"):  # beside them lies the list of marked documents
        picture.unlink()
    figures = [figure for section in sections for figure in section.figures]
    overview = to_targets(figures)
    (PLOTS / overview.file).write_text(draw(overview))
    lines += [targets(figures), f"\n![{overview.title}](performance/{overview.file})\n"]
    for section in sections:
        lines.append(f"\n## {section.title}\n\n{section.text}\n")
        for plot in section.plots:
            (PLOTS / plot.file).write_text(draw(plot))
            lines.append(f"\n![{plot.title}](performance/{plot.file})\n")
        lines += [f"\n{table_text(table)}" for table in section.tables]
        lines += [f"\nNot measured here: {reason}.\n" for reason in section.missing]
    PAGE.write_text("".join(lines))
    return PAGE.relative_to(ROOT)


def printed(section: Section) -> str:
    parts = [table_text(table) for table in section.tables]
    parts += [f"not measured here: {reason}\n" for reason in section.missing]
    if section.figures:
        parts.append(targets(section.figures))
    return "\n".join(parts)


def to_targets(figures: list[Figure]) -> Bars:
    """Everything in one picture: how much of what is allowed is used."""
    rows = [
        (f"Tenuto: {figure.what}", figure.value / figure.target)
        for figure in figures
        if figure.target and not figure.least
    ]
    return Bars("targets.svg", "What is used of each target; shorter is better", rows, one="target")


def targets(figures: list[Figure]) -> str:
    rows = [
        [
            figure.what,
            number(figure.value, figure.unit) + (f" {figure.against}" if figure.against else ""),
            ("at least " if figure.least else "at most ")
            + f"{figure.target:g}"
            + ("" if figure.unit == "x" else f" {figure.unit}"),
            "yes" if figure.holds else "**no**",
        ]
        for figure in figures
    ]
    return aligned(["what", "found", "target", "holds"], rows)


def table_text(table: Table) -> str:
    note = f"\n{table.note}\n" if table.note else ""
    return f"{table.title}\n\n{aligned(table.head, table.rows)}{note}"


def aligned(head: list[str], rows: list[list[str]]) -> str:
    """A table that reads well as Markdown and on a terminal."""
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]

    def line(cells: list[str]) -> str:
        padded = [
            cell.ljust(width) if not place else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = [("-" * width) if not place else "-" * (width - 1) + ":" for place, width in enumerate(widths)]
    return "\n".join([line(head), line(rule), *map(line, rows)]) + "\n"


def machine() -> str:
    system = (
        platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
        if Path("/etc/os-release").exists()
        else platform.system()
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"on {os.cpu_count()} cores ({processor()}) with {memory:.0f} GB, {system}, Python "
        f"{platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, {file_system(scratch()) or 'an unknown file system'}, Tenuto "
        f"{version()}; other work on the machine when it began: load {LOAD:.1f}"
    )


def processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def version() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--exclude=*", "--dirty= with changes"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    import tenuto

    return f"{getattr(tenuto, '__version__', '0.1.0')} at {done.stdout.strip()}" if done.returncode == 0 else "0.1.0"
