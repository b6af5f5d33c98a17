"""Mistakes with several heads: how they are split, which key/value head they use, how they are joined."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from attncli.checking.mistakes.base import Changes, Values, Variant, Wrong, fresh, row, values_of
from attncli.maths import ops
from attncli.maths.ops import Array
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.stages.inputs import LayerInputs

ROLES = ("Q", "K", "V")


def _reshaped_role(role: str) -> Wrong:
    def wrong(problem: LayerInputs, values: Values) -> Array:
        heads = fresh(problem, role)
        return ops.join_heads(heads).reshape(heads.shape)

    return wrong


def _interleaved_role(role: str) -> Wrong:
    """Head r gets the columns r, r + h, r + 2h .. in place of a block."""

    def wrong(problem: LayerInputs, values: Values) -> Array:
        heads = fresh(problem, role)
        *lead, count, rows, width = heads.shape
        return np.moveaxis(ops.join_heads(heads).reshape(*lead, rows, width, count), -1, -3)

    return wrong


def _joined_by_reshape(problem: LayerInputs, values: Values) -> Array:
    outputs = values["outputs"]
    *lead, heads, rows, width = outputs.shape
    return outputs.reshape(*lead, rows, heads * width)


def _joined_interleaved(problem: LayerInputs, values: Values) -> Array:
    outputs = values["outputs"]
    *lead, heads, rows, width = outputs.shape
    return np.moveaxis(outputs, -3, -1).reshape(*lead, rows, heads * width)


def _reshaped(problem: LayerInputs) -> Iterable[Variant]:
    if problem.num_heads > 1:
        split: Changes = {role: _reshaped_role(role) for role in ROLES}
        yield Variant(split)
        yield Variant({**split, "concat": _joined_by_reshape})


def _orders(heads: int) -> Iterable[tuple[int, ...]]:
    """Other orders of the heads: all of up to 4; two exchanged, reversed or rotated, of more."""
    plain = tuple(range(heads))
    if heads <= 4:
        yield from (order for order in permutations(plain) if order != plain)
        return
    yield plain[::-1]
    yield from (plain[i:] + plain[:i] for i in range(1, heads))
    for i in range(heads):
        for j in range(i + 1, heads):
            order = list(plain)
            order[i], order[j] = j, i
            yield tuple(order)


def _reordered(problem: LayerInputs) -> Iterable[Variant]:
    def in_order(order: tuple[int, ...]) -> Wrong:
        return lambda problem, values: ops.join_heads(values["outputs"][..., list(order), :, :])

    for order in _orders(problem.num_heads) if problem.num_heads > 1 else ():
        yield Variant({"concat": in_order(order)}, "in the order " + ", ".join(str(r + 1) for r in order))


def _merged(how: str) -> Wrong:
    def wrong(problem: LayerInputs, values: Values) -> Array | None:
        if problem.num_heads == 1:
            return None
        merged: Array = getattr(values["outputs"], how)(axis=-3)
        return merged

    return wrong


def _tiled(x: Array, problem: LayerInputs) -> Array:
    """Key/value heads in turn, 1 2 1 2, where each should serve its neighbours, 1 1 2 2."""
    order = np.arange(problem.num_heads) % problem.num_kv_heads
    return x[..., order, :, :]


def _in_tiles(problem: LayerInputs) -> Iterable[Variant]:
    def scores(problem: LayerInputs, values: Values) -> Array:
        return STAGES["scores"].right.forward(problem, {**values, "K": _tiled(values["K"], problem)})

    def outputs(problem: LayerInputs, values: Values) -> Array:
        return ops.weighted_values(values["weights"], _tiled(values["V"], problem))

    if 1 < problem.num_kv_heads < problem.num_heads:
        yield Variant({"scores": scores, "outputs": outputs})
        yield Variant({"scores": scores}, "the keys alone")
        yield Variant({"outputs": outputs}, "the values alone")


def _one_big_head(problem: LayerInputs) -> Iterable[Variant]:
    """The scores of all heads added up, as one product over all columns gives them; shown once, or for each head."""
    if problem.num_heads == 1 or problem.d_k is None:
        return

    def scores(problem: LayerInputs, values: Values) -> Array:
        total: Array = STAGES["scores"].right.forward(problem, values).sum(axis=-3, keepdims=True)
        return total

    def repeated(problem: LayerInputs, values: Values) -> Array:
        return np.repeat(scores(problem, values), problem.num_heads, axis=-3)

    def scaled(problem: LayerInputs, values: Values) -> Array:
        narrowed: Array = values["scores"] / np.sqrt((problem.d_k or 1) * problem.num_heads)
        return narrowed

    for product in (scores, repeated):
        yield Variant({"scores": product, "scaled_scores": scaled, "outputs": _outputs}, "divided by √(h·d_k)")
        yield Variant({"scores": product, "outputs": _outputs}, "divided by √d_k")


def _outputs(problem: LayerInputs, values: Values) -> Array:
    weights = np.broadcast_to(
        values["weights"], (*values["weights"].shape[:-3], problem.num_heads, problem.n, problem.m)
    )
    return ops.weighted_values(weights, values_of(problem, values))


ROWS = (
    row(
        "heads_reshaped", "Q", "the heads were split by a reshape without a transpose, which mixes the tokens",
        'reshape(Z W^Q) "to" (h, n, d_k)', "reczoo/FuxiCTR#30", variants=_reshaped,
    ),
    row(
        "heads_split_interleaved", "Q", "head r got every h-th column, not the r-th block of columns",
        '"columns" r, r + h .. "of" Z W^Q', "NVIDIA-NeMo/RL#2802; vllm-project/vllm#53114",
        variants=lambda p: [Variant({role: _interleaved_role(role) for role in ROLES})] if p.num_heads > 1 else [],
    ),
    row(
        "heads_interleaved", "concat", "the heads' columns were interleaved, not put side by side",
        '"column" r "of" O^(1), O^(2) .. "in turn"', "vllm-project/vllm#53114", _joined_interleaved,
    ),
    row(
        "heads_joined_by_reshape", "concat", "the heads were joined by a reshape without moving their axis back",
        'reshape(O) "to" (n, h d_v)', "jsbaan/transformer-from-scratch#6; pytorch/pytorch#67651", _joined_by_reshape,
    ),
    row(
        "heads_reordered", "concat", "the heads were joined in another order", "Concat(O^(2), O^(1) ..)",
        "heads taken from the last to the first", variants=_reordered,
    ),
    row(
        "heads_averaged", "concat", "the heads' outputs were averaged, not put side by side",
        "(O^(1) + .. + O^(h)) / h",
        "awf/functional-transformer#8", _merged("mean"),
    ),
    row(
        "heads_summed", "concat", "the heads' outputs were added up, not put side by side", "O^(1) + .. + O^(h)",
        "broadinstitute/CellCap#40", _merged("sum"),
    ),
    row(
        "heads_maximised", "concat", "the largest of the heads' outputs was taken, and they belong side by side",
        "max(O^(1) .. O^(h))", "awf/functional-transformer#8", _merged("max"),
    ),
    row(
        "grouped_in_tiles", "scores", "query head r used key/value head r mod g, not that of its group",
        "Q^(r) K^(r mod g)^T", "onnx/onnx#7274; ekzhang/jax-js#180", variants=_in_tiles,
    ),
    row(
        "one_big_head", "scores", "the heads were not split: the scores run over all columns at once",
        "Q K^T", "a first attempt in torch's forum", variants=_one_big_head,
    ),
)  # fmt: skip
