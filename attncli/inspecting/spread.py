"""How the numbers of a stage spread, and where each head looks: means, variances, entropies, distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attncli.maths import ops

if TYPE_CHECKING:
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem

SATURATED = 0.99
"""A row counts as saturated where one key gets more than this, and the query had more than one to choose from."""


@dataclass(frozen=True)
class Spread:
    """A stage's finite numbers, how many they are, and how many others there are; ``head`` None: all heads together.

    ``variance`` divides by the count. Mean, variance, least and most are None where no number is finite.
    """

    name: str
    head: int | None
    count: int
    mean: float | None
    variance: float | None
    least: float | None
    most: float | None
    minus_infinite: int = 0
    plus_infinite: int = 0
    nan: int = 0


def spread(name: str, array: Array, head: int | None = None) -> Spread:
    """The statistics of an array, computed in float64; −∞, +∞ and NaN are counted and left out.

    >>> two = spread("scores", np.array([1.0, 3.0, -np.inf]))
    >>> two.count, two.mean, two.variance, two.minus_infinite
    (2, 2.0, 1.0, 1)
    """
    flat = np.asarray(array, dtype=np.float64).ravel()
    finite = flat[np.isfinite(flat)]
    others = (int(np.isneginf(flat).sum()), int(np.isposinf(flat).sum()), int(np.isnan(flat).sum()))
    if not finite.size:
        return Spread(name, head, 0, None, None, None, None, *others)
    with np.errstate(over="ignore"):  # a variance beyond the largest number is shown as ∞
        four = (float(finite.mean()), float(finite.var()), float(finite.min()), float(finite.max()))
    return Spread(name, head, int(finite.size), *four, *others)


@dataclass(frozen=True)
class Look:
    """What one head does with its queries, on average over them (and over batch entries).

    ``rows``: how many are averaged; ``left_out``: rows that are no distribution (empty, NaN, negative, another sum).
    ``entropy`` in nats; ``of_all`` relative to ln m, ``of_allowed`` to the logarithm of how many keys each query may
    attend to. ``choices``: rows with more than one such key, of which ``saturated`` put more than 0.99 on one.
    ``distance`` is Σ_j a_ij |i−j|; ``previous``, ``first`` and ``itself`` are mean weights on the token before, on the
    first key and on the query's own. None where it has no meaning: in cross-attention no key is the query itself.
    ``favourite`` is the key (from 1) with the largest mean weight, ``favourite_weight``.
    """

    head: int
    rows: int
    left_out: int
    entropy: float | None = None
    of_all: float | None = None
    of_allowed: float | None = None
    choices: int = 0
    saturated: int = 0
    distance: float | None = None
    previous: float | None = None
    first: float | None = None
    itself: float | None = None
    favourite: int | None = None
    favourite_weight: float | None = None


def look(head: int, weights: Array, good: Array, allowed: Array, at: int | None, own: int) -> Look:
    """One head's statistics. weights and allowed (rows.., m), good (rows..): which rows are distributions.

    ``at``: the key (from 0) at which the first query stands, None where queries stand at none; the first ``own`` keys
    are tokens (further ones stand nowhere).
    """
    n = weights.shape[-2]
    positions = np.broadcast_to(np.arange(n) + (at or 0), weights.shape[:-1])[good]
    rows, seen = np.asarray(weights[good], dtype=np.float64), allowed[good].sum(axis=-1)
    left_out = int(good.size - len(rows))
    if not len(rows):
        return Look(head, 0, left_out)
    m = rows.shape[-1]
    entropies, several, means = ops.entropy(rows), seen > 1, rows.mean(axis=0)
    even = entropies[several] / np.log(seen[several])
    distance, previous, first, itself = _distances(rows[:, :own], positions, at is not None)
    return Look(
        head=head,
        rows=len(rows),
        left_out=left_out,
        entropy=float(entropies.mean()),
        of_all=float(entropies.mean() / np.log(m)) if m > 1 else None,
        of_allowed=float(even.mean()) if len(even) else None,
        choices=int(several.sum()),
        saturated=int((rows.max(axis=-1)[several] > SATURATED).sum()),
        distance=distance,
        previous=previous,
        first=first,
        itself=itself,
        favourite=int(means.argmax()) + 1,
        favourite_weight=float(means.max()),
    )


def _distances(rows: Array, positions: Array, placed: bool) -> Sequence[float | None]:
    """Mean distance, and mean weight on the previous token, on the first, and on the token itself."""
    first = float(rows[:, 0].mean())
    if not placed:
        return None, None, first, None
    distance = float((rows * np.abs(np.arange(rows.shape[1]) - positions[:, None])).sum(axis=-1).mean())
    return distance, _mean_at(rows, positions - 1), first, _mean_at(rows, positions)


def _mean_at(rows: Array, keys: Array) -> float | None:
    """The mean weight at one key a row; rows whose key doesn't exist are left out."""
    there = (keys >= 0) & (keys < rows.shape[1])
    return float(rows[there, keys[there]].mean()) if there.any() else None


def first_position(problem: Problem) -> int | None:
    """The key (from 0) at which the first query stands, where queries and keys are the same tokens; else None."""
    p = problem
    own = p.m - p.extra
    if p.memory is not None or (p.memory_tokens and p.tokens and p.memory_tokens[p.past : own] != p.tokens):
        return None
    if p.n + p.past == own:
        return p.past
    offsets = [np.asarray(band.offset) for band in p.mask.bands] if p.mask else []
    if offsets and offsets[0].ndim == 0:
        return int(offsets[0])
    return None
