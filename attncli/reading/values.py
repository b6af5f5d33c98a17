"""Single values of a problem file: a number, a word, true or false; and the name that was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attncli.language import literals
from attncli.language.errors import AttncliError
from attncli.reading.nodes import Held, Node, Numbers, Scalar, Sequence


def leaves(node: Node) -> Iterator[Scalar]:
    """The single values in nested lists, in order."""
    if isinstance(node, Numbers):
        yield from node.scalars()
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from leaves(item)
    elif isinstance(node, Scalar):
        yield node


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


def nearest(word: str, known: list[str]) -> tuple[str, ...]:
    """A hint that asks for the most similar of some names, or none."""
    from difflib import get_close_matches

    close = get_close_matches(word, known[:1000], 1)
    return (f"Did you mean {close[0]}?",) if close else ()
