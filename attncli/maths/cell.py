"""Where a number stands: a Cell as it is shown, counted from 1; an At in the canonical axes, counted from 0."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """A cell as it is shown: the stage (or input), batch and head indices, then row and column; all from 1.

    ``index`` has two numbers for a cell, one for a token's vector or an entry of a vector, none for the whole.
    ``span`` stands in its place for a range of cells: "1..3,2".

    >>> str(Cell("weights", (2,), (1, 3)))
    'weights[2;1,3]'
    """

    name: str
    lead: tuple[int, ...] = ()
    index: tuple[int, ...] = ()
    span: str = ""

    def __str__(self) -> str:
        if not self.lead and not self.index and not self.span:
            return self.name
        return f"{self.name}[{';'.join([*map(str, self.lead), self.span or ','.join(map(str, self.index))])}]"


@dataclass(frozen=True)
class At:
    """One place in the canonical axes, 0-based: the batch entry, the query head, row and column."""

    batch: tuple[int, ...]
    head: int
    i: int
    j: int = 0
