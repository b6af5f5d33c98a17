"""The worked solution of a problem: the arithmetic of each stage, every cell of a small one, one row of a larger one.

The writers of tables, Markdown and LaTeX put it below each stage's matrix when ``--work`` asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from attncli.explaining.explain import Explainer
from attncli.maths.cell import Cell
from attncli.maths.derivation import Derivation, node
from attncli.model.cells import Spot
from attncli.rendering.text import derivations, equations, tex
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.rendering.formats import Options
    from attncli.rendering.views import View

MOST_CELLS = 36
"""A stage of so many cells is worked in full, unless all are (``--full``); else one row of it."""

MOST_OF_ROW, SOME_OF_ROW = 24, 8
"""Of a row with more cells than the first number, so many as the second says are worked."""


def stage(view: View, name: str, full: bool = False) -> tuple[Derivation, str]:
    """The derivations of a stage of a view, and a sentence that says which cells they are not; empty where all are."""
    explainer = Explainer(view.result)
    matrices = list(view.matrices(name))
    leads = [
        (*(i - 1 for i in matrix.batch), *((matrix.head - 1,) if matrix.head is not None else ()))
        for matrix in matrices
    ]
    rows, columns = view.result.rows[name].shape[-2:]
    if full or len(leads) * rows * columns <= MOST_CELLS:
        found = [explainer.spot(Spot(name, lead, i)) for lead in leads for i in range(rows)]
        return _listed(name, found), ""
    example = min(rows, view.problem.n) - 1 if view.problem.mask is not None else 0
    if name != "outputs" and columns > MOST_OF_ROW:
        some = [explainer.spot(Spot(name, leads[0], example, j)) for j in range(SOME_OF_ROW)]
        cells = len(leads) * rows * columns
        return _listed(name, some), f"{SOME_OF_ROW} of the {cells} cells are worked here; the others go the same way"
    row = explainer.spot(Spot(name, leads[0], example))
    line = "columns" if view.problem.columns else "rows"
    said = f"{row.cell} is worked here; the other {len(leads) * rows - 1} {line} go the same way"
    return _listed(name, [row]), said


def _listed(name: str, rows: list[Derivation]) -> Derivation:
    return replace(node("stage", *rows), cell=Cell(name))


def screen(view: View, name: str, options: Options) -> bytes:
    """A stage's arithmetic for the screen, indented below its table."""
    if name in view.problem.given and not view.problem.past:
        return b""
    writer = derivations.Screen(view.problem, options)
    writer.width -= 2
    tree, said = stage(view, name, options.full)
    lines = writer.text([tree]).splitlines()
    if said:
        dash = f"({said}; --full works all)"
        lines += ["", *derivations.filled(dash, writer.width, "")]
    text = "\n".join(f"  {line}".rstrip() for line in ["", *lines])
    return (text + "\n").encode(writer.encoding, "backslashreplace")


def markdown(view: View, name: str, options: Options) -> Iterator[str]:
    """A stage's arithmetic as parts of a Markdown page."""
    if name in STAGES and name not in view.problem.given:
        tree, said = stage(view, name, options.full)
        yield from list(equations.markdown_parts(view.problem, tree, options))[1:]
        if said:
            yield f"*{said}; `--full` works all.*"


def latex(view: View, name: str, options: Options) -> Iterator[str]:
    """A stage's arithmetic as parts of a LaTeX document."""
    if name in STAGES and name not in view.problem.given:
        tree, said = stage(view, name, options.full)
        yield from equations.latex_parts(view.problem, tree, options)
        if said:
            yield f"({tex.escaped(said)}.)"
