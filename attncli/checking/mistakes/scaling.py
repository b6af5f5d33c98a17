"""Mistakes with the scale: S̃ = S / √d_k."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.checking.mistakes.base import Values, Variant, Wrong, before_softmax, fresh, plain_softmax, row, softmax_of
from attncli.maths import ops
from attncli.maths.ops import Array

if TYPE_CHECKING:
    from attncli.stages.inputs import LayerInputs


def _factor(problem: LayerInputs) -> Any:
    """What the scores are multiplied by."""
    assert problem.d_k is not None or problem.scale is not None
    return problem.scale if problem.scale is not None else 1 / np.sqrt(problem.d_k or 1)


def _by(factor: Callable[[Any], Any]) -> Wrong:
    """The scores times a factor that the problem's sizes give; None where a size is unknown."""
    return lambda problem, values: values["scores"] * factor(problem)


def _unscaled(problem: LayerInputs) -> Iterable[Variant]:
    """No scale at all, or scaled scores that are written down and not used."""
    yield Variant({"scaled_scores": lambda p, v: v["scores"]})
    if problem.is_scaled and problem.softcap is None and (problem.mask is None or problem.mask.bias is None):
        around = softmax_of(_masked_unscaled)
        yield Variant({"weights": around(plain_softmax)}, "the weights are those of unscaled scores", around=around)


def _masked_unscaled(problem: LayerInputs, values: Values) -> Array:
    hidden = np.isneginf(before_softmax(values))
    return np.where(hidden, -np.inf, values["scores"])


def _scaled_queries(problem: LayerInputs) -> Iterable[Variant]:
    factor = _factor(problem)
    root = np.sqrt(np.abs(factor))

    def unscaled(problem: LayerInputs, values: Values) -> Array:
        return values["scores"]

    yield Variant({"Q": lambda p, v: fresh(p, "Q") * factor, "scaled_scores": unscaled}, "the queries alone")
    yield Variant(
        {"Q": lambda p, v: fresh(p, "Q") * root, "K": lambda p, v: fresh(p, "K") * root, "scaled_scores": unscaled},
        "queries and keys, each by the root of it",
    )


def _needless(problem: LayerInputs, values: Values) -> Array | None:
    if problem.is_scaled or problem.d_k is None:
        return None
    return ops.softmax(before_softmax(values) / np.sqrt(problem.d_k))


ROWS = (
    row(
        "unscaled", "scaled_scores", "the scores were not scaled", "S",
        "PAIR-code/tiny-transformers#71; ethen8181/machine-learning#13", variants=_unscaled,
    ),
    row(
        "scaled_by_d_k", "scaled_scores", "the scores were divided by d_k, not √d_k", "S / d_k",
        "delzac/cntkx#10", _by(lambda p: 1 / p.d_k),
    ),
    row(
        "scaled_by_sqrt_d_model", "scaled_scores", "the scores were divided by √d_model, not √d_k", "S / sqrt(d_model)",
        "lucidrains/vit-pytorch#65; allenai/allennlp#3473", _by(lambda p: 1 / np.sqrt(p.d_model)),
    ),
    row(
        "scaled_by_sqrt_keys", "scaled_scores", "the scores were divided by the root of the number of keys",
        "S / sqrt(m)", "read off the wrong axis of K", _by(lambda p: 1 / np.sqrt(p.m)),
    ),
    row(
        "scaled_by_sqrt_d_v", "scaled_scores", "the scores were divided by √d_v, not √d_k", "S / sqrt(d_v)",
        "cneuralnetwork/solving-ml-papers#1; lucidrains/flash-attention-jax#15", _by(lambda p: 1 / np.sqrt(p.d_v)),
    ),
    row(
        "scaled_by_sqrt_all_heads", "scaled_scores", "the scores were divided by √(h·d_k), the width of all heads",
        "S / sqrt(h d_k)", "chelsea0x3b/dfdx#171; omihub777/ViT-CIFAR#11",
        _by(lambda p: 1 / np.sqrt(p.d_k * p.num_heads)),
    ),
    row(
        "multiplied_by_sqrt_d_k", "scaled_scores", "the scores were multiplied by √d_k, not divided", "S sqrt(d_k)",
        "esceptico/perceiver-io#9", _by(lambda p: 1 / _factor(p)),
    ),
    row(
        "scaled_twice", "scaled_scores", "the scores were scaled twice", "S / sqrt(d_k) / sqrt(d_k)",
        "huggingface/diffusers#929", _by(lambda p: _factor(p) ** 2),
    ),
    row(
        "scaled_queries", "Q", "the scale was put on Q before the product (which comes to the same in the end)",
        "Q / sqrt(d_k)", "openai/improved-diffusion#54; openai/guided-diffusion#38", variants=_scaled_queries,
    ),
    row(
        "scaled_needlessly", "weights", "the scores were divided by √d_k, although this problem doesn't scale them",
        'softmax(S / sqrt(d_k))', "the textbook formula, where another score was asked for", _needless,
    ),
)  # fmt: skip
