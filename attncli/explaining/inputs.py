"""What an explanation says of a problem's inputs: their entries as the problem writes them, tokens, masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.language.errors import AttncliError
from attncli.maths.cell import Cell
from attncli.maths.derivation import Derivation, Value, node
from attncli.model import masks
from attncli.model.keys import KEYS

if TYPE_CHECKING:
    from attncli.maths.cell import At
    from attncli.maths.mask import Mask
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem


class Inputs:
    """The entries of a problem's inputs as leaves of a derivation, each with the cell where the problem writes it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._known: dict[Any, Derivation] = {}

    def number(self, value: Any) -> Value:
        """A number as the problem's arithmetic has it: exact, or a float."""
        if not self.problem.exact:
            return float(value)
        from attncli.maths.exact import Exact

        return Exact.of(value)

    def entry(self, key: str, batch: tuple[int, ...], *index: int) -> Derivation:
        """One entry of an input in its canonical (row convention, fused) array, as the leaf ``input``."""
        known = (key, batch, index)
        if known not in self._known:
            array = self.problem.arrays[key]
            lead = _lead(array, batch, len(index))
            value = array[(*lead, *index)]
            cell = self._cell(key, tuple(i + 1 for i in lead), index)
            self._known[known] = Derivation("input", self.number(value), cell=cell, symbol=f'"{cell}"')
        return self._known[known]

    def _cell(self, key: str, lead: tuple[int, ...], index: tuple[int, ...]) -> Cell:
        """Where the problem writes an entry: in its head's own matrix, transposed where it stores the transpose."""
        name, position = key, list(index)
        if key in self.problem.keys.get("heads", [()])[0]:
            axis = 0 if key == "W_O" else -1
            width = self.problem.arrays[key].shape[axis] // self.problem.num_heads
            head, position[axis] = divmod(position[axis], width)
            name = f"heads.{head + 1}.{key}"
        if KEYS[key].kind == "matrix" and self.problem.stored_transposed(key):
            position.reverse()
        return Cell(name, lead, tuple(i + 1 for i in position))

    def cached(self, stage: str, at: At) -> Derivation | None:
        """A row of K or V that is not computed: it comes from past_K, the given K, or extra_K; None for others."""
        problem, row = self.problem, at.i
        if stage not in ("K", "V") or not (problem.past or problem.extra):
            return None
        extra = row - (problem.m - problem.extra)
        if row < problem.past:
            name, words = f"past_{stage}", "cached"
        elif extra >= 0:
            name, row, words = f"extra_{stage}", extra, "a key that no mask hides"
        elif stage in problem.given:
            name, row, words = stage, row - problem.past, "given"
        else:
            return None
        array = problem.given[stage] if name == stage else problem.parts[name]
        group = at.head * problem.num_kv_heads // problem.num_heads
        lead = _lead(array, (*at.batch, group), 2)
        value = self.number(array[(*lead, row, at.j)])
        position = (row + 1, at.j + 1) if problem.per_head else (row + 1, lead[-1] * array.shape[-1] + at.j + 1)
        places = tuple(i + 1 for i in (lead if problem.per_head else lead[:-1]))
        cell = Cell(name, places, position[::-1] if problem.columns else position)
        return node("pick", Derivation("input", value, cell=cell, symbol=f'"{cell}"'), words=words)

    # Formulas with the indices of one cell

    def projection_formula(self, role: str, row: int, head: int, column: int) -> str:
        """z_1 * "column 2 of" W^Q + b_2."""
        problem = self.problem
        source, weight, bias = problem.projection(role)
        letter = {"Z": "x" if problem.columns else "z", "memory": "m", "memory_V": "m"}[source]
        heads = problem.num_heads if role == "Q" else problem.num_kv_heads
        name = f"W_{head + 1}^{role}" if heads > 1 else f"W^{role}"
        return self._product_formula(f"{letter}_{{{row + 1}}}", weight, name, column, bias in problem.arrays)

    def output_formula(self, token: str, weight: str, column: int, bias: bool) -> str:
        """The same for W_O: what stands on the left is the concat, or one head's output."""
        return self._product_formula(token, "W_O", weight, column, bias)

    def _product_formula(self, token: str, key: str, weight: str, column: int, bias: bool) -> str:
        line = "row" if self.problem.stored_transposed(key) else "column"
        part = f'"{line} {column + 1} of" {weight}'
        text = f"{part} * {token}" if self.problem.columns else f"{token} * {part}"
        return f"{text} + b_{{{column + 1}}}" if bias else text


def _lead(array: Array, batch: tuple[int, ...], own: int) -> tuple[int, ...]:
    """The leading indices of an array whose last ``own`` axes are its own; axes of 1 serve all batch entries."""
    axes = array.ndim - own
    return tuple(i if size > 1 else 0 for i, size in zip(batch[len(batch) - axes :], array.shape, strict=False))


def spoken(problem: Problem, axis: str, position: int) -> str:
    """A query or a key in words: its number, and its token where it has one."""
    labels = problem.labels(axis)
    return f"{position + 1} ({labels[position]})" if labels else str(position + 1)


def hidden_by(problem: Problem, at: At) -> str:
    """Which of the masks hide a key from a query, in the words in which they were asked for: "mask: causal"."""
    mask = problem.mask
    assert mask is not None
    names = mask.parts
    if len(names) > 1:
        names = tuple(name for name, one in _one_by_one(problem) if not _allows(one, at)) or names
    return "mask: " + "; ".join(names)


def _one_by_one(problem: Problem) -> list[tuple[str, Mask]]:
    """The masks of a list each alone, as far as each can be read alone."""
    frame = masks.Frame(
        problem.n, problem.m - problem.extra, problem.num_heads, problem.batch, problem.past, problem.extra,
        problem.columns,
    )  # fmt: skip
    found = []
    for spec in problem.keys["mask"]:
        try:
            one = masks.build(spec, frame)
        except AttncliError:  # a short mask counts on what the others hide
            continue
        found.append((one.parts[0], one))
    return found


def _allows(mask: Mask, at: At) -> bool:
    allowed, _ = mask.part(slice(at.i, at.i + 1))
    if allowed is None or allowed.ndim == 0:
        return True
    index = (*at.batch, at.head, 0, at.j)[-allowed.ndim :]
    return bool(allowed[tuple(np.minimum(index, np.array(allowed.shape) - 1))])
