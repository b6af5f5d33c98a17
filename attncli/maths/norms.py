"""LayerNorm, RMSNorm and the L2 norm of rows, and the parts of them that are stages of their own.

Arrays are in the row convention: a row x of d numbers becomes γ x̂ + β. ε stands inside the root and may be 0; then a
row whose entries are all equal (for LayerNorm) or all 0 has no norm: 0/0, which is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attncli.maths.arrays import Array, as_in, by_parts, calculation

# Parts


@calculation
def mean(x: Array) -> Array:
    """μ = (x_1 + … + x_d) / d, of each row; of equal entries that entry, whatever the rounding.

    x (..., d)  ->  (..., 1)

    >>> mean(np.array([[1.0, 2.0, 6.0], [0.1, 0.1, 0.1]]))
    array([[3. ],
           [0.1]])
    """
    mu = np.asarray(x.mean(axis=-1, keepdims=True))
    if x.dtype == object:
        return mu
    return np.asarray(np.clip(mu, x.min(axis=-1, keepdims=True), x.max(axis=-1, keepdims=True)))


@calculation
def variance(x: Array, mu: Array | None = None) -> Array:
    """σ² = Σ (x_a − μ)² / d, of each row: divided by d, not by d − 1 (Ba et al. 2016, equation 3).

    x (..., d), mu (..., 1) where it is known  ->  (..., 1)

    >>> variance(np.array([[1.0, 2.0, 6.0]]))
    array([[4.66666667]])
    """
    return _mean_square(x - (mean(x) if mu is None else mu))


@calculation
def standardized(x: Array, eps: Any, mu: Array | None = None, sigma2: Array | None = None) -> Array:
    """x̂ = (x − μ) / √(σ² + ε): rows of mean 0 and, but for ε, variance 1 (Ba et al. 2016, equation 4).

    x (..., d), mu and sigma2 (..., 1) where they are known  ->  (..., d)

    >>> standardized(np.array([[1.0, 3.0], [2.0, 2.0]]), 0)
    array([[-1.,  1.],
           [nan, nan]])
    """
    deviations = x - (mean(x) if mu is None else mu)
    return _quotient(deviations, _root(_mean_square(deviations) if sigma2 is None else sigma2, eps))


@calculation
def rms(x: Array, eps: Any) -> Array:
    """RMS(x) = √(Σ x_a² / d + ε), of each row (Zhang and Sennrich 2019, equation 4).

    x (..., d)  ->  (..., 1)

    >>> rms(np.array([[1.0, 7.0]]), 0)
    array([[5.]])
    """
    return _root(_mean_square(x), eps)


@calculation
def divided_by_rms(x: Array, eps: Any, size: Array | None = None) -> Array:
    """x̂ = x / RMS(x) (Zhang and Sennrich 2019, equation 4).

    x (..., d), size (..., 1): the RMS where it is known  ->  (..., d)

    >>> divided_by_rms(np.array([[1.0, 7.0]]), 0)
    array([[0.2, 1.4]])
    """
    return _quotient(x, rms(x, eps) if size is None else size)


@calculation
def length(x: Array, eps: Any) -> Array:
    """|x| = √(Σ x_a² + ε), of each row.

    x (..., d)  ->  (..., 1)

    >>> length(np.array([[3.0, 4.0]]), 0)
    array([[5.]])
    """
    return _root(np.asarray((x * x).sum(axis=-1, keepdims=True)), eps)


@calculation
def divided_by_length(x: Array, eps: Any) -> Array:
    """x̂ = x / |x|: rows of length 1 (Henry et al. 2020, "Query-key normalization for Transformers", section 3).

    x (..., d)  ->  (..., d)

    >>> divided_by_length(np.array([[3.0, 4.0]]), 0)
    array([[0.6, 0.8]])
    """
    return _quotient(x, length(x, eps))


def scaled_and_shifted(
    x: Array, gamma: Array | None = None, beta: Array | None = None, gamma_offset: Any = 0
) -> Array:  # fmt: skip
    """γ x̂ + β; with an offset of 1 it is (1 + γ) x̂ + β. What isn't given is left out.

    x (..., d), gamma and beta broadcast to it  ->  (..., d)

    >>> scaled_and_shifted(np.array([[-1.0, 1.0]]), np.array([2.0, 3.0]), np.array([0.0, 10.0]), gamma_offset=1)
    array([[-3., 14.]])
    """
    if gamma is not None:
        gamma = gamma.astype(x.dtype, copy=False)
        x = x * (gamma + as_in(gamma_offset, x) if gamma_offset != 0 else gamma)
    return x if beta is None else x + beta.astype(x.dtype, copy=False)


def _mean_square(x: Array) -> Array:
    return np.asarray((x * x).mean(axis=-1, keepdims=True))


def _root(square: Array, eps: Any) -> Array:
    root: Array = np.sqrt(square + as_in(eps, square))
    return root


def _quotient(x: Array, size: Array) -> Array:
    quotient: Array = x / size
    return quotient


# Norms

EPS = {"layer": 1e-5, "rms": 1e-6, "l2": 1e-5}
"""ε of each norm where nothing else is given."""


@calculation
def layer_norm(
    x: Array, gamma: Array | None = None, beta: Array | None = None, *,
    eps: Any = EPS["layer"], gamma_offset: Any = 0,
) -> Array:  # fmt: skip
    """LayerNorm(x) = γ (x − μ)/√(σ² + ε) + β, of each row (Ba et al. 2016, equation 4).

    x (..., d), gamma and beta broadcast to it  ->  (..., d)

    >>> layer_norm(np.array([[1.0, 3.0]]), np.array([1.0, 10.0]), np.array([0.5, 0.0]), eps=0)
    array([[-0.5, 10. ]])
    """
    return _norm(standardized, x, gamma, beta, eps, gamma_offset)


@calculation
def rms_norm(
    x: Array, gamma: Array | None = None, beta: Array | None = None, *,
    eps: Any = EPS["rms"], gamma_offset: Any = 0,
) -> Array:  # fmt: skip
    """RMSNorm(x) = γ x/√(Σ x_a²/d + ε), of each row (Zhang and Sennrich 2019, equation 4).

    x (..., d), gamma and beta broadcast to it  ->  (..., d)

    >>> rms_norm(np.array([[1.0, 7.0]]), np.array([10.0, 100.0]), eps=0)
    array([[  2., 140.]])
    """
    return _norm(divided_by_rms, x, gamma, beta, eps, gamma_offset)


@calculation
def l2_norm(
    x: Array, gamma: Array | None = None, beta: Array | None = None, *,
    eps: Any = EPS["l2"], gamma_offset: Any = 0,
) -> Array:  # fmt: skip
    """γ x/√(Σ x_a² + ε), of each row (Henry et al. 2020, section 3).

    x (..., d), gamma and beta broadcast to it  ->  (..., d)

    >>> l2_norm(np.array([[3.0, 4.0]]), eps=0)
    array([[0.6, 0.8]])
    """
    return _norm(divided_by_length, x, gamma, beta, eps, gamma_offset)


def _norm(
    normalized: Callable[[Array, Any], Array],
    x: Array, gamma: Array | None, beta: Array | None, eps: Any, gamma_offset: Any,
) -> Array:  # fmt: skip
    def of_rows(rows: Array) -> Array:
        return scaled_and_shifted(normalized(rows, eps), gamma, beta, gamma_offset)

    if any(own is not None and own.ndim > 1 for own in (gamma, beta)):
        return of_rows(x)  # some rows (of other heads) have another γ than others
    return by_parts(of_rows, x, x.shape[-1])


NORMS = {"layer": layer_norm, "rms": rms_norm, "l2": l2_norm}
"""Every norm, by the name that a problem file gives it."""
