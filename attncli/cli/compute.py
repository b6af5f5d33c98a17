"""The commands `compute` and `examples`: arguments in, one library call, one writer."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from attncli.cli.words import (
    Batch,
    Digits,
    Exactly,
    FormatName,
    Head,
    OutputFile,
    Rounding,
    Stages,
    Words,
    complete_examples,
    load_words,
    prepared,
    split_batch,
    split_list,
)
from attncli.language.errors import AttncliError

if TYPE_CHECKING:
    from attncli.engine.compute import Result
    from attncli.model.problem import Problem
    from attncli.rendering.formats import Format, Options
    from attncli.rendering.views import Choice

COMPUTE_HELP = """Every stage of a problem, as tables or as data.

PROBLEM is a file (YAML, JSON, .npz), - for standard input, or the name of a shipped example. KEY=VALUE sets or
replaces a key of it; a dot reaches inside (heads.2.W_Q=w.npy, mask.lengths=3). With KEY=VALUE no file is needed.

\b
Examples:
  attncli compute three-tokens
  attncli compute two-heads -s weights,outputs -H 2
  attncli compute three-tokens -s weights -f csv
  attncli compute three-tokens mask=causal -f json | jq .weights
  attncli compute Z='1 0; 0 1' W_Q='1 0; 0 1' W_K='1 1; 1 -1' W_V='2 0; 0 3'
  attncli compute layer.npz -o stages.npz
"""

EXAMPLES_HELP = """The shipped examples, listed or printed.

\b
Examples:
  attncli examples
  attncli examples three-tokens > mine.yaml
"""


def compute(
    words: Words = None,
    stage: Stages = None,
    head: Head = None,
    batch: Batch = None,
    format: FormatName = None,
    output: OutputFile = None,
    digits: Digits = None,
    full: Annotated[bool, typer.Option("--full", help="Show long matrices whole.")] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Beside weights: each row's sum, maximum and entropy.")
    ] = False,
    mask: Annotated[bool, typer.Option("--mask", help="Say the mask in words: who may attend to whom.")] = False,
    standalone: Annotated[bool, typer.Option("--standalone", help="LaTeX as a whole document.")] = False,
    work: Annotated[bool, typer.Option("--work", help="The arithmetic of every stage: a worked solution.")] = False,
    exact: Exactly = False,
    round: Rounding = None,
) -> None:
    from attncli.cli.terminal import progress, screen, tell_notes
    from attncli.engine.compute import compute as computed
    from attncli.rendering.formats import Options, chosen
    from attncli.rendering.views import check_fits, choose

    row = chosen(format, output)
    refuse_terminal(row, output)
    refuse_work(work, row)
    problem = prepared(load_words(words, "compute"), exact, round)
    choice = choose(problem, split_list(stage), head, split_batch(batch))
    check_fits(problem, choice, row)
    with progress("computing") as tell_share:
        result = computed(problem, choice.stages, tell_share)
    options = Options(digits=digits, full=full, stats=stats, standalone=standalone, work=work, screen=screen(output))
    write_result(result, choice, row, options, output)
    tell_notes(result.notes)
    if mask:
        tell_mask(problem, full)


MOST_SENTENCES = 20


def tell_mask(problem: "Problem", full: bool) -> None:
    """Who may attend to whom, on standard error: a sentence a query, the first of many unless ``full``."""
    from attncli.cli.terminal import tell

    sentences = problem.mask_in_words() or ["there is none: every query may attend to every key"]
    left_out = 0 if full else max(0, len(sentences) - MOST_SENTENCES)
    for sentence in sentences[: len(sentences) - left_out]:
        tell("mask", sentence)
    if left_out:
        tell("mask", f"{left_out} more queries; --full says them all")


def write_result(result: "Result", choice: "Choice", row: "Format", options: "Options", output: str | None) -> None:
    """Write what is chosen of a result to a file, replaced whole, or to standard output."""
    from attncli.cli.writing import destination
    from attncli.rendering.views import View

    with destination(output) as stream:
        row.write(View(result, choice), options, stream)


def refuse_work(work: bool, row: "Format") -> None:
    """The arithmetic is written in words and formulas, which data formats don't hold."""
    formats = ("table", "markdown", "latex")
    if work and row.name not in formats:
        hint = "attncli explain -f json gives the arithmetic of cells as data."
        raise AttncliError(f"--work goes with {', '.join(formats)}, not {row.name}", hint=hint)


def refuse_terminal(row: "Format", output: str | None) -> None:
    """Binary data is never sent to a terminal."""
    from attncli.cli.writing import is_standard

    if row.binary and is_standard(output) and sys.stdout is not None and sys.stdout.isatty():
        hint = f"Send it to a file: -o FILE{row.suffixes[0]}, or > FILE{row.suffixes[0]}"
        raise AttncliError(f"{row.name} is binary, and standard output is a terminal", hint=hint)


def examples(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Print this one.", autocompletion=complete_examples)
    ] = None,
) -> None:
    from attncli.cli.writing import destination
    from attncli.reading import examples as shipped

    if name is not None:
        text = shipped.text(name)
    else:
        width = max(map(len, shipped.names()), default=0)
        text = "".join(f"{one:<{width}}  {shipped.title(one)}\n" for one in shipped.names())
    with destination(None) as stream:
        stream.write(text.encode((sys.stdout.encoding if name is None else None) or "utf-8", "backslashreplace"))


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command(help=COMPUTE_HELP)(compute)
    app.command(help=EXAMPLES_HELP)(examples)
