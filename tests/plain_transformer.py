"""A Transformer by plain loops over rows, heads and pairs: for tests, and apart from the package.

`computed` takes the keys of a problem (flat, with ``layers``, or with ``encoder`` and ``decoder``) and gives every
stage by its address, in the row convention with a head axis (or transposed, where the layout is columns). It is slow
and short; what it doesn't know it refuses with a KeyError, so that no key is passed over in silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from plain_attention import NORMS, OF_LAYER, SETTINGS, Attention, Stages, norm_kind, positions_of
from plain_parts import Keys, known, number, sinusoid, softmax

OF_STACK = {
    *OF_LAYER, "Z", "memory", "ids", "tokens", "vocab", "unknown", "W_E", "W_S", "segments", "gamma_E", "beta_E",
    "layers", "gamma_F", "beta_F", "W_T", "b_T", "gamma_T", "beta_T", "W_vocab", "b_vocab", "tied", "targets",
    "reduction", "label_smoothing", "log_base", "generate", "ffn_hidden", "logits", "encoder", "decoder", "top", "keep",
    "title", "source", "note", "expect",
}  # fmt: skip


def computed(problem: Keys, folder: Path | str = ".") -> Stages:
    """Every stage of a problem, {address: array}."""
    known(problem, OF_STACK)
    problem = loaded(problem, Path(folder))
    columns = problem.get("layout") == "columns"
    if "decoder" not in problem:
        return laid_out(of_batch(problem), columns)
    shared = {key: problem[key] for key in (*SETTINGS, "W_E", "vocab") if key in problem}
    made: Stages = {}
    encoder = of_batch(shared | problem["encoder"])
    made |= {f"encoder.{address}": array for address, array in encoder.items()}
    top = {"tied": problem["tied"]} if "tied" in problem else {}
    decoder = of_batch(shared | top | problem["decoder"], memory=last_output(encoder))
    made |= {f"decoder.{address}": array for address, array in decoder.items()}
    return laid_out(made, columns)


def last_output(stages: Stages) -> np.ndarray:
    """What a decoder reads of an encoder: its final norm, else what its last layer gives."""
    if "final_norm" in stages:
        return stages["final_norm"]
    return [array for address, array in stages.items() if address.endswith("layer_output")][-1]


def laid_out(stages: Stages, columns: bool) -> Stages:
    """With the layout columns, every matrix transposed; what has one number a token is no matrix."""
    flat = ("next_tokens", "token_losses", "loss", "perplexity", "generated")
    return {
        address: array.swapaxes(-1, -2) if columns and array.ndim > 1 and not address.endswith(flat) else array
        for address, array in stages.items()
    }


# Numbers, files, batches


def loaded(keys: Any, folder: Path, name: str = "") -> Any:
    """The same with layers written out and files read; a name of an array that isn't given is that of its key."""
    if isinstance(keys, Mapping):
        keys = {key: written_out(value) if key == "layers" else value for key, value in keys.items()}
        return {key: loaded(value, folder, key) for key, value in keys.items()}
    if isinstance(keys, list) and name == "layers":
        return [loaded(layer, folder) for layer in keys]
    if isinstance(keys, str):
        path, _, array = keys.partition(":")
        if path.endswith(".npy"):
            return np.load(folder / path)
        if path.endswith(".npz"):
            with np.load(folder / path) as arrays:
                return arrays[array or name]
    return keys


def written_out(layers: Any) -> list[dict[str, Any]]:
    """The layers one by one, {layer} and {layer0} in texts replaced by their numbers."""
    if isinstance(layers, Mapping):
        own = {str(key): value for key, value in layers.items()}
        layers = [own.get("each", {}) | own.get(str(i), {}) for i in range(1, int(layers["count"]) + 1)]

    def numbered(value: Any, i: int) -> Any:
        if isinstance(value, Mapping):
            return {key: numbered(inner, i) for key, inner in value.items()}
        return value.replace("{layer}", str(i)).replace("{layer0}", str(i - 1)) if isinstance(value, str) else value

    return [numbered(layer, i) for i, layer in enumerate(layers, 1)]


def of_batch(keys: Keys, memory: np.ndarray | None = None) -> Stages:
    """Each batch entry alone, and their stages stacked. Only the loss is of all of them together."""
    inputs = {"ids": 1, "Z": 2, "logits": 2, "ffn_hidden": 2}
    shape = next((np.shape(keys[key])[:-axes] for key, axes in inputs.items() if key in keys), ())
    if not shape:
        return Stack(keys, memory).stages()
    (entries,) = shape
    single = [
        Stack(entry_of(keys, b), memory if memory is None or memory.ndim < 3 else memory[b]).stages()
        for b in range(entries)
    ]
    stacked = {address: np.stack([one[address] for one in single]) for address in single[0]}
    if "loss" in stacked:
        stacked |= total(stacked["token_losses"], keys)
    return stacked


def entry_of(keys: Keys, b: int) -> dict[str, Any]:
    """The keys of one batch entry: what has a batch axis is that entry's part."""
    axes = {"ids": 1, "tokens": 1, "segments": 1, "position_ids": 1, "targets": 1} | dict.fromkeys(
        ("Z", "memory", "logits", "ffn_hidden"), 2
    )
    entry = {key: value[b] if key in axes and np.ndim(value) > axes[key] else value for key, value in keys.items()}
    return entry | {"mask": mask_of(keys["mask"], b)} if "mask" in keys else entry


def mask_of(mask: Any, b: int) -> Any:
    if isinstance(mask, list):
        return [mask_of(one, b) for one in mask]
    if not isinstance(mask, Mapping):
        return mask
    [(kind, value)] = mask.items()
    batched = np.ndim(value) == (1 if kind == "lengths" else 4)
    return {kind: value[b]} if batched and kind != "window" else mask


def total(losses: np.ndarray, keys: Keys) -> Stages:
    """The loss and the perplexity of all token losses that are numbers."""
    counted = [float(x) for x in losses.ravel() if not math.isnan(x)]
    mean, base = math.fsum(counted) / len(counted), keys.get("log_base", math.e)
    reduction = keys.get("reduction", "mean")
    if reduction == "none":
        return {}
    loss = mean if reduction == "mean" else math.fsum(counted)
    with np.errstate(over="ignore"):
        return {"loss": np.array(loss), "perplexity": np.float64(base) ** np.array(mean)}


# The stack


class Stack(Attention):
    """One stack of blocks (or one block, flat) for one batch entry."""

    def stages(self) -> Stages:
        keys = self.keys
        if "logits" in keys:
            self.from_logits(self.matrix("logits"))
        elif "ffn_hidden" in keys:
            self.after_hidden(keys, self.matrix("ffn_hidden"))
        elif "generate" in keys:
            self.generated(int(keys["generate"]))
        else:
            self.through(self.token_ids(), 0, [{} for _ in self.layers()])
        return self.made

    def layers(self) -> list[tuple[str, dict[str, Any]]]:
        top = {key: self.keys[key] for key in SETTINGS if key in self.keys}
        if "layers" in self.keys:
            return [(f"layers.{i}.", top | own) for i, own in enumerate(self.keys["layers"], 1)]
        own = {key: value for key, value in self.keys.items() if key in OF_LAYER}
        has_norm = any(key.startswith("gamma_") for key in own if key in NORMS) or own.get("norm", "none") != "none"
        own.setdefault("residual", has_norm or ("W_Q" in own and "W_F1" in own))
        parts = ("W_Q", "W_F1", "gamma_1")
        return [("", own)] if any(part in own for part in parts) or has_norm else []

    def through(self, ids: list[int] | None, start: int, caches: list[dict[str, Any]]) -> None:
        """Once from the inputs to the loss."""
        X = self.embedded(ids, start) if ids is not None else self.positioned(self.matrix("Z"), start)
        for (name, layer), cache in zip(self.layers(), caches, strict=True):
            X = self.layer(name, layer, X, cache)
            self.put(f"{name}layer_output", X)
        if "gamma_F" in self.keys:
            X = self.norm("final_norm", self.keys, X, "gamma_F", "beta_F")
        if "W_T" in self.keys:
            X = self.put("transformed", self.linear(self.keys, X, "W_T", "b_T"))
            X = self.put("transform_activated", self.activated(self.keys, X))
            X = self.norm("transform_norm", self.keys, X, "gamma_T", "beta_T")
        W = self.array(self.keys, "W_E").T if self.keys.get("tied") else self.array(self.keys, "W_vocab")
        if W is not None:
            b = self.array(self.keys, "b_vocab")
            L = X @ W + (0 if b is None else b)
            self.from_logits(self.put("logits", L * self.dtype.type(number(self.keys.get("logit_scale", 1)))), ids)

    # Embedding

    def token_ids(self) -> list[int] | None:
        if "ids" in self.keys:
            return [int(i) for i in self.keys["ids"]]
        if "Z" in self.keys or "W_E" not in self.keys:
            return None
        return [self.word(token) for token in self.keys["tokens"]]

    def word(self, token: str) -> int:
        vocab = self.keys["vocab"]
        return vocab.index(token if token in vocab else self.keys["unknown"])

    def embedded(self, ids: Sequence[int], start: int) -> np.ndarray:
        W_E, W_S = self.array(self.keys, "W_E"), self.array(self.keys, "W_S")
        scale = self.keys.get("embed_scale", 1)
        factor = math.sqrt(W_E.shape[1]) if scale == "sqrt(d_model)" else number(scale)
        segments = self.keys.get("segments", [0] * len(ids))
        made = [W_E[i] * self.dtype.type(factor) for i in ids]
        if W_S is not None:
            made = [row + W_S[segment] for row, segment in zip(made, segments, strict=True)]
        return self.positioned(self.put("embedded", made), start)

    def places(self, start: int, n: int) -> list[int]:
        return [int(t) for t in self.keys.get("position_ids", range(start, start + n))]

    def positioned(self, X: np.ndarray, start: int) -> np.ndarray:
        kind, spec = positions_of(self.keys)
        at = self.places(start, len(X))
        if kind == "sinusoid":
            known(spec, {"base", "order", "first"})
            P = [sinusoid(t + spec.get("first", 0), X.shape[1], spec) for t in at]
        elif kind == "table":
            table = np.array(spec["table"], self.dtype)
            P = [table[t + spec.get("first", 0)] for t in at]
        else:
            P = None
        if P is not None:
            X = self.put("positioned", X + self.put("positions", P))
        return self.norm("embedding_norm", self.keys, X, "gamma_E", "beta_E") if "gamma_E" in self.keys else X

    # One layer

    def layer(self, name: str, keys: Keys, X: np.ndarray, cache: dict[str, Any]) -> np.ndarray:
        known(keys, OF_LAYER)
        parts: list[Callable[[np.ndarray], np.ndarray]] = []
        if "W_Q" in keys:
            parts.append(lambda N: self.attention(name, keys, N, None, cache))
        if "cross" in keys:
            inherited = {key: keys[key] for key in SETTINGS if key in keys and key not in ("mask", "positions")}
            cross = inherited | keys["cross"]
            parts.append(lambda N: self.attention(f"{name}cross.", cross, N, self.memory, {}))
        if "W_F1" in keys:
            parts.append(lambda N: self.ffn(name, keys, N))
        kind = norm_kind(keys)
        if keys.get("parallel"):
            first = self.norm(f"{name}norm_1", keys, X, "gamma_1", "beta_1") if kind != "none" else X
            own = keys.get("gamma_2") is not None
            second = self.norm(f"{name}norm_2", keys, X, "gamma_2", "beta_2") if own else first
            return self.put(f"{name}residual_1", X + parts[0](first) + parts[1](second))
        for k, part in enumerate(parts, 1):
            X = self.sublayer(name, keys, kind, k, part, X)
        return X if parts else self.norm(f"{name}norm_1", keys, X, "gamma_1", "beta_1")

    def sublayer(
        self, name: str, keys: Keys, kind: str, k: int, part: Callable[[np.ndarray], np.ndarray], X: np.ndarray
    ) -> np.ndarray:
        """Post Norm(X + F(X)), pre X + F(Norm X), output X + Norm(F(X)), both X + Norm′(F(Norm X))."""
        place = keys.get("norm_place", "post") if kind != "none" else "none"
        N = self.norm(f"{name}norm_{k}", keys, X, f"gamma_{k}", f"beta_{k}") if place in ("pre", "both") else X
        F = part(N)
        if place in ("output", "both"):
            side = "_out" if place == "both" else ""
            F = self.norm(f"{name}sublayer_norm_{k}", keys, F, f"gamma_{k}{side}", f"beta_{k}{side}")
        alpha = keys.get("residual", True)
        if alpha is not False:
            F = self.put(f"{name}residual_{k}", X + F * self.dtype.type(1 if alpha is True else number(alpha)))
        return self.norm(f"{name}norm_{k}", keys, F, f"gamma_{k}", f"beta_{k}") if place == "post" else F

    def ffn(self, name: str, keys: Keys, N: np.ndarray) -> np.ndarray:
        H = self.put(f"{name}ffn_hidden", self.linear(keys, N, "W_F1", "b_F1"))
        if "W_G" not in keys:
            return self.after_hidden(keys, H, name)
        G = self.put(f"{name}ffn_gate", self.linear(keys, N, "W_G", "b_G"))
        A = self.put(f"{name}ffn_activated", self.activated(keys, G))
        A = self.put(f"{name}ffn_gated", A * H)
        return self.put(f"{name}ffn_output", self.linear(keys, A, "W_F2", "b_F2"))

    def after_hidden(self, keys: Keys, H: np.ndarray, name: str = "") -> np.ndarray:
        A = self.put(f"{name}ffn_activated", self.activated(keys, H))
        return self.put(f"{name}ffn_output", self.linear(keys, A, "W_F2", "b_F2")) if "W_F2" in keys else A

    # Vocabulary

    def from_logits(self, L: np.ndarray, ids: Sequence[int] | None = None) -> None:
        keys = self.keys
        if keys.get("logit_softcap") is not None:
            c = number(keys["logit_softcap"])
            L = self.put("capped_logits", c * np.tanh(L / self.dtype.type(c)))
        if keys.get("temperature") is not None:
            L = self.put("tempered_logits", L / self.dtype.type(number(keys["temperature"])))
        self.put("probabilities", [softmax(row) for row in L])
        self.put("next_tokens", [min(v for v in range(len(row)) if row[v] == max(row)) for row in L])
        if keys.get("targets") is not None:
            losses = [self.token_loss(row, target) for row, target in zip(L, self.targets(ids), strict=True)]
            self.put("token_losses", losses)
            for name, value in total(self.made[self.prefix + "token_losses"], keys).items():
                self.put(name, value)

    def targets(self, ids: Sequence[int] | None) -> list[int | None]:
        """An id for each row, None where it is ignored."""
        targets = self.keys["targets"]
        if targets == "next":
            return [*(ids or [])[1:], None]
        return [None if t == "?" else self.word(t) if isinstance(t, str) else int(t) for t in targets]

    def token_loss(self, row: np.ndarray, target: int | None) -> float:
        if target is None:
            return math.nan
        numbers = [float(x) for x in row]
        top = max(numbers)
        total = top + math.log(math.fsum(math.exp(x - top) for x in numbers))
        smoothing = float(self.keys.get("label_smoothing", 0))
        loss = (1 - smoothing) * (total - numbers[target])
        if smoothing:
            loss += smoothing * math.fsum(total - x for x in numbers) / len(numbers)
        return loss / math.log(self.keys.get("log_base", math.e))

    def generated(self, count: int) -> None:
        """Greedy, with the cache: step 1 reads the prompt, each later one the token before."""
        ids = self.token_ids()
        assert ids is not None
        caches: list[dict[str, Any]] = [{} for _ in self.layers()]
        new, start, chosen = ids, 0, []
        for step in range(1, count + 1):
            self.prefix = f"steps.{step}."
            self.through(new, start, caches)
            start += len(new)
            new = [int(self.made[f"{self.prefix}next_tokens"][-1])]
            chosen += new
        self.prefix = ""
        self.put("generated", chosen)
