"""The commands `check` and `mistakes`: arguments in, one library call, one renderer, one exit code."""

import os
from math import isfinite
from typing import TYPE_CHECKING, Annotated

import typer

from attncli.cli.words import OutputFile, Rounding, complete_list, load_words, prepared, split_commas, split_words
from attncli.language.errors import AttncliError
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.checking.check import Checker
    from attncli.checking.classroom import Marking, Row
    from attncli.checking.mistakes import Mistake
    from attncli.checking.precision import Rule
    from attncli.model.problem import Problem
    from attncli.model.sheet import AnswerSheet

CHECK_HELP = """Is this right? Where did it go wrong first, and how?

Each stage of an answer sheet gets a verdict: correct, too coarse, carried forward, wrong, missing. Numbers are held to
the decimals that they were written with; a known mistake that gives exactly the sheet's numbers is named. Without
a sheet, the problem's own expect: is checked. Several sheets are a class: a line each, and totals.

Exit code: 0 all judged stages correct, 1 something is not, 2 unreadable.

\b
Examples:
  attncli check problem.yaml answers.yaml
  attncli check problem.yaml mask=causal expect.weights='1 0; 0.33 0.67'
  attncli check problem.yaml sheets/*.yaml
  attncli check problem.yaml sheets/*.yaml -o grades.csv --points weights=2,outputs=3
  attncli check layer.yaml dump.npz --rtol 1e-5
  attncli check layer.yaml dump/*.npy --rtol 1e-5   (a stage a file: weights.npy)
"""

MISTAKES_HELP = """The known mistakes: what `check` can name, each with its stage and its wrong formula.

\b
Examples:
  attncli mistakes
  attncli mistakes unscaled,softmax_columns
  attncli mistakes -f json
"""


def _stages(incomplete: str) -> list[str]:
    return [name for name in (*STAGES, "all") if name.startswith(incomplete)]


def _formats() -> list[tuple[str, str]]:
    from attncli.rendering.formats import REPORTS

    return [(name, row.meaning) for name, row in REPORTS.items()]


def check(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROBLEM [ANSWERS]... [KEY=VALUE]",
            help="A file, an example's name or -; answer sheets (YAML, JSON, .npz, CSV, -); keys to set.",
        ),
    ] = None,
    atol: Annotated[
        float | None,
        typer.Option("--atol", metavar="X", min=0, help="Absolute tolerance, in place of the decimals as written."),
    ] = None,
    rtol: Annotated[
        float | None,
        typer.Option("--rtol", metavar="X", min=0, help="Relative tolerance, in place of the decimals as written."),
    ] = None,
    stage: Annotated[
        str | None,
        typer.Option(
            "--stage", "-s", metavar="NAME", help="What a sheet that is one plain matrix is.", autocompletion=_stages
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="NAMES",
            help="Stages that must be there (a comma list, or all).",
            autocompletion=_stages,
        ),
    ] = None,
    points: Annotated[
        list[str] | None, typer.Option("--points", metavar="NAME=N", help="Points a stage: weights=2,outputs=3.")
    ] = None,
    follow_through: Annotated[
        float,
        typer.Option(
            "--follow-through", metavar="SHARE", min=0, max=1, help="The share of points for carried forward."
        ),
    ] = 1.0,
    round: Rounding = None,
    format: Annotated[
        str | None,
        typer.Option("--format", "-f", metavar="FORMAT", help="table, json, jsonl, csv.", autocompletion=_formats),
    ] = None,
    output: OutputFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code says it.")] = False,
) -> None:
    from attncli.checking.classroom import Marking, points_of
    from attncli.checking.precision import Rule
    from attncli.cli.terminal import screen
    from attncli.cli.writing import destination
    from attncli.rendering.formats import REPORTS, Options, chosen

    _refuse_infinite({"--atol": atol, "--rtol": rtol, "--follow-through": follow_through})
    form = chosen(format, output, REPORTS, "check")
    marking = Marking(points_of(points or []), follow_through)
    names, settings = split_words(words)
    problem = prepared(load_words([*names[:1], *settings], "check"), False, round)
    checker = _checker(problem, names, Rule(atol, rtol), require or [])
    rows = _checked(checker, names, stage, marking)
    if not quiet:
        with destination(output) as stream:
            form.write(rows, Options(screen=screen(output)), stream)
    if not all(row.correct for row in rows):
        raise typer.Exit(1)


def _refuse_infinite(options: dict[str, float | None]) -> None:
    for option, number in options.items():
        if number is not None and not isfinite(number):
            raise AttncliError(f"{option} takes a finite number, not {number}")


def _checker(problem: "Problem", names: list[str], rule: "Rule", require: list[str]) -> "Checker":
    from attncli.checking.check import Checker

    if names.count("-") > 1:
        raise AttncliError("standard input can be read only once", hint="Give the problem or the sheet as a file.")
    return Checker(problem, rule, split_commas(require))


def _checked(checker: "Checker", names: list[str], stage: str | None, marking: "Marking") -> "list[Row]":
    """A row for each sheet, or one for the problem's own ``expect``. One sheet alone is read, or the command fails."""
    from attncli.checking.classroom import grade, marked
    from attncli.cli.terminal import progress
    from attncli.reading.sheets import is_dump, read_dump, read_sheet

    def read(source: str) -> "AnswerSheet":
        return read_sheet(source, stage=stage)

    sheets = names[1:]
    if not sheets:
        return [marked(f"{names[0] if names else 'KEY=VALUE'}: expect", checker.check(), marking)]
    if stage is None and is_dump(sheets):
        folder = os.path.dirname(sheets[0]) or os.curdir
        return [marked(folder, checker.check(read_dump(sheets, folder)), marking)]
    if len(sheets) == 1:
        name = "standard input" if sheets[0] == "-" else sheets[0]
        return [marked(name, checker.check(read(sheets[0])), marking)]
    with progress("checking") as tell_share:
        return list(grade(checker, sheets, read, marking, tell_share))


def _mistakes(incomplete: str) -> list[str]:
    """The names of mistakes, also behind a comma."""
    from attncli.checking.mistakes import MISTAKES

    return complete_list(incomplete, MISTAKES)


def mistakes(
    names: Annotated[
        list[str] | None, typer.Argument(help="Only these (a comma list).", autocompletion=_mistakes)
    ] = None,
    format: Annotated[str | None, typer.Option("--format", "-f", metavar="FORMAT", help="table, json.")] = None,
    output: OutputFile = None,
) -> None:
    from attncli.cli.terminal import screen
    from attncli.cli.writing import destination
    from attncli.rendering.formats import LISTS, Options, chosen

    form = chosen(format, output, LISTS, "mistakes")
    rows = _selected(names)
    with destination(output) as stream:
        form.write(rows, Options(screen=screen(output)), stream)


def _selected(texts: list[str] | None) -> "list[Mistake]":
    """The mistakes that are named, each time one or a comma list; all where none is."""
    from difflib import get_close_matches

    from attncli.checking.mistakes import MISTAKES

    names = split_commas(texts)
    if texts and not names:
        raise AttncliError("no mistake is named", hint="`attncli mistakes` lists them all.")
    for name in names:
        if name not in MISTAKES:
            close = get_close_matches(name, MISTAKES, 1)
            hint = f"Did you mean {close[0]}?" if close else "`attncli mistakes` lists them all."
            raise AttncliError(f"no known mistake is called {name!r}", hint=hint)
    return [MISTAKES[name] for name in names] if names else list(MISTAKES.values())


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command(help=CHECK_HELP)(check)
    app.command(help=MISTAKES_HELP)(mistakes)
