"""The command `inspect`: arguments in, one library call, one writer."""

from typing import Annotated

import typer

from attncli.cli.words import Batch, Digits, Head, OutputFile, Stages, Words, load_words, split_batch, split_list
from attncli.rendering.formats import SUMMARIES

INSPECT_HELP = """Shapes, parameter counts and statistics of each stage; it judges nothing.

The sizes and where each comes from, what each stage costs, the mask in words, how the numbers spread, where each head
looks, and what must hold of any attention weights. That also works for a matrix of somebody else's: weights=w.npy
alone, or with mask=..., V=... and outputs=... beside it to hold them against each other.

\b
Examples:
  attncli inspect three-tokens
  attncli inspect two-heads -H 2
  attncli inspect weights='[[0.9, 0.1]]' tokens='[Hello, world]'
  attncli inspect weights=w.npy mask=causal
  attncli inspect transformer-base -f json | jq .parameters.total
"""


def inspect(
    words: Words = None,
    stage: Stages = None,
    head: Head = None,
    batch: Batch = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", metavar="FORMAT", help=f"{', '.join(SUMMARIES)}.", autocompletion=lambda: list(SUMMARIES)
        ),
    ] = None,
    output: OutputFile = None,
    digits: Digits = None,
    full: Annotated[bool, typer.Option("--full", help="Say a long mask whole.")] = False,
) -> None:
    from attncli.cli.terminal import progress, screen
    from attncli.cli.writing import destination
    from attncli.inspecting.summary import inspect as inspected
    from attncli.rendering.formats import Options, chosen
    from attncli.rendering.views import choose

    form = chosen(format, output, SUMMARIES, "inspect")
    problem = load_words(words, "inspect", foreign=True)
    choice = choose(problem, split_list(stage), head, split_batch(batch))
    with progress("computing") as tell_share:
        summary = inspected(problem, choice.stages, head=head, batch=choice.batch, full=full, progress=tell_share)
    options = Options(digits=digits, full=full, screen=screen(output))
    with destination(output) as stream:
        form.write((summary, problem), options, stream)


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(help=INSPECT_HELP)(inspect)
