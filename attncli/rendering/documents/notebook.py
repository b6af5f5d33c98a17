"""A Result in a notebook (static HTML tables) and at a prompt that rich draws (the tables of the screen)."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING

from attncli.rendering.documents.html import STEPS, shade_of, tables
from attncli.rendering.formats import Options, Screen
from attncli.rendering.text.captions import in_force
from attncli.rendering.text.labels import one_line
from attncli.rendering.text.writeup import Sheet, number, stage_section
from attncli.rendering.views import View

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

    from attncli.engine.compute import Result


def page(result: Result) -> str:
    """The stages as HTML without script, style sheet or ids, so that many may stand in one notebook."""
    view = View(result)
    parts = [f"<p><strong>{escape(one_line(result.problem.title))}</strong></p>"] if result.problem.title else []
    parts.append(f"<p>{escape('; '.join(in_force(result.problem)))}</p>")
    parts += [f"<p>{escape(one_line(note))}</p>" for note in result.notes]
    parts += [tables(stage_section(view, name), cell=_cell, ids=False) for name in view.stages]
    return "\n".join(["<div>", *parts, "</div>"])


def _cell(sheet: Sheet, i: int, j: int, digits: int, most: float) -> str:
    value, hidden = sheet.array[i, j], sheet.hidden is not None and bool(sheet.hidden[i, j])
    step = shade_of(float(value), most)
    red_green_blue = "30,105,190" if step > 0 else "200,95,20"
    ground = f";background:rgba({red_green_blue},{0.55 * abs(step) / STEPS:.3f})" if step else ""
    ground = ';opacity:0.5" title="hidden by the mask' if hidden else ground
    return f'<td style="text-align:right{ground}">{escape(number(value, digits))}</td>'


class Tables:
    """A result as rich draws it: the screen's tables, as wide as the console."""

    def __init__(self, result: Result) -> None:
        self.result = result

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich.text import Text

        from attncli.rendering.screen import tables as screen

        drawn = BytesIO()
        colours = console.is_terminal and console.color_system is not None
        screen.write(View(self.result), Options(screen=Screen(options.max_width, options.encoding, colours)), drawn)
        yield Text.from_ansi(drawn.getvalue().decode(options.encoding), no_wrap=True)
        yield from (Text(f"note: {note}") for note in self.result.notes)
