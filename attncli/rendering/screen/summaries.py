"""What `inspect` found, on the screen: short sections, each a table that is never cut, or sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from attncli.engine.memory import said as bytes_in_words
from attncli.inspecting.spread import SATURATED
from attncli.rendering.screen.tables import Pen, filled
from attncli.rendering.text import captions
from attncli.rendering.text.labels import one_line, plain, visible
from attncli.rendering.text.numbers import aligned, bands

if TYPE_CHECKING:
    from attncli.inspecting.ledger import Entry, Parameter
    from attncli.inspecting.spread import Look, Spread
    from attncli.inspecting.summary import Summary
    from attncli.model.problem import Problem
    from attncli.rendering.formats import Options, Stream

GAP = 2
"""Blanks between the columns of a table, and before its first."""


def write(shown: tuple[Summary, Problem], options: Options, stream: Stream) -> None:
    """Draw a summary: what is in force, then a section a question."""
    summary, problem = shown
    pen = Pen(options)
    if summary.title:
        pen.console.print(Text(visible(one_line(summary.title), pen.encoding), "bold"))
    between = " · " if pen.symbols else " | "
    phrases = [_shown(pen, phrase) for phrase in captions.in_force(problem)]
    for line in filled(phrases, between, pen.console.width - 2 * GAP):
        _say(pen, line, "dim")
    for draw in (_sizes, _shapes, _parameters, _work, _mask, _statistics, _heads, _invariants, _warnings):
        draw(pen, summary, problem)
    if pen.cut_labels:
        pen.console.print()
        pen.console.print(Text(pen.say("Labels that end in … are cut; --full shows them whole."), "italic"))
    stream.write(pen.taken())


# Sections


def _sizes(pen: Pen, summary: Summary, problem: Problem) -> None:
    _heading(pen, "Sizes")
    rows = [[size.name, "=", str(size.value), size.meaning, size.source] for size in summary.sizes]
    _words(pen, rows, right=(2,))


def _shapes(pen: Pen, summary: Summary, problem: Problem) -> None:
    _heading(pen, "Shapes")
    rows = []
    for entry in summary.shapes:
        axes, numbers = _without_one_head(entry, problem)
        formula = captions.written(_equation(entry), pen.symbols)
        rows.append([entry.name, formula, " × ".join(axes), "=", " × ".join(map(str, numbers))])
    _words(pen, rows)


def _equation(entry: Entry) -> str:
    if entry.is_input or entry.formula == "given":
        return '"given"'
    same = entry.symbol.split("(")[0] == entry.formula.split("(")[0]
    return entry.formula if same or not entry.symbol else f"{entry.symbol} = {entry.formula}"


def _without_one_head(entry: Entry, problem: Problem) -> tuple[list[str], list[int]]:
    """Axes and sizes without the head axis where there is one head."""
    kept = [
        (axis, size)
        for axis, size in zip(entry.axes, entry.shape, strict=True)
        if axis not in ("h", "g") or problem.num_heads > 1
    ]
    return [axis for axis, _ in kept], [size for _, size in kept]


def _parameters(pen: Pen, summary: Summary, problem: Problem) -> None:
    found = summary.parameters
    if not found.rows:
        return
    biases = f": {found.weights:,} in weights, {found.biases:,} in biases" if found.biases else ", no biases"
    saved = f"; {found.full:,} with every product multiplied out" if found.full != found.total else ""
    _heading(pen, f"Parameters: {found.total:,}{biases}{saved}")
    rows = [[row.name, f"{row.count:,}", "= " + _count_in_words(row)] for row in found.rows]
    _words(pen, rows, right=(1,))


def _count_in_words(row: Parameter) -> str:
    shape = "·".join(map(str, row.shape))
    if not row.factors:
        return shape
    factors = " + ".join("·".join(map(str, factor)) for factor in row.factors)
    return f"{factors}, a product; in full {shape} = {row.full:,}"


def _work(pen: Pen, summary: Summary, problem: Problem) -> None:
    _heading(pen, f"Work and memory: {summary.multiply_adds:,} multiply-adds, {bytes_in_words(summary.bytes)}")
    rows = [
        [cost.name, bytes_in_words(cost.bytes), f"{cost.multiply_adds:,}" if cost.multiply_adds else "",
         f"= {cost.product}" if cost.product else ""]
        for cost in summary.costs
    ]  # fmt: skip
    _words(pen, rows, right=(1, 2))
    if not summary.multiply_adds:
        return
    cached = " m_new: the keys that are not cached." if problem.past else ""
    _say(pen, f"Multiply-adds are those of matrix products; masked cells count.{cached}", "dim")
    if cache := summary.cache:
        grouped = f"; with {problem.num_heads} key/value heads {bytes_in_words(cache.ungrouped)}"
        text = f"K and V in a cache: {bytes_in_words(cache.bytes)}, {bytes_in_words(cache.bytes_per_token)} a token"
        _say(pen, text + (grouped if cache.ungrouped != cache.bytes else ""), "dim")


def _mask(pen: Pen, summary: Summary, problem: Problem) -> None:
    mask = summary.mask
    if mask is None:
        return
    _heading(pen, "Mask: " + "; ".join(mask.parts))
    for sentence in mask.sentences:
        _say(pen, sentence)
    if mask.adds:
        _say(pen, mask.adds)
    if mask.left_out:
        _say(pen, f"({mask.left_out} sentences left out; --full shows all)", "italic")


def _statistics(pen: Pen, summary: Summary, problem: Problem) -> None:
    for note in summary.notes:
        if note.startswith("no statistics"):
            _heading(pen, "Statistics")
            _say(pen, note)
    if not summary.statistics:
        return
    _heading(pen, "Statistics")
    rows = summary.statistics
    columns = [("mean", [one.mean for one in rows]), ("variance", [one.variance for one in rows]),
               ("least", [one.least for one in rows]), ("most", [one.most for one in rows])]  # fmt: skip
    texts = [(name, aligned([_figure(pen, number) for number in numbers])) for name, numbers in columns]
    others = [_not_finite(pen, one) for one in rows]
    if any(others):
        texts.append(("not finite", others))
    _numbers(pen, [one.name for one in rows], texts)
    variance = summary.score_variance
    if variance and variance.before is not None and variance.after is not None:
        expected = f" (independent q, k ~ N(0, 1): {variance.d_k} and 1)" if _is_usual(summary) else ""
        text = f"Variance of the scores: {_figure(pen, variance.before)} before the scale, "
        _say(pen, f"{text}{_figure(pen, variance.after)} after{expected}")


def _is_usual(summary: Summary) -> bool:
    return summary.scale is not None and summary.scale.source != "given"


def _not_finite(pen: Pen, one: Spread) -> str:
    parts = [(one.minus_infinite, "−∞"), (one.plus_infinite, "∞"), (one.nan, "NaN")]
    return ", ".join(f"{count} × {word}" for count, word in parts if count)


def _heads(pen: Pen, summary: Summary, problem: Problem) -> None:
    looks = [look for look in summary.heads if look.rows]
    skipped = sum(look.left_out for look in summary.heads)
    if not looks:
        return
    _heading(pen, "Where each head looks" if problem.num_heads > 1 else "Where the queries look")
    columns: list[tuple[str, list[str]]] = []
    for name, field in _MEANS.items():
        numbers = [getattr(look, field) for look in looks]
        unknown = all(number is None for number in numbers)
        if not (unknown or (field == "of_allowed" and all(map(_is_free, looks)))):
            columns.append((name, aligned([_figure(pen, number) for number in numbers])))
    columns.append(("saturated", [f"{look.saturated} of {look.choices}" for look in looks]))
    columns.append(("most on", [_favourite(pen, look, problem) for look in looks]))
    names = [f"head {look.head}" for look in looks] if problem.num_heads > 1 else [""] * len(looks)
    _numbers(pen, names, columns)
    there = [name for name, _ in columns]
    _say(pen, _legend(there), "dim")
    if skipped:
        rows = f"{skipped} row{'s are' if skipped > 1 else ' is'} left out"
        _say(pen, f"{rows}: empty, negative, or with another sum than 1.", "dim")


_MEANS = {
    "entropy": "entropy", "of ln m": "of_all", "of allowed": "of_allowed", "distance": "distance",
    "previous": "previous", "itself": "itself", "first": "first",
}  # fmt: skip
"""The columns on where heads look, and the fields of a Look that they show."""


def _is_free(look: Look) -> bool:
    """Whether a head's queries may attend to every key, so that both shares of its entropy are one."""
    if look.of_allowed is None or look.of_all is None:
        return look.of_allowed is None
    return abs(look.of_allowed - look.of_all) < 1e-9


def _legend(names: Sequence[str]) -> str:
    parts = ["Means over the queries. Entropy in nats"]
    if "of ln m" in names:
        parts[0] += ", and as a share of ln m" + (
            " and of what the mask allows" if "of allowed" in names else ", its most"
        )
    if "distance" in names:
        parts.append("distance: |i − j|, weighted; previous, itself, first: the weight there")
    parts.append(f"saturated: over {SATURATED} on one key, of those with a choice")
    return "; ".join(parts) + "."


def _favourite(pen: Pen, look: Look, problem: Problem) -> str:
    if look.favourite is None:
        return ""
    labels = problem.memory_tokens
    label = f" {pen.label(labels[look.favourite - 1])}" if labels else ""
    return f"{look.favourite}{label} ({_figure(pen, look.favourite_weight)})"


def _invariants(pen: Pen, summary: Summary, problem: Problem) -> None:
    if not summary.invariants:
        return
    _heading(pen, "What must hold")
    for one in summary.invariants:
        mark = ("✓" if pen.symbols else "ok") if one.holds else ("✗" if pen.symbols else "NO")
        _say(pen, f"{mark} {one.sentence}", "" if one.holds else "bold red")
    for text in summary.looks_like:
        _say(pen, text, "yellow")


def _warnings(pen: Pen, summary: Summary, problem: Problem) -> None:
    broken = {one.name for one in summary.invariants if not one.holds}
    warnings = [one for one in summary.warnings if one.name not in broken]
    notes = [
        note for note in summary.notes if not note.startswith("no statistics") and "may attend to nothing" not in note
    ]
    if not warnings and not notes:
        return
    _heading(pen, "Warnings" if warnings else "Notes")
    for one in warnings:
        _say(pen, one.sentence, "yellow")
    for note in notes:
        _say(pen, note)


# Drawing


def _heading(pen: Pen, text: str) -> None:
    pen.console.print()
    pen.console.print(Text(pen.say(text), "bold"))


def _say(pen: Pen, text: str, style: str = "", indent: int = GAP) -> None:
    """A sentence, indented, wrapped between words; its further lines are indented more."""
    lines = Text(_shown(pen, text)).wrap(pen.console, pen.console.width - 2 * GAP)
    for i, line in enumerate(lines):
        blanks = " " * (2 * GAP if i else indent)
        pen.console.print(Text(blanks + line.plain.rstrip(), style), soft_wrap=True, crop=False)


def _shown(pen: Pen, text: str) -> str:
    """Text as this screen can show it, labels in it made harmless."""
    return visible(text if pen.symbols else plain(text), pen.encoding)


def _figure(pen: Pen, number: float | None) -> str:
    """Four digits that count, or the decimals that ``-d`` asks for."""
    if number is None:
        return pen.say("–") if pen.symbols else "-"
    if pen.options.digits is not None:
        return pen.number(number)
    text = f"{number:.4g}"
    return text.replace("-", "−") if pen.symbols else text


def _words(pen: Pen, rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> None:
    """A table of words; on a screen that is too narrow for it, a few lines a row."""
    shown = [[_shown(pen, cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*shown, strict=True)]
    total = GAP + sum(width + GAP for width in widths if width) - GAP
    fits = pen.width is None or total <= pen.width
    for row in shown:
        if fits:
            cells = [_padded(cell, width, i in right) for i, (cell, width) in enumerate(zip(row, widths, strict=True))]
            lines = [(" " * GAP).join(cell for cell, width in zip(cells, widths, strict=True) if width)]
        else:
            lines = _packed([cell for cell in row if cell], (pen.width or 0) - 2 * GAP)
        for i, line in enumerate(lines):
            indent = 2 * GAP if i else GAP
            if cell_len(line) > pen.console.width - 2 * GAP and not fits:
                _say(pen, line, indent=indent)
            else:
                pen.console.print(Text(" " * indent + line.rstrip()), soft_wrap=True, crop=False)


def _packed(cells: Sequence[str], room: int) -> list[str]:
    """Cells side by side, as many on a line as fit; "=" stands between its neighbours.

    >>> _packed(["n", "=", "3", "queries"], 8)
    ['n = 3', 'queries']
    """
    phrases = list(cells[:1])
    for cell in cells[1:]:
        if phrases[-1].endswith("=") or cell.startswith("="):
            phrases[-1] += f" {cell}"
        else:
            phrases.append(cell)
    return filled(phrases, "  ", room)


def _numbers(pen: Pen, names: Sequence[str], columns: Sequence[tuple[str, Sequence[str]]]) -> None:
    """A table of numbers, in bands of columns that fit, each with the names of its rows."""
    names = [_shown(pen, name) for name in names]
    left = GAP + max(map(cell_len, names))
    texts = [(_shown(pen, heading), [_shown(pen, cell) for cell in cells]) for heading, cells in columns]
    widths = [max(cell_len(heading), *map(cell_len, cells)) + GAP for heading, cells in texts]
    room = None if pen.width is None else max(pen.width - left, 1)
    for band in bands(widths, room):
        some = [(texts[i], widths[i]) for i in band]
        heading = " " * left + "".join(_padded(text, width, True) for (text, _), width in some)
        pen.console.print(Text(heading.rstrip(), "bold"), soft_wrap=True, crop=False)
        for i, name in enumerate(names):
            line = " " * GAP + _padded(name, left - GAP, False)
            line += "".join(_padded(cells[i], width, True) for (_, cells), width in some)
            pen.console.print(Text(line.rstrip()), soft_wrap=True, crop=False)


def _padded(text: str, width: int, right: bool) -> str:
    blank = " " * (width - cell_len(text))
    return blank + text if right else text + blank
