"""PyTorch's own results: MultiheadAttention, scaled_dot_product_attention, and the attention inside its layers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from places import DATA
from torch_adapter import multihead_keys, sdpa_keys, sublayer

from attncli import Problem, compute

FOLDER = DATA / "torch"
CASES = {case["name"]: case for case in json.loads((FOLDER / "manifest.json").read_text("utf-8"))["cases"]}
TOLERANCE = {"float64": 1e-12, "float32": 1e-6}


def read(case):
    with np.load(FOLDER / case["file"]) as arrays:
        return {name: arrays[name] for name in arrays}


def kind(name):
    return [case["name"] for case in CASES.values() if case["kind"] == name]


def agree(actual, expected, dtype):
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE[dtype], strict=True)


def agree_multihead(arrays, config, dtype):
    result = compute(Problem(**multihead_keys(arrays, config, dtype)))
    output = arrays["expected_output"]
    if output.ndim == 3 and not config.get("batch_first"):
        output = output.swapaxes(0, 1)
    agree(result["multihead"], output, dtype)
    agree(result["weights"], arrays["expected_weights"], dtype)


@pytest.mark.parametrize("name", kind("MultiheadAttention"))
def test_multihead_attention(name):
    case = CASES[name]
    agree_multihead(read(case), case["config"], case["dtype"])


@pytest.mark.parametrize("name", kind("scaled_dot_product_attention"))
def test_scaled_dot_product_attention(name):
    case = CASES[name]
    arrays = read(case)
    result = compute(Problem(**sdpa_keys(arrays, case["config"], case["dtype"])))
    agree(result["outputs"], arrays["expected_output"], case["dtype"])
    agree(result["weights"], arrays["expected_weights"], case["dtype"])


@pytest.mark.parametrize("name", [*kind("TransformerEncoderLayer"), *kind("TransformerDecoderLayer")])
def test_the_attention_inside_a_transformer_layer(name):
    case = CASES[name]
    arrays = read(case)
    config = {**case["config"], "num_heads": case["config"]["nhead"]}
    assert case["config"]["attention"]
    for part in case["config"]["attention"]:
        agree_multihead(sublayer(arrays, part), config, case["dtype"])


def test_the_cases_were_found():
    assert len(CASES) == 25
    assert {case["file"] for case in CASES.values()} == {path.name for path in FOLDER.glob("*.npz")}
    tested = sum(len(kind(name)) for name in ("MultiheadAttention", "scaled_dot_product_attention"))
    assert tested + len(kind("TransformerEncoderLayer")) + len(kind("TransformerDecoderLayer")) == len(CASES)


def test_keys_of_bias_k_and_bias_v_come_last_and_no_mask_hides_them():
    """add_bias_kv and add_zero_attn, by hand: one real key, which is blocked, then bias_k, then the zero key."""
    one, width = np.ones((1, 1)), np.eye(1)
    arrays = {
        "query": one, "key": one, "value": one, "in_proj_weight": np.ones((3, 1)), "out_proj.weight": width,
        "bias_k": np.full((1, 1, 1), np.log(3.0)), "bias_v": np.full((1, 1, 1), 8.0), "attn_mask": np.array([[True]]),
    }  # fmt: skip
    config = {"num_heads": 1, "add_bias_kv": True, "add_zero_attn": True}
    result = compute(Problem(**multihead_keys(arrays, config)))
    # Scores: blocked, 1 · ln 3, 0. Weights: 0, 3/4, 1/4. Output: 3/4 · 8 + 1/4 · 0.
    np.testing.assert_allclose(result["weights"], [[[0, 0.75, 0.25]]], rtol=1e-15)
    np.testing.assert_allclose(result["multihead"], [[6.0]], rtol=1e-15)
