"""Small problems of every kind that attention comes in, sizes all different, with numbers from a fixed seed."""

from __future__ import annotations

import numpy as np


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).round(2)


def layer(n=3, d_model=5, d_k=2, d_v=4, heads=1, groups=None, memory=None, biased=False, d_out=None, **more):
    """The keys of a problem with projections; ``memory`` is (m, d_memory)."""
    groups = groups or heads
    side = memory[1] if memory else d_model
    keys = {"Z": normal(1, n, d_model), "W_Q": normal(2, d_model, heads * d_k), "W_K": normal(3, side, groups * d_k)}
    keys |= {"W_V": normal(4, side, groups * d_v)}
    if memory:
        keys["memory"] = normal(5, *memory)
    if heads > 1:
        keys["num_heads"] = heads
    if groups != heads:
        keys["num_kv_heads"] = groups
    if biased:
        keys |= {"b_Q": normal(6, heads * d_k), "b_K": normal(7, groups * d_k), "b_V": normal(8, groups * d_v)}
    if d_out:
        keys["W_O"] = normal(9, heads * d_v, d_out)
        keys |= {"b_O": normal(10, d_out)} if biased else {}
    return keys | more


_HIDES_ROW_2 = [[1, 0, 1], [0, 0, 0], [1, 1, 0]]

VARIANTS = {
    "plain": layer(),
    "biased": layer(biased=True, d_out=7),
    "causal": layer(mask="causal"),
    "tokens": layer(tokens=["a", "b", "c"], mask="causal"),
    "padding": layer(mask={"lengths": 2}),
    "added mask": layer(mask={"add": [[0, -0.5, -np.inf], [1, 0, 0], [0.25, 0, 0]]}),
    "several masks": layer(n=4, mask=["causal", {"window": [1, 0]}, {"keep": [1, 1, 0, 1]}]),
    "mask_fill": layer(mask="causal", mask_fill=-1e9),
    "empty row": layer(mask={"keep": _HIDES_ROW_2}),
    "empty row, NaN": layer(mask={"keep": _HIDES_ROW_2}, empty_rows="nan"),
    "empty row, filled": layer(mask={"keep": _HIDES_ROW_2}, mask_fill=-1e9),
    "head masks": layer(heads=2, mask={"keep": np.random.default_rng(3).integers(0, 2, (2, 3, 3))}),
    "cross": layer(memory=(4, 6), biased=True),
    "cross heads": layer(memory=(4, 6), heads=2, d_out=7, mask={"causal": "bottom-right"}),
    "memory_V": layer(memory=(4, 5), memory_V=normal(11, 4, 5)),
    "heads": layer(heads=3, d_out=7, biased=True),
    "listed heads": {
        "Z": normal(1, 3, 5),
        "heads": [
            {"W_Q": normal(r, 5, 2), "W_K": normal(r + 3, 5, 2), "W_V": normal(r + 6, 5, 4), "W_O": normal(r, 4, 7),
             "b_Q": normal(r, 2)}
            for r in (1, 2)
        ],
    },
    "grouped": layer(heads=4, groups=2, d_out=7, biased=True),
    "multi-query": layer(heads=2, groups=1),
    "columns": {"layout": "columns", "Z": normal(1, 5, 3), "W_Q": normal(2, 2, 5), "W_K": normal(3, 2, 5),
                "W_V": normal(4, 4, 5), "b_V": normal(4, 4)},
    "columns, heads": {"layout": "columns", "Z": normal(1, 5, 3), "W_Q": normal(2, 4, 5), "W_K": normal(3, 4, 5),
                       "W_V": normal(4, 8, 5), "W_O": normal(5, 7, 8), "num_heads": 2,
                       "mask": {"keep": [[1, 0, 1], [1, 1, 0], [1, 1, 1]]}},
    "columns, cross": {"layout": "columns", "Z": normal(1, 5, 3), "memory": normal(6, 5, 4), "W_Q": normal(2, 2, 5),
                       "W_K": normal(3, 2, 5), "W_V": normal(4, 4, 5), "mask": {"causal": "top-left"}},
    "out_in": layer() | {"weight_layout": "out_in", "W_Q": normal(2, 2, 5), "W_K": normal(3, 2, 5),
                         "W_V": normal(4, 6, 5), "W_O": normal(5, 7, 6)},
    "additive": {"score": "additive", "Q": normal(1, 3, 2), "K": normal(2, 4, 5), "V": normal(3, 4, 6),
                 "W_1": normal(4, 2, 7), "W_2": normal(5, 5, 7), "v": normal(6, 7), "b": normal(7, 7)},
    "additive, columns": {"score": "additive", "layout": "columns", "Q": normal(1, 2, 3), "K": normal(2, 5, 4),
                          "V": normal(3, 6, 4), "W_1": normal(4, 7, 2), "W_2": normal(5, 7, 5), "v": normal(6, 7)},
    "additive, scaled": {"score": "additive", "Q": normal(1, 3, 2), "K": normal(2, 4, 5), "W_1": normal(4, 2, 7),
                         "W_2": normal(5, 5, 7), "v": normal(6, 7), "scale": 2},
    "general": {"score": "general", "Q": normal(1, 3, 2), "K": normal(2, 4, 5), "V": normal(3, 4, 6),
                "W_a": normal(4, 2, 5)},
    "general, columns": {"score": "general", "layout": "columns", "Q": normal(1, 2, 3), "K": normal(2, 5, 4),
                         "W_a": normal(4, 2, 5)},
    "dot": layer(score="dot"),
    "scale": layer(scale=0.25),
    "softcap": layer(softcap=1.5, mask="causal"),
    "softcap, unscaled": layer(softcap=1.5, score="dot"),
    "batch": layer() | {"Z": normal(1, 2, 3, 5)},
    "batch, heads": layer(heads=2, d_out=7, mask="causal") | {"Z": normal(1, 2, 3, 5)},
    "batch, one memory": layer(memory=(4, 6), heads=2) | {"Z": normal(1, 2, 3, 5)},
    "two batch axes": layer(mask={"lengths": 2}) | {"Z": normal(1, 2, 4, 3, 5)},
    "lengths by entry": layer(mask={"lengths": [1, 3]}) | {"Z": normal(1, 2, 3, 5)},
    "cached": layer(n=2, heads=2, past_K=normal(12, 3, 4), past_V=normal(13, 3, 8), mask="causal"),
    "cached, given": {"Q": normal(1, 2, 3), "K": normal(2, 2, 3), "V": normal(3, 2, 4), "past_K": normal(4, 3, 3),
                      "past_V": normal(5, 3, 4), "mask": "causal"},
    "extra": layer(heads=2, extra_K=normal(12, 1, 4), extra_V=normal(13, 1, 8), mask="causal"),
    "per_head": {"Q": normal(1, 2, 3, 4), "K": normal(2, 2, 5, 4), "V": normal(3, 2, 5, 6), "per_head": True},
    "from scores": {"scores": normal(1, 3, 4), "V": normal(2, 4, 5), "score": "dot"},
    "from head scores": {"scores": normal(1, 2, 3, 4), "V": normal(2, 4, 10), "scale": 0.5},
    "from weights": {"weights": [[0.5, 0.5, 0], [0.25, 0.25, 0.5]], "V": normal(2, 3, 5)},
    "from outputs": {"outputs": normal(1, 3, 4), "num_heads": 2, "W_O": normal(2, 4, 5)},
    "nothing of NaN": {"weights": [[0.5, 0.5, 0], [1, 0, 0]], "V": [[1, 2], [3, 4], [np.nan, np.inf]]},
    "far scores": {"Q": [[300, 1], [-300, 2]], "K": [[3, 1], [2, 1], [1, 5]], "V": normal(1, 3, 4), "score": "dot"},
    "float32": layer(dtype="float32", heads=2, d_out=7),
    "float16": layer(dtype="float16"),
    "rounded": layer(round=2, heads=2, d_out=7, mask="causal", biased=True),
    "rounded to even": layer(round=1, rounding="half_even"),
    "rounded weights": layer(round={"weights": 2}),
    "rounded, cached": layer(n=2, past_K=normal(12, 3, 2) + 0.001, past_V=normal(13, 3, 4), round=1, mask="causal"),
}  # fmt: skip
