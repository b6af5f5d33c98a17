"""FORMATS: one row a format. The help, completion, ``-o``'s suffixes and the reference read this table.

A writer is named, not imported, so that JSON costs no rich and the help costs neither. It is called as
``writer(shown, options, stream)`` and writes bytes: a view of `compute`'s stages, and what the other commands show.
EXPLANATIONS are the formats of `explain`, SUMMARIES those of `inspect`, REPORTS of `check`, LISTS of `mistakes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from attncli.language.errors import AttncliError


class Stream(Protocol):
    """Where bytes go."""

    def write(self, data: bytes, /) -> int: ...


class Screen(NamedTuple):
    """What tables are drawn on: ``width`` in cells (None: as wide as it takes), its encoding, and whether in colour."""

    width: int | None = None
    encoding: str = "utf-8"
    colours: bool = False


class Options(NamedTuple):
    """What may be said about any format: digits after the point, whole matrices, each row's statistics.

    ``standalone``: LaTeX as a whole document. ``work``: the arithmetic of every stage (table, markdown, latex).
    """

    digits: int | None = None
    full: bool = False
    stats: bool = False
    standalone: bool = False
    work: bool = False
    screen: Screen = Screen()


Writer = Callable[[Any, Options, Stream], None]
"""Takes what is shown: a View, explained cells, a summary, the rows of a class, known mistakes."""


class Format(NamedTuple):
    """A format: its name, what it holds, the suffixes that ask for it, and its writer as "module:function".

    ``holds``: what one file takes: "stages" (any number), "stage" (one, with all its axes), or "matrix" (one).
    """

    name: str
    meaning: str
    suffixes: tuple[str, ...]
    writer: str
    holds: str = "stages"
    binary: bool = False

    def write(self, shown: Any, options: Options, stream: Stream) -> None:
        """Write what is shown to a stream of bytes."""
        from importlib import import_module

        module, function = self.writer.split(":")
        write: Writer = getattr(import_module(module), function)
        write(shown, options, stream)


_ROWS = (
    Format("table", "tables for the screen", (".txt",), "attncli.rendering.screen.tables:write"),
    Format(
        "json",
        "stage → nested lists, axes (batch.., head, row, column)",
        (".json",),
        "attncli.rendering.data.stages:json",
    ),
    Format("yaml", "the same as YAML", (".yaml", ".yml"), "attncli.rendering.data.stages:yaml"),
    Format("csv", "one matrix, comma separated", (".csv",), "attncli.rendering.data.stages:csv", holds="matrix"),
    Format("tsv", "one matrix, tab separated", (".tsv",), "attncli.rendering.data.stages:tsv", holds="matrix"),
    Format(
        "long", "CSV with a line a number: stage, head, row, column, value", (), "attncli.rendering.data.stages:long"
    ),
    Format("npy", "one stage for NumPy", (".npy",), "attncli.rendering.data.stages:npy", holds="stage", binary=True),
    Format("npz", "all stages for NumPy", (".npz",), "attncli.rendering.data.stages:npz", binary=True),
    Format(
        "markdown", "tables and formulas for GitHub", (".md", ".markdown"), "attncli.rendering.documents.markdown:write"
    ),
    Format(
        "latex", "equations; a whole document with --standalone", (".tex",), "attncli.rendering.documents.latex:write"
    ),
    Format(
        "html",
        "a page; a click on a cell shows its arithmetic",
        (".html", ".htm"),
        "attncli.rendering.documents.html:write",
    ),
    Format("svg", "a heatmap of one stage, or of the weights", (".svg",), "attncli.rendering.pictures.svg:write"),
    Format(
        "png", "the same heatmap by matplotlib", (".png",), "attncli.rendering.pictures.plots:write_png", binary=True
    ),
    Format(
        "pdf", "the same heatmap by matplotlib", (".pdf",), "attncli.rendering.pictures.plots:write_pdf", binary=True
    ),
)

FORMATS: dict[str, Format] = {row.name: row for row in _ROWS}

_EXPLANATIONS = (
    Format("table", "lines of arithmetic for the screen", (".txt",), "attncli.rendering.text.derivations:table"),
    Format("json", "cell → tree of the arithmetic", (".json",), "attncli.rendering.text.derivations:json"),
    Format("markdown", "equations for GitHub", (".md", ".markdown"), "attncli.rendering.text.equations:markdown"),
    Format(
        "latex", "equations; a whole document with --standalone", (".tex",), "attncli.rendering.text.equations:latex"
    ),
)

EXPLANATIONS: dict[str, Format] = {row.name: row for row in _EXPLANATIONS}

_SUMMARIES = (
    Format("table", "a section a question, for the screen", (".txt",), "attncli.rendering.screen.summaries:write"),
    Format("json", "the same as data", (".json",), "attncli.rendering.data.stages:summary"),
)

SUMMARIES: dict[str, Format] = {row.name: row for row in _SUMMARIES}

_REPORTS = (
    Format("table", "a report for the screen", (".txt",), "attncli.rendering.screen.class_reports:write"),
    Format("json", "every verdict, entry and mistake", (".json",), "attncli.rendering.data.reports:json"),
    Format("jsonl", "the same, a line a sheet", (".jsonl", ".ndjson"), "attncli.rendering.data.reports:jsonl"),
    Format("csv", "a gradebook: a line a sheet", (".csv",), "attncli.rendering.data.reports:csv"),
)

REPORTS: dict[str, Format] = {row.name: row for row in _REPORTS}

_LISTS = (
    Format("table", "what each mistake is", (".txt",), "attncli.rendering.screen.class_reports:mistakes"),
    Format("json", "the same as data", (".json",), "attncli.rendering.data.reports:mistakes"),
)

LISTS: dict[str, Format] = {row.name: row for row in _LISTS}


def chosen(
    name: str | None, output: str | None, formats: Mapping[str, Format] = FORMATS, command: str = "compute"
) -> Format:
    """The one of a command's formats that ``-f`` names, else the one of the output file's suffix, else tables.

    Raises AttncliError where no format has that name or suffix, or the file's name is empty.
    """
    if output == "":
        raise AttncliError("-o names no file")
    if name is not None:
        return _named(name, formats, command)
    if output is None or output == "-" or output.startswith("/dev/"):
        return formats["table"]
    suffixes = {suffix: row for row in formats.values() for suffix in row.suffixes}
    suffix = next((suffix for suffix in suffixes if output.lower().endswith(suffix)), None)
    if suffix is None:
        hint = f"Name the format with -f, or end the file's name in {', '.join(suffixes)}."
        raise AttncliError(f"which format? The name {output} doesn't say", hint=hint)
    return suffixes[suffix]


def _named(name: str, formats: Mapping[str, Format], command: str) -> Format:
    if name in formats:
        return formats[name]
    from difflib import get_close_matches

    aliases = {suffix[1:]: row.name for row in formats.values() for suffix in row.suffixes}
    close = [aliases[name.lower()]] if name.lower() in aliases else get_close_matches(name.lower(), formats, 1)
    known = f"The formats are {', '.join(formats)}."
    hint = (f"Did you mean {close[0]}?", known) if close else (known,)
    what = f"{command} has no format {name!r}" if name in FORMATS else f"unknown format {name!r}"
    raise AttncliError(what, hint=hint)
