"""Mistakes with the products: which matrix, which way round, made of what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from attncli.checking.mistakes.base import Mistake, Values, Variant, Wrong, fresh, projected, right, row, values_of
from attncli.maths import ops
from attncli.maths.ops import Array

if TYPE_CHECKING:
    from attncli.stages.inputs import LayerInputs


def _transposed_weight(role: str) -> Mistake:
    def variants(problem: LayerInputs) -> Iterable[Variant]:
        weight = getattr(problem, f"W_{role}")
        if weight is None:
            return
        heads = problem.num_heads if role == "Q" else problem.num_kv_heads
        if weight.shape[0] == weight.shape[1]:
            yield Variant({role: lambda p, v: projected(p, role, weight=weight.T)})
        if heads > 1 and weight.shape[1] == heads * weight.shape[0]:
            blocks = np.concatenate([block.T for block in np.split(weight, heads, axis=1)], axis=1)
            yield Variant({role: lambda p, v: projected(p, role, weight=blocks)})

    source = "skyzh/tiny-llm#41; huggingface/transformers#311 (torch keeps weights as (out, in))"
    return Mistake(
        f"W_{role}_transposed", f"W_{role} was transposed", role, f"Z (W^{role})^T", source, variants=variants
    )


def _made_as(role: str, other: str) -> Wrong:
    """Q, K or V made with another one's weights, or given as the other."""

    def wrong(problem: LayerInputs, values: Values) -> Array:
        weight, bias = getattr(problem, f"W_{other}"), getattr(problem, f"b_{other}")
        return fresh(problem, other) if weight is None else projected(problem, role, weight=weight, bias=bias)

    return wrong


def _with_weight_of(role: str, other: str) -> Mistake:
    source = "yflyzhang/AnnotatedTransformer#1; datawhalechina/learn-nlp-with-transformers#40"
    sentence = f"{role} was made with W_{other}"
    return row(f"{role}_from_W_{other}", role, sentence, f"Z W^{other}", source, _made_as(role, other))


def _K_not_transposed(problem: LayerInputs, values: Values) -> Array | None:
    Q, K = values["Q"], ops.spread_heads(values["K"], problem.num_heads)
    if problem.score != "scaled_dot" and problem.score != "dot":
        return None
    product: Array = Q @ K
    return product


def _scores_transposed(problem: LayerInputs, values: Values) -> Array | None:
    scores = right("scores")(problem, values)
    return None if scores is None else scores.swapaxes(-1, -2)


def _exchanged(first: str, second: str) -> dict[str, Wrong]:
    """Two of Q, K, V exchanged as wholes."""
    return {first: _made_as(first, second), second: _made_as(second, first)}


def _weights_times(what: str) -> Wrong:
    def wrong(problem: LayerInputs, values: Values) -> Array | None:
        if what == "Z":
            source = problem.Z if problem.memory is None else problem.memory
            return None if source is None else values["weights"] @ source[..., None, :, :]
        heads = values[what] if what == "Q" else ops.spread_heads(values[what], problem.num_heads)
        product: Array = values["weights"] @ heads
        return product

    return wrong


def _weights_transposed(problem: LayerInputs, values: Values) -> Array:
    product: Array = values["weights"].swapaxes(-1, -2) @ values_of(problem, values)
    return product


def _V_projected_twice(problem: LayerInputs, values: Values) -> Array | None:
    if problem.W_V is None or problem.num_kv_heads > 1:
        return None
    return projected(problem, "V", source=ops.join_heads(fresh(problem, "K")))


def _from_queries_side(role: str) -> Wrong:
    """K or V made of Z, in cross-attention."""

    def wrong(problem: LayerInputs, values: Values) -> Array | None:
        if problem.memory is None and problem.memory_V is None:
            return None
        return projected(problem, role, source=problem.Z)

    return wrong


def _queries_from_memory(problem: LayerInputs, values: Values) -> Array | None:
    return None if problem.memory is None else projected(problem, "Q", source=problem.memory)


def _unprojected(role: str) -> Wrong:
    def wrong(problem: LayerInputs, values: Values) -> Array:
        source = getattr(problem, problem.projection(role)[0])
        return ops.split_heads(source, problem.num_heads if role == "Q" else problem.num_kv_heads)

    return wrong


def _inputs_enlarged(role: str) -> Wrong:
    def wrong(problem: LayerInputs, values: Values) -> Array | None:
        source, width = getattr(problem, problem.projection(role)[0]), problem.d_model
        return None if source is None or width is None else projected(problem, role, source=source * np.sqrt(width))

    return wrong


def _weights_for_outputs(problem: LayerInputs, values: Values) -> Array:
    return values["weights"]


ROWS = (
    _transposed_weight("Q"),
    _transposed_weight("K"),
    _transposed_weight("V"),
    row(
        "K_not_transposed", "scores", "K was not transposed in the product", "Q K",
        "DeepLearning.AI course forum, Deep Learning Specialization, course 5 week 4", _K_not_transposed,
    ),
    row(
        "Q_K_swapped", "scores", "queries and keys changed places: the scores are transposed", "K Q^T",
        "zoubohao/DenoisingDiffusionProbabilityModel-ddpm-#26", _scores_transposed,
    ),
    row(
        "W_Q_W_K_exchanged", "Q", "W_Q and W_K were exchanged", "Z W^K",
        "neetcode-gh/leetcode#5169", _exchanged("Q", "K"),
    ),
    row(
        "K_V_swapped", "K", "keys and values changed places", "Z W^V",
        "jsbaan/transformer-from-scratch#1", _exchanged("K", "V"),
    ),
    _with_weight_of("Q", "K"),
    _with_weight_of("K", "Q"),
    _with_weight_of("V", "K"),
    _with_weight_of("V", "Q"),
    row(
        "V_projected_twice", "V", "V was made from K, not from the inputs", "K W^V",
        "shenweichen/DeepCTR#494", _V_projected_twice,
    ),
    row(
        "weights_times_K", "outputs", "the weights were multiplied by K, not by V", "A K",
        "yflyzhang/AnnotatedTransformer#1", _weights_times("K"),
    ),
    row(
        "weights_times_Q", "outputs", "the weights were multiplied by Q, not by V", "A Q",
        "the wrong one of three like matrices", _weights_times("Q"),
    ),
    row(
        "weights_times_Z", "outputs", "the weights were multiplied by the inputs, not by V", "A Z",
        "benkyoujouzu/stable-diffusion-webui-visualize-cross-attention-extension#9", _weights_times("Z"),
    ),
    row(
        "weights_transposed", "outputs", "the weights were transposed before the product with V", "A^T V",
        "lzw-all-in/anime_person_translation#3", _weights_transposed,
    ),
    row(
        "weights_for_outputs", "outputs", "the weights were carried on where the outputs belong", "A",
        "ImagineAILab/ai-by-hand-excel#1", _weights_for_outputs,
    ),
    row(
        "memory_ignored", "K", "keys and values were made of Z, not of the memory", "Z W^K",
        "tensorflow/tensorflow#34696", {"K": _from_queries_side("K"), "V": _from_queries_side("V")},
    ),
    row(
        "V_from_Z", "V", "the values were made of Z, not of the memory", "Z W^V",
        "pinellolab/DNA-Diffusion#235; apple/ml-cvnets#81", _from_queries_side("V"),
    ),
    row(
        "K_from_Z", "K", "the keys were made of Z, not of the memory", "Z W^K",
        "stanford-cs336/assignment1-basics#35", _from_queries_side("K"),
    ),
    row(
        "queries_from_memory", "Q", "the queries were made of the memory, not of Z", "M W^Q",
        "tensorflow/tensorflow#35859", _queries_from_memory,
    ),
    row(
        "no_projections", "Q", "the inputs were taken as Q, K and V, without any projection", "Z",
        "fchollet/keras-resources#53", {role: _unprojected(role) for role in ("Q", "K", "V")},
    ),
    row(
        "inputs_times_sqrt_d_model", "Q", "the inputs were multiplied by √d_model first", "sqrt(d_model) Z W^Q",
        "khirotaka/SAnD#3", {role: _inputs_enlarged(role) for role in ("Q", "K", "V")},
    ),
)  # fmt: skip
