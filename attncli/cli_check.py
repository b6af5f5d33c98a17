"""The commands `check` and `mistakes`: arguments in, one library call, one renderer, one exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attncli.cli_words import load_words, split_words
from attncli.errors import AttncliError
from attncli.names import STAGE_NAMES

if TYPE_CHECKING:
    from attncli.check import Checker
    from attncli.classroom import Marking, Row
    from attncli.precision import Rule
    from attncli.problem import Problem
    from attncli.rendering.formats import Options

SUFFIXES = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}
FORMATS = ("table", "json", "jsonl", "csv")

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
"""

MISTAKES_HELP = """The known mistakes: what `check` can name, each with its stage and its wrong formula.

\b
Examples:
  attncli mistakes
  attncli mistakes softmax_columns
  attncli mistakes -f json
"""


def _stages(incomplete: str) -> list[str]:
    return [name for name in (*STAGE_NAMES, "all") if name.startswith(incomplete)]


def check(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROBLEM [ANSWERS]... [KEY=VALUE]...",
            help="A file, an example's name or -; answer sheets (YAML, JSON, .npz, CSV, -); keys to set.",
        ),
    ] = None,
    atol: Annotated[
        float | None, typer.Option("--atol", min=0, help="Absolute tolerance, in place of the decimals as written.")
    ] = None,
    rtol: Annotated[
        float | None, typer.Option("--rtol", min=0, help="Relative tolerance, in place of the decimals as written.")
    ] = None,
    stage: Annotated[
        str | None,
        typer.Option("--stage", "-s", help="What a sheet that is one plain matrix is.", autocompletion=_stages),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option("--require", help="Stages that must be there (a comma list, or all).", autocompletion=_stages),
    ] = None,
    points: Annotated[list[str] | None, typer.Option("--points", help="Points a stage: weights=2,outputs=3.")] = None,
    follow_through: Annotated[
        float, typer.Option("--follow-through", min=0, max=1, help="The share of points for carried forward.")
    ] = 1.0,
    format: Annotated[
        str | None, typer.Option("--format", "-f", help=f"{', '.join(FORMATS)}.", autocompletion=lambda: list(FORMATS))
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write to a file; its suffix picks the format.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code says it.")] = False,
) -> None:
    from attncli.classroom import Marking, points_of
    from attncli.precision import Rule

    chosen = _format(format, output)
    marking = Marking(points_of(points or []), follow_through)
    names, settings = split_words(words)
    problem, sheets = (names[0] if names else None), names[1:]
    checker = _checker(load_words([*names[:1], *settings], "check"), names, Rule(atol, rtol), require or [])
    if len(sheets) > 1:
        correct = _check_class(checker, sheets, _reader(stage), marking, None if quiet else chosen, output)
    else:
        row = _single(checker, sheets[0] if sheets else None, stage, marking, problem)
        correct = row.correct
        if not quiet:
            _write_single(row, chosen, output)
    if not correct:
        raise typer.Exit(1)


def _format(format: str | None, output: str | None) -> str:
    if format is None and output is not None:
        format = SUFFIXES.get(Path(output).suffix.lower())
    format = format or "table"
    if format not in FORMATS:
        raise AttncliError(f"check has no format {format!r}", hint=f"Its formats are {', '.join(FORMATS)}.")
    return format


def _checker(problem: Problem, names: list[str], rule: Rule, require: list[str]) -> Checker:
    from attncli.check import Checker

    if names.count("-") > 1:
        raise AttncliError("standard input can be read only once", hint="Give the problem or the sheet as a file.")
    required = [name.strip() for text in require for name in text.split(",") if name.strip()]
    return Checker(problem, rule, required)


def _single(checker: Checker, source: str | None, stage: str | None, marking: Marking, problem: str | None) -> Row:
    from attncli.classroom import marked

    if source is None:
        return marked(f"{problem or 'KEY=VALUE'}: expect", checker.check(), marking)
    name = "standard input" if source == "-" else source
    return marked(name, checker.check(_reader(stage)(source)), marking)


def _reader(stage: str | None) -> Callable[[str], Any]:
    from attncli.reading.sheets import read_sheet

    return lambda source: read_sheet(source, stage=stage)


def _write_single(row: Row, format: str, output: str | None) -> None:
    from attncli.writing import destination

    with destination(output) as stream:
        if format == "table":
            from attncli.rendering import reports

            for piece in reports.sheet(row, _options(output)):
                stream.write(piece)
        else:
            from attncli.rendering.report_data import WRITERS

            for text in WRITERS[format]([row], False):
                stream.write(text.encode())


def _check_class(
    checker: Checker,
    sheets: list[str],
    read: Callable[[str], Any],
    marking: Marking,
    format: str | None,
    output: str | None,
) -> bool:
    """Check many sheets and write their rows (``format`` None: nothing); whether all are correct."""
    from attncli.classroom import grade
    from attncli.terminal import progress

    with progress("checking") as tell_share:
        rows = list(grade(checker, sheets, read, marking, tell_share))
    if format is not None:
        _write_class(rows, format, output)
    return all(row.correct for row in rows)


def _write_class(rows: list[Row], format: str, output: str | None) -> None:
    from attncli.writing import destination

    with destination(output) as stream:
        if format == "table":
            from attncli.classroom import totals
            from attncli.rendering import class_reports

            options = _options(output)
            for piece in class_reports.classroom(rows, options):
                stream.write(piece)
            stream.write(class_reports.summary(totals(rows), options))
        else:
            from attncli.rendering.report_data import WRITERS

            for text in WRITERS[format](rows, True):
                stream.write(text.encode())


def _options(output: str | None) -> Options:
    from attncli.rendering.formats import Options
    from attncli.terminal import screen

    return Options(screen=screen(output))


def mistakes(
    names: Annotated[
        list[str] | None, typer.Argument(help="Only these.", autocompletion=lambda incomplete: _mistakes(incomplete))
    ] = None,
    format: Annotated[str | None, typer.Option("--format", "-f", help="table, json.")] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
) -> None:
    from attncli.notation import unicode
    from attncli.writing import destination

    chosen = format or ("json" if (output or "").endswith(".json") else "table")
    if chosen not in ("table", "json"):
        raise AttncliError(f"mistakes has no format {chosen!r}", hint="Its formats are table, json.")
    rows = _selected(names or [])
    with destination(output) as stream:
        if chosen == "json":
            import json

            keys = ("name", "stage", "sentence", "formula", "source")
            data = [{key: getattr(row, key) for key in keys} for row in rows]
            stream.write((json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode())
        else:
            from attncli.rendering import class_reports

            lines = [(row.name, row.stage, row.sentence, unicode(row.formula), row.source) for row in rows]
            stream.write(class_reports.mistakes_table(lines, _options(output)))


def _selected(names: list[str]) -> list[Any]:
    from difflib import get_close_matches

    from attncli.mistakes import MISTAKES

    for name in names:
        if name not in MISTAKES:
            close = get_close_matches(name, MISTAKES, 1)
            hint = f"Did you mean {close[0]}?" if close else "`attncli mistakes` lists them all."
            raise AttncliError(f"no known mistake is called {name!r}", hint=hint)
    return [MISTAKES[name] for name in names] if names else list(MISTAKES.values())


def _mistakes(incomplete: str) -> list[str]:
    from attncli.mistakes import MISTAKES

    return [name for name in MISTAKES if name.startswith(incomplete)]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command(help=CHECK_HELP)(check)
    app.command(help=MISTAKES_HELP)(mistakes)
