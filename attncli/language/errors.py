"""What went wrong, where, and how to mend it. Imports nothing of ours.

An error holds parts, not a sentence, so that a reader can add the place (file, line, column) to what the
mathematics found out (W_K has 3 rows), and a writer can show both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Place(NamedTuple):
    """Where something stands: any part may be unknown. Lines and columns count from 1."""

    file: str | None = None
    line: int | None = None
    column: int | None = None
    text: str | None = None
    """The line as the user wrote it, for a caret below it."""
    width: int = 1
    """How many characters of ``text`` from ``column`` on are meant."""
    left_out: int = 0
    """How many characters of a very long line are left out before ``text``."""

    def __str__(self) -> str:
        parts = [self.file] if self.file else []
        if self.line is not None:
            parts.append(f"line {self.line}" + (f", column {self.column}" if self.column is not None else ""))
        return ", ".join(parts)


class AttncliError(Exception):
    """The input or the usage is wrong: ``what``, ``where``, and ``hint``: how to mend it (one line each).

    ``key`` names the problem file's key that is meant (``W_K``, ``heads.2.W_Q``, ``mask``), by which the reader
    of a file finds the place.
    """

    def __init__(
        self, what: str, *, hint: str | Iterable[str] = (), key: str | None = None, where: Place | None = None
    ) -> None:
        self.what = what
        self.hint: tuple[str, ...] = tuple(line for line in ((hint,) if isinstance(hint, str) else hint) if line)
        self.key = key
        self.where = where
        super().__init__(what)

    @property
    def errors(self) -> tuple[AttncliError, ...]:
        """All errors that this one stands for: itself, or the members of a collection."""
        return (self,)

    def located(self, find: Callable[[str], Place | None]) -> AttncliError:
        """The same error, with the place of its key where it has none of its own."""
        if self.where is not None or self.key is None:
            return self
        return AttncliError(self.what, hint=self.hint, key=self.key, where=find(self.key))

    def __str__(self) -> str:
        """``what``, then ``in place: key``, the user's line with a caret, and the hints, each indented."""
        lines = [self.what]
        place = self.where or Place()
        at = ": ".join(part for part in (str(place), self.key or "") if part)
        if at:
            lines.append(f"  in {at}")
        if place.text is not None and place.column is not None:
            lines += [f"    {line}" for line in caret(place)]
        lines += [f"  {line}" for line in self.hint]
        return "\n".join(lines)


class AttncliErrors(AttncliError):  # noqa: N818 - a collection of them
    """Several independent mistakes, found in one run."""

    def __init__(self, errors: Iterable[AttncliError]) -> None:
        self._errors = tuple(errors)
        super().__init__(self._errors[0].what)

    @property
    def errors(self) -> tuple[AttncliError, ...]:
        return self._errors

    def located(self, find: Callable[[str], Place | None]) -> AttncliError:
        return AttncliErrors(error.located(find) for error in self._errors)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self._errors)


def caret(place: Place, room: int = 100) -> tuple[str, str]:
    """The user's line and a line of carets under what is meant; a long line is cut around it, with "…" for what goes.

    Tabs and control characters are shown as spaces, so that nothing of a hostile file reaches the terminal.
    """
    from unicodedata import combining, east_asian_width

    assert place.text is not None
    assert place.column is not None
    text = place.text.rstrip("\r\n")
    start = min(place.column - 1 - place.left_out, len(text))
    first = max(0, start - room // 2)
    before, after = ("…" if first or place.left_out else ""), ("…" if len(text) - first > room else "")
    shown = "".join(c if c.isprintable() else " " for c in text[first : first + room])
    width = max(1, min(place.width, len(shown) - (start - first)))
    cells = sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in before + shown[: start - first])
    return before + shown + after, " " * cells + "^" * width


class Collector:
    """Gathers independent errors, to raise them all at once.

    >>> errors = Collector()
    >>> with errors.collect():
    ...     raise AttncliError("first")
    >>> errors.add(AttncliError("second"))
    >>> len(errors)
    2
    """

    def __init__(self) -> None:
        self._errors: list[AttncliError] = []

    def add(self, error: AttncliError) -> None:
        self._errors.extend(error.errors)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Keep an error that is raised in the block, and go on after it."""
        try:
            yield
        except AttncliError as error:
            self.add(error)

    def __len__(self) -> int:
        return len(self._errors)

    def __iter__(self) -> Iterator[AttncliError]:
        return iter(tuple(self._errors))

    def raise_any(self) -> None:
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            raise AttncliErrors(self._errors)
