"""erf, erfc and Φ against the C library's, number by number."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from attncli.maths import erf as module
from attncli.maths.arrays import IN_CACHE
from attncli.maths.erf import erf, erfc, normal_cdf

GRID = np.concatenate([np.linspace(-7, 7, 70_001), np.geomspace(1e-300, 27, 5_000), [0.84375, 0.84374999, 28.5]])


def units_apart(found: np.ndarray, right: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    """How many units in the last place of the dtype lie between what was found and the right number."""
    wanted = np.array([right(float(number)) for number in x])
    unit = np.spacing(np.abs(wanted).astype(found.dtype)).astype(float)
    return np.abs(found.astype(float) - wanted) / unit


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_erf_is_right_to_two_units_in_the_last_place(dtype):
    x = GRID[np.abs(GRID) > 1e-37].astype(dtype)
    found = erf(x)
    assert found.dtype == dtype
    assert units_apart(found, math.erf, x).max() <= 2


@pytest.mark.parametrize(("dtype", "last"), [(np.float64, 26), (np.float32, 9)])
def test_erfc_is_right_to_six_units_also_where_erf_is_nearly_one(dtype, last):
    x = np.concatenate([np.linspace(-6, last, 50_001), GRID[np.abs(GRID) < last]]).astype(dtype)
    found = erfc(x)
    assert found.dtype == dtype
    assert units_apart(found, math.erfc, x).max() <= 6


def test_float16_is_rounded_once():
    x = np.linspace(-4, 4, 2001).astype(np.float16)
    assert erf(x).dtype == np.float16
    assert units_apart(erf(x), math.erf, x).max() <= 0.501
    assert units_apart(erfc(x), math.erfc, x).max() <= 0.51


def test_the_ends():
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e300])
    np.testing.assert_array_equal(erf(ends), [0, 0, 1, -1, np.nan, 1, -1])
    np.testing.assert_array_equal(erfc(ends), [1, 1, 0, 2, np.nan, 0, 2])
    np.testing.assert_array_equal(normal_cdf(ends), [0.5, 0.5, 1, 0, np.nan, 1, 0])
    assert math.copysign(1, erf(ends)[1]) == -1


def test_values_of_the_normal_distribution():
    # Abramowitz and Stegun, table 26.1
    table = {0.5: 0.691462461274013, 1.0: 0.841344746068543, 1.96: 0.975002104851780, 3.0: 0.998650101968370}
    np.testing.assert_allclose(normal_cdf(np.array(list(table))), list(table.values()), rtol=2e-15)


def test_a_large_array_is_worked_out_by_parts_to_the_same_numbers():
    x = np.random.default_rng(1).normal(size=(3, IN_CACHE // 2 + 5))
    assert x.size > IN_CACHE
    whole = erf(x)
    assert whole.shape == x.shape
    np.testing.assert_array_equal(whole[2, -7:], erf(x[2, -7:]))
    np.testing.assert_array_equal(erf(x[:, ::3]), whole[:, ::3])


def test_the_coefficients_are_those_of_the_function():
    """(1 + 2x) e^(x²) erfc(x) at x = k, where the polynomial is its constant, and at 0, where it is 1."""
    mpmath = pytest.importorskip("mpmath")
    for k, _, coefficients in module.BEYOND.values():
        middle = (1 + 2 * k) * mpmath.exp(k * k) * mpmath.erfc(k) - 1
        assert coefficients[0] == pytest.approx(float(middle), rel=1e-6)
        alternating = sum(c * (-1) ** i for i, c in enumerate(coefficients))
        assert abs(alternating) < 1e-7
