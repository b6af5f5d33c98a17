"""The scores: how well each query fits each key, scaled, capped and masked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.maths import ops
from attncli.maths.cell import At
from attncli.maths.derivation import node
from attncli.stages.ops import Op, Product, Values, first, term
from attncli.stages.table import SCORES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attncli.maths.derivation import Derivation
    from attncli.maths.ops import Array
    from attncli.stages.inputs import LayerInputs
    from attncli.stages.ops import Cells


class Scores(Op):
    """S = Q Kᵀ; q_i W_a k_jᵀ for score: general; vᵀ tanh(q_i W_1 + k_j W_2 + b) for score: additive."""

    def forward(self, x: LayerInputs, v: Values) -> Array:
        Q, K = v["Q"], ops.spread_heads(v["K"], x.num_heads)
        if x.score == "general":
            return ops.general_scores(Q, K, x.arrays["W_a"])
        if x.score == "additive":
            return ops.additive_scores(Q, K, x.arrays["W_1"], x.arrays["W_2"], x.arrays["v"], x.b)
        return ops.dot_scores(Q, K)

    def entry(self, x: LayerInputs, at: At, cells: Cells) -> Derivation:
        q = [cells.cell("Q", At(at.batch, at.head, at.i, a)) for a in range(cells.width("Q"))]
        k = [cells.cell("K", At(at.batch, at.head, at.j, a)) for a in range(cells.width("K"))]
        qi = cells.symbol("Q", at, whole_row=True)
        kj = cells.symbol("K", replace(at, i=at.j), whole_row=True)
        if x.score == "additive":
            inner = f"W_1 {qi} + W_2 {kj}" if x.columns else f"{qi} W_1 + {kj} W_2"
            formula = f"v^T tanh({inner}{' + b' if x.b is not None else ''})"
            return node("sum", *(_additive_term(x, cells, q, k, c) for c in range(len(x.arrays["v"]))), formula=formula)
        if x.score == "general":
            columns = x.arrays["W_a"].shape[1]
            inner_sums = [
                node("sum", *(cells.product(one, cells.entry("W_a", (), a, b)) for a, one in enumerate(q)))
                for b in range(columns)
            ]
            formula = f"{kj}^T W_a^T {qi}" if x.columns else f"{qi} W_a {kj}^T"
            return node("sum", *(cells.product(one, k[b]) for b, one in enumerate(inner_sums)), formula=formula)
        formula = f"{kj} * {qi}" if x.columns else f"{qi} * {kj}"
        return node("sum", *(cells.product(*both) for both in zip(q, k, strict=True)), formula=formula)

    def formula(self, x: LayerInputs, needs: tuple[str, ...]) -> str:
        s = "(r)" if x.num_kv_heads == x.num_heads else "(s)"
        Q, K = "Q^(r)", f"K^{s}"
        if x.score == "additive":
            bias = " + b" if x.b is not None else ""
            inner = "W_1 q_i + W_2 k_j" if x.columns else "q_i W_1 + k_j W_2"
            return f"v^T tanh({inner}{bias})"
        middle = {True: "W_a^T ", False: "W_a "}[x.columns] if x.score == "general" else ""
        return f"{K}^T {middle}{Q}" if x.columns else f"{Q} {middle}{K}^T"

    def work(self, x: LayerInputs, shape: tuple[int, ...], axes: tuple[str, ...]) -> list[Product]:
        d_k = x.d_k or 0
        if x.score not in ("general", "additive"):
            return [term((*shape, d_k), (*axes, "d_k"))]
        queries, d_q = (*shape[:-1], x.size("d_q")), (*axes[:-1], "d_q")
        if x.score == "general":
            return [term((*queries, d_k), (*d_q, "d_k")), term((*shape, d_k), (*axes, "d_k"))]
        d_a, lead, heads = x.arrays["v"].size, shape[:-3], (axes[0],) if x.num_heads > 1 else ()
        keys = (*lead, x.num_kv_heads, x.m, d_k, d_a)
        return [
            term((*queries, d_a), (*d_q, "d_a")),
            term(keys, (*axes[: len(lead)], *heads, "m", "d_k", "d_a")),
            term((*shape, d_a), (*axes, "d_a")),
        ]


def _additive_term(
    x: LayerInputs, cells: Cells, q: Sequence[Derivation], k: Sequence[Derivation], c: int
) -> Derivation:
    terms = [cells.product(one, cells.entry("W_1", (), a, c)) for a, one in enumerate(q)]
    terms += [cells.product(one, cells.entry("W_2", (), a, c)) for a, one in enumerate(k)]
    terms += [cells.entry("b", (), c)] if x.b is not None else []
    return node("product", cells.entry("v", (), c), node("tanh", node("sum", *terms)))


class ScaledScores(Op):
    """S / √d_k, or the scale that is given times S."""

    def forward(self, x: LayerInputs, v: Values) -> Array:
        return ops.scaled_scores(v["scores"], d_k=x.d_k, scale=x.scale)

    def entry(self, x: LayerInputs, at: At, cells: Cells) -> Derivation:
        score = cells.cell("scores", at)
        if x.scale is not None:
            return node("product", cells.number(x.scale, '"scale"'), score)
        return node("quotient", score, node("root", cells.number(x.d_k, "d_k")))

    def formula(self, x: LayerInputs, needs: tuple[str, ...]) -> str:
        return "S^(r) / sqrt(d_k)" if x.scale is None else "scale * S^(r)"


class CappedScores(Op):
    """c·tanh(S̃/c)."""

    def forward(self, x: LayerInputs, v: Values) -> Array:
        return ops.capped_scores(first(v, *SCORES[2:]), x.softcap)

    def entry(self, x: LayerInputs, at: At, cells: Cells) -> Derivation:
        cap = cells.number(x.softcap, "c")
        source = cells.cell(cells.needs("capped_scores")[0], at)
        return node("product", cap, node("tanh", node("quotient", source, cap)))

    def formula(self, x: LayerInputs, needs: tuple[str, ...]) -> str:
        return f"c tanh({_symbol(x)} / c)"


class MaskedScores(Op):
    """The scores where the mask lets a query attend, with the mask's own numbers; −∞ (or mask_fill) elsewhere."""

    def forward(self, x: LayerInputs, v: Values) -> Array:
        assert x.mask is not None
        return ops.masked_scores(first(v, *SCORES[1:]), x.mask.allowed, x.mask.bias, self.fill(x))

    def fill(self, x: LayerInputs) -> float:
        """What stands at hidden scores."""
        return -np.inf if x.mask_fill is None else x.mask_fill

    def entry(self, x: LayerInputs, at: At, cells: Cells) -> Derivation:
        assert x.mask is not None
        allowed, bias = (_at(array, at) for array in x.mask.part(slice(at.i, at.i + 1)))
        query, key = cells.spoken("n", at.i), cells.spoken("m", at.j)
        if allowed is not None and not allowed:
            words = f"query {query} may not attend to key {key} ({cells.hidden_by(at)})"
            return node("hidden", cells.number(self.fill(x)), words=words)
        score = cells.cell(cells.needs("masked_scores")[0], at)
        if bias is not None and bias != 0:
            score = node("sum", score, cells.number(bias, '"mask"'))
        words = f"query {query} may attend to key {key}" if x.mask.hides else ""
        return node("kept", score, words=words)

    def formula(self, x: LayerInputs, needs: tuple[str, ...]) -> str:
        text = _symbol(x) if x.softcap is None else f"c tanh({_symbol(x)} / c)"
        mask = x.mask
        if mask is not None and mask.bias is not None:
            text += " + mask"
        if mask is None or not mask.hides:
            return text
        hidden = "-inf" if x.mask_fill is None else f"{x.mask_fill:g}"
        return f'{text} "where allowed," {hidden} "elsewhere"'


def _symbol(x: LayerInputs) -> str:
    return "S~^(r)" if x.is_scaled else "S^(r)"


def _at(array: Array | None, at: At) -> Any:
    """The entry for one query row (already cut out) and key of what broadcasts to (batch.., h, 1, m)."""
    if array is None:
        return None
    index = (*at.batch, at.head, 0, at.j)[-array.ndim :] if array.ndim else ()
    return array[tuple(i if size > 1 else 0 for i, size in zip(index, array.shape, strict=True))]


scores, scaled_scores, capped_scores, masked_scores = Scores(), ScaledScores(), CappedScores(), MaskedScores()
