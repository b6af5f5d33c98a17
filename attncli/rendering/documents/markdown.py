"""Markdown for a write-up: tables that GitHub renders, formulas as ``$…$``, and labels that are labels only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from attncli.language import notation
from attncli.rendering.text.captions import in_force
from attncli.rendering.text.labels import one_line, visible
from attncli.rendering.text.numbers import decimals
from attncli.rendering.text.writeup import Section, Sheet, gaps, number, picked, sections

if TYPE_CHECKING:
    from attncli.rendering.formats import Options, Stream
    from attncli.rendering.views import View

MOST_ROWS, MOST_COLUMNS = 40, 24
"""A larger matrix is shortened in the middle, unless all of it is asked for."""

_SPECIAL = frozenset("\\`*_[]#|<>~&")
_STARTS_A_BLOCK = re.compile(r"(?P<number>\d*)(?P<mark>[-+=.)])")


def write(view: View, options: Options, stream: Stream) -> None:
    """The writer of ``-f markdown``."""
    stream.write(markdown(view, options.digits, options.full, options if options.work else None).encode())


def markdown(view: View, digits: int | None = None, full: bool = False, work: Options | None = None) -> str:
    """The selected stages as Markdown; before all stages of a problem, what is given.

    ``digits`` decimals; ``full`` shows long matrices whole; ``work`` adds each stage's arithmetic.
    """
    parts = list(_head(view))
    for section in sections(view, full):
        parts += _section(section, digits, full)
        if work:
            from attncli.rendering.text import worked

            parts += worked.markdown(view, section.name, work)
    parts += [f"> {escaped(note)}" for note in view.result.notes]
    return "\n\n".join(parts) + "\n"


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


def _head(view: View) -> Iterator[str]:
    problem = view.problem
    yield f"# {escaped(one_line(problem.title or 'Attention, stage by stage'))}"
    if problem.note:
        yield paragraph(problem.note)
    if problem.source:
        yield f"Source: {escaped(one_line(problem.source))}"
    yield escaped("; ".join(in_force(problem)))


def _section(section: Section, digits: int | None, full: bool) -> Iterator[str]:
    yield f"## {escaped(section.name)}"
    yield f"{formula(section.equation)}, {formula(section.shape)}. {escaped(section.sentence)}"
    for sheet in section.sheets:
        if sheet.batch:
            yield f"{sheet.words[0].upper()}{sheet.words[1:]}:"
        yield table(sheet, decimals(digits, section.decimals), full)
        if words := "" if full else gaps(sheet, MOST_ROWS, MOST_COLUMNS):
            yield f"*{words}; `--full` shows all.*"
    if section.left_out:
        yield f"*{section.left_out}; `--full` shows all.*"


def table(sheet: Sheet, digits: int, full: bool = False) -> str:
    """One matrix as a table: its symbol in the corner, labels along both axes, numbers aligned to the right."""
    rows, columns = sheet.array.shape
    across = picked(columns, columns if full else MOST_COLUMNS)
    lines = [[formula(sheet.symbol), *("…" if j is None else escaped(sheet.columns[j]) for j in across)]]
    lines.append([":---", *("---:" for _ in across)])
    for i in picked(rows, rows if full else MOST_ROWS):
        if i is None:
            lines.append(["⋮"] * (len(across) + 1))
        else:
            cells = ("…" if j is None else number(sheet.array[i, j], digits) for j in across)
            lines.append([escaped(sheet.rows[i]), *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
