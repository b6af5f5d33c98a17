"""The report of one sheet on the screen, stage by stage.

A wrong entry carries a sign beside its colour, so that it is seen without colour too; the right number stands below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from attncli.checking.check import CONVENTIONS, Report, possible_arithmetic
from attncli.checking.classroom import Row
from attncli.checking.verdicts import CARRIED, CORRECT, MISSING, TOO_COARSE, UNREADABLE, WRONG, Entry, StageVerdict
from attncli.model import cells
from attncli.rendering.screen.tables import Pen
from attncli.rendering.text.labels import can_show, visible
from attncli.rendering.text.numbers import bands, shown

if TYPE_CHECKING:
    from attncli.maths.ops import Array
    from attncli.rendering.formats import Options

LOOKS = {
    CORRECT: ("✓", "+", "green"),
    TOO_COARSE: ("~", "~", "yellow"),
    CARRIED: ("→", ">", "cyan"),
    WRONG: ("✗", "x", "red"),
    MISSING: ("·", ".", "dim"),
    UNREADABLE: ("!", "!", "red"),
}
"""How each verdict looks: its sign, its sign where an encoding lacks that one, its style."""

FEW = 5
"""Entries named in a sentence each; matrices and rows drawn beyond these are counted."""

MOST = 12
"""A matrix of up to 12 × 12 is drawn whole; of a larger one, the rows and columns with wrong entries."""


class ReportPen(Pen):
    """A pen that knows the signs of the verdicts."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        signs = {verdict: sign for verdict, (sign, _, _) in LOOKS.items()}
        plain = {verdict: sign for verdict, (_, sign, _) in LOOKS.items()}
        self.signs = signs if can_show("".join(signs.values()), self.encoding) else plain

    def line(self, text: str | Text = "", style: str = "", indent: int = 0, wrap: bool = True) -> None:
        """A line of our own words, wrapped (if so), further lines indented like the first."""
        if not text:
            self.console.print()
            return
        text = text if isinstance(text, Text) else Text(self.say(text), style)
        room = None if self.width is None or not wrap else max(self.width - indent, 20)
        lines = [text] if room is None else list(text.wrap(self.console, room))
        for line in lines:
            line.rstrip()
            self.console.print(Text(" " * indent).append_text(line), soft_wrap=True)


def sheet(row: Row, options: Options) -> Iterator[bytes]:
    """One sheet's report."""
    pen = ReportPen(options)
    report = row.report
    assert report is not None
    pen.line(Text(_headline(row, report), "bold"))
    for verdict in report.stages:
        _draw_stage(pen, report, verdict)
        yield pen.taken()
    pen.line()
    for text in _conclusions(report):
        pen.line(text)
    if row.points is not None:
        pen.line(f"Points: {row.points:.10g} of {row.out_of:.10g}.")
    pen.line(f"Compared: {report.rule}.", "dim")
    yield pen.taken()


def _headline(row: Row, report: Report) -> str:
    name = visible(row.sheet)
    judged = [v for v in report.stages if v.verdict != MISSING]
    if report.correct:
        return f"{name}: correct ({_stages(len(judged))})"
    right = sum(verdict.verdict == CORRECT for verdict in judged)
    parts = [f"{right} of {_stages(len(judged))} correct"]
    parts += [] if report.first_wrong in report.missing else [f"it goes wrong first at {report.first_wrong}"]
    parts += [f"missing: {', '.join(report.missing)}"] if report.missing else []
    return f"{name}: {'; '.join(parts)}"


def _stages(count: int) -> str:
    return f"{count} stage{'' if count == 1 else 's'}"


def _draw_stage(pen: ReportPen, report: Report, verdict: StageVerdict) -> None:
    if verdict.verdict == MISSING and verdict.stage not in report.required:
        return
    word = _word(verdict, verdict.stage in report.required)
    text = Text.assemble(
        (f"{pen.signs[verdict.verdict]} ", LOOKS[verdict.verdict][2]), (f"{verdict.stage:<14} ", "bold"),
        (pen.say(word), LOOKS[verdict.verdict][2]),
    )  # fmt: skip
    pen.line(text)
    if verdict.error is not None:
        for part in verdict.error.splitlines():
            pen.line(visible(part, pen.encoding), indent=4)
    elif verdict.verdict in (WRONG, TOO_COARSE):
        _draw_matrices(pen, report, verdict)
        _name_entries(pen, report, verdict)
    if verdict.note and verdict.verdict != CORRECT:
        pen.line(sentence(verdict.note), indent=4)


def _word(verdict: StageVerdict, required: bool) -> str:
    entries = f"{verdict.wrong} of {verdict.judged} entr{'y' if verdict.judged == 1 else 'ies'}"
    return {
        CORRECT: verdict.note or "correct",
        TOO_COARSE: "too coarse to judge",
        CARRIED: f"carried forward ({entries} differ from the right ones)",
        WRONG: f"wrong in {entries}",
        MISSING: "missing, and required" if required else "missing",
        UNREADABLE: "can't be judged",
    }[verdict.verdict]


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return text[:1].upper() + text[1:] + "."


# Entries


def _name_entries(pen: ReportPen, report: Report, verdict: StageVerdict) -> None:
    for entry in verdict.entries(FEW):
        pen.line(_said(pen, report, verdict, entry), indent=4)
    if verdict.wrong > FEW:
        more = verdict.wrong - FEW
        pen.line(f"and {more} more entr{'y' if more == 1 else 'ies'}", indent=4)


def _said(pen: ReportPen, report: Report, verdict: StageVerdict, entry: Entry) -> str:
    assert verdict.right is not None
    cell = cells.shown(report.problem, verdict.stage, verdict.right.shape, entry.index)
    digits = _digits(verdict)
    text = f"{cell} is {_written(entry, digits)}, and should be {shown(entry.right, digits)}"
    if np.isfinite(entry.difference):
        text += f" (difference {_signed(entry.difference, digits)})"
    if entry.follows is not None and not np.isclose(entry.follows, entry.right, equal_nan=True):
        text += f"; from the sheet's own numbers, {shown(entry.follows, digits)}"
    return text


def _digits(verdict: StageVerdict) -> int:
    """Decimals that show a right number beside the sheet's: two more than it has, at least 4."""
    answer = verdict.answer
    if answer is None or answer.stage.binary:
        return 8
    return int(min(max(4, answer.finest + 2), 12))


def _written(entry: Entry, digits: int) -> str:
    return visible(entry.text) if entry.text is not None else shown(entry.sheet, digits)


def _signed(number: float, digits: int) -> str:
    text = shown(number, digits)
    if not text.strip("-0."):
        text = f"{number:.2g}"
    return text if number < 0 else f"+{text}"


# Matrices


def _draw_matrices(pen: ReportPen, report: Report, verdict: StageVerdict) -> None:
    assert verdict.differs is not None
    lead = [tuple(map(int, index)) for index in np.argwhere(verdict.differs.any(axis=(-2, -1)))]
    for place in lead[:FEW]:
        _draw_matrix(pen, report, verdict, place)
    if len(lead) > FEW:
        more = len(lead) - FEW
        pen.line(f"and {more} more matri{'x' if more == 1 else 'ces'} with such entries", indent=4)


def _draw_matrix(pen: ReportPen, report: Report, verdict: StageVerdict, place: tuple[int, ...]) -> None:
    """The sheet's matrix, wrong entries with a sign, the right numbers below them; in the problem's layout."""
    answer, differs, right = verdict.answer, verdict.differs, verdict.right
    assert answer is not None
    assert differs is not None
    assert right is not None
    columns = report.problem.columns
    value, bad, true = (_turned(array[place], columns) for array in (answer.value, differs, right))
    texts = None if answer.texts is None else _turned(answer.texts[place], columns)
    digits = _digits(verdict)
    rows, cols = _shown(bad)
    heading = _place(right.shape, place)
    if heading:
        pen.line(Text(heading, "bold"), indent=4)
    sign = pen.signs[WRONG]
    cells: list[list[str]] = []
    for i in rows:
        line = [_cell(value, texts, i, j, digits) + (sign if bad[i, j] else " ") for j in cols]
        below = [f"{shown(float(true[i, j]), digits)} " if bad[i, j] else "" for j in cols]
        cells += [line, below] if any(bad[i, j] for j in cols) else [line]
    labels = _row_labels(pen, report, verdict, rows, bad, cols)
    _draw_grid(pen, labels, [str(j + 1) for j in cols], cells, sign)
    if len(rows) < bad.shape[0] or len(cols) < bad.shape[1]:
        pen.line(f"(of {bad.shape[0]} × {bad.shape[1]}, only rows and columns with such entries)", "dim", 4)


def _turned(array: Array, columns: bool) -> Array:
    return array.T if columns else array


def _shown(bad: Array) -> tuple[list[int], list[int]]:
    """The rows and columns that are drawn: all of a small matrix, else the first of those with wrong entries."""
    axes = []
    for axis, size in enumerate(bad.shape):
        found = np.flatnonzero(bad.any(axis=1 - axis))
        axes.append(list(range(size)) if size <= MOST else [int(i) for i in found[:MOST]])
    return axes[0], axes[1]


def _place(shape: tuple[int, ...], place: tuple[int, ...]) -> str:
    *batch, head = [f"{i + 1}" if size > 1 else "" for i, size in zip(place, shape, strict=False)] or [""]
    parts = [f"batch entry {','.join(filter(None, batch))}"] if any(batch) else []
    return ", ".join(parts + ([f"head {head}"] if head and len(place) == len(shape) - 2 else []))


def _cell(value: Array, texts: Array | None, i: int, j: int, digits: int) -> str:
    return shown(float(value[i, j]), digits) if texts is None else visible(str(texts[i, j]))


def _row_labels(
    pen: ReportPen, report: Report, verdict: StageVerdict, rows: Sequence[int], bad: Array, cols: Sequence[int]
) -> list[str]:
    """The number and the token of each row, and "right" before the numbers below."""
    from attncli.stages.table import STAGES

    names = STAGES[verdict.stage].shape_names(report.problem)
    tokens = report.problem.labels(names[0])
    labels = []
    for i in rows:
        labels.append(f"{i + 1} {pen.label(tokens[i])}" if tokens else f"{i + 1}")
        labels += ["  right"] if any(bad[i, j] for j in cols) else []
    return labels


def _draw_grid(pen: ReportPen, labels: list[str], heads: list[str], cells: list[list[str]], sign: str) -> None:
    """Lines of cells, in bands of columns where the screen is too narrow; nothing is cut."""
    widths = [max(cell_len(heads[j]) + 1, *(cell_len(line[j]) for line in cells)) + 2 for j in range(len(heads))]
    most = 24 if pen.width is None else max(pen.width // 4, 7)
    labels = [label if cell_len(label) <= most else _shortened(label, most) for label in labels]
    left = max(cell_len(label) for label in labels)
    room = None if pen.width is None else max(pen.width - left - 4, 1)
    for band in bands(widths, room):
        pen.line(
            Text(" " * left + "".join((heads[j] + " ").rjust(widths[j]) for j in band), "bold"), indent=4, wrap=False
        )
        for label, line in zip(labels, cells, strict=True):
            text = Text(label + " " * (left - cell_len(label)), "dim" if label == "  right" else "bold")
            for j in band:
                style = "dim" if label == "  right" else "red" if line[j].endswith(sign) else ""
                text.append(" " * (widths[j] - cell_len(line[j])) + line[j], style)
            pen.line(text, indent=4, wrap=False)


def _shortened(label: str, most: int) -> str:
    from rich.cells import chop_cells

    return chop_cells(label, most - 1)[0] + "…"


# What it comes to


def _conclusions(report: Report) -> Iterator[str]:
    if report.convention is not None:
        yield f"The whole sheet is right {CONVENTIONS[report.convention]}. That is a convention, not a mistake."
        return
    if report.correct:
        return
    yield from _explanations(report)
    yield from report.notes
    yield from _rounding(report)
    carried = [verdict.stage for verdict in report.stages if verdict.verdict == CARRIED]
    if carried:
        yield f"Right, given what comes before: {', '.join(carried)}."


def _explanations(report: Report) -> Iterator[str]:
    if not report.explanations:
        if report.rounding is None and any(v.verdict in (WRONG, TOO_COARSE) for v in report.stages):
            yield "No known mistake gives these numbers, nor does any pair of them that was tried."
        return
    several = len(report.explanations) > 1
    if several:
        yield f"Each of these {len(report.explanations)} explains every entry:"
    for one in report.explanations:
        named = zip(one.names, one.sentences, strict=True)
        yield ("- " if several else "Explained by ") + ", and ".join(f"{name}: {said}" for name, said in named) + "."


def _rounding(report: Report) -> Iterator[str]:
    wrong = next((v for v in report.stages if v.verdict == WRONG and v.largest is not None), None)
    if wrong is None or wrong.answer is None or wrong.largest is None or wrong.right is None:
        return
    is_dump = wrong.answer.stage.binary or wrong.answer.rule.is_tolerance
    if not is_dump and report.rounding is None:
        return
    cell = cells.shown(report.problem, wrong.stage, wrong.right.shape, wrong.largest.index)
    if not np.isfinite(wrong.largest.difference):
        yield f"The first stage that differs is {wrong.stage}."
        return
    yield (
        f"The first stage that differs is {wrong.stage}; the largest difference there is "
        f"{abs(wrong.largest.difference):.3g}, at {cell}."
    )
    if report.rounding is not None:
        yield f"That looks like rounding: {report.rounding} arithmetic differs as much in this problem."
    else:
        dtypes = " or ".join(possible_arithmetic(report.problem, [wrong]))
        yield f"That is more than {dtypes} arithmetic gives in this problem: it looks like a bug."
