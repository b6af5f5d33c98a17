"""Which stages, which head and which batch entry of a result are shown.

A Choice is made, and held to the problem, before anything is computed; a View is the result seen through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attncli.language.errors import AttncliError
from attncli.stages.table import SCORES, STAGES, Stage
from attncli.stages.wanted import wanted_stages

if TYPE_CHECKING:
    from attncli.engine.compute import Result
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem
    from attncli.rendering.formats import Format


class Choice(NamedTuple):
    """The stages that are asked for, in the table's order; ``head`` and ``batch`` count from 1 (None: all)."""

    stages: tuple[str, ...]
    head: int | None = None
    batch: tuple[int, ...] | None = None


class Matrix(NamedTuple):
    """One matrix of a stage: its place along the batch axes and its head, from 1, and its numbers (rows, columns)."""

    batch: tuple[int, ...]
    head: int | None
    numbers: Array


def choose(
    problem: Problem, stages: Iterable[str] | None = None, head: int | None = None, batch: tuple[int, ...] | None = None
) -> Choice:
    """What is shown of a problem: all stages, or those named; all heads and batch entries, or one.

    Raises AttncliError where the problem doesn't have what is asked for.
    """
    names = wanted_stages(problem, stages)
    if head is not None:
        _check_head(problem, head)
        joined = [name for name in names if not STAGES[name].per_head]
        if joined and stages is not None:
            raise AttncliError(f"{joined[0]} joins the heads, and has none to select", hint="Drop -H.")
        names = [name for name in names if STAGES[name].per_head]
    if batch is not None:
        _check_batch(problem, batch)
    return Choice(tuple(names), head, batch)


def _check_head(problem: Problem, head: int) -> None:
    if 1 <= head <= problem.num_heads:
        return
    there = "one head: 1" if problem.num_heads == 1 else f"heads 1 to {problem.num_heads}"
    raise AttncliError(f"there is no head {head}", hint=f"The problem has {there}.")


def _check_batch(problem: Problem, batch: tuple[int, ...]) -> None:
    if len(batch) == len(problem.batch) and all(1 <= i <= size for i, size in zip(batch, problem.batch, strict=True)):
        return
    named = ",".join(map(str, batch))
    if not problem.batch:
        hint = "The problem has no batch axis."
    elif len(problem.batch) == 1:
        hint = f"The problem has batch entries 1 to {problem.batch[0]}."
    else:
        hint = f"The batch axes have the sizes {problem.batch}: one number each, such as -B {_ones(problem)}."
    raise AttncliError(f"there is no batch entry {named}", hint=hint)


def _ones(problem: Problem) -> str:
    return ",".join("1" for _ in problem.batch)


def check_fits(problem: Problem, choice: Choice, format: Format) -> None:
    """Refuse a choice that holds more than a format's file can; says how to select."""
    if format.holds == "stages":
        return
    if len(choice.stages) != 1:
        several = f"{len(choice.stages)} are selected: {', '.join(choice.stages)}"
        hint = "Select one with -s, such as -s weights. json, yaml, long and npz hold several."
        noun = "one stage" if format.holds == "stage" else "one matrix of one stage"
        raise AttncliError(f"{format.name} holds {noun}, and {several}", hint=hint)
    if format.holds == "stage":
        return
    name = choice.stages[0]
    heads = _head_count(problem, STAGES[name]) if choice.head is None else 1
    if heads > 1:
        hint = f"Select one with -H, from 1 to {problem.num_heads}."
        raise AttncliError(f"{format.name} holds one matrix, and {name} has {heads}: one a head", hint=hint)
    if problem.batch and choice.batch is None and prod(problem.batch) > 1:
        hint = f"Select one with -B, such as -B {_ones(problem)}."
        what = f"{format.name} holds one matrix, and there are {prod(problem.batch)} batch entries"
        raise AttncliError(what, hint=hint)


def _head_count(problem: Problem, stage: Stage) -> int:
    if not stage.per_head:
        return 1
    return problem.num_heads if stage.axes[0] == "h" else problem.num_kv_heads


class View:
    """A result seen through a choice: a stage's array, or its matrices one by one, as shown (layout: columns too)."""

    def __init__(self, result: Result, choice: Choice | None = None) -> None:
        self.result = result
        self.problem = result.problem
        self.choice = choice or Choice(tuple(result))

    @property
    def stages(self) -> tuple[str, ...]:
        return self.choice.stages

    def array(self, name: str) -> Array:
        """A stage with all its axes, (batch.., head, row, column); an axis that was selected from has size 1."""
        array, axes = self.result[name], 3 if STAGES[name].per_head else 2
        if self.choice.head is not None and axes == 3:
            at = self._own_head(name) - 1
            array = array[..., at : at + 1, :, :]
        lead = array.ndim - axes
        for axis, number in enumerate(self._own_batch(lead)):
            at = min(number, array.shape[axis]) - 1
            array = array[(slice(None),) * axis + (slice(at, at + 1),)]
        return array

    def matrices(self, name: str) -> Iterator[Matrix]:
        """A stage's matrices in order, each with its batch entry and its head (None where it has no heads)."""
        array, per_head = self.array(name), STAGES[name].per_head
        first_head = self._own_head(name) if self.choice.head is not None else 1
        lead = array.ndim - (3 if per_head else 2)
        first = self._own_batch(lead) or (1,) * lead
        for index in product(*(range(size) for size in array.shape[:-2])):
            batch = tuple(start + i for start, i in zip(first, index, strict=False))
            yield Matrix(batch, first_head + index[-1] if per_head else None, array[index])

    def only(self, name: str) -> Array:
        """A stage's array: (row, column) where exactly one matrix is selected, with all its axes else."""
        array = self.array(name)
        return array.reshape(array.shape[-2:]) if prod(array.shape[:-2]) == 1 else array

    def _own_head(self, name: str) -> int:
        """The head that is selected, in a stage's own count: query head r uses key/value head ⌈r·g/h⌉."""
        assert self.choice.head is not None
        heads = _head_count(self.problem, STAGES[name])
        return -(-self.choice.head * heads // self.problem.num_heads)

    def _own_batch(self, lead: int) -> tuple[int, ...]:
        """The selected batch entry along a stage's own batch axes, which may be fewer than the problem's."""
        batch = self.choice.batch
        return () if batch is None else batch[len(batch) - lead :]


def hidden_cells(problem: Problem, name: str, matrix: Matrix) -> Array | None:
    """True where a mask hides a cell of a matrix of scores or weights, as shown (rows, columns); None: it hides none.

    Of scores that are given, those at −∞ are taken to be hidden.
    """
    mask = problem.mask
    if name in ("masked_scores", "weights") and mask is not None and mask.allowed is not None:
        allowed = np.broadcast_to(mask.allowed, (*problem.batch, problem.num_heads, problem.n, problem.m))
        lead = (0,) * (len(problem.batch) - len(matrix.batch)) + tuple(i - 1 for i in matrix.batch)
        hidden: Array = ~allowed[(*lead, (matrix.head or 1) - 1)]
        return hidden.T if problem.columns else hidden
    if name in SCORES and matrix.numbers.dtype != object:
        hidden = np.isneginf(matrix.numbers)
        return hidden if hidden.any() else None
    return None
