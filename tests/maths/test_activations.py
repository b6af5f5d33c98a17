"""Each activation function against torch's, a formula for single numbers, and its derivative against differences."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from published import TORCH, assert_near

from attncli.maths.activations import ACTIVATIONS

GIVEN = TORCH["activations"]

BY_HAND: dict[str, Callable[[float], float]] = {
    "relu": lambda x: x if x > 0 else 0.0,
    "gelu": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
    "gelu_tanh": lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "quick_gelu": lambda x: x / (1 + math.exp(-1.702 * x)),
    "relu2": lambda x: x * x if x > 0 else 0.0,
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "identity": lambda x: x,
}


def test_the_table_holds_the_nine_names():
    names = ["relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "relu2", "tanh", "sigmoid", "identity"]
    assert list(ACTIVATIONS) == names
    assert [row.name for row in ACTIVATIONS.values()] == names


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_torch_gives_the_same(name):
    x = np.array(GIVEN["x"])
    assert_near(ACTIVATIONS[name](x), GIVEN[name]["values"])
    assert_near(ACTIVATIONS[name].slope(x), GIVEN[name]["slopes"])
    assert_near(ACTIVATIONS[name](x.astype(np.float32)), GIVEN[name]["float32"])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_formula_for_single_numbers_gives_the_same(name):
    x = np.linspace(-30, 30, 601)
    wanted = np.array([BY_HAND[name](float(number)) for number in x])
    np.testing.assert_allclose(ACTIVATIONS[name](x), wanted, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_slope_is_the_limit_of_differences(name):
    x, step = np.linspace(-6, 6, 240) + 0.001, 1e-5
    differences = (ACTIVATIONS[name](x + step) - ACTIVATIONS[name](x - step)) / (2 * step)
    np.testing.assert_allclose(ACTIVATIONS[name].slope(x), differences, atol=2e-9)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_and_shape_stay(name, dtype):
    x = np.linspace(-3, 3, 24).reshape(2, 3, 4).astype(dtype)
    for function in (ACTIVATIONS[name], ACTIVATIONS[name].slope):
        assert function(x).dtype == dtype
        assert function(x).shape == x.shape
        assert function(x[0, 0, :0]).shape == (0,)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_float16_is_worked_out_in_float32_and_rounded_once(name):
    x = np.linspace(-40, 40, 801).astype(np.float16)
    np.testing.assert_array_equal(ACTIVATIONS[name](x), ACTIVATIONS[name](x.astype(np.float32)).astype(np.float16))


def test_far_out_there_are_limits_and_no_warnings():
    far = np.array([-1e308, -1e30, -800, 800, 1e30, 1e308])
    for name in ("relu", "gelu", "gelu_tanh", "silu", "quick_gelu"):
        np.testing.assert_array_equal(np.abs(ACTIVATIONS[name](far)[:3]), 0)
        np.testing.assert_array_equal(ACTIVATIONS[name](far)[3:], far[3:])
        np.testing.assert_array_equal(np.abs(ACTIVATIONS[name].slope(far)), [0, 0, 0, 1, 1, 1])


def test_what_is_no_number_stays_so():
    nan = np.array([np.nan])
    assert all(np.isnan(row(nan)).all() for row in ACTIVATIONS.values())


def test_relu_has_the_slope_0_at_0():
    np.testing.assert_array_equal(ACTIVATIONS["relu"].slope(np.array([0.0, -0.0])), [0, 0])
