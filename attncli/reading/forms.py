"""Matrices that are said in a few words: {diag: [2, 3]}, {normal: [3, 2], seed: 0}, {file: F, rows: [1, 3]}."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from attncli.language.written import Texts, Written
from attncli.reading import paths
from attncli.reading.contents import from_content, from_file
from attncli.reading.lists import Matrix, Shape, Wanted
from attncli.reading.nodes import Mapping, Node, Numbers, Opened, Scalar, Sequence
from attncli.reading.values import flag, leaves, nearest, word

IDENTITY = "identity"

MAX_MADE = 10_000_000
"""Numbers in a matrix that a few words make."""


Reader = Callable[[Node, Wanted], Matrix]
"""What reads a matrix that stands inside another, {product: [A, B]}: in whatever way it is written."""


def read(node: Mapping, wanted: Wanted, inner: Reader) -> Matrix:
    """The matrix of a mapping, by the one of its keys that names a form; ``inner`` reads those inside it."""
    names = [name for name in FORMS if name in node.items]
    known = ", ".join(f"{{{name}: ...}}" for name in FORMS)
    if len(names) != 1:
        what = (
            f"{wanted.key} is none of the ways to write a matrix"
            if not names
            else f"{wanted.key} is {' and '.join(names)}"
        )
        raise node.error(what, hint=f"Known are lists, blocks of rows, files, identity, {known}.", key=wanted.key)
    form = FORMS[names[0]]
    for name in node.items:
        if name != names[0] and name not in form.options:
            hint = nearest(name, list(form.options)) or (
                f"{{{names[0]}: ...}} takes {', '.join(form.options) or 'no options'}.",
            )
            raise node.keys[name].error(f"{wanted.key}: unknown option {name!r}", hint=hint, key=wanted.key)
    return form.read(node, wanted, inner)


class Form(NamedTuple):
    """A way to write a matrix as a mapping: what reads it, and which further keys it takes."""

    read: Callable[[Mapping, Wanted, Reader], Matrix]
    options: tuple[str, ...] = ()


def _made(node: Mapping, name: str, key: str) -> Shape:
    """The sizes of {zeros: [r, c]}, {normal: [r, c]}, {identity: n}."""
    value = node.items[name]
    items = list(leaves(value))
    sizes = tuple(int(item.text) if re.fullmatch(r"[0-9]{1,9}", item.text) else 0 for item in items)
    if not sizes or not all(sizes) or len(sizes) > 4:
        raise value.error(f"{key}: {{{name}: [rows, columns]}} takes whole numbers from 1", key=key)
    if int(np.prod(sizes)) > MAX_MADE:
        raise value.error(
            f"{key}: {{{name}: ...}} of {int(np.prod(sizes)):,} numbers", hint=f"At most {MAX_MADE:,}.", key=key
        )
    return sizes


def _filled(name: str, fill: float) -> Callable[[Mapping, Wanted, Reader], Matrix]:
    return lambda node, wanted, _: Matrix(np.full(_made(node, name, wanted.key), fill))


def _identity(node: Mapping, wanted: Wanted, _: Reader) -> Matrix:
    sizes = _made(node, IDENTITY, wanted.key)
    return Matrix(np.eye(sizes[0], sizes[-1]))


def _diagonal(node: Mapping, wanted: Wanted, inner: Reader) -> Matrix:
    entries = inner(node.items["diag"], wanted)
    if entries.array is None or entries.array.ndim != 1 or entries.array.size**2 > MAX_MADE:
        raise node.items["diag"].error(f"{wanted.key}: {{diag: [2, 3]}} takes one list of numbers", key=wanted.key)
    written = entries.written

    def texts() -> Texts:
        assert written is not None
        found = np.empty((written.texts.size,) * 2, dtype=object)
        found.fill("0")
        np.fill_diagonal(found, written.texts)
        return found

    return Matrix(np.diag(entries.array), Written(texts, place=node.place()) if written else None)


def _normal(node: Mapping, wanted: Wanted, _: Reader) -> Matrix:
    seed = node.items.get("seed")
    if not isinstance(seed, Scalar) or not re.fullmatch(r"[0-9]{1,18}", seed.text):
        hint = "The same seed gives the same numbers again: {normal: [3, 2], seed: 0}."
        raise node.error(
            f"{wanted.key}: {{normal: [rows, columns], seed: s}} needs a whole number as seed",
            hint=hint,
            key=wanted.key,
        )
    return Matrix(np.random.default_rng(int(seed.text)).normal(size=_made(node, "normal", wanted.key)))


def _product(node: Mapping, wanted: Wanted, inner: Reader) -> Matrix:
    value = node.items["product"]
    value = value.spelled_out() if isinstance(value, Numbers) else value
    if not isinstance(value, Sequence) or len(value.items) != 2:
        raise value.error(f"{wanted.key}: {{product: [A, B]}} takes two matrices", key=wanted.key)
    pair = [inner(item, wanted._replace(key=f"{wanted.key}.product.{i}")) for i, item in enumerate(value.items, 1)]
    first, second = (factor.array for factor in pair)
    if first is None or second is None:
        raise value.error(f"{wanted.key}: identity has no size here", hint="Write {identity: 2}.", key=wanted.key)
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[0]:
        what = f"{wanted.key}: a product of shapes {first.shape} and {second.shape}"
        raise value.error(what, hint="The columns of A are as many as the rows of B.", key=wanted.key)
    if first.shape[0] * second.shape[1] > MAX_MADE:
        size = f"{first.shape[0]} × {second.shape[1]}"
        raise value.error(f"{wanted.key}: a product of {size} numbers", hint=f"At most {MAX_MADE:,}.", key=wanted.key)
    with np.errstate(all="ignore"):
        return Matrix(first.astype(float) @ second.astype(float), factors=(first.shape, second.shape))


def _whole_file(node: Mapping, wanted: Wanted) -> Matrix:
    """The matrix that ``file`` and ``key`` name; file: - is standard input, where a KEY=VALUE says so."""
    value = node.items["file"]
    key = word(node.items["key"], wanted.key) if "key" in node.items else None
    if isinstance(value, Opened):
        return from_content(value.content, value.label, key, value, wanted)
    if not isinstance(value, Scalar):
        raise value.error(f"{wanted.key}: {{file: F}} takes a file's name", key=wanted.key)
    name, member = paths.split(value.text) or (value.text, None)
    return from_file(value, name, member if key is None else key, wanted)


def _file(node: Mapping, wanted: Wanted, _: Reader) -> Matrix:
    matrix = _whole_file(node, wanted)
    array, change = matrix.array, _Change(node, wanted.key)
    assert array is not None
    written = matrix.written.transformed(change.apply) if matrix.written and not change.is_none else matrix.written
    return matrix._replace(array=change.apply(array), written=written)


class _Change:
    """What {file: F, rows: [a, b], columns: [a, b], transpose: true} does to the file's array, in this order."""

    def __init__(self, node: Mapping, key: str) -> None:
        self.node, self.key = node, key
        self.parts = {name: self._range(name) for name in ("rows", "columns") if name in node.items}
        self.transpose = "transpose" in node.items and flag(node.items["transpose"], f"{key}.transpose")
        self.is_none = not self.parts and not self.transpose

    def _range(self, name: str) -> tuple[int, int]:
        value = self.node.items[name]
        numbers = [int(leaf.text) if re.fullmatch(r"[0-9]{1,9}", leaf.text) else 0 for leaf in leaves(value)]
        if not numbers or len(numbers) > 2 or numbers[0] < 1 or numbers[-1] < numbers[0]:
            raise value.error(f"{self.key}: {name}: [first, last] counts from 1", key=self.key)
        return numbers[0], numbers[-1]

    def apply(self, array: Any) -> Any:
        if array.ndim == 1 and len(self.parts) == 2:
            array = array[None]  # a single row
        for name, (first, last) in self.parts.items():
            along_rows = name == "rows" and array.ndim > 1  # a vector's entries go by either name
            axis = array.ndim - (2 if along_rows else 1)
            size = array.shape[axis]
            if last > size:
                raise self.node.items[name].error(f"{self.key}: {name} {first} to {last} of {size}", key=self.key)
            array = np.take(array, range(first - 1, last), axis=axis)
        return array.swapaxes(-1, -2) if self.transpose and array.ndim > 1 else array


FORMS: dict[str, Form] = {
    "file": Form(_file, ("key", "transpose", "rows", "columns")),
    IDENTITY: Form(_identity),
    "diag": Form(_diagonal),
    "zeros": Form(_filled("zeros", 0.0)),
    "ones": Form(_filled("ones", 1.0)),
    "normal": Form(_normal, ("seed",)),
    "product": Form(_product),
}
