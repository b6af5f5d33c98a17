"""The mathematics of attention: pure functions, arrays in, arrays out (Vaswani et al. 2017, section 3.2).

Arrays are in the row convention. Leading axes (batch, head) are carried through, as ``...`` in the shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def project(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """x W + b.

    x (..., n, d_in), weight (d_in, d_out), bias (d_out)  ->  (..., n, d_out)

    >>> project(np.array([[1.0, 2.0]]), np.array([[1.0], [1.0]]), np.array([10.0]))
    array([[13.]])
    """
    product: Array = x @ weight
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
    product: Array = Q @ K.swapaxes(-1, -2)
    return product


def general_scores(Q: Array, K: Array, W_a: Array) -> Array:
    """S = Q W_a Kᵀ (Luong et al. 2015, section 3.1, "general").

    Q (..., n, d_q), K (..., m, d_k), W_a (d_q, d_k)  ->  (..., n, m)

    >>> general_scores(np.array([[1.0]]), np.array([[3.0, 4.0]]), np.array([[1.0, 10.0]]))
    array([[43.]])
    """
    return dot_scores(Q @ W_a, K)


def additive_scores(Q: Array, K: Array, W_1: Array, W_2: Array, v: Array, b: Array | None = None) -> Array:
    """s_ij = vᵀ tanh(q_i W_1 + k_j W_2 + b) (Bahdanau et al. 2015, appendix A.1.2).

    Q (..., n, d_q), K (..., m, d_k), W_1 (d_q, d_a), W_2 (d_k, d_a), v (d_a), b (d_a)  ->  (..., n, m)

    >>> one = np.array([[1.0]])
    >>> additive_scores(0 * one, 0 * one, one, one, np.array([2.0]))
    array([[0.]])
    """
    queries, keys = Q @ W_1, project(K, W_2, b)
    scores: Array = np.tanh(queries[..., :, None, :] + keys[..., None, :, :]) @ v
    return scores


def scaled_scores(scores: Array, *, d_k: int | None = None, scale: Any = None) -> Array:
    """S̃ = S / √d_k, or scale · S where a scale is given (section 3.2.1, equation 1).

    scores (..., n, m)  ->  (..., n, m)

    >>> scaled_scores(np.array([[2.0, 4.0]]), d_k=4)
    array([[1., 2.]])
    """
    assert d_k is not None or scale is not None
    scaled: Array = scores / np.sqrt(_as(d_k, scores)) if scale is None else scores * _as(scale, scores)
    return scaled


def capped_scores(scores: Array, softcap: Any) -> Array:
    """c · tanh(S̃ / c): scores squeezed between -c and c, before any mask (Gemma Team 2024, section 2).

    scores (..., n, m)  ->  (..., n, m)

    >>> capped_scores(np.array([[0.0, 1e9]]), 2.0)
    array([[0., 2.]])
    """
    cap = _as(softcap, scores)
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
    return np.where(allowed, scores, _as(fill, scores))


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
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        top = scores.max(axis=-1, keepdims=True)
        hidden = np.isneginf(top)
        weights: Array = scores - np.where(hidden, _as(0, scores), top)
        np.exp(weights, out=weights)
        total = weights.sum(axis=-1, keepdims=True)
        weights /= np.where(hidden, _as(1, scores), total)
    if empty != 0 and hidden.any():
        weights = np.where(hidden, _as(empty, scores), weights)
    return weights


def _exact_softmax(scores: Array, empty: float) -> Array:
    """The same over exact numbers, which cannot overflow: exp(−∞) is 0 there."""
    powers = np.exp(scores)
    total = powers.sum(axis=-1, keepdims=True)
    hidden = (total == 0).astype(bool)
    weights: Array = np.where(hidden, _as(empty, scores), powers / np.where(hidden, _as(1, scores), total))
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
        outputs: Array = weights @ V
        return outputs
    with np.errstate(invalid="ignore", over="ignore"):
        terms = weights[..., :, :, None] * V[..., None, :, :]
    selected: Array = np.where(weights[..., :, :, None] == 0, _as(0, V), terms).sum(axis=-2)
    return selected


def attend(
    Q: Array, K_T: Array, V: Array, *, allowed: Array | None = None, bias: Array | None = None,
    fill: float | None = None, softcap: float | None = None, longest_key: float = np.inf,
    room: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Outputs of some query rows in one go, in place: softmax(cap(Q Kᵀ) + mask) V, Q being scaled already.

    V carries a last column of ones, so that the product gives each row's sum of exponentials, by which the d_v
    columns are divided (rather than the m weights). Keys that no row may attend to are left out from the start.
    Where |q·k| ≤ |q| |k| (Cauchy–Schwarz, with ``longest_key`` the largest |k|) shows that no exponential can
    overflow, the row's maximum need not be subtracted. ``room`` is memory for the scores, used again and again.

    Q (rows, d_k), K_T (d_k, m), V (m, d_v + 1), allowed and bias broadcast to (rows, m)
    ->  (rows, d_v), and which rows may attend to nothing (rows)

    >>> outputs, empty = attend(np.zeros((1, 1)), np.zeros((1, 2)), np.array([[1.0, 1.0], [3.0, 1.0]]))
    >>> outputs.tolist(), empty.tolist()
    ([[2.0]], [False])
    """
    if allowed is not None and fill is None:
        seen = np.flatnonzero(allowed.any(axis=0)) if allowed.ndim > 1 else np.flatnonzero(allowed)
        if 0 < len(seen) < len(V):
            keys = slice(int(seen[0]), int(seen[-1]) + 1)
            K_T, V, allowed = K_T[:, keys], V[keys], allowed[..., keys]
            bias = bias if bias is None else bias[..., keys]
    scores = np.matmul(Q, K_T, out=None if room is None else room[: len(Q) * len(V)].reshape(len(Q), len(V)))
    if softcap is not None:
        scores /= _as(softcap, scores)
        np.tanh(scores, out=scores)
        scores *= _as(softcap, scores)
    if bias is not None:
        scores += bias.astype(scores.dtype, copy=False)
    if allowed is not None and not allowed.all():
        np.copyto(scores, _as(-np.inf if fill is None else fill, scores), where=~allowed)
    if bias is not None or fill is not None or not _is_tame(Q, longest_key):
        top = scores.max(axis=-1, keepdims=True)
        scores -= np.where(np.isneginf(top), _as(0, scores), top)
    with np.errstate(under="ignore"):
        np.exp(scores, out=scores)
    sums = scores @ V
    empty = sums[:, -1] == 0
    return sums[:, :-1] / np.where(empty, _as(1, scores), sums[:, -1])[:, None], empty


def _is_tame(Q: Array, longest_key: float) -> bool:
    """Whether every score lies within ±60, so that exp stays a normal number even in float32."""
    longest_query = float(np.sqrt(np.einsum("ij,ij->i", Q, Q).max()))
    return longest_query * longest_key <= 60


def contributions(outputs: Array, W_O: Array) -> Array:
    """O⁽ʳ⁾ W_r^O: what each head adds to MultiHead(Z); their sum over r, plus b_O, is the whole.

    outputs (..., h, n, d_v), W_O (h·d_v, d_out)  ->  (..., h, n, d_out)

    >>> contributions(np.array([[[1.0]], [[2.0]]]), np.array([[1.0], [10.0]])).ravel()
    array([ 1., 20.])
    """
    heads, width = outputs.shape[-3], outputs.shape[-1]
    shares: Array = outputs @ W_O.reshape(heads, width, -1)
    return shares


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


def _as(number: Any, like: Array) -> Any:
    """A number in the dtype of an array, so that float32 and float16 stay what they are, and exact numbers exact."""
    return like.flat[0].of(number) if like.dtype == object else like.dtype.type(number)
