"""The error function erf(x) = 2/√π ∫₀ˣ e^(−t²) dt, which NumPy lacks, and what comes of it: erfc and the normal Φ.

Each dtype is worked out in itself: erf within 2 units in the last place, erfc within 6.
"""

from __future__ import annotations

import math

import numpy as np

from attncli.maths.arrays import Array, elementwise

Coefficients = tuple[float, ...]
"""Of a polynomial, from that of x⁰ on."""

NEAR_ZERO: tuple[Coefficients, Coefficients] = (
    (1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02, -5.77027029648944159157e-03,
     -2.37630166566501626084e-05),
    (1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
     1.32494738004321644526e-04, -3.96022827877536812320e-06),
)  # fmt: skip
"""erf(x)/x − 1 as a quotient of polynomials in x², for |x| < 0.84375 (FreeBSD, s_erf.c; Sun Microsystems 1993)."""

BEYOND = {
    np.dtype(np.float64): (4, 32, (
        0.23299511862555253, -0.1396211168405623, 0.015379652102610473, 0.06809705425466908, -0.10103906603586531,
        0.0937328349990944, -0.06633036582031154, 0.03716751552655567, -0.016197733981455194, 0.005031970067657489,
        -0.000757773707063825, -0.00019925714661091188, 0.00015062309720018628, -2.4397746422436416e-05,
        -1.1225101875659178e-05, 5.706604414895734e-06, 2.9801353803031333e-07, -8.210939042560568e-07,
        7.115337800585303e-08, 1.0633855618594884e-07, -1.6371779763566967e-08, -1.234686604382353e-08,
        1.5738283774192037e-09, 9.311744978232572e-10,
    )),
    np.dtype(np.float32): (2, 13, (
        0.276978391, -0.0927637628, -0.166031096, 0.164049454, -0.0542119585, -0.00801896308, 0.00868915966,
        0.00121741059, -0.00139570695, -0.000357920448, 0.000160803582, 6.33694584e-05,
    )),
}  # fmt: skip
"""k, low bits, and (1 + 2x) e^(x²) erfc(x) − 1 as a polynomial in (x − k)/(x + k), for every x ≥ 0.

The form is that of Shepherd and Laframboise (1981, "Chebyshev approximation of (1 + 2x) exp(x²) erfc x in
0 ≤ x < ∞"); the coefficients are its Chebyshev series, worked out to 60 digits and cut off. A number without its low
bits has so few digits that its square is exact.
"""


@elementwise
def erf(x: Array) -> Array:
    """erf(x), between −1 and 1.

    x of any shape  ->  the same shape

    >>> erf(np.array([0.0, 0.5, -2.0, np.inf])).round(6)
    array([ 0.      ,  0.5205  , -0.995322,  1.      ])
    """
    if x.dtype == object:
        return _of_exact(x)
    size = np.abs(x)
    inner = np.minimum(size, 1)
    near = inner + inner * _polynomial(NEAR_ZERO[0], inner * inner) / _polynomial(NEAR_ZERO[1], inner * inner)
    return np.copysign(np.where(size < 0.84375, near, 1 - _erfc(size)), x)


@elementwise
def erfc(x: Array) -> Array:
    """erfc(x) = 1 − erf(x), without the loss of digits of that difference where erf is nearly 1.

    x of any shape  ->  the same shape

    >>> erfc(np.array([0.0, 10.0]))
    array([1.00000000e+00, 2.08848758e-45])
    """
    if x.dtype == object:
        return 1 - _of_exact(x)
    values = _erfc(np.abs(x))
    return np.where(x < 0, 2 - values, values)


def normal_cdf(x: Array) -> Array:
    """Φ(x) = (1 + erf(x/√2))/2, the probability that a standard normal number is at most x.

    x of any shape  ->  the same shape

    >>> normal_cdf(np.array([0.0, 1.0])).round(6)
    array([0.5     , 0.841345])
    """
    if x.dtype == object:
        return (1 + erf(x / x.flat[0].of(2).sqrt())) / 2
    return erfc(x * -math.sqrt(0.5)) / 2


def _of_exact(x: Array) -> Array:
    """erf of exact numbers, which know it themselves."""
    values: Array = np.frompyfunc(lambda number: number.erf(), 1, 1)(x)
    return values


def _erfc(x: Array) -> Array:
    """erfc of x ≥ 0. In e^(−x²) an error of x² would count in full: x² = z² − (z − x)(z + x), where z² is exact."""
    x = np.minimum(x, 28)  # beyond it erfc is less than the smallest number, and ∞/∞ would be NaN
    k, low, coefficients = BEYOND[x.dtype]
    z = _without_low_bits(x, low)
    power = np.exp(-z * z) * np.exp((z - x) * (z + x))
    value: Array = power * ((1 + _polynomial(coefficients, (x - k) / (x + k))) / (1 + 2 * x))
    return value


def _without_low_bits(x: Array, low: int) -> Array:
    bits = x.view(f"i{x.itemsize}")
    return (bits >> low << low).view(x.dtype)


def _polynomial(coefficients: Coefficients, x: Array) -> Array:
    """By Horner's rule, in place."""
    value = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value *= x
        value += coefficient
    return value
