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

from attncli import cells
from attncli.keys import KEYS
from attncli.stages import SCORES, STAGES, present

if TYPE_CHECKING:
    from attncli.ops import Array
    from attncli.problem import Problem
    from attncli.rendering.views import View

DIGITS = 4
"""Decimals, where nobody asks for others."""

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

    @property
    def words(self) -> str:
        """Which batch entry and head it is: "batch 2, head 1"."""
        parts = [f"batch {','.join(map(str, self.batch))}"] if self.batch else []
        return ", ".join(parts + ([f"head {self.head}"] if self.head is not None else []))

    def cell(self, row: int, column: int) -> str:
        """The name of a cell by its 0-based place, as `explain` takes it: ``weights[2;1,3]``."""
        lead = (*self.batch, *(() if self.head is None else (self.head,)))
        return str(cells.Cell(self.name, lead, (row + 1, column + 1)))


@dataclass(frozen=True)
class Section:
    """A stage, or what is given under a key: what is said of it once, and its sheets.

    ``symbol``, ``formula`` and ``shape`` are in the formulas' notation; ``left_out`` says which sheets are missing.
    """

    name: str
    symbol: str
    formula: str
    meaning: str
    shape: str
    sheets: tuple[Sheet, ...]
    left_out: str = ""

    @property
    def sentence(self) -> str:
        """What it means, as a sentence."""
        return f"{self.meaning[0].upper()}{self.meaning[1:]}."

    @property
    def equation(self) -> str:
        """``A = softmax(S~)``, or the symbol alone of what is given, or the formula alone of what has no symbol."""
        if self.formula == "given":
            return self.symbol or f'"{self.name}"'
        return f"{self.symbol} = {self.formula}" if self.symbol else self.formula


def sections(view: View, full: bool = False) -> list[Section]:
    """What a write-up shows: first what is given, where every stage of the problem follows; then the stages."""
    whole = view.choice.head is None and view.choice.batch is None and _is_whole(view)
    return [*(inputs(view.problem, full) if whole else ()), *(stage_section(view, name, full) for name in view.stages)]


def _is_whole(view: View) -> bool:
    return all(stage.name in view.stages for stage in present(view.problem) if not stage.on_request)


def stage_section(view: View, name: str, full: bool = False) -> Section:
    """A stage of a view, with a sheet for each head and batch entry (the first of them, unless it is ``full``)."""
    stage, problem = STAGES[name], view.problem
    shown = view.array(name).shape
    sheets, count = _sheets(view, name), prod(shown[:-2])
    shape = shape_words(stage.shape_names(problem), shown[-2:])
    return Section(
        name, stage.symbol_for(problem), stage.formula_for(problem), stage.meaning, shape, *_kept(sheets, count, full)
    )


def shape_words(names: Sequence[str], sizes: Sequence[int]) -> str:
    """``n × d_k = 3 × 2``, in the formulas' notation."""
    return f"{' × '.join(names)} = {' × '.join(map(str, sizes))}"


def _kept(sheets: Iterator[Sheet], count: int, full: bool) -> tuple[tuple[Sheet, ...], str]:
    kept = tuple(sheets if full else islice(sheets, MOST_MATRICES))
    return kept, "" if len(kept) == count else f"{len(kept)} of {count} matrices are shown"


def _sheets(view: View, name: str) -> Iterator[Sheet]:
    problem, stage = view.problem, STAGES[name]
    several = stage.per_head and view.result.rows[name].shape[-3] > 1
    symbol = stage.symbol_for(problem) or f'"{name}"'
    for matrix in view.matrices(name):
        array = matrix.numbers
        rows, columns = _labels(problem, stage.axes[-2:], array.shape)
        head = matrix.head if several else None
        hidden = hidden_cells(problem, name, array, matrix.batch, matrix.head or 1)
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
    named = [cells.labels(problem, axis) for axis in (reversed(axes) if problem.columns else axes)]
    first, second = (
        tuple(label if label is not None else str(i) for i, label in enumerate(words or (None,) * size, 1))
        for words, size in zip(named, shape, strict=True)
    )
    return first, second


def hidden_cells(problem: Problem, name: str, array: Array, batch: Sequence[int], head: int) -> Array | None:
    """True where the mask hides a cell of one matrix of scores or weights, as shown; None where it hides none."""
    mask = problem.mask
    if name in ("masked_scores", "weights") and mask is not None and mask.allowed is not None:
        allowed = np.broadcast_to(mask.allowed, (*problem.batch, problem.num_heads, problem.n, problem.m))
        hidden: Array = ~allowed[(*(i - 1 for i in batch), head - 1)]
        return hidden.T if problem.columns else hidden
    if name in SCORES and array.dtype != object:
        hidden = np.isneginf(array)
        return hidden if hidden.any() else None
    return None


# What is given

_SYMBOLS = {
    "memory": "M", "memory_V": "M_V", "W_Q": "W_r^Q", "W_K": "W_r^K", "W_V": "W_r^V", "W_O": "W^O",
    "b_Q": "b_r^Q", "b_K": "b_r^K", "b_V": "b_r^V", "b_O": "b^O",
}  # fmt: skip
_BY_HEAD = ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V")
_AXES = {"Z": ("n", "d_model"), "memory": ("m", "d_memory"), "memory_V": ("m", "d_memory")}


def inputs(problem: Problem, full: bool = False) -> list[Section]:
    """The matrices that a problem is given, one section a key, fused weights split into their heads' blocks."""
    found = [_input(problem, name, full) for name in KEYS if name in problem.arrays and name not in STAGES]
    if problem.mask is not None and problem.mask.bias is not None:
        found.append(_bias(problem, full))
    return found


def _input(problem: Problem, name: str, full: bool) -> Section:
    array, heads = problem.arrays[name], 1
    if name in _BY_HEAD:
        heads = problem.num_heads if name.endswith("Q") else problem.num_kv_heads
    array = array[None] if array.ndim == 1 else array
    array = np.stack(np.split(array, heads, axis=-1), axis=-3) if heads > 1 else array
    symbol = "X" if name == "Z" and problem.columns else _SYMBOLS.get(name, name)
    symbol = symbol if heads > 1 else symbol.replace("_r^", "^")
    array = array.swapaxes(-1, -2) if problem.columns and name != "W_a" else array
    sheets = _input_sheets(problem, Sheet(name, symbol, array, (), ()), heads > 1)
    meaning = KEYS[name].meaning.partition(";")[0]
    shape = " × ".join(map(str, array.shape[-2:]))
    return Section(name, symbol, "given", meaning, shape, *_kept(sheets, prod(array.shape[:-2]), full))


def _input_sheets(problem: Problem, stack: Sheet, by_head: bool) -> Iterator[Sheet]:
    """The matrices of a stack: one a batch entry, or one a head."""
    rows, columns = _labels(problem, _AXES.get(stack.name, ("", "")), stack.array.shape[-2:])
    for index in np.ndindex(stack.array.shape[:-2]):
        numbers = tuple(i + 1 for i in index)
        head = numbers[-1] if by_head else None
        batch = numbers[:-1] if by_head else numbers
        symbol = of_head(stack.symbol, head)
        yield replace(
            stack, symbol=symbol, array=stack.array[index], rows=rows, columns=columns, batch=batch, head=head
        )


def _bias(problem: Problem, full: bool) -> Section:
    """The additive mask, once where all heads and batch entries share it."""
    assert problem.mask is not None
    assert problem.mask.bias is not None
    bias = np.broadcast_to(problem.mask.bias, (*problem.mask.bias.shape[:-2], problem.n, problem.m))
    by_head = bias.ndim > 2 and bias.shape[-3] > 1
    bias = bias if by_head or bias.ndim == 2 else bias[..., 0, :, :]
    bias = bias[0] if not by_head and bias.ndim == 3 and bias.shape[0] == 1 else bias
    bias = bias.swapaxes(-1, -2) if problem.columns else bias
    rows, columns = _labels(problem, ("n", "m"), bias.shape[-2:])
    sheets = (
        replace(sheet, rows=rows, columns=columns)
        for sheet in _input_sheets(problem, Sheet("mask", '"mask"', bias, (), ()), by_head)
    )
    shape = " × ".join(map(str, bias.shape[-2:]))
    kept = _kept(sheets, prod(bias.shape[:-2]), full)
    return Section("mask", '"mask"', "given", "added to the scores before the softmax", shape, *kept)


# Long matrices


def picked(size: int, most: int) -> list[int | None]:
    """The 0-based positions that are shown of ``size``: all, or the first and last with None for what is left out.

    >>> picked(3, 4), picked(9, 4)
    ([0, 1, 2], [0, 1, None, 8])
    """
    if size <= most:
        return list(range(size))
    last = max(1, (most - 1) // 3)
    return [*range(most - 1 - last), None, *range(size - last, size)]


def gaps(sheet: Sheet, most_rows: int, most_columns: int) -> str:
    """What ``picked`` leaves out of a sheet, in words, or "" where that is nothing: "rows 3 to 8 of 9 are left out"."""
    words = []
    for what, size, most in zip(("rows", "columns"), sheet.array.shape, (most_rows, most_columns), strict=True):
        shown = picked(size, most)
        if None in shown:
            first = shown.index(None) + 1
            words.append(f"{what} {first} to {first + size - len(shown)} of {size} are left out")
    return ", ".join(words)


def number(value: object, digits: int) -> str:
    """A number with so many decimals; ∞, −∞ and NaN by their names; an exact one as it writes itself."""
    if not isinstance(value, (int, float, np.number)):
        return str(value)
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text
