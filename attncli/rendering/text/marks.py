"""Somebody's words as Markdown, and formulas between dollars."""

from __future__ import annotations

import re

from attncli.language import notation
from attncli.rendering.text.labels import one_line, visible

_SPECIAL = frozenset("\\`*_[]#|<>~&")
_STARTS_A_BLOCK = re.compile(r"(?P<number>\d*)(?P<mark>[-+=.)])")


def escaped(text: str) -> str:
    """Somebody's words as Markdown that shows exactly them: no emphasis, link, table, HTML, formula or mention.

    >>> escaped("*a*|[b]")
    '\\\\*a\\\\*\\\\|\\\\[b\\\\]'
    """
    return "".join(_escaped(char) for char in visible(text))


def _escaped(char: str) -> str:
    if char in "$@":  # GitHub would read $x$ as a formula and @name as a person, with a backslash too
        return f"<span>{char}</span>"
    return f"\\{char}" if char in _SPECIAL else char


def paragraph(text: str) -> str:
    """Somebody's words as a paragraph of their own: no list, heading or rule, however they begin."""
    text = one_line(text)
    start = _STARTS_A_BLOCK.match(text)
    return f"{start['number']}\\{start['mark']}{escaped(text[start.end() :])}" if start else escaped(text)


def formula(text: str) -> str:
    """A formula between dollars; Markdown would eat the backslash of an underscore among words, so words get spaces."""
    spaced = re.sub(r'"[^"]*"', lambda words: words[0].replace("_", " "), text)
    return f"${notation.latex(spaced).strip()}$"
