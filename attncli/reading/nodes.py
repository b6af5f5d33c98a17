"""The nodes of a document's tree, each of which knows where it stands: scalars, lists, mappings, arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from attncli.language import literals
from attncli.language.errors import AttncliError, Place
from attncli.maths.ops import Array

MAX_KEYS = 10_000
"""How many keys a mapping may have."""

NUMBER = re.compile(rf'(?:- )?("?([-+]?(?:{literals.DECIMAL}|\.?(?:inf|nan|NaN)))"?)')
"""A number of a lifted list, perhaps after the dash of its line; group 1 has its quotes, group 2 has none."""

_MOST_SHOWN = 1000
"""Characters of a line that are kept before and after what an error is about."""


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


class Opened(Node):
    """What came through standard input: an array, an archive or a text."""

    __slots__ = ("content", "label")

    def __init__(self, document: Document, content: Any, label: str) -> None:
        super().__init__(document, 0, len(document.text))
        self.content = content
        self.label = label
