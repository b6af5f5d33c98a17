"""What a known mistake is: the formula of a stage (or of several), replaced by a wrong one.

A wrong formula is a function (problem, values) -> array in the canonical axes, or None where the problem gives no
sense to it; ``values`` are those of the earlier stages. The rest of the chain goes on by the right formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.language.errors import AttncliError
from attncli.maths import ops
from attncli.maths.ops import Array
from attncli.stages.ops import first
from attncli.stages.table import SCORES, STAGES

if TYPE_CHECKING:
    from attncli.stages.inputs import LayerInputs

Values = Mapping[str, Array]
Wrong = Callable[["LayerInputs", Values], "Array | None"]
Changes = dict[str, Wrong]

NOT_HERE = (
    ArithmeticError, AssertionError, AttncliError, AttributeError, IndexError, KeyError, StopIteration, TypeError,
    ValueError,
)  # fmt: skip
"""What a wrong formula raises in a problem that it makes no sense in (shapes that don't fit, no W, no d_k)."""

ANYWHERE = "any"


@dataclass(frozen=True)
class Variant:
    """One way of making a mistake: the stages that it replaces.

    ``detail`` says which of several ways it is ("b_K", "head 2 has head 1's numbers"). ``shown_only``: what was
    written is wrong, but later stages were computed from the right numbers. ``around`` makes the mistake with any other
    formula of its one stage, where that makes sense: with a wrong one, two mistakes meet at the same stage.
    ``round`` is what the problem's key of this name must be for this to be right.
    """

    changes: Changes
    detail: str = ""
    shown_only: bool = False
    round: int | Mapping[str, int] | None = None
    around: Callable[[Wrong], Wrong] | None = field(repr=False, default=None)


@dataclass(frozen=True)
class Mistake:
    """A row of the table: ``name``, a ``sentence`` that says what the numbers are, the ``stage`` that goes wrong,
    the wrong ``formula`` in `notation`, and the ``source`` where people were seen to make it.

    ``variants`` gives the ways of making it in a problem. One that may happen at any stage (``stage`` is "any") has
    ``at`` instead, which is asked with the right values and the stage in question.
    """

    name: str
    sentence: str
    stage: str
    formula: str
    source: str
    variants: Callable[[LayerInputs], Iterable[Variant]] = field(repr=False, default=lambda problem: ())
    at: Callable[[LayerInputs, Values, str], Iterable[Variant]] | None = field(repr=False, default=None)

    def ways(self, problem: LayerInputs, right: Values, stage: str | None = None) -> list[Variant]:
        """The ways of making this mistake in a problem; of one that may happen anywhere, those at ``stage``."""
        try:
            if self.at is not None:
                return [] if stage is None else list(self.at(problem, right, stage))
            return list(self.variants(problem))
        except NOT_HERE:
            return []


def row(
    name: str, stage: str, sentence: str, formula: str, source: str, *ways: Wrong | Changes, **more: Any
) -> Mistake:
    """A row whose ways are wrong formulas of its stage, or {stage: wrong formula}."""
    variants = tuple(Variant(way if isinstance(way, dict) else {stage: way}) for way in ways)
    return Mistake(name, sentence, stage, formula, source, **(more or {"variants": lambda problem: variants}))


# What wrong formulas are made of


def fresh(problem: LayerInputs, role: str) -> Array:
    """Q, K or V as projected or given, without cached rows: (batch.., heads, rows, width)."""
    return problem.given[role] if role in problem.given else STAGES[role].right.forward(problem, {})


def projected(problem: LayerInputs, role: str, *, source: Any = None, weight: Any = None, bias: Any = True) -> Array:
    """What Q, K or V would be from another source, weight or bias (True: its own; None: none)."""
    own_source, own_weight, own_bias = (getattr(problem, key) for key in problem.projection(role))
    source = own_source if source is None else source
    weight = own_weight if weight is None else weight
    heads = problem.num_heads if role == "Q" else problem.num_kv_heads
    return ops.split_heads(ops.project(source, weight, own_bias if bias is True else bias), heads)


def before_mask(values: Values) -> Array:
    """The scores that the mask is applied to."""
    return first(values, "capped_scores", "scaled_scores", "scores")


def before_softmax(values: Values) -> Array:
    """The scores that the softmax is taken of."""
    return first(values, *SCORES)


def plain_softmax(problem: LayerInputs, values: Values) -> Array:
    """The softmax as it should be."""
    return ops.softmax(before_softmax(values))


def softmax_of(scores: Callable[[LayerInputs, Values], Array]) -> Callable[[Wrong], Wrong]:
    """Any softmax, right or wrong, taken of other scores than those that it should be taken of."""
    return lambda softmax: lambda problem, values: softmax(problem, {**values, SCORES[0]: scores(problem, values)})


def without_hidden(scores: Array) -> Array:
    """Scores with 0 where they are −∞."""
    return np.where(np.isneginf(scores), 0.0, scores)


def values_of(problem: LayerInputs, values: Values) -> Array:
    """V, its heads repeated for the query heads: (batch.., h, m, d_v)."""
    return ops.spread_heads(values["V"], problem.num_heads)


def right(name: str) -> Wrong:
    """The right formula of a stage, for a mistake that spares it."""
    return lambda problem, values: STAGES[name].right.forward(problem, values)
