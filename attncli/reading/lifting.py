"""Lists of plain numbers are lifted out of a text and read at once; the parser sees an empty list of the same length.

A YAML parser takes some microseconds for each number, `float` takes a tenth of one. Nothing else changes: all other
characters keep their places, and what turns out to stand in a comment or a string is put back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from attncli.language import literals
from attncli.language.errors import AttncliError
from attncli.maths.ops import Array
from attncli.reading.limits import TooLargeError
from attncli.reading.nodes import Document, Node

_ROW = re.compile(r"\[(?!\])[-+0-9.eE, \t\n\"infaN]*+\]")
_INF = float("inf")
_SPECIAL = {sign + point + "inf": -_INF if sign == "-" else _INF for sign in ("", "+", "-") for point in ("", ".")}
_SPECIAL |= dict.fromkeys(("nan", "NaN", ".nan", ".NaN"), float("nan"))
_MAX_NESTED = 6
_OPEN, _CLOSE = "\x01", "\x02"
"""They stand for the brackets of a list that is lifted already: characters that no document holds."""
_NEST = re.compile(rf"\[[ \t\n]*+{_OPEN}[ \n]*+{_CLOSE}(?:[ \t\n]*+,[ \t\n]*+{_OPEN}[ \n]*+{_CLOSE})*+[ \t\n]*+\]")
_ROW_LINES = re.compile(rf"^( *+)- {_OPEN}[ ]*+{_CLOSE} *+\n(?:\1- {_OPEN}[ ]*+{_CLOSE} *+(?:\n|\Z))++", re.MULTILINE)
_OPENED = re.compile(_OPEN)
_FIRST_LINE = re.compile(rf"^( *+(?:- ++)*+(?<=- ))([-+]?{literals.DECIMAL}) *+\n(?= *+- [-+0-9.])", re.MULTILINE)
_UNANSWERED = re.compile(r"(?<=[\[,:\s-])\?(?=[ \t]*(?:[,\]}\n]|\Z))")
_TINY = re.compile(r"[eE]-[0-9]{3}")


class Lifted:
    """A list that was lifted: where it stands, its numbers, and whether the parser met it."""

    __slots__ = ("array", "end", "lines", "met", "start")

    def __init__(self, start: int, end: int, array: Any, *, lines: bool = False) -> None:
        self.start = start
        self.end = end
        self.array: Array | list[float] = array
        self.lines = lines
        self.met = False


Tree = Callable[[Document, str, dict[int, Lifted]], "Node | None"]
"""Parses a text in which the given lists are blank; marks those that it meets."""


def parsed(document: Document, tree: Tree, lift: bool) -> Node | None:
    """The tree of a document by a parser that is handed a lightened text."""
    text, lists = _without_lines(*lightened(document.text)) if lift else (document.text, {})
    if lists:
        text, lists = _without_question_marks(text, lists)
        try:
            return _complete(document, tree, text, lists)
        except TooLargeError:
            raise
        except AttncliError:
            pass  # said again from the text as it stands
    return _complete(document, tree, *_without_question_marks(document.text, {}))


def _complete(document: Document, tree: Tree, text: str, lists: dict[int, Lifted]) -> Node | None:
    while True:
        found = tree(document, text, lists)
        strangers = [one for one in lists.values() if not one.met]
        if not strangers:
            return found
        text = _put_back(text, document.text, strangers)
        lists = {start: one for start, one in lists.items() if one.met}
        for one in lists.values():
            one.met = False


def _without_question_marks(text: str, lists: dict[int, Lifted]) -> tuple[str, dict[int, Lifted]]:
    """An entry ``?`` is YAML's sign for a key: the parser sees ``~``."""
    marks = [match.start() for match in _UNANSWERED.finditer(text)] if "?" in text else []
    if not marks:
        return text, lists
    pieces, at = [], 0
    for mark in marks:
        pieces += [text[at:mark], "~"]
        at = mark + 1
    return "".join([*pieces, text[at:]]), lists | {mark: Lifted(mark, mark + 1, ()) for mark in marks}


def _without_lines(text: str, lists: dict[int, Lifted]) -> tuple[str, dict[int, Lifted]]:
    """Runs of lines ``- 1``, in one column, become a list in the place of the first number."""
    pieces, at = [], 0
    while first := _FIRST_LINE.search(text, at):
        rest = _lines(len(first[1])).match(text, first.end())
        end = rest.end() if rest else first.end()
        column, start = len(first[1]), first.start(2)
        stop = start + len(text[start:end].rstrip(" \n"))
        values = _values(",".join([line[column:] for line in text[first.start() : stop].split("\n")])) if rest else None
        if values is not None:
            pieces += [text[at:start], _blank(text[start:stop])]
            lists[start] = Lifted(start, stop, np.array(values), lines=True)
        else:
            pieces.append(text[at:stop])
        at = text.find("\n", stop) + 1 or len(text)
        pieces.append(text[stop:at])
    text = "".join([*pieces, text[at:]])
    return text.replace(_OPEN, "[").replace(_CLOSE, "]"), lists


@lru_cache
def _lines(column: int) -> re.Pattern[str]:
    return re.compile(rf"(?: {{{column - 2}}}- [-+]?{literals.DECIMAL} *+(?:\n|\Z))++")


def lightened(text: str) -> tuple[str, dict[int, Lifted]]:
    """The text with its lists of plain numbers blank, and these lists by where they start."""
    lists: dict[int, Lifted] = {}

    def row(match: re.Match[str]) -> str:
        values = _values(match[0][1:-1])
        if values is None:
            return match[0]
        lists[match.start()] = Lifted(match.start(), match.end(), values if len(values) < 32 else np.array(values))
        return _blank(match[0])

    def joined(match: re.Match[str], start: int, *, lines: bool) -> str:
        """Lists of one shape as one array, in the place of the text from ``start``."""
        starts = [found.start() for found in _OPENED.finditer(match.string, start, match.end())]
        children = [lists[one].array for one in starts]
        if len({np.shape(child) if isinstance(child, np.ndarray) else (len(child),) for child in children}) > 1:
            return match[0]
        for one in starts:
            del lists[one]
        end = match.end() if not lines else match.string.rindex(_CLOSE, start, match.end()) + 1
        lists[start] = Lifted(start, end, np.array(children), lines=lines)
        return match.string[match.start() : start] + _blank(match.string[start:end]) + match.string[end : match.end()]

    text = _ROW.sub(row, text)
    for _ in range(_MAX_NESTED if lists else 0):
        before, text = text, _NEST.sub(lambda match: joined(match, match.start(), lines=False), text)
        if text == before:
            break
    text = _ROW_LINES.sub(lambda match: joined(match, match.end(1) + 2, lines=True), text)
    return text.replace(_OPEN, "[").replace(_CLOSE, "]"), lists


def _values(text: str) -> list[float] | None:
    """The numbers of a row; None where it holds anything that the grammar of numbers would have to look at."""
    parts = text.split(",")
    if max(map(len, parts)) > literals.MAX_LENGTH or _TINY.search(text):
        return None
    try:
        words = '"' in text or "n" in text.lower()
        values = [_value(part.strip()) for part in parts] if words else list(map(float, parts))
    except ValueError:
        return None
    return values if words or (_INF not in values and -_INF not in values) else None


def _value(text: str) -> float:
    """An entry that may have quotes, as JSON needs them for "-inf"; ValueError where it is no plain number."""
    if text[:1] == '"' and text[-1:] == '"' and len(text) > 2:
        text = text[1:-1]
    special = _SPECIAL.get(text)
    if special is not None:
        return special
    value = float(text) if text.strip("-+.0123456789eE ") == "" else _INF
    if value in (_INF, -_INF):
        raise ValueError(text)
    return value


def _blank(text: str) -> str:
    if "\n" not in text:
        return _OPEN + " " * (len(text) - 2) + _CLOSE
    inner = "\n".join(" " * len(line) for line in text[1:-1].split("\n"))
    return _OPEN + inner + _CLOSE


def _put_back(text: str, original: str, lists: list[Lifted]) -> str:
    parts, at = [], 0
    for one in sorted(lists, key=lambda one: one.start):
        parts += [text[at : one.start], original[one.start : one.end]]
        at = one.end
    return "".join([*parts, text[at:]])
