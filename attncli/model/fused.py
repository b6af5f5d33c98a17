"""``heads:``, a list of {W_Q, W_K, W_V ...}, made into fused matrices, which is how a Problem holds its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attncli.language.errors import AttncliError, Collector
from attncli.maths.ops import Array
from attncli.model.keys import HEAD_KEYS, unknown_key


def fused(keys: Mapping[str, Any], heads: int, columns: bool, weight_layout: str) -> dict[str, Array]:
    """`heads:` as fused matrices, in the same layout: the heads' blocks side by side (W_O: on top of each other).

    Raises AttncliError, or AttncliErrors, with the key that is meant: ``heads.2.W_Q``.
    """
    errors = Collector()
    found: dict[str, Array] = {}
    entries: Sequence[Mapping[str, Any]] = keys["heads"]
    if not isinstance(entries, Sequence) or not entries or not all(isinstance(entry, Mapping) for entry in entries):
        raise AttncliError("heads is a list of {W_Q, W_K, W_V}, one entry a head", key="heads")
    if len(entries) != heads:
        raise AttncliError(f"num_heads is {heads}, but heads has {len(entries)} entries", key="num_heads")
    if keys.get("num_kv_heads") not in (None, heads):
        raise AttncliError(
            "heads: gives each head its own keys and values, so num_kv_heads has nothing to do", key="num_kv_heads",
            hint="For grouped-query attention give fused W_Q, W_K, W_V with num_heads and num_kv_heads.",
        )  # fmt: skip
    for r, entry in enumerate(entries, 1):
        for name in entry:
            if name not in HEAD_KEYS:
                errors.add(unknown_key(str(name), HEAD_KEYS, f"heads.{r}.{name}"))
    for name in HEAD_KEYS:
        with errors.collect():
            if any(name in entry for entry in entries):
                found[name] = _fused_key(name, keys, entries, columns, weight_layout)
    errors.raise_any()
    return found


def _fused_key(
    name: str, keys: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], columns: bool, weight_layout: str
) -> Array:
    if name in keys:
        raise AttncliError(f"{name} is given both in heads and beside it", hint="Drop one of the two.", key=name)
    blocks: list[Array] = []
    for r, entry in enumerate(entries, 1):
        path = f"heads.{r}.{name}"
        if name not in entry:
            raise AttncliError(f"head {r} has no {name}, and another head has one", key=f"heads.{r}")
        try:
            block = np.asarray(entry[name])
        except ValueError:
            block = np.asarray(None)
        if block.dtype.kind not in "biufO" or (block.dtype == object and block.ndim == 0):
            raise AttncliError(f"{name} is no matrix of numbers with rows of one length", key=path)
        block = np.atleast_2d(block) if name[0] == "W" else block.ravel()
        if blocks and block.shape != blocks[0].shape:
            what = f"{name} of head {r} has shape {block.shape}, and that of head 1 {blocks[0].shape}"
            hint = "Its transpose fits." if block.T.shape == blocks[0].shape else "All heads have the same sizes."
            raise AttncliError(what, hint=hint, key=path)
        blocks.append(block)
    stored_out_in = name[0] == "W" and weight_layout == "out_in"
    on_top = (name == "W_O") != stored_out_in
    return np.concatenate(blocks, axis=0 if on_top or name[0] == "b" else -1)
