"""Heatmaps of one stage: what is drawn, whichever way, and the drawing by matplotlib, as PNG or PDF (extra ``plot``).

`svg` draws the same without matplotlib.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.language import notation
from attncli.language.errors import AttncliError
from attncli.rendering.pictures.colours import HIDDEN, brightness, colour, hexadecimal
from attncli.rendering.text.labels import one_line, visible
from attncli.rendering.text.writeup import Section, Sheet, is_whole, number, stage_section
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.maths.ops import Array
    from attncli.rendering.formats import Options, Stream
    from attncli.rendering.views import View

DIGITS = 2
"""Decimals in a cell, where nobody asks for others."""

LONGEST_LABEL = 24
"""A longer label is cut, with an ellipsis."""

_AXES = {"n": "queries", "m": "keys"}


@dataclass(frozen=True)
class Picture:
    """What is drawn, whichever way: one stage's sheets, the range of the colours, and the words around them."""

    section: Section
    title: str
    row_axis: str
    column_axis: str
    low: float
    high: float
    digits: int

    @property
    def sheets(self) -> tuple[Sheet, ...]:
        return self.section.sheets

    @property
    def cells(self) -> int:
        """The number of cells, of all panels."""
        return sum(sheet.array.size for sheet in self.sheets)

    @property
    def across(self) -> int:
        """How many panels stand side by side."""
        count = len(self.sheets)
        heads = len({sheet.head for sheet in self.sheets})
        return heads if 1 < heads < count and heads <= 6 else count if count <= 3 else ceil(sqrt(count))

    def share(self, value: float) -> float:
        """Where a value lies between the lowest and the highest, 0 to 1."""
        span = self.high - self.low
        return 0.0 if span == 0 else (value - self.low) / span

    def caption(self, sheet: Sheet) -> str:
        """A panel's heading: its symbol, and which batch entry it is."""
        symbol = notation.unicode(sheet.symbol)
        return f"{symbol}, batch {','.join(map(str, sheet.batch))}" if sheet.batch else symbol

    @property
    def shows_values(self) -> bool:
        """Whether the numbers fit into the cells."""
        return max(self.sheets[0].array.shape) <= 16 and self.longest <= 9

    @property
    def longest(self) -> int:
        """The number of characters of the longest value."""
        extremes = (number(value, self.digits) for value in (self.low, self.high))
        return max(len(text) for text in extremes)


def picture(view: View, digits: int | None = None) -> Picture:
    """The picture of the one stage that is selected; of a whole problem, that of its weights.

    Raises AttncliError where several stages are selected.
    """
    name = _stage(view)
    section = stage_section(view, name, full=True)
    rows, columns = (_AXES.get(axis, axis) for axis in STAGES[name].shape_names(view.problem))
    low, high = _range(section.sheets, starts_at_0=name == "weights")
    title = one_line(view.problem.title or "")
    return Picture(section, title, rows, columns, low, high, DIGITS if digits is None else digits)


def _stage(view: View) -> str:
    if len(view.stages) == 1:
        return view.stages[0]
    if "weights" in view.stages and is_whole(view):
        return "weights"
    hint = "Select one with -s, such as -s weights."
    raise AttncliError(f"a picture shows one stage, and {len(view.stages)} are selected", hint=hint)


def _range(sheets: Iterable[Sheet], starts_at_0: bool) -> tuple[float, float]:
    """The lowest and the highest finite number, over all sheets."""
    arrays = [numbers(sheet.array) for sheet in sheets]
    finite = np.concatenate([array[np.isfinite(array)] for array in arrays])
    if not finite.size:
        return 0.0, 1.0
    return 0.0 if starts_at_0 else float(finite.min()), float(finite.max())


def numbers(array: Array) -> Array:
    """The entries as floats, exact ones too."""
    return np.asarray(array, dtype=float)


def label(text: str) -> str:
    """A label made harmless, and cut where it is very long."""
    text = visible(text)
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


# By matplotlib


def write_png(view: View, options: Options, stream: Stream) -> None:
    """The writer of ``-f png``."""
    _write(view, options, stream, "png")


def write_pdf(view: View, options: Options, stream: Stream) -> None:
    """The writer of ``-f pdf``."""
    _write(view, options, stream, "pdf")


def _write(view: View, options: Options, stream: Stream, kind: str) -> None:
    drawn = picture(view, options.digits)
    try:
        import matplotlib as mpl
    except ImportError:
        hint = 'Install it with: pip install "attncli[plot]". An .svg needs nothing.'
        raise AttncliError(f"a .{kind} is drawn by matplotlib, which is not installed", hint=hint) from None
    from io import BytesIO

    from attncli.rendering.pictures.fonts import families

    fonts, missing = families(_texts(drawn))
    if missing:
        shown = " ".join(missing[:10]) + (" …" if len(missing) > 10 else "")
        hint = "A font such as Noto Sans CJK has Chinese, Japanese and Korean; an .svg leaves the font to its reader."
        print(f"note: no font on this machine has {shown}: they are drawn as boxes\n  {hint}", file=sys.stderr)
    buffer = BytesIO()  # a PDF is written with jumps, which a stream may not allow
    with mpl.rc_context({"font.family": fonts, "pdf.fonttype": 42}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # said above, once
        dateless = {"CreationDate": None} if kind == "pdf" else {"Software": None}
        _figure(drawn).savefig(buffer, format=kind, dpi=144, metadata=dateless)
    stream.write(buffer.getvalue())


def _texts(drawn: Picture) -> str:
    words = [label(text) for sheet in drawn.sheets for text in (*sheet.rows, *sheet.columns)]
    return "".join([drawn.title, *words, *map(drawn.caption, drawn.sheets)])


def _figure(drawn: Picture) -> Any:
    """A figure with a panel a sheet and one colour bar for all."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.figure import Figure

    rows, columns = drawn.sheets[0].array.shape
    down = ceil(len(drawn.sheets) / drawn.across)
    cell = (0.55, 0.4) if drawn.shows_values else (0.15, 0.15)
    wide, tall = min(8.0, columns * cell[0]) + 1.5, min(8.0, rows * cell[1]) + 1.2
    figure = Figure(figsize=(drawn.across * wide + 1, down * tall + 0.5), layout="constrained")
    if drawn.title:
        figure.suptitle(drawn.title, parse_math=False)
    table = ListedColormap([hexadecimal(colour(k / 255)) for k in range(256)])
    colours = table.with_extremes(bad=hexadecimal(HIDDEN))
    scale = Normalize(drawn.low, drawn.high if drawn.high > drawn.low else drawn.low + 1)
    panels = figure.subplots(down, drawn.across, squeeze=False).ravel()
    for panel, sheet in zip(panels, drawn.sheets, strict=False):
        _panel(panel, drawn, sheet, colours, scale)
    for panel in panels[len(drawn.sheets) :]:
        panel.set_axis_off()
    figure.colorbar(ScalarMappable(scale, colours), ax=list(panels), shrink=0.8)
    return figure


def _panel(panel: Any, drawn: Picture, sheet: Sheet, colours: Any, scale: Any) -> None:
    array = numbers(sheet.array)
    hidden = ~np.isfinite(array) if sheet.hidden is None else sheet.hidden | ~np.isfinite(array)
    panel.imshow(np.ma.array(array, mask=hidden), cmap=colours, norm=scale, aspect="auto", interpolation="nearest")
    _hatch(panel, hidden)
    panel.set_title(drawn.caption(sheet), parse_math=False)
    panel.set_xlabel(drawn.column_axis, parse_math=False)
    panel.set_ylabel(drawn.row_axis, parse_math=False)
    _ticks(panel.xaxis, sheet.columns, turned=max(map(len, sheet.columns)) > 3)
    _ticks(panel.yaxis, sheet.rows)
    if drawn.shows_values:
        for (i, j), value in np.ndenumerate(array):
            dark = not hidden[i, j] and brightness(colour(drawn.share(value))) <= 0.5
            text, ink = number(value, drawn.digits), "white" if dark else "black"
            panel.text(j, i, text, ha="center", va="center", fontsize=8, color=ink)


def _hatch(panel: Any, hidden: Array) -> None:
    """Hatching over the hidden cells: one rectangle for each run of them in a row."""
    from matplotlib.patches import Rectangle

    for i, row in enumerate(hidden):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(int), [0]])))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            place, width = (start - 0.5, i - 0.5), stop - start
            panel.add_patch(Rectangle(place, width, 1, fill=False, hatch="////", edgecolor="#9a9a9a", linewidth=0))


def _ticks(axis: Any, labels: Sequence[str], turned: bool = False) -> None:
    step = max(1, ceil(len(labels) / 40))
    places = range(0, len(labels), step) if step == 1 else range(step - 1, len(labels), step)
    axis.set_ticks(list(places), [label(labels[k]) for k in places], parse_math=False, rotation=90 if turned else 0)
    axis.set_tick_params(length=0)
