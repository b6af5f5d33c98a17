r"""LaTeX for a write-up: every stage as an equation with a pmatrix; whole documents compile as they are.

A fragment needs amsmath. Tokens in scripts that pdfLaTeX can't set are shown by their code points there, and as
themselves by XeLaTeX and LuaLaTeX where a font has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from attncli.language import notation
from attncli.rendering.text.captions import in_force
from attncli.rendering.text.labels import one_line
from attncli.rendering.text.numbers import decimals
from attncli.rendering.text.tex import document, escaped
from attncli.rendering.text.writeup import Section, gaps, number, picked, sections

if TYPE_CHECKING:
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem
    from attncli.rendering.formats import Options, Stream
    from attncli.rendering.views import View

MOST_ROWS, MOST_COLUMNS = 24, 10
"""A larger matrix is shortened in the middle, unless all of it is asked for."""

_AMSMATH_COLUMNS = 10
"""So many columns amsmath's matrices have unless MaxMatrixCols says otherwise."""


def write(view: View, options: Options, stream: Stream) -> None:
    """The writer of ``-f latex``: a fragment, or a document of its own with ``--standalone``."""
    text = latex(view, options.digits, options.full, options.standalone, options if options.work else None)
    stream.write(text.encode())


def latex(
    view: View, digits: int | None = None, full: bool = False, standalone: bool = False, work: Options | None = None
) -> str:
    """The selected stages as LaTeX: a fragment for a document that uses amsmath, or a whole document.

    ``digits`` decimals; ``full`` shows long matrices whole; ``work`` adds each stage's arithmetic.
    """
    shown = sections(view, full)
    body = [*_setup(shown, full), *_words(view.problem, standalone)]
    for section in shown:
        body += _section(section, digits, full)
        if work:
            from attncli.rendering.text import worked

            body += worked.latex(view, section.name, work)
    body += [f"{escaped(one_line(note))}." for note in view.result.notes]
    return document("\n\n".join(body), standalone)


def _setup(shown: Iterable[Section], full: bool) -> Iterator[str]:
    """The number of columns that amsmath must allow, where it is more than its own."""
    most = max((len(_across(sheet.array, full)) for section in shown for sheet in section.sheets), default=0)
    if most > _AMSMATH_COLUMNS:
        yield rf"\setcounter{{MaxMatrixCols}}{{{most}}}"


def _across(array: Array, full: bool) -> list[int | None]:
    columns = array.shape[1]
    return picked(columns, columns if full else MOST_COLUMNS)


def _words(problem: Problem, standalone: bool) -> Iterator[str]:
    """Title, note, source, mask, and what the positions along the matrices stand for."""
    if problem.title:
        title = escaped(one_line(problem.title))
        yield rf"\section*{{\raggedright {title}}}" if standalone else rf"\paragraph{{{title}}}"
    if problem.note:
        yield escaped(one_line(problem.note))
    if problem.source:
        yield f"Source: {escaped(one_line(problem.source))}"
    same = problem.tokens == problem.memory_tokens
    names = (("Tokens" if same else "Queries", problem.tokens), ("Keys", None if same else problem.memory_tokens))
    for name, labels in names:
        if labels:
            yield f"{name}: {'; '.join(f'{i}~{escaped(label)}' for i, label in enumerate(labels, 1))}."
    yield f"{escaped('; '.join(in_force(problem)))}."


def _section(section: Section, digits: int | None, full: bool) -> Iterator[str]:
    digits = decimals(digits, section.decimals)
    said = f"${notation.latex(section.equation)}$, ${notation.latex(section.shape)}$."
    yield rf"\paragraph{{{escaped(section.name)}}} {said} {escaped(section.sentence)}"
    for sheet in section.sheets:
        room = _LINE - _LETTER * len(notation.unicode(sheet.symbol) + sheet.words * bool(sheet.batch))
        batch = rf"_{{\text{{batch {','.join(map(str, sheet.batch))}}}}}" if sheet.batch else ""
        yield f"\\[\n{notation.latex(sheet.symbol)}{batch} =\n{pmatrix(sheet.array, digits, full, room)}\n\\]"
        if words := "" if full else gaps(sheet, MOST_ROWS, MOST_COLUMNS):
            yield f"({words}.)"
    if section.left_out:
        yield f"({section.left_out}.)"


def pmatrix(array: Array, digits: int, full: bool = False, room: float = 375) -> str:
    """The numbers as a pmatrix, with space before them so that their points stand below each other.

    ``room``: the points that a line has for it; what is wider is set in smaller type.
    """
    rows = array.shape[0]
    down, across = picked(rows, rows if full else MOST_ROWS), _across(array, full)
    columns = [_column(array, j, down, digits) for j in across]
    body = " \\\\\n".join(f"  {' & '.join(line)}" for line in zip(*columns, strict=True))
    inner = f"\\begin{{pmatrix}}\n{body}\n\\end{{pmatrix}}"
    size = _size(columns, room)
    return f"\\text{{{size}$\n{inner}\n$}}" if size else inner


_SIZES = ((1.0, ""), (0.9, r"\small"), (0.8, r"\footnotesize"), (0.7, r"\scriptsize"), (0.5, r"\tiny"))
_LINE, _LETTER, _DIGIT, _GAP = 415, 5.5, 5.5, 10
"""Points: a line, a letter, a digit, and the gap between two columns at any size of type."""


def _size(columns: Sequence[Sequence[str]], room: float) -> str:
    """The largest size of type in which these columns fit; the smallest where none does."""
    digits = sum(max(_length(cell) for cell in column if "phantom" not in cell) for column in columns)
    fitting = (name for scale, name in _SIZES if scale * digits * _DIGIT + len(columns) * _GAP <= room)
    return next(fitting, _SIZES[-1][1])


def _length(cell: str) -> int:
    """About how many characters wide a cell is set; of a fraction, its longer part."""
    parts = re.split(r"(?<=\S)\}\{", cell)
    return max(len(re.sub(r"\\[a-zA-Z]+|[{}^ ]", "", part)) for part in parts)


def _column(array: Array, j: int | None, down: Sequence[int | None], digits: int) -> list[str]:
    if j is None:
        return [r"\ddots" if i is None else r"\cdots" for i in down]
    texts = [r"\vdots" if i is None else _entry(array[i, j], digits) for i in down]
    widest = max(map(_before_point, texts), key=len)
    return [_padded(text, widest) for text in texts]


def _before_point(text: str) -> str:
    """A number's part before the point; nothing for what is no plain number."""
    head = text.partition(".")[0]
    return head if head.lstrip("-").isdigit() else ""


def _padded(text: str, widest: str) -> str:
    """A number behind the room that it lacks; in braces, where a minus would else read as a difference."""
    own = _before_point(text)
    missing = len(widest) - len(own)
    if not own or missing == 0:
        return text
    room = "0" * missing if own[0] == "-" else widest[:missing]
    return rf"\phantom{{{room}}}{{{text}}}" if own[0] == "-" else rf"\phantom{{{room}}}{text}"


def _entry(value: Any, digits: int) -> str:
    if hasattr(value, "is_plain"):
        return str(value.written("latex"))
    text = number(value, digits)
    return {"−∞": r"-\infty", "∞": r"\infty", "nan": r"\text{NaN}"}.get(text, text)
