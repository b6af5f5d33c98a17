"""PyTorch's attention calls as problems of attncli: arrays and settings in, the keys of a problem file out.

Nothing is computed here. The names of arrays and settings are torch's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]


def multihead_keys(arrays: Arrays, config: Mapping[str, Any], dtype: str = "float64") -> dict[str, Any]:
    """nn.MultiheadAttention: weights stored (out, in), a bool mask blocks, a query without keys becomes NaN."""
    query, key, value = (_batch_first(arrays[name], config) for name in ("query", "key", "value"))
    batched = query.ndim == 3
    keys = {"Z": query, "num_heads": config["num_heads"], "weight_layout": "out_in", "dtype": dtype}
    keys |= {"empty_rows": "nan"} | _projections(arrays) | _extra_rows(arrays, config)
    if not _same(key, query):
        keys["memory"] = key
    if not _same(value, key):
        keys["memory_V"] = value
    masks = []
    if "attn_mask" in arrays:
        mask = arrays["attn_mask"]
        if mask.ndim == 3 and batched:  # (batch·h, n, m), the entry b·h + r being head r of batch entry b
            mask = mask.reshape(-1, config["num_heads"], *mask.shape[1:])
        masks.append(_blocked(mask))
    if "key_padding_mask" in arrays:
        padding = arrays["key_padding_mask"]
        masks.append(_blocked(padding[:, None, None, :] if batched else padding))
    return keys | ({"mask": masks} if masks else {})


def _projections(arrays: Arrays) -> dict[str, np.ndarray]:
    """W_Q, W_K, W_V out of one stack of rows or three matrices; the biases are one stack always."""
    keys = {}
    if "in_proj_weight" in arrays:
        keys |= zip(("W_Q", "W_K", "W_V"), np.split(arrays["in_proj_weight"], 3), strict=True)
    else:
        keys |= {f"W_{role.upper()}": arrays[f"{role}_proj_weight"] for role in "qkv"}
    if "in_proj_bias" in arrays:
        keys |= zip(("b_Q", "b_K", "b_V"), np.split(arrays["in_proj_bias"], 3), strict=True)
    keys["W_O"] = arrays["out_proj.weight"]
    return keys | ({"b_O": arrays["out_proj.bias"]} if "out_proj.bias" in arrays else {})


def _extra_rows(arrays: Arrays, config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """add_bias_kv and add_zero_attn: keys and values after the others that no mask hides, in that order."""
    width = arrays["out_proj.weight"].shape[0]
    rows = [[arrays[f"bias_{role}"].reshape(1, width)] if f"bias_{role}" in arrays else [] for role in "kv"]
    if config.get("add_zero_attn"):
        rows = [[*those, np.zeros((1, width))] for those in rows]
    return {f"extra_{role}": np.concatenate(those) for role, those in zip("KV", rows, strict=True) if those}


def sdpa_keys(arrays: Arrays, config: Mapping[str, Any], dtype: str = "float64") -> dict[str, Any]:
    """scaled_dot_product_attention: a bool mask keeps, causal is top-left, an empty row is zero."""
    keys: dict[str, Any] = {name.upper()[0]: arrays[name] for name in ("query", "key", "value")}
    keys |= {"per_head": arrays["query"].ndim > 2, "dtype": dtype}
    if config.get("scale") is not None:
        keys["scale"] = config["scale"]
    masks: list[dict[str, Any]] = []
    if config.get("is_causal"):
        masks.append({"causal": "top-left"})
    if config.get("causal_lower_right"):
        masks.append({"causal": "bottom-right"})
    if "attn_mask" in arrays:
        mask = arrays["attn_mask"]
        masks.append({"keep" if mask.dtype == bool else "add": mask})
    return keys | ({"mask": masks} if masks else {})


def sublayer(arrays: Arrays, name: str) -> dict[str, np.ndarray]:
    """What one attention sub-layer of a Transformer layer was given and gave, under MultiheadAttention's names."""
    found = {}
    for prefix in (f"{name}.", f"capture.{name}."):
        found |= {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
    return found


def _blocked(mask: np.ndarray) -> dict[str, np.ndarray]:
    return {"block" if mask.dtype == bool else "add": mask}


def _batch_first(x: np.ndarray, config: Mapping[str, Any]) -> np.ndarray:
    return x if x.ndim == 2 or config.get("batch_first") else x.swapaxes(0, 1)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and bool((one == other).all())
