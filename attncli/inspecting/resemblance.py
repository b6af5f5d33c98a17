"""What a foreign matrix of weights looks like: dropout, a softmax along the wrong axis, percent, padding ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.inspecting.invariants import Room, allowed_keys, room, short
from attncli.maths.ops import Array

if TYPE_CHECKING:
    from attncli.model.problem import Problem


def looks(problem: Problem, weights: Array) -> tuple[str, ...]:
    """What a given matrix of weights looks like: dropout, a softmax down the wrong axis, percent, padding ..."""
    if "weights" not in problem.given or not np.isfinite(weights).all():
        return ()
    weights = weights.astype(np.float64, copy=False)
    seen = _Seen(problem, weights, room(problem, weights))
    return tuple(said for one in _LOOKS if (said := one(seen)))


class _Seen:
    """A matrix of weights with what every question asks: sums, room, which keys are allowed."""

    def __init__(self, problem: Problem, weights: Array, limits: Room) -> None:
        self.problem, self.weights, self.limits = problem, weights, limits
        self.sums = weights.sum(axis=-1)
        self.allowed = allowed_keys(problem, weights.shape)
        self.slack = np.maximum(limits.above, limits.below)
        self.line, self.across = ("column", "row") if problem.columns else ("row", "column")

    def are_1(self, sums: Array, slack: Any = None) -> bool:
        return bool((np.abs(sums - 1) <= (self.slack.max() if slack is None else slack)).all())

    @property
    def sound(self) -> bool:
        return self.are_1(self.sums, self.slack) and bool((self.weights >= 0).all())


def _dropout(seen: _Seen) -> str | None:
    """Entries that are 0 or w/(1−p): some sums exceed 1, and where nothing is lost, the sum is 1/(1−p)."""
    w, sums, slack = seen.weights, seen.sums, seen.slack
    over = sums > 1 + slack
    dropped = (w == 0) & seen.allowed
    if (w < 0).any() or not over.any() or not dropped.any() or sums.max() > 20:
        return None
    top = float(sums.max())
    whole = ~dropped.any(axis=-1)
    if whole.any() and (np.abs(sums[whole] - top) > 2 * slack[whole] + 1e-9).any():
        return None
    bound = "p = " if whole.any() else "p at least "
    return (
        f"looks like dropout: zeros, and sums up to {top:.4g} = 1/(1 − {1 - 1 / top:.3g}); "
        f"entries are 0 or w/(1 − p), {bound}{1 - 1 / top:.3g}"
    )


def _other_axis(seen: _Seen) -> str | None:
    if seen.sound or min(seen.weights.shape[-2:]) < 2 or (seen.weights < 0).any():
        return None
    if seen.are_1(seen.weights.sum(axis=-2)):
        layout = "rows" if seen.problem.columns else "columns"
        return f"each {seen.across} sums to 1: a softmax along the other axis, or a matrix of layout: {layout}"
    return None


def _whole_matrix(seen: _Seen) -> str | None:
    if seen.sound or seen.weights.shape[-2] < 2 or (seen.weights < 0).any():
        return None
    return "all entries together sum to 1: a softmax over the whole matrix" if seen.are_1(
        seen.weights.sum(axis=(-1, -2))) else None  # fmt: skip


def _percent(seen: _Seen) -> str | None:
    return f"each {seen.line} sums to 100: these are percent" if seen.are_1(seen.sums / 100, 0.02) else None


def _signed(seen: _Seen) -> str | None:
    w = seen.weights
    if (w < 0).any() and (w > 0).any() and seen.are_1(np.abs(w).sum(axis=-1), seen.slack):
        return f"without their signs, the entries of each {seen.line} sum to 1: some kernels mark dropped entries so"
    return None


def _logarithms(seen: _Seen) -> str | None:
    w = seen.weights
    if (w <= 0).all() and (w < 0).any() and seen.are_1(np.exp(w).sum(axis=-1), np.maximum(seen.slack, 1e-6)):
        return "these are the logarithms of weights"
    return None


def _lost(seen: _Seen) -> str | None:
    """Masked after the softmax and not renormalised: masked cells are 0 and the sums are short."""
    hidden = ~seen.allowed
    if not hidden.any() or (seen.weights < 0).any() or (seen.weights[hidden] != 0).any():
        return None
    short = seen.sums < 1 - seen.slack
    if short.any() and not (seen.sums > 1 + seen.slack).any() and not short[~hidden.any(axis=-1)].any():
        return f"the {seen.line}s that the mask touches are short: masked after the softmax, and not renormalised?"
    return None


def _padding(seen: _Seen) -> str | None:
    """The last keys get the same constant from every query: padding that was never cut off."""
    w, m = seen.weights, seen.weights.shape[-1]
    columns = w.reshape(-1, m)
    if len(columns) < 2:
        return None
    constant = (columns == columns[:, -1:]) & (columns[:, -1:] == columns[0, -1]) & seen.allowed.reshape(-1, m)
    same = constant.all(axis=0)
    count = m if same.all() else int(np.argmin(same[::-1]))
    if not 0 < count < m:
        return None
    keys = f"key {m} gets" if count == 1 else f"keys {m - count + 1} to {m} get"
    return f"{keys} {short(float(columns[0, -1]))} from every query: padding?"


def _causal(seen: _Seen) -> str | None:
    """Zeros above the diagonal alone, where no mask is given."""
    *_, n, m = seen.weights.shape
    if n != m or n < 2 or not seen.allowed.all():
        return None
    above = np.triu(np.ones((n, m), bool), 1)
    if (seen.weights[..., above] == 0).all() and (seen.weights[..., ~above] != 0).all():
        return "looks causal: no token attends to a later one"
    return None


_LOOKS: tuple[Callable[[_Seen], str | None], ...] = (
    _dropout, _other_axis, _whole_matrix, _percent, _signed, _logarithms, _lost, _padding, _causal,
)  # fmt: skip
