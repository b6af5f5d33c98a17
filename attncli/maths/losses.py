"""From logits to tokens and losses: the logarithms of softmax, the likeliest tokens, cross-entropy, perplexity.

Logarithms are natural unless a base is given. A row of logits stands for one position, its columns for the V words.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attncli.maths.arrays import Array, as_in, by_parts, calculation, constant
from attncli.maths.ops import softmax


def softmax_with_sinks(scores: Array, sinks: Array) -> Array:
    """exp(s_ij) / (exp(sink_r) + Σ_l exp(s_il)): each head has a logit without a value, so rows sum to less than 1.

    The sink of gpt-oss (OpenAI 2025; Xiao et al. 2024, "Efficient streaming language models with attention sinks",
    has it as a token). A row that is −∞ throughout is 0: all its weight lies on the sink.

    scores (..., h, n, m), sinks (h)  ->  (..., h, n, m)

    >>> softmax_with_sinks(np.array([[[0.0, 0.0], [-np.inf, -np.inf]]]), np.array([0.0])).round(4)
    array([[[0.3333, 0.3333],
            [0.    , 0.    ]]])
    """
    column = np.broadcast_to(sinks[:, None, None], (*scores.shape[:-1], 1))
    return softmax(np.concatenate([scores, column], axis=-1))[..., :-1]


@calculation
def log_softmax(logits: Array) -> Array:
    """ln softmax(x) = x − max − ln Σ exp(x − max), of each row: finite also where the probability rounds to 0.

    A row that is −∞ throughout stays so, as `softmax` gives it no weight.

    logits (..., V)  ->  (..., V)

    >>> log_softmax(np.array([[0.0, 0.0], [1e308, -1e308]])).round(4).tolist()
    [[-0.6931, -0.6931], [0.0, -inf]]
    """
    return by_parts(_log_softmax, logits, logits.shape[-1])


def _log_softmax(rows: Array) -> Array:
    top = rows.max(axis=-1, keepdims=True)
    hidden = np.asarray(top == as_in(-np.inf, rows), dtype=bool)
    nothing = as_in(0, rows)
    # exact numbers can't overflow: there the formula keeps the logits as they are written
    shifted = rows - np.where(hidden, nothing, nothing if rows.dtype == object else top)
    logs: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return np.where(hidden, rows, logs)


def greatest(x: Array) -> tuple[Array, Array]:
    """The place of each row's greatest number, the smallest of several, and whether there are several.

    x (..., V)  ->  ids (...) from 0, ties (...)

    >>> greatest(np.array([[1.0, 5.0, 2.0], [3.0, 0.0, 3.0]]))
    (array([1, 0]), array([False,  True]))
    """
    ids = np.argmax(x, axis=-1)
    top = np.take_along_axis(x, ids[..., None], axis=-1)
    return ids, np.asarray((x == top).sum(axis=-1) > 1)


def leading(x: Array, count: int) -> Array:
    """The places of each row's ``count`` greatest numbers, from the greatest down; of equals the smallest id first.

    x (..., V)  ->  (..., count), from 0

    >>> leading(np.array([1.0, 5.0, 2.0, 5.0]), 3)
    array([1, 3, 2])
    """
    return np.argsort(-x, axis=-1, kind="stable")[..., :count]


@calculation
def token_losses(
    log_probabilities: Array, targets: Array, counted: Array | None = None, *,
    label_smoothing: Any = 0, log_base: Any = None,
) -> Array:  # fmt: skip
    """−ln p of each position's target; smoothed by e, (1 − e)(−ln p) + e mean_V(−ln p), as torch has it.

    (Szegedy et al. 2016, "Rethinking the Inception architecture", section 7.) Targets that aren't counted give NaN.
    With a base b, all is divided by ln b.

    log_probabilities (..., n, V), targets and counted (..., n)  ->  (..., n)

    >>> logs = np.log(np.array([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]]))
    >>> token_losses(logs, np.array([1, 0]), np.array([True, False]), log_base=2)
    array([ 2., nan])
    """
    places = targets if counted is None else np.where(counted, targets, 0)
    losses: Array = -np.take_along_axis(log_probabilities, places[..., None], axis=-1)[..., 0]
    if label_smoothing != 0:
        share = as_in(label_smoothing, losses)
        losses = (1 - share) * losses - share * log_probabilities.mean(axis=-1)
    if log_base is not None:
        losses = losses / constant(f"ln({log_base})", math.log(log_base), losses)
    return losses if counted is None else np.where(counted, losses, as_in(np.nan, losses))


@calculation
def loss(losses: Array, counted: Array | None = None, reduction: str = "mean") -> Array:
    """The mean or the sum (``reduction``) of what is counted, over all batch entries. The mean of nothing is NaN.

    losses and counted (..., n)  ->  ()

    >>> float(loss(np.array([2.0, np.nan, 4.0]), np.array([True, False, True])))
    3.0
    """
    taken = losses.ravel() if counted is None else losses[counted]
    total = np.asarray(taken.sum())
    return total if reduction == "sum" else np.asarray(total / as_in(taken.size, losses))


@calculation
def perplexity(mean_loss: Array, log_base: Any = None) -> Array:
    """e^loss, or b^loss where the losses have the base b: as many words, equally likely, would be as hard to guess.

    mean_loss ()  ->  ()

    >>> float(perplexity(np.array(3.0), log_base=2))
    8.0
    """
    if log_base is None:
        return np.asarray(np.exp(mean_loss))
    if mean_loss.dtype == object:
        return np.asarray(np.exp(mean_loss * constant(f"ln({log_base})", math.log(log_base), mean_loss)))
    return np.asarray(as_in(log_base, mean_loss) ** mean_loss)
