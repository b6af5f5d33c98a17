"""Heatmaps as SVG, which needs no further package. The same input gives the same bytes.

Cells that a mask hides are hatched; values stand in the cells where they fit; each cell's `title` names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from math import ceil
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

import numpy as np

from attncli.language.errors import AttncliError
from attncli.rendering.pictures.colours import HIDDEN, brightness, colour, hexadecimal
from attncli.rendering.pictures.plots import Picture, label, numbers, picture
from attncli.rendering.text.labels import visible
from attncli.rendering.text.writeup import Sheet, number

if TYPE_CHECKING:
    from attncli.rendering.formats import Options, Stream
    from attncli.rendering.views import View

MOST_CELLS, MOST_TITLES = 60_000, 10_000
"""A larger SVG would be a file that browsers choke on (PNG has no limit); up to the second, each cell has a title."""


def write(view: View, options: Options, stream: Stream) -> None:
    """The writer of ``-f svg``."""
    stream.write(svg(view, options.digits).encode())


def svg(view: View, digits: int | None = None) -> str:
    """A heatmap as SVG; each cell's `title` names it, and gives its value in full.

    Raises AttncliError where several stages are selected, or too many cells for one file.
    """
    drawn = picture(view, digits)
    if drawn.cells > MOST_CELLS:
        hint = "Select a head with -H or a batch entry with -B, or draw a .png, which has no limit."
        raise AttncliError(f"{drawn.section.name} has {drawn.cells} cells, and an SVG takes {MOST_CELLS}", hint=hint)
    return "\n".join(_svg(drawn, _Frame.of(drawn))) + "\n"


_FONT, _SMALL = 12, 11
"""Sizes of type, in pixels."""


@dataclass(frozen=True)
class _Frame:
    """Where things stand, in pixels: a cell's size, the room for labels, a panel's size, the top of the panels."""

    cell_width: float
    cell_height: float
    left: float
    above: float
    panel_width: float
    panel_height: float
    top: float
    turned: bool

    @classmethod
    def of(cls, drawn: Picture) -> _Frame:
        sheet = drawn.sheets[0]
        rows, columns = sheet.array.shape
        most = max(rows, columns)
        side = 34.0 if most <= 10 else 26.0 if most <= 24 else max(3.0, 640 / most)
        width = max(side, drawn.longest * _SMALL * 0.62 + 8) if drawn.shows_values else side
        height = side
        turned = max(map(_width, map(label, sheet.columns))) > width - 4
        named = _names_every(side)
        left = 34 + (max(map(_width, map(label, sheet.rows))) if named else 24)
        across = max(map(_width, map(label, sheet.columns))) if turned and named else _FONT
        above = 48 + across
        return cls(width, height, left, above, left + columns * width + 24, above + rows * height + 20,
                   34.0 if drawn.title else 12.0, turned)  # fmt: skip


def _names_every(side: float) -> bool:
    """Whether the cells are large enough for a label each."""
    return side >= _FONT


def _width(text: str) -> float:
    """About how wide a text is: twice as wide for the wide letters of East Asia."""
    cells = sum(0 if combining(char) else 1.75 if east_asian_width(char) in "WF" else 1 for char in text)
    return cells * _FONT * 0.64


def _svg(drawn: Picture, frame: _Frame) -> Iterator[str]:
    down = ceil(len(drawn.sheets) / drawn.across)
    width = max(drawn.across * frame.panel_width + 84, _width(drawn.title) * 1.25 + 24)
    height = max(frame.top + down * frame.panel_height, frame.top + frame.above + 150)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" role="img" font-size="{_FONT}" '
        "font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', 'Noto Sans CJK JP', sans-serif\">"
    )
    heading = f"{drawn.section.name}: {drawn.section.meaning}"
    yield f"<title>{_xml(f'{drawn.title}. {heading}' if drawn.title else heading)}</title>"
    yield _HATCHING
    yield f'<rect width="{_n(width)}" height="{_n(height)}" fill="#ffffff"/>'
    if drawn.title:
        yield f'<text x="12" y="22" font-size="15" font-weight="600">{_xml(drawn.title)}</text>'
    for k, sheet in enumerate(drawn.sheets):
        x, y = (k % drawn.across) * frame.panel_width, frame.top + (k // drawn.across) * frame.panel_height
        yield f'<g transform="translate({_n(x + frame.left)} {_n(y + frame.above)})">'
        yield from _panel(drawn, sheet, frame)
        yield "</g>"
    yield from _bar(drawn, drawn.across * frame.panel_width, frame.top + frame.above)
    yield "</svg>"


_HATCHING = (
    '<defs><pattern id="hidden" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    f'<rect width="6" height="6" fill="{hexadecimal(HIDDEN)}"/><path d="M0 0V6" stroke="#8a8a8a" stroke-width="2"/>'
    "</pattern></defs>"
)


def _panel(drawn: Picture, sheet: Sheet, frame: _Frame) -> Iterator[str]:
    rows, columns = sheet.array.shape
    wide, tall = columns * frame.cell_width, rows * frame.cell_height
    caption = _xml(drawn.caption(sheet))
    yield f'<text x="{_n(wide / 2)}" y="{_n(24 - frame.above)}" text-anchor="middle" font-weight="600">{caption}</text>'
    yield _axis_title(drawn.column_axis, wide / 2, tall + 14)
    yield _axis_title(drawn.row_axis, 14 - frame.left, tall / 2, turned=True)
    yield from _row_labels(sheet, frame)
    yield from _column_labels(sheet, frame)
    values = numbers(sheet.array)
    for i in range(rows):
        for j in range(columns):
            hidden = sheet.hidden is not None and bool(sheet.hidden[i, j])
            yield _cell(drawn, sheet.cell(i, j), float(values[i, j]), hidden, j * frame.cell_width,
                        i * frame.cell_height, frame)  # fmt: skip
    yield f'<rect width="{_n(wide)}" height="{_n(tall)}" fill="none" stroke="#666666"/>'


def _axis_title(text: str, x: float, y: float, turned: bool = False) -> str:
    spin = f' transform="rotate(-90 {_n(x)} {_n(y)})"' if turned else ""
    style = f'text-anchor="middle" fill="#555555" font-size="{_SMALL}"'
    return f'<text x="{_n(x)}" y="{_n(y)}" {style}{spin}>{_xml(text)}</text>'


def _row_labels(sheet: Sheet, frame: _Frame) -> Iterator[str]:
    for i in _labelled(len(sheet.rows), frame.cell_height):
        y = (i + 0.5) * frame.cell_height + _FONT * 0.35
        yield f'<text x="-6" y="{_n(y)}" text-anchor="end">{_xml(label(sheet.rows[i]))}</text>'


def _column_labels(sheet: Sheet, frame: _Frame) -> Iterator[str]:
    for j in _labelled(len(sheet.columns), frame.cell_width):
        x = (j + 0.5) * frame.cell_width
        text = _xml(label(sheet.columns[j]))
        if frame.turned and _names_every(frame.cell_width):
            x += _FONT * 0.35
            yield f'<text x="{_n(x)}" y="-6" transform="rotate(-90 {_n(x)} -6)">{text}</text>'
        else:
            yield f'<text x="{_n(x)}" y="-6" text-anchor="middle">{text}</text>'


def _labelled(count: int, side: float) -> range:
    """Which positions have a label: all, or every tenth, fiftieth ... where the cells are small."""
    if _names_every(side):
        return range(count)
    step = next(step for step in (5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if step * side >= 3 * _FONT)
    return range(step - 1, count, step)


def _cell(drawn: Picture, name: str, value: float, hidden: bool, x: float, y: float, frame: _Frame) -> str:
    fill = colour(drawn.share(value)) if np.isfinite(value) else HIDDEN
    shade = "url(#hidden)" if hidden or not np.isfinite(value) else hexadecimal(fill)
    words = f"{name} = {number(value, max(drawn.digits, 6))}" + (" (hidden by the mask)" if hidden else "")
    w, h = _n(frame.cell_width), _n(frame.cell_height)
    title = f"<title>{_xml(words)}</title>" if drawn.cells <= MOST_TITLES else ""
    box = f'<rect x="{_n(x)}" y="{_n(y)}" width="{w}" height="{h}" fill="{shade}">{title}</rect>'
    if not drawn.shows_values:
        return box
    ink = "#000000" if hidden or brightness(fill) > 0.5 else "#ffffff"
    at = f'x="{_n(x + frame.cell_width / 2)}" y="{_n(y + frame.cell_height / 2 + _SMALL * 0.36)}"'
    halo = ' stroke="#ffffff" stroke-width="3" paint-order="stroke"' if hidden else ""
    text = number(value, drawn.digits)
    return (
        f'{box}<text {at} text-anchor="middle" font-size="{_SMALL}" fill="{ink}"{halo} '
        f'pointer-events="none">{_xml(text)}</text>'
    )


def _bar(drawn: Picture, x: float, y: float, height: float = 120, steps: int = 40) -> Iterator[str]:
    """The colour bar: its lowest, middle and highest value."""
    yield f'<g transform="translate({_n(x)} {_n(y)})">'
    for k in range(steps):
        top = height * (1 - (k + 1) / steps)
        fill = hexadecimal(colour((k + 0.5) / steps))
        yield f'<rect y="{_n(top)}" width="14" height="{_n(height / steps + 0.4)}" fill="{fill}"/>'
    yield f'<rect width="14" height="{_n(height)}" fill="none" stroke="#666666"/>'
    for share in (0, 0.5, 1):
        value = number(drawn.low + share * (drawn.high - drawn.low), drawn.digits)
        yield f'<text x="20" y="{_n(height * (1 - share) + _SMALL * 0.36)}" font-size="{_SMALL}">{_xml(value)}</text>'
    yield "</g>"


def _xml(text: str) -> str:
    """Text for XML, without the few characters that XML has none of."""
    return escape("".join(char if char.isprintable() or char == " " else visible(char) for char in text))


def _n(length: float) -> str:
    """A length, with no more digits than a picture needs."""
    return f"{length:.2f}".rstrip("0").rstrip(".")
