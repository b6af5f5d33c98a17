"""The heads' outputs side by side, and their product with W_O."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from attncli.maths import ops
from attncli.maths.cell import At
from attncli.maths.derivation import Derivation, node
from attncli.stages.ops import Op, Product, Values, term

if TYPE_CHECKING:
    from attncli.maths.ops import Array
    from attncli.stages.inputs import LayerInputs
    from attncli.stages.ops import Cells


class Concat(Op):
    """Column (r−1)d_v + a is column a of head r."""

    def forward(self, x: LayerInputs, v: Values) -> Array:
        return ops.join_heads(v["outputs"])

    def entry(self, x: LayerInputs, at: At, cells: Cells) -> Derivation:
        width = cells.width("outputs")
        head, column = divmod(at.j, width)
        origin = cells.cell("outputs", At(at.batch, head, at.i, column))
        what = "row" if x.columns else "column"
        of_head = f"head {head + 1}, " if x.num_heads > 1 else ""
        counted = f": {what} {at.j + 1} = ({head + 1} − 1)·{width} + {column + 1}" if of_head else ""
        return node("pick", origin, words=f"{of_head}{what} {column + 1}{counted}")

    def formula(self, x: LayerInputs, needs: tuple[str, ...]) -> str:
        heads = "O^(1)..O^(h)" if x.num_heads > 1 else "O"
        return f"Concat({heads})" + (' "on top of each other"' if x.columns and x.num_heads > 1 else "")


class Multihead(Op):
    """Concat W_O + b_O."""

    def forward(self, x: LayerInputs, v: Values) -> Array:
        return ops.project(v["concat"], x.arrays["W_O"], x.b_O)

    def entry(self, x: LayerInputs, at: At, cells: Cells) -> Derivation:
        terms = [
            cells.product(cells.cell("concat", replace(at, j=k)), cells.entry("W_O", (), k, at.j))
            for k in range(x.arrays["W_O"].shape[0])
        ]
        terms += [cells.entry("b_O", (), at.j)] if x.b_O is not None else []
        token = f'"{"column" if x.columns else "row"} {at.i + 1} of" Concat'
        return node("sum", *terms, formula=cells.output_formula(token, "W^O", at.j, x.b_O is not None))

    def formula(self, x: LayerInputs, needs: tuple[str, ...]) -> str:
        return ("W^O Concat" if x.columns else "Concat W^O") + (" + b^O" if x.b_O is not None else "")

    def work(self, x: LayerInputs, shape: tuple[int, ...], axes: tuple[str, ...]) -> list[Product]:
        return [term((*shape, x.size("h·d_v")), (*axes, "h·d_v" if x.num_heads > 1 else "d_v"))]


class Contributions(Op):
    """O_r W_r^O: one head's share of the output."""

    def forward(self, x: LayerInputs, v: Values) -> Array:
        return ops.contributions(v["outputs"], x.arrays["W_O"])

    def entry(self, x: LayerInputs, at: At, cells: Cells) -> Derivation:
        width = cells.width("outputs")
        terms = [
            cells.product(cells.cell("outputs", replace(at, j=a)), cells.entry("W_O", (), at.head * width + a, at.j))
            for a in range(width)
        ]
        weight = f"W_{at.head + 1}^O" if x.num_heads > 1 else "W^O"
        token = cells.symbol("outputs", at, whole_row=True)
        return node("sum", *terms, formula=cells.output_formula(token, weight, at.j, False))

    def formula(self, x: LayerInputs, needs: tuple[str, ...]) -> str:
        return "W_r^O O^(r)" if x.columns else "O^(r) W_r^O"

    def work(self, x: LayerInputs, shape: tuple[int, ...], axes: tuple[str, ...]) -> list[Product]:
        return [term((*shape, x.d_v or 0), (*axes, "d_v"))]


concat, multihead, contributions = Concat(), Multihead(), Contributions()
