"""The commands `compute` and `examples`: arguments in, one library call, one writer."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from attncli.errors import AttncliError
from attncli.names import FORMAT_NAMES, STAGE_NAMES

if TYPE_CHECKING:
    from attncli.compute import Result
    from attncli.problem import Problem
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

_ASSIGNMENT = re.compile(r"[A-Za-z_][\w.]*=")


def _stages(incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in STAGE_NAMES if name.startswith(last)]


def _formats(incomplete: str) -> list[tuple[str, str]]:
    from attncli.rendering.formats import FORMATS

    return [(name, row.meaning) for name, row in FORMATS.items() if name.startswith(incomplete)]


def _examples(incomplete: str) -> list[str]:
    from attncli.examples import names

    return [name for name in names() if name.startswith(incomplete)]


def _problem_or_key(incomplete: str) -> list[str]:
    from attncli.keys import KEYS

    return _examples(incomplete) + [f"{name}=" for name in KEYS if name.startswith(incomplete)]


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PROBLEM] [KEY=VALUE]...",
        help="A file, an example's name or -; then keys to set.",
        autocompletion=_problem_or_key,
    ),
]
Stages = Annotated[
    list[str] | None,
    typer.Option(
        "--stage", "-s", metavar="NAME", help=f"Only these: {', '.join(STAGE_NAMES)}.", autocompletion=_stages
    ),
]
Head = Annotated[int | None, typer.Option("--head", "-H", metavar="R", help="Only head R, from 1.")]
Batch = Annotated[
    str | None, typer.Option("--batch", "-B", metavar="I", help="Only batch entry I, from 1 (I,J for two axes).")
]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"{', '.join(FORMAT_NAMES)}.",
        autocompletion=_formats,
    ),
]
OutputFile = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file; its suffix picks the format.")
]
Digits = Annotated[
    int | None, typer.Option("--digits", "-d", min=0, max=17, metavar="N", help="Decimals (tables: 4; data: all).")
]
Exactly = Annotated[
    bool, typer.Option("--exact", help="Exact numbers: fractions, roots and powers of e stay as they are.")
]
Rounding = Annotated[
    str | None,
    typer.Option("--round", metavar="K", help="Round every stage to K decimals (or weights=K) before the next."),
]


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
    from attncli.compute import compute as computed
    from attncli.rendering.formats import Options, chosen
    from attncli.rendering.views import check_fits, choose
    from attncli.terminal import progress, screen, tell_notes

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


def tell_mask(problem: Problem, full: bool) -> None:
    """Who may attend to whom, on standard error: a sentence a query, the first of many unless ``full``."""
    from attncli.terminal import tell

    sentences = problem.mask_in_words() or ["there is none: every query may attend to every key"]
    left_out = 0 if full else max(0, len(sentences) - MOST_SENTENCES)
    for sentence in sentences[: len(sentences) - left_out]:
        tell("mask", sentence)
    if left_out:
        tell("mask", f"{left_out} more queries; --full says them all")


def write_result(result: Result, choice: Choice, row: Format, options: Options, output: str | None) -> None:
    """Write what is chosen of a result to a file, replaced whole, or to standard output."""
    from attncli.rendering.views import View
    from attncli.writing import destination

    with destination(output) as stream:
        row.write(View(result, choice), options, stream)


def refuse_work(work: bool, row: Format) -> None:
    """The arithmetic is written in words and formulas, which data formats don't hold."""
    formats = ("table", "markdown", "latex")
    if work and row.name not in formats:
        hint = "attncli explain -f json gives the arithmetic of cells as data."
        raise AttncliError(f"--work goes with {', '.join(formats)}, not {row.name}", hint=hint)


def refuse_terminal(row: Format, output: str | None) -> None:
    """Binary data is never sent to a terminal."""
    from attncli.writing import is_standard

    if row.binary and is_standard(output) and sys.stdout is not None and sys.stdout.isatty():
        hint = f"Send it to a file: -o FILE{row.suffixes[0]}, or > FILE{row.suffixes[0]}"
        raise AttncliError(f"{row.name} is binary, and standard output is a terminal", hint=hint)


def split_words(words: list[str] | None) -> tuple[list[str], list[str]]:
    """A command's words: the files and names among them, and the KEY=VALUE."""
    words = words or []
    settings = [word for word in words if _ASSIGNMENT.match(word)]
    return [word for word in words if not _ASSIGNMENT.match(word)], settings


def load_words(words: list[str] | None, command: str, foreign: bool = False) -> Problem:
    """The problem that a command's words name: at most one PROBLEM, and any number of KEY=VALUE (see `load`)."""
    from attncli.reading.problems import load

    words = words or []
    sources, assignments = split_words(words)
    if not any(words):
        hint = f"Name a file, KEY=VALUE, or an example: attncli {command} three-tokens. `attncli examples` lists them."
        raise AttncliError(f"{command} what? No problem is named", hint=hint)
    if len(sources) > 1:
        raise _two_problems(words, sources)
    return load(sources[0] if sources else None, *assignments, foreign=foreign)


def _two_problems(words: list[str], sources: list[str]) -> AttncliError:
    """The error for more than one PROBLEM, with what was probably meant."""
    hint = "One PROBLEM, and KEY=VALUE for what is set in it."
    stage = next((word for word in sources if word in STAGE_NAMES), None)
    if any(word == "=" or word.startswith("=") or word.endswith("=") for word in words):
        hint = "KEY=VALUE is one word, without spaces around the =."
    elif stage is not None:
        hint = f"A stage is selected with -s: -s {stage}"
    return AttncliError(f"two problems are named: {sources[0]} and {sources[1]}", hint=hint)


def prepared(problem: Problem, exact: bool, round: str | None) -> Problem:
    """The problem as --round and --exact change it."""
    if round is not None:
        problem = problem.replace(round=_round(round))
    if exact:
        from attncli.exact import exact_problem

        problem = exact_problem(problem)
    return problem


def _round(text: str) -> int | dict[str, int]:
    """``2``, or ``weights=2,outputs=1``."""
    try:
        if "=" not in text:
            return int(text)
        return {name.strip(): int(count) for name, _, count in (part.partition("=") for part in text.split(","))}
    except ValueError:
        hint = "Write --round 2, or --round weights=2 for one stage alone."
        raise AttncliError(f"--round takes a number of decimals, not {text!r}", hint=hint) from None


def split_list(texts: list[str] | None) -> list[str] | None:
    """A repeatable option, each time a name or a comma list; None where it isn't there at all."""
    names = [name.strip() for text in texts or [] for name in text.split(",") if name.strip()]
    if texts and not names:
        raise AttncliError("-s names no stage", hint=f"The stages are {', '.join(STAGE_NAMES)}.")
    return names or None


def split_batch(text: str | None) -> tuple[int, ...] | None:
    """A batch entry: 2, or 2,1 for two batch axes."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise AttncliError(
            f"-B takes whole numbers, not {text!r}", hint="-B 2, or -B 2,1 for two batch axes."
        ) from None


def examples(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Print this one.", autocompletion=_examples)
    ] = None,
) -> None:
    from attncli import examples as shipped
    from attncli.writing import destination

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
