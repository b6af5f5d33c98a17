"""From bytes to a tree of nodes that know where they stand: YAML, and JSON beside it.

Scalars stay text: what `no`, `010` or `1e-3` mean is for the key to say, not for YAML. Everything is bounded: size,
depth, and what aliases expand to. Tags are refused, and a repeated key is an error.
"""

from __future__ import annotations

import re
import sys

from attncli.language.errors import AttncliError, Place
from attncli.reading import paths
from attncli.reading.limits import MAX_NODES, too_large
from attncli.reading.nodes import Document, Node

MAX_WORD = 50_000
"""Characters in a row without a blank or a comma, in a text of many MB."""
_GAP, _WORD = re.compile(r"[\s,]"), re.compile(r"\S")
_CONTROL = bytes([*range(9), 11, 12, *range(14, 32), 127])


STANDARD_INPUT = "standard input"
"""What messages call it."""


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


def standard_input(limit: int) -> bytes:
    """All of standard input, as bytes; AttncliError beyond ``limit`` bytes."""
    stream = getattr(sys.stdin, "buffer", sys.stdin)
    data = stream.read(limit + 1) if stream is not None else b""
    if isinstance(data, str):
        data = data.encode()
    if len(data) > limit:
        raise AttncliError(f"standard input is larger than {limit // 2**20} MB", where=Place("standard input"))
    return bytes(data)
