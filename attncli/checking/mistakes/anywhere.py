"""Mistakes that may happen at any stage: copying, signs, order, rounding on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from attncli.checking.mistakes.base import ANYWHERE, Mistake, Values, Variant, Wrong
from attncli.maths import ops
from attncli.maths.ops import Array
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.stages.inputs import LayerInputs

MOST = 8
"""Rows, columns or heads beyond this many are not exchanged on trial."""


def _made(problem: LayerInputs, values: Values, stage: str) -> Array:
    """The right formula on these values, or what is given."""
    return problem.given[stage] if stage in problem.given else STAGES[stage].right.forward(problem, values)


def _then(stage: str, change: Callable[[Array], Array]) -> Wrong:
    return lambda problem, values: change(_made(problem, values, stage))


def _both(stage: str, wrong: Wrong, detail: str = "") -> Iterable[Variant]:
    """Carried on, or only written down."""
    yield Variant({stage: wrong}, detail)
    yield Variant({stage: wrong}, detail, shown_only=True)


def _copied(problem: LayerInputs, right: Values, stage: str) -> Iterable[Variant]:
    def copy(source: str) -> Wrong:
        return lambda problem, values: values.get(source, right[source])

    for source in right:
        if source != stage:
            yield from _both(stage, copy(source), f"these are the numbers of {source}")
    if "V" in right and stage in ("concat", "multihead"):
        yield from _both(stage, lambda p, v: ops.join_heads(v["V"]), "these are the numbers of V, side by side")


def _signs(problem: LayerInputs, right: Values, stage: str) -> Iterable[Variant]:
    yield from _both(stage, _then(stage, np.abs))


def _transposed(problem: LayerInputs, right: Values, stage: str) -> Iterable[Variant]:
    yield from _both(stage, _then(stage, lambda array: array.swapaxes(-1, -2)))


def _other_head(problem: LayerInputs, right: Values, stage: str) -> Iterable[Variant]:
    """Some head's place holds another head's right answer; two heads changed places; one matrix for all heads."""
    heads = right[stage].shape[-3] if STAGES[stage].per_head else 1

    def picked(order: list[int]) -> Wrong:
        return _then(stage, lambda array: array[..., order, :, :])

    for a in range(min(heads, MOST) if heads > 1 else 0):
        for b in (b for b in range(min(heads, MOST)) if b != a):
            one = [b if r == a else r for r in range(heads)]
            yield from _both(stage, picked(one), f"head {a + 1} has the numbers of head {b + 1}")
            if a < b:
                exchanged = [{a: b, b: a}.get(r, r) for r in range(heads)]
                yield from _both(stage, picked(exchanged), f"heads {a + 1} and {b + 1} changed places")
        yield from _both(stage, picked([a] * heads), f"every head has the numbers of head {a + 1}")
        yield Variant({stage: picked([a])}, f"this is head {a + 1} alone", shown_only=True)


def _exchanged(axis: int, what: str) -> Callable[[LayerInputs, Values, str], Iterable[Variant]]:
    def variants(problem: LayerInputs, right: Values, stage: str) -> Iterable[Variant]:
        size = right[stage].shape[axis]

        def swapped(a: int, b: int) -> Wrong:
            order = [{a: b, b: a}.get(i, i) for i in range(size)]
            return _then(stage, lambda array: np.take(array, order, axis=axis))

        for a, b in combinations(range(min(size, MOST)), 2):
            yield from _both(stage, swapped(a, b), f"{what} {a + 1} and {b + 1}")

    return variants


def _cut(array: Array, decimals: int) -> Array:
    step = 10.0**decimals
    return np.trunc(array * step * (1 + 1e-15)) / step


def _rounded(problem: LayerInputs, right: Values, stage: str) -> Iterable[Variant]:
    """A stage before this one rounded to k decimals, or all of them."""
    before = [name for name in right if name not in problem.given and name != "contributions"]
    before = before[: before.index(stage)] if stage in before else before

    def rounding(name: str, decimals: int, cut: bool) -> Wrong:
        return _then(name, lambda array: _cut(array, decimals) if cut else ops.rounded(array, decimals))

    for decimals in (1, 2, 3, 4):
        for cut in (False, True):
            way = f"{'cut' if cut else 'rounded'} to {decimals} decimal{'s' if decimals > 1 else ''}"
            for name in before:
                setting = None if cut else {name: decimals}
                yield Variant({name: rounding(name, decimals, cut)}, f"{name} {way}", round=setting)
            if len(before) > 1:
                every = {name: rounding(name, decimals, cut) for name in before}
                yield Variant(every, f"every stage {way}", round=None if cut else decimals)


def _anywhere(
    name: str, sentence: str, formula: str, source: str, at: Callable[[LayerInputs, Values, str], Iterable[Variant]]
) -> Mistake:
    return Mistake(name, sentence, ANYWHERE, formula, source, at=at)


SOLVED = (
    Mistake(
        "misread", "one entry of a weight or of the inputs was misread", "Q, K, V", '"one other entry in" Z "or" W',
        "hand work; the International Baccalaureate's marking notes name it",
    ),
    Mistake("slip", "one wrong cell alone", ANYWHERE, '"one other entry"', "omkarchebale.vercel.app, a walk-through"),
)  # fmt: skip
"""Mistakes that `check` solves for, or sees, in place of trying a formula."""

ROWS = (
    _anywhere(
        "stage_copied", "another stage's numbers stand here", '"another stage"',
        "Deep-ML, question 94 (a printed answer that is V)", _copied,
    ),
    _anywhere("signs_dropped", "the minus signs were dropped", '"absolute values"', "hand work", _signs),
    _anywhere(
        "transposed", "this is the right matrix, transposed", '"the transpose"',
        "rasbt/machine-learning-book#170; karpathy/llm.c#531", _transposed,
    ),
    _anywhere(
        "other_head", "this is the right answer of another head", '"head" s "for head" r',
        "heads counted from 0 in one place and from 1 in another", _other_head,
    ),
    _anywhere(
        "rows_exchanged", "two rows changed places", '"rows" i, j "exchanged"', "hand work", _exchanged(-2, "rows"),
    ),
    _anywhere(
        "columns_exchanged", "two columns changed places", '"columns" i, j "exchanged"', "hand work",
        _exchanged(-1, "columns"),
    ),
    _anywhere(
        "rounded_on_the_way", "right, but for rounding on the way to this stage", '"rounded before the next stage"',
        "silanm/nlp-a3-machine-translation (weights of 2 decimals, not shown)", _rounded,
    ),
)  # fmt: skip
