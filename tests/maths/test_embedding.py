"""Rows by id, and the sums and gates between the parts of a block."""

from __future__ import annotations

import numpy as np
import pytest

from attncli.maths.block import gated, residual
from attncli.maths.embedding import embedded, one_hot, with_segments

W_E = np.arange(21.0).reshape(7, 3) / 8
IDS = np.array([[4, 0, 6, 4, 1], [2, 2, 2, 5, 3]])


def test_an_id_is_a_row_counted_from_0():
    found = embedded(IDS, W_E)
    assert found.shape == (2, 5, 3)
    for b, i in np.ndindex(2, 5):
        assert found[b, i].tolist() == [float(3 * IDS[b, i] + a) / 8 for a in range(3)]


def test_it_is_one_hot_times_the_matrix():
    np.testing.assert_array_equal(one_hot(IDS, 7) @ W_E, embedded(IDS, W_E))
    assert one_hot(IDS, 7).sum(axis=-1).tolist() == [[1] * 5] * 2
    assert one_hot(IDS, 7, np.float32).dtype == np.float32


def test_scaled_and_with_segments():
    np.testing.assert_array_equal(embedded(IDS, W_E, 2), 2 * embedded(IDS, W_E))
    W_S = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    found = with_segments(np.zeros((3, 3)), W_S, np.array([1, 0, 1]))
    assert found.tolist() == [[10, 20, 30], [1, 2, 3], [10, 20, 30]]
    assert with_segments(np.zeros((2, 3)), W_S).tolist() == [[1, 2, 3]] * 2


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_stays(dtype):
    small = W_E.astype(dtype)
    assert embedded(IDS, small, 3**0.5).dtype == dtype
    assert residual(small, small, alpha=0.1).dtype == dtype
    assert gated(small, small).dtype == dtype


def test_residual_adds_every_branch():
    x, f, g = np.array([[1.0, 2.0]]), np.array([[10.0, 20.0]]), np.array([[100.0, 200.0]])
    assert residual(x, f).tolist() == [[11, 22]]
    assert residual(x, f, g).tolist() == [[111, 222]]
    assert residual(x, f, g, alpha=0.5).tolist() == [[56, 112]]
