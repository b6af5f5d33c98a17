"""Every way to write a matrix: nested lists, blocks of rows, and files. `forms` has {diag: [2, 3]} and others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from attncli.language import literals
from attncli.language.errors import AttncliError, Collector, Place
from attncli.language.written import Texts, Written
from attncli.maths.ops import Array
from attncli.reading import delimited, documents, files, paths
from attncli.reading.arrays import Archive
from attncli.reading.documents import Document, Held, Mapping, Node, Numbers, Opened, Scalar, Sequence

Shape = tuple[int, ...]

IDENTITY = "identity"
MOST_ERRORS = 20


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


def read(node: Node, wanted: Wanted) -> Matrix:
    """The matrix that a node writes, in whatever way. Raises AttncliError with the place of what is wrong."""
    if isinstance(node, Held):
        return _from_array(node.array, node, wanted)
    if isinstance(node, Opened):
        return from_content(node.content, node.label, None, node, wanted)
    if isinstance(node, Numbers | Sequence):
        return _from_lists(node, wanted)
    if isinstance(node, Mapping):
        from attncli.reading import forms

        return forms.read(node, wanted)
    assert isinstance(node, Scalar)
    return _from_text(node, wanted)


def is_matrix_like(node: Node) -> bool:
    """Whether a node can be nothing but a matrix: lists, an array, or a text of numbers."""
    if isinstance(node, Scalar):
        return bool(re.match(r"[-+.\d\[(−]", node.text.strip())) or paths.split(node.text) is not None
    return isinstance(node, Held | Opened | Numbers | Sequence)


# Nested lists


def _from_lists(node: Numbers | Sequence, wanted: Wanted) -> Matrix:
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
        return _entry(node, index, wanted, errors)
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


def _entry(node: Scalar, index: Shape, wanted: Wanted, errors: Collector) -> float:
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
        what = f"row {odd + 1} of {name} has {_size(shapes[odd])}, and row 1 has {_size(usual)}"
    hint = "Every row needs as many. Is a number or a bracket missing?"
    _tell(errors, node.items[odd].error(what, hint=hint, key=wanted.key))


def _size(shape: Shape) -> str:
    if len(shape) > 1:
        return "shape (" + ", ".join(map(str, shape)) + ")"
    return f"{shape[0]} number" + ("s" if shape[0] != 1 else "")


def _cell(key: str, index: Shape) -> str:
    return f"{key}[{','.join(str(i + 1) for i in index)}]" if index else key


def leaves(node: Node) -> Iterator[Scalar]:
    """The single values in nested lists, in order."""
    if isinstance(node, Numbers):
        yield from node.scalars()
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from leaves(item)
    elif isinstance(node, Scalar):
        yield node


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


# A text: identity, a file, or a block of rows


def _from_text(node: Scalar, wanted: Wanted) -> Matrix:
    text = node.text.strip()
    if not text or node.is_null:
        raise node.error(f"{wanted.key} is empty", key=wanted.key)
    if text == IDENTITY:
        return Matrix(None)
    found = paths.split(text)
    if found is not None:
        return from_file(node, found[0], found[1], wanted)
    return _from_block(node, wanted)


def _from_block(node: Scalar, wanted: Wanted) -> Matrix:
    """ "1 0; 0 1", or one row a line; entries are separated by blanks or commas."""
    text = _with_lines(node).strip()
    rows = [_cells(row) for row in re.split(r"[;\n]", text.removeprefix("[").removesuffix("]")) if row.strip()]
    if sum(map(len, rows)) > documents.MAX_NODES:
        raise documents.too_large(node.document)
    if len(rows) == 1 and len(rows[0]) == 1 and re.search(r"[^\W\d]", text):
        _refuse_word(node, wanted)
    scalars = _located(node, rows)
    errors = Collector()
    values = [[_entry(cell, (i, j), wanted, errors) for j, cell in enumerate(row)] for i, row in enumerate(scalars)]
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]) and len(errors) == 0:
            what = f"row {i + 1} of {wanted.key} has {_size((len(row),))}, and row 1 has {_size((len(rows[0]),))}"
            errors.add(scalars[i][0].error(what, hint="Every row needs as many.", key=wanted.key))
    errors.raise_any()
    single = len(rows) == 1 and not re.search(r"[;\n]", text)
    array = np.array(values[0] if single else values)
    flat = [cell for row in scalars for cell in row]

    def texts() -> Texts:
        found = np.empty(array.size, dtype=object)
        found[:] = [cell.text for cell in flat]
        return found.reshape(array.shape)

    def find(index: Shape) -> Place:
        return flat[int(np.ravel_multi_index(index, array.shape))].place()

    return Matrix(array, Written(texts, place=node.place(), find=find))


def _with_lines(node: Scalar) -> str:
    """A text with the line ends of the document, which YAML folds into blanks; where ; ends the rows, it may."""
    source = node.document.text[node.start : node.end].strip().strip("'\"")
    if "\n" not in source or ";" in source or "\n" in node.text or source.split() != node.text.split():
        return node.text
    return source


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split(",")] if "," in row else row.split()


def _refuse_word(node: Scalar, wanted: Wanted) -> None:
    """Raise where a single word is no number: it is meant to be something else."""
    try:
        literals.parse(node.text)
    except AttncliError as error:
        text = node.text.strip()
        if len(text) > literals.MAX_LENGTH or not re.fullmatch(r"[\w./~ -]*[a-zA-Z_][\w./~ -]*", text):
            raise AttncliError(
                f"{wanted.key}: {error.what}", hint=error.hint, key=wanted.key, where=node.place()
            ) from None
        known = ", ".join(f".{suffix}" for suffix in paths.SUFFIXES)
        hint = (f"A file's name ends in {known}.", 'A matrix is written [[1, 0], [0, 1]], "1 0; 0 1", or identity.')
        what = f"{wanted.key} is {text!r}, which is neither a matrix nor a file"
        raise node.error(what, hint=hint, key=wanted.key) from None


def _located(node: Scalar, rows: list[list[str]]) -> list[list[Scalar]]:
    """Each cell as a scalar of its own, found in the text of the document in reading order."""
    source, at, lost = node.document.text, node.start, False
    found: list[list[Scalar]] = []
    for row in rows:
        cells = []
        for cell in row:
            start = source.find(cell, at, node.end) if cell and not lost else -1
            lost |= start < 0 and bool(cell)  # the text has escapes: only its own place is known from here on
            at = start + len(cell) if start >= 0 else at
            where = (start, at) if start >= 0 else (node.start, node.end)
            cells.append(Scalar(node.document, *where, cell, False))
        found.append(cells)
    return found


# Files


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
    return _from_array(array, Held(node.document, array, name), wanted)


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
    listed = ", ".join(names[:MOST_ERRORS]) + (
        f", and {len(names) - MOST_ERRORS} more" if len(names) > MOST_ERRORS else ""
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


def nearest(word: str, known: list[str]) -> tuple[str, ...]:
    """A hint that asks for the most similar of some names, or none."""
    from difflib import get_close_matches

    close = get_close_matches(word, known[:1000], 1)
    return (f"Did you mean {close[0]}?",) if close else ()


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
            known = ", ".join(list(node.items)[:MOST_ERRORS])
            hint = f"Name the one that is meant: {_named(name, next(iter(node.items)))}" if node.items else ()
            raise AttncliError(f"{name} holds {known or 'nothing'}", hint=hint)
        node = node.items[member]
    if not isinstance(node, Numbers | Sequence):
        raise AttncliError(f"{name} holds no matrix", hint="A matrix is a list of rows: [[1, 0], [0, 1]].")
    return _from_lists(node, wanted)


def _from_array(array: Array, node: Held, wanted: Wanted) -> Matrix:
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


# Single values


def number(node: Node, key: str) -> float | int:
    """A single number; a whole one without a point as int."""
    if isinstance(node, Held) and node.array.ndim == 0 and node.array.dtype.kind in "iuf":
        return float(node.array) if node.array.dtype.kind == "f" else int(node.array)
    if not isinstance(node, Scalar):
        raise node.error(f"{key} is a single number", key=key)
    try:
        value = literals.parse(node.text).value
    except AttncliError as error:
        raise AttncliError(f"{key}: {error.what}", hint=error.hint, key=key, where=node.place()) from None
    return int(value) if re.fullmatch(r"[-+]?[0-9]{1,15}", node.text.strip()) else value


def word(node: Node, key: str) -> str:
    """A text, as written."""
    if isinstance(node, Held) and node.array.ndim == 0:
        return str(node.array)
    if not isinstance(node, Scalar):
        raise node.error(f"{key} is a text", key=key)
    return node.text


def flag(node: Node, key: str) -> bool:
    """true or false."""
    text = word(node, key).lower()
    if text not in ("true", "false"):
        raise node.error(f"{key} is {text!r}, and may be true or false", key=key)
    return text == "true"
