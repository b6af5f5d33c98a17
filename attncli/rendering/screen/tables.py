"""Tables for the screen, drawn by rich. A number is never cut: what doesn't fit goes into a further band of columns.

Cells are laid out here, each as wide as its column, so that rich has nothing to shrink; labels are wrapped, and are
`Text` from the start, so that none is read as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table
from rich.text import Text

from attncli.maths import ops
from attncli.rendering.screen.shades import shade
from attncli.rendering.text import captions
from attncli.rendering.text.labels import can_show, plain, visible
from attncli.rendering.text.numbers import aligned, bands, decimals, kept, shown
from attncli.rendering.views import hidden_cells
from attncli.stages.table import STAGES, Stage

if TYPE_CHECKING:
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem
    from attncli.rendering.formats import Options, Screen, Stream
    from attncli.rendering.views import Matrix, View

MOST, EDGE = 40, 10
"""A matrix of up to 40 × 40 is shown whole; of a longer side, its first and its last 10, unless ``--full``."""

LONGEST_LABEL = 60
HEADING_WIDTH = 16
"""Labels longer than this (in cells) are cut, and that is said; over a column they are wrapped earlier."""

NARROWEST = 20
"""Screens are never taken to be narrower than this."""

_SYMBOLS = "─√∞−×·…⋮→⁽ʳ⁾ᵀ\u0303"


class Pen:
    """A console with what our own drawing needs to know: width, symbols, decimals."""

    def __init__(self, options: Options) -> None:
        screen = options.screen
        self.options = options
        self.width = None if screen.width is None else max(screen.width, NARROWEST)
        self.encoding = screen.encoding
        self.symbols = can_show(_SYMBOLS, screen.encoding)
        self.digits = decimals(options.digits)
        self.rule = "─" if self.symbols else "-"
        self.cut_labels = False
        self._text = StringIO()
        self.console = _console(screen, self._text)
        self.shaded = self.console.color_system in ("256", "truecolor")

    def say(self, text: str) -> str:
        """Our own words as this screen can show them."""
        return text if self.symbols else plain(text)

    def number(self, number: float, digits: int | None = None) -> str:
        digits = self.digits if digits is None else digits
        return shown(number, digits) if self.symbols else shown(number, digits, "inf", "-")

    def statistic(self, number: float) -> str:
        """A sum with all its decimals: whether it is whole in its last bit depends on the order of the adding."""
        return f"{number:.{self.digits}f}" if number == number else "NaN"

    def label(self, label: str) -> str:
        """A label made harmless, and cut where it is very long (unless everything is to be shown)."""
        text = visible(label, self.encoding)
        if self.options.full or cell_len(text) <= LONGEST_LABEL:
            return text
        self.cut_labels = True
        return chop_cells(text, LONGEST_LABEL - 3)[0] + self.say("…")

    def taken(self) -> bytes:
        """What was drawn since the last time, as bytes."""
        text = self._text.getvalue()
        self._text.seek(0)
        self._text.truncate()
        if not self.options.screen.colours:
            text = "\n".join(line.rstrip() for line in text.split("\n"))
        return text.encode(self.encoding, "backslashreplace")


def _console(screen: Screen, file: StringIO) -> Console:
    return Console(
        file=file, width=max(screen.width or 1_000_000, NARROWEST), height=100,
        markup=False, emoji=False, highlight=False,
        force_terminal=screen.colours, color_system="auto" if screen.colours else None, legacy_windows=False,
    )  # fmt: skip


def write(view: View, options: Options, stream: Stream) -> None:
    """Draw the selected stages: a heading, then a table a matrix."""
    pen = Pen(options)
    _draw_heading(pen, view.problem)
    stream.write(pen.taken())
    for name in view.stages:
        for matrix in view.matrices(name):
            _draw_matrix(pen, view.problem, STAGES[name], matrix)
            stream.write(pen.taken())
        if options.work:
            from attncli.rendering.text import worked

            stream.write(worked.screen(view, name, options))
    if pen.cut_labels:
        pen.console.print()
        pen.console.print(Text(pen.say("Labels that end in … are cut; --full shows them whole."), "italic"))
        stream.write(pen.taken())


def _draw_heading(pen: Pen, problem: Problem) -> None:
    if problem.title:
        pen.console.print(Text(visible(problem.title, pen.encoding), "bold"))
    between = " · " if pen.symbols else " | "
    for line in filled([pen.say(phrase) for phrase in captions.in_force(problem)], between, pen.width):
        pen.console.print(Text(line, "dim"))


def filled(phrases: Sequence[str], between: str, width: int | None) -> list[str]:
    """Phrases side by side, as many on a line as fit; none is broken (but by rich, where it is longer than a line).

    >>> filled(["mask: none", "layout: rows", "float64"], " · ", 28)
    ['mask: none · layout: rows ·', 'float64']
    """
    lines = list(phrases[:1])
    for phrase in phrases[1:]:
        joined = lines[-1] + between + phrase
        if width is None or cell_len(joined + between.rstrip()) <= width:
            lines[-1] = joined
        else:
            lines[-1] += between.rstrip()
            lines.append(phrase)
    return lines


def _draw_matrix(pen: Pen, problem: Problem, stage: Stage, matrix: Matrix) -> None:
    grid = Grid(pen, problem, stage, matrix)
    pen.console.print()
    pen.console.print(_caption(pen, problem, stage, matrix))
    labels = _row_labels(pen, grid)
    room = None if pen.width is None else max(pen.width - labels.width, 1)
    columns = list(grid.columns())
    for band in bands([column.width for column in columns], room):
        shown = columns[band.start : band.stop]
        screen, needed = pen.console.width, labels.width + sum(column.width for column in shown)
        pen.console.width = max(screen, needed)  # a single exact number may be wider than the screen: never cut it
        pen.console.print(_table(pen, labels, shown), soft_wrap=True, crop=False)
        pen.console.width = screen
    if said := grid.left_out():
        pen.console.print(Text(pen.say(said), "italic"))


def _caption(pen: Pen, problem: Problem, stage: Stage, matrix: Matrix) -> Text:
    """Name, place, formula, shape: on one line where they fit, else the shape on the next."""
    size = matrix.numbers.shape
    name = ", ".join(part for part in (stage.name, captions.place(problem, stage, matrix)) if part)
    formula = captions.written(captions.equation(problem, stage, matrix.head), pen.symbols)
    shape = pen.say(captions.shape(problem, stage, size))
    if stage.name == "weights" and pen.options.stats:
        shape += ", entropy in nats"
    one_line = pen.width is None or cell_len(f"{name}   {formula}   {shape}") <= pen.width
    return Text.assemble((name, "bold"), "   ", formula, "   " if one_line else "\n", (shape, "dim"))


class Column(NamedTuple):
    """A column laid out: heading lines and cells, all of one width, and a style for each cell."""

    width: int
    heading: str
    cells: list[str]
    styles: list[str]


class Grid:
    """A matrix as it is shown: which rows and columns, their labels, what stands in each cell and how."""

    def __init__(self, pen: Pen, problem: Problem, stage: Stage, matrix: Matrix) -> None:
        self.pen, self.problem, self.stage = pen, problem, stage
        self.numbers = matrix.numbers
        self.digits = decimals(pen.options.digits, problem.decimals(stage.name))
        most = max(self.numbers.shape) if pen.options.full else MOST
        self.rows, self.cols = (kept(size, most, EDGE) for size in self.numbers.shape)
        self.hidden = hidden_cells(problem, stage.name, matrix)
        names = stage.shape_names(problem)
        self.row_labels, self.column_labels = (
            problem.labels(name) or ("",) * size for name, size in zip(names, self.numbers.shape, strict=True)
        )
        self.with_stats = pen.options.stats and stage.name == "weights"
        self.stats = _statistics(self.numbers, axis=0 if problem.columns else 1) if self.with_stats else {}

    def left_out(self) -> str:
        """A sentence that says what isn't shown; empty where everything is."""
        parts = []
        for word, indices, size in zip(("rows", "columns"), (self.rows, self.cols), self.numbers.shape, strict=True):
            if None in indices:
                parts.append(f"{size - len(indices) + 1} of {size} {word}")
        return f"({' and '.join(parts)} left out; --full shows all)" if parts else ""

    def columns(self) -> Iterator[Column]:
        """The columns in order, the statistics of each row at the end (of each column: as further rows)."""
        down = self.with_stats and self.problem.columns
        for j in self.cols:
            if j is None:
                dots = self.pen.say("…")
                yield self._column("", [dots] * (len(self.rows) + 3 * down), [""] * (len(self.rows) + 3 * down), dots)
                continue
            texts = [self.pen.say("⋮") if i is None else self._number(i, j) for i in self.rows]
            styles = ["" if i is None else self._style(i, j) for i in self.rows]
            if down:
                texts += [self.pen.statistic(values[j].item()) for values in self.stats.values()]
                styles += ["italic"] * 3
            yield self._column(str(j + 1), texts, styles, self.pen.label(self.column_labels[j]))
        if self.with_stats and not down:
            for name, values in self.stats.items():
                texts = [self.pen.say("⋮") if i is None else self.pen.statistic(values[i].item()) for i in self.rows]
                yield self._column("", texts, ["italic"] * len(texts), name)

    def _number(self, i: int, j: int) -> str:
        return self.pen.number(self.numbers[i, j].item(), self.digits)

    def _column(self, position: str, texts: list[str], styles: list[str], label: str) -> Column:
        cells = aligned(texts)
        heading = f"{position} {label}".strip()
        width = max([len(cell) for cell in cells] + [min(cell_len(heading), HEADING_WIDTH)])
        lines = [_right(line, width) for line in chop_cells(heading, width)] or [" " * width]
        cells = [f" {_right(cell, width)} " for cell in cells]
        return Column(width + 2, "\n".join(f" {line} " for line in lines), cells, styles)

    def _style(self, i: int, j: int) -> str:
        if self.hidden is not None and self.hidden[i, j]:
            return "dim"
        if self.stage.name == "weights" and self.pen.shaded:
            weight = float(self.numbers[i, j])
            if weight == weight:
                ground, ink = shade(weight)
                return f"{ink} on {ground}"
        return ""


class RowLabels(NamedTuple):
    width: int
    texts: list[str]


def _row_labels(pen: Pen, grid: Grid) -> RowLabels:
    """The labels of the shown rows, "1 私", wrapped to a third of a screen."""
    digits = len(str(grid.numbers.shape[0]))
    texts = []
    for i in grid.rows:
        label = "" if i is None else f"{i + 1:{digits}} {pen.label(grid.row_labels[i])}".rstrip()
        texts.append(label if i is not None else pen.say("⋮").rjust(digits))
    if grid.with_stats and grid.problem.columns:
        texts += list(grid.stats)
    width = max(map(cell_len, texts))
    if pen.width is not None:
        width = min(width, max(pen.width // 3, digits + 2))
    wrapped = ["\n".join(f" {_left(line, width)} " for line in chop_cells(text, width)) for text in texts]
    return RowLabels(width + 2, wrapped)


def _table(pen: Pen, labels: RowLabels, columns: Sequence[Column]) -> Table:
    """Headings, a rule, and all rows: each column's cells go to rich as one text, which draws ten times faster."""
    table = Table(box=None, padding=0, pad_edge=False, show_header=False)
    widths = [labels.width, *(column.width for column in columns)]
    for width in widths:
        table.add_column(width=width, vertical="top")
    table.add_row("", *(Text(column.heading, "bold") for column in columns))
    table.add_row(*(Text(pen.rule * width, "dim") for width in widths))
    ends = ["\n" * (label.count("\n") + 1) for label in labels.texts]  # beside a label of two lines, one stays empty
    ends[-1] = ""
    table.add_row(Text("\n".join(labels.texts), "bold"), *(_cells(column, ends) for column in columns))
    return table


def _cells(column: Column, ends: Sequence[str]) -> Text:
    text = Text()
    for cell, style, end in zip(column.cells, column.styles, ends, strict=True):
        text.append(cell, style or None)
        text.append(end)
    return text


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


def _left(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _statistics(weights: Array, axis: int) -> dict[str, Array]:
    """Sum, maximum and entropy (in nats) along an axis."""
    return {"sum": weights.sum(axis=axis), "max": weights.max(axis=axis), "entropy": ops.entropy(weights, axis=axis)}
