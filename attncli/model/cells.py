"""Cells: how a person names one number of a stage, a token's row, or the whole stage.

    weights[1,3]        row 1, column 3;  weights.1.3 is the same, for shells in which brackets are special
    weights[私,猫]       by token; quotes where a token has a comma: weights["a,b",2]
    weights[2;1,3]      head 2;  with a batch, its index first: weights[1;2;1,3]
    outputs[1]          token 1's vector: its row, or its column in ``layout: columns``
    weights[1..3,2]     a range of rows, columns, or both;  V[1..3] is a range of tokens' vectors
    scores              the whole stage

Indices count from 1 and are those of the matrix as it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attncli.language.errors import AttncliError
from attncli.maths.cell import Cell
from attncli.model.keys import KEYS
from attncli.stages.table import STAGES
from attncli.stages.wanted import unknown_stage, wanted_stages

if TYPE_CHECKING:
    from attncli.model.problem import Problem

_CELL = re.compile(
    r"(?P<name>[A-Za-z]\w*)(?:\[(?P<inner>.*)\]|(?P<dotted>(?:\.(?:[0-9]+\.\.[0-9]+|[^.\[\]]+))+))?", re.DOTALL
)
_LIKE_A_CELL = re.compile(r"(?P<name>[A-Za-z]\w*)(?:(?:\.\w+)*[\[(].*|(?P<dotted>\.[^/\\]+))", re.DOTALL)
_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")
MOST_DIGITS = 20
"""Of an index: one of so many or more is beyond any matrix, whatever follows."""
_SUFFIX = re.compile(r"\.(ya?ml|json|npy|npz|csv|tsv|txt)$")
_PART = re.compile(
    r"\s*(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<plain>[^,;]*?))\s*(?P<end>[,;]|\Z)", re.DOTALL
)


@dataclass(frozen=True)
class Spot:
    """Where a cell stands in the canonical array: 0-based, (batch.., head) before row and column.

    ``column`` is None for a row, ``row`` too for a whole matrix; None in ``lead`` stands for all of that axis. Either
    may be a range.
    """

    stage: str
    lead: tuple[int | None, ...] = ()
    row: int | range | None = None
    column: int | range | None = None

    @property
    def is_range(self) -> bool:
        """Whether it is several cells or rows."""
        return isinstance(self.row, range) or isinstance(self.column, range)


def is_cell(text: str) -> bool:
    """Whether a word of the command line names a cell of some stage, rather than a problem or a key.

    >>> is_cell("weights[1,3]"), is_cell("weights.1.3"), is_cell("scores"), is_cell("scores.yaml")
    (True, True, True, False)
    """
    match = _CELL.fullmatch(text)
    if match is None:
        return False
    known = match["name"] in STAGES
    if match["dotted"]:
        return known and not _SUFFIX.search(text)
    return known or match["inner"] is not None


def seems_cell(text: str) -> bool:
    """Whether a word that is no cell was probably meant as one: NAME.1.2, NAME[1,2], NAME(1,2) with any name.

    >>> seems_cell("weigths.1..2"), seems_cell("weights(1,2)"), seems_cell("heads.1.W_Q[1,2]"), seems_cell("old.yaml")
    (True, True, True, False)
    """
    match = _LIKE_A_CELL.fullmatch(text)
    if match is None or not match["dotted"]:
        return match is not None
    return re.fullmatch(r"[\d.]+", match["dotted"]) is not None


def refuse_no_stage(text: str) -> None:
    """Raise where a person's text names no stage, with the one that is meant, or isn't written as a cell is."""
    name = re.split(r"[\[.(]", text.strip(), maxsplit=1)[0]
    if name in STAGES:
        if found := re.fullmatch(r"\w+\((.*)\)", text.strip()):
            hint = f"Write {name}[{found[1]}], or {name}.1.2 where the shell takes brackets for itself."
            raise AttncliError(f"{text}: a cell is written in square brackets", hint=hint)
        if _CELL.fullmatch(text.strip()) is None:
            raise _no_cell(text)
        return
    if name in KEYS:
        what = "an input" if KEYS[name].kind in ("matrix", "vector", "heads") else "a key of the problem"
        hint = f"The stages are {', '.join(STAGES)}."
        raise AttncliError(f"{name} is {what}, and only cells of stages are explained", hint=hint)
    raise unknown_stage(name)


def _no_cell(text: str) -> AttncliError:
    hint = "A cell is written weights[1,3], weights.1.3, or with heads weights[2;1,3]."
    return AttncliError(f"{text!r} is no cell", hint=hint)


def stage_of(text: str) -> str:
    """The stage that a person's text names, or seems to."""
    return re.split(r"[\[.]", text.strip(), maxsplit=1)[0]


def parse(text: str, problem: Problem, shape: Sequence[int] | None = None, head: int | None = None) -> Spot:
    """The spot that a person's text names in a problem.

    ``shape`` is that of the stage's canonical array (the stage's own, unless it is given with fewer batch axes);
    ``head`` (from 1) is put where the text names none. Raises AttncliError, which says which indices exist.
    """
    match = _CELL.fullmatch(text.strip())
    if match is None:
        raise _no_cell(text)
    refuse_no_stage(text)
    name = wanted_stages(problem, [match["name"]])[0]
    frame = _Frame(problem, name, tuple(shape or STAGES[name].shape(problem)), text)
    if match["dotted"]:
        return frame.spot([_dots(match["dotted"])], head)
    return frame.spot(_groups(match["inner"] or ""), head)


def _dots(dotted: str) -> list[str]:
    """The parts behind dots: .1..3.2 is [1..3, 2].

    >>> _dots(".1..3.2"), _dots(".私.2")
    (['1..3', '2'], ['私', '2'])
    """
    return re.findall(r"\.([0-9]+\.\.[0-9]+|[^.]+)", dotted)


def _groups(inner: str) -> list[list[str]]:
    """The parts between semicolons, each split at its commas: 2;1,3 is [[2], [1, 3]]."""
    groups: list[list[str]] = [[]]
    at = 0
    while inner.strip():
        match = _PART.match(inner, at)
        assert match is not None
        groups[-1].append(next(part for part in match.group("double", "single", "plain") if part is not None))
        at = match.end()
        if match["end"] == ";":
            groups.append([])
        if not match["end"]:
            break
    return groups


@dataclass(frozen=True)
class _Frame:
    """The stage that a cell is looked for in: its canonical shape, and what the person typed."""

    problem: Problem
    stage: str
    shape: tuple[int, ...]
    typed: str

    @property
    def leads(self) -> tuple[int, ...]:
        """The sizes of the axes that must be named before row and column: batch, and heads where there are several."""
        return self.shape[:-3] + self._heads if STAGES[self.stage].per_head else self.shape[:-2]

    @property
    def _heads(self) -> tuple[int, ...]:
        """How many heads, where there are several to tell apart."""
        return self.shape[-3:-2] if STAGES[self.stage].per_head and self.shape[-3] > 1 else ()

    @property
    def _shown(self) -> tuple[int, int]:
        rows, columns = self.shape[-2:]
        return (columns, rows) if self.problem.columns else (rows, columns)

    def spot(self, groups: list[list[str]], head: int | None) -> Spot:
        before, index = self._split(groups)
        numbers = self._leads_said(before, head)
        if None in numbers and index:
            raise self._lacks_lead(index)
        names = ("column", "row") if len(index) == 1 and self.problem.columns else ("row", "column")
        sizes = dict(zip(("row", "column"), self._shown, strict=True))
        axes = [self._positions(part, sizes[what], what) for part, what in zip(index, names, strict=False)]
        if self.problem.columns and len(axes) == 2:
            axes.reverse()
        one_head = (0,) if STAGES[self.stage].per_head and not self._heads else ()
        return Spot(self.stage, numbers + one_head, *axes)

    def _split(self, groups: list[list[str]]) -> tuple[list[str], list[str]]:
        """Batch and head on one side, row and column on the other."""
        *before, last = groups
        lead = [part for group in before for part in group]
        if not before and len(last) > 2:
            lead, last = last[:-2], last[-2:]
        if last == [""]:
            last = []
        one_head = STAGES[self.stage].per_head and not self._heads
        if one_head and len(lead) == len(self.leads) + 1 and lead[-1] == "1":
            lead.pop()
        if len(lead) > len(self.leads) or len(last) > 2 or "" in (*lead, *last):
            raise self._error(f"{self.typed}: a cell of {self.stage} is {Cell(self.stage, self.leads, self._shown)}")
        return lead, last

    def _leads_said(self, said: list[str], head: int | None) -> tuple[int | None, ...]:
        """The batch entry and head, None where it isn't said."""
        parts: list[str | None] = [*said, *[None] * (len(self.leads) - len(said))]
        if parts and parts[-1] is None and self._heads and head is not None:
            parts[-1] = str(self._of_query_head(head))
        both = zip(parts, self.leads, self._lead_names, strict=True)
        return tuple(None if part is None else self._position(part, size, what) for part, size, what in both)

    def _of_query_head(self, head: int) -> int:
        """The head that ``-H`` means: of keys and values, the one that query head r uses."""
        heads, query_heads = self.shape[-3], self.problem.num_heads
        if 1 <= head <= query_heads and heads < query_heads:
            return -(-head * heads // query_heads)
        return head

    @property
    def _lead_names(self) -> list[str]:
        heads = len(self._heads)
        return ["batch entry"] * (len(self.leads) - heads) + ["head"] * heads

    def _position(self, part: str, size: int, what: str) -> int:
        """The 0-based position that a number or a token means."""
        if re.fullmatch(r"[-+]?[0-9]+", part):
            number = int(part[:MOST_DIGITS])
            if not 1 <= number <= size:
                counted = "; indices count from 1" if number <= 0 else ""
                raise self._error(f"{self.typed}: there is no {what} {number}{counted}")
            return number - 1
        return self._labelled(part, what)

    def _positions(self, part: str, size: int, what: str) -> int | range:
        """The 0-based position that a number or a token means, or those of a range 1..3."""
        found = _RANGE.fullmatch(part)
        if found is None or part in self._labels(what):
            return self._position(part, size, what)
        first, last = (self._position(end, size, what) for end in found.groups())
        if last < first:
            raise self._error(f"{self.typed}: the range {part} runs backwards")
        return range(first, last + 1)

    def _labelled(self, part: str, what: str) -> int:
        labels = self._labels(what)
        places = [i for i, label in enumerate(labels) if label == part]
        if len(places) == 1:
            return places[0]
        if places:
            named = " and ".join(str(place + 1) for place in places)
            raise AttncliError(
                f"{self.typed}: {part!r} stands at {named}", hint="Write the number of the one you mean."
            )
        if not any(labels):
            raise self._error(f"{self.typed}: a {what} of {self.stage} is named by its number, not {part!r}")
        raise self._error(f"{self.typed}: no {what} is called {part!r}")

    def _labels(self, what: str) -> tuple[str, ...]:
        names = STAGES[self.stage].axes[-2:]
        names = names[::-1] if self.problem.columns else names
        return self.problem.labels(dict(zip(("row", "column"), names, strict=True)).get(what, "")) or ()

    def _lacks_lead(self, index: Iterable[str]) -> AttncliError:
        inner = ",".join(index)
        *batch, last = ["1"] * len(self.leads)
        examples = [f"{self.stage}[{';'.join([*batch, one])};{inner}]" for one in (last, "2")]
        words = {"batch entry": "batch entries", "head": "heads"}
        parts = [f"{size} {words[name]}" for size, name in zip(self.leads, self._lead_names, strict=True)]
        what = f"{self.typed}: {self.stage} has {' and '.join(parts)}, and which one is not said"
        option = " -H 2 picks a head, too." if "head" in self._lead_names else ""
        return AttncliError(what, hint=f"Write {' or '.join(examples)}.{option}")

    def _error(self, what: str) -> AttncliError:
        """An error with the indices that there are."""
        many = {"batch entry": "batch entries", "head": "heads"}
        axes = [f"{many[name]} 1 to {size}" for name, size in zip(self._lead_names, self.leads, strict=True)]
        for name, size in zip(("row", "column"), self._shown, strict=True):
            named = self._labels(name)
            words = f" ({', '.join(named)})" if 0 < len(named) <= 12 else ""
            axes.append(f"{name}s 1 to {size}{words}" if size > 1 else f"{name} 1{words}")
        first = Cell(self.stage, (1,) * len(self.leads), (1, 1))
        last = Cell(self.stage, self.leads, self._shown)
        return AttncliError(what, hint=f"There are {', '.join(axes)}: {first} to {last}.")


def shown(problem: Problem, stage: str, shape: Sequence[int], index: Sequence[int]) -> Cell:
    """The cell at a 0-based index of a stage's canonical array, as this problem shows it.

    ``shape`` is that array's, (batch.., head, rows, columns); the index may stop at a row, or before it. One head is
    not named.
    """
    numbers = [i + 1 for i in index]
    lead, rest = numbers[: len(shape) - 2], numbers[len(shape) - 2 :]
    if STAGES[stage].per_head and shape[-3] == 1:
        lead = lead[:-1]
    return Cell(stage, tuple(lead), tuple(reversed(rest)) if problem.columns else tuple(rest))


def shown_range(problem: Problem, spot: Spot, shape: Sequence[int]) -> Cell:
    """The name of a range of cells, as this problem shows it: weights[2;1..3,2]."""
    axes = [axis for axis in (spot.row, spot.column) if axis is not None]
    texts = [f"{axis[0] + 1}..{axis[-1] + 1}" if isinstance(axis, range) else str(axis + 1) for axis in axes]
    where = shown(problem, spot.stage, shape, [i for i in spot.lead if i is not None])
    return replace(where, span=",".join(reversed(texts) if problem.columns else texts))
