"""Rotary positions against transformers' and against complex numbers, pair by pair."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest
from published import TORCH, assert_near

from attncli.maths.rope import SCALINGS, angles, cos_and_sin, dynamic, linear, llama3, ntk, rotated, unscaled, yarn

RENAMED = {
    "low_freq_factor": "low", "high_freq_factor": "high", "original_max_position_embeddings": "original",
    "seq_len": "length",
}  # fmt: skip


def turns(case):
    """What the settings of a transformers case mean here."""
    settings = {RENAMED.get(name, name): value for name, value in case["settings"].items()}
    kind = settings.pop("rope_type")
    if kind == "default":
        return unscaled(case["dim"], case["base"])
    if kind == "dynamic":
        settings = {"original": 64, "length": 64, **settings}
    return SCALINGS[kind](case["dim"], case["base"], **settings)


def name_of(case):
    return f"{case['settings']}, {case['dim']}, {case['base']}".replace("'", "")


@pytest.mark.parametrize("case", TORCH["rope"]["scaled"], ids=name_of)
def test_transformers_gives_the_same_angles(case):
    found = turns(case)
    assert found.theta.dtype == np.float64
    # there they are made in float32; yarn's ramp in pairs of a float32 difference
    np.testing.assert_allclose(found.theta, case["theta"], rtol=1e-5 if "yarn" in str(case) else 2e-6)
    assert found.factor == pytest.approx(case["factor"], rel=1e-15)


@pytest.mark.parametrize("pairs", ["halves", "interleaved"])
def test_transformers_turns_the_pairs_the_same_way(pairs):
    given = TORCH["rope"]["turned"]
    q = np.array(given["q"])
    cos, sin = cos_and_sin(np.array(given["angles"]))
    assert_near(rotated(q, cos, sin, pairs), given[pairs])


@pytest.mark.parametrize("pairs", ["halves", "interleaved"])
@pytest.mark.parametrize("dim", [2, 4, 6])
def test_a_pair_is_a_complex_number_times_e_to_the_i_t_theta(pairs, dim):
    x = np.random.default_rng(dim).normal(size=(2, 5, 6))
    positions = np.array([0, 1, 7, 100, 4095])
    found = rotated(x, *cos_and_sin(angles(positions, unscaled(dim, 100).theta)), pairs)
    for r, i, a in np.ndindex(2, 5, dim // 2):
        one, other = (2 * a, 2 * a + 1) if pairs == "interleaved" else (a, a + dim // 2)
        theta = 100 ** (-2 * a / dim)
        turned = complex(x[r, i, one], x[r, i, other]) * cmath.exp(1j * int(positions[i]) * theta)
        assert found[r, i, one] == pytest.approx(turned.real, abs=1e-12)
        assert found[r, i, other] == pytest.approx(turned.imag, abs=1e-12)
    np.testing.assert_array_equal(found[..., dim:], x[..., dim:])


def test_by_hand():
    """θ = 1 and 1/10; at t = 2 a quarter of π/2 each would be too easy: cos 2 = −0.416147, sin 2 = 0.909297."""
    turned = rotated(np.array([[1.0, 10.0, 2.0, 20.0]]), *cos_and_sin(angles(np.array([2]), unscaled(4, 100).theta)))
    first = [1 * -0.4161468365 - 2 * 0.9092974268, 2 * -0.4161468365 + 1 * 0.9092974268]
    second = [10 * 0.9800665778 - 20 * 0.1986693308, 20 * 0.9800665778 + 10 * 0.1986693308]
    np.testing.assert_allclose(turned[0], [first[0], second[0], first[1], second[1]], rtol=1e-9)


def test_scalings_by_hand():
    # dim 4, base 100: θ = 1, 1/10
    assert linear(4, 100, factor=4).theta.tolist() == [0.25, 0.025]
    # ntk: 100 · 3^(4/2) = 900, and 900^(−2/4) = 1/30
    np.testing.assert_allclose(ntk(4, 100, factor=3).theta, [1, 1 / 30], rtol=1e-15)
    # dynamic: 30 tokens for 10 are 3 times as many: 2 · 3 − 1 = 5; 100 · 25 = 2500, whose root is 50
    np.testing.assert_allclose(dynamic(4, 100, factor=2, original=10, length=30).theta, [1, 1 / 50], rtol=1e-15)
    np.testing.assert_array_equal(dynamic(4, 100, factor=2, original=10, length=9).theta, unscaled(4, 100).theta)
    # llama3: in 20π tokens the first pair turns 10 times, the second once, the third 1/10: high 4, low 1/2
    theta = llama3(6, 1000, factor=8, low=0.5, high=4, original=20 * math.pi).theta
    s = (1 - 0.5) / (4 - 0.5)
    np.testing.assert_allclose(theta, [1, 0.1 * ((1 - s) / 8 + s), 0.01 / 8], rtol=1e-13)
    # yarn: c(b) = 4 ln(200π/2πb)/(2 ln 100) = ln(100/b)/ln 10 = 1 for b = 10, 2 for b = 1: u = 0, 0 for pairs 0, 1
    made = yarn(4, 100, factor=2, original=200 * math.pi, beta_fast=10, beta_slow=1, truncate=False)
    np.testing.assert_allclose(made.theta, [1, 0.1], rtol=1e-12)
    # and c = 0 for b = 100: from 0 to 2, u = 0, 1/2
    made = yarn(4, 100, factor=2, original=200 * math.pi, beta_fast=100, beta_slow=1, truncate=False)
    np.testing.assert_allclose(made.theta, [1, 0.1 / 2 + 0.05 / 2], rtol=1e-12)
    assert made.factor == 0.1 * math.log(2) + 1
    assert yarn(4, 100, factor=0.5, original=64).factor == 1


@pytest.mark.parametrize("name", SCALINGS)
def test_a_single_pair_turns_by_1_or_is_only_slowed(name):
    settings = {
        "linear": {}, "ntk": {}, "dynamic": {"original": 8, "length": 16},
        "llama3": {"low": 1, "high": 4, "original": 64}, "yarn": {"original": 64},
    }[name]  # fmt: skip
    theta = SCALINGS[name](2, 10000, factor=2, **settings).theta
    assert theta.tolist() in ([1.0], [0.5])


def test_yarn_multiplies_cos_and_sin():
    x = np.array([[3.0, 4.0]])
    found = rotated(x, *cos_and_sin(angles(np.array([1]), np.array([1.0])), 1.5))
    np.testing.assert_allclose(np.hypot(*found[0]), 7.5)


def test_lengths_stay_and_products_depend_on_the_distance_alone():
    q, k = np.random.default_rng(8).normal(size=(2, 1, 8))
    theta = unscaled(8, 10000).theta

    def at(x, t):
        return rotated(x, *cos_and_sin(angles(np.array([t]), theta)))

    np.testing.assert_allclose(np.linalg.norm(at(q, 91)), np.linalg.norm(q))
    np.testing.assert_allclose(at(q, 5) @ at(k, 2).T, at(q, 105) @ at(k, 102).T)
    np.testing.assert_allclose(rotated(at(q, 3), *_back(angles(np.array([3]), theta))), q)


def _back(turned):
    cos, sin = cos_and_sin(turned)
    return cos, -sin


def test_at_position_0_nothing_turns():
    x = np.random.default_rng(9).normal(size=(3, 1, 4))
    np.testing.assert_array_equal(rotated(x, *cos_and_sin(angles(np.array([0]), unscaled(4, 10000).theta))), x)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_stays_and_far_angles_are_not_rounded_before_cos(dtype):
    x, positions = np.ones((2, 4), dtype), np.array([3000, 40000])
    theta = unscaled(4, 10000).theta
    found = rotated(x, *cos_and_sin(angles(positions, theta), dtype=dtype))
    assert found.dtype == dtype
    wanted = [[math.cos(t * f) - math.sin(t * f) for f in (1, 0.01)] for t in positions.tolist()]
    assert_near(found[:, :2], wanted, 4 * float(np.finfo(dtype).eps))


def test_own_positions_of_each_batch_entry():
    x = np.random.default_rng(10).normal(size=(2, 3, 4, 6))
    positions = np.array([[0, 1, 2, 3], [5, 5, 9, 1]])
    theta = unscaled(6, 100).theta
    cos, sin = cos_and_sin(angles(positions, theta)[:, None])
    found = rotated(x, cos, sin)
    for b in range(2):
        alone = rotated(x[b], *cos_and_sin(angles(positions[b], theta)))
        np.testing.assert_array_equal(found[b], alone)


def test_angles_of_more_axes_than_the_rows_have():
    x, turned = np.ones((2, 4)), np.zeros((3, 2, 2))
    assert rotated(x, *cos_and_sin(turned)).shape == (3, 2, 4)
