"""The mathematics of attention: pure functions, arrays in, arrays out (Vaswani et al. 2017, section 3.2).

Arrays are in the row convention. Leading axes (batch, head) are carried through, as ``...`` in the shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from attncli.maths.arrays import IN_CACHE, as_in
from attncli.maths.arrays import Array as Array

EVERY = slice(None)
"""All rows, or all keys."""


def times(a: Array, b: Array) -> Array:
    """a b. In float16 the sums are taken in float32 and rounded once, as NumPy does it, but by a BLAS: 30 times faster.

    a (..., n, d), b (..., d, m)  ->  (..., n, m)

    >>> times(np.ones((1, 4096), np.float16), np.ones((4096, 1), np.float16)).tolist()
    [[4096.0]]
    """
    if a.dtype == b.dtype == np.float16:
        return times(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    product: Array = a @ b
    return product


def project(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """x W + b.

    x (..., n, d_in), weight (d_in, d_out), bias (d_out)  ->  (..., n, d_out)

    >>> project(np.array([[1.0, 2.0]]), np.array([[1.0], [1.0]]), np.array([10.0]))
    array([[13.]])
    """
    product = times(x, weight)
    return product if bias is None else product + bias


def split_heads(x: Array, heads: int) -> Array:
    """Column blocks to a head axis: head r gets columns (r-1)d .. rd-1 (section 3.2.2).

    x (..., n, h·d)  ->  (..., h, n, d), a view

    >>> split_heads(np.array([[1, 2, 3, 4]]), 2).tolist()
    [[[1, 2]], [[3, 4]]]
    """
    *batch, n, width = x.shape
    return x.reshape(*batch, n, heads, width // heads).swapaxes(-2, -3)


def join_heads(x: Array) -> Array:
    """Concat(O1, ..., Oh): the heads' columns side by side, the inverse of `split_heads`.

    x (..., h, n, d)  ->  (..., n, h·d)

    >>> join_heads(np.array([[[1, 2]], [[3, 4]]])).tolist()
    [[1, 2, 3, 4]]
    """
    *batch, heads, n, width = x.shape
    return x.swapaxes(-2, -3).reshape(*batch, n, heads * width)


def spread_heads(x: Array, heads: int) -> Array:
    """Key/value heads repeated for the query heads of their group: query head r uses ⌈r·g/h⌉ (Ainslie et al. 2023).

    x (..., g, m, d)  ->  (..., h, m, d)

    >>> spread_heads(np.array([[[1]], [[9]]]), 4).ravel().tolist()
    [1, 1, 9, 9]
    """
    groups = x.shape[-3]
    return x if groups == heads else np.repeat(x, heads // groups, axis=-3)


def dot_scores(Q: Array, K: Array) -> Array:
    """S = Q Kᵀ: s_ij = q_i · k_j (section 3.2.1).

    Q (..., n, d_k), K (..., m, d_k)  ->  (..., n, m)

    >>> dot_scores(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """
    return times(Q, K.swapaxes(-1, -2))


def general_scores(Q: Array, K: Array, W_a: Array) -> Array:
    """S = Q W_a Kᵀ (Luong et al. 2015, section 3.1, "general").

    Q (..., n, d_q), K (..., m, d_k), W_a (d_q, d_k)  ->  (..., n, m)

    >>> general_scores(np.array([[1.0]]), np.array([[3.0, 4.0]]), np.array([[1.0, 10.0]]))
    array([[43.]])
    """
    return dot_scores(times(Q, W_a), K)


def additive_scores(Q: Array, K: Array, W_1: Array, W_2: Array, v: Array, b: Array | None = None) -> Array:
    """s_ij = vᵀ tanh(q_i W_1 + k_j W_2 + b) (Bahdanau et al. 2015, appendix A.1.2).

    Q (..., n, d_q), K (..., m, d_k), W_1 (d_q, d_a), W_2 (d_k, d_a), v (d_a), b (d_a)  ->  (..., n, m)

    >>> one = np.array([[1.0]])
    >>> additive_scores(0 * one, 0 * one, one, one, np.array([2.0]))
    array([[0.]])
    """
    queries, keys = times(Q, W_1), project(K, W_2, b)
    scores: Array = np.tanh(queries[..., :, None, :] + keys[..., None, :, :]) @ v
    return scores


def scaled_scores(scores: Array, *, d_k: int | None = None, scale: Any = None) -> Array:
    """S̃ = S / √d_k, or scale · S where a scale is given (section 3.2.1, equation 1).

    scores (..., n, m)  ->  (..., n, m)

    >>> scaled_scores(np.array([[2.0, 4.0]]), d_k=4)
    array([[1., 2.]])
    """
    assert d_k is not None or scale is not None
    scaled: Array = scores / np.sqrt(as_in(d_k, scores)) if scale is None else scores * as_in(scale, scores)
    return scaled


def capped_scores(scores: Array, softcap: Any) -> Array:
    """c · tanh(S̃ / c): scores squeezed between -c and c, before any mask (Gemma Team 2024, section 2).

    scores (..., n, m)  ->  (..., n, m)

    >>> capped_scores(np.array([[0.0, 1e9]]), 2.0)
    array([[0., 2.]])
    """
    cap = as_in(softcap, scores)
    capped: Array = cap * np.tanh(scores / cap)
    return capped


def masked_scores(scores: Array, allowed: Array | None, bias: Array | None = None, fill: Any = -np.inf) -> Array:
    """S̃ + bias where a query may attend, ``fill`` elsewhere. Selects, so that a hidden NaN stays hidden.

    scores (..., n, m), allowed and bias broadcast to it  ->  (..., n, m)

    >>> masked_scores(np.array([[1.0, np.nan]]), np.array([[True, False]]))
    array([[  1., -inf]])
    """
    if bias is not None:
        scores = scores + bias.astype(scores.dtype, copy=False)
    if allowed is None:
        return scores
    return np.where(allowed, scores, as_in(fill, scores))


def softmax(scores: Array, empty: float = 0.0) -> Array:
    """exp(s_ij) / Σ_j exp(s_ij) along the last axis; the row's maximum is subtracted first, so nothing overflows.

    A row that is −∞ throughout has no softmax: it is filled with ``empty``. A float16 row is worked out in float32,
    and each weight rounded once: the sum of many exponentials would not fit into float16.

    scores (..., n, m)  ->  (..., n, m)

    >>> softmax(np.array([[0.0, 0.0], [-np.inf, -np.inf]]))
    array([[0.5, 0.5],
           [0. , 0. ]])
    """
    if scores.dtype == object:
        return _exact_softmax(scores, empty)
    if scores.dtype == np.float16:
        return softmax(scores.astype(np.float32), empty).astype(np.float16)
    rows = scores.reshape(-1, scores.shape[-1])
    weights = np.empty_like(rows)
    height = max(1, IN_CACHE // rows.shape[1])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for first in range(0, len(rows), height):
            some = slice(first, first + height)
            top = rows[some].max(axis=-1, keepdims=True)
            hidden = np.isneginf(top)
            powers = np.subtract(rows[some], np.where(hidden, as_in(0, scores), top), out=weights[some])
            np.exp(powers, out=powers)
            powers /= np.where(hidden, as_in(1, scores), powers.sum(axis=-1, keepdims=True))
            if empty != 0:
                np.copyto(powers, as_in(empty, scores), where=hidden)
    return weights.reshape(scores.shape)


def _exact_softmax(scores: Array, empty: float) -> Array:
    """The same over exact numbers, which cannot overflow: exp(−∞) is 0 there."""
    powers = np.exp(scores)
    total = powers.sum(axis=-1, keepdims=True)
    hidden = (total == 0).astype(bool)
    weights: Array = np.where(hidden, as_in(empty, scores), powers / np.where(hidden, as_in(1, scores), total))
    return weights


def tidied(x: Array) -> Array:
    """Exact numbers, each as a mathematician would write it."""
    written = np.empty(x.size, dtype=object)
    written[:] = [number.tidy() for number in x.flat]
    return written.reshape(x.shape)


def weighted_values(weights: Array, V: Array) -> Array:
    """O = A V: o_i = Σ_j α_ij v_j. A key of weight 0 takes no part, whatever its value is (NaN, ∞).

    weights (..., n, m), V (..., m, d_v)  ->  (..., n, d_v)

    >>> weighted_values(np.array([[1.0, 0.0]]), np.array([[3.0], [np.nan]]))
    array([[3.]])
    """
    if V.dtype == object or np.isfinite(V).all():
        return times(weights, V)
    with np.errstate(invalid="ignore", over="ignore"):
        terms = weights[..., :, :, None] * V[..., None, :, :]
    selected: Array = np.where(weights[..., :, :, None] == 0, as_in(0, V), terms).sum(axis=-2)
    return selected


KEYS = 512
"""Keys whose scores `attend` holds at a time: with some hundred queries, they stay in the processor's cache."""

MaskOfKeys = Callable[[slice], "tuple[Array | None, Array | None]"]


def attend(
    Q: Array, K: Array, V: Array, *, mask: MaskOfKeys | None = None, fill: float | None = None,
    softcap: float | None = None, longest_key: float = np.inf, room: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Outputs of some query rows: softmax(cap(Q Kᵀ) + mask) V, Q being scaled already, some keys at a time.

    Exact: exponentials and their sums are gathered key block after key block, and what was gathered is made smaller
    where a later block has a row's new maximum (Milakov and Gimelshein, "Online normalizer calculation for softmax",
    2018). Where |q·k| ≤ |q| |k| (Cauchy–Schwarz, with ``longest_key`` the largest |k|) shows that no exponential
    gets large, maxima are not needed, and powers of 2 will do for powers of e. ``mask`` gives allowed and what is
    added (or None) for a slice of the keys; ``longest_key`` must be infinite where something is added, or where V
    isn't moderate. ``room`` is memory for len(Q) · KEYS scores.

    Q (rows, d_k), K (m, d_k), V (m, d_v)  ->  (rows, d_v), and which rows may attend to nothing (rows)

    >>> outputs, empty = attend(np.zeros((1, 1)), np.zeros((2, 1)), np.array([[1.0], [3.0]]))
    >>> outputs.tolist(), empty.tolist()
    ([[2.0]], [False])
    """
    outputs, total = np.zeros((len(Q), V.shape[1]), Q.dtype), np.zeros((len(Q), 1), Q.dtype)
    top = None if fill is None and _is_tame(Q, longest_key) else np.full((len(Q), 1), -np.inf, Q.dtype)
    power, unit = (np.exp2, np.log2(np.e)) if top is None and _exp2_is_faster() else (np.exp, 1.0)
    Q = Q * as_in(unit if softcap is None else 1 / softcap, Q)
    room = np.empty(len(Q) * KEYS, Q.dtype) if room is None else room
    ones, part = np.ones((KEYS, 1), Q.dtype), np.empty_like(outputs)
    for first in range(0, len(K), KEYS):
        keys = slice(first, min(first + KEYS, len(K)))
        allowed, bias = mask(keys) if mask else (None, None)
        if allowed is not None and fill is None and not allowed.any():
            continue
        width = keys.stop - keys.start
        scores = np.matmul(Q, K[keys].T, out=room[: len(Q) * width].reshape(len(Q), width))
        if softcap is not None:
            np.tanh(scores, out=scores)
            scores *= as_in(softcap * unit, scores)
        _mask_in_place(scores, allowed, bias, fill)
        if top is not None:
            before, top = top, np.maximum(top, scores.max(axis=-1, keepdims=True))
            shift = np.where(np.isneginf(top), as_in(0, scores), top)
            scores -= shift
            shrunk = np.exp(before - shift)
            outputs *= shrunk
            total *= shrunk
        power(scores, out=scores)
        outputs += np.matmul(scores, V[keys], out=part)
        total += scores @ ones[:width]
    empty = total[:, 0] == 0
    outputs /= np.where(empty[:, None], as_in(1, outputs), total)
    return outputs, empty


def _mask_in_place(scores: Array, allowed: Array | None, bias: Array | None, fill: float | None) -> None:
    """What `masked_scores` does, without a further array."""
    if bias is not None:
        scores += bias.astype(scores.dtype, copy=False)
    if allowed is not None and not allowed.all():
        np.copyto(scores, as_in(-np.inf if fill is None else fill, scores), where=~allowed)


def _is_tame(Q: Array, longest_key: float) -> bool:
    """Whether every score lies within ±60 (±40 in float32), so that exp stays far from the ends of the numbers."""
    longest_query = float(np.sqrt(np.einsum("ij,ij->i", Q, Q).max()))
    most = min(60.0, 0.45 * float(np.log(float(np.finfo(Q.dtype).max))))
    return longest_query * longest_key <= most


def is_moderate(V: Array) -> bool:
    """Whether V's entries, but for zeros, stay far from the ends of the numbers when they are multiplied by e^±40."""
    largest = float(np.finfo(V.dtype).max) ** 0.4
    for first in range(0, len(V), KEYS):
        size = np.abs(V[first : first + KEYS])
        if not (size.max() <= largest and np.where(size == 0, 1, size).min() >= 1 / largest):
            return False
    return True


@cache
def _exp2_is_faster() -> bool:
    """NumPy's exp2 takes two thirds of the time of exp with AVX-512, and twice its time without."""
    simd = np.show_config("dicts").get("SIMD Extensions", {})
    return not {"AVX512_SKX", "X86_V4"}.isdisjoint(simd.get("found", ()))


def contributions(outputs: Array, W_O: Array) -> Array:
    """O⁽ʳ⁾ W_r^O: what each head adds to MultiHead(Z); their sum over r, plus b_O, is the whole.

    outputs (..., h, n, d_v), W_O (h·d_v, d_out)  ->  (..., h, n, d_out)

    >>> contributions(np.array([[[1.0]], [[2.0]]]), np.array([[1.0], [10.0]])).ravel()
    array([ 1., 20.])
    """
    heads, width = outputs.shape[-3], outputs.shape[-1]
    return times(outputs, W_O.reshape(heads, width, -1))


def rounded(x: Array, decimals: int, rule: str = "half_away") -> Array:
    """x rounded to ``decimals``: ties go away from zero, as people round, or to the even digit (``half_even``).

    What counts as a tie is decided on the shortest decimal that means the number: 0.285 is a tie, although the
    binary number is a little below it.

    >>> rounded(np.array([0.285, -2.5]), 2), rounded(np.array([0.5, 1.5]), 0, "half_even")
    (array([ 0.29, -2.5 ]), array([0., 2.]))
    """
    from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext

    step = Decimal(1).scaleb(-decimals)
    mode = ROUND_HALF_EVEN if rule == "half_even" else ROUND_HALF_UP

    def one(number: Any) -> float:
        if not np.isfinite(number):
            return float(number)
        return float(Decimal(str(number)).quantize(step, mode)) + 0.0

    with localcontext() as context:
        context.prec = 400
        flat = [one(number) for number in x.ravel()]
    return np.array(flat, dtype=x.dtype).reshape(x.shape)


def entropy(weights: Array, axis: int = -1) -> Array:
    """−Σ a ln a along an axis, in nats: 0 where all weight lies on one key, ln m where m keys share it equally.

    weights (..., n, m)  ->  (..., n)

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4).tolist()
    [0.6931, 0.0]
    """
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.asarray(-(weights * logs).sum(axis=axis)) + 0.0
