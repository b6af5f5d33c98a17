"""What a write-up shows: the given matrices and a result's stages, each with its symbol, labels and hidden cells.

Markdown, LaTeX, HTML, pictures and notebooks all read these; none of them knows about axes, heads or layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from attncli.maths.cell import Cell
from attncli.model.keys import HEAD_KEYS, KEYS
from attncli.model.problem import WEIGHTS
from attncli.rendering.text import captions
from attncli.rendering.text.numbers import kept, shown
from attncli.rendering.views import hidden_cells
from attncli.stages.table import STAGES, present

if TYPE_CHECKING:
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem
    from attncli.rendering.views import View

MOST_MATRICES = 16
"""So many heads and batch entries of one stage are shown, unless all are asked for."""


@dataclass(frozen=True)
class Sheet:
    """One matrix as it is shown: rows and columns as the layout has them.

    ``batch`` and ``head`` count from 1; ``head`` is None where there is only one. ``rows`` and ``columns`` are the
    labels: tokens, or numbers. ``hidden`` is True where a mask hides the cell, or None where none is hidden.
    """

    name: str
    symbol: str
    array: Array
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    batch: tuple[int, ...] = ()
    head: int | None = None
    hidden: Array | None = None
    is_vector: bool = False

    @property
    def words(self) -> str:
        """Which batch entry and head it is: "batch 2, head 1"."""
        parts = [f"batch {','.join(map(str, self.batch))}"] if self.batch else []
        return ", ".join(parts + ([f"head {self.head}"] if self.head is not None else []))

    def cell(self, row: int, column: int) -> str:
        """The name of a cell by its 0-based place, as `explain` takes it: ``weights[2;1,3]``."""
        lead = (*self.batch, *(() if self.head is None else (self.head,)))
        index = (max(row, column) + 1,) if self.is_vector else (row + 1, column + 1)
        return str(Cell(self.name, lead, index))


@dataclass(frozen=True)
class Section:
    """A stage, or what is given under a key: what is said of it once, and its sheets.

    ``symbol``, ``equation`` and ``shape`` are in the formulas' notation; ``left_out`` says which sheets are missing.
    """

    name: str
    symbol: str
    equation: str
    meaning: str
    shape: str
    sheets: tuple[Sheet, ...]
    left_out: str = ""
    decimals: int | None = None
    """To how many its numbers are rounded, where they are."""

    @property
    def sentence(self) -> str:
        """What it means, as a sentence."""
        return f"{self.meaning[0].upper()}{self.meaning[1:]}."


def sections(view: View, full: bool = False) -> list[Section]:
    """What a write-up shows: first what is given, where every stage of the problem follows; then the stages."""
    whole = is_whole(view) and view.choice.head is None and view.choice.batch is None
    return [*(inputs(view.problem, full) if whole else ()), *(stage_section(view, name, full) for name in view.stages)]


def is_whole(view: View) -> bool:
    """Whether every stage is shown that the problem has (with a head selected: every stage that has heads)."""
    stages = [stage for stage in present(view.problem) if not stage.on_request]
    return all(stage.name in view.stages for stage in stages if stage.per_head or view.choice.head is None)


def stage_section(view: View, name: str, full: bool = False) -> Section:
    """A stage of a view, with a sheet for each head and batch entry (the first of them, unless it is ``full``)."""
    stage, problem = STAGES[name], view.problem
    size = view.array(name).shape
    sheets, count = _sheets(view, name), prod(size[:-2])
    shape = shape_words(stage.shape_names(problem), size[-2:])
    return Section(
        name,
        stage.symbol_for(problem),
        captions.equation(problem, stage, None),
        stage.meaning,
        shape,
        *_kept(sheets, count, full),
        problem.decimals(name),
    )


def shape_words(names: Sequence[str], sizes: Sequence[int]) -> str:
    """``n × d_k = 3 × 2``, in the formulas' notation."""
    return f"{' × '.join(names)} = {' × '.join(map(str, sizes))}"


def _kept(sheets: Iterator[Sheet], count: int, full: bool) -> tuple[tuple[Sheet, ...], str]:
    first = tuple(sheets if full else islice(sheets, MOST_MATRICES))
    return first, "" if len(first) == count else f"{len(first)} of {count} matrices are shown"


def _sheets(view: View, name: str) -> Iterator[Sheet]:
    problem, stage = view.problem, STAGES[name]
    several = stage.per_head and view.result.rows[name].shape[-3] > 1
    symbol = stage.symbol_for(problem) or f'"{name}"'
    for matrix in view.matrices(name):
        array = matrix.numbers
        rows, columns = _labels(problem, stage.axes[-2:], array.shape)
        head = matrix.head if several else None
        hidden = hidden_cells(problem, name, matrix)
        yield Sheet(name, of_head(symbol, head), array, rows, columns, matrix.batch, head, hidden)


def of_head(symbol: str, head: int | None) -> str:
    """``A^(r)`` as ``A^(2)``: the symbol of one head's matrix."""
    if head is None:
        return symbol
    for letter in "rs":
        symbol = symbol.replace(f"^({letter})", f"^({head})").replace(f"_{letter}^", f"_{head}^")
    return symbol


def _labels(problem: Problem, axes: Sequence[str], shape: Sequence[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The labels of rows and columns: tokens where an axis has them, else numbers."""
    named = [problem.labels(axis) for axis in (reversed(axes) if problem.columns else axes)]
    first, second = (
        words or tuple(str(i) for i in range(1, size + 1)) for words, size in zip(named, shape, strict=True)
    )
    return first, second


# What is given

_SYMBOLS = {
    "memory": "M", "memory_V": "M_V", "W_Q": "W^Q", "W_K": "W^K", "W_V": "W^V", "W_O": "W^O",
    "b_Q": "b^Q", "b_K": "b^K", "b_V": "b^V", "b_O": "b^O",
}  # fmt: skip
_AXES = {"Z": ("n", ""), "memory": ("m", ""), "memory_V": ("m", "")}


def inputs(problem: Problem, full: bool = False) -> list[Section]:
    """The matrices that a problem is given, as it writes them: one section a key, or a key of ``heads``."""
    names = [name for name in KEYS if name in problem.arrays and name not in STAGES]
    found = [section for name in names for section in _inputs(problem, name, full)]
    if problem.mask is not None and problem.mask.bias is not None:
        found.append(_bias(problem, full))
    return found


def _inputs(problem: Problem, name: str, full: bool) -> Iterator[Section]:
    array, symbol = problem.arrays[name], "X" if name == "Z" and problem.columns else _SYMBOLS.get(name, name)
    if "heads" not in problem.keys or name not in HEAD_KEYS:
        yield _input(problem, name, name, symbol, array, full)
        return
    for head, block in enumerate(np.split(array, problem.num_heads, axis=0 if name == "W_O" else -1), 1):
        own = symbol if problem.num_heads == 1 else symbol.replace("^", f"_{head}^")
        yield _input(problem, name, f"heads.{head}.{name}", own, block, full)


def _input(problem: Problem, key: str, name: str, symbol: str, array: Array, full: bool) -> Section:
    vector = array.ndim == 1
    array = array[None] if vector else array
    turned = problem.columns if vector else problem.stored_transposed(key)
    array = array.swapaxes(-1, -2) if turned else array
    sheet = Sheet(name, symbol, array, *_labels(problem, _AXES.get(key, ("", "")), array.shape[-2:]), is_vector=vector)
    sheets = (
        replace(sheet, array=array[index], batch=tuple(i + 1 for i in index)) for index in np.ndindex(array.shape[:-2])
    )
    meaning = KEYS[key].meaning.replace("one row", "one column") if problem.columns else KEYS[key].meaning
    meaning = meaning if problem.num_heads > 1 and "." not in name else meaning.partition(";")[0]
    meaning += ", stored as (out, in)" if turned and key in WEIGHTS and not problem.columns else ""
    shape = " × ".join(map(str, array.shape[-2:]))
    return Section(name, symbol, symbol, meaning, shape, *_kept(sheets, prod(array.shape[:-2]), full))


def _bias(problem: Problem, full: bool) -> Section:
    """The additive mask, once where all heads and batch entries share it."""
    assert problem.mask is not None
    assert problem.mask.bias is not None
    bias = np.atleast_2d(problem.mask.bias)
    bias = np.broadcast_to(bias, (*bias.shape[:-2], problem.n, problem.m))
    bias = bias.swapaxes(-1, -2) if problem.columns else bias
    lead = bias.shape[:-2]
    sheet = Sheet("mask", '"mask"', bias, *_labels(problem, ("n", "m"), bias.shape[-2:]))
    sheets = (
        replace(sheet, array=bias[index],
                head=index[-1] + 1 if lead and lead[-1] > 1 else None,
                batch=tuple(i + 1 for i, size in zip(index[:-1], lead, strict=False) if size > 1))
        for index in np.ndindex(lead)
    )  # fmt: skip
    shape = " × ".join(map(str, bias.shape[-2:]))
    meaning = "added to the scores before the softmax"
    return Section("mask", '"mask"', '"mask"', meaning, shape, *_kept(sheets, prod(lead), full))


# Long matrices


def picked(size: int, most: int) -> list[int | None]:
    """The 0-based positions that are shown of ``size``: all, or a few at both ends around a None.

    >>> picked(3, 4), picked(9, 5)
    ([0, 1, 2], [0, 1, None, 7, 8])
    """
    return kept(size, most, (most - 1) // 2)


def gaps(sheet: Sheet, most_rows: int, most_columns: int) -> str:
    """What ``picked`` leaves out of a sheet, in words, or "" where that is nothing: "rows 3 to 8 of 9 are left out"."""
    words = []
    for what, size, most in zip(("rows", "columns"), sheet.array.shape, (most_rows, most_columns), strict=True):
        positions = picked(size, most)
        if None in positions:
            first = positions.index(None) + 1
            words.append(f"{what} {first} to {first + size - len(positions)} of {size} are left out")
    return ", ".join(words)


def number(value: object, digits: int) -> str:
    """A number as a person reads it, a minus as a keyboard has it; an exact one as it writes itself."""
    return shown(float(value) if isinstance(value, (int, float, np.number)) else value, digits)
