"""Mistakes with the output projection and the biases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from attncli.checking.mistakes.base import Changes, Values, Variant, Wrong, projected, right, row
from attncli.maths import ops
from attncli.maths.ops import Array
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.stages.inputs import LayerInputs

_BIASES = {"b_Q": "Q", "b_K": "K", "b_V": "V", "b": "scores", "b_O": "multihead"}


def _with_bias_times(factor: int, key: str) -> Wrong:
    """A stage with its bias left out (0) or added twice (2)."""

    def wrong(problem: LayerInputs, values: Values) -> Array:
        stage, bias = _BIASES[key], getattr(problem, key) * factor
        if stage in ("Q", "K", "V"):
            return projected(problem, stage, bias=bias)
        if stage == "multihead":
            return ops.project(values["concat"], problem.arrays["W_O"], bias)
        K = ops.spread_heads(values["K"], problem.num_heads)
        W_1, W_2, v = (problem.arrays[name] for name in ("W_1", "W_2", "v"))
        return ops.additive_scores(values["Q"], K, W_1, W_2, v, bias)

    return wrong


def _biases_times(factor: int) -> dict[str, object]:
    def variants(problem: LayerInputs) -> Iterable[Variant]:
        there = [key for key in _BIASES if getattr(problem, key) is not None]
        for key in there:
            yield Variant({_BIASES[key]: _with_bias_times(factor, key)}, key)
        if len(there) > 1:
            changes: Changes = {_BIASES[key]: _with_bias_times(factor, key) for key in there}
            yield Variant(changes, "all of them")

    return {"variants": variants}


def _W_O_left_out(problem: LayerInputs) -> Iterable[Variant]:
    yield Variant({"multihead": lambda p, v: v["concat"]})
    if problem.b_O is not None and problem.arrays["W_O"].shape[0] == problem.arrays["W_O"].shape[1]:
        yield Variant({"multihead": lambda p, v: v["concat"] + p.b_O}, "b_O was added")


def _W_O_transposed(problem: LayerInputs, values: Values) -> Array:
    return ops.project(values["concat"], problem.arrays["W_O"].T, problem.b_O)


def _activated(problem: LayerInputs, values: Values) -> Array | None:
    product = right("multihead")(problem, values)
    return None if product is None else np.maximum(product, 0)


def _contributions_mean(problem: LayerInputs, values: Values) -> Array | None:
    if problem.num_heads == 1:
        return None
    mean: Array = STAGES["contributions"].right.forward(problem, values).mean(axis=-3)
    return mean if problem.b_O is None else mean + problem.b_O


ROWS = (
    row(
        "W_O_left_out", "multihead", "W_O was left out: this is the concatenation", "Concat",
        "Kyubyong/transformer#17; d2l-ai/d2l-en#439", variants=_W_O_left_out,
    ),
    row(
        "W_O_transposed", "multihead", "W_O was transposed", "Concat (W^O)^T",
        "Kyubyong/transformer#17", _W_O_transposed,
    ),
    row(
        "activation_after_W_O", "multihead", "negative numbers were set to 0 after W_O (a ReLU)", "max(0, Concat W^O)",
        "Kyubyong/transformer#17 (asked in its review)", _activated,
    ),
    row(
        "contributions_averaged", "multihead", "the heads' contributions were averaged, not added up",
        "(O^(1) W_1^O + .. + O^(h) W_h^O) / h", "fundamentalvision/Deformable-DETR#15 (asked)", _contributions_mean,
    ),
    row(
        "bias_left_out", "Q", "a bias was left out", "Z W^Q", "a bias that training had at 0", **_biases_times(0),
    ),
    row(
        "bias_twice", "Q", "a bias was added twice", "Z W^Q + 2 b^Q",
        "added by the layer and by hand", **_biases_times(2),
    ),
)  # fmt: skip
