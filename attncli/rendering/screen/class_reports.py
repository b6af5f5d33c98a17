"""Reports on the screen: of one sheet, stage by stage; of a class, a line a sheet and totals; the known mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from attncli.checking.classroom import Row, Totals, totals
from attncli.checking.mistakes.base import ANYWHERE, Mistake
from attncli.checking.verdicts import CARRIED, CORRECT, TOO_COARSE, UNREADABLE, WRONG
from attncli.language import notation
from attncli.rendering.screen.reports import ReportPen, sentence, sheet
from attncli.rendering.text.labels import visible

if TYPE_CHECKING:
    from attncli.rendering.formats import Options, Stream

CLASS_HEADS = ("sheet", "right", "carried", "wrong", "points", "first wrong", "mistake")


def write(rows: Sequence[Row], options: Options, stream: Stream) -> None:
    """The writer of ``check -f table``: one sheet's report, or a class's lines and totals."""
    if len(rows) == 1:
        for piece in sheet(rows[0], options):
            stream.write(piece)
        return
    for piece in classroom(rows, options):
        stream.write(piece)
    stream.write(summary(totals(rows), options))


def classroom(rows: Iterable[Row], options: Options) -> Iterator[bytes]:
    """A line a sheet; where the screen is too narrow for the table, a few lines a sheet."""
    pen = ReportPen(options)
    rows = list(rows)
    lines = [_class_cells(pen, row) for row in rows]
    with_points = any(row.points is not None for row in rows)
    kept = [i for i, head in enumerate(CLASS_HEADS) if head != "points" or with_points]
    widths = [max(cell_len(CLASS_HEADS[i]), *(line[i].cell_len for line in lines)) for i in kept]
    if pen.width is not None and sum(widths) + 2 * len(widths) > pen.width:
        for line in lines:
            _draw_stacked(pen, line, kept)
            yield pen.taken()
        return
    heads = [Text(CLASS_HEADS[i], "bold") for i in kept]
    for cells in [heads, *([line[i] for i in kept] for line in lines)]:
        text = Text()
        for i, width, cell in zip(kept, widths, cells, strict=True):
            gap = " " * (width - cell.cell_len)
            text.append_text(Text.assemble(gap, cell) if 0 < i < 5 else Text.assemble(cell, gap)).append("  ")
        pen.line(text)
        yield pen.taken()


def _draw_stacked(pen: ReportPen, line: Sequence[Text], kept: Sequence[int]) -> None:
    """A sheet's name, its counts, and what went wrong, below one another."""
    pen.line(line[0])
    counts = [f"{line[i].plain} {CLASS_HEADS[i]}" for i in kept if 0 < i < 5 and line[i].plain]
    if counts:
        pen.line(", ".join(counts), indent=4)
    first, mistake = line[5].plain, line[6].plain
    if first or mistake:
        where = f"{'' if first == UNREADABLE else 'first wrong: '}{first}" if first else ""
        pen.line(Text(": ".join(filter(None, (where, mistake)))), indent=4)


def _class_cells(pen: ReportPen, row: Row) -> list[Text]:
    name = visible(row.sheet, pen.encoding)
    points = Text("" if row.points is None else f"{row.points:.10g}")
    if row.report is None:
        assert row.error is not None
        what = visible(row.error.what, pen.encoding)
        return [Text(name), *[Text("")] * 3, points, Text("unreadable", "red"), Text(what)]
    wrong = row.count(WRONG, TOO_COARSE, UNREADABLE)
    said = row.mistake or ""
    if row.report.convention is not None:
        said = f"right in another convention: {row.report.convention}"
    first = row.report.first_wrong or ""
    if first in row.report.missing:
        first += " (missing)"
    return [
        Text(name, "green" if row.correct else ""), Text(str(row.count(CORRECT))), Text(str(row.count(CARRIED))),
        Text(str(wrong), "red" if wrong else ""), points, Text(first), Text(said),
    ]  # fmt: skip


def summary(whole: Totals, options: Options) -> bytes:
    """The class as a whole."""
    pen = ReportPen(options)
    parts = [f"{whole.correct} correct", f"{whole.incorrect} not"]
    parts += [f"{whole.unreadable} unreadable"] if whole.unreadable else []
    pen.line()
    pen.line(Text(f"Of {whole.sheets} sheets: {', '.join(parts)}.", "bold"))
    for title, counts in (
        ("First wrong stage", whole.first_wrong), ("Mistakes", whole.mistakes), ("Conventions", whole.conventions),
    ):  # fmt: skip
        if counts:
            pen.line(f"{title}:")
            for name, count in counts:
                pen.line(f"{count:4} × {name}")
    if whole.unexplained:
        pen.line(f"{whole.unexplained:4} × no known mistake" if whole.mistakes else "No known mistake explains them.")
    return pen.taken()


def mistakes(rows: Sequence[Mistake], options: Options, stream: Stream) -> None:
    """The writer of ``mistakes -f table``: name and stage, what it is, the wrong formula, where it was seen."""
    pen = ReportPen(options)
    for row in rows:
        where = "at any stage" if row.stage == ANYWHERE else row.stage
        pen.line(Text.assemble((row.name, "bold"), (f"  {where}", "dim")))
        pen.line(sentence(row.sentence), indent=4)
        pen.line(f"Formula: {notation.unicode(row.formula)}", indent=4)
        pen.line(f"Seen: {row.source}", "dim", 4)
    stream.write(pen.taken())
