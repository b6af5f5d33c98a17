"""The terminal, if there is one: what tables are drawn on, notes and errors, and progress."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attncli.engine.blocks import Progress
    from attncli.rendering.formats import Screen


def screen(output: str | None) -> Screen:
    """What output is drawn on: the terminal's width, encoding and colours; a pipe is as wide as it takes.

    COLUMNS sets the width, NO_COLOR and FORCE_COLOR decide on colours, and a file is UTF-8.
    """
    from shutil import get_terminal_size

    from attncli.cli.writing import is_standard
    from attncli.rendering.formats import Screen

    to_standard = is_standard(output) and sys.stdout is not None
    on_terminal = to_standard and sys.stdout.isatty()
    told = os.environ.get("COLUMNS", "")
    width = get_terminal_size().columns if on_terminal or (told.isdigit() and int(told) > 0) else None
    colours = bool(os.environ.get("FORCE_COLOR")) or (on_terminal and os.environ.get("TERM") != "dumb")
    encoding = (sys.stdout.encoding if to_standard else None) or "utf-8"
    return Screen(width, encoding, colours and not os.environ.get("NO_COLOR"))


def tell(kind: str, text: str) -> None:
    """A sentence for a person, on standard error: ``note: ...`` or ``error: ...``.

    What would steer a terminal or turn the direction of writing is shown as a symbol or an escape. Where standard
    error cannot be written (a full disk, nobody reads it), the sentence is lost, and the exit code alone tells.
    """
    if sys.stderr is None:
        return
    from attncli.rendering.text.labels import visible

    lines = [visible(line, sys.stderr.encoding or "utf-8") for line in f"{kind}: {text}".split("\n")]
    try:
        print("\n".join(lines), file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = None


def tell_notes(notes: Iterable[str]) -> None:
    """Everything that a person should know beside the numbers."""
    for note in notes:
        tell("note", note)


@contextmanager
def progress(doing: str, after: float = 1.0) -> Iterator[Progress | None]:
    """Tells on a terminal's standard error how far a long run is, once it has taken ``after`` seconds."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from contextlib import ExitStack

    begun = time.monotonic()
    with ExitStack() as stack:
        bar = None

        def tell_share(share: float) -> None:
            nonlocal bar
            if bar is None and time.monotonic() - begun > after:
                from rich.console import Console
                from rich.progress import Progress as Bar

                bar = stack.enter_context(Bar(console=Console(stderr=True), transient=True))
                bar.add_task(doing, total=1.0)
            if bar is not None:
                bar.update(bar.task_ids[0], completed=share)

        yield tell_share
