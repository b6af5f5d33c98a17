"""Rotary positions: pairs of columns of Q and K turned by an angle that grows with the position (Su et al. 2021).

The angles per position are made in float64, as they come from whole numbers, base and scaling alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from attncli.maths.arrays import Array, as_in, calculation

PAIRS = ("halves", "interleaved")
"""Which columns are turned together: a and a + dim/2, or 2a − 1 and 2a."""


@dataclass(frozen=True)
class Turns:
    """What turns the pairs: θ_a, the angle of a pair at position 1, and a factor on cos and sin."""

    theta: Array
    factor: float = 1.0


def unscaled(dim: int, base: float) -> Turns:
    """θ_a = base^(−2a/dim), a from 0 (Su et al. 2021, section 3.2.2).

    dim columns  ->  theta (dim/2)

    >>> unscaled(4, 10000).theta.tolist()
    [1.0, 0.01]
    """
    return Turns(float(base) ** (-np.arange(0, dim, 2) / dim))


def written_theta(dim: int, base: Any) -> list[str]:
    """θ_a as one writes it, for exact numbers: unscaled, without rounding.

    dim columns  ->  dim/2 texts

    >>> written_theta(6, 10000)
    ['1', '10000^(-1/3)', '10000^(-2/3)']
    """
    return ["1"] + [f"{base}^({Fraction(-2 * a, dim)})" for a in range(1, dim // 2)]


def linear(dim: int, base: float, *, factor: float) -> Turns:
    """θ_a / factor: positions squeezed together (Chen et al. 2023, "Position interpolation", section 2.3).

    dim columns  ->  theta (dim/2)

    >>> linear(4, 10000, factor=2).theta.tolist()
    [0.5, 0.005]
    """
    return Turns(unscaled(dim, base).theta / factor)


def ntk(dim: int, base: float, *, factor: float) -> Turns:
    """The base times factor^(dim/(dim − 2)): the last θ is divided by factor, the first stays (Peng et al. 2023, 3.1).

    dim columns  ->  theta (dim/2)

    >>> ntk(4, 10000, factor=2).theta.tolist()
    [1.0, 0.005]
    """
    if dim == 2:
        return unscaled(dim, base)  # its only θ is 1, whatever the base
    return unscaled(dim, base * factor ** (dim / (dim - 2)))


def dynamic(dim: int, base: float, *, factor: float, original: int, length: int) -> Turns:
    """`ntk` by factor · length/original − factor + 1, where length tokens are more than the original ones (3.3 there).

    dim columns  ->  theta (dim/2)

    >>> dynamic(4, 10000, factor=2, original=8, length=12).theta.tolist()
    [1.0, 0.005]
    """
    return ntk(dim, base, factor=factor * max(length, original) / original - (factor - 1))


def llama3(dim: int, base: float, *, factor: float, low: float, high: float, original: int) -> Turns:
    """θ((1 − s)/factor + s), s = (original · θ/2π − low)/(high − low) between 0 and 1: pairs that make many turns stay.

    The rule of Llama 3.1 (Grattafiori et al. 2024; transformers, ``modeling_rope_utils``).

    dim columns  ->  theta (dim/2)

    >>> llama3(4, 10000, factor=8, low=1, high=4, original=64).theta.tolist()
    [1.0, 0.00125]
    """
    theta = unscaled(dim, base).theta
    s = np.clip((original * theta / (2 * math.pi) - low) / (high - low), 0, 1)
    return Turns(theta * ((1 - s) / factor + s))


def yarn(
    dim: int, base: float, *, factor: float, original: int, beta_fast: float = 32, beta_slow: float = 1,
    truncate: bool = True, attention_factor: float | None = None,
) -> Turns:  # fmt: skip
    """θ(1 − u) + θ u/factor, u a ramp from 0 to 1 over the pairs (Peng et al. 2023, "YaRN", section 3.2 and 3.4).

    The ramp goes from the pair that makes beta_fast turns within the original length to the one that makes beta_slow;
    both are rounded outwards unless ``truncate`` is off. cos and sin are multiplied by 0.1 ln(factor) + 1, or by
    ``attention_factor``.

    dim columns  ->  theta (dim/2)

    >>> turns = yarn(4, 10000, factor=4, original=64, beta_fast=8)
    >>> turns.theta.tolist(), round(turns.factor, 4)
    ([1.0, 0.0025], 1.1386)
    """

    def pair_with(turns: float) -> float:
        return dim * math.log(original / (2 * math.pi * turns)) / (2 * math.log(base))

    first, last = pair_with(beta_fast), pair_with(beta_slow)
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, dim - 1)
    if first == last:
        last += 0.001  # as transformers has it: a ramp without width would divide by 0
    theta = unscaled(dim, base).theta
    u = np.clip((np.arange(dim // 2) - first) / (last - first), 0, 1)
    usual = 0.1 * math.log(factor) + 1 if factor > 1 else 1.0
    return Turns(theta * (1 - u) + theta / factor * u, usual if attention_factor is None else attention_factor)


SCALINGS: dict[str, Callable[..., Turns]] = {
    "linear": linear, "ntk": ntk, "dynamic": dynamic, "llama3": llama3, "yarn": yarn
}  # fmt: skip
"""Every way to stretch rotary positions, by the name that a problem file gives it; its settings are the keywords."""


def angles(positions: Array, theta: Array) -> Array:
    """t θ_a, in radians: row t, column a.

    positions (..., n), theta (dim/2)  ->  (..., n, dim/2)

    >>> angles(np.array([0, 3]), np.array([1.0, 0.01])).tolist()
    [[0.0, 0.0], [3.0, 0.03]]
    """
    turned: Array = positions[..., :, None] * theta
    return turned


def cos_and_sin(angles: Array, factor: float = 1.0, dtype: Any = None) -> tuple[Array, Array]:
    """cos and sin of the angles, times a factor (yarn's), rounded to a dtype if one is given.

    Angles that were rounded to float16 before would be of no use: beyond 1024 they are whole numbers there.

    angles (..., n, dim/2)  ->  two of that shape

    >>> cos_and_sin(np.array([[0.0]]), 2.0)
    (array([[2.]]), array([[0.]]))
    """
    cos, sin = np.cos(angles), np.sin(angles)
    if factor != 1:
        cos, sin = cos * as_in(factor, cos), sin * as_in(factor, sin)
    return (cos, sin) if dtype is None else (cos.astype(dtype, copy=False), sin.astype(dtype, copy=False))


@calculation
def rotated(x: Array, cos: Array, sin: Array, pairs: str = "halves") -> Array:
    """Each pair (x, y) turned: x cos − y sin, y cos + x sin (Su et al. 2021, equation 34). Columns beyond dim stay.

    With −sin it is turned back, which is also what a gradient needs.

    x (..., n, d), cos and sin (..., n, dim/2) whose leading axes broadcast to those of x  ->  (..., n, d)

    >>> cos, sin = np.array([[0.0]]), np.array([[1.0]])
    >>> rotated(np.array([[1.0, 2.0, 9.0]]), cos, sin)
    array([[-2.,  1.,  9.]])
    """
    one, other = pair_columns(2 * cos.shape[-1], pairs)
    lead = np.broadcast_shapes(x.shape[:-1], cos.shape[:-1])
    turned = np.broadcast_to(x, (*lead, x.shape[-1])).copy()
    turned[..., one] = x[..., one] * cos - x[..., other] * sin
    turned[..., other] = x[..., other] * cos + x[..., one] * sin
    return turned


def pair_columns(dim: int, pairs: str) -> tuple[slice, slice]:
    """The first and the second columns of the pairs, both in the order of the pairs.

    >>> columns = np.array(["q1", "q2", "q3", "q4"])
    >>> [columns[part].tolist() for part in pair_columns(4, "halves")]
    [['q1', 'q2'], ['q3', 'q4']]
    >>> [columns[part].tolist() for part in pair_columns(4, "interleaved")]
    [['q1', 'q3'], ['q2', 'q4']]
    """
    if pairs == "interleaved":
        return slice(0, dim, 2), slice(1, dim, 2)
    return slice(0, dim // 2), slice(dim // 2, dim)
