"""The shipped examples: problem files in ``configs/``, found by name from any folder.

In a wheel they lie inside the package; in an editable install they stay beside it, in the source tree.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from attncli.language.errors import AttncliError

_SUFFIXES = (".yaml", ".json")


@cache
def folder() -> Path:
    """The folder that holds the examples, wherever this package was installed from."""
    package = Path(__file__).resolve().parents[1]
    places = (package / "configs", package.parent / "configs")
    return next((place for place in places if place.is_dir()), places[0])


@cache
def names() -> tuple[str, ...]:
    """The names of the shipped examples, in order."""
    if not folder().is_dir():
        return ()
    return tuple(sorted(file.stem for file in folder().iterdir() if file.suffix in _SUFFIXES))


def path(name: str) -> Path | None:
    """The file of an example, or None where there is none of that name."""
    if name not in names():
        return None
    return next(file for suffix in _SUFFIXES if (file := folder() / (name + suffix)).is_file())


def text(name: str) -> str:
    """An example's file, as it stands. Raises AttncliError, with the nearest name, where there is none."""
    file = path(name)
    if file is None:
        raise unknown(name)
    return file.read_text(encoding="utf-8")


def title(name: str) -> str:
    """An example's title: what follows ``title:`` in its file."""
    match = re.search(r"^title:[ ]*(.+?)[ ]*$", text(name), re.MULTILINE)
    if not match:
        return ""
    return re.sub(r"\\(.)", r"\1", match[1][1:-1]) if match[1][0] in "'\"" else match[1]


def unknown(name: str) -> AttncliError:
    """The error for a name that no example has."""
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), names(), 1)
    known = f"The examples are {', '.join(names())}."
    return AttncliError(f"no example is called {name!r}", hint=(f"Did you mean {close[0]}?", known) if close else known)
