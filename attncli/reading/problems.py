"""Problems from files, from standard input, and from KEY=VALUE."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from attncli.language.errors import AttncliError, Collector, Place
from attncli.language.written import Written
from attncli.model.keys import HEAD_KEYS, KEYS, unknown_key
from attncli.model.problem import Problem
from attncli.reading import assignments, documents, files, identities, masks, matrices, values
from attncli.reading.arrays import Archive, Npz
from attncli.reading.assignments import StandardInput
from attncli.reading.lists import Matrix, Wanted
from attncli.reading.mistakes import MOST_ERRORS, raise_some
from attncli.reading.nodes import Document, Held, Mapping, Node, Numbers, Scalar, Sequence

_FINITE = ("Z", "memory", "memory_V", "v", "b")


def load(source: str | os.PathLike[str] | None = None, /, *settings: str, foreign: bool = False) -> Problem:
    """The problem in a file, and what KEY=VALUE says on top of it.

    ``source`` is a path, "-" for standard input, the name of a shipped example, or None where ``settings``, each a
    KEY=VALUE, say everything. Paths in a file are relative to the file, those of KEY=VALUE to the working folder.
    ``foreign``: weights and outputs may stand beside what they must agree with, as in `Problem`.

    Raises AttncliError, or AttncliErrors for several mistakes, with file, line and column.

    >>> load(None, "Q=[[1, 0]]", "K=[[1, 0], [0, 1]]", "V=[[1], [2]]").m
    2
    """
    stdin = StandardInput()
    root = read_root(source, stdin)
    reading = Reading(root, foreign)
    for text in settings:
        with reading.keeping_errors_of(assignments.first_key(text)):
            assignments.apply(root, text, stdin)
    return problem_of(reading)


def read_root(source: str | os.PathLike[str] | None, stdin: StandardInput) -> Mapping:
    """The keys and values of a problem file, none of them read yet."""
    if source is None:
        return Mapping(Document("", None), 0, 0)
    text = os.fspath(source)
    if text == "-":
        return root_of(stdin.read("PROBLEM"), "standard input")
    path = find_problem(text)
    if path.suffix.lower() == ".npz" and files.is_regular(path):
        return root_of(files.load(path, text), text)
    data = files.read_text(path, text)
    return root_of(files.from_bytes(data, text, folder=path.parent), text)


def find_problem(text: str) -> Path:
    """The file that PROBLEM means: a path, or else the name of a shipped example."""
    path = Path(text)
    if os.path.lexists(path) or "\0" in text:
        return path
    from attncli.reading import examples

    shipped = examples.path(text)
    if shipped is not None:
        return shipped
    if path.suffix or len(path.parts) > 1 or files.is_pattern(text):
        return path
    error, missing = examples.unknown(text), files.missing(path, text)
    near = [hint for hint in missing.hint if hint.startswith("Did you")]
    raise AttncliError(f"{text}: there is no such file, and no example of this name", hint=(*near, *error.hint))


def root_of(content: files.Content, name: str) -> Mapping:
    """The mapping in a file; AttncliError where it holds something else."""
    if isinstance(content, Archive):
        return _root_of_archive(content, name)
    if not isinstance(content, Document):
        hint = "To give a single matrix, name its key: Z=z.npy."
        raise AttncliError("this is one matrix, not a problem", hint=hint, where=Place(name))
    node = documents.parse(content)
    if node is None:
        hint = "A problem has keys: Z: [[1, 0], [0, 1]], W_Q: ..."
        raise AttncliError("the file says nothing", hint=hint, where=Place(name))
    if isinstance(node, Mapping):
        return node
    kind = "a list" if isinstance(node, Sequence | Numbers) else "a single text"
    hint = "A problem has keys: Z: [[1, 0], [0, 1]], W_Q: ..."
    if Path(name).suffix.lower() in (".csv", ".tsv", ".txt"):
        hint = f"To give a single matrix, name its key: Z={name}."
    raise node.error(f"this is {kind}, not a problem", hint=hint)


def _root_of_archive(archive: Archive, name: str) -> Mapping:
    document = Document("", name)
    root = Mapping(document, 0, 0)
    if not isinstance(archive, Npz):
        raise AttncliError(
            "a .safetensors file is no problem", hint="Name its matrices in one: W_Q: w.safetensors:NAME."
        )
    for member in archive:
        try:
            held = Held(document, archive[member], f"{name}:{member}")
        except AttncliError as error:
            raise AttncliError(error.what, hint=error.hint, where=Place(name)) from None
        key = Scalar(Document(f"{member}=", name, before=""), 0, len(member), member, True)
        assignments.put(root, member.split("."), key, held)
    return root


def problem_of(reading: Reading) -> Problem:
    """The problem that a tree of keys and values makes. Raises AttncliErrors with all independent mistakes."""
    root = reading.root
    reading.read_all()
    if not reading.errors:
        try:
            return reading.problem()
        except AttncliError as error:
            reading.errors.add(error)
    else:
        reading.add_mistakes_beyond()
    raise_some(reading.errors, lambda key: find(root, key), root.document.name, reading.counted_only)
    raise AssertionError("there was a mistake")


def find(root: Mapping, key: str) -> Place | None:
    """The line of a key (``W_K``, ``heads.2.W_Q``, ``mask.1``), or of the nearest thing around it."""
    node: Node = root
    place = None
    for part in key.split("."):
        if isinstance(node, Mapping) and part in node.items:
            place = _line_of(node.keys[part])
            node = node.items[part]
        elif isinstance(node, Sequence) and part.isdigit() and 1 <= int(part) <= len(node.items):
            node = node.items[int(part) - 1]
            place = _line_of(node)
        else:
            break
    return place or (Place(root.document.name) if root.document.name else None)


def _line_of(node: Node) -> Place:
    """The line of a key; of a KEY=VALUE, which has no lines, the text with a caret."""
    return node.place(line_only=node.document.numbered)


class Reading:
    """Goes through the keys of a problem; keeps the values, how they were written, and what is wrong with them."""

    def __init__(self, root: Mapping, foreign: bool = False) -> None:
        self.root = root
        self.foreign = foreign
        self.errors = Collector()
        self.values: dict[str, Any] = {}
        self.written: dict[str, Written] = {}
        self.factors: dict[str, Any] = {}
        self.notes: list[str] = []
        self.failed: set[str] = set()
        self.counted_only = 0
        """Mistakes that are only counted: unknown keys beyond the first ones."""

    @contextlib.contextmanager
    def keeping_errors_of(self, name: str) -> Iterator[None]:
        """Keep an error that is raised in the block, and that this key could not be read."""
        try:
            yield
        except AttncliError as error:
            self.errors.add(error)
            self.failed.add(name)

    def read_all(self) -> None:
        """Read every key, and collect what is wrong with any of them."""
        for name, node in self.root.items.items():
            if len(self.errors) > MOST_ERRORS + 1 and name not in KEYS:
                self.counted_only += 1
                continue
            with self.keeping_errors_of(name):
                if name not in KEYS:
                    raise unknown_key(name)
                self._read_key(name, node)
        if "from" in self.root.items and "from" not in self.failed:
            with self.errors.collect():
                self._read_framework(self.root.items["from"])
        if not self.errors:
            self._resolve_identities()

    def _resolve_identities(self) -> None:
        try:
            identities.resolve(self.values)
        except AttncliError as error:
            self.errors.add(error)
            self.failed.add(str(error.key).partition(".")[0])

    def _read_key(self, name: str, node: Node) -> None:
        kind = KEYS[name].kind
        if isinstance(node, Scalar) and node.is_null and kind not in ("text", "labels"):
            raise AttncliError(f"{name} is empty", hint="Give it a value, or drop the line.", key=name)
        if kind in ("matrix", "vector"):
            self.values[name] = self.matrix(name, node)
        elif kind == "heads":
            self.values[name] = self.heads(node)
        elif kind == "sheet":
            from attncli.reading import sheets

            self.values[name] = sheets.of_node(node, name)
        elif kind == "mask":
            self.values[name] = masks.read(node, name)
        elif kind != "from":
            self.values[name] = _SIMPLE[kind](node, name)
        if kind == "number" and isinstance(node, Scalar):
            self.written[name] = Written(lambda: np.array(node.text, dtype=object))

    def matrix(self, name: str, node: Node) -> Any:
        """The array of a key or key path; `identity` stands for itself until all others are read."""
        matrix = matrices.read(node, Wanted(name))
        last = name.rpartition(".")[2]
        if matrix.array is None:
            return identities.Identity(node)
        if last in _FINITE or last.startswith(("W_", "b_")):
            refuse_not_finite(name, matrix, node)
        if matrix.written is not None:
            self.written[name] = matrix.written
        if matrix.factors is not None:
            self.factors[name] = matrix.factors
        if matrix.note:
            self.notes.append(matrix.note)
        if matrix.array.ndim == 1 and KEYS[last].kind == "matrix" and self._columns():
            return matrix.array[:, None]
        return matrix.array

    def _columns(self) -> bool:
        layout = self.root.items.get("layout")
        return isinstance(layout, Scalar) and layout.text == "columns"

    def heads(self, node: Node) -> Any:
        if not isinstance(node, Sequence):
            number = node.text.strip() if isinstance(node, Scalar) else ""
            hint = f"Did you mean num_heads: {number}?" if number.isdigit() else ()
            raise node.error("heads is a list of {W_Q, W_K, W_V}, one entry a head", hint=hint, key="heads")
        errors = Collector()
        heads: list[dict[str, Any]] = []
        for r, entry in enumerate(node.items, 1):
            if not isinstance(entry, Mapping):
                errors.add(entry.error(f"head {r} is no {{W_Q: ..., W_K: ..., W_V: ...}}", key=f"heads.{r}"))
                continue
            heads.append({})
            for name, value in entry.items.items():
                with errors.collect():
                    if name not in HEAD_KEYS:
                        raise unknown_key(name, HEAD_KEYS, f"heads.{r}.{name}")
                    heads[-1][name] = self.matrix(f"heads.{r}.{name}", value)
        errors.raise_any()
        return heads

    def _read_framework(self, node: Node) -> None:
        from attncli.reading import frameworks

        filled = frameworks.read(node, self.root)
        for name in filled.values:
            if name in self.root.items and not name.startswith("num_"):
                what = f"{name} is given beside from, which fills it"
                self.errors.add(
                    AttncliError(what, hint=f"Drop {name}, or drop from and name the file's matrices.", key=name)
                )
        self.values |= filled.values
        self.notes += filled.notes

    def problem(self) -> Problem:
        return Problem(
            written=self.written, factors=self.factors, notes=self.notes, foreign=self.foreign, **self.values
        )  # fmt: skip

    def add_mistakes_beyond(self) -> None:
        """Mistakes among the keys that could be read, where they don't come from the others."""
        meant = {hint.removeprefix("Did you mean ").rstrip("?") for error in self.errors for hint in error.hint}
        unread = self.failed | (meant & set(KEYS))
        values = {name: value for name, value in self.values.items() if name not in unread}
        with contextlib.suppress(AttncliError):
            identities.resolve(values, stand_in_for=unread)
        unread |= {name for name, value in values.items() if identities.is_open(value)}
        try:
            Problem(written=self.written, **{name: value for name, value in values.items() if name not in unread})
        except AttncliError as error:
            for one in error.errors:
                text = " ".join((one.what, *one.hint))
                if one.key in self.values and not any(re.search(rf"\b{re.escape(name)}\b", text) for name in unread):
                    self.errors.add(one)


def refuse_not_finite(name: str, matrix: Matrix, node: Node) -> None:
    """Raise where an input or a weight is NaN or infinite, with the place of the entry."""
    assert matrix.array is not None
    finite = np.isfinite(matrix.array)
    if finite.all():
        return
    index = tuple(int(i) for i in np.argwhere(~finite)[0])
    cell = ",".join(str(i + 1) for i in index)
    found = "NaN" if np.isnan(matrix.array[index]) else f"{matrix.array[index]}"
    place = matrix.written.place(index) if matrix.written else None
    what = f"{name}[{cell}] is {found}: inputs and weights are finite numbers"
    raise AttncliError(what, key=name, where=place)


def labels(node: Node, key: str) -> tuple[str, ...]:
    """Words, as written: `no`, `null` and 1.50 are words."""
    if isinstance(node, Held) and node.array.ndim == 1:
        return tuple(str(label) for label in node.array)
    if isinstance(node, Numbers) and node.array.ndim == 1:
        return tuple(scalar.text for scalar in node.scalars())
    if not isinstance(node, Sequence):
        text = node.text if isinstance(node, Scalar) else "the, cat, sat"
        hint = f"Write {key}: [{', '.join(text.replace(',', ' ').split())}]"
        raise node.error(f"{key} is a list of words", hint=hint, key=key)
    return tuple(_labels(node, key))


def _labels(node: Sequence, key: str) -> Iterator[str]:
    for i, item in enumerate(node.items, 1):
        if not isinstance(item, Scalar):
            raise item.error(
                f"{key}: entry {i} is no word", hint="Quote a word that holds brackets or a colon.", key=key
            )
        yield item.text


def rounding(node: Node, key: str) -> Any:
    """``round: 2``, or ``round: {weights: 2}`` for some stages alone."""
    if not isinstance(node, Mapping):
        return values.number(node, key)
    if not node.items:
        raise node.error(f"{key} names no stage", hint="Write round: 2, or round: {weights: 2}.", key=key)
    return {name: values.number(value, f"{key}.{name}") for name, value in node.items.items()}


_SIMPLE: dict[str, Callable[[Node, str], Any]] = {
    "text": values.word,
    "labels": labels,
    "number": values.number,
    "round": rounding,
    "count": values.number,
    "flag": values.flag,
    "choice": values.word,
}
