"""Derivation: how one number arose, as a tree of operations and operands. Explaining makes it, rendering writes it.

Each node holds its own value, so that a tree can be written at any depth; evaluating the operands gives it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attncli.maths.cell import Cell

Value = Any
"""A float, an exact number, or a tuple of values: a vector, or a matrix as a tuple of rows."""

LEAVES = ("number", "cell", "input", "given", "empty")
"""Nodes without operands: a number, a stage's cell, an input's entry, a given stage's cell, a row without softmax."""


@dataclass(frozen=True)
class Derivation:
    """A node: ``op`` on ``operands`` gives ``value``.

    ``cell``: the cell whose value it is (a stage's, or an input's entry). ``symbol``: what it is called, and
    ``formula``: how it is computed, in symbols; both in the formulas' notation. ``words``: what else is said of it
    ("hidden by causal").

    The operations: those of LEAVES; ``sum``, ``product``, ``quotient``, ``difference``, ``exp``, ``tanh``, ``root``;
    ``pick`` (the operand itself, found elsewhere), ``kept`` (a score that the mask lets through), ``hidden`` (what is
    put in place of one that it doesn't), ``rounded`` (the operand, to as many decimals as the second says);
    ``row`` and ``stage`` (the operands, listed).
    """

    op: str
    value: Value
    operands: tuple[Derivation, ...] = ()
    cell: Cell | None = None
    symbol: str = ""
    formula: str = ""
    words: str = ""

    @property
    def is_leaf(self) -> bool:
        return not self.operands

    @property
    def is_list(self) -> bool:
        """Whether it lists derivations, rather than being one."""
        return self.op in ("row", "stage")

    def cells(self) -> Iterator[Derivation]:
        """The stages' cells that it was made from directly, each once, in order."""
        seen = set()
        for node in self._below():
            if node.cell not in seen:
                seen.add(node.cell)
                yield node

    def _below(self) -> Iterator[Derivation]:
        for operand in self.operands:
            if operand.cell is not None and operand.op != "input":
                yield operand
            else:
                yield from operand._below()

    def size(self) -> int:
        """How many nodes the tree has, written out."""
        counts: dict[int, int] = {}

        def count(node: Derivation) -> int:
            if id(node) not in counts:
                counts[id(node)] = 1 + sum(map(count, node.operands))
            return counts[id(node)]

        return count(self)


def node(op: str, *operands: Derivation, symbol: str = "", formula: str = "", words: str = "") -> Derivation:
    """An operation on operands, with the value that it has.

    >>> node("product", number(2.0), number(3.0)).value
    6.0
    """
    value = _VALUES[op](*(operand.value for operand in operands))
    return Derivation(op, _tidy(value), operands, symbol=symbol, formula=formula, words=words)


def number(value: Value, symbol: str = "") -> Derivation:
    """A plain number: a constant, d_k, a scale."""
    return Derivation("number", value, symbol=symbol)


def _tidy(value: Value) -> Value:
    return value.tidy() if hasattr(value, "tidy") else value


def _exp(x: Value) -> Value:
    if hasattr(x, "exp"):
        return x.exp()
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _sum(*terms: Value) -> Value:
    if isinstance(terms[0], tuple):
        return tuple(_sum(*column) for column in zip(*terms, strict=True))
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return _tidy(total)


def _product(*factors: Value) -> Value:
    total = factors[0]
    for factor in factors[1:]:
        total = tuple(total * entry for entry in factor) if isinstance(factor, tuple) else total * factor
    return total


def _quotient(a: Value, b: Value) -> Value:
    if isinstance(b, float) and b == 0:
        return math.nan
    return a / b


_VALUES: dict[str, Callable[..., Value]] = {
    "sum": _sum,
    "product": _product,
    "quotient": _quotient,
    "difference": lambda a, b: a - b,
    "exp": _exp,
    "tanh": lambda x: x.tanh() if hasattr(x, "tanh") else math.tanh(x),
    "root": lambda x: x.sqrt() if hasattr(x, "sqrt") else math.sqrt(x),
    "pick": lambda x: x,
    "kept": lambda x: x,
    "hidden": lambda fill: fill,
    "row": lambda *entries: entries,
    "stage": lambda *rows: rows,
}
