"""Markdown for a write-up: tables that GitHub renders, formulas as ``$…$``, and labels that are labels only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attncli.rendering.text.captions import in_force
from attncli.rendering.text.labels import one_line
from attncli.rendering.text.marks import escaped, formula, paragraph
from attncli.rendering.text.numbers import decimals
from attncli.rendering.text.writeup import Section, Sheet, gaps, number, picked, sections

if TYPE_CHECKING:
    from attncli.rendering.formats import Options, Stream
    from attncli.rendering.views import View

MOST_ROWS, MOST_COLUMNS = 40, 24
"""A larger matrix is shortened in the middle, unless all of it is asked for."""


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
