"""The same problem written in other ways, for tests: each takes the keys of a problem and gives other keys.

Written with plain numpy, apart from the package's own splitting and joining.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Keys = dict[str, Any]

PLACED_BY_LAYOUT = (
    *("Z", "memory", "memory_V", "Q", "K", "V", "past_K", "past_V", "extra_K", "extra_V", "outputs", "concat"),
    *("scores", "scaled_scores", "capped_scores", "masked_scores", "weights"),
    *("W_Q", "W_K", "W_V", "W_O", "W_1", "W_2"),
)


def swapped(value: Any) -> np.ndarray:
    """A matrix with its last two axes exchanged, laid out anew in memory as a file would have it."""
    return np.ascontiguousarray(np.atleast_2d(np.asarray(value)).swapaxes(-1, -2))


def in_the_other_layout(keys: Mapping[str, Any]) -> Keys:
    """Rows as columns, or columns as rows: every matrix transposed."""
    other = {name: swapped(value) if name in PLACED_BY_LAYOUT else value for name, value in keys.items()}
    other["layout"] = "rows" if keys.get("layout") == "columns" else "columns"
    if "heads" in keys:
        other["heads"] = [
            {name: swapped(value) if name[0] == "W" else value for name, value in head.items()}
            for head in keys["heads"]
        ]
    if "mask" in keys:
        other["mask"] = _swapped_mask(keys["mask"])
    return other


def _swapped_mask(mask: Any) -> Any:
    if isinstance(mask, Mapping):
        return {
            name: swapped(value) if name in ("keep", "block", "add") and np.ndim(value) > 1 else value
            for name, value in mask.items()
        }
    if isinstance(mask, list) and any(isinstance(one, (str, Mapping)) for one in mask):
        return [_swapped_mask(one) for one in mask]
    return mask if isinstance(mask, str) or np.ndim(mask) < 2 else swapped(mask)


def head_forms(keys: Mapping[str, Any]) -> list[Keys]:
    """The other ways of writing the heads of a problem: a list of heads, fused matrices, a head axis."""
    if "heads" in keys:
        return [_fused(keys)]
    if keys.get("num_heads", 1) == 1:
        return []
    if "W_Q" in keys and "num_kv_heads" not in keys:
        return [_listed(keys)]
    return [_with_head_axis(keys)] if "Q" in keys else []


def _out_in(keys: Mapping[str, Any]) -> bool:
    return keys.get("weight_layout", "out_in" if keys.get("layout") == "columns" else "in_out") == "out_in"


def _axis(name: str, keys: Mapping[str, Any]) -> int:
    """Along which axis of a fused weight the heads lie."""
    if name[0] == "b":
        return 0
    return 0 if (name == "W_O") != _out_in(keys) else 1


def _fused(keys: Mapping[str, Any]) -> Keys:
    heads = keys["heads"]
    fused = {name: value for name, value in keys.items() if name != "heads"} | {"num_heads": len(heads)}
    for name in heads[0]:
        fused[name] = np.concatenate([np.asarray(head[name]) for head in heads], axis=_axis(name, keys))
    return fused


def _listed(keys: Mapping[str, Any]) -> Keys:
    names = [name for name in ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V", "W_O") if name in keys]
    blocks = {name: np.split(np.asarray(keys[name]), keys["num_heads"], axis=_axis(name, keys)) for name in names}
    listed = {name: value for name, value in keys.items() if name not in names and name != "num_heads"}
    return listed | {"heads": [{name: blocks[name][r] for name in names} for r in range(keys["num_heads"])]}


def _with_head_axis(keys: Mapping[str, Any]) -> Keys:
    """Q, K, V with an axis for the heads (rows alone)."""
    split = dict(keys)
    h, g = keys["num_heads"], keys.get("num_kv_heads", keys["num_heads"])
    for name, heads in (("Q", h), ("K", g), ("V", g)):
        split[name] = np.stack(np.split(np.asarray(keys[name]), heads, axis=-1), axis=-3)
    return split | {"per_head": True}
