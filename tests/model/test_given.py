"""A problem may start at any stage; what is given beside what it would be computed from is too much."""

from __future__ import annotations

import numpy as np
import pytest

from attncli import AttncliError, Problem, compute

I2 = [[1, 0], [0, 1]]
Z = [[1, 0], [0, 1], [1, 1]]
WHOLE = {
    "Z": Z, "num_heads": 2, "W_Q": [[1, 0, 2, 1], [0, 1, 1, 0]], "W_K": [[0, 1, 1, 1], [1, 0, 0, 2]],
    "W_V": [[1, 0, 0, 1, 2, 1], [0, 1, 2, 1, 1, 0]], "W_O": np.arange(12).reshape(6, 2), "b_O": [1, 2],
    "scale": 0.5, "softcap": 3, "mask": "causal",
}  # fmt: skip
SETTINGS = {
    "scores": ("scale", "softcap", "mask"),
    "scaled_scores": ("softcap", "mask"),
    "capped_scores": ("mask",),
}


def without_heads(array):
    """(h, n, d) with the heads' columns side by side."""
    return np.hstack([*array])


@pytest.mark.parametrize(
    "stage", ["scores", "scaled_scores", "capped_scores", "masked_scores", "weights", "outputs", "concat"]
)
def test_a_problem_may_start_at_any_stage(stage):
    """What comes after is the same as in the whole problem, and what comes before is absent."""
    whole = compute(Problem(**WHOLE))
    keys = {name: WHOLE[name] for name in (*SETTINGS.get(stage, ()), "W_O", "b_O", "num_heads")}
    keys[stage] = without_heads(whole[stage]) if stage == "outputs" else whole[stage]
    if stage not in ("outputs", "concat"):
        keys["V"] = without_heads(whole["V"])
    part = compute(Problem(**keys))
    stages = list(whole)[list(whole).index(stage) :]
    assert [name for name in part if name != "V"] == stages
    for name in stages:
        assert np.array_equal(part[name], whole[name])


def test_queries_keys_and_values():
    whole = compute(Problem(**WHOLE))
    keys = {name: WHOLE[name] for name in ("W_O", "b_O", "num_heads", "scale", "softcap", "mask")}
    part = compute(Problem(**keys, **{name: without_heads(whole[name]) for name in "QKV"}))
    assert np.array_equal(part["multihead"], whole["multihead"])


@pytest.mark.parametrize("given", ["Q", "K", "V"])
def test_one_of_them_alone(given):
    keys = {name: value for name, value in WHOLE.items() if name != f"W_{given}"}
    whole = compute(Problem(**WHOLE))
    part = compute(Problem(**keys, **{given: without_heads(whole[given])}))
    assert np.array_equal(part["multihead"], whole["multihead"])


def test_scores_without_values_end_at_the_weights():
    result = compute(Problem(scores=[[0, 0]], score="dot"))
    assert list(result) == ["scores", "weights"]
    assert result["weights"].tolist() == [[[0.5, 0.5]]]


def test_queries_and_keys_without_values_end_at_the_weights():
    assert list(compute(Problem(Q=I2, K=I2))) == ["Q", "K", "scores", "scaled_scores", "weights"]


def test_weights_and_values():
    result = compute(Problem(weights=[[0.25, 0.75]], V=[[4, 0], [0, 8]]))
    assert result["outputs"].tolist() == [[[1, 6]]]


def test_empty_rows_of_given_scores_are_said():
    result = compute(Problem(masked_scores=[[-np.inf, -np.inf], [0, -np.inf]], V=[[1], [2]]))
    assert result["outputs"].ravel().tolist() == [0, 1]
    assert result.notes == ("query 1 may attend to nothing: its weights and outputs are zeros",)


# Too much

QKV = {"Q": Z, "K": Z, "V": Z}
PROJECTED = {"W_Q": I2, "W_K": I2, "W_V": I2}


@pytest.mark.parametrize(
    ("keys", "what", "hint"),
    [
        (
            {"Z": Z, "W_Q": I2, **QKV},
            "Q, K and V are given, so Z and W_Q have nothing to do",
            "Drop Z and W_Q, or drop Q, K and V, which are then computed.",
        ),
        (
            {"Z": Z, **PROJECTED, "Q": Z},
            "Q is given, so W_Q has nothing to do",
            "Drop W_Q, or drop Q, which is then computed.",
        ),
        ({"Z": Z, **QKV}, "Q, K and V are given, so Z has nothing to do", None),
        ({"Z": Z, **PROJECTED, **QKV}, "Q, K and V are given, so Z, W_Q, W_K and W_V have nothing to do", None),
        ({"Z": Z, "W_Q": I2, "K": Z, "V": Z, "memory": Z}, "K and V are given, so memory has nothing to do", None),
        ({"Q": Z, "K": Z, "scores": I2, "score": "dot"}, "scores is given, so Q and K have nothing to do", None),
        ({"scaled_scores": I2, "scale": 2}, "scaled_scores is given, so scale has nothing to do", None),
        ({"masked_scores": I2, "mask": "causal"}, "masked_scores is given, so mask has nothing to do", None),
        ({"weights": I2, "scores": I2, "V": I2}, "weights is given, so scores has nothing to do", None),
        ({"weights": I2, "softcap": 2, "V": I2}, "weights is given, so softcap has nothing to do", None),
        ({"outputs": I2, "weights": I2}, "outputs is given, so weights has nothing to do", None),
        ({"concat": I2, "V": I2}, "concat is given, so V has nothing to do", None),
        ({"weights": I2, "V": I2, "Z": Z}, "V and weights are given, so Z has nothing to do", None),
    ],
    ids=lambda value: "" if isinstance(value, dict) else None,
)
def test_too_much_says_which_to_drop(keys, what, hint):
    with pytest.raises(AttncliError) as caught:
        Problem(**keys)
    errors = caught.value.errors
    assert [error.what for error in errors] == [what]
    assert hint is None or errors[0].hint == (hint,)
    assert errors[0].key in keys


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({}, "there is nothing to compute"),
        ({"title": "x"}, "there is nothing to compute"),
        ({"Z": Z}, "W_Q, W_K and W_V are missing, so Q, K and V can't be computed"),
        ({"Z": Z, "W_Q": I2, "W_V": I2}, "W_K is missing, so K can't be computed"),
        ({"Q": Z, "V": Z}, "W_K is missing, so K can't be computed"),
        ({"K": Z, "V": Z}, "W_Q is missing, so Q can't be computed"),
        (PROJECTED, "Z is missing, so Q, K and V can't be computed from W_Q, W_K and W_V"),
        ({"memory": Z, **PROJECTED}, "Z is missing, so Q can't be computed from W_Q"),
        ({"Q": Z, "W_K": I2, "W_V": I2}, "memory (or Z) is missing, so K and V can't be computed from W_K and W_V"),
        ({"scores": I2}, "scores are given without Q and K, so √d_k is not known"),
        ({**QKV, "b_O": [1]}, "b_O is added to the product with W_O, and W_O is missing"),
        ({**QKV, "mask_fill": -1}, "mask_fill is put at hidden scores, and there is no mask"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else None,
)
def test_too_little_is_one_error(keys, what):
    with pytest.raises(AttncliError) as caught:
        Problem(**keys)
    assert [error.what for error in caught.value.errors] == [what]
    assert caught.value.errors[0].hint


# Low-rank products arrive as their product


def test_a_low_rank_value_matrix_computes_the_same_as_its_product():
    down, up = np.array([[1], [4], [1]]), np.array([[1, 2, 0, -1]])
    keys = {"Z": [[1, 0, 1], [0, 1, 0]], "W_Q": np.ones((3, 1)), "W_K": np.ones((3, 1))}
    result = compute(Problem(**keys, W_V=down @ up, factors={"W_V": (down.shape, up.shape)}))
    assert result["V"].tolist() == [[[2, 4, 0, -2], [4, 8, 0, -4]]]
