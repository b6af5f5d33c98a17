"""The arithmetic really runs in the dtype that is asked for, and is stable in it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attncli import Problem, compute
from attncli.maths.ops import softmax
from attncli.stages.table import present

LAYER = {
    "Z": [[1, 2], [3, 4], [5, 6]], "num_heads": 2, "W_Q": np.ones((2, 6)), "W_K": np.ones((2, 6)) / 7,
    "W_V": np.ones((2, 10)), "W_O": np.ones((10, 2)), "b_Q": [0.1] * 6, "b_O": [1, 2], "softcap": 3,
    "mask": ["causal", {"add": [[0, -1, 2, 0]]}], "past_K": [[1] * 6], "past_V": [[1] * 10],
    "extra_K": [[0] * 6], "extra_V": [[0] * 10],
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("more", [{}, {"round": 3}, {"mask_fill": -1e4}, {"scale": 0.3}], ids=str)
def test_every_stage_is_in_it(dtype, more):
    problem = Problem(**LAYER, dtype=dtype, **more)
    result = compute(problem, [stage.name for stage in present(problem)])
    assert len(result) == 12
    assert {name: str(array.dtype) for name, array in result.items()} == dict.fromkeys(result, dtype)


GENERAL = {"score": "general", "W_a": [[1, 2]]}
ADDITIVE = {"score": "additive", "W_1": [[1]], "W_2": [[1], [1]], "v": [1], "b": [1]}


@pytest.mark.parametrize("score", [GENERAL, ADDITIVE], ids=["general", "additive"])
def test_score_functions_are_in_it(score):
    result = compute(Problem(Q=[[1]], K=[[1, 2]], V=[[1]], dtype="float16", **score))
    assert {str(array.dtype) for array in result.values()} == {"float16"}


def test_float16_has_its_own_rounding():
    """11 bits: 2049 is no float16 and becomes 2048; a third is 0.333251953125."""
    result = compute(Problem(Q=[[2049]], K=[[1], [1], [1]], V=[[1], [1], [1]], dtype="float16"))
    assert result["Q"].tolist() == [[[2048]]]
    assert result["weights"][0, 0, 0] == 0.333251953125
    assert compute(Problem(Q=[[2049]], K=[[1]], V=[[1]]))["Q"].tolist() == [[[2049]]]


def test_float32_differs_from_float64():
    weights = {dtype: compute(Problem(Q=[[1]], K=[[0], [1]], V=[[0], [1]], dtype=dtype))["weights"][0, 0, 1]
               for dtype in ("float32", "float64")}  # fmt: skip
    assert weights["float64"] == pytest.approx(math.e / (1 + math.e), abs=1e-16)
    assert 0 < abs(float(weights["float32"]) - float(weights["float64"])) < 1e-7


def test_an_overflow_of_float16_is_said():
    """300 · 300 = 90000 is beyond 65504."""
    result = compute(Problem(Q=[[300]], K=[[300], [1]], V=[[1], [2]], dtype="float16"))
    assert result["scores"].tolist() == [[[math.inf, 300]]]
    assert result.notes == ("scores overflows float16, whose largest number is 65504",)
    assert compute(Problem(Q=[[300]], K=[[300], [1]], V=[[1], [2]], dtype="float32")).notes == ()


def test_an_overflow_of_the_other_dtypes_is_said_too():
    """1e200 · 1e200 is beyond float64, 1e20 · 1e20 beyond float32; ∞ − ∞ is NaN."""
    result = compute(Problem(Q=[[1e200, 0]], K=[[1e200, 0], [1, 0]], V=[[1], [2]]))
    assert result.notes == ("scores overflows float64, whose largest number is 1.79769e+308",)
    result = compute(Problem(Q=[[1e20, 1e20]], K=[[1e20, -1e20]], V=[[1]], dtype="float32"))
    assert result.notes == ("scores overflows float32, whose largest number is 3.40282e+38",)
    result = compute(Problem(Q=[[1e200]], K=[[1e100]], V=[[1]], scale=1e100))
    assert result.notes == ("scaled_scores overflows float64, whose largest number is 1.79769e+308",)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_large_scores_of_both_signs_are_stable(dtype):
    scores = [[40000, -40000, 40000], [-40000, -40000, -40000], [-40000, 0, -40000]]
    result = compute(Problem(scores=scores, score="dot", V=[[3], [6], [9]], dtype=dtype))
    third = np.dtype(dtype).type(1) / np.dtype(dtype).type(3)
    assert result["weights"][0].tolist() == [[0.5, 0, 0.5], [third] * 3, [0, 1, 0]]
    assert result["outputs"][0, 0].tolist() == [6]
    assert result.notes == ()


def test_differences_decide_and_not_sizes():
    """40000 and 40000 + ln 3: one quarter and three."""
    weights = compute(Problem(scores=[[40000, 40000 + math.log(3)]], score="dot"))["weights"]
    np.testing.assert_allclose(weights, [[[0.25, 0.75]]], rtol=1e-11)


def test_a_softmax_of_float16_whose_sum_is_beyond_float16():
    """70000 equal keys: the sum of the exponentials is more than 65504, and each weight 1/70000 all the same."""
    weights = softmax(np.full((1, 70000), 7, dtype=np.float16))
    assert weights.dtype == np.float16
    assert set(weights.ravel().tolist()) == {float(np.float16(1 / 70000))}


def test_a_weight_of_float16_is_rounded_once():
    """Scores 0 to 5, each exact: the weights are the nearest float16 to e^s / (1 + e + ... + e⁵)."""
    total = sum(math.exp(s) for s in range(6))
    weights = softmax(np.arange(6, dtype=np.float16)[None])
    assert weights[0].tolist() == [float(np.float16(math.exp(s) / total)) for s in range(6)]


# Whole numbers


@pytest.mark.parametrize(
    "given", [list, np.array, lambda rows: np.array(rows, dtype=np.uint8)], ids=["list", "int64", "uint8"]
)
def test_whole_numbers_are_not_cut_anywhere(given):
    result = compute(Problem(Z=given([[1], [2]]), W_Q=given([[1]]), W_K=given([[1]]), W_V=given([[3]]),
                             W_O=given([[1]]), b_O=given([1])))  # fmt: skip
    assert result["weights"][0, 0, 1] == pytest.approx(math.e / (1 + math.e))
    assert result["outputs"][0, 0, 0] == pytest.approx((3 + 6 * math.e) / (1 + math.e))
    assert {str(array.dtype) for array in result.values()} == {"float64"}


def test_whole_number_masks_and_truth_values():
    result = compute(Problem(Q=np.array([[True]]), K=np.array([[1], [2]], dtype=np.int8), V=[[1], [2]],
                             mask={"add": np.array([[1, 0]], dtype=np.int8)}))  # fmt: skip
    assert result["masked_scores"].tolist() == [[[2, 2]]]
    np.testing.assert_allclose(result["outputs"], [[[1.5]]])


@pytest.mark.parametrize(
    "change", [np.asfortranarray, lambda array: array.astype(">f8"), lambda array: array[::-1][::-1]]
)
def test_how_an_array_lies_in_memory_changes_nothing(change):
    Z, W = np.random.default_rng(3).normal(size=(5, 7)), np.random.default_rng(4).normal(size=(7, 11))
    one = compute(Problem(Z=Z, W_Q=W, W_K=W[:, ::-1], W_V=W))
    other = compute(Problem(Z=change(Z), W_Q=change(W), W_K=change(W[:, ::-1]), W_V=change(W)))
    for stage in one:
        assert np.array_equal(one[stage], other[stage])
        assert other[stage].dtype.isnative
