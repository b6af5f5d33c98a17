"""Score functions, scale and softcap: closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attncli import AttncliError, Problem, compute
from attncli.language.notation import unicode
from attncli.stages.table import STAGES

LN2 = math.log(2)
QKV = {"Q": [[1, 2, 3]], "K": [[1, 0, 1], [2, 2, 0]], "V": [[5], [7]]}  # q·k: 4, 6


def test_scaled_dot_divides_by_the_root_of_the_keys_width():
    result = compute(Problem(**QKV))
    assert result["scores"].tolist() == [[[4, 6]]]
    np.testing.assert_allclose(result["scaled_scores"], [[[4 / math.sqrt(3), 6 / math.sqrt(3)]]], rtol=1e-15)


def test_the_width_is_a_heads_own():
    """Two heads of width 1 side by side: nothing to divide by."""
    result = compute(Problem(Q=[[2, 3]], K=[[5, 7]], V=[[1, 1]], num_heads=2))
    assert result["scaled_scores"].tolist() == [[[10]], [[21]]]


def test_dot_has_no_scaled_scores():
    result = compute(Problem(**QKV, score="dot"))
    assert "scaled_scores" not in result
    np.testing.assert_allclose(result["weights"], [[[1 / (1 + math.exp(2)), 1 / (1 + math.exp(-2))]]], rtol=1e-14)


@pytest.mark.parametrize("score", ["scaled_dot", "dot"])
@pytest.mark.parametrize("scale", [0.5, -1, 0])
def test_a_scale_stands_in_place_of_the_root(score, scale):
    assert compute(Problem(**QKV, score=score, scale=scale))["scaled_scores"].tolist() == [[[4 * scale, 6 * scale]]]


def test_general_joins_different_widths():
    """q W_a kᵀ: (1, 2)·W_a = (1 + 20, 2 + 40, 3 + 60) = (21, 42, 63); times (1, 0, 1) is 84."""
    W_a = [[1, 2, 3], [10, 20, 30]]
    result = compute(Problem(Q=[[1, 2]], K=[[1, 0, 1], [0, 1, 0]], V=[[1], [1]], score="general", W_a=W_a))
    assert result["scores"].tolist() == [[[84, 42]]]
    assert "scaled_scores" not in result


def test_general_takes_its_matrix_from_the_left():
    """(1, 0) W_a (0, 1)ᵀ is the entry in row 1, column 2, and not the one in row 2, column 1."""
    keys = {"Q": [[1, 0]], "K": [[0, 1]], "V": [[1]], "score": "general", "W_a": [[1, 2], [3, 4]]}
    assert compute(Problem(**keys))["scores"].tolist() == [[[2]]]


def test_general_with_the_identity_is_the_dot_product():
    general = compute(Problem(**QKV, score="general", W_a=np.eye(3)))
    assert general["scores"].tolist() == compute(Problem(**QKV, score="dot"))["scores"].tolist()


ADDITIVE = {
    "score": "additive", "Q": [[1], [0]], "K": [[0, 0], [1, 0], [0, 1]], "V": [[1], [2], [3]],
    "W_1": [[LN2, 0]], "W_2": [[0, LN2], [-LN2, 0]], "v": [5, 10],
}  # fmt: skip


def test_additive_with_tanh_of_logarithms():
    """tanh(ln 2) = 3/5 and tanh(2 ln 2) = 15/17. Query 1 has (ln 2, 0), the keys (0, 0), (0, ln 2), (−ln 2, 0)."""
    result = compute(Problem(**ADDITIVE))
    by_hand = [[5 * 3 / 5, 5 * 3 / 5 + 10 * 3 / 5, 0], [0, 10 * 3 / 5, -5 * 3 / 5]]
    np.testing.assert_allclose(result["scores"][0], by_hand, rtol=1e-14, atol=1e-15)


def test_additive_adds_its_bias_inside():
    result = compute(Problem(**ADDITIVE, b=[LN2, LN2]))
    by_hand = [[5 * 15 / 17 + 6, 5 * 15 / 17 + 10 * 15 / 17, 3 + 6], [3 + 6, 3 + 10 * 15 / 17, 0 + 6]]
    np.testing.assert_allclose(result["scores"][0], by_hand, rtol=1e-14)


def test_additive_is_scaled_only_on_request():
    assert "scaled_scores" not in compute(Problem(**ADDITIVE))
    scaled = compute(Problem(**ADDITIVE, scale=2))
    np.testing.assert_allclose(scaled["scaled_scores"], 2 * scaled["scores"], rtol=1e-15)


def test_softcap_squeezes_the_scaled_scores():
    """c tanh(S̃/c) with S̃ = 4/2 and 6/2 and c = 2 / ln 2: tanh(ln 2) = 3/5, tanh(3/2 ln 2) = (8 − 1)/(8 + 1)."""
    cap = 2 / LN2
    result = compute(Problem(**QKV, scale=0.5, softcap=cap))
    np.testing.assert_allclose(result["capped_scores"], [[[cap * 3 / 5, cap * 7 / 9]]], rtol=1e-14)


def test_softcap_comes_before_the_mask():
    """After it, tanh would turn −∞ into −c, and the hidden key would leak in."""
    result = compute(Problem(**QKV, softcap=1, mask=[[1, 0]]))
    assert list(result).index("capped_scores") < list(result).index("masked_scores")
    assert result["weights"].tolist() == [[[1, 0]]]
    assert result["outputs"].tolist() == [[[5]]]


def test_softcap_of_unscaled_scores():
    result = compute(Problem(**QKV, score="dot", softcap=1e9))
    np.testing.assert_allclose(result["capped_scores"], [[[4, 6]]], rtol=1e-15)


@pytest.mark.parametrize(
    ("keys", "stage", "formula"),
    [
        ({}, "scores", "Q Kᵀ"),
        ({}, "scaled_scores", "S / √d_k"),
        ({"scale": 2}, "scaled_scores", "scale · S"),
        ({"score": "dot", "softcap": 3}, "capped_scores", "c tanh(S / c)"),
        ({"softcap": 3}, "capped_scores", "c tanh(S̃ / c)"),
        ({"score": "general", "W_a": np.eye(3)}, "scores", "Q W_a Kᵀ"),
        ({"score": "general", "W_a": np.eye(3)}, "weights", "softmax(S) along each row"),
        ({"mask": [1, 0]}, "masked_scores", "S̃ where allowed, −∞ elsewhere"),
        ({"mask": [1, 0], "mask_fill": -1e9}, "masked_scores", "S̃ where allowed, −1e+09 elsewhere"),
        ({"mask": {"add": [1, 0]}}, "masked_scores", "S̃ + mask"),
        ({"mask": [1, 0]}, "weights", "softmax(masked_scores) along each row"),
        ({}, "V", "given"),
    ],
)
def test_the_formula_follows_the_problem(keys, stage, formula):
    assert unicode(STAGES[stage].formula_for(Problem(**QKV, **keys))) == formula


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"score": "cosine"}, "score is 'cosine', and may be scaled_dot, dot, general, additive"),
        ({"score": "general"}, "score: general needs W_a"),
        ({"score": "additive", "W_1": np.ones((3, 2))}, "score: additive needs W_2 and v"),
        ({"W_a": np.eye(3)}, "W_a belongs to score: general"),
        ({"softcap": 0}, "softcap takes a positive finite number, not 0"),
        ({"scale": math.inf}, "scale takes a finite number, not inf"),
    ],
)
def test_a_score_function_has_its_own_matrices_and_no_others(keys, what):
    with pytest.raises(AttncliError) as caught:
        Problem(**QKV, **keys)
    assert [error.what for error in caught.value.errors] == [what]
