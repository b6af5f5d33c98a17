"""What must hold of weights and outputs, whatever they were computed from.

It needs no key: each row of weights sums to 1, none is negative, masked ones are exactly 0, and each output lies
between the smallest and the largest value of its column of V.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attncli.maths import ops
from attncli.maths.ops import Array
from attncli.model import cells

if TYPE_CHECKING:
    from attncli.model.problem import Problem

_ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
"""How far a number is from the one that was meant, relatively, once it was stored so."""

_DECIMAL = re.compile(r"[-+−]?(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d+))?")


@dataclass(frozen=True)
class Invariant:
    """Something that must hold: its name, whether it does, a sentence that says how, and the cells that break it."""

    name: str
    holds: bool
    sentence: str
    cells: tuple[str, ...] = ()
    count: int = 0


@dataclass(frozen=True)
class Room:
    """How far a sum of weights may be from 1: above it, below it (arrays that broadcast to rows), and why."""

    above: Array
    below: Array
    because: str


# How exactly the numbers are known


def room(problem: Problem, weights: Array) -> Room:
    """What rounding can do to the sum of each row, by how the weights were written, stored or computed.

    weights (.., n, m)  ->  two arrays (.., n)
    """
    units = _units(problem, weights) if "weights" in problem.given else None
    if units is not None and (units > 0).any():
        total = units.sum(axis=-1)
        noise = 1e-9
        return Room(total / 2 + noise, total + noise, _decimals_in_words(units))
    decimals = problem.decimals("weights") if "weights" not in problem.given else None
    if decimals is not None:
        half = np.full(weights.shape[:-1], weights.shape[-1] * 0.5 * 10.0**-decimals + 1e-9)
        return Room(half, half, f"weights rounded to {decimals} decimals")
    computed = "weights" not in problem.given
    kind = problem.dtype.name if computed and problem.dtype.name in _ROUNDING else stored_as(weights)
    error = _ROUNDING[kind] * (4 + np.log2(weights.shape[-1]))
    return Room(
        np.full(weights.shape[:-1], error),
        np.full(weights.shape[:-1], error),
        f"{kind} numbers" if kind == problem.dtype.name else f"numbers that fit {kind}",
    )


def stored_as(array: Array) -> str:
    """The narrowest of bfloat16, float16, float32 and float64 that holds every number as it is.

    >>> stored_as(np.array([0.5, 0.25])), stored_as(np.array([0.1]))
    ('bfloat16', 'float64')
    """
    finite = array[np.isfinite(array)]
    with np.errstate(over="ignore", under="ignore"):
        single = finite.astype(np.float32)
        if (single != finite).any():
            return "float64"
        if not (single.view(np.uint32) & 0xFFFF).any():
            return "bfloat16"
        return "float16" if (finite.astype(np.float16) == finite).all() else "float32"


def _units(problem: Problem, weights: Array) -> Array | None:
    """One unit of the last decimal of each weight as it was written, 0 for exact ones (1/3); None where unknown."""
    written = problem.written.get("weights")
    if written is None:
        return None
    texts = written.texts.swapaxes(-1, -2) if problem.columns and written.texts.ndim > 1 else written.texts
    if texts.size != weights.size:
        return None
    decimals = np.array([_decimals(str(text)) for text in texts.ravel()], dtype=float)
    known = decimals[np.isfinite(decimals)]
    if not known.size:
        return np.zeros(weights.shape)
    least = min(2.0, known.max())
    units: Array = np.where(np.isfinite(decimals), 10.0 ** -np.maximum(decimals, least), 0.0)
    return units.reshape(weights.shape) if known.max() > 0 else np.zeros(weights.shape)


def _decimals(text: str) -> float:
    """Digits after the point down to the last one written; infinite for an exact expression such as 1/3."""
    match = _DECIMAL.fullmatch(text.strip())
    if match is None:
        return np.inf
    return max(0, len(match[2] or "") - int(match[3] or 0))


def _decimals_in_words(units: Array) -> str:
    decimals = sorted({round(-np.log10(unit)) for unit in units[units > 0].ravel()})
    if len(decimals) > 1:
        return f"weights written to {decimals[0]} to {decimals[-1]} decimals"
    return f"weights written to {decimals[0]} decimal{'' if decimals[0] == 1 else 's'}"


def distributions(problem: Problem, weights: Array) -> Array:
    """Which rows of weights are a distribution: finite, not negative, with the sum 1 as exactly as it is known.

    weights (.., n, m)  ->  (.., n)
    """
    limits = room(problem, weights)
    with np.errstate(invalid="ignore"):
        off = weights.sum(axis=-1, dtype=np.float64) - 1
        good: Array = (off <= limits.above) & (off >= -limits.below) & (weights >= 0).all(axis=-1)
    return good


# What must hold


def invariants(problem: Problem, values: dict[str, Array]) -> tuple[Invariant, ...]:
    """What holds of the weights and outputs in ``values`` (canonical rows, batch entries and heads in full).

    V, where it is there, bounds the outputs.
    """
    found = []
    if (weights := values.get("weights")) is not None:
        weights = np.asarray(weights)
        found += [_sums(problem, weights), _signs(problem, weights)]
        masked = _masked(problem, weights)
        found += [masked] if masked else []
        if "outputs" in values and "V" in values:
            found.append(_range(problem, weights, values["outputs"], values["V"]))
    return tuple(found)


def _line(problem: Problem) -> str:
    return "column" if problem.columns else "row"


def _sums(problem: Problem, weights: Array) -> Invariant:
    limits, line = room(problem, weights), _line(problem)
    empty = _empty(problem, weights)
    with np.errstate(invalid="ignore"):
        off = weights.sum(axis=-1, dtype=np.float64) - 1
        wrong = ~((off <= limits.above) & (off >= -limits.below)) & ~empty
    if not wrong.any():
        but = f"; {_numbered(empty)} may attend to nothing" if empty.any() else ""
        most = float(np.abs(off[~empty]).max(initial=0.0))
        allowed = f"{limits.because} may be off by {short(float(max(limits.above.max(), limits.below.max())))}"
        within = f"to within {short(most)} ({allowed})" if most else "exactly"
        return Invariant("rows_sum_to_1", True, f"each {line} of weights sums to 1 {within}{but}")
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    where, more = _place(problem, weights, index), int(wrong.sum()) - 1
    others = f", and {more} other{'s' if more > 1 else ''} not either" if more else ""
    far = max((limits.above if off[index] > 0 else limits.below)[index], 0)
    allowed = f"{limits.because} may be off by {short(float(far))}"
    said = f"{where} sums to {short(float(off[index]) + 1)}, not to 1 ({allowed})"
    if not np.isfinite(off[index]):
        said = f"{where} holds {'NaN' if np.isnan(off[index]) else '∞'}, and doesn't sum to 1"
    elif not weights[index].any():
        said = f"{where} is 0 throughout, as of a query that may attend to nothing"
    rows = [_place(problem, weights, tuple(map(int, one))) for one in np.argwhere(wrong)[:20]]
    return Invariant("rows_sum_to_1", False, said + others, tuple(rows), more + 1)


def _empty(problem: Problem, weights: Array) -> Array:
    """Rows (.., n) in which every key is masked, as far as is known, and which are zeros or NaN."""
    allowed = allowed_keys(problem, weights.shape)
    blank = (weights == 0) | np.isnan(weights)
    nothing: Array = ~allowed.any(axis=-1) & blank.all(axis=-1)
    return nothing


def allowed_keys(problem: Problem, shape: Sequence[int]) -> Array:
    """Which keys each query may attend to, as far as the problem says, broadcast to (.., h, n, m)."""
    given = problem.given.get("masked_scores")
    if given is not None:
        return np.broadcast_to(~np.isneginf(given), shape)
    if problem.mask is None or problem.mask.allowed is None:
        return np.broadcast_to(np.True_, shape)
    return np.broadcast_to(problem.mask.allowed, shape)


def _signs(problem: Problem, weights: Array) -> Invariant:
    with np.errstate(invalid="ignore"):
        wrong = weights < 0
    if not wrong.any():
        return Invariant("none_negative", True, "no weight is negative")
    return _broken("none_negative", problem, "weights", weights, wrong, "negative")


def _masked(problem: Problem, weights: Array) -> Invariant | None:
    """Masked weights are exactly 0 (with ``mask_fill`` they may leak)."""
    allowed = allowed_keys(problem, weights.shape)
    if allowed.all():
        return None
    hidden = ~allowed & allowed.any(axis=-1, keepdims=True)
    wrong = hidden & (weights != 0)
    if not wrong.any():
        return Invariant("masked_are_0", True, "each masked weight is exactly 0")
    fill = "" if problem.mask_fill is None else f"; mask_fill {problem.mask_fill:g} is not −∞"
    broken = _broken("masked_are_0", problem, "weights", weights, wrong, "masked and not 0")
    return Invariant(broken.name, False, broken.sentence + fill, broken.cells, broken.count)


def _range(problem: Problem, weights: Array, outputs: Array, V: Array) -> Invariant:
    """Each output lies between the least and the most of its column of V, of the keys that may be attended to."""
    low, high = _bounds(problem, weights, ops.spread_heads(V, problem.num_heads))
    slack = _slack(problem, outputs, V)
    with np.errstate(invalid="ignore"):
        wrong = (outputs < low - slack) | (outputs > high + slack)
    wrong &= allowed_keys(problem, weights.shape).any(axis=-1, keepdims=True)
    line = "row" if problem.columns else "column"
    if not wrong.any():
        return Invariant("outputs_in_range", True, f"each output lies within the range of its {line} of V")
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    low, high = np.broadcast_to(low, outputs.shape), np.broadcast_to(high, outputs.shape)
    between = f"outside {short(float(low[index]))} to {short(float(high[index]))}, the range of its {line} of V"
    return _broken("outputs_in_range", problem, "outputs", outputs, wrong, between)


def _bounds(problem: Problem, weights: Array, V: Array) -> tuple[Array, Array]:
    """The range of each column of V over the keys that each query may attend to: (.., n or 1, d_v) twice."""
    allowed = allowed_keys(problem, weights.shape)
    if allowed.all() or weights.size * V.shape[-1] > 1 << 24:
        return np.nanmin(V, axis=-2, keepdims=True), np.nanmax(V, axis=-2, keepdims=True)
    values, seen = V[..., None, :, :], allowed[..., None]
    return np.where(seen, values, np.inf).min(axis=-2), np.where(seen, values, -np.inf).max(axis=-2)


def _slack(problem: Problem, outputs: Array, V: Array) -> float:
    """What rounding can do to an output: of the arithmetic, or of the decimals that it was written with."""
    largest = float(np.nanmax(np.abs(V), initial=0.0, where=np.isfinite(V)))
    written = problem.written.get("outputs")
    if "outputs" in problem.given and written is not None:
        finest = [_decimals(str(text)) for text in written.texts.ravel()]
        known = [number for number in finest if np.isfinite(number)]
        return 10.0 ** -max(known) if known else largest * 1e-9
    counts = [problem.decimals(name) for name in ("V", "weights", "outputs")]
    rounded = max((10.0**-count * (1 + largest) for count in counts if count is not None), default=0.0)
    kind = stored_as(outputs) if "outputs" in problem.given else problem.dtype.name
    return largest * _ROUNDING.get(kind, 2.0**-53) * (4 + problem.m) + rounded * problem.m


def _broken(name: str, problem: Problem, stage: str, array: Array, wrong: Array, what: str) -> Invariant:
    places = np.argwhere(wrong)
    index = tuple(int(i) for i in places[0])
    named = tuple(str(cells.shown(problem, stage, array.shape, tuple(map(int, one)))) for one in places[:20])
    more = len(places) - 1
    others = f" (and {more} more cell{'s' if more > 1 else ''})" if more else ""
    return Invariant(name, False, f"{named[0]} = {short(float(array[index]))} is {what}{others}", named, len(places))


def _place(problem: Problem, weights: Array, row: tuple[int, ...]) -> str:
    return str(cells.shown(problem, "weights", weights.shape, row))


def _numbered(empty: Array) -> str:
    rows = sorted({int(one[-1]) + 1 for one in np.argwhere(empty)})
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f"quer{'y' if len(rows) == 1 else 'ies'} {', '.join(map(str, rows[:5]))}{more}"


def short(number: float) -> str:
    """A number in four digits, or fewer with a power of ten."""
    return f"{number:.4g}".replace("-", "−") if "e" not in f"{number:.4g}" else f"{number:.1e}".replace("-", "−")
