"""Derivations written down for the screen and as JSON; `equations` writes the same trees as Markdown and LaTeX."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attncli.explaining.inputs import spoken
from attncli.language import notation
from attncli.language.errors import AttncliError
from attncli.maths.cell import Cell
from attncli.rendering.text.arithmetic import Plain, Step, Words, steps
from attncli.rendering.text.labels import can_show, visible
from attncli.rendering.text.numbers import decimals
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.maths.derivation import Derivation
    from attncli.model.problem import Problem
    from attncli.rendering.formats import Options, Stream

WIDEST = 100
"""A derivation stands on one line where that has so many characters, however wide the screen."""

MOST_JSON = 1_000_000
"""Nodes of a tree in JSON, where what is used twice is written twice."""

_SYMBOLS = "√∞−·…≈αᵀ⁽ʳ⁾₁\u0303"


class Explained(NamedTuple):
    """What the writers take: a problem, and the trees of its cells that were asked for."""

    problem: Problem
    trees: Sequence[Derivation]


def blocks(derivation: Derivation) -> Iterator[Derivation]:
    """What is written one by one: the cells of a list; then the cells that were followed back, last stage first."""
    first = list(listed(derivation))
    yield from first
    known = {node.cell for node in first}
    used: list[Derivation] = []
    seen: set[int] = set()
    todo = deque(operand for node in first for operand in node.operands)
    while todo:
        node = todo.popleft()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.cell is not None and node.operands and node.cell not in known:
            known.add(node.cell)
            used += [] if node.is_list else [node]
        todo += node.operands
    order = [*STAGES]
    yield from sorted(used, key=lambda node: (-order.index(node.cell.name), node.cell.lead, node.cell.index))  # type: ignore[union-attr]


def listed(derivation: Derivation) -> Iterator[Derivation]:
    if not derivation.is_list:
        yield derivation
        return
    for operand in derivation.operands:
        yield from listed(operand)


def place_words(problem: Problem, cell: Cell | None) -> str:
    """Which query and key a cell belongs to, where they have tokens: "query 1 (私), key 3 (猫)"."""
    if cell is None or cell.name not in STAGES or not cell.index:
        return ""
    index = cell.index[::-1] if problem.columns else cell.index
    names = {"n": "query", "m": "key"}
    axes = STAGES[cell.name].axes[-2:]
    labels = {"n": problem.tokens, "m": problem.memory_tokens}
    return ", ".join(
        f"{names[axis]} {spoken(problem, axis, position - 1)}"
        for axis, position in zip(axes, index, strict=False)
        if axis in names and labels[axis]
    )


def uses(derivation: Derivation) -> str:
    """The cells that a derivation refers to, runs of them drawn together: "Q[1,1..2], K[3,1..2]"."""
    cells = [node.cell for node in derivation.cells() if node.cell is not None]
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.name, cell.lead), []).append(cell)
    return ", ".join(text for group in groups.values() for text in _runs(group))


def _runs(cells: Sequence[Cell]) -> Iterator[str]:
    """Cells of one matrix, those side by side (or below each other) as one."""
    width = len(cells[0].index)
    for moving in range(width):
        others = {tuple(n for axis, n in enumerate(cell.index) if axis != moving) for cell in cells}
        if len(others) == 1 and len(cells) > 1:
            numbers = sorted(cell.index[moving] for cell in cells)
            for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
                found = [number for _, number in run]
                text = str(found[0]) if len(found) == 1 else f"{found[0]}..{found[-1]}"
                index = [str(n) for n in cells[0].index]
                index[moving] = text
                yield f"{cells[0].name}[{';'.join([*map(str, cells[0].lead), ','.join(index)])}]"
            return
    yield from map(str, cells)


def noise(problem: Problem) -> float:
    return float(np.finfo(problem.dtype).eps) if problem.dtype.kind == "f" else 0.0


# The screen


class Screen:
    """Writes derivations in the width of a screen, in Unicode or, where that can't be shown, in ASCII."""

    def __init__(self, problem: Problem, options: Options) -> None:
        screen = options.screen
        self.problem, self.options, self.encoding = problem, options, screen.encoding
        kind = Words if can_show(_SYMBOLS, screen.encoding) else Plain
        self.style = kind(decimals(options.digits), options.full, noise(problem))
        self.width = WIDEST if screen.width is None else max(screen.width, 20)

    def lines(self, derivation: Derivation, alone: bool = True) -> list[str]:
        """One cell's derivation: on a line where it fits, else a line a step, and what is said of it below."""
        label = str(derivation.cell)
        words = visible(derivation.words, self.encoding)
        found = steps(derivation, self.style)
        text = " ".join([label, *(f"{self._sign(step)} {step.text}" for step in found)])
        said = f"{text}   {words}" if words else text
        room = min(self.width, WIDEST)
        if _cells(said) <= room:
            lines, words = [said], ""
        elif _cells(text) <= room:
            lines = [text]
        else:
            lines = self._step_by_step(label, found)
        notes = [words] if words else []
        if alone:
            place = "" if words and words.startswith("query") else place_words(self.problem, derivation.cell)
            notes += [text for text in (visible(place, self.encoding), self._uses(derivation)) if text]
        return [*lines, *(line for note in notes for line in filled(note, self.width, "  "))]

    def _uses(self, derivation: Derivation) -> str:
        found = uses(derivation)
        letters = {node.cell.name: node.symbol[0] for node in derivation.cells() if node.cell}
        called = [f"{letter} for {name}" for name, letter in letters.items() if not STAGES[name].symbol]
        return f"uses {found}{f' ({called[0]})' if called else ''}" if found else ""

    def _step_by_step(self, label: str, found: Sequence[Step]) -> list[str]:
        own_line = _cells(label) > max(14, self.width // 3)
        indent = 2 if own_line else _cells(label) + 1
        lines = [label] if own_line else []
        for step in found:
            start = label + " " if not own_line and not lines else " " * indent
            sign = self._sign(step)
            lines += _broken(f"{start}{sign} ", step.text, self.width)
        return lines

    def _sign(self, step: Step) -> str:
        return step.sign if self.style.unicode else step.sign.replace("≈", "~=")

    def text(self, derivations: Iterable[Derivation]) -> str:
        """All derivations, an empty line around those of several lines."""
        out: list[str] = []
        for derivation in derivations:
            spaced, stage = True, None
            for block in blocks(derivation):
                lines = self.lines(block, alone=block is derivation)
                name = block.cell.name if block.cell else None
                if out and (spaced or len(lines) > 1 or name != stage):
                    out.append("")
                spaced, stage = len(lines) > 1, name
                out += lines
        if self.style.left_out:
            dots = "…" if self.style.unicode else "..."
            out += ["", f"({dots} stands for terms left out; --full shows all)"]
        return "\n".join(out) + "\n"


def _cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


_BREAK = re.compile(r"(?= [+−/] | - )")


def _broken(start: str, text: str, width: int) -> list[str]:
    """A step, broken before its signs where it is wider than the screen."""
    lines, indent = [start], " " * (_cells(start) + 2)
    room = width - _cells(indent)
    pieces = (part for piece in _BREAK.split(text) for part in _smaller(piece, room))
    for piece in pieces:
        if _cells(lines[-1] + piece) > width and lines[-1].strip() and lines[-1] != start:
            lines.append(indent + piece.lstrip())
        else:
            lines[-1] += piece
    return lines


def _smaller(piece: str, room: int) -> list[str]:
    """A piece, broken at a vector's commas where it is wider than a line."""
    return [piece] if _cells(piece.strip()) <= room else re.split(r"(?<=,)(?= )", piece)


def filled(text: str, width: int, indent: str) -> list[str]:
    """Words in lines of a width, broken at spaces."""
    lines = [indent]
    for word in text.split(" "):
        if _cells(f"{lines[-1]} {word}") > width and lines[-1] != indent:
            lines.append(indent + word)
        else:
            lines[-1] += word if lines[-1] == indent else f" {word}"
    return lines


def table(explained: Explained, options: Options, stream: Stream) -> None:
    """The writer for the screen."""
    screen = Screen(explained.problem, options)
    stream.write(screen.text(explained.trees).encode(screen.encoding, "backslashreplace"))


# JSON


def data(derivation: Derivation) -> dict[str, Any]:
    """A tree as nested dicts: op, value, cell, symbol, formula, words, operands; what is empty is left out."""
    entry: dict[str, Any] = {"op": derivation.op, "value": _data_value(derivation.value)}
    if hasattr(derivation.value, "is_plain"):
        entry["decimal"] = _data_value(float(derivation.value))
    if derivation.cell is not None:
        entry["cell"] = str(derivation.cell)
    for name in ("symbol", "formula"):
        if text := getattr(derivation, name):
            entry[name] = notation.unicode(text)
    if derivation.words:
        entry["words"] = derivation.words
    if derivation.operands:
        entry["operands"] = [data(operand) for operand in derivation.operands]
    return entry


def _data_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_data_value(one) for one in value]
    if hasattr(value, "is_plain"):
        text = str(value)
        return int(text) if text.lstrip("-").isdigit() else text
    return value if np.isfinite(value) else str(float(value))


def json(explained: Explained, options: Options, stream: Stream) -> None:
    """The writer of ``-f json``: cell → tree. −∞ and NaN are strings, exact numbers as problem files read them."""
    from json import dumps

    if sum(tree.size() for tree in explained.trees) > MOST_JSON:
        hint = "Follow fewer stages back (--depth 2), or explain single cells."
        raise AttncliError(f"written out this would have more than {MOST_JSON} entries", hint=hint)
    trees = {str(tree.cell): data(tree) for tree in explained.trees}
    stream.write((dumps(trees, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


# LaTeX and Markdown
