"""A mask, as a word, a matrix, {keep: M} and the like, or a list of these: handed on for `attncli.masks` to fit."""

from __future__ import annotations

from typing import Any

from attncli.reading import forms, matrices, values
from attncli.reading.lists import Wanted
from attncli.reading.nodes import Mapping, Node, Numbers, Scalar, Sequence

_OF_MATRICES = ("keep", "block", "add")
_OF_NUMBERS = ("lengths", "window", "offset")


def read(node: Node, key: str) -> Any:
    """A word, an array, a dict, or a list of these. Raises AttncliError where a matrix or a number can't be read."""
    if isinstance(node, Scalar) and not matrices.is_matrix_like(node):
        return node.text
    if isinstance(node, Mapping) and not any(name in node.items for name in forms.FORMS):
        return {name: _part(name, value, f"{key}.{name}") for name, value in node.items.items()}
    if isinstance(node, Sequence) and any(_is_mask(item) for item in node.items):
        return [read(item, f"{key}.{i}") for i, item in enumerate(node.items, 1)]
    return _matrix(node, key)


def _is_mask(node: Node) -> bool:
    """Whether an entry of a list is a mask of its own, and not a row of a matrix."""
    words = isinstance(node, Scalar) and not matrices.is_matrix_like(node) and node.text.lower() not in _ENTRIES
    return words or isinstance(node, Mapping)


_ENTRIES = ("true", "false", "inf", ".inf", "nan", ".nan", "infinity", "")


def _matrix(node: Node, key: str) -> Any:
    matrix = matrices.read(node, Wanted(key, booleans=True))
    if matrix.array is None:
        raise node.error(f"{key}: identity has no size here", hint="Write {keep: {identity: 3}}.", key=key)
    return matrix.array


def _part(name: str, node: Node, key: str) -> Any:
    if name in _OF_MATRICES:
        return _matrix(node, key)
    if name in _OF_NUMBERS:
        return _numbers(node, key)
    return node.text if isinstance(node, Scalar) else None


def _numbers(node: Node, key: str) -> Any:
    """A number, or a list of them; null in a window is no bound."""
    if isinstance(node, Scalar):
        return None if node.is_null else values.number(node, key)
    if isinstance(node, Numbers):
        node = node.spelled_out()
    if isinstance(node, Sequence):
        return [_numbers(item, key) for item in node.items]
    return _matrix(node, key)
