"""From bytes to a tree of nodes that know where they stand: YAML, and JSON beside it.

Scalars stay text: what `no`, `010` or `1e-3` mean is for the key to say, not for YAML. Everything is bounded: size,
depth, and what aliases expand to. Tags are refused, and a repeated key is an error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from attncli.language.errors import AttncliError, Place
from attncli.maths.ops import Array
from attncli.reading import paths

MAX_NODES = 3_000_000
"""How many values a document may hold, aliases expanded."""
MAX_PARSED = 150_000
"""How many of them may be anything but plain numbers in lists, which take longer to read."""
MAX_DEPTH = 50
MAX_KEYS = 10_000
"""How many keys a mapping may have."""

MAX_WORD = 50_000
"""Characters in a row without a blank or a comma, in a text of many MB."""
_GAP, _WORD = re.compile(r"[\s,]"), re.compile(r"\S")
_MOST_SHOWN = 1000
"""Characters of a line that are kept before and after what an error is about."""
_CONTROL = bytes([*range(9), 11, 12, *range(14, 32), 127])


class Document:
    """A text, what to call it in messages, and the folder that its paths are relative to.

    ``before`` is what stands before the text on its first line, for the value of a KEY=VALUE, whose lines have no
    numbers. ``confined`` forbids paths that lead out of the folder.
    """

    def __init__(
        self,
        text: str,
        name: str | None = None,
        *,
        folder: Path | None = None,
        before: str | None = None,
        confined: bool = False,
    ) -> None:
        self.text = text
        self.name = name
        self.folder = folder or Path()
        self.before = before or ""
        self.numbered = before is None
        self.confined = confined

    def place(self, start: int, end: int | None = None, *, line_only: bool = False) -> Place:
        """The place of the characters from ``start`` to ``end``; ``line_only`` leaves out column and caret."""
        line = self.text.count("\n", 0, start) + 1
        number = line if self.numbered else None
        if line_only:
            return Place(self.name, number)
        first = self.text.rfind("\n", 0, start) + 1
        stop = self.text.find("\n", first)
        stop = len(self.text) if stop < 0 else stop
        width = max(1, min(end or start + 1, stop) - start)
        before = self.before if line == 1 else ""
        left_out = max(0, start - first - _MOST_SHOWN)
        text = self.text[first + left_out : min(stop, start + _MOST_SHOWN)]
        column = start - first + 1 + len(before)
        if left_out:
            return Place(self.name, number, column, text, width, left_out + len(before))
        return Place(self.name, number, column, before + text, width)


class Node:
    """A part of a document, from character ``start`` to ``end``."""

    __slots__ = ("document", "end", "start")

    def __init__(self, document: Document, start: int, end: int) -> None:
        self.document = document
        self.start = start
        self.end = end

    def place(self, *, line_only: bool = False) -> Place:
        end = self.end if self.end > self.start else None
        return self.document.place(self.start, end, line_only=line_only)

    def error(self, what: str, hint: str | tuple[str, ...] = (), key: str | None = None) -> AttncliError:
        return AttncliError(what, hint=hint, key=key, where=self.place())


class Scalar(Node):
    """A word, a number or a text, as written; ``plain`` where it has no quotes and is no block."""

    __slots__ = ("plain", "text")

    def __init__(self, document: Document, start: int, end: int, text: str, plain: bool) -> None:
        self.document = document
        self.start = start
        self.end = end
        self.text = text
        self.plain = plain

    @property
    def is_null(self) -> bool:
        return self.plain and self.text in ("", "~", "null", "Null", "NULL")


class Sequence(Node):
    """A list."""

    __slots__ = ("items",)

    def __init__(self, document: Document, start: int, end: int, items: list[Node]) -> None:
        super().__init__(document, start, end)
        self.items = items


class Mapping(Node):
    """Keys and values; ``keys`` holds the place of each key."""

    __slots__ = ("items", "keys")

    def __init__(self, document: Document, start: int, end: int) -> None:
        super().__init__(document, start, end)
        self.items: dict[str, Node] = {}
        self.keys: dict[str, Scalar] = {}

    def put(self, key: Node, value: Node) -> None:
        """Add a pair; AttncliError where the key is no text, or is there already."""
        if not isinstance(key, Scalar):
            raise key.error("a key must be a word", hint="Is a comma or a quote missing?")
        if key.text in self.keys:
            first, again = self.keys[key.text].place().line, key.place().line
            lines = f"line {first} and line {again}" if first != again else f"line {first}"
            what = f"{key.text} is given twice" + (f": {lines}" if first is not None else "")
            raise key.error(what, hint="Drop one of the two.", key=key.text)
        if len(self.items) >= MAX_KEYS:
            raise key.error(f"more than {MAX_KEYS:,} keys", hint="Is this the file that you mean?")
        self.items[key.text] = value
        self.keys[key.text] = key


class Numbers(Node):
    """A list of plain numbers, read at once, one axis a level. Texts and places are found when asked for."""

    __slots__ = ("array", "lines")

    def __init__(self, document: Document, start: int, end: int, array: Array, *, lines: bool = False) -> None:
        super().__init__(document, start, end)
        self.array = array
        self.lines = lines
        """Whether these are items of the list around them, one "- 1" or "- [1, 2]" a line."""

    def scalars(self) -> list[Scalar]:
        """Its numbers one by one, in order."""
        return [Scalar(self.document, *match.span(1), match[2], True) for match in self._matches()]

    def scalar(self, flat: int) -> Scalar:
        """One of its numbers, by its index in order."""
        match = next(islice(self._matches(), flat, None))
        return Scalar(self.document, *match.span(1), match[2], True)

    def _matches(self) -> Iterator[re.Match[str]]:
        from attncli.reading.lifting import NUMBER

        return NUMBER.finditer(self.document.text, self.start, self.end)

    def spelled_out(self) -> Sequence:
        """The same as nested sequences of scalars."""
        scalars = iter(self.scalars())
        return self._nested(scalars, self.array.shape)

    def _nested(self, scalars: Iterator[Scalar], shape: tuple[int, ...]) -> Sequence:
        if len(shape) == 1:
            items: list[Node] = [next(scalars) for _ in range(shape[0])]
        else:
            items = [self._nested(scalars, shape[1:]) for _ in range(shape[0])]
        return Sequence(self.document, items[0].start, items[-1].end, items)


class Held(Node):
    """An array that came as such, from a file that ``label`` names."""

    __slots__ = ("array", "label")

    def __init__(self, document: Document, array: Array, label: str) -> None:
        super().__init__(document, 0, 0)
        self.array = array
        self.label = label

    def place(self, *, line_only: bool = False) -> Place:
        return Place(self.label)


STANDARD_INPUT = "standard input"
"""What messages call it."""


class Opened(Node):
    """What came through standard input: an array, an archive or a text."""

    __slots__ = ("content", "label")

    def __init__(self, document: Document, content: Any, label: str) -> None:
        super().__init__(document, 0, len(document.text))
        self.content = content
        self.label = label


def decode(data: bytes, name: str | None) -> str:
    """The text of a file: UTF-8, with or without a mark in front, or UTF-16; line ends become ``\\n``.

    Raises AttncliError that names the first byte that is no UTF-8, or says that the file holds no text.
    """
    encoding = _encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _not_text(data, name, encoding, error) from None
    text = text.removeprefix("\ufeff")
    odd = _first_unprintable(text)
    if odd is not None:
        place = Document(text, name).place(odd)
        raise AttncliError(
            f"a character that no text has (U+{ord(text[odd]):04X})", where=Place(name, place.line, place.column),
            hint="Is it a binary file? Matrices are read from .npy, .npz, .csv, .tsv, .txt, .json and .safetensors.",
        )  # fmt: skip
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def _encoding(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if len(data) > 1 and data[1] == 0 and data[0]:
        return "utf-16-le"
    if len(data) > 1 and data[0] == 0 and data[1]:
        return "utf-16-be"
    return "utf-8"


def _not_text(data: bytes, name: str | None, encoding: str, error: UnicodeDecodeError) -> AttncliError:
    kind = paths.kind_by_content(data)
    if kind is not None:
        return AttncliError(f"this is {kind}, not text", where=Place(name))
    if encoding != "utf-8" or any(byte in _CONTROL for byte in data[:1000]):
        return AttncliError("this is not text", hint="Save the file as UTF-8.", where=Place(name))
    before = data[: error.start].decode("utf-8")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    byte = data[error.start]
    guess = bytes([byte]).decode("latin-1")
    what = f"byte 0x{byte:02X} is not UTF-8"
    seems = f"It may be Latin-1, where it is {guess!r}: save" if guess.isprintable() else "Save"
    return AttncliError(what, hint=f"{seems} the file as UTF-8.", where=Place(name, line, column))


def _first_unprintable(text: str) -> int | None:
    if text.isascii() and not text.encode().translate(None, bytes(set(range(128)) - set(_CONTROL))):
        return None
    if text.replace("\n", "").replace("\t", "").replace("\r", "").isprintable():
        return None  # no need of the pattern, which takes 5 ms to compile
    match = re.search("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]", text)
    return match.start() if match else None


def parse(document: Document, *, lift: bool = True, pure: bool = False) -> Node | None:
    """The tree of a document; None where there is nothing in it but blanks and comments.

    ``lift`` reads lists of plain numbers at once and ``pure`` takes the YAML reader that is written in Python:
    neither changes the tree's meaning. Raises AttncliError with line and column.
    """
    from attncli.reading import lifting

    _refuse_too_many(document)
    start = document.text.lstrip()[:1]
    name = (document.name or "").lower()
    if start in ("{", "[") or name.endswith(".json"):
        from attncli.reading import json_nodes

        try:
            return lifting.parsed(document, json_nodes.tree, lift)
        except AttncliError:
            if name.endswith(".json"):
                raise
    from attncli.reading import yaml_nodes

    return lifting.parsed(document, lambda *args: yaml_nodes.tree(*args, pure=pure), lift)


def _refuse_too_many(document: Document) -> None:
    """Raise early where counting alone shows that a text is too much."""
    text = document.text
    if len(text) < MAX_NODES:
        return
    if text.count(",") + text.count("\n") > 2 * MAX_NODES or text.count(",") > MAX_NODES:
        raise too_large(document)
    for start in range(0, len(text), MAX_WORD):
        chunk = text[start : start + MAX_WORD]
        if len(chunk) == MAX_WORD and not (_GAP.search(chunk) and _WORD.search(chunk)):
            what = f"{MAX_WORD:,} characters without a blank, or as many blanks"
            raise AttncliError(what, where=document.place(start, line_only=True))


class TooLargeError(AttncliError):
    """A document of more values than are read."""


def too_large(document: Document, limit: int = MAX_NODES) -> TooLargeError:
    """The error for a document of too many values."""
    hint = "Save large matrices as .npy files (numpy.save) and name these: W_Q: w_q.npy."
    return TooLargeError(f"more than {limit:,} values", where=Place(document.name), hint=hint)


class Count:
    """Counts the nodes of a document, aliases expanded, up to the limit."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.nodes = 0
        self.parsed = 0

    def add(self, nodes: int) -> None:
        """Count what was read at once, or again through an alias."""
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise too_large(self.document)

    def add_one(self) -> None:
        """Count a node that the parser made."""
        self.parsed += 1
        self.nodes += 1
        if self.parsed > MAX_PARSED:
            raise too_large(self.document, MAX_PARSED)


def standard_input(limit: int) -> bytes:
    """All of standard input, as bytes; AttncliError beyond ``limit`` bytes."""
    stream = getattr(sys.stdin, "buffer", sys.stdin)
    data = stream.read(limit + 1) if stream is not None else b""
    if isinstance(data, str):
        data = data.encode()
    if len(data) > limit:
        raise AttncliError(f"standard input is larger than {limit // 2**20} MB", where=Place("standard input"))
    return bytes(data)
