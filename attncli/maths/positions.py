"""Where a token stands, as numbers: sinusoids that are added to the input, and biases that are added to the scores.

Positions count from 0. In float64, as they come from whole numbers alone; the caller rounds them to its dtype.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from attncli.maths.arrays import Array

ORDERS = ("interleaved", "halves")
"""How sines and cosines lie in the columns: in turns, or all sines first."""


def wavelengths(d: int, base: float = 10000) -> Array:
    """base^(2i/d), i from 0: what positions are divided by, one for each sine. 2π times it is the wave's length.

    d columns  ->  (⌈d/2⌉)

    >>> wavelengths(4).tolist()
    [1.0, 100.0]
    """
    return float(base) ** (np.arange(0, d, 2) / d)


def sinusoids(positions: Array, d: int, base: float = 10000, order: str = "interleaved") -> Array:
    """P[t, 2i] = sin(t/base^(2i/d)), P[t, 2i+1] = cos of the same angle (Vaswani et al. 2017, section 3.5).

    With the order ``halves`` all sines come first, then all cosines. An odd d has one sine more.

    positions (..., n)  ->  (..., n, d)

    >>> sinusoids(np.array([0, 1]), 2).round(4)
    array([[0.    , 1.    ],
           [0.8415, 0.5403]])
    """
    positions = np.asarray(positions)
    turned = positions[..., :, None] / wavelengths(d, base)
    sines, cosines = sinusoid_columns(d, order)
    table = np.empty((*positions.shape, d))
    table[..., sines], table[..., cosines] = np.sin(turned), np.cos(turned[..., : d // 2])
    return table


def sinusoid_columns(d: int, order: str) -> tuple[slice, slice]:
    """The columns of the sines and those of the cosines.

    >>> sinusoid_columns(5, "halves")
    (slice(0, 3, None), slice(3, 5, None))
    """
    if order == "halves":
        return slice(0, (d + 1) // 2), slice((d + 1) // 2, d)
    return slice(0, d, 2), slice(1, d, 2)


def offsets(n: int, m: int, past: int = 0) -> Array:
    """j − i, how far key j stands after query i, where the queries start at position ``past``.

    ->  (n, m), whole numbers

    >>> offsets(2, 3, past=1).tolist()
    [[-1, 0, 1], [-2, -1, 0]]
    """
    return np.arange(m) - (np.arange(n)[:, None] + past)


def alibi_exponents(h: int) -> list[Fraction]:
    """8r/h, r = 1 .. h, of which 2^(−8r/h) is a head's slope (Press et al. 2022, section 3).

    Where h is no power of 2, those of the power p below come first, then those of 2p with r = 1, 3, 5 …

    >>> [str(exponent) for exponent in alibi_exponents(6)]
    ['2', '4', '6', '8', '1', '3']
    """
    power = 1 << (h.bit_length() - 1)
    own = [Fraction(8 * r, power) for r in range(1, power + 1)]
    return own + [Fraction(8 * r, 2 * power) for r in range(1, 2 * (h - power), 2)]


def alibi_slopes(h: int) -> Array:
    """m_r = 2^(−8r/h): how much a head takes off for each step of distance.

    ->  (h)

    >>> alibi_slopes(3).tolist()
    [0.0625, 0.00390625, 0.25]
    """
    return np.array([2.0 ** -float(exponent) for exponent in alibi_exponents(h)])


def alibi_bias(offsets: Array, slopes: Array) -> Array:
    """−m_r |i − j|: what a head takes off the score of a far key (Press et al. 2022, section 3).

    offsets (n, m), slopes (h)  ->  (h, n, m)

    >>> alibi_bias(offsets(2, 2), np.array([0.5])).tolist()
    [[[0.0, -0.5], [-0.5, 0.0]]]
    """
    bias: Array = slopes[:, None, None] * -np.abs(offsets)
    return bias


def t5_bucket_starts(buckets: int, distance: int) -> list[int]:
    """The smallest distance in each bucket of one direction: half of them hold one distance each, the rest ever more.

    With e = ⌊buckets/2⌋ and f = buckets − e, bucket e + k holds |j − i| ≥ e (distance/e)^(k/f) (Raffel et al. 2020,
    section 2.1). It is found in whole numbers, so that the rounding of a logarithm decides nothing.

    >>> t5_bucket_starts(8, 32)
    [0, 1, 2, 3, 4, 7, 12, 20]
    """
    single = buckets // 2
    growing = buckets - single
    return list(range(single)) + [_start(k, single, growing, distance) for k in range(growing)]


def _start(k: int, single: int, growing: int, distance: int) -> int:
    """The least whole number that is at least e (distance/e)^(k/f); if it is nearly one, whole numbers decide."""
    bound = single * math.pow(distance / max(single, 1), k / growing)
    near = round(bound)
    if abs(bound - near) > 1e-9 * bound:
        return math.ceil(bound)
    return near if near**growing >= distance**k * single ** (growing - k) else near + 1


def t5_buckets(offsets: Array, buckets: int = 32, distance: int = 128, bidirectional: bool = True) -> Array:
    """The bucket of each offset j − i: the same for far keys that lie about as far (Raffel et al. 2020, section 2.1).

    If ``bidirectional``, the second half of the buckets is for j > i; else all those lie in bucket 0.

    offsets (n, m)  ->  (n, m), from 0 to buckets − 1

    >>> t5_buckets(np.array([[-40, -1, 0, 1, 40]]), buckets=8, distance=16).tolist()
    [[3, 1, 0, 5, 7]]
    """
    if not bidirectional:
        return _t5_bucket(np.maximum(-offsets, 0), buckets, distance)
    half = buckets // 2
    return _t5_bucket(np.abs(offsets), half, distance) + np.where(offsets > 0, half, 0)


def _t5_bucket(sizes: Array, buckets: int, distance: int) -> Array:
    found: Array = np.searchsorted(t5_bucket_starts(buckets, distance), sizes, side="right") - 1
    return found


def t5_bias(buckets: Array, table: Array) -> Array:
    """W_R[bucket, r]: what a head adds to the score of a key that far away (Raffel et al. 2020, section 2.1).

    buckets (n, m), table (count of buckets, h)  ->  (h, n, m)

    >>> t5_bias(np.array([[0, 1]]), np.array([[1.0, 2.0], [10.0, 20.0]])).tolist()
    [[[1.0, 10.0]], [[2.0, 20.0]]]
    """
    return np.moveaxis(table[buckets], -1, 0)
