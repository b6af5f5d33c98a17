"""Matrices as nested lists, with the place of each entry; what a matrix is once it was read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from attncli.language import literals
from attncli.language.errors import AttncliError, Collector, Place
from attncli.language.written import Texts, Written
from attncli.maths.ops import Array
from attncli.reading import delimited
from attncli.reading.nodes import Node, Numbers, Scalar, Sequence
from attncli.reading.values import leaves

Shape = tuple[int, ...]

MOST_ERRORS = 20
"""How many mistakes of one matrix are told."""


class Matrix(NamedTuple):
    """A matrix as it was read. ``array`` is None for `identity`, whose size the matrices around it decide.

    ``factors`` are the shapes of A and B of a {product: [A, B]}; ``note`` is what a reader should be told;
    ``stored`` is the dtype of a binary file.
    """

    array: Array | None
    written: Written | None = None
    factors: tuple[Shape, Shape] | None = None
    stored: np.dtype[Any] | None = None
    note: str | None = None


class Wanted(NamedTuple):
    """Which entries are allowed: ``blanks`` (an answer sheet's null and ?), ``booleans`` (a mask's true and false)."""

    key: str
    blanks: bool = False
    booleans: bool = False


def from_lists(node: Numbers | Sequence, wanted: Wanted) -> Matrix:
    if isinstance(node, Numbers):
        array: Array = node.array
    else:
        errors = Collector()
        array = np.asarray(_nested(node, (), wanted, errors))
        errors.raise_any()
    return Matrix(array, Written(lambda: _texts(node, array.shape), place=node.place(), find=lambda i: _find(node, i)))


def _nested(node: Node, index: Shape, wanted: Wanted, errors: Collector) -> Any:
    """Lists of floats of one length a level; what is wrong in them goes to ``errors``."""
    if isinstance(node, Scalar):
        return entry(node, index, wanted, errors)
    if isinstance(node, Numbers):
        return node.array
    if not isinstance(node, Sequence):
        _tell(errors, node.error(f"{_cell(wanted.key, index)} is not a number", key=wanted.key))
        return np.nan
    if not node.items:
        _tell(errors, node.error(f"{_cell(wanted.key, index)} is empty", key=wanted.key))
        return [np.nan]
    before = len(errors)
    parts = [_nested(item, (*index, i), wanted, errors) for i, item in enumerate(node.items)]
    if len(errors) == before:
        _refuse_ragged(node, [np.shape(part) for part in parts], index, wanted, errors)
    return np.array(parts, dtype=float) if len(errors) == 0 else np.nan


def entry(node: Scalar, index: Shape, wanted: Wanted, errors: Collector) -> float:
    try:
        return _value(node, wanted)
    except AttncliError as error:
        what = f"{_cell(wanted.key, index)}: {error.what}"
        _tell(errors, AttncliError(what, hint=error.hint, key=wanted.key, where=node.place()))
        return float("nan")


def _tell(errors: Collector, error: AttncliError) -> None:
    """Keep an error, and stop reading the matrix where there are many."""
    errors.add(error)
    if len(errors) > MOST_ERRORS:
        errors.add(AttncliError(f"{error.key} has more entries that can't be read", key=error.key))
        errors.raise_any()


def _value(node: Scalar, wanted: Wanted) -> float:
    if node.is_null or node.text.strip() in delimited.BLANKS:
        if wanted.blanks:
            return float("nan")
        raise AttncliError("an entry is empty", hint="Every entry must be a number.")
    if wanted.booleans and node.text in ("true", "false", "True", "False", "TRUE", "FALSE"):
        return float(node.text.lower() == "true")
    return literals.parse(node.text).value


def _refuse_ragged(node: Sequence, shapes: list[Shape], index: Shape, wanted: Wanted, errors: Collector) -> None:
    usual = shapes[0]
    odd = next((i for i, shape in enumerate(shapes) if shape != usual), None)
    if odd is None:
        return
    name = _cell(wanted.key, index)
    if not usual or not shapes[odd]:
        single = odd if not shapes[odd] else 0
        what = f"{name} mixes numbers with rows: entry {single + 1} is a single number"
    else:
        what = f"row {odd + 1} of {name} has {size_in_words(shapes[odd])}, and row 1 has {size_in_words(usual)}"
    hint = "Every row needs as many. Is a number or a bracket missing?"
    _tell(errors, node.items[odd].error(what, hint=hint, key=wanted.key))


def size_in_words(shape: Shape) -> str:
    if len(shape) > 1:
        return "shape (" + ", ".join(map(str, shape)) + ")"
    return f"{shape[0]} number" + ("s" if shape[0] != 1 else "")


def _cell(key: str, index: Shape) -> str:
    return f"{key}[{','.join(str(i + 1) for i in index)}]" if index else key


def _texts(node: Node, shape: Shape) -> Texts:
    found = np.empty(int(np.prod(shape)), dtype=object)
    found[:] = [leaf.text.strip() for leaf in leaves(node)]
    return found.reshape(shape)


def _find(node: Node, index: Shape) -> Place | None:
    for level, i in enumerate(index):
        if isinstance(node, Numbers):
            flat = int(np.ravel_multi_index(index[level:], node.array.shape))
            return node.scalar(flat).place()
        if not isinstance(node, Sequence):
            return None
        node = node.items[i]
    return node.place()
