"""Op: all that is known of a stage's formula, in one object that answers four questions.

The array that it makes of others (forward), how one of its numbers arose (entry), how it is written (formula), and
what it takes (work). A wrong formula is another op in the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from attncli.maths.cell import At
    from attncli.maths.derivation import Derivation
    from attncli.maths.ops import Array
    from attncli.stages.inputs import LayerInputs

Values = Mapping[str, "Array"]
"""The arrays that a stage is made of, by the names of their stages."""

Wrong = Callable[["LayerInputs", Values], "Array | None"]
"""A formula put in place of a right one: the same arguments; None where it makes no sense."""

Product = tuple[tuple[int, ...], tuple[str, ...]]
"""A matrix product: as many multiply-adds as these sizes multiply to, and what each size is called."""


class Cells(Protocol):
    """What a derivation is made of: cells of other stages, entries of inputs, numbers, and how they are called."""

    def cell(self, stage: str, at: At) -> Derivation:
        """A cell of a stage, followed back as far as is asked for."""
        ...

    def vector(self, stage: str, at: At) -> Derivation:
        """A token's whole row of a stage."""
        ...

    def entry(self, key: str, batch: tuple[int, ...], *index: int) -> Derivation:
        """An entry of an input (0-based, in rows)."""
        ...

    def number(self, value: Any, symbol: str = "") -> Derivation:
        """A constant."""
        ...

    def product(self, a: Derivation, b: Derivation) -> Derivation:
        """a · b, in the order in which the layout writes them."""
        ...

    def weighted(self, weight: Derivation, value: Derivation) -> Derivation:
        """A weight times a value; a weight of 0 takes no part, whatever the value is."""
        ...

    def value(self, stage: str, at: At) -> Any:
        """A cell's value."""
        ...

    def needs(self, stage: str) -> tuple[str, ...]:
        """The stages that one is made of in this problem."""
        ...

    def width(self, stage: str) -> int:
        """How many columns a stage has."""
        ...

    def head(self, stage: str, at: At) -> int:
        """The head of a stage that a query head uses (0-based)."""
        ...

    def symbol(self, stage: str, at: At, whole_row: bool = False) -> str:
        """What a cell is called in formulas."""
        ...

    def projection_formula(self, role: str, row: int, head: int, column: int) -> str:
        """z_1 * "column 2 of" W^Q + b_2."""
        ...

    def output_formula(self, token: str, weight: str, column: int, bias: bool) -> str:
        """The same for W_O."""
        ...

    def spoken(self, axis: str, position: int) -> str:
        """A query or a key in words: its number, and its token where it has one."""
        ...

    def hidden_by(self, at: At) -> str:
        """Which of the masks hide a key from a query, in words."""
        ...


class Op:
    """A stage's formula. What a subclass doesn't say: no matrix product, and a row that lists its cells."""

    def forward(self, x: LayerInputs, v: Values) -> Array:
        """The stage's array (batch.., its axes), from the inputs and the values of the stages that it needs."""
        raise NotImplementedError

    def entry(self, x: LayerInputs, at: At, cells: Cells) -> Derivation:
        """How the number at one place arose."""
        raise NotImplementedError

    def formula(self, x: LayerInputs, needs: tuple[str, ...]) -> str:
        """The formula in `notation`, as this problem has it: its biases, its memory, its score, its layout."""
        raise NotImplementedError

    def work(self, x: LayerInputs, shape: tuple[int, ...], axes: tuple[str, ...]) -> list[Product]:
        """The matrix products that an array of this shape takes, whose axes are called so."""
        return []

    def row(self, x: LayerInputs, at: At, cells: Cells) -> Derivation | None:
        """How a token's row arose as a whole, where that says more than its cells one after the other."""
        return None


def first(v: Values, *names: str) -> Array:
    """The value of the first stage that is there."""
    return next(v[name] for name in names if name in v)


def term(numbers: tuple[int, ...], axes: tuple[str, ...]) -> Product:
    """A product's sizes and their names: (3, 2, 4), ("n", "d_k", "d_model")."""
    return numbers, axes
