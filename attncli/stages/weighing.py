"""The softmax, and the values averaged by its weights."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attncli.maths import ops
from attncli.maths.derivation import Derivation, node
from attncli.stages.ops import Op, Product, Values, first, term
from attncli.stages.table import SCORES

if TYPE_CHECKING:
    from attncli.maths.cell import At
    from attncli.maths.ops import Array
    from attncli.stages.inputs import LayerInputs
    from attncli.stages.ops import Cells

FAR = 30.0
"""Where a row's largest score is further from 0, it is subtracted before the exponential, as every program does."""


class Weights(Op):
    """A = softmax of the scores along each row; a query that may attend to nothing has zeros, or NaN."""

    def forward(self, x: LayerInputs, v: Values) -> Array:
        return ops.softmax(first(v, *SCORES), np.nan if x.empty_rows == "nan" else 0.0)

    def entry(self, x: LayerInputs, at: At, cells: Cells) -> Derivation:
        source = cells.needs("weights")[0]
        scores = [cells.cell(source, replace(at, j=j)) for j in range(cells.width(source))]
        top = max(float(score.value) for score in scores)
        if top == -np.inf:
            put = "NaN" if x.empty_rows == "nan" else "zeros"
            words = f"query {cells.spoken('n', at.i)} may attend to nothing: its weights are {put}"
            return Derivation("empty", cells.value("weights", at), words=words)
        shift = cells.number(top) if abs(top) > FAR and not x.exact else None
        powers = [node("exp", score if shift is None else node("difference", score, shift)) for score in scores]
        words = "the row's largest score is subtracted first, which changes nothing" if shift else ""
        return node("quotient", powers[at.j], node("sum", *powers), words=words)

    def formula(self, x: LayerInputs, needs: tuple[str, ...]) -> str:
        along = "down each column" if x.columns else "along each row"
        symbol = {"scaled_scores": "S~^(r)", "scores": "S^(r)"}.get(needs[0], f'"{needs[0]}"')
        return f'softmax({symbol}) "{along}"'


class Outputs(Op):
    """O = A V."""

    def forward(self, x: LayerInputs, v: Values) -> Array:
        return ops.weighted_values(v["weights"], ops.spread_heads(v["V"], x.num_heads))

    def entry(self, x: LayerInputs, at: At, cells: Cells) -> Derivation:
        keys = range(cells.width("weights"))
        weights = [cells.cell("weights", replace(at, j=j)) for j in keys]
        values = [cells.cell("V", replace(at, i=j)) for j in keys]
        return node("sum", *(cells.weighted(*both) for both in zip(weights, values, strict=True)))

    def row(self, x: LayerInputs, at: At, cells: Cells) -> Derivation:
        """The weighted sum of the value vectors."""
        keys = range(cells.width("weights"))
        weights = [cells.cell("weights", replace(at, j=j)) for j in keys]
        vectors = [cells.vector("V", replace(at, i=j)) for j in keys]
        return node("sum", *(cells.weighted(*both) for both in zip(weights, vectors, strict=True)))

    def formula(self, x: LayerInputs, needs: tuple[str, ...]) -> str:
        V = "V^(r)" if x.num_kv_heads == x.num_heads else "V^(s)"
        return f"{V} A^(r)" if x.columns else f"A^(r) {V}"

    def work(self, x: LayerInputs, shape: tuple[int, ...], axes: tuple[str, ...]) -> list[Product]:
        return [term((*shape, x.m), (*axes, "m"))]


weights, outputs = Weights(), Outputs()
