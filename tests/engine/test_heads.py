"""Several heads: how they are split, joined and shared, and what each adds."""

from __future__ import annotations

import numpy as np
import pytest
from forms import head_forms

from attncli import AttncliError, Problem, compute, load

# h = 2, d_model = 2, d_k = 1, d_v = 2, n = 1: weights are 1, so every output is a value.
LIST = {
    "Z": [[1, 10]],
    "heads": [
        {"W_Q": [[1], [0]], "W_K": [[1], [0]], "W_V": [[1, 0], [0, 1]], "b_V": [0, 0.5]},
        {"W_Q": [[0], [1]], "W_K": [[0], [1]], "W_V": [[0, 2], [2, 0]], "b_V": [0.25, 0]},
    ],
}
W_O = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]  # (h·d_v, d_out) = (4, 3)


def test_heads_as_a_list():
    result = compute(Problem(**LIST, W_O=W_O, b_O=[0, 0, 1000]))
    assert result["Q"].tolist() == [[[1]], [[10]]]
    assert result["V"].tolist() == [[[1, 10.5]], [[20.25, 2]]]
    assert result["concat"].tolist() == [[1, 10.5, 20.25, 2]]
    assert result["multihead"].tolist() == [[1 + 2, 10.5 + 2, 20.25 + 2 + 1000]]


def test_fused_matrices_are_split_in_blocks_of_columns():
    """Head 1 has columns 1 and 2 of W_V, not every other one."""
    result = compute(Problem(Z=[[1]], num_heads=2, W_Q=[[1, 2]], W_K=[[1, 2]], W_V=[[1, 2, 3, 4]]))
    assert result["V"].tolist() == [[[1, 2]], [[3, 4]]]
    assert result["concat"].tolist() == [[1, 2, 3, 4]]


@pytest.mark.parametrize("more", [{}, {"W_O": W_O}, {"W_O": W_O, "b_O": [1, 2, 3]}])
def test_listed_and_fused_heads_agree(more):
    listed = LIST | more
    one, other = compute(Problem(**listed)), compute(Problem(**head_forms(listed)[0]))
    assert list(one) == list(other)
    for stage in one:
        assert np.array_equal(one[stage], other[stage])


def test_a_heads_own_block_of_W_O():
    heads = [{**head, "W_O": block} for head, block in zip(LIST["heads"], np.split(np.array(W_O), 2), strict=True)]
    one, other = compute(Problem(**LIST, W_O=W_O)), compute(Problem(Z=LIST["Z"], heads=heads))
    assert one["multihead"].tolist() == other["multihead"].tolist()


# Grouped queries

GROUPED = {"num_heads": 4, "num_kv_heads": 2, "Q": [[0, 0, 0, 0]], "K": [[1, 9]], "V": [[1, 9]]}


def test_query_heads_share_their_groups_key_and_value():
    """Repeated (1 1 9 9), not tiled (1 9 1 9)."""
    assert compute(Problem(**GROUPED))["outputs"].ravel().tolist() == [1, 1, 9, 9]


def test_one_key_and_value_head_for_all():
    keys = GROUPED | {"num_kv_heads": 1, "K": [[1]], "V": [[7]]}
    assert compute(Problem(**keys))["outputs"].ravel().tolist() == [7, 7, 7, 7]


def test_six_query_heads_on_three():
    result = compute(Problem(num_heads=6, num_kv_heads=3, Q=np.zeros((1, 6)), K=np.zeros((1, 3)), V=[[1, 2, 3]]))
    assert result["outputs"].ravel().tolist() == [1, 1, 2, 2, 3, 3]
    assert [array.shape for array in (result["Q"], result["K"], result["weights"])] == [(6, 1, 1), (3, 1, 1), (6, 1, 1)]


def test_grouped_projections():
    """W_K and W_V have g blocks: (d_model, g·d_k) = (1, 2) beside (1, 4) for W_Q."""
    result = compute(Problem(Z=[[2]], num_heads=4, num_kv_heads=2, W_Q=[[1, 2, 3, 4]], W_K=[[1, 10]], W_V=[[1, 10]]))
    assert result["scores"].ravel().tolist() == [2 * 2, 4 * 2, 6 * 20, 8 * 20]


@pytest.mark.parametrize(("h", "g"), [(4, 3), (2, 4), (1, 2)])
def test_query_heads_are_a_multiple_of_key_heads(h, g):
    with pytest.raises(AttncliError) as caught:
        Problem(num_heads=h, num_kv_heads=g, Q=np.ones((1, 12)), K=np.ones((1, 12)), V=np.ones((1, 12)))
    assert caught.value.what == f"num_heads = {h} is no multiple of num_kv_heads = {g}"


# A head axis that is there already


def test_per_head_keeps_the_axes():
    Q, K, V = np.arange(12).reshape(2, 3, 2), np.arange(20).reshape(2, 5, 2), np.arange(10).reshape(2, 5, 1)
    apart = compute(Problem(Q=Q, K=K, V=V, per_head=True))
    fused = compute(Problem(Q=np.hstack([*Q]), K=np.hstack([*K]), V=np.hstack([*V]), num_heads=2))
    assert list(apart) == list(fused)
    for stage in apart:
        assert np.array_equal(apart[stage], fused[stage])


def test_per_head_with_groups():
    result = compute(Problem(Q=np.zeros((4, 3, 2)), K=np.zeros((2, 1, 2)), V=[[[1]], [[9]]], per_head=True))
    assert result["outputs"][:, 0, 0].tolist() == [1, 1, 9, 9]


def test_per_head_where_nothing_is_given_that_could_have_heads():
    with pytest.raises(AttncliError, match="per_head says how Q, K and V that are given are laid out, and none is"):
        load("three-tokens", "per_head=true")


def test_per_head_without_a_head_axis():
    with pytest.raises(AttncliError) as caught:
        Problem(Q=[[1, 2]], K=[[1, 2]], V=[[1, 2]], per_head=True)
    assert [error.what for error in caught.value.errors] == [
        "per_head says that there is a head axis, third from last, but there is none: Q (1, 2), K (1, 2), V (1, 2)"
    ]


# Contributions


def test_contributions_are_each_heads_share():
    """Head 1: (1, 10.5) times the first two rows of W_O; head 2: (20.25, 2) times the others."""
    result = compute(Problem(**LIST, W_O=W_O, b_O=[5, 5, 5]), ["contributions", "multihead"])
    assert result["contributions"].tolist() == [[[1, 10.5, 0]], [[2, 2, 22.25]]]
    assert (result["contributions"].sum(axis=0) + 5).tolist() == result["multihead"].tolist()


def test_contributions_are_shown_only_on_request():
    assert "contributions" not in compute(Problem(**LIST, W_O=W_O))
    with pytest.raises(AttncliError, match="no W_O"):
        compute(Problem(**LIST), ["contributions"])


def test_given_weights_share_grouped_values():
    """Four heads of weights, two of values."""
    result = compute(Problem(weights=np.ones((4, 1, 1)), V=[[1, 9]], num_kv_heads=2))
    assert result["outputs"].ravel().tolist() == [1, 1, 9, 9]
