"""Q, K and V: the inputs times their weights, by heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attncli.maths import ops
from attncli.maths.derivation import node
from attncli.stages.ops import Op, Product, Values, term

if TYPE_CHECKING:
    from attncli.maths.cell import At
    from attncli.maths.derivation import Derivation
    from attncli.maths.ops import Array
    from attncli.stages.inputs import LayerInputs
    from attncli.stages.ops import Cells


class Projection(Op):
    """Q = Z W_Q + b_Q by heads; K and V likewise from Z or from the memory."""

    def __init__(self, role: str) -> None:
        self.role = role

    def forward(self, x: LayerInputs, v: Values) -> Array:
        source, weight = x.projected_from(self.role), x.arrays[f"W_{self.role}"]
        inputs = v[source] if source in v else x.arrays[source]
        return ops.split_heads(ops.project(inputs, weight, x.arrays.get(f"b_{self.role}")), self._heads(x))

    def _heads(self, x: LayerInputs) -> int:
        return x.num_heads if self.role == "Q" else x.num_kv_heads

    def entry(self, x: LayerInputs, at: At, cells: Cells) -> Derivation:
        role, source, bias = self.role, x.projected_from(self.role), f"b_{self.role}"
        head = cells.head(role, at)
        column = head * cells.width(role) + at.j
        row = at.i - (x.past if role != "Q" else 0)
        terms = [
            cells.product(cells.entry(source, at.batch, row, k), cells.entry(f"W_{role}", (), k, column))
            for k in range(x.arrays[f"W_{role}"].shape[0])
        ]
        terms += [cells.entry(bias, (), column)] if bias in x.arrays else []
        return node("sum", *terms, formula=cells.projection_formula(role, row, head, at.j))

    def formula(self, x: LayerInputs, needs: tuple[str, ...]) -> str:
        role = self.role
        head = "r" if role == "Q" or x.num_kv_heads == x.num_heads else "s"
        source = {"Z": "X" if x.columns else "Z", "memory": "M", "memory_V": "M_V"}[x.projected_from(role)]
        weight, bias = f"W_{head}^{role}", f" + b_{head}^{role}"
        text = f"{weight} {source}" if x.columns else f"{source} {weight}"
        text += bias if f"b_{role}" in x.arrays else ""
        parts = [part for part in (f"past_{role}" if x.past and role != "Q" else "", text) if part]
        parts += [f"extra_{role}"] if x.extra and role != "Q" else []
        between = ", " if x.columns else "; "  # side by side, or on top of each other
        return text if len(parts) == 1 else f"[{between.join(parts)}]"

    def work(self, x: LayerInputs, shape: tuple[int, ...], axes: tuple[str, ...]) -> list[Product]:
        source, new = x.projected_from(self.role), x.m - x.past - x.extra
        if self.role != "Q" and new != x.m:
            shape, axes = (*shape[:-2], new, shape[-1]), (*axes[:-2], "m_new", axes[-1])
        width = x.arrays[f"W_{self.role}"].shape[0]
        return [term((*shape, width), (*axes, "d_model" if source == "Z" else "d_memory"))]


Q, K, V = Projection("Q"), Projection("K"), Projection("V")
