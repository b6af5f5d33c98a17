"""Mistakes with the softmax: A = softmax(S̃) along each row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from attncli.checking.mistakes.base import Values, Variant, Wrong, before_softmax, right, row, without_hidden
from attncli.maths import ops
from attncli.maths.ops import Array

if TYPE_CHECKING:
    from attncli.stages.inputs import LayerInputs


def _columns(problem: LayerInputs, values: Values) -> Array:
    return ops.softmax(before_softmax(values).swapaxes(-1, -2)).swapaxes(-1, -2)


def _whole(problem: LayerInputs, values: Values) -> Array:
    scores = before_softmax(values)
    return ops.softmax(scores.reshape(*scores.shape[:-2], -1)).reshape(scores.shape)


def _over_heads(problem: LayerInputs, values: Values) -> Array | None:
    if problem.num_heads == 1:
        return None
    return np.moveaxis(ops.softmax(np.moveaxis(before_softmax(values), -3, -1)), -1, -3)


def _base(number: float) -> Wrong:
    return lambda problem, values: ops.softmax(before_softmax(values) * np.log(number))


def _not_normalised(problem: LayerInputs, values: Values) -> Array:
    powers: Array = np.exp(before_softmax(values))
    return powers


def _left_out(problem: LayerInputs, values: Values) -> Array:
    return before_softmax(values)


def _left_out_hidden_as_zero(problem: LayerInputs, values: Values) -> Array:
    return without_hidden(before_softmax(values))


def _divided_by_sum(problem: LayerInputs, values: Values) -> Array:
    scores = without_hidden(before_softmax(values))
    shares: Array = scores / scores.sum(axis=-1, keepdims=True)
    return shares


def _over_raw_sum(problem: LayerInputs, values: Values) -> Array:
    scores = before_softmax(values)
    shares: Array = np.exp(scores) / without_hidden(scores).sum(axis=-1, keepdims=True)
    return shares


def _twice(problem: LayerInputs, values: Values) -> Array:
    return ops.softmax(ops.softmax(before_softmax(values)))


def _twice_masked(problem: LayerInputs, values: Values) -> Array:
    scores = before_softmax(values)
    return ops.softmax(np.where(np.isneginf(scores), -np.inf, ops.softmax(scores)))


def _hardmax(problem: LayerInputs, values: Values) -> Array:
    scores = before_softmax(values)
    top = scores == scores.max(axis=-1, keepdims=True)
    first: Array = (top & (top.cumsum(axis=-1) == 1)).astype(scores.dtype)
    return first


def _averaged(problem: LayerInputs) -> Iterable[Variant]:
    """The mean of the heads' weights: shown once, or in place of each head's; what follows right, or made of it."""
    if problem.num_heads == 1:
        return

    def mean(problem: LayerInputs, values: Values) -> Array:
        weights = right("weights")(problem, values)
        assert weights is not None
        averaged: Array = weights.mean(axis=-3, keepdims=True)
        return averaged

    def repeated(problem: LayerInputs, values: Values) -> Array:
        return np.repeat(mean(problem, values), problem.num_heads, axis=-3)

    for way in (mean, repeated):
        yield Variant({"weights": way}, "the outputs are right", shown_only=True)
        yield Variant({"weights": way}, "and the outputs are made of it")


ROWS = (
    row(
        "softmax_columns", "weights", "the softmax runs down each column (over the queries), not along each row",
        'softmax(S~) "down each column"', "labmlai/annotated_deep_learning_paper_implementations#146", _columns,
    ),
    row(
        "softmax_whole_matrix", "weights", "the softmax runs over the whole matrix, not along each row",
        'softmax(S~) "over all entries"', "lucidrains/perceiver-pytorch#46", _whole,
    ),
    row(
        "softmax_over_heads", "weights", "the softmax runs over the heads, not along each row",
        'softmax(S~) "over the heads"', "PetrochukM/PyTorch-NLP#2 (an axis of another meaning)", _over_heads,
    ),
    row(
        "not_normalised", "weights", "the exponentials were not divided by their sum", "exp(S~)",
        "the sum forgotten in hand work", _not_normalised,
    ),
    row(
        "softmax_base_2", "weights", "powers of 2 were taken in place of powers of e", '2^S~ "over its row sum"',
        "binary exponentials, as hardware has them", _base(2),
    ),
    row(
        "softmax_base_3", "weights", "powers of 3 were taken in place of powers of e", '3^S~ "over its row sum"',
        "Tom Yeh, AI by Hand (its spreadsheets take 3 for e)", _base(3),
    ),
    row(
        "softmax_left_out", "weights", "the softmax was left out: these are the scores", "S~",
        "click4ai.perfionixai.com, scaled dot-product attention", _left_out, _left_out_hidden_as_zero,
    ),
    row(
        "divided_by_sum", "weights", "the scores were divided by their row's sum, without exponentials",
        'S~ "over its row sum"', "cs.calvin.edu, handout u10s1 (a taught first step)", _divided_by_sum,
    ),
    row(
        "exp_over_raw_sum", "weights", "the exponentials were divided by the sum of the scores, not by their own",
        'exp(S~) "over the row sum of" S~', "keras-team/keras-io#320; rwitten/HighPerfLLMs2024#3", _over_raw_sum,
    ),
    row(
        "softmax_twice", "weights", "the softmax was taken twice", "softmax(softmax(S~))",
        "zyy-2001/DisKT#6; gitabcworld/MatchingNetworks#5", _twice, _twice_masked,
    ),
    row(
        "hardmax", "weights", "each query's largest score got weight 1, and the others 0", 'argmax(S~)',
        "an argmax where its smooth form is meant", _hardmax,
    ),
    row(
        "values_averaged_over_heads", "weights", "the weights are the mean over the heads", "(A^(1) + .. + A^(h)) / h",
        "pytorch/pytorch#47583 (what nn.MultiheadAttention returns by default)", variants=_averaged,
    ),
)  # fmt: skip
