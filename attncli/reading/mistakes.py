"""The mistakes of one file, raised together: each with its place, in the order of the lines, and not without end."""

from __future__ import annotations

import math
from collections.abc import Callable

from attncli.language.errors import AttncliError, AttncliErrors, Collector, Place

MOST_ERRORS = 20
"""How many mistakes of one run are told; the rest are counted."""


def raise_some(
    errors: Collector, place: Callable[[str], Place | None], file: str | None = None, counted_only: int = 0
) -> None:
    """Raise the first mistakes, each with its place, or else the file, and say how many more there are."""
    told = [*errors][:MOST_ERRORS]
    found = sorted((_located(error, place, file) for error in told), key=_line)
    more = len(errors) - len(told) + counted_only
    if more:
        found.append(AttncliError(f"and {more} more mistake{'s' if more > 1 else ''}"))
    if len(found) > 1:
        raise AttncliErrors(found)
    if found:
        raise found[0]


def _located(error: AttncliError, place: Callable[[str], Place | None], file: str | None) -> AttncliError:
    found = error.located(place)
    if found.where is not None or file is None:
        return found
    return AttncliError(found.what, hint=found.hint, key=found.key, where=Place(file))


def _line(error: AttncliError) -> float:
    line = error.where.line if error.where else None
    return math.inf if line is None else line
