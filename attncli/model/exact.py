"""The problem in exact numbers: its arrays hold `Exact` ones, as they were written, and all else runs as it does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.language.errors import AttncliError
from attncli.maths.exact import Exact, parsed
from attncli.model.keys import KEYS
from attncli.model.problem import Problem
from attncli.stages.table import STAGES, present

if TYPE_CHECKING:
    from attncli.language.written import Written
    from attncli.maths.ops import Array

MOST_PRODUCTS = 20_000
MOST_WEIGHTS = 400
"""So many products in all, and entries of the weights, are computed exactly; symbols take about 1000 times as long."""


def exact_problem(problem: Problem) -> Problem:
    """The same problem in exact numbers, as they were written.

    Raises AttncliError where it is too large for exact work, or rounds on the way.
    """
    if problem.round is not None:
        raise AttncliError("exact numbers are not rounded on the way", hint="Drop round, or --exact.", key="round")
    _refuse_large(problem)
    keys: dict[str, Any] = {}
    for name, value in problem.keys.items():
        kind = KEYS[name].kind
        if kind in ("matrix", "vector"):
            keys[name] = _array(value, problem.written.get(name))
        elif kind == "heads":
            keys[name] = [_head(head, f"heads.{r}", problem.written) for r, head in enumerate(value, 1)]
        elif kind == "number":
            written = problem.written.get(name)
            keys[name] = parsed(str(written.texts)) if written is not None else Exact.of(value)
        elif name != "dtype":
            keys[name] = value
    return Problem(
        written=problem.written, factors=problem.factors, notes=problem.notes, exact=True, **keys
    )  # fmt: skip


def _head(head: Mapping[str, Any], path: str, written: Mapping[str, Written]) -> dict[str, Any]:
    return {name: _array(value, written.get(f"{path}.{name}")) for name, value in head.items()}


def _array(value: Any, written: Written | None) -> Array:
    """A matrix as exact numbers: its texts where it was written, else the shortest decimals of its floats."""
    numbers = np.asarray(value)
    texts = None if written is None else written.texts
    if texts is not None and texts.shape == numbers.shape:
        numbers = texts
    flat = [Exact.of(str(entry) if isinstance(entry, str) else entry) for entry in numbers.ravel()]
    array = np.empty(len(flat), dtype=object)
    array[:] = flat
    return array.reshape(numbers.shape)


def products(problem: Problem) -> int:
    """How many products all stages take together."""
    found = 0
    for stage in present(problem):
        if not stage.on_request and stage.name not in problem.given:
            shape = stage.shape(problem)
            terms = stage.right.work(problem, shape, stage.axes)
            found += sum(math.prod(numbers) for numbers, _ in terms) or math.prod(shape)
    return found


def _refuse_large(problem: Problem) -> None:
    weights = math.prod(STAGES["weights"].shape(problem)) if problem.m else 0
    found = products(problem)
    if weights > MOST_WEIGHTS or found > MOST_PRODUCTS:
        what = f"too large for exact work: {weights} weights and {found} products"
        limit = f"The limit is {MOST_WEIGHTS} weights (batch · h · n · m) and {MOST_PRODUCTS} products in all."
        raise AttncliError(what, hint=(limit, "Without --exact it is computed in floating point."))
