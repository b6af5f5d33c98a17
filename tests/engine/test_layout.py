"""The column convention: X is d × n, Q = W X, the softmax runs down each column. And weights stored (out, in)."""

from __future__ import annotations

import numpy as np
import pytest
from forms import in_the_other_layout, swapped

from attncli import Problem, compute
from attncli.language.notation import ascii, unicode
from attncli.stages.table import STAGES

RNG = np.random.default_rng(11)
N, M, D, E, H, G, DK, DV, P = 5, 7, 11, 13, 6, 2, 17, 3, 19
LAYER = {
    "Z": RNG.normal(size=(N, D)), "memory": RNG.normal(size=(M, E)), "num_heads": H, "num_kv_heads": G,
    "W_Q": RNG.normal(size=(D, H * DK)), "W_K": RNG.normal(size=(E, G * DK)), "W_V": RNG.normal(size=(E, G * DV)),
    "W_O": RNG.normal(size=(H * DV, D)), "b_Q": RNG.normal(size=H * DK), "b_O": RNG.normal(size=D),
    "past_K": RNG.normal(size=(P, G * DK)), "past_V": RNG.normal(size=(P, G * DV)), "softcap": 20,
    "mask": [{"causal": "bottom-right", "offset": P}, {"keep": RNG.integers(0, 2, (N, P + M))}],
}  # fmt: skip
ADDITIVE = {
    "Q": RNG.normal(size=(N, 2)), "K": RNG.normal(size=(M, 3)), "V": RNG.normal(size=(M, 2)), "score": "additive",
    "W_1": RNG.normal(size=(2, 11)), "W_2": RNG.normal(size=(3, 11)), "v": RNG.normal(size=11), "b": np.ones(11),
}  # fmt: skip
GENERAL = {name: ADDITIVE[name] for name in "QKV"} | {"score": "general", "W_a": RNG.normal(size=(2, 3))}
BATCH = {"Z": RNG.normal(size=(2, N, D)), "W_Q": np.eye(D), "W_K": np.eye(D), "W_V": np.ones((D, 2)), "mask": "causal"}


@pytest.mark.parametrize("keys", [LAYER, ADDITIVE, GENERAL, BATCH], ids=["layer", "additive", "general", "batch"])
def test_columns_are_rows_transposed_to_the_last_bit(keys):
    rows, columns = compute(Problem(**keys)), compute(Problem(**in_the_other_layout(keys)))
    assert list(rows) == list(columns)
    for stage in rows:
        assert rows[stage].shape[-1] != rows[stage].shape[-2] or stage not in ("Q", "outputs")
        assert np.array_equal(columns[stage], rows[stage].swapaxes(-1, -2)), stage
        assert np.array_equal(columns.rows[stage], rows[stage]), stage


def test_columns_by_hand():
    """X = (x₁ x₂) is 2 × 2. W_Q = (1 2) takes x₁ = (1, 3) to 7 and x₂ = (5, 0) to 5; W_V is 3 × 2."""
    result = compute(Problem(
        layout="columns", Z=[[1, 5], [3, 0]], W_Q=[[1, 2]], W_K=[[1, 0]], W_V=[[1, 0], [0, 1], [1, 1]], scale=0,
        b_V=[10, 20, 30],
    ))  # fmt: skip
    assert result["Q"].tolist() == [[[7, 5]]]
    assert result["K"].tolist() == [[[1, 5]]]
    assert result["V"].tolist() == [[[11, 15], [23, 20], [34, 35]]]
    assert result["scores"].tolist() == [[[7, 5], [35, 25]]]  # Kᵀ Q: a column a query
    assert result["outputs"].tolist() == [[[13, 13], [21.5, 21.5], [34.5, 34.5]]]


def test_heads_stack_on_top_of_each_other():
    result = compute(Problem(layout="columns", Z=[[1]], num_heads=2, W_Q=[[1], [2]], W_K=[[1], [2]],
                             W_V=[[1], [2], [3], [4]], W_O=[[1, 0, 0, 0], [0, 0, 1, 0]]))  # fmt: skip
    assert result["V"].tolist() == [[[1], [2]], [[3], [4]]]
    assert result["concat"].tolist() == [[1], [2], [3], [4]]
    assert result["multihead"].tolist() == [[1], [3]]


def test_the_softmax_runs_down_each_column():
    weights = compute(Problem(**in_the_other_layout(LAYER)))["weights"]
    assert weights.shape == (H, P + M, N)
    np.testing.assert_allclose(weights.sum(axis=-2), (weights > 0).any(axis=-2), rtol=1e-12)


# Weights stored as (out, in)


def test_out_in_alone_transposes_the_weights_alone():
    keys = {name: value for name, value in LAYER.items() if name[:2] != "W_"}
    stored = {name: swapped(value) for name, value in LAYER.items() if name[:2] == "W_"}
    one, other = compute(Problem(**LAYER)), compute(Problem(**keys, **stored, weight_layout="out_in"))
    for stage in one:
        assert np.array_equal(one[stage], other[stage])


def test_columns_may_keep_weights_as_in_out():
    keys = in_the_other_layout(LAYER) | {name: value for name, value in LAYER.items() if name[:2] == "W_"}
    one, other = compute(Problem(**LAYER)), compute(Problem(**keys, weight_layout="in_out"))
    for stage in one:
        assert np.array_equal(one[stage], other[stage].swapaxes(-1, -2))


def test_listed_heads_in_out_in():
    heads = [{"W_Q": [[1, 2]], "W_K": [[1, 0]], "W_V": [[1, 0], [0, 2], [3, 0]]}] * 2
    result = compute(Problem(Z=[[1, 10]], heads=heads, weight_layout="out_in"))
    assert result["Q"].tolist() == [[[21]], [[21]]]
    assert result["concat"].tolist() == [[1, 20, 3, 1, 20, 3]]


# Formulas


def formulas(keys, write=unicode):
    problem = Problem(**keys)
    return {name: write(STAGES[name].formula_for(problem)) for name in compute(problem)}


SELF = {"Z": np.ones((2, 4)), "W_Q": np.ones((4, 6)), "W_K": np.ones((4, 6)), "W_V": np.ones((4, 10))}


def test_formulas_in_rows():
    assert formulas(SELF) == {
        "Q": "Z W^Q", "K": "Z W^K", "V": "Z W^V", "scores": "Q Kᵀ", "scaled_scores": "S / √d_k",
        "weights": "softmax(S̃) along each row", "outputs": "A V",
    }  # fmt: skip


def test_formulas_in_columns():
    keys = in_the_other_layout(SELF | {"W_O": np.ones((10, 4)), "b_Q": np.ones(6), "num_heads": 2})
    assert formulas(keys) == {
        "Q": "W_r^Q X + b_r^Q", "K": "W_r^K X", "V": "W_r^V X", "scores": "K⁽ʳ⁾ᵀ Q⁽ʳ⁾",
        "scaled_scores": "S⁽ʳ⁾ / √d_k", "weights": "softmax(S̃⁽ʳ⁾) down each column", "outputs": "V⁽ʳ⁾ A⁽ʳ⁾",
        "concat": "Concat(O⁽¹⁾..O⁽ʰ⁾) on top of each other", "multihead": "W^O Concat",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "stage", "rows", "columns"),
    [
        (ADDITIVE, "scores", "v^T tanh(q_i W_1 + k_j W_2 + b)", "v^T tanh(W_1 q_i + W_2 k_j + b)"),
        (GENERAL, "scores", "Q W_a K^T", "K^T W_a^T Q"),
        (LAYER, "K", "[past_K; M W_s^K]", "[past_K, W_s^K M]"),
        (LAYER, "outputs", "A^(r) V^(s)", "V^(s) A^(r)"),
        (LAYER, "multihead", "Concat W^O + b^O", "W^O Concat + b^O"),
    ],
)
def test_formulas_of_the_variants(keys, stage, rows, columns):
    assert formulas(keys, ascii)[stage] == rows
    assert formulas(in_the_other_layout(keys), ascii)[stage] == columns
