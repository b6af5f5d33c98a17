"""AnswerSheet: what somebody wrote down for the stages of a problem, and how exactly.

A sheet is in the problem's layout (``columns``: transposed), and may leave out axes of size 1 in front of a matrix.
The reader makes sheets from files; `AnswerSheet.of` makes one from Python's own numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attncli.language.errors import AttncliError
from attncli.language.written import Texts
from attncli.maths.ops import Array

UNJUDGED = (None, "?", "", "null")
"""Entries that are left open."""


@dataclass(frozen=True, eq=False)
class SheetStage:
    """One stage as written. All arrays have the shape in which it was written.

    ``value`` holds NaN where nothing is ``judged``; ``decimals`` counts the digits after the point of each text;
    ``exact`` marks expressions such as 1/3; ``texts`` are the entries as written (None from a binary file).
    ``rows`` are the 1-based numbers of the rows that are given, where only some are. ``error`` says why the stage
    can't be read; the arrays are empty then.
    """

    value: Array
    judged: Array
    decimals: Array
    exact: Array
    texts: Texts | None = None
    error: AttncliError | None = None
    binary: bool = False
    rows: tuple[int, ...] | None = None

    def resolve(self, shape: tuple[int, ...]) -> SheetStage:
        """The same in exactly this shape: given rows at their places, left out axes of size 1 put back.

        Raises AttncliError (its text names both shapes) where it doesn't fit.
        """
        placed = self if self.rows is None else self._placed(shape[-2])
        own = placed.value.shape
        if own == shape:
            return placed
        if [size for size in own if size != 1] == [size for size in shape if size != 1] and own[-2:] == shape[-2:]:
            return placed.mapped(lambda array: array.reshape(shape))
        if len(own) < 2 and placed.value.size == np.prod(shape) and 1 in shape[-2:]:
            return placed.mapped(lambda array: array.reshape(shape))
        lead = next((i for i, size in enumerate(shape[:-2]) if size != 1), len(shape[:-2]))
        raise AttncliError(f"it is {times(own)}, and must be {times(shape[lead:])}")

    def mapped(self, change: Any) -> SheetStage:
        """The same after ``change``, which maps each array to an array (a transpose, a reshape)."""
        texts = None if self.texts is None else change(self.texts)
        return replace(
            self, value=change(self.value), judged=change(self.judged), decimals=change(self.decimals),
            exact=change(self.exact), texts=texts, rows=None,
        )  # fmt: skip

    def _placed(self, size: int) -> SheetStage:
        rows = self.rows or ()
        if any(not 1 <= row <= size for row in rows):
            raise AttncliError(f"it has a row {max(rows)}, and there are rows 1 to {size}")
        at = [row - 1 for row in rows]

        def place(array: Any, empty: Any) -> Any:
            whole = np.full((*array.shape[:-2], size, array.shape[-1]), empty, array.dtype)
            whole[..., at, :] = array
            return whole

        texts = None if self.texts is None else place(self.texts, "?")
        return replace(
            self, value=place(self.value, np.nan), judged=place(self.judged, False),
            decimals=place(self.decimals, 0), exact=place(self.exact, False), texts=texts, rows=None,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class AnswerSheet:
    """The stages that a sheet has, by name, and what the sheet is called."""

    stages: Mapping[str, SheetStage]
    name: str = "sheet"

    @classmethod
    def of(cls, values: Mapping[str, Any], name: str = "sheet") -> AnswerSheet:
        """A sheet from nested lists of numbers, texts ("0.50", "1/3") and None (not judged), or from arrays.

        >>> AnswerSheet.of({"weights": [["0.50", None]]}).stages["weights"].decimals.tolist()
        [[2, 0]]
        """
        return cls({stage: stage_of(value) for stage, value in values.items()}, name)


def stage_of(value: Any) -> SheetStage:
    """One stage from nested lists, an array, or {row: [...]}; what can't be read becomes its ``error``."""
    if isinstance(value, SheetStage):
        return value
    try:
        if isinstance(value, Mapping):
            rows = tuple(int(row) for row in value)
            return replace(_from_lists([list(row) for row in value.values()]), rows=rows)
        if isinstance(value, np.ndarray):
            return of_array(value)
        return _from_lists(value)
    except (AttncliError, ValueError, TypeError) as error:
        return unreadable(error if isinstance(error, AttncliError) else AttncliError("it is no matrix of numbers"))


def of_array(array: Array) -> SheetStage:
    """A stage from a binary file: every entry is judged, at the precision of its dtype."""
    value = array if array.dtype.kind == "f" else array.astype(float)
    zeros = np.zeros(array.shape, dtype=int)
    return SheetStage(value, np.ones(array.shape, bool), zeros, zeros.astype(bool), binary=True)


def unreadable(error: AttncliError) -> SheetStage:
    """A stage that can't be read."""
    nothing = np.zeros((0, 0))
    return SheetStage(nothing, nothing.astype(bool), nothing.astype(int), nothing.astype(bool), error=error)


def _from_lists(value: Any) -> SheetStage:
    from attncli.language.literals import parse

    texts = np.array(value, dtype=object)
    flat = []
    for entry in texts.ravel():
        if isinstance(entry, (list, tuple)):
            raise AttncliError("its rows are not of one length")
        text = entry if entry is None else _text(entry)
        flat.append(None if text in UNJUDGED else parse(text))
    shape = texts.shape

    def each(function: Any, dtype: Any) -> Any:
        return np.array([function(number) for number in flat], dtype=dtype).reshape(shape)

    shown = ["?" if number is None else number.text for number in flat]
    return SheetStage(
        value=each(lambda number: np.nan if number is None else number.value, float),
        judged=each(lambda number: number is not None, bool),
        decimals=each(lambda number: 0 if number is None else number.decimals, int),
        exact=each(lambda number: number is not None and number.exact, bool),
        texts=np.array(shown, dtype=object).reshape(shape),
    )


def _text(number: Any) -> str:
    """A number of Python as it would be written: 3 without decimals, 0.5 with one."""
    if isinstance(number, str):
        return number.strip()
    return str(int(number)) if isinstance(number, (int, np.integer)) else repr(float(number))


def times(shape: tuple[int, ...]) -> str:
    """3 × 2."""
    return " × ".join(map(str, shape)) if shape else "a single number"
