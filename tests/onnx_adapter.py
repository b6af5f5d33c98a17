"""ONNX Attention nodes as problems of attncli: inputs and attributes in, the keys of a problem file out.

Nothing is computed here. A node's inputs are named as the operator names them, and an absent attribute has the
operator's default. What a node gives back is a stage of the problem: `stage_of` says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attncli import Result

FLOATS = {"float32": "float32", "float16": "float16", "float64": "float64", "bfloat16": "float32"}
"""What a node of each type runs in here; bfloat16 is stored as float32."""


def problem_keys(
    inputs: Mapping[str, np.ndarray], attributes: Mapping[str, Any], dtype: str = "float32", opset: int = 24
) -> dict[str, Any]:
    """The keys of the problem that says the same as an Attention node (opsets 23 to 25)."""
    fused = inputs["Q"].ndim == 3  # heads as column blocks: (batch, n, h·d); else (batch, h, n, d)
    keys: dict[str, Any] = {name: inputs[name] for name in "QKV"}
    keys["dtype"] = FLOATS[dtype]
    if fused:
        keys |= {"num_heads": attributes["q_num_heads"], "num_kv_heads": attributes["kv_num_heads"]}
    else:
        keys["per_head"] = True
    for part, name in (("past_K", "past_key"), ("past_V", "past_value")):
        if name in inputs:
            keys[part] = _columns_of_heads(inputs[name]) if fused else inputs[name]
    if attributes.get("scale") is not None:
        keys["scale"] = attributes["scale"]
    if attributes.get("softcap", 0) > 0:
        keys["softcap"] = attributes["softcap"]
    masks = [*_matrix(inputs, opset), *_padding(inputs), *_positional(inputs, attributes)]
    return keys | ({"mask": masks} if masks else {})


def _matrix(inputs: Mapping[str, np.ndarray], opset: int) -> list[dict[str, Any]]:
    """attn_mask: bool keeps, numbers are added (integers too); keys that it doesn't reach are hidden.

    Before opset 24 a mask reaches all keys; a last axis of 1 stands for all of them.
    """
    if "attn_mask" not in inputs:
        return []
    mask = inputs["attn_mask"]
    if opset < 24 and mask.shape[-1] == 1:
        keys = sum(inputs[name].shape[-2] for name in ("past_key", "K") if name in inputs)
        mask = np.repeat(mask, keys, axis=-1)
    return [{"keep" if mask.dtype == bool else "add": mask, "beyond": "hide"}]


def _padding(inputs: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    return [{"lengths": inputs["nonpad_kv_seqlen"].tolist()}] if "nonpad_kv_seqlen" in inputs else []


def _positional(inputs: Mapping[str, np.ndarray], attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Causal and window: where the first query stands is 0, the cache's length, or nonpad - n."""
    offset: Any = inputs["past_key"].shape[-2] if "past_key" in inputs else 0
    if "nonpad_kv_seqlen" in inputs:
        offset = (inputs["nonpad_kv_seqlen"] - inputs["Q"].shape[-2]).tolist()
    masks: list[dict[str, Any]] = []
    if attributes.get("is_causal", 0):
        masks.append({"causal": "top-left", "offset": offset})
    sides = [attributes.get(f"{side}_window_size", -1) for side in ("left", "right")]
    if sides != [-1, -1]:
        masks.append({"window": sides, "offset": offset})
    return masks


def _columns_of_heads(x: np.ndarray) -> np.ndarray:
    """(batch, g, p, d) as (batch, p, g·d): a cache has a head axis also where Q, K, V have none."""
    batch, heads, rows, width = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, rows, heads * width)


def stage_of(output: str, result: Result, attributes: Mapping[str, Any]) -> str:
    """The stage that a node's output is."""
    if output == "qk_matmul_output":
        mode = attributes.get("qk_matmul_output_mode", 0)
        options = (("scaled_scores",), ("capped_scores", "scaled_scores"))
        options += (("masked_scores", "capped_scores", "scaled_scores"), ("weights",))
        return next(name for name in options[mode] if name in result)
    return {"present_key": "K", "present_value": "V", "Y": "outputs"}[output]


def output_of(name: str, result: Result, inputs: Mapping[str, np.ndarray], attributes: Mapping[str, Any]) -> np.ndarray:
    """A node's output by its ONNX name, with its ONNX axes."""
    if name == "Y" and inputs["Q"].ndim == 3:
        return result["concat"] if "concat" in result else result["outputs"][..., 0, :, :]
    return result[stage_of(name, result, attributes)]
