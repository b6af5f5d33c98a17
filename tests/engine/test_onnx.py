"""Every case of ONNX's Attention operator that is here, through the problem format, and the three gaps in its suite."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from onnx_adapter import output_of, problem_keys
from places import DATA

from attncli import Problem, compute

FOLDER = DATA / "onnx"
CASES = {case["name"]: case for case in json.loads((FOLDER / "manifest.json").read_text("utf-8"))["cases"]}

NOT_EXPRESSIBLE: dict[str, str] = {}
"""Cases that the problem format cannot say, with the reason: none."""


def read(case: dict[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A case's inputs and outputs by their ONNX names."""
    with np.load(FOLDER / case["file"]) as arrays:
        return tuple(
            {name: arrays[prefix + name] for name in case[side]}
            for side, prefix in (("inputs", prefix_of(arrays, "input")), ("outputs", prefix_of(arrays, "output")))
        )


def prefix_of(arrays: Any, side: str) -> str:
    return next((f"{side}{mark}" for mark in "._/" if any(name.startswith(f"{side}{mark}") for name in arrays)), "")


def units_apart(actual: np.ndarray, expected: np.ndarray, mantissa: int) -> float:
    """The largest distance in units in the last place of ``expected``, whose numbers have ``mantissa`` bits."""
    actual, expected = actual.astype(float), expected.astype(float)
    same = actual == expected
    _, exponent = np.frexp(np.where(same, 1.0, expected))
    unit = np.ldexp(1.0, exponent - mantissa)
    with np.errstate(invalid="ignore"):
        return float(np.where(same, 0.0, np.abs(actual - expected) / unit).max())


def agree(actual: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    assert actual.shape == expected.shape
    assert np.array_equal(np.isfinite(actual), np.isfinite(expected))
    if dtype in ("float16", "bfloat16"):
        assert units_apart(actual, expected, {"float16": 11, "bfloat16": 8}[dtype]) <= 2
    else:
        np.testing.assert_allclose(actual, expected, rtol=0, atol={"float32": 1e-6, "float64": 1e-12}[dtype])


@pytest.mark.parametrize("name", [name for name in CASES if name not in NOT_EXPRESSIBLE])
def test_a_node_of_the_onnx_suite(name):
    case = CASES[name]
    inputs, outputs = read(case)
    attributes = case["attributes"]
    result = compute(Problem(**problem_keys(inputs, attributes, case["dtype"], case["opset"])))
    assert outputs
    for output, expected in outputs.items():
        actual = output_of(output, result, inputs, attributes)
        assert actual.dtype == expected.dtype
        agree(actual, expected, case["dtype"])


def test_the_cases_were_found():
    assert len(CASES) > 50
    assert {case["file"] for case in CASES.values()} == {path.name for path in FOLDER.glob("*.npz")}
    assert not NOT_EXPRESSIBLE


# What no case of the suite would notice (worked out by hand)

Q = np.array([[[[1.0, 0.0], [0.0, 2.0]]]])  # (batch 1, head 1, n 2, d 2)
K = np.array([[[[2.0, 0.0], [0.0, 4.0], [1.0, 1.0]]]])
V = np.array([[[[10.0], [20.0], [40.0]]]])
SCORES = np.array([[2.0, 0.0, 1.0], [0.0, 8.0, 2.0]])  # Q Kᵀ; times the scale 0.5: 1 0 0.5, 0 4 1


def node(attributes: dict[str, Any], **inputs: np.ndarray) -> dict[str, np.ndarray]:
    inputs = {"Q": Q, "K": K, "V": V, **inputs}
    result = compute(Problem(**problem_keys(inputs, attributes, "float64")))
    return {name: output_of(name, result, inputs, attributes) for name in ("Y", "qk_matmul_output")}


def test_softcap_with_mode_0_gives_the_scores_before_the_cap():
    capped_and_scaled = [node({"scale": 0.5, "softcap": 2.0, "qk_matmul_output_mode": mode}) for mode in (0, 1)]
    np.testing.assert_array_equal(capped_and_scaled[0]["qk_matmul_output"][0, 0], SCORES / 2)
    # 2 tanh(1/2) = 0.92423431, 2 tanh(0.5/2) = 0.48983732, 2 tanh(4/2) = 1.92805516
    by_hand = [[0.92423431, 0.0, 0.48983732], [0.0, 1.92805516, 0.92423431]]
    np.testing.assert_allclose(capped_and_scaled[1]["qk_matmul_output"][0, 0], by_hand, atol=5e-9)


@pytest.mark.parametrize("mask", [np.array([[True, True], [False, True]]), np.array([[0.0, 0.0], [-np.inf, 0.0]])])
def test_a_short_mask_hides_the_keys_that_it_does_not_reach(mask):
    found = node({"scale": 0.5, "qk_matmul_output_mode": 2}, attn_mask=mask)
    # Key 3 is beyond the mask for both queries, though no length says so. Query 1: scores 1 and 0, so the weights
    # are e/(1+e) = 0.73105858 and 0.26894142, and the output 7.3105858 + 5.3788284; query 2 sees key 2 alone.
    np.testing.assert_array_equal(found["qk_matmul_output"][0, 0], [[1, 0, -np.inf], [-np.inf, 4, -np.inf]])
    np.testing.assert_allclose(found["Y"][0, 0], [[12.6894142], [20.0]], atol=5e-8)


def test_a_short_mask_of_one_column_hides_all_but_the_first_key():
    found = node({"scale": 0.5}, attn_mask=np.array([[True], [True]]))
    np.testing.assert_array_equal(found["Y"][0, 0], [[10.0], [10.0]])


def test_a_rank_3_mask_is_one_matrix_a_head_even_where_it_fits_the_batch():
    # Two batch entries and two heads, all with the same numbers: only the reading of the first axis decides.
    twice = {name: np.tile(array, (2, 2, 1, 1)) for name, array in {"Q": Q, "K": K, "V": V}.items()}
    mask = np.array([[[1, 0, 0], [1, 0, 0]], [[0, 0, 1], [0, 0, 1]]], dtype=bool)
    found = node({"scale": 0.5}, attn_mask=mask, **twice)
    # Head 1 sees key 1 (value 10) in both entries, and head 2 key 3 (value 40).
    np.testing.assert_array_equal(found["Y"][:, :, 0, 0], [[10.0, 40.0], [10.0, 40.0]])


def test_integer_masks_are_added_and_not_read_as_yes_and_no():
    found = node({"scale": 0.5, "qk_matmul_output_mode": 2}, attn_mask=np.array([[1, 0, 1], [0, 1, 1]]))
    np.testing.assert_array_equal(found["qk_matmul_output"][0, 0], [[2, 0, 1.5], [0, 5, 2]])


def test_a_row_of_large_finite_numbers_is_not_an_empty_row():
    # -1e30 absorbs every score: three equal numbers, so the mean of 10, 20 and 40.
    found = node({"scale": 0.5}, attn_mask=np.full((1, 3), -1e30))
    np.testing.assert_allclose(found["Y"][0, 0], np.full((2, 1), 70 / 3), rtol=1e-15)


def test_a_window_without_causal_bounds_both_sides_around_the_queries_position():
    # Two cached keys come first, so query 1 stands at key 3 of 5: one key to the left, none to the right.
    past = {"past_key": np.zeros((1, 1, 2, 2)), "past_value": np.full((1, 1, 2, 1), 70.0)}
    attributes = {"scale": 0.5, "left_window_size": 1, "right_window_size": 0, "qk_matmul_output_mode": 2}
    found = node(attributes, **past)["qk_matmul_output"][0, 0]
    hidden = -np.inf
    np.testing.assert_array_equal(found, [[hidden, 0, 1, hidden, hidden], [hidden, hidden, 0, 4, hidden]])
