"""A matrix as a block of text, "1 0; 0 1", or one row a line."""

from __future__ import annotations

import re

import numpy as np

from attncli.language import literals
from attncli.language.errors import AttncliError, Collector, Place
from attncli.language.written import Texts, Written
from attncli.reading import limits, paths
from attncli.reading.lists import Matrix, Shape, Wanted, entry, size_in_words
from attncli.reading.nodes import Scalar


def from_block(node: Scalar, wanted: Wanted) -> Matrix:
    """ "1 0; 0 1", or one row a line; entries are separated by blanks or commas."""
    text = _with_lines(node).strip()
    rows = [_cells(row) for row in re.split(r"[;\n]", text.removeprefix("[").removesuffix("]")) if row.strip()]
    if sum(map(len, rows)) > limits.MAX_NODES:
        raise limits.too_large(node.document)
    if len(rows) == 1 and len(rows[0]) == 1 and re.search(r"[^\W\d]", text):
        _refuse_word(node, wanted)
    scalars = _located(node, rows)
    errors = Collector()
    values = [[entry(cell, (i, j), wanted, errors) for j, cell in enumerate(row)] for i, row in enumerate(scalars)]
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]) and len(errors) == 0:
            own, first = size_in_words((len(row),)), size_in_words((len(rows[0]),))
            what = f"row {i + 1} of {wanted.key} has {own}, and row 1 has {first}"
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
