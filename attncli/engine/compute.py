"""compute(problem): walks the table of stages and gives a Result, which maps a stage's name to its array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from attncli.engine.evaluate import evaluated
from attncli.engine.memory import is_beyond_memory, refuse_beyond_memory
from attncli.language.errors import AttncliError
from attncli.language.hooks import view_of
from attncli.stages.plan import plan
from attncli.stages.table import STAGES
from attncli.stages.wanted import wanted_stages

if TYPE_CHECKING:
    from attncli.engine.blocks import Made, Progress
    from attncli.maths.mask import Mask
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem
    from attncli.stages.inputs import LayerInputs
    from attncli.stages.plan import Plan


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
        return str(view_of(self).page(self))

    def __rich__(self) -> object:
        """What rich prints: the tables of the screen."""
        return view_of(self).Tables(self)


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
    steps = plan(problem)
    order = steps.before(wanted)
    if (blocks := _blocks(wanted)) and blocks.fits(problem, wanted):
        refuse_beyond_memory(problem, wanted)
        last = blocks.compute_last(problem, wanted[0], progress)
        overflows = _has_overflowed(problem, wanted[0], last)
        if not overflows or is_beyond_memory(problem, order):
            notes = _on_blocks(problem, wanted[0], last, overflows)
            return Result(problem, {wanted[0]: last.array}, (*problem.notes, *notes))
    refuse_beyond_memory(problem, order)
    values: Mapping[str, Array] = {}
    notes = list(problem.notes)
    for done, (name, values) in enumerate(evaluated(steps, {}, wanted, keep=wanted), 1):
        notes += _notes_on(steps, name, values)
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
    if len(wanted) != 1 or not STAGES[wanted[0]].blocked:
        return None
    from attncli.engine import blocks

    return blocks


def _notes_on(steps: Plan, name: str, values: Mapping[str, Array]) -> list[str]:
    """What a person should read beside a stage: an overflow, queries that may attend to nothing."""
    problem, array = steps.inputs, values[name]
    before = [one for one in values if one != name]
    if _overflows(steps, name, values) and not any(_overflows(steps, one, values, False) for one in before):
        return [_overflow(f"{name} overflows", problem)]
    mask = problem.mask if name == "masked_scores" else None
    notes = _on_mask(problem, mask, mask.changes_nothing) if mask else []
    if notes == [_CHANGES_NOTHING]:
        return notes
    softmax = steps.steps.get("weights")
    if softmax is None or softmax.needs != (name,) or not (problem.mask or problem.given):
        return notes
    array = array.astype(float) if problem.exact else array
    return notes + _on_empty_rows(problem, np.asarray(np.isneginf(array.max(axis=-1))))


def _overflow(said: str, problem: LayerInputs) -> str:
    return f"{said} {problem.dtype}, whose largest number is {np.finfo(problem.dtype).max:.6g}"


_CHANGES_NOTHING = "the mask changes nothing: every query may attend to every key"


def _on_mask(problem: LayerInputs, mask: Mask, changes_nothing: bool) -> list[str]:
    """What a person should know of a mask: that it changes nothing, or that a number of it is too large."""
    if changes_nothing and not (mask.bands and problem.n == 1):  # a decoding step sees all: no news
        return [_CHANGES_NOTHING]
    if _mask_overflows(problem):
        return [f"a number of the mask overflows {problem.dtype}, and is infinite in it"]
    return []


def _mask_overflows(problem: LayerInputs) -> bool:
    """Whether mask_fill or what is added, finite as it is written, is not so in the dtype."""
    if problem.exact:
        return False
    bias = None if problem.mask is None else problem.mask.bias
    numbers = [number for number in (problem.mask_fill, bias) if number is not None]
    with np.errstate(over="ignore"):
        return not all(np.isfinite(np.asarray(number, problem.dtype)).all() for number in numbers)


def _overflows(steps: Plan, name: str, values: Mapping[str, Array], in_rows: bool = True) -> bool:
    """Whether an infinity came up, or a NaN from two of them, where every number that went in is finite.

    ``in_rows``: also of a stage whose rows may overflow where those that it is made of are finite.
    """
    step, array = steps.steps[name], values[name]
    kind = step.stage.overflows
    if not kind or step.is_given or steps.inputs.exact or not array.size:
        return False
    if kind == "numbers":
        return not (np.isfinite(array.max()) and np.isfinite(array.min()))
    source = values.get(step.needs[0])
    if source is None or not in_rows:
        return False
    return bool((np.isfinite(source).all(axis=-1) & ~np.isfinite(array).all(axis=-1)).any())


def _has_overflowed(problem: LayerInputs, name: str, last: Made) -> bool:
    """Whether a stage that was made by blocks isn't finite, or a query sees nothing although no mask hides anything."""
    nan = problem.empty_rows == "nan"
    excused = False if not nan else last.empty if name == "outputs" else last.empty.any(axis=-2)
    finite = np.isfinite(last.array.max(axis=-1)) & np.isfinite(last.array.min(axis=-1))
    return not (finite | excused).all() or (problem.mask is None and bool(last.empty.any()))


def _on_blocks(problem: LayerInputs, name: str, last: Made, overflows: bool) -> list[str]:
    """What a person should read beside a stage that was made by blocks; the same as where its stages are whole."""
    if overflows:
        return [_overflow(f"numbers on the way to the {name} overflow", problem)]
    mask = problem.mask
    notes = _on_mask(problem, mask, mask.bias is None and not last.hides) if mask else []
    return notes + _on_empty_rows(problem, last.empty)


def _on_empty_rows(problem: LayerInputs, empty: Array) -> list[str]:
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
