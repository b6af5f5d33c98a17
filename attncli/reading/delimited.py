"""Rows of numbers as text: .csv and .tsv, with or without a header, and .txt as numpy's savetxt writes it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from attncli.language import literals
from attncli.language.errors import AttncliError, Place
from attncli.language.written import Texts
from attncli.maths.ops import Array
from attncli.reading.nodes import Document

MAX_CELLS = 3_000_000
BLANKS = ("", "?", "~", "null")
"""Cells of an answer sheet that are left open."""

_PLAIN_ROW = re.compile(r"[-+0-9.eE \t]*")


class Table(NamedTuple):
    """The numbers of a text (NaN where a cell is left open), and the texts and places of its cells."""

    array: Array
    texts: Callable[[], Texts]
    find: Callable[[tuple[int, ...]], Place]


class Row(NamedTuple):
    """A line of the text: its number, and its cells."""

    line: int
    cells: list[str]


def read(document: Document, *, blanks: bool = False) -> Table:
    """The table in a text. ``blanks`` takes empty cells and ``?`` as left open.

    Raises AttncliError with line and column for a word, a ragged row, a decimal comma.
    """
    rows = lines(document)
    if not rows:
        raise AttncliError("there are no numbers in this file", where=Place(document.name))
    header, skipped = _frame(rows, blanks)
    rows = [Row(row.line, row.cells[skipped:]) for row in rows[header:]]
    _refuse_ragged(document, rows)
    numbers = [_values(document, row, skipped, blanks) for row in rows]

    def texts() -> Texts:
        found = np.empty((len(rows), len(rows[0].cells)), dtype=object)
        for i, row in enumerate(rows):
            found[i] = [cell.strip() for cell in row.cells]
        return found

    return Table(np.array(numbers), texts, lambda index: _place(document, rows[index[0]], index[1], skipped))


def lines(document: Document) -> list[Row]:
    """The rows of a text, split into cells; blank lines and comments (#) go."""
    text = document.text
    if text.count(",") + text.count("\n") + text.count(" ") > 4 * MAX_CELLS:
        hint = "Save large matrices as .npy files (numpy.save) and name these."
        raise AttncliError(f"more than {MAX_CELLS:,} cells", hint=hint, where=Place(document.name))
    numbered = [(i, line.partition("#")[0]) for i, line in enumerate(text.split("\n"), 1)]
    numbered = [(i, line) for i, line in numbered if line.strip()]
    separator = _separator(document, [line for _, line in numbered[:20]])
    return [Row(i, _cells(document, i, line, separator)) for i, line in numbered]


def _separator(document: Document, some: list[str]) -> str | None:
    """Tab, semicolon or comma, whichever comes first in this order; None for blanks."""
    name = (document.name or "").lower()
    if name.endswith(".tsv"):
        return "\t"
    return next((sign for sign in ("\t", ";", ",") if any(sign in line for line in some)), None)


def _cells(document: Document, number: int, line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    if '"' not in line:
        return line.split(separator)
    import csv

    try:
        return next(iter(csv.reader([line], delimiter=separator, strict=True)))
    except csv.Error:
        where = Place(document.name, number, line.rfind('"') + 1, line)
        raise AttncliError(
            "a quote that is never closed, or stands in a cell", hint='Write "a" or a.', where=where
        ) from None


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        literals.parse(cell)
    except AttncliError:
        return False
    return True


def _is_header(cells: list[str]) -> bool:
    """Whether a row names the columns: no number in it, and some word."""
    words = [cell for cell in cells if cell.strip() not in BLANKS]
    return any(re.search(r"[^\W\d]", cell) for cell in words) and not any(is_number(cell) for cell in words)


def _frame(rows: list[Row], blanks: bool) -> tuple[int, int]:
    """How many rows and columns in front are no numbers: 0 or 1 each.

    A first row of words is a header. A first column is one of labels where it has words before numbers, or where the
    header leaves its first cell empty, as pandas does.
    """
    head, body = rows[0].cells, rows[1:]
    if not body:
        return 0, 0
    if len(head) > 1 and not head[0].strip() and (_is_header(head) or not blanks):
        return 1, 1
    header = int(_is_header(head))
    first = [row.cells[0].strip() for row in rows[header:]]
    words = all(cell not in BLANKS and not is_number(cell) for cell in first)
    return header, int(words and all(len(row.cells) > 1 and is_number(row.cells[1]) for row in rows[header:]))


def _refuse_ragged(document: Document, rows: list[Row]) -> None:
    for i, row in enumerate(rows):
        if len(row.cells) != len(rows[0].cells):
            what = f"row {i + 1} has {_numbers(len(row.cells))}, and row 1 has {len(rows[0].cells)}"
            hint = "Every row needs as many. Is a number missing, or a separator too many?"
            raise AttncliError(what, hint=hint, where=Place(document.name, row.line))


def _numbers(count: int) -> str:
    return f"{count} number" + ("s" if count != 1 else "")


def _values(document: Document, row: Row, skipped: int, blanks: bool) -> list[float]:
    """The numbers of a row: at once where all are plain decimals, else one by one."""
    if _PLAIN_ROW.fullmatch("".join(row.cells)):
        try:
            values = list(map(float, row.cells))
        except ValueError:
            values = [math.inf]
        if all(map(math.isfinite, values)):
            return values
    return [_value(document, row, column, skipped, blanks) for column in range(len(row.cells))]


def _value(document: Document, row: Row, column: int, skipped: int, blanks: bool) -> float:
    cell = row.cells[column]
    if blanks and cell.strip() in BLANKS:
        return math.nan
    try:
        return literals.parse(cell).value
    except AttncliError as error:
        raise AttncliError(error.what, hint=error.hint, where=_place(document, row, column, skipped)) from None


def _place(document: Document, row: Row, column: int, skipped: int) -> Place:
    text = document.text.split("\n")[row.line - 1]
    cell = row.cells[column].strip()
    before = sum(len(c) + 1 for c in row.cells[:column])
    start = max(0, text.find(cell, before)) if cell else min(before, len(text))
    return Place(document.name, row.line, start + 1, text, max(1, len(cell)))
