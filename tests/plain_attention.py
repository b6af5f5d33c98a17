"""Attention of a plain Transformer, head by head, and the linear maps and norms around it. Apart from the package."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from plain_parts import (
    Keys,
    activation,
    added,
    allowed,
    bucket,
    known,
    normed,
    number,
    rope_thetas,
    rows,
    slope,
    softmax,
    turned,
)

Stages = dict[str, np.ndarray]

NORMS = [f"{part}_{k}{side}" for part in ("gamma", "beta") for k in "123" for side in ("", "_out")]
ATTENTION = [
    "W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O", "gamma_Q", "gamma_K", "beta_Q", "beta_K", "sinks",
    "past_K", "past_V",
]  # fmt: skip
FFN = ["W_F1", "b_F1", "W_F2", "b_F2", "W_G", "b_G"]
SETTINGS = [
    "num_heads", "num_kv_heads", "mask", "mask_fill", "softcap", "scale", "residual", "norm", "norm_place", "eps",
    "qk_eps", "qk_norm", "qk_norm_over", "clip", "gamma_offset", "parallel", "activation", "positions", "position_ids",
    "weight_layout", "layout", "dtype", "logit_scale", "logit_softcap", "temperature", "embed_scale",
]  # fmt: skip
OF_LAYER = {*SETTINGS, *ATTENTION, *FFN, *NORMS, "cross", "prefix"}


class Weights:
    """The keys of a stack, what has been made of them so far, and linear maps and norms with them."""

    def __init__(self, keys: Keys, memory: np.ndarray | None) -> None:
        self.keys = dict(keys)
        self.dtype = np.dtype(keys.get("dtype", "float64"))
        self.columns = keys.get("layout") == "columns"
        self.memory = self.matrix("memory") if "memory" in keys else memory
        self.made: Stages = {}
        self.prefix = ""

    def put(self, name: str, value: Any) -> np.ndarray:
        array = np.asarray(value)
        whole = array.dtype.kind in "iu"
        self.made[self.prefix + name] = array if whole else array.astype(self.dtype)
        return self.made[self.prefix + name]

    def array(self, keys: Keys, name: str) -> Any:
        """A weight or vector as (in, out), or None."""
        if keys.get(name) is None:
            return None
        array = np.array(keys[name], self.dtype)
        out_in = self.keys.get("weight_layout", "out_in" if self.columns else "in_out") == "out_in"
        turn = (name == "W_E" and self.columns) or (name.startswith("W_") and name not in ("W_E", "W_S") and out_in)
        return array.T if turn else array

    def matrix(self, name: str) -> np.ndarray:
        array = np.array(self.keys[name], self.dtype)
        return array.T if self.columns else array

    def norm(self, name: str, keys: Keys, X: np.ndarray, gamma: str, beta: str) -> np.ndarray:
        kind = norm_kind(keys, gamma)
        parts = [normed(kind, row, usual_eps(keys, kind)) for row in X]
        for part in parts[0]:
            self.put(f"{name}_{part}", [row[part] for row in parts])
        return self.put(name, self.affine([row["normalized"] for row in parts], keys, gamma, beta))

    def affine(self, rows: Any, keys: Keys, gamma: str, beta: str) -> np.ndarray:
        made = np.array(rows, self.dtype)
        if keys.get(gamma) is not None:
            made = made * (np.array(keys[gamma], self.dtype) + self.dtype.type(keys.get("gamma_offset", 0)))
        return made if keys.get(beta) is None else made + np.array(keys[beta], self.dtype)

    def linear(self, keys: Keys, X: np.ndarray, W: str, b: str) -> np.ndarray:
        bias = self.array(keys, b)
        return X @ self.array(keys, W) + (self.dtype.type(0) if bias is None else bias)

    def activated(self, keys: Keys, X: np.ndarray) -> np.ndarray:
        name = keys.get("activation", "relu")
        return rows(lambda row: [activation(name, float(x)) for x in row], X).astype(self.dtype)


class Attention(Weights):
    """Self-attention and cross-attention."""

    def attention(
        self, name: str, keys: Keys, X: np.ndarray, memory: np.ndarray | None, cache: dict[str, Any]
    ) -> np.ndarray:
        known(keys, OF_LAYER)
        h = int(keys.get("num_heads", 1))
        g = int(keys.get("num_kv_heads", h))
        if memory is None:
            memory = X if self.memory is None or "cross" in keys or "layers" in self.keys else self.memory
        past = self.past(keys, cache, g)
        Q = self.projected(name, keys, "Q", X, h)
        K = self.projected(name, keys, "K", memory, g)
        V = self.projected(name, keys, "V", memory, g)
        if keys.get("gamma_Q") is not None or keys.get("gamma_K") is not None or "qk_norm" in keys:
            Q, K = (self.normed_heads(name, keys, role, of) for role, of in (("Q", Q), ("K", K)))
        count = len(past["K"][0]) if past else 0
        if positions_of(keys)[0] == "rope":
            Q, K = self.rotated(name, keys, Q, K, count)
        if past:
            K, V = (np.concatenate([past[role], now], axis=1) for role, now in (("K", K), ("V", V)))
        cache |= {"K": K, "V": V}
        weights = self.weights(name, keys, Q, K, count)
        outputs = self.put(f"{name}outputs", [weights[r] @ V[r * g // h] for r in range(h)])
        C = self.put(f"{name}concat", np.hstack(list(outputs)))
        return C if "W_O" not in keys else self.put(f"{name}multihead", self.linear(keys, C, "W_O", "b_O"))

    def past(self, keys: Keys, cache: dict[str, Any], g: int) -> dict[str, np.ndarray]:
        if "K" in cache:
            return {role: cache[role] for role in "KV"}
        return {role: heads(self.array(keys, f"past_{role}"), g) for role in "KV"} if "past_K" in keys else {}

    def projected(self, name: str, keys: Keys, role: str, X: np.ndarray, count: int) -> np.ndarray:
        fused = self.linear(keys, X, f"W_{role}", f"b_{role}")
        if "clip" in keys:
            fused = np.clip(fused, -self.dtype.type(keys["clip"]), self.dtype.type(keys["clip"]))
        return self.put(name + role, heads(fused, count))

    def normed_heads(self, name: str, keys: Keys, role: str, x: np.ndarray) -> np.ndarray:
        """Each head's rows, or the heads' rows side by side where γ (or qk_norm_over) says so."""
        kind = keys.get("qk_norm", "rms" if norm_kind(keys) == "none" else norm_kind(keys))
        eps = number(keys.get("qk_eps", usual_eps(keys, kind)))
        gamma, beta = keys.get(f"gamma_{role}"), keys.get(f"beta_{role}")
        count, _, d_k = x.shape
        joined = keys.get("qk_norm_over") == "row" or (np.ndim(gamma) == 1 and np.shape(gamma) != (d_k,))
        if joined:
            x = np.hstack(list(x))[None]
        made = []
        for r, head in enumerate(x):
            rows = [normed(kind, row, eps)["normalized"] for row in head]
            own = {"gamma": gamma[r] if np.ndim(gamma) == 2 else gamma, "beta": beta[r] if np.ndim(beta) == 2 else beta}
            made.append(self.affine(rows, {**own, "gamma_offset": keys.get("gamma_offset", 0)}, "gamma", "beta"))
        return self.put(f"{name}normed_{role}", heads(made[0], count) if joined else made)

    def rotated(self, name: str, keys: Keys, Q: np.ndarray, K: np.ndarray, past: int) -> Iterator[np.ndarray]:
        spec = positions_of(keys)[1]
        at = self.places(past, Q.shape[1])
        thetas, factor = rope_thetas(spec, Q.shape[2], max(at) + 1)
        angles = [[t * theta for theta in thetas] for t in at]
        self.put(f"{name}angles", angles)
        pairs = spec.get("pairs", "halves")
        for role, x in (("Q", Q), ("K", K)):
            made = [[turned(row, own, factor, pairs) for row, own in zip(head, angles, strict=True)] for head in x]
            yield self.put(f"{name}rotated_{role}", np.array(made))

    def weights(self, name: str, keys: Keys, Q: np.ndarray, K: np.ndarray, past: int) -> np.ndarray:
        h, n, d_k = Q.shape
        m = K.shape[1]
        S = self.put(f"{name}scores", [Q[r] @ K[r * len(K) // h].T for r in range(h)])
        scale = number(keys["scale"]) if keys.get("scale") is not None else 1 / math.sqrt(d_k)
        S = self.put(f"{name}scaled_scores", S * self.dtype.type(scale))
        if keys.get("softcap"):
            c = number(keys["softcap"])
            S = self.put(f"{name}capped_scores", c * np.tanh(S / self.dtype.type(c)))
        bias = self.bias(keys, h, n, m, past)
        if bias is not None:
            S = self.put(f"{name}biased_scores", S + self.put(f"{name}position_bias", bias))
        mask = keys.get("mask")
        if mask not in (None, "none", []):
            fill = number(keys.get("mask_fill", -math.inf))
            masked = np.array(S)
            for r, i, j in np.ndindex(h, n, m):
                seen = allowed(mask, i, j, r, past, n, m)
                masked[r, i, j] = S[r, i, j] + self.dtype.type(added(mask, r, i, j)) if seen else fill
            S = self.put(f"{name}masked_scores", masked)
        sinks = keys.get("sinks")
        return self.put(
            f"{name}weights",
            [[softmax(row, None if sinks is None else sinks[r]) for row in S[r]] for r in range(h)],
        )

    def bias(self, keys: Keys, h: int, n: int, m: int, past: int) -> Any:
        kind, spec = positions_of(keys)
        if kind == "alibi":
            slopes = spec.get("slopes", [slope(r, h) for r in range(1, h + 1)])
            return [[[-slopes[r] * abs(i + past - j) for j in range(m)] for i in range(n)] for r in range(h)]
        if kind == "t5":
            table = np.array(spec["table"], self.dtype)
            return [[[table[bucket(j - i - past, spec), r] for j in range(m)] for i in range(n)] for r in range(h)]
        return spec["bias"] if kind == "bias" else None


def heads(x: np.ndarray, count: int) -> np.ndarray:
    """Column blocks, one a head."""
    width = x.shape[-1] // count
    return np.array([x[:, r * width : (r + 1) * width] for r in range(count)])


def positions_of(keys: Keys) -> tuple[str, Keys]:
    """The kind of positions and its settings: {table: W_P} and {bias: M} hold theirs beside the kind."""
    positions = keys.get("positions")
    if positions is None or isinstance(positions, str):
        return positions or "", {}
    kind = next(iter(positions))
    return kind, positions if kind in ("table", "bias") else positions[kind] or {}


def norm_kind(keys: Keys, gamma: str = "") -> str:
    """The norm that is meant: LayerNorm where only a γ is given."""
    named = [f"gamma_{k}{side}" for k in "123" for side in ("", "_out")] + [gamma]
    return str(keys.get("norm", "layer" if any(name in keys for name in named) else "none"))


def usual_eps(keys: Keys, kind: str) -> float:
    return number(keys.get("eps", 1e-6 if kind == "rms" else 1e-5))
