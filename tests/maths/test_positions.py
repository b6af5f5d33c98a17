"""Sinusoids, ALiBi and T5's buckets against transformers' and against loops over i and j."""

from __future__ import annotations

import math

import numpy as np
import pytest
from published import TORCH

from attncli.maths.positions import (
    alibi_bias,
    alibi_slopes,
    offsets,
    sinusoids,
    t5_bias,
    t5_bucket_starts,
    t5_buckets,
)

GIVEN = TORCH["positions"]


@pytest.mark.parametrize("case", GIVEN["sinusoids"], ids=lambda case: f"d = {case['d']}")
@pytest.mark.parametrize("order", ["interleaved", "halves"])
def test_transformers_gives_the_same_sinusoids(case, order):
    # DistilBERT's and Marian's tables, which they keep in float32
    np.testing.assert_allclose(sinusoids(np.arange(9), case["d"], order=order), case[order], atol=1e-7)


@pytest.mark.parametrize("d", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("base", [10000, 50])
def test_loops_give_the_same_sinusoids(d, base):
    positions = np.array([0, 3, 1000])
    interleaved, halves = (sinusoids(positions, d, base, order) for order in ("interleaved", "halves"))
    for row, t in enumerate(positions.tolist()):
        for i in range((d + 1) // 2):
            angle = t / base ** (2 * i / d)
            assert interleaved[row, 2 * i] == pytest.approx(math.sin(angle), abs=1e-12)
            assert halves[row, i] == pytest.approx(math.sin(angle), abs=1e-12)
            if 2 * i + 1 < d:
                assert interleaved[row, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-12)
                assert halves[row, (d + 1) // 2 + i] == pytest.approx(math.cos(angle), abs=1e-12)


def test_sinusoids_of_a_batch():
    positions = np.array([[0, 1], [5, 2]])
    assert sinusoids(positions, 4).shape == (2, 2, 4)
    np.testing.assert_array_equal(sinusoids(positions, 4)[1], sinusoids(positions[1], 4))


@pytest.mark.parametrize("h", range(1, 21))
@pytest.mark.parametrize("model", ["bloom", "mpt"])
def test_transformers_gives_the_same_slopes(h, model):
    np.testing.assert_allclose(alibi_slopes(h), GIVEN["alibi"][str(h)][model], rtol=1e-6)  # float32 there


def test_the_slopes_of_the_paper():
    assert alibi_slopes(8).tolist() == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    np.testing.assert_allclose(alibi_slopes(16)[:2], [2**-0.5, 2**-1], rtol=1e-15)
    # 12 heads: those of 8, then the 1st, 3rd, 5th and 7th of 16
    np.testing.assert_allclose(alibi_slopes(12)[8:], [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5], rtol=1e-15)


def test_alibi_takes_off_the_distance_times_the_slope():
    found = alibi_bias(offsets(3, 5, past=2), alibi_slopes(4))
    assert found.shape == (4, 3, 5)
    for r, i, j in np.ndindex(found.shape):
        assert found[r, i, j] == -(2.0 ** (-2 * (r + 1))) * abs(i + 2 - j)
    assert not np.signbit(found[:, 0, 2]).any()


def bucket_by_logarithms(offset, buckets, distance, bidirectional):
    """The rule as Raffel et al. wrote it, for one offset j − i."""
    first = 0
    if bidirectional:
        buckets //= 2
        first = buckets if offset > 0 else 0
        offset = -abs(offset)
    size = max(-offset, 0)
    single = buckets // 2
    if size < single:
        return first + size
    steps = math.log(size / single) / math.log(distance / single) * (buckets - single)
    return first + min(single + math.floor(steps + 1e-9), buckets - 1)


@pytest.mark.parametrize("case", GIVEN["t5"], ids=lambda case: str(list(case.values())[:3]))
def test_transformers_gives_the_same_buckets(case):
    settings = {name: value for name, value in case.items() if name != "found"}
    found = t5_buckets(np.arange(-140, 141), **settings)
    np.testing.assert_array_equal(found, case["found"])
    np.testing.assert_array_equal(found, [bucket_by_logarithms(offset, **settings) for offset in range(-140, 141)])


@pytest.mark.parametrize("buckets", [1, 2, 3, 4, 8, 11, 32, 64])
@pytest.mark.parametrize("distance", [5, 33, 128, 1000])
def test_buckets_lie_in_the_table_and_never_shrink(buckets, distance):
    found = t5_buckets(-np.arange(1200), buckets, distance, bidirectional=False)
    assert found[0] == 0
    assert found.max() == buckets - 1
    assert (np.diff(found) >= 0).all()


def test_where_the_buckets_of_t5_start():
    # e = 8 of 16: the 8th root of 16 is √2, so that every second start is a power of 2
    assert t5_bucket_starts(16, 128) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]


def test_a_start_that_is_a_whole_number_is_decided_without_logarithms():
    """16 = 8 · 16^(2/8) is the first of its bucket, however ln 2 / ln 16 · 8 = 2 is rounded."""
    assert t5_buckets(np.array([[-15, -16, -17]]), bidirectional=True).tolist() == [[9, 10, 10]]


def test_t5_looks_the_bias_up_for_each_head():
    table = np.arange(16.0).reshape(8, 2)
    buckets = t5_buckets(offsets(4, 6), 8, 6)
    found = t5_bias(buckets, table)
    assert found.shape == (2, 4, 6)
    for r, i, j in np.ndindex(found.shape):
        assert found[r, i, j] == table[bucket_by_logarithms(j - i, 8, 6, True), r]


def test_offsets_count_from_the_cached_keys():
    assert offsets(2, 4, past=2).tolist() == [[-2, -1, 0, 1], [-3, -2, -1, 0]]
