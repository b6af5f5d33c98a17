"""Every way to write a matrix: nested lists, blocks of rows, files, and {diag: [2, 3]} and the like of `forms`."""

from __future__ import annotations

import re

from attncli.reading import forms, paths
from attncli.reading.blocks import from_block
from attncli.reading.contents import from_array, from_content, from_file
from attncli.reading.lists import Matrix, Wanted, from_lists
from attncli.reading.nodes import Held, Mapping, Node, Numbers, Opened, Scalar, Sequence


def read(node: Node, wanted: Wanted) -> Matrix:
    """The matrix that a node writes, in whatever way. Raises AttncliError with the place of what is wrong."""
    if isinstance(node, Held):
        return from_array(node.array, node, wanted)
    if isinstance(node, Opened):
        return from_content(node.content, node.label, None, node, wanted)
    if isinstance(node, Numbers | Sequence):
        return from_lists(node, wanted)
    if isinstance(node, Mapping):
        return forms.read(node, wanted, read)
    assert isinstance(node, Scalar)
    return _from_text(node, wanted)


def is_matrix_like(node: Node) -> bool:
    """Whether a node can be nothing but a matrix: lists, an array, or a text of numbers."""
    if isinstance(node, Scalar):
        return bool(re.match(r"[-+.\d\[(−]", node.text.strip())) or paths.split(node.text) is not None
    return isinstance(node, Held | Opened | Numbers | Sequence)


# A text: identity, a file, or a block of rows


def _from_text(node: Scalar, wanted: Wanted) -> Matrix:
    text = node.text.strip()
    if not text or node.is_null:
        raise node.error(f"{wanted.key} is empty", key=wanted.key)
    if text == forms.IDENTITY:
        return Matrix(None)
    found = paths.split(text)
    if found is not None:
        return from_file(node, found[0], found[1], wanted)
    return from_block(node, wanted)
