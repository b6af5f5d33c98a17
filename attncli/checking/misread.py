"""Misreadings: a wrong Q, K or V that one changed entry of a weight or of the inputs explains, solved and not tried.

A changed entry W[a, b] moves column b of the projection by δ·(column a of the inputs); a changed entry Z[i, a] moves
row i by δ·(row a of the weights). Every judged entry bounds δ by what it may stand for; one δ must satisfy all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attncli.checking.chains import Key
from attncli.checking.mistakes.base import Changes, Variant, Wrong, projected
from attncli.checking.precision import BINARY, EXACT, Answer
from attncli.maths import ops

if TYPE_CHECKING:
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem

ROLES = ("Q", "K", "V")


@dataclass(frozen=True)
class _Bounds:
    """A role's answer in fused form, rows of all batch entries below each other: how far each entry is off at least
    and at most (low, high), where it differs (bad), and what was projected by what."""

    low: Array
    high: Array
    bad: Array
    source: Array
    weight: Array


def misreadings(key: Key, role: str, answers: Mapping[str, Answer]) -> Iterator[Variant]:
    """The single changed entries of W or of the inputs that explain a wrong Q, K or V."""
    differs = ~answers[role].agrees(key.right[role])
    if not _is_in_one_line(differs):
        return
    for cut in (False, True):  # as if all were rounded, then with room for cut numbers
        bounds = {name: found for name in ROLES if (found := _bounds(key, name, answers, cut)) is not None}
        own = bounds.get(role)
        if own is None:
            return
        ways = [*_of_weight(key.problem, role, own), *_of_source(key.problem, role, bounds)]
        yield from ways
        if ways:
            return


def _is_in_one_line(differs: Array) -> bool:
    """Whether all that differs stands in one column of one head, or in one row of one batch entry (of any head)."""
    columns = differs.any(axis=(*range(differs.ndim - 3), -2))
    return bool(columns.sum() == 1 or differs.any(axis=(-3, -1)).sum() == 1)


def _bounds(key: Key, role: str, answers: Mapping[str, Answer], cut: bool) -> _Bounds | None:
    source_name, weight_name, _ = key.problem.projection(role)
    source, weight = getattr(key.problem, source_name), getattr(key.problem, weight_name)
    if role not in answers or source is None or weight is None or role in key.problem.given:
        return None
    answer, right = answers[role], key.right[role]
    if right.shape[-2] != source.shape[-2] or right.shape[:-3] != source.shape[:-2]:
        return None
    low, high = allowance(answer, cut)
    noise = key.eps * max(answer.largest, 1e-300)
    fused = [ops.join_heads(x).reshape(-1, weight.shape[1]) for x in (low - right, high - right, answer.agrees(right))]
    return _Bounds(fused[0] - noise, fused[1] + noise, ~fused[2], source.reshape(-1, source.shape[-1]), weight)


def allowance(answer: Answer, cut: bool) -> tuple[Array, Array]:
    """The smallest and the largest number that each entry may stand for, rounded (or cut too)."""
    value, unit = answer.value, answer.unit
    if answer.stage.binary or answer.rule.is_tolerance:
        rule = answer.rule
        room = (rule.atol or 0.0) + (rule.rtol or 0.0) * np.abs(value)
        if not rule.is_tolerance:
            room = np.full(value.shape, BINARY.get(str(value.dtype), EXACT) * answer.largest)
        low, high = value - room, value + room
    else:
        slack = np.where(answer.exact, EXACT * np.abs(value), 0.0)
        far = unit if cut else unit / 2
        low = value - np.where(value > 0, unit / 2, far) - slack
        high = value + np.where(value < 0, unit / 2, far) + slack
    return np.where(answer.judged, low, -np.inf), np.where(answer.judged, high, np.inf)


def _is_evidence(bounds: Iterable[_Bounds]) -> bool:
    """One number always explains one number: two must differ and others agree, or three differ."""
    bad = sum(int(one.bad.sum()) for one in bounds)
    judged = sum(int(np.isfinite(one.low).sum()) for one in bounds)
    return bad >= 3 or (bad == 2 and judged > 2)


def _step(low: Array, high: Array, bad: Array, factor: Array) -> tuple[float, float] | None:
    """The δ with low ≤ δ·factor ≤ high throughout, as an interval; None if there is none."""
    moves = np.abs(factor) > 1e-12
    if bad[~moves].any() or not moves.any():
        return None
    ends = np.stack([low[moves] / factor[moves], high[moves] / factor[moves]])
    first, last = float(ends.min(axis=0).max()), float(ends.max(axis=0).min())
    return (first, last) if first <= last else None


def _of_weight(problem: Problem, role: str, own: _Bounds) -> Iterator[Variant]:
    if own.bad.any(axis=0).sum() != 1 or not _is_evidence([own]):
        return
    column = int(np.argmax(own.bad.any(axis=0)))
    for row in range(own.weight.shape[0]):
        step = _step(own.low[:, column], own.high[:, column], own.bad[:, column], own.source[:, row])
        if step is None:
            continue
        was = float(own.weight[row, column])
        becomes = simplest(was + step[0], was + step[1])
        weight = own.weight.copy()
        weight[row, column] = becomes
        detail = f"as if {_weight_entry(problem, role, row, column)} were {_shown(becomes)} (it is {_shown(was)})"
        yield Variant({role: _with_weight(role, weight)}, detail)


def _of_source(problem: Problem, role: str, bounds: Mapping[str, _Bounds]) -> Iterator[Variant]:
    own, name = bounds[role], problem.projection(role)[0]
    sharing = [other for other in ROLES if problem.projection(other)[0] == name]
    if own.bad.any(axis=1).sum() != 1 or not _is_evidence(bounds[other] for other in sharing if other in bounds):
        return
    row = int(np.argmax(own.bad.any(axis=1)))
    for column in range(own.source.shape[1]):
        steps = []
        for other in sharing:
            if other == role or (other in bounds and bounds[other].bad[row].any()):
                there = bounds[other]
                steps.append(_step(there.low[row], there.high[row], there.bad[row], there.weight[column]))
        found = [step for step in steps if step is not None]
        if len(found) < len(steps):
            continue
        first, last = max(step[0] for step in found), min(step[1] for step in found)
        if first <= last:
            yield from _misread_source(problem, role, name, sharing, (row, column), (first, last))


def _misread_source(
    problem: Problem, role: str, name: str, sharing: list[str], at: tuple[int, int], step: tuple[float, float]
) -> Iterator[Variant]:
    """The entry misread once for all, and misread for this one of Q, K, V alone."""
    array = getattr(problem, name)
    flat = array.reshape(-1, array.shape[-1]).copy()
    was = float(flat[at])
    flat[at] = becomes = simplest(was + step[0], was + step[1])
    other = flat.reshape(array.shape)
    index = (*(int(i) for i in np.unravel_index(at[0], array.shape[:-1])), at[1])
    if problem.columns:
        index = (*index[:-2], index[-1], index[-2])
    entry = f"{name}[{','.join(str(i + 1) for i in index)}]"
    detail = f"as if {entry} were {_shown(becomes)} (it is {_shown(was)})"

    def changes(roles: list[str]) -> Changes:
        made = [each for each in roles if getattr(problem, f"W_{each}") is not None]
        return {each: _from_source(each, other) for each in made}

    yield Variant(changes(sharing), detail)
    if len(sharing) > 1:
        yield Variant(changes([role]), f"{detail}, for {role} alone")


def _with_weight(role: str, weight: Array) -> Wrong:
    return lambda problem, values: projected(problem, role, weight=weight)


def _from_source(role: str, source: Array) -> Wrong:
    return lambda problem, values: projected(problem, role, source=source)


def _weight_entry(problem: Problem, role: str, row: int, column: int) -> str:
    """W_K[2,1] as the problem writes it, with its head where the heads are written apart."""
    name, head = f"W_{role}", ""
    if "heads" in problem.keys:
        width = problem.arrays[name].shape[1] // problem.num_heads
        head, column = f"head {column // width + 1}'s ", column % width
    pair = (column, row) if problem.stored_transposed(name) else (row, column)
    return f"{head}{name}[{pair[0] + 1},{pair[1] + 1}]"


def simplest(low: float, high: float) -> float:
    """The number of fewest decimals between two numbers, nearest to their middle.

    >>> simplest(-1.05, -0.9), simplest(0.41, 0.44)
    (-1.0, 0.42)
    """
    if not np.isfinite(low) or not np.isfinite(high):
        return float(np.nan_to_num(low if np.isfinite(low) else high))
    middle = (low + high) / 2
    slack = 1e-12 * max(abs(low), abs(high))
    for decimals in range(10):
        number = round(middle, decimals)
        if low - slack <= number <= high + slack:
            return number + 0.0
    return middle


def _shown(number: float) -> str:
    return f"{number:.6g}".replace("-", "−")
