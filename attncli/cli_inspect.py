"""The command `inspect`: arguments in, one library call, one writer."""

from typing import TYPE_CHECKING, Annotated

import typer

from attncli.cli_words import Batch, Digits, Head, OutputFile, Stages, Words, load_words, split_batch, split_list
from attncli.errors import AttncliError

if TYPE_CHECKING:
    from attncli.rendering.formats import Format

FORMATS = ("table", "json")

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


def _formats(incomplete: str) -> list[str]:
    return [name for name in FORMATS if name.startswith(incomplete)]


def inspect(
    words: Words = None,
    stage: Stages = None,
    head: Head = None,
    batch: Batch = None,
    format: Annotated[
        str | None, typer.Option("--format", "-f", metavar="FORMAT", help="table, json.", autocompletion=_formats)
    ] = None,
    output: OutputFile = None,
    digits: Digits = None,
    full: Annotated[bool, typer.Option("--full", help="Say a long mask whole.")] = False,
) -> None:
    from attncli.rendering.formats import Options, chosen
    from attncli.rendering.views import choose
    from attncli.summary import inspect as inspected
    from attncli.terminal import progress, screen
    from attncli.writing import destination

    row = _only_these(chosen(format, output))
    problem = load_words(words, "inspect", foreign=True)
    choice = choose(problem, split_list(stage), head, split_batch(batch))
    with progress("computing") as tell_share:
        summary = inspected(problem, choice.stages, head=head, batch=choice.batch, full=full, progress=tell_share)
    options = Options(digits=digits, full=full, screen=screen(output))
    with destination(output) as stream:
        if row.name == "json":
            stream.write(summary.as_json(digits).encode("utf-8", "backslashreplace"))
        else:
            from attncli.rendering.summaries import write

            write(summary, problem, options, stream)


def _only_these(row: "Format") -> "Format":
    if row.name in FORMATS:
        return row
    raise AttncliError(f"inspect writes no {row.name}", hint=f"It writes {' and '.join(FORMATS)}: -f json.")


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(help=INSPECT_HELP)(inspect)
