"""One HTML page for a write-up: self-contained, no network; a click on a cell shows its arithmetic.

Everything that comes from the problem is escaped, in the text and in the embedded data. The page allows itself its
own style and script by their hashes, and nothing else.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from attncli.language import notation
from attncli.rendering.text.captions import in_force
from attncli.rendering.text.labels import one_line, visible
from attncli.rendering.text.numbers import decimals
from attncli.rendering.text.writeup import Section, Sheet, gaps, number, picked, sections

if TYPE_CHECKING:
    from attncli.rendering.formats import Options, Stream
    from attncli.rendering.text.work import Work
    from attncli.rendering.views import View

MOST_ROWS, MOST_COLUMNS = 40, 40
"""A larger matrix is shortened in the middle, unless all of it is asked for."""

STEPS = 12
"""So many shades there are, for positive and for negative numbers."""


def write(view: View, options: Options, stream: Stream) -> None:
    """The writer of ``-f html``."""
    stream.write(html(view, options.digits, options.full).encode())


def html(view: View, digits: int | None = None, full: bool = False) -> str:
    """The selected stages as a page; before all stages of a problem, what is given.

    ``digits`` decimals; ``full`` shows long matrices whole.
    """
    from attncli.rendering.text.work import work

    shown = sections(view, full)
    cells = [sheet.cell(i, j) for section in shown for sheet in section.sheets for i, j in _places(sheet, full)]
    done = work(view.result, cells, decimals(digits))
    style, script = _asset("page.css") + _shades(), _asset("page.js")
    title = escape(one_line(view.problem.title or "Attention, stage by stage"))
    flow = ['<div class="flow">', *(tables(section, digits, full) for section in shown), "</div>"]
    body = "\n".join([*_head(view, title, shown, done), *flow])
    return _PAGE.format(
        csp=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'",
        title=title, style=style, script=script, body=body, panel=_PANEL, data=_embedded(done.cells),
    )  # fmt: skip


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{csp}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div class="page">
<main>
{body}
<footer>Made by attncli. The page holds everything that it shows, and asks nothing of any network.</footer>
</main>
<aside id="panel" class="empty" aria-live="polite" aria-label="The arithmetic of a cell">{panel}</aside>
</div>
<script type="application/json" id="work">{data}</script>
<script>{script}</script>
</body>
</html>
"""

_PANEL = """
<h2>How a number arose</h2>
<p>Click a cell, or move through a table with the arrow keys: its arithmetic is shown here, and the cells that it
was made from light up. Escape puts the light out.</p>
"""


def _asset(name: str) -> str:
    return files("attncli.rendering.documents").joinpath(name).read_text(encoding="utf-8")


def _shades() -> str:
    """The classes of the shades: p1 to p12 for positive numbers, n1 to n12 for negative ones."""
    return "".join(
        f".{letter}{k}{{background:rgb(var(--{name})/{0.55 * k / STEPS:.3f})}}\n"
        for letter, name in (("p", "plus"), ("n", "minus"))
        for k in range(1, STEPS + 1)
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _embedded(data: object) -> str:
    """JSON inside a script element, which nothing in it can end."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _head(view: View, title: str, shown: list[Section], done: Work) -> Iterator[str]:
    problem = view.problem
    yield f"<h1>{title}</h1>"
    if problem.note:
        yield f"<p>{escape(one_line(problem.note))}</p>"
    if problem.source:
        yield f'<p class="soft">Source: {escape(one_line(problem.source))}</p>'
    yield f'<p class="soft">{escape("; ".join(in_force(problem)))}</p>'
    yield from (f'<p class="note">{escape(one_line(note))}</p>' for note in view.result.notes)
    if done.left_out:
        yield f'<p class="note">{escape(done.left_out)}</p>'
    links = "".join(f'<li><a href="#{_anchor(section)}">{escape(section.name)}</a></li>' for section in shown)
    yield f'<nav aria-label="Matrices"><ul>{links}</ul></nav>'


def _anchor(section: Section) -> str:
    return f"of-{section.name}"


def tables(
    section: Section,
    digits: int | None = None,
    full: bool = False,
    cell: Callable[..., str] | None = None,
    ids: bool = True,
) -> str:
    """A section with its tables, each number shaded by its size; ``cell`` writes a number in another way."""
    anchor, digits = _anchor(section), decimals(digits, section.decimals)
    formula = f'<p class="formula">{notation.mathml(section.equation)}</p>'
    parts = [
        f'<section aria-labelledby="{anchor}">' if ids else "<section>",
        f'<h2 id="{anchor}">{escape(section.name)}</h2>' if ids else f"<h3>{escape(section.name)}</h3>",
        *([formula] if section.equation != section.symbol else []),
        f'<p class="soft">{escape(section.sentence)} {notation.mathml(section.shape)}</p>',
        '<div class="sheets">',
        *(_sheet(section, sheet, digits, full, cell or _cell) for sheet in section.sheets),
        "</div>",
    ]
    words = [] if full else [gaps(sheet, MOST_ROWS, MOST_COLUMNS) for sheet in section.sheets[:1]]
    said = ", ".join(word for word in (*words, section.left_out) if word)
    parts += [f'<p class="note">{escape(said)}; --full shows all.</p>'] if said else []
    return "\n".join([*parts, "</section>"])


def _places(sheet: Sheet, full: bool) -> Iterator[tuple[int, int]]:
    rows, columns = sheet.array.shape
    for i in picked(rows, rows if full else MOST_ROWS):
        for j in picked(columns, columns if full else MOST_COLUMNS):
            if i is not None and j is not None:
                yield i, j


def _sheet(section: Section, sheet: Sheet, digits: int, full: bool, cell: Callable[..., str]) -> str:
    rows, columns = sheet.array.shape
    across = picked(columns, columns if full else MOST_COLUMNS)
    most = _largest(section)
    words = f", {escape(sheet.words)}" if sheet.words else ""
    lines = [
        f'<div class="sheet"><table><caption>{notation.mathml(sheet.symbol)}{words}</caption>',
        "<thead><tr><td></td>",
    ]
    lines += ["<td>…</td>" if j is None else f'<th scope="col">{_label(sheet.columns, j)}</th>' for j in across]
    lines.append("</tr></thead><tbody>")
    for i in picked(rows, rows if full else MOST_ROWS):
        if i is None:
            lines.append(f"<tr>{'<td class=gap>⋮</td>' * (len(across) + 1)}</tr>")
            continue
        cells = ("<td class=gap>…</td>" if j is None else cell(sheet, i, j, digits, most) for j in across)
        lines.append(f'<tr><th scope="row">{_label(sheet.rows, i)}</th>{"".join(cells)}</tr>')
    return "\n".join([*lines, "</tbody></table></div>"])


def _label(labels: Sequence[str], position: int) -> str:
    """A token with its position, or the position alone."""
    text, number = labels[position], str(position + 1)
    return number if text == number else f"<small>{number}</small> <bdi>{escape(visible(text))}</bdi>"


def _largest(section: Section) -> float:
    """What the darkest shade stands for: 1 for weights, else the largest finite size."""
    if section.name == "weights":
        return 1.0
    arrays = (np.abs(np.asarray(sheet.array, dtype=float)) for sheet in section.sheets)
    return max((float(array[np.isfinite(array)].max(initial=0)) for array in arrays), default=0.0)


def _cell(sheet: Sheet, i: int, j: int, digits: int, most: float) -> str:
    value = float(sheet.array[i, j])
    hidden = sheet.hidden is not None and bool(sheet.hidden[i, j])
    step = shade_of(value, most)
    shade = "hidden" if hidden else f"{'p' if step > 0 else 'n'}{abs(step)}" if step else ""
    title = ' title="hidden by the mask"' if hidden else ""
    attributes = f' class="{shade}"' if shade else ""
    return f'<td id="{escape(sheet.cell(i, j))}"{attributes}{title}>{escape(number(sheet.array[i, j], digits))}</td>'


def shade_of(value: float, most: float) -> int:
    """How deep a shade a number has: 0 to STEPS for positive ones, 0 to -STEPS for negative ones."""
    if not np.isfinite(value) or most == 0:
        return 0
    return round(STEPS * max(-1.0, min(1.0, value / most)))
