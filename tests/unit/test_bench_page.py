"""The page of the benchmarks is written from what was measured: every figure with its target, every plot as a small
picture."""

from __future__ import annotations

import xml.etree.ElementTree as tree
from itertools import pairwise
from pathlib import Path

import pytest

import tenuto
from bench import environments, measured, page
from bench.__main__ import PARTS, main
from bench.drawing import apart, draw
from bench.measured import Bars, Curves, Figure, Section, Table, interleave, number, ratio

PLOTS: list[Bars | Curves] = [
    Bars("bars.svg", "Bars & more", [("bare", 1.0), ("Tenuto", 1.7), ("a peer", 48.9)], 2.0),
    Curves(
        "curves.svg",
        "Growth",
        "runs",
        "ms",
        [100, 1000, 10_000],
        {"Tenuto": [0.4, 0.4, 0.4], "reading <all>": [0.0, 64, 808]},
        1.0,
        "looking",
    ),
]


def section(*figures: Figure) -> Section:
    return Section(
        "Some work",
        "How it was done.",
        list(figures),
        [Table("Times", ["", "each"], [["a", "1 ms"]])],
        PLOTS,
        ["a peer: why"],
    )


def test_a_missed_target_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the picture: whoever is late is longer than the line."""
    monkeypatch.setattr(page, "ROOT", tmp_path)
    monkeypatch.setattr(page, "PAGE", tmp_path / "performance.md")
    monkeypatch.setattr(page, "PLOTS", tmp_path / "performance")
    late, early, counted = Figure("late", 2.004, 2.0), Figure("early", 1.5, 2.0, "ms"), Figure("lost", 0, 0, "")
    page.PLOTS.mkdir()
    (page.PLOTS / "documents.json").write_text("[]")
    (page.PLOTS / "gone.svg").write_text("<svg/>")
    page.write([section(late, early, counted)])
    assert (page.PLOTS / "documents.json").exists(), "what is measured lies beside the plots"
    assert not (page.PLOTS / "gone.svg").exists()
    rows = {
        cells[1].strip(): cells[-2].strip()
        for line in page.PAGE.read_text().splitlines()
        if len(cells := line.split("|")) == 6
    }
    assert (rows["late"], rows["early"], rows["lost"]) == ("**no**", "yes", "yes")
    assert page.to_targets([late, early, counted]).rows == [("Tenuto: late", 1.002), ("Tenuto: early", 0.75)]
    assert "Not measured here: a peer: why." in page.PAGE.read_text()
    for name in ("targets.svg", "bars.svg", "curves.svg"):
        assert f"(performance/{name})" in page.PAGE.read_text()
        assert (tmp_path / "performance" / name).stat().st_size < 20_000


@pytest.mark.parametrize("plot", PLOTS)
def test_a_plot_is_a_picture_with_every_name_in_it(plot: Bars | Curves) -> None:
    words = "".join(tree.fromstring(draw(plot)).itertext())
    names = [name for name, _ in plot.rows] if isinstance(plot, Bars) else list(plot.series)
    assert plot.title in words and all(name in words for name in names)


def test_a_target_is_drawn_and_says_what_it_is_for() -> None:
    words = [part.text for part in tree.fromstring(draw(PLOTS[1])) if part.text]
    assert "- - target of looking: 1 ms" in words


def test_names_that_end_at_the_same_height_are_not_written_across_each_other() -> None:
    """Nor among the words of the axis, which begin below `lowest`."""
    placed = [y for y, _, _ in apart([(50.0, "a", ""), (285.0, "b", ""), (286.0, "c", ""), (287.0, "d", "")], 292.0)]
    assert placed[0] == 50.0 and placed[-1] <= 292.0
    assert all(below - above >= 16 for above, below in pairwise(placed))


@pytest.mark.skipif(measured.file_system(Path("/dev/shm")) != "tmpfs", reason="/dev/shm is no tmpfs here")
def test_nothing_durable_is_measured_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many systems keep /tmp in memory, where a flush costs nothing. Who names a folder gets that one."""
    monkeypatch.setattr(measured, "ROOT", tmp_path)
    monkeypatch.setattr("tempfile.tempdir", "/dev/shm")
    monkeypatch.delenv("TMPDIR", raising=False)
    with measured.folder() as made:
        assert made.is_relative_to(tmp_path / ".bench")
    monkeypatch.setenv("TMPDIR", "/dev/shm")
    assert measured.scratch() == Path("/dev/shm")


def test_what_is_measured_inside_a_repository_leaves_it_alone(tmp_path: Path) -> None:
    """.bench/ lies in one, and TMPDIR may."""
    around = measured.git_repository(tmp_path / "around")
    inside = measured.git_repository(around / "scratch" / "measured")
    assert tenuto.open(str(inside)).root == str(inside)


def test_a_peer_that_cannot_be_installed_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pip's own words are kept; the others are measured all the same."""
    monkeypatch.setattr(environments, "HOME", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(
        environments.Unavailable, match=r"No matching distribution found for typer.*package index.*make bench"
    ):
        environments.install("typer")
    assert "typer" in (tmp_path / "typer.log").read_text() and not (tmp_path / "typer" / "ready").exists()


def test_everybody_takes_turns_and_a_slow_round_counts_for_both() -> None:
    order: list[str] = []
    spent = {"a": iter([9.0, 2.0, 20.0, 2.0, 2.0]), "b": iter([9.0, 1.0, 10.0, 1.0, 2.0])}

    def take(name: str) -> float:
        order.append(name)
        return next(spent[name])

    times = interleave({"a": lambda: take("a"), "b": lambda: take("b")}, 4)
    assert sorted(order[:2]) == sorted(order[2:4]) == ["a", "b"] and order[2:4] != order[4:6]
    assert times == {"a": [2.0, 20.0, 2.0, 2.0], "b": [1.0, 10.0, 1.0, 2.0]}
    assert ratio(times, "a", "b") == 2.0


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (0.0123, "0.012"), (1.0, "1"), (1.022, "1.022"), (1.5, "1.50"), (48.91, "48.9"), (1234.5, "1,234")],
)
def test_a_number_has_the_digits_that_count(value: float, shown: str) -> None:
    assert number(value) == shown


def test_an_unknown_part_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks"]) == 2
    told = capsys.readouterr().err
    assert all(name in told for name in PARTS)
