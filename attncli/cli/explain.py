"""The command `explain`: arguments in, one library call a cell, one writer."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from attncli.cli.words import (
    Digits,
    Exactly,
    OutputFile,
    Rounding,
    complete_cells,
    is_assignment,
    load_words,
    prepared,
)
from attncli.language.errors import AttncliError
from attncli.rendering.formats import EXPLANATIONS

if TYPE_CHECKING:
    from attncli.model.problem import Problem

EXPLAIN_HELP = """How a number arose: the arithmetic of cells, rows, or whole stages.

CELL is weights[1,3] (row, column; from 1), weights.1.3 where the shell takes brackets for itself, weights[私,猫] by
token, weights[2;1,3] in head 2, outputs[1] for a token's vector, weights[1..2,3] for a range, or scores for a whole
stage. PROBLEM and KEY=VALUE are those of `attncli compute`.

\b
Examples:
  attncli explain three-tokens weights[1,3]
  attncli explain three-tokens outputs[1] --depth all
  attncli explain two-heads weights.1.3 -H 2
  attncli explain three-tokens weights[1,3] --exact
  attncli explain p.yaml scores -f latex
"""


def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROBLEM] CELL... [KEY=VALUE]...", autocompletion=complete_cells),
    ] = None,
    depth: Annotated[
        str, typer.Option("--depth", metavar="N", help="How many stages to follow back, or all: to Z and the weights.")
    ] = "1",
    head: Annotated[
        int | None, typer.Option("--head", "-H", metavar="R", help="The head, where CELL names none.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help=f"{', '.join(EXPLANATIONS)}.",
            autocompletion=lambda: list(EXPLANATIONS),
        ),
    ] = None,
    output: OutputFile = None,
    digits: Digits = None,
    full: Annotated[bool, typer.Option("--full", help="Write long sums in full.")] = False,
    exact: Exactly = False,
    round: Rounding = None,
    standalone: Annotated[bool, typer.Option("--standalone", help="LaTeX as a whole document.")] = False,
) -> None:
    from attncli.cli.terminal import screen, tell_notes
    from attncli.cli.writing import destination
    from attncli.engine.compute import compute
    from attncli.explaining.explain import explain as explained
    from attncli.explaining.explain import refuse_head
    from attncli.rendering.formats import Options, chosen
    from attncli.rendering.text.derivations import Explained

    form = chosen(format, output, EXPLANATIONS, "explain")
    cells, rest = _split(words or [])
    problem = prepared(load_words(rest, "explain"), exact, round)
    if head is not None:
        refuse_head(problem, head)
    result = compute(problem, needed_for(problem, cells))
    options = Options(digits=digits, full=full, standalone=standalone, screen=screen(output))
    trees = {cell: explained(result, cell, depth=_depth(depth), head=head) for cell in cells}
    with destination(output) as stream:
        form.write(Explained(problem, list(trees.values())), options, stream)
    tell_notes(result.notes)


def needed_for(problem: "Problem", cells: list[str]) -> list[str]:
    """The stages whose notes matter to these cells: their own."""
    from attncli.model.cells import stage_of
    from attncli.stages.wanted import wanted_stages

    return wanted_stages(problem, [stage_of(cell) for cell in cells])


def _depth(text: str) -> int | None:
    if text == "all":
        return None
    if text.isdigit() and int(text) > 0:
        return int(text)
    raise AttncliError(f"--depth takes a number of stages, or all; not {text!r}")


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The words that name cells, and the rest: PROBLEM and KEY=VALUE."""
    from attncli.model.cells import is_cell, refuse_no_stage

    cells = [word for word in words if not is_assignment(word) and is_cell(word)]
    rest = [word for word in words if word not in cells]
    for word in cells + _strays(rest):
        refuse_no_stage(word)
    if not cells:
        hint = "Name a cell: weights[1,3], a row: outputs[1], or a stage: scores."
        raise AttncliError("explain what? No cell is named", hint=hint)
    return cells, rest


def _strays(words: list[str]) -> list[str]:
    """The words beside the cells that were probably meant as cells: they look so, or are no file where another is."""
    from attncli.model.cells import seems_cell

    words = [word for word in words if not is_assignment(word)]
    unknown = [word for word in words if not _is_problem(word)]
    plain = [word for word in unknown if word.isidentifier()] if len(unknown) < len(words) else []
    return [word for word in unknown if seems_cell(word)] or plain


def _is_problem(word: str) -> bool:
    from attncli.reading.examples import names

    return word == "-" or os.path.lexists(word) or word in names()


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(help=EXPLAIN_HELP)(explain)
