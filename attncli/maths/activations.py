"""The activation functions of feed-forward networks, a row each in ACTIVATIONS, with their derivatives.

Arrays of any shape; the result has that shape and dtype. Where a row's formula is worked out on exact numbers, they
must know the functions in it (exp, tanh, erf) themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attncli.maths.arrays import Array, OfNumbers, as_in, constant, elementwise
from attncli.maths.erf import normal_cdf

CUBIC = 0.044715
"""The factor of x³ in gelu_tanh, fitted to the normal distribution (Hendrycks and Gimpel 2016, section 2)."""

ROOT = ("sqrt(2/pi)", math.sqrt(2 / math.pi))
"""The factor of the whole."""

STEEPNESS = 1.702
"""The factor in quick_gelu: σ(1.702 x) is nearest to Φ(x) (Hendrycks and Gimpel 2016, section 2)."""


@elementwise
def relu(x: Array) -> Array:
    """max(0, x) (Vaswani et al. 2017, section 3.3).

    >>> relu(np.array([-2.0, 3.0]))
    array([0., 3.])
    """
    values: Array = np.maximum(x, as_in(0, x))
    return values


@elementwise
def relu2(x: Array) -> Array:
    """max(0, x)² (So et al. 2021, "Primer", section 4).

    >>> relu2(np.array([-2.0, 3.0]))
    array([0., 9.])
    """
    positive = relu(x)
    values: Array = positive * positive
    return values


@elementwise
def sigmoid(x: Array) -> Array:
    """σ(x) = 1 / (1 + e^(−x)).

    >>> sigmoid(np.array([-1000.0, 0.0]))
    array([0. , 0.5])
    """
    values: Array = 1 / (1 + np.exp(-x))
    return values


@elementwise
def tanh(x: Array) -> Array:
    """tanh(x) = (e^x − e^(−x)) / (e^x + e^(−x)).

    >>> tanh(np.array([0.0, 1000.0]))
    array([0., 1.])
    """
    values: Array = np.tanh(x)
    return values


def identity(x: Array) -> Array:
    """x itself: a network without activation is linear.

    >>> identity(np.array([-2.0, 3.0]))
    array([-2.,  3.])
    """
    return x


@elementwise
def silu(x: Array) -> Array:
    """x σ(x) = x / (1 + e^(−x)), also called swish (Hendrycks and Gimpel 2016, section 2).

    >>> silu(np.array([0.0, 2.0])).round(4)
    array([0.    , 1.7616])
    """
    values: Array = x / (1 + np.exp(-x))
    return values


@elementwise
def quick_gelu(x: Array) -> Array:
    """x σ(1.702 x), which is near to gelu (Hendrycks and Gimpel 2016, section 2).

    >>> quick_gelu(np.array([0.0, 1.0])).round(4)
    array([0.    , 0.8458])
    """
    values: Array = x / (1 + np.exp(x * -STEEPNESS))
    return values


@elementwise
def gelu(x: Array) -> Array:
    """x Φ(x) = x (1 + erf(x/√2)) / 2, with the normal distribution's Φ (Hendrycks and Gimpel 2016, section 2).

    >>> gelu(np.array([-1.0, 0.0, 1.0])).round(4)
    array([-0.1587,  0.    ,  0.8413])
    """
    return x * normal_cdf(x)


@elementwise
def gelu_tanh(x: Array) -> Array:
    """x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, gelu without erf (Hendrycks and Gimpel 2016, section 2).

    >>> gelu_tanh(np.array([-1.0, 0.0, 1.0])).round(4)
    array([-0.1588,  0.    ,  0.8412])
    """
    values: Array = x * ((1 + np.tanh(gelu_tanh_inner(x))) / 2)
    return values


def gelu_tanh_inner(x: Array) -> Array:
    """√(2/π) (x + 0.044715 x³), the number whose tanh gelu_tanh takes.

    >>> gelu_tanh_inner(np.array([1.0])).round(4)
    array([0.8336])
    """
    values: Array = (x + CUBIC * x * x * x) * constant(*ROOT, x)
    return values


# Derivatives


@elementwise
def relu_slope(x: Array) -> Array:
    """1 where x > 0, else 0: also at 0, where relu has none, as in every framework.

    >>> relu_slope(np.array([-2.0, 0.0, 3.0]))
    array([0., 0., 1.])
    """
    return np.asarray(np.where(x > 0, as_in(1, x), as_in(0, x)))


@elementwise
def relu2_slope(x: Array) -> Array:
    """2 max(0, x).

    >>> relu2_slope(np.array([-2.0, 3.0]))
    array([0., 6.])
    """
    slopes: Array = 2 * relu(x)
    return slopes


@elementwise
def sigmoid_slope(x: Array) -> Array:
    """σ(x) σ(−x).

    >>> sigmoid_slope(np.array([0.0]))
    array([0.25])
    """
    return sigmoid(x) * sigmoid(-x)


@elementwise
def tanh_slope(x: Array) -> Array:
    """1 − tanh²(x).

    >>> tanh_slope(np.array([0.0]))
    array([1.])
    """
    return _tanh_slope(np.tanh(x))


@elementwise
def identity_slope(x: Array) -> Array:
    """1.

    >>> identity_slope(np.array([3.0]))
    array([1.])
    """
    return np.full_like(x, as_in(1, x))


@elementwise
def silu_slope(x: Array) -> Array:
    """σ(x) (1 + x σ(−x)).

    >>> silu_slope(np.array([0.0]))
    array([0.5])
    """
    slopes: Array = sigmoid(x) * (1 + _times(x, sigmoid(-x)))
    return slopes


@elementwise
def quick_gelu_slope(x: Array) -> Array:
    """σ(1.702 x) (1 + 1.702 x σ(−1.702 x)).

    >>> quick_gelu_slope(np.array([0.0]))
    array([0.5])
    """
    steep = x * STEEPNESS
    slopes: Array = sigmoid(steep) * (1 + _times(steep, sigmoid(-steep)))
    return slopes


@elementwise
def gelu_slope(x: Array) -> Array:
    """Φ(x) + x φ(x), where φ(x) = e^(−x²/2) / √(2π) is the normal density.

    >>> gelu_slope(np.array([0.0, 1.0])).round(4)
    array([0.5   , 1.0833])
    """
    density = np.exp(x * x / -2) * constant("1/sqrt(2*pi)", 1 / math.sqrt(2 * math.pi), x)
    return normal_cdf(x) + _times(x, density)


@elementwise
def gelu_tanh_slope(x: Array) -> Array:
    """(1 + tanh u)/2 + x (1 − tanh² u) u′/2, with u the inner number and u′ = √(2/π) (1 + 3 · 0.044715 x²).

    >>> gelu_tanh_slope(np.array([0.0, 1.0])).round(4)
    array([0.5  , 1.083])
    """
    inner = np.tanh(gelu_tanh_inner(x))
    growth = (1 + CUBIC * x * x * 3) * constant(*ROOT, x)
    slopes: Array = (1 + inner + _times(x * growth, _tanh_slope(inner))) / 2
    return slopes


def _tanh_slope(value: Array) -> Array:
    """1 − v², where v is the tanh."""
    slopes: Array = (1 - value) * (1 + value)
    return slopes


def _times(x: Array, factor: Array) -> Array:
    """x · factor, with 0 where a factor has vanished: far out it wins over any x."""
    if x.dtype == object:
        return x * factor
    return np.where(factor == 0, as_in(0, x), x * factor)


@dataclass(frozen=True)
class Activation:
    """An activation function: called, it gives its values; ``slope`` gives its derivative."""

    name: str
    function: OfNumbers
    slope: OfNumbers

    def __call__(self, x: Array) -> Array:
        return self.function(x)


ACTIVATIONS = {
    row.name: row
    for row in (
        Activation("relu", relu, relu_slope),
        Activation("gelu", gelu, gelu_slope),
        Activation("gelu_tanh", gelu_tanh, gelu_tanh_slope),
        Activation("silu", silu, silu_slope),
        Activation("quick_gelu", quick_gelu, quick_gelu_slope),
        Activation("relu2", relu2, relu2_slope),
        Activation("tanh", tanh, tanh_slope),
        Activation("sigmoid", sigmoid, sigmoid_slope),
        Activation("identity", identity, identity_slope),
    )
}
"""Every activation function, by the name that a problem file gives it."""
