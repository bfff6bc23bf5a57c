"""The elements of a list, as a document has them.

    lines_of(text)              one for each line that is not empty
    rows_of(text, name, under)  one for each row of a table, as a mapping of its columns

A table is the first one in a Markdown document (below the heading `under`, where one is named), or a document of
comma-separated values (`.csv`; `.tsv` with tabs), whose first row names the columns. A column is called as its heading,
without decoration, in small letters and with `_` for spaces: `Depends on` is `depends_on`.
"""

from __future__ import annotations

import csv
import io

from tenuto.core.items import PlanRefused
from tenuto.core.pipeline.values import did_you_mean
from tenuto.knowledge.markdown import Heading, Table, plain, read


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def rows_of(text: str, name: str, under: str = "") -> list[dict[str, str]]:
    if name.endswith((".csv", ".tsv")):
        head, rows = _separated(text, "\t" if name.endswith(".tsv") else ",")
    else:
        table = _table(text, name, under)
        head, rows = table.header, [row.cells for row in table.rows]
    columns = [_column(cell) for cell in head]
    twice = [column for column in columns if column and columns.count(column) > 1]
    if twice:
        raise PlanRefused("bad-list", f"{name}: two columns are called '{twice[0]}'", twice, "rename one of them")
    named = [dict(zip(columns, row, strict=False)) for row in rows]
    return [{column: plain(cell) for column, cell in row.items() if column} for row in named if any(row.values())]


def _column(heading: str) -> str:
    return "_".join(plain(heading).lower().split())


def _separated(text: str, mark: str) -> tuple[list[str], list[list[str]]]:
    rows = [row for row in csv.reader(io.StringIO(text.removeprefix("\ufeff")), delimiter=mark) if any(row)]
    return (rows[0], rows[1:]) if rows else ([], [])


def _table(text: str, name: str, under: str) -> Table:
    here, headings = not under, []
    for block in read(text):
        if isinstance(block, Heading):
            headings.append(plain(block.text))
            here = here if not under else headings[-1].lower() == under.lower()
        elif isinstance(block, Table) and here:
            return block
    if under and under.lower() not in [heading.lower() for heading in headings]:
        raise PlanRefused("bad-list", f"{name} has no heading '{under}'; {did_you_mean(under, headings)}", [under])
    raise PlanRefused("bad-list", f"{name} has no table{f' below {under}' if under else ''}", [name])
