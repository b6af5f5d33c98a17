"""KEYS: one row a key of the problem file. Readers, messages, completion and the reference read this table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from attncli.language.errors import AttncliError

Kind = Literal[
    "text", "labels", "matrix", "vector", "number", "count", "flag", "choice", "mask", "heads", "sheet", "from", "round"
]


class Key(NamedTuple):
    """A key: its name, what kind of value it takes, its shape in the row convention, and what it means."""

    name: str
    kind: Kind
    meaning: str
    shape: str = ""
    choices: tuple[str, ...] = ()


_ROWS = (
    Key("title", "text", "what the problem is called"),
    Key("source", "text", "where it comes from"),
    Key("note", "text", "what a reader should know"),
    Key("tokens", "labels", "labels of Z's rows", "n words"),
    Key("memory_tokens", "labels", "labels of memory's rows", "m words"),
    Key("Z", "matrix", "the inputs: one row a token", "(batch.., n, d_model)"),
    Key("memory", "matrix", "the key/value side of cross-attention", "(batch.., m, d_memory)"),
    Key("memory_V", "matrix", "what the values are made from, where it is not memory", "(batch.., m, d_memory_V)"),
    Key("W_Q", "matrix", "query weights; the heads' column blocks side by side", "(d_model, h·d_k)"),
    Key("W_K", "matrix", "key weights", "(d_memory, g·d_k)"),
    Key("W_V", "matrix", "value weights", "(d_memory, g·d_v)"),
    Key("W_O", "matrix", "output weights", "(h·d_v, d_model)"),
    Key("b_Q", "vector", "query bias", "h·d_k"),
    Key("b_K", "vector", "key bias", "g·d_k"),
    Key("b_V", "vector", "value bias", "g·d_v"),
    Key("b_O", "vector", "output bias", "d_model"),
    Key("heads", "heads", "a list of {W_Q, W_K, W_V, b_Q, b_K, b_V, W_O}, in place of fused matrices"),
    Key("num_heads", "count", "h: fused matrices are split into h column blocks"),
    Key("num_kv_heads", "count", "g: grouped-query attention; query head r uses key/value head ⌈r·g/h⌉"),
    Key(
        "per_head",
        "flag",
        "true: what is given of Q, K, V, outputs, past_K, past_V, extra_K, extra_V has a head axis, third from last",
    ),
    Key("Q", "matrix", "queries, in place of Z and W_Q", "(batch.., n, h·d_k)"),
    Key("K", "matrix", "keys, in place of Z (or memory) and W_K", "(batch.., m, g·d_k)"),
    Key("V", "matrix", "values, in place of Z (or memory) and W_V", "(batch.., m, g·d_v)"),
    Key("scores", "matrix", "in place of Q and K", "(batch.., h, n, m)"),
    Key("scaled_scores", "matrix", "in place of the scores", "(batch.., h, n, m)"),
    Key("capped_scores", "matrix", "in place of the scaled scores", "(batch.., h, n, m)"),
    Key("masked_scores", "matrix", "in place of the scores and the mask", "(batch.., h, n, m)"),
    Key("weights", "matrix", "in place of all scores", "(batch.., h, n, m)"),
    Key("outputs", "matrix", "in place of weights and V", "(batch.., n, h·d_v)"),
    Key("concat", "matrix", "in place of the outputs", "(batch.., n, h·d_v)"),
    Key("past_K", "matrix", "cached keys, put before K", "(batch.., p, g·d_k)"),
    Key("past_V", "matrix", "cached values, put before V", "(batch.., p, g·d_v)"),
    Key("extra_K", "matrix", "further keys after K that no mask hides", "(e, g·d_k)"),
    Key("extra_V", "matrix", "further values after V that no mask hides", "(e, g·d_v)"),
    Key("mask", "mask", "causal, {keep: M}, {block: M}, {add: M}, {lengths: l}, {window: w}, or a list of these"),
    Key("mask_fill", "number", "put at hidden scores in place of −∞"),
    Key("empty_rows", "choice", "weights of a query that may attend to nothing", choices=("zero", "nan", "error")),
    Key("score", "choice", "the score function", choices=("scaled_dot", "dot", "general", "additive")),
    Key("scale", "number", "multiplies the scores, in place of 1/√d_k"),
    Key("softcap", "number", "c: the scaled scores become c·tanh(S̃/c)"),
    Key("W_a", "matrix", "the matrix of score: general, q W_a kᵀ", "(d_q, d_k)"),
    Key("W_1", "matrix", "the queries' matrix of score: additive", "(d_q, d_a)"),
    Key("W_2", "matrix", "the keys' matrix of score: additive", "(d_k, d_a)"),
    Key("v", "vector", "the vector of score: additive, vᵀ tanh(q W_1 + k W_2 + b)", "d_a"),
    Key("b", "vector", "the bias of score: additive", "d_a"),
    Key(
        "layout", "choice", "rows: a token is a row; columns: a token is a column, Q = W X", choices=("rows", "columns")
    ),
    Key("weight_layout", "choice", "how weights are stored: Q = Z W or Q = Z Wᵀ", choices=("in_out", "out_in")),
    Key("dtype", "choice", "what the arithmetic runs in", choices=("float64", "float32", "float16")),
    Key("round", "round", "k: every stage is rounded to k decimals before the next uses it; {weights: k} some alone"),
    Key("rounding", "choice", "how round treats a tie", choices=("half_away", "half_even")),
    Key("from", "from", "a framework's weights: {torch_mha|bert|gpt2|llama: FILE, layer: 0, prefix: ...}"),
    Key("expect", "sheet", "an answer sheet: stage → matrix"),
)

KEYS: dict[str, Key] = {key.name: key for key in _ROWS}

HEAD_KEYS = ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V", "W_O")
"""What one entry of ``heads`` may hold."""


def unknown_key(name: str, known: Sequence[str] = tuple(KEYS), path: str | None = None) -> AttncliError:
    """The error for a key that is none of ``known``, with the nearest that is."""
    from attncli.stages.meant import key_hint

    hint = key_hint(name, known) or f"Known keys: {', '.join(known)}."
    if name in ("multihead", "contributions"):
        hint = f"{name} is always computed; attncli check holds it to an answer sheet."
    return AttncliError(f"unknown key {name!r}", hint=hint, key=path or name)
