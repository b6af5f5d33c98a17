"""The same functions over exact numbers: roots, powers of e and functions stay written, and agree with the floats."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attncli.maths.activations import ACTIVATIONS
from attncli.maths.block import gated, residual
from attncli.maths.embedding import embedded, with_segments
from attncli.maths.losses import (
    greatest,
    leading,
    log_softmax,
    loss,
    perplexity,
    softmax_with_sinks,
    token_losses,
)
from attncli.maths.norms import NORMS, layer_norm, mean, rms, standardized, variance
from attncli.maths.ops import project, tidied
from attncli.maths.positions import alibi_bias, alibi_slopes, offsets, t5_bias
from attncli.maths.rope import angles, cos_and_sin, rotated, written_theta

pytest.importorskip("sympy")

from attncli.maths.exact import Exact


def exact(numbers):
    """Nested lists of numbers or texts as an array of exact numbers."""
    plain = np.array(numbers, dtype=object)
    made = np.empty(plain.size, dtype=object)
    made[:] = [Exact.of(number) for number in plain.ravel()]
    return made.reshape(plain.shape)


def texts(array):
    return [str(number) for number in tidied(np.asarray(array, dtype=object)).ravel()]


def floats(array):
    return np.array([float(number) for number in np.ravel(array)]).reshape(np.shape(array))


X = [[1, 2, 6], [-1, "1/2", 0]]
X_FLOATS = np.array([[1.0, 2.0, 6.0], [-1.0, 0.5, 0.0]])


def test_a_layer_norm_is_a_simplified_root():
    """Of 1, 2, 6: μ = 3, σ² = 14/3; with ε = 0.00001 = 1/100000 it is (x − 3)/√(1400003/300000)."""
    x = exact([[1, 2, 6]])
    assert texts(mean(x)) == ["3"]
    assert texts(variance(x)) == ["14/3"]
    assert texts(layer_norm(x, eps=0)) == ["-sqrt(42)/7", "-sqrt(42)/14", "3*sqrt(42)/14"]
    assert texts(standardized(x, "13/3")) == ["-2/3", "-1/3", "1"]
    assert texts(layer_norm(x, eps=1e-5))[2] == "300*sqrt(42000090)/1400003"
    assert float(layer_norm(x, eps=1e-5)[0, 2]) == pytest.approx(3 / math.sqrt(14 / 3 + 1e-5), rel=1e-15)
    assert texts(rms(exact([[1, 7]]), 0)) == ["5"]


@pytest.mark.parametrize("kind", NORMS)
def test_every_norm_agrees_with_its_floats(kind):
    found = NORMS[kind](exact(X), exact([2, "1/3", -1]), exact([1, 0, 5]), gamma_offset=1)
    assert found.dtype == object
    wanted = NORMS[kind](X_FLOATS, np.array([2, 1 / 3, -1]), np.array([1.0, 0, 5]), gamma_offset=1)
    np.testing.assert_allclose(floats(found), wanted, rtol=1e-14)


def test_equal_entries_have_no_norm_without_eps():
    assert np.isnan(floats(layer_norm(exact([["1/3", "1/3"]]), eps=0))).all()
    assert texts(layer_norm(exact([["1/3", "1/3"]]), exact([2, 2]), exact([5, 7]))) == ["5", "7"]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_agrees_with_its_floats(name):
    for function in (ACTIVATIONS[name], ACTIVATIONS[name].slope):
        found = function(exact(X))
        assert found.dtype == object
        np.testing.assert_allclose(floats(found), function(X_FLOATS), rtol=1e-14, atol=1e-16)


def test_activations_stay_written():
    one = exact([1, -2])
    assert texts(ACTIVATIONS["relu"](one)) == ["1", "0"]
    assert texts(ACTIVATIONS["silu"](one))[0] == "1/(1 + exp(-1))"
    assert texts(ACTIVATIONS["gelu"](one))[0] == "1/2 + erf(sqrt(2)/2)/2"
    in_tanh = str(ACTIVATIONS["gelu_tanh"](one)[0])
    assert all(part in in_tanh for part in ("tanh(", "sqrt(2)", "sqrt(pi)"))
    assert (
        ACTIVATIONS["gelu"](one)[0].written("latex")
        == r"\frac{1}{2} + \frac{\operatorname{erf}\left(\frac{\sqrt{2}}{2}\right)}{2}"
    )


def test_a_feed_forward_network_of_fractions():
    hidden = project(exact([[1, "1/2"]]), exact([[1, -1], [2, "1/3"]]), exact([0, "1/6"]))
    assert texts(hidden) == ["2", "-2/3"]
    made = residual(exact([["1/2", 0]]), project(ACTIVATIONS["relu"](hidden), exact([[1, "1/5"], [7, 7]])), alpha="1/2")
    assert texts(made) == ["3/2", "1/5"]
    assert texts(gated(exact([["1/2"]]), exact([["2/3"]]))) == ["1/3"]


def test_embedded_rows():
    W_E = exact([["1/3", 1], [2, "sqrt(2)"]])
    assert texts(embedded(np.array([1, 0]), W_E, "sqrt(2)")) == ["2*sqrt(2)", "2", "sqrt(2)/3", "sqrt(2)"]
    assert texts(with_segments(embedded(np.array([0]), W_E), exact([["2/3", 1]]))) == ["1", "2"]


def test_rotations_stay_written_and_nothing_turns_at_position_0():
    x = exact([["1/3", 2], [1, 0]])
    turned = rotated(x, *cos_and_sin(angles(np.array([0, 2]), exact([1]))))
    assert texts(turned) == ["1/3", "2", "cos(2)", "sin(2)"]


def test_angles_are_powers_of_the_base():
    turned = angles(np.array([0, 3]), exact(written_theta(6, 1000)))
    assert texts(turned) == ["0", "0", "0", "3", "3/10", "3/100"]
    assert texts(exact(written_theta(4, 10000))) == ["1", "1/100"]
    assert texts(exact(written_theta(8, 10000)))[1] == "1/10"
    assert texts(cos_and_sin(turned)[1])[4] == "sin(3/10)"


def test_biases():
    assert texts(alibi_bias(offsets(1, 3), alibi_slopes(2)) + exact([[0, 1, 0]]))[:3] == ["0", "15/16", "-1/8"]
    assert texts(t5_bias(np.array([[1, 0]]), exact([["1/3"], ["2/3"]]))) == ["2/3", "1/3"]


def test_from_logits_to_a_loss():
    logits = exact([[0, 1], ["-inf", 0], ["-inf", "-inf"]])
    logs = log_softmax(logits)
    assert texts(logs)[:2] == ["-ln(1 + e)", "1 - ln(1 + e)"]
    assert floats(logs)[1:].tolist() == [[-math.inf, 0], [-math.inf, -math.inf]]
    losses = token_losses(logs[:2], np.array([1, 1]), np.array([True, True]))
    assert float(loss(losses).item()) == pytest.approx((math.log(1 + math.e) - 1) / 2)
    smoothed = token_losses(logs[:1], np.array([1]), label_smoothing="1/10", log_base=2)
    assert float(smoothed[0]) == pytest.approx((math.log(1 + math.e) - 0.9 - 0.05) / math.log(2))
    assert str(perplexity(exact(["ln(3)"]).reshape(())).item()) == "3"
    assert float(perplexity(exact([3]).reshape(()), 2).item()) == pytest.approx(8)
    assert np.isnan(float(token_losses(logs[:1], np.array([1]), np.array([False]))[0]))


def test_the_greatest_of_exact_numbers():
    x = exact([["1/3", "sqrt(2)", "sqrt(2)"], [3, "e", 2]])
    ids, ties = greatest(x)
    assert ids.tolist() == [1, 0]
    assert ties.tolist() == [True, False]
    assert leading(x, 2).tolist() == [[1, 2], [0, 1]]


def test_a_sink_in_powers_of_e():
    found = softmax_with_sinks(exact([[[0, 1]]]), exact([0]))
    assert texts(found) == ["1/(2 + e)", "e/(2 + e)"]
