"""A matrix from a file: an array, an entry of an archive, or a text."""

from __future__ import annotations

import numpy as np

from attncli.language.errors import AttncliError, Place
from attncli.language.written import Written
from attncli.maths.ops import Array
from attncli.reading import delimited, documents, files
from attncli.reading.arrays import Archive
from attncli.reading.lists import Matrix, Wanted, from_lists
from attncli.reading.nodes import Document, Held, Mapping, Node, Numbers, Sequence
from attncli.reading.values import nearest

_MOST_LISTED = 20
"""How many entries of a file an error names."""


def from_file(node: Node, name: str, member: str | None, wanted: Wanted) -> Matrix:
    """The matrix in a file that a node names."""
    try:
        content = files.load(files.find(name, node), name)
        return from_content(content, name, member, node, wanted)
    except AttncliError as error:
        if error.where is not None and error.where.file not in (None, node.document.name):
            raise
        raise AttncliError(error.what, hint=error.hint, key=wanted.key, where=error.where or node.place()) from None


def from_content(content: files.Content, name: str, member: str | None, node: Node, wanted: Wanted) -> Matrix:
    """The matrix in a file that was opened: the member of an archive, the array, or what the text says."""
    if isinstance(content, Document):
        return _from_document(content, name, member, wanted)
    if isinstance(content, Archive):
        member = member if member is not None else _meant(list(content), wanted)
        array, name = _member(content, name, member), f"{name}:{member}"
    elif member is not None:
        raise AttncliError(f"{name} holds a single array, and no member {member}", hint=_alone(name))
    else:
        array = content
    return from_array(array, Held(node.document, array, name), wanted)


def _meant(names: list[str], wanted: Wanted) -> str | None:
    """The one of several entries that is meant where none is named: that of the key's own name, or the only one."""
    return wanted.key if wanted.key in names else names[0] if len(names) == 1 else None


def _named(name: str, member: str) -> str:
    """How a person names an entry of a file, or of what comes through standard input."""
    return f"{{file: -, key: {member}}}" if name == documents.STANDARD_INPUT else f"{name}:{member}"


def _alone(name: str) -> str:
    """The hint to name a file without any entry of it."""
    return f"Write {'-, without key' if name == documents.STANDARD_INPUT else name}."


def _member(archive: Archive, name: str, member: str | None) -> Array:
    names = list(archive)
    listed = ", ".join(names[:_MOST_LISTED]) + (
        f", and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    )
    if member is None:
        hint = f"Name the one that is meant: {_named(name, names[0])}" if names else ()
        raise AttncliError(f"{name} holds {f'several arrays: {listed}' if names else 'no array'}", hint=hint)
    if member not in archive:
        raise AttncliError(f"{name} has no array {member!r}", hint=(*nearest(member, names), f"It holds {listed}."))
    try:
        return archive[member]
    except AttncliError as error:
        raise AttncliError(f"{name}: {error.what}", hint=error.hint) from None


def _from_document(document: Document, name: str, member: str | None, wanted: Wanted) -> Matrix:
    """A text file: lists where it starts with a bracket or a dash, else rows of numbers."""
    start = document.text.lstrip()[:2]
    if not (start[:1] in ("[", "{") or start == "- " or name.lower().endswith(".json")):
        if member is not None:
            raise AttncliError(f"{name} is one matrix, and has no member {member}", hint=_alone(name))
        table = delimited.read(document, blanks=wanted.blanks)
        return Matrix(table.array, Written(table.texts, place=Place(name), find=table.find))
    node = documents.parse(document)
    if isinstance(node, Mapping):
        member = member if member is not None else _meant(list(node.items), wanted)
        if member is None or member not in node.items:
            known = ", ".join(list(node.items)[:_MOST_LISTED])
            hint = f"Name the one that is meant: {_named(name, next(iter(node.items)))}" if node.items else ()
            raise AttncliError(f"{name} holds {known or 'nothing'}", hint=hint)
        node = node.items[member]
    if not isinstance(node, Numbers | Sequence):
        raise AttncliError(f"{name} holds no matrix", hint="A matrix is a list of rows: [[1, 0], [0, 1]].")
    return from_lists(node, wanted)


def from_array(array: Array, node: Held, wanted: Wanted) -> Matrix:
    """A matrix of floats from an array of any real dtype, with the values that it holds; float32 is not copied."""
    if array.dtype.kind in "US":
        raise AttncliError(f"{node.label} holds text ({array.dtype}), not numbers", key=wanted.key)
    if array.ndim == 0:
        hint = "A matrix has rows and columns: numpy.save('z.npy', [[1, 0], [0, 1]])."
        raise AttncliError(f"{node.label} holds a single number: its shape is ()", hint=hint, key=wanted.key)
    note = None
    if array.dtype.kind == "f" and array.dtype.itemsize == 2:
        note = f"{node.label} holds {array.dtype.name}: about 3 digits of each number ({wanted.key})."
    if array.dtype == bool and wanted.booleans:
        return Matrix(array, note=note)
    stored = array.dtype
    kept = stored.kind == "f" and stored.itemsize in (4, 8) and stored.isnative
    return Matrix(array if kept else array.astype(np.float64), stored=stored, note=note)
