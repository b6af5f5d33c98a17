"""Attention by plain loops over heads, with any formula replaced: for tests, and apart from the package.

A chain is a dict of stages; per-head stages are lists of matrices. ``wrong`` maps a stage to a function of what is
known so far (the problem's keys and the stages before), which gives that stage in place of the right formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Wrong = Mapping[str, Callable[[dict[str, Any]], Any]]


def softmax(row: np.ndarray) -> np.ndarray:
    if np.isneginf(row).all():
        return np.zeros_like(row)
    powers = np.exp(row)
    return powers / powers.sum()


def rows(function: Callable[[np.ndarray], np.ndarray], matrix: np.ndarray) -> np.ndarray:
    return np.array([function(row) for row in matrix])


def allowed_by(keys: Mapping[str, Any], n: int, m: int) -> np.ndarray | None:
    mask = keys.get("mask")
    if mask == "causal":
        return np.array([[j <= i for j in range(m)] for i in range(n)])
    if isinstance(mask, dict) and "causal" in mask:
        shift = m - n if mask["causal"] == "bottom-right" else 0
        return np.array([[j <= i + shift for j in range(m)] for i in range(n)])
    if isinstance(mask, dict) and "lengths" in mask:
        return np.array([[j < mask["lengths"] for j in range(m)] for i in range(n)])
    if isinstance(mask, dict) and "keep" in mask:
        return np.array(mask["keep"]) == 1
    return None


def blocks(matrix: Any, count: int) -> list[np.ndarray]:
    matrix = np.asarray(matrix, dtype=float)
    width = matrix.shape[-1] // count
    return [matrix[..., r * width : (r + 1) * width] for r in range(count)]


def attend(keys: Mapping[str, Any], wrong: Wrong | None = None) -> dict[str, Any]:
    """Every stage of a problem (fused weights, num_heads, biases, one mask, softcap), step by step."""
    wrong = wrong or {}
    h = keys.get("num_heads", 1)
    g = keys.get("num_kv_heads", h)
    Z = np.asarray(keys["Z"], dtype=float)
    M = np.asarray(keys.get("memory", Z), dtype=float)
    known: dict[str, Any] = {**keys, "Z": Z, "M": M, "h": h, "g": g}
    for name, heads in (("Q", h), ("K", g), ("V", g)):
        known[f"W{name}"] = blocks(keys[f"W_{name}"], heads)
        bias = keys.get(f"b_{name}")
        known[f"b{name}"] = [0.0] * heads if bias is None else blocks(bias, heads)
    known["d_k"], known["d_v"] = known["WQ"][0].shape[1], known["WV"][0].shape[1]
    known["n"], known["m"] = len(Z), len(M)
    known["allowed"] = allowed_by(keys, len(Z), len(M))
    known["bias"] = (
        np.asarray(keys["mask"]["add"]) if isinstance(keys.get("mask"), dict) and "add" in keys["mask"] else None
    )
    stages: dict[str, Any] = {}
    for name, formula in FORMULAS.items():
        try:
            value = wrong[name](known) if name in wrong else formula(known)
        except (ValueError, KeyError):
            break
        if value is not None:
            known[name] = stages[name] = value
    return stages


def of_group(known: dict[str, Any], r: int) -> int:
    return r * known["g"] // known["h"]


def projection(name: str, source: str) -> Callable[[dict[str, Any]], Any]:
    def formula(k: dict[str, Any]) -> Any:
        return [k[source] @ W + b for W, b in zip(k[f"W{name}"], k[f"b{name}"], strict=True)]

    return formula


def masked(k: dict[str, Any]) -> Any:
    if k["allowed"] is None and k["bias"] is None:
        return None
    base = k.get("capped_scores", k["scaled_scores"])
    if k["bias"] is not None:
        return [S + k["bias"] for S in base]
    return [np.where(k["allowed"], S, -np.inf) for S in base]


def capped(k: dict[str, Any]) -> Any:
    c = k.get("softcap")
    return None if c is None else [c * np.tanh(S / c) for S in k["scaled_scores"]]


def before(k: dict[str, Any]) -> list[np.ndarray]:
    return k.get("masked_scores", k.get("capped_scores", k["scaled_scores"]))


FORMULAS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "Q": projection("Q", "Z"),
    "K": projection("K", "M"),
    "V": projection("V", "M"),
    "scores": lambda k: [k["Q"][r] @ k["K"][of_group(k, r)].T for r in range(k["h"])],
    "scaled_scores": lambda k: [S / np.sqrt(k["d_k"]) for S in k["scores"]],
    "capped_scores": capped,
    "masked_scores": masked,
    "weights": lambda k: [rows(softmax, S) for S in before(k)],
    "outputs": lambda k: [k["weights"][r] @ k["V"][of_group(k, r)] for r in range(k["h"])],
    "concat": lambda k: np.hstack(k["outputs"]) if k["h"] > 1 or k.get("W_O") is not None else None,
    "multihead": lambda k: None if k.get("W_O") is None else k["concat"] @ k["W_O"] + k.get("b_O", 0.0),
}


def sheet(stages: Mapping[str, Any], decimals: int = 8, only: tuple[str, ...] | None = None) -> dict[str, Any]:
    """The stages as a person would write them: text, with so many decimals."""
    return {name: written(np.array(value), decimals) for name, value in stages.items() if only is None or name in only}


def written(array: np.ndarray, decimals: int) -> Any:
    if array.ndim == 0:
        return str(float(array)) if not np.isfinite(array) else f"{float(array):.{decimals}f}"
    return [written(part, decimals) for part in array]
