"""Token ids as rows of numbers: the embedding in front of the first block."""

from __future__ import annotations

from typing import Any

import numpy as np

from attncli.maths.arrays import Array, as_in


def embedded(ids: Array, W_E: Array, scale: Any = None) -> Array:
    """E = W_E[ids], times a scale where one is given, √d_model in the paper (Vaswani et al. 2017, section 3.4).

    ids (..., n) from 0, W_E (V, d_model)  ->  (..., n, d_model)

    >>> embedded(np.array([1, 0, 1]), np.array([[1.0, 2.0], [3.0, 4.0]]), 10).tolist()
    [[30.0, 40.0], [10.0, 20.0], [30.0, 40.0]]
    """
    rows: Array = W_E[ids]
    return rows if scale is None else rows * as_in(scale, W_E)


def with_segments(E: Array, W_S: Array, segments: Array | None = None) -> Array:
    """E + W_S[segments], the token types of BERT; where no segments are given, all tokens are of type 0.

    E (..., n, d_model), W_S (S, d_model), segments (..., n) from 0  ->  (..., n, d_model)

    >>> with_segments(np.zeros((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    types: Array = W_S[0] if segments is None else W_S[segments]
    return E + types


def one_hot(ids: Array, V: int, dtype: Any = float) -> Array:
    """A row for each id, 1 at the id and 0 elsewhere: times W_E it is the embedding.

    ids (..., n)  ->  (..., n, V)

    >>> one_hot(np.array([2, 0]), 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    return np.equal(ids[..., None], np.arange(V)).astype(dtype)
