"""JSON to nodes with places. JSON is a part of YAML but for tabs, ``\\/``, surrogate pairs, and YAML's own limits."""

from __future__ import annotations

import re

from attncli.language.errors import AttncliError
from attncli.reading.lifting import Lifted
from attncli.reading.limits import MAX_DEPTH, Count
from attncli.reading.nodes import Document, Mapping, Node, Numbers, Scalar, Sequence

_TOKEN = re.compile(r'[ \t\n]*+(?:([\[\]{},:])|("(?:[^"\\\n]|\\.)*+")|([-+\w.]++))')

_COMMA = "Drop the comma before it."


def tree(document: Document, text: str, lists: dict[int, Lifted]) -> Node | None:
    """The tree of a JSON text; None where it is empty. Raises AttncliError with line and column."""
    if not text.strip():
        return None
    return _Parser(document, text, lists).whole()


class _Parser:
    def __init__(self, document: Document, text: str, lists: dict[int, Lifted]) -> None:
        self.document = document
        self.text = text
        self.lists = lists
        self.count = Count(document)
        self.at = 0
        self.read()

    def read(self) -> None:
        """Move to the next token."""
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            rest = self.text[self.at :]
            self.start = self.at + len(rest) - len(rest.lstrip(" \t\n"))
            self.token = ""
            return
        self.at, self.start, self.token = match.end(), match.end() - len(match[match.lastindex or 0]), match[0].lstrip()

    def fail(self, what: str, hint: str = "") -> AttncliError:
        found = "the end of the text" if self.start >= len(self.text) else repr(self.token or self.text[self.start])
        place = self.document.place(min(self.start, max(0, len(self.text) - 1)))
        return AttncliError(f"not valid JSON: {what}, and here is {found}", hint=hint, where=place)

    def whole(self) -> Node:
        node = self.value(1)
        if self.start < len(self.text) and self.text[self.start :].strip():
            raise self.fail("one value was expected")
        return node

    def value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            place = self.document.place(self.start)
            raise AttncliError(f"nested more than {MAX_DEPTH} deep", where=place)
        self.count.add_one()
        if self.token == "[":
            return self.sequence(depth)
        if self.token == "{":
            return self.mapping(depth)
        return self.scalar()

    def scalar(self) -> Scalar:
        token = self.token
        if not token or token in "]},:":
            raise self.fail("a value was expected", _COMMA if token in ("]", "}") else "")
        node = Scalar(self.document, self.start, self.at, token, token[0] != '"')
        if not node.plain:
            import json

            try:
                node.text = json.loads(token, strict=False)
                node.text.encode()
            except ValueError:
                raise node.error(
                    "not valid JSON: a \\ that JSON does not know in a text", hint="Write \\\\ for a \\."
                ) from None
        self.read()
        return node

    def sequence(self, depth: int) -> Node:
        start = self.start
        lifted = self.lists.get(start)
        if lifted is not None:
            return self.numbers(lifted)
        items: list[Node] = []
        self.read()
        while self.token != "]":
            if items:
                self.expect(",", "a comma or ]")
            items.append(self.value(depth + 1))
        end = self.at
        self.read()
        return Sequence(self.document, start, end, items)

    def numbers(self, lifted: Lifted) -> Numbers:
        import numpy as np

        lifted.met = True
        array = np.asarray(lifted.array)
        self.count.add(array.size)
        self.read()
        self.read()
        return Numbers(self.document, lifted.start, lifted.end, array)

    def mapping(self, depth: int) -> Mapping:
        node = Mapping(self.document, self.start, self.at)
        self.read()
        while self.token != "}":
            if node.items:
                self.expect(",", "a comma or }")
            if self.token[:1] != '"':
                raise self.fail('a key in "quotes" was expected', _COMMA if self.token == "}" else "")
            key = self.scalar()
            self.expect(":", "a colon after the key")
            node.put(key, self.value(depth + 1))
        node.end = self.at
        self.read()
        return node

    def expect(self, token: str, what: str) -> None:
        if self.token != token:
            raise self.fail(f"{what} was expected")
        self.read()
