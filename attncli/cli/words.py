"""The words and options that several commands take: what they are called, how they complete, what they mean.

Typer reads the annotations of commands: as texts (of ``from __future__ import annotations``) they would be evaluated
one by one at each start, so the modules of commands don't put it off.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from attncli.language.errors import AttncliError
from attncli.rendering.formats import FORMATS
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.model.problem import Problem

# Completion: typer itself keeps of what is offered what begins as the user's word does


def complete_list(incomplete: str, names: Iterable[str]) -> list[str]:
    """Names, also behind a comma."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in names if name.startswith(last)]


def complete_stages(incomplete: str) -> list[str]:
    """The names of stages."""
    return complete_list(incomplete, STAGES)


def _formats() -> list[tuple[str, str]]:
    return [(name, row.meaning) for name, row in FORMATS.items()]


def complete_examples() -> list[str]:
    """The shipped examples."""
    from attncli.reading.examples import names

    return list(names())


def complete_problem() -> list[str]:
    """What may stand for PROBLEM or begin a KEY=VALUE: the shipped examples and the keys."""
    from attncli.model.keys import KEYS

    return complete_examples() + [f"{name}=" for name in KEYS]


def complete_cells() -> list[str]:
    """What `explain` takes: the shipped examples, stages (a cell of one goes on with [ or a dot), keys."""
    return [*STAGES, *complete_problem()]


# The arguments and options

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PROBLEM] [KEY=VALUE]...",
        help="A file, an example's name or -; then keys to set.",
        autocompletion=complete_problem,
    ),
]
Stages = Annotated[
    list[str] | None,
    typer.Option(
        "--stage", "-s", metavar="NAME", help=f"Only these: {', '.join(STAGES)}.", autocompletion=complete_stages
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
        help=f"{', '.join(FORMATS)}.",
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


# What they mean


def is_assignment(word: str) -> bool:
    """Whether a word is a KEY=VALUE."""
    return re.match(r"[A-Za-z_][\w.]*=", word) is not None


def split_words(words: list[str] | None) -> tuple[list[str], list[str]]:
    """A command's words: the files and names among them, and the KEY=VALUE."""
    words = words or []
    return [word for word in words if not is_assignment(word)], [word for word in words if is_assignment(word)]


def load_words(words: list[str] | None, command: str, foreign: bool = False) -> "Problem":
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
    stage = next((word for word in sources if word in STAGES), None)
    if any(word == "=" or word.startswith("=") or word.endswith("=") for word in words):
        hint = "KEY=VALUE is one word, without spaces around the =."
    elif any("=" in word for word in sources):
        key = next(word for word in sources if "=" in word).partition("=")[0]
        return AttncliError(f"{key!r} is no key to set", hint="KEY=VALUE begins with a key: Z=z.npy, heads.2.W_Q=w.npy")
    elif stage is not None:
        hint = f"A stage is selected with -s: -s {stage}"
    return AttncliError(f"two problems are named: {sources[0]} and {sources[1]}", hint=hint)


def prepared(problem: "Problem", exact: bool, round: str | None) -> "Problem":
    """The problem as --round and --exact change it."""
    if round is not None:
        problem = problem.replace(round=_round(round))
    if exact:
        from attncli.model.exact import exact_problem

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


def split_commas(texts: list[str] | None) -> list[str]:
    """The names in some words, each of which is a name or a comma list."""
    return [name.strip() for text in texts or [] for name in text.split(",") if name.strip()]


def split_list(texts: list[str] | None) -> list[str] | None:
    """A repeatable option, each time a name or a comma list; None where it isn't there at all."""
    names = split_commas(texts)
    if texts and not names:
        raise AttncliError("-s names no stage", hint=f"The stages are {', '.join(STAGES)}.")
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
