"""Norms of rows against torch's, sums by hand, and plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from published import TORCH, assert_near

from attncli.maths.arrays import IN_CACHE
from attncli.maths.norms import (
    EPS,
    NORMS,
    divided_by_rms,
    l2_norm,
    layer_norm,
    length,
    mean,
    rms,
    rms_norm,
    standardized,
    variance,
)


@pytest.mark.parametrize("case", TORCH["norms"], ids=lambda case: f"eps {case['eps']}")
def test_torch_gives_the_same(case):
    x, gamma, beta = (np.array(case[name]) for name in ("x", "gamma", "beta"))
    eps = case["eps"]
    assert_near(layer_norm(x, gamma, beta, eps=eps), case["layer"])
    assert_near(layer_norm(x, eps=eps), case["layer_bare"])
    assert_near(rms_norm(x, gamma, eps=eps), case["rms"])
    assert_near(rms_norm(x, gamma, eps=eps, gamma_offset=1), case["rms_offset"])
    assert_near(l2_norm(x, gamma, eps=eps), case["l2"])


@pytest.mark.parametrize("case", TORCH["norms"], ids=lambda case: f"eps {case['eps']}")
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_torch_gives_the_same_in_short_numbers(case, dtype):
    x, gamma, beta = (np.array(case[name], dtype) for name in ("x", "gamma", "beta"))
    found = layer_norm(x, gamma, beta, eps=case["eps"])
    assert found.dtype == dtype
    assert_near(found, case[f"layer_{np.dtype(dtype).name}"])
    if dtype == np.float32:
        assert_near(rms_norm(x, gamma, eps=case["eps"]), case["rms_float32"])


def test_by_hand():
    """Of 1, 2, 6: μ = 9/3 = 3; deviations −2, −1, 3; σ² = (4 + 1 + 9)/3 = 14/3; with ε = 13/3 the root is √9 = 3."""
    x = np.array([[1.0, 2.0, 6.0]])
    assert mean(x).tolist() == [[3.0]]
    assert variance(x)[0, 0] == pytest.approx(14 / 3, rel=1e-15)
    np.testing.assert_allclose(standardized(x, 13 / 3), [[-2 / 3, -1 / 3, 1]], rtol=1e-15)
    found = layer_norm(x, np.array([3.0, 30.0, 300.0]), np.array([1.0, 2.0, 3.0]), eps=13 / 3)
    np.testing.assert_allclose(found, [[-1, -8, 303]], rtol=1e-14)
    # Of 2, 3, 6: the squares are 4 + 9 + 36 = 49; |x| = 7, RMS = √(49/3), with ε = 26/3 √25 = 5.
    x = np.array([[2.0, 3.0, 6.0]])
    assert length(x, 0).tolist() == [[7.0]]
    np.testing.assert_allclose(l2_norm(x, eps=0), [[2 / 7, 3 / 7, 6 / 7]], rtol=1e-15)
    np.testing.assert_allclose(rms(x, 26 / 3), [[5]], rtol=1e-15)
    np.testing.assert_allclose(rms_norm(x, eps=26 / 3), [[0.4, 0.6, 1.2]], rtol=1e-15)


def by_loops(row: list[float], kind: str, eps: float) -> list[float]:
    middle = math.fsum(row) / len(row) if kind == "layer" else 0.0
    squares = math.fsum((number - middle) ** 2 for number in row)
    size = math.sqrt((squares if kind == "l2" else squares / len(row)) + eps)
    return [(number - middle) / size for number in row]


@pytest.mark.parametrize("kind", NORMS)
def test_loops_give_the_same_for_each_row_of_a_batch(kind):
    x = np.random.default_rng(3).normal(size=(2, 3, 5, 11)) * 4 + 1
    wanted = [by_loops(row, kind, EPS[kind]) for row in x.reshape(-1, 11).tolist()]
    np.testing.assert_allclose(NORMS[kind](x).reshape(-1, 11), wanted, rtol=1e-12, atol=1e-14)


def test_the_usual_eps():
    assert EPS == {"layer": 1e-5, "rms": 1e-6, "l2": 1e-5}
    x = np.array([[1e-3, -1e-3]])
    np.testing.assert_allclose(layer_norm(x), np.array([[1, -1]]) * 1e-3 / math.sqrt(1e-6 + 1e-5), rtol=1e-14)
    np.testing.assert_allclose(rms_norm(x), np.array([[1, -1]]) * 1e-3 / math.sqrt(2e-6), rtol=1e-14)
    np.testing.assert_allclose(l2_norm(x), np.array([[1, -1]]) * 1e-3 / math.sqrt(2e-6 + 1e-5), rtol=1e-14)


@pytest.mark.parametrize("entry", [0.1, 0.3, 1 / 3, 1e-300, 7e7, -2.7])
@pytest.mark.parametrize("d", [3, 7, 10, 768])
def test_equal_entries_have_no_variance_whatever_their_rounding(entry, d):
    for dtype in (np.float64, np.float32, np.float16):
        with np.errstate(over="ignore"):
            x = np.full((2, d), entry).astype(dtype)
        if not np.isfinite(x).all():
            continue
        x[1, 0] += dtype(1)
        assert mean(x)[0, 0] == x[0, 0]
        assert variance(x)[0, 0] == 0
        assert np.isnan(layer_norm(x, eps=0)[0]).all()
        assert (layer_norm(x)[0] == 0).all()
        beta = np.arange(d).astype(dtype)
        np.testing.assert_array_equal(layer_norm(x, beta, beta)[0], beta)


def test_a_row_without_a_norm_is_nan_and_no_other_row_is():
    x = np.array([[2.0, 2.0], [1.0, 3.0], [0.0, 0.0]])
    np.testing.assert_array_equal(layer_norm(x, eps=0), [[np.nan] * 2, [-1, 1], [np.nan] * 2])
    assert np.isnan(rms_norm(x, eps=0)).any(axis=1).tolist() == [False, False, True]
    assert np.isnan(l2_norm(x, eps=0)).any(axis=1).tolist() == [False, False, True]


def test_one_column():
    x = np.array([[5.0], [-2.0]])
    np.testing.assert_array_equal(layer_norm(x), [[0], [0]])
    np.testing.assert_array_equal(rms_norm(x, eps=0), [[1], [-1]])


def test_parts_that_are_known_are_taken_as_they_are():
    x, mu, sigma2 = np.array([[1.0, 2.0, 6.0]]), np.array([[2.0]]), np.array([[4.0]])
    np.testing.assert_array_equal(variance(x, mu), [[17 / 3]])
    np.testing.assert_array_equal(standardized(x, 0, mu, sigma2), [[-0.5, 0, 2]])
    np.testing.assert_array_equal(divided_by_rms(x, 0, np.array([[2.0]])), [[0.5, 1, 3]])


def test_gamma_of_each_head():
    x = np.random.default_rng(4).normal(size=(2, 3, 4, 5))
    gamma = np.random.default_rng(5).normal(size=(3, 1, 5))
    found = rms_norm(x, gamma)
    for b, r in np.ndindex(2, 3):
        np.testing.assert_array_equal(found[b, r], rms_norm(x[b, r], gamma[r, 0]))


def test_the_offset_of_gamma_is_added_in_the_numbers_of_x():
    """1 + 0.0002 is 1 in float16, but torch adds it in float32."""
    x, gamma = np.array([[100.0, 7.0]], np.float16), np.array([2e-4, 2e-4], np.float16)
    wanted = rms_norm(x.astype(np.float32), 1 + gamma.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(rms_norm(x, gamma, gamma_offset=1), wanted)


def test_squares_that_do_not_fit_float16_are_no_matter():
    x = np.array([[300.0, -300.0, 600.0, 0.0]], np.float16)
    np.testing.assert_allclose(layer_norm(x).astype(float), layer_norm(x.astype(float)), rtol=1e-3)


@pytest.mark.parametrize("kind", NORMS)
def test_a_large_array_is_worked_out_by_parts_to_the_same_numbers(kind):
    x = np.random.default_rng(6).normal(size=(2, IN_CACHE // 128 + 3, 128)).astype(np.float32)
    gamma = np.random.default_rng(7).normal(size=128).astype(np.float32)
    whole = NORMS[kind](x, gamma, gamma)
    np.testing.assert_array_equal(whole[1, -1:], NORMS[kind](x[1, -1:], gamma, gamma))


rows = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8).filter(lambda row: max(row) - min(row) > 1e-3)


@given(rows)
def test_normalized_rows_have_mean_0_and_mean_square_less_than_1_by_eps(row):
    x = np.array([row])
    found = standardized(x, 1e-5)
    sigma2 = variance(x)[0, 0]
    assert abs(found.mean()) < 1e-9
    assert (found**2).mean() == pytest.approx(sigma2 / (sigma2 + 1e-5), rel=1e-9)


@given(rows, st.floats(0.01, 100), st.floats(-100, 100))
def test_layer_norm_without_eps_forgets_scale_and_shift(row, scale, shift):
    x = np.array([row]) / 1e3
    np.testing.assert_allclose(layer_norm(x * scale + shift, eps=0), layer_norm(x, eps=0), rtol=1e-4, atol=1e-4)


def test_a_wider_gamma_does_not_widen_the_rows():
    x, gamma = np.ones((2, 3), np.float32), np.array([1.0, 2.0, 3.0])
    assert rms_norm(x, gamma, gamma, gamma_offset=1).dtype == np.float32
