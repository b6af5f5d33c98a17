"""compute(problem): walks the table of stages and gives a Result, which maps a stage's name to its array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from attncli.engine.memory import is_beyond_memory, refuse_beyond_memory
from attncli.language.errors import AttncliError
from attncli.maths import ops
from attncli.stages.table import LAST, SCORES, STAGES, is_present, needed, with_cache
from attncli.stages.wanted import wanted_stages

if TYPE_CHECKING:
    from attncli.engine.blocks import Made, Progress
    from attncli.maths.ops import Array
    from attncli.model.masks import Mask
    from attncli.model.problem import Problem
    from attncli.rendering.documents.notebook import Tables


class Result(Mapping[str, "Array"]):
    """The stages of a problem: ``result["weights"]`` is an array with the axes (batch.., head, row, column).

    In ``layout: columns`` the last two axes are swapped, as such a problem writes its matrices; ``rows`` has every
    stage in the row convention. ``notes`` are sentences that a person should read beside the numbers.
    """

    def __init__(self, problem: Problem, rows: Mapping[str, Array], notes: tuple[str, ...] = ()) -> None:
        self.problem = problem
        self.rows = dict(rows)
        self.notes = notes

    def __getitem__(self, name: str) -> Array:
        array = self.rows[name]
        return array.swapaxes(-1, -2) if self.problem.columns else array

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {'×'.join(map(str, self[name].shape))}" for name in self)
        return f"<Result: {shapes}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the stages as tables."""
        from attncli.rendering.documents.notebook import page

        return page(self)

    def __rich__(self) -> Tables:
        """What rich prints: the tables of the screen."""
        from attncli.rendering.documents.notebook import Tables

        return Tables(self)


def compute(problem: Problem, stages: Iterable[str] | None = None, progress: Progress | None = None) -> Result:
    """The stages of a problem: all that it has but those on request, or those named.

    Only what they need is computed, and dropped when nothing needs it any more; a last stage that is wanted alone
    is made by blocks of rows where the scores are many. ``progress`` is told the share that is done.

    Raises AttncliError where a stage doesn't exist, where the problem doesn't have it, where it would not fit into
    memory, or (``empty_rows: error``) where a query may attend to nothing.

    >>> from attncli.model.problem import Problem
    >>> one = [[1.0, 0.0], [0.0, 1.0]]
    >>> compute(Problem(Q=one, K=one, V=one, scale=0))["weights"].tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """
    wanted = wanted_stages(problem, stages)
    if problem.round is not None and wanted:
        return _with_rounding_said(problem, wanted, progress)
    return _computed(problem, wanted, progress)


def _computed(problem: Problem, wanted: list[str], progress: Progress | None = None) -> Result:
    order = _order(problem, wanted)
    if (blocks := _blocks(wanted)) and blocks.fits(problem, wanted):
        refuse_beyond_memory(problem, wanted)
        last = blocks.compute_last(problem, wanted[0], progress)
        overflows = _has_overflowed(problem, wanted[0], last)
        if not overflows or is_beyond_memory(problem, order):
            notes = _on_blocks(problem, wanted[0], last, overflows)
            return Result(problem, {wanted[0]: last.array}, (*problem.notes, *notes))
    refuse_beyond_memory(problem, order)
    values: dict[str, Array] = {}
    notes = list(problem.notes)
    for done, name in enumerate(order, 1):
        values[name] = made(problem, name, values)
        notes += _notes_on(problem, name, values)
        still = {need for later in order[done:] for need in _needs(problem, later)}
        values = {kept: array for kept, array in values.items() if kept in still or kept in wanted}
        if progress:
            progress(done / len(order))
    return Result(problem, {name: values[name] for name in STAGES if name in wanted}, tuple(notes))


def _with_rounding_said(problem: Problem, wanted: list[str], progress: Progress | None) -> Result:
    """The rounded stages, with a note on how far the last of them is from what it is without any rounding."""
    result = _computed(problem, wanted, progress)
    last = wanted[-1]
    rounded = result.rows[last]
    with np.errstate(invalid="ignore"):
        off = np.abs(rounded - _computed(problem.replace(round=None), [last]).rows[last])
    most = float(np.nanmax(off, initial=0.0, where=np.isfinite(off)))
    how_far = f"differ from unrounded ones by at most {most:.2g}" if most > 1e-12 else "are what they are unrounded"
    note = f"rounded on the way ({problem.round_in_words()}): the {last} {how_far}"
    return Result(problem, result.rows, (*result.notes, note))


def _blocks(wanted: list[str]) -> ModuleType | None:
    """What makes a last stage by blocks of rows, imported only where one is wanted alone."""
    if len(wanted) != 1 or wanted[0] not in LAST:
        return None
    from attncli.engine import blocks

    return blocks


def made(problem: Problem, name: str, values: Mapping[str, Array]) -> Array:
    """One stage from the values of those before it: given, or by its formula, rounded where ``round`` says so."""
    stage = STAGES[name]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        array = problem.given[name] if name in problem.given else stage.compute(problem, values)
    if problem.exact:
        array = ops.tidied(array)
    decimals = problem.decimals(name)
    if decimals is not None and name not in problem.given:
        array = ops.rounded(array, decimals, problem.rounding)
    if name in ("K", "V"):
        array = with_cache(problem, name, array)
    own = array.shape[-3:] if stage.per_head else array.shape[-2:]
    return array if array.shape == (*problem.batch, *own) else np.broadcast_to(array, (*problem.batch, *own))


def _needs(problem: Problem, name: str) -> tuple[str, ...]:
    return () if name in problem.given else needed(problem, name) or ()


def _order(problem: Problem, wanted: Iterable[str]) -> list[str]:
    """The wanted stages and all that they need, in the table's order."""
    todo, found = list(wanted), set()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += _needs(problem, name)
    return [name for name in STAGES if name in found]


def _notes_on(problem: Problem, name: str, values: Mapping[str, Array]) -> list[str]:
    """What a person should read beside a stage: an overflow, queries that may attend to nothing."""
    array = values[name]
    before = (one for one in values if one != name)
    source = values.get(_FROM_ROWS.get(name, ""))
    if _overflows(problem, name, array, source) and not any(_overflows(problem, one, values[one]) for one in before):
        return [_overflow(f"{name} overflows", problem)]
    mask = problem.mask if name == "masked_scores" else None
    notes = _on_mask(problem, mask, mask.changes_nothing) if mask else []
    if notes == [_CHANGES_NOTHING]:
        return notes
    last = next((score for score in SCORES if is_present(problem, score)), None)
    if name != last or not (problem.mask or problem.given):
        return notes
    array = array.astype(float) if problem.exact else array
    return notes + _on_empty_rows(problem, np.asarray(np.isneginf(array.max(axis=-1))))


def _overflow(said: str, problem: Problem) -> str:
    return f"{said} {problem.dtype}, whose largest number is {np.finfo(problem.dtype).max:.6g}"


_CHANGES_NOTHING = "the mask changes nothing: every query may attend to every key"


def _on_mask(problem: Problem, mask: Mask, changes_nothing: bool) -> list[str]:
    """What a person should know of a mask: that it changes nothing, or that a number of it is too large."""
    if changes_nothing and not (mask.bands and problem.n == 1):  # a decoding step sees all: no news
        return [_CHANGES_NOTHING]
    if _mask_overflows(problem):
        return [f"a number of the mask overflows {problem.dtype}, and is infinite in it"]
    return []


def _mask_overflows(problem: Problem) -> bool:
    """Whether mask_fill or what is added, finite as it is written, is not so in the dtype."""
    if problem.exact:
        return False
    bias = None if problem.mask is None else problem.mask.bias
    numbers = [number for number in (problem.mask_fill, bias) if number is not None]
    with np.errstate(over="ignore"):
        return not all(np.isfinite(np.asarray(number, problem.dtype)).all() for number in numbers)


_MAY_OVERFLOW = ("Q", "K", "V", "scores", "scaled_scores")
_FROM_ROWS = {"multihead": "concat", "contributions": "outputs"}
"""These may overflow too, in rows where what they are made from is finite (that of an empty row may be NaN)."""


def _overflows(problem: Problem, name: str, array: Array, source: Array | None = None) -> bool:
    """Whether an infinity came up, or a NaN from two of them, where every number that went in is finite."""
    if source is not None and not problem.exact:
        return bool((np.isfinite(source).all(axis=-1) & ~np.isfinite(array).all(axis=-1)).any())
    if name not in _MAY_OVERFLOW or name in problem.given or problem.exact or not array.size:
        return False
    return not (np.isfinite(array.max()) and np.isfinite(array.min()))


def _has_overflowed(problem: Problem, name: str, last: Made) -> bool:
    """Whether a stage that was made by blocks isn't finite, or a query sees nothing although no mask hides anything."""
    nan = problem.empty_rows == "nan"
    excused = False if not nan else last.empty if name == "outputs" else last.empty.any(axis=-2)
    finite = np.isfinite(last.array.max(axis=-1)) & np.isfinite(last.array.min(axis=-1))
    return not (finite | excused).all() or (problem.mask is None and bool(last.empty.any()))


def _on_blocks(problem: Problem, name: str, last: Made, overflows: bool) -> list[str]:
    """What a person should read beside a stage that was made by blocks; the same as where its stages are whole."""
    if overflows:
        return [_overflow(f"numbers on the way to the {name} overflow", problem)]
    mask = problem.mask
    notes = _on_mask(problem, mask, mask.bias is None and not last.hides) if mask else []
    return notes + _on_empty_rows(problem, last.empty)


def _on_empty_rows(problem: Problem, empty: Array) -> list[str]:
    """What is said of queries that may attend to nothing, (batch.., h, n); raises where the problem asks for that."""
    if not empty.any():
        return []
    rows = sorted({int(index[-1]) + 1 for index in np.argwhere(empty)})
    named = ", ".join(map(str, rows[:5])) + (f" and {len(rows) - 5} more" if len(rows) > 5 else "")
    one = len(rows) == 1
    who = f"{'query' if one else 'queries'} {named} may attend to nothing"
    if not empty[..., [row - 1 for row in rows]].all():
        who += f" (in some {'batch entries' if problem.batch else 'heads'})"
    if problem.empty_rows == "error":
        raise AttncliError(who, hint="empty_rows: zero (the default) or nan says what to put there.", key="mask")
    put = "NaN" if problem.empty_rows == "nan" else "zeros"
    return [f"{who}: {'its' if one else 'their'} weights and outputs are {put}"]
