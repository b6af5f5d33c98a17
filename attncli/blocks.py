"""The last stages by blocks of query rows, so that no n × m array is ever whole.

What is computed is exact (the softmax of a row needs that row alone), in memory O(n·d) rather than O(n·m); and
the scores of a block stay in the processor's cache while they are masked, raised and summed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attncli import ops
from attncli.stages import projection_names

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from attncli.ops import Array
    from attncli.problem import Problem

LAST = ("outputs", "concat", "multihead")
"""The stages that can be made by blocks: those after the weights."""

FEW = 1 << 22
"""Up to so many scores in all, the arrays are kept whole: 32 MiB of float64."""

Progress = Callable[[float], None]


class Side(NamedTuple):
    """What the heads of a group look at: Kᵀ (d_k, m), V with a last column of ones (m, d_v + 1), the largest |k|."""

    K_T: Array
    V: Array
    longest_key: float


def fits(problem: Problem, wanted: Sequence[str]) -> bool:
    """Whether the stages that are wanted can be, and are better, made by blocks."""
    return (
        len(wanted) == 1
        and wanted[0] in LAST
        and problem.dtype in (np.float64, np.float32)
        and problem.round is None
        and problem.score in ("scaled_dot", "dot", "general")
        and not set(problem.given) - {"Q", "K", "V"}
        and int(np.prod(problem.batch)) * problem.num_heads * problem.n * problem.m > FEW
        and all(np.isfinite(given.max() + given.min()) for given in problem.given.values())
    )


def compute_last(problem: Problem, name: str, progress: Progress | None = None) -> tuple[Array, Array]:
    """One of the stages after the weights, and which rows (batch.., h, n) may attend to nothing.

    Returns (batch.., h, n, d_v) for outputs, (batch.., n, h·d_v) for concat, (batch.., n, d_out) for multihead.
    """
    p, h = problem, problem.num_heads
    assert p.d_v is not None
    widths = {"outputs": p.d_v, "concat": h * p.d_v, "multihead": p.d_out or 0}
    lead = (*p.batch, h) if name == "outputs" else p.batch
    result = np.zeros((*lead, p.n, widths[name]), p.dtype)
    if name == "multihead" and p.b_O is not None:
        result += p.b_O
    empty = np.zeros((*p.batch, h, p.n), bool)
    done = 0
    with _workers() as pool:
        for entry in np.ndindex(p.batch):
            for group in range(p.num_kv_heads):
                side = _side(p, entry, group, pool)
                for head in _heads_of(p, group):
                    place = _target(p, name, result, entry, head)
                    _one_head(p, entry, head, side, place, empty[(*entry, head)], pool)
                    done += 1
                    if progress:
                        progress(done / (h * int(np.prod(p.batch))))
    return result, empty


def _heads_of(problem: Problem, group: int) -> range:
    each = problem.num_heads // problem.num_kv_heads
    return range(group * each, (group + 1) * each)


def _target(
    problem: Problem, name: str, result: Array, entry: tuple[int, ...], head: int
) -> Callable[[slice, Array], None]:
    """Where the rows of one head's outputs go."""
    width = problem.d_v or 0
    into = result[entry]
    if name == "outputs":
        return lambda rows, block: into[head].__setitem__(rows, block)
    columns = slice(head * width, (head + 1) * width)
    if name == "concat":
        return lambda rows, block: into.__setitem__((rows, columns), block)
    share = problem.W_O[columns]

    def add(rows: slice, block: Array) -> None:
        into[rows] += block @ share

    return add


def _one_head(
    problem: Problem, entry: tuple[int, ...], head: int, side: Side,
    put: Callable[[slice, Array], None], empty: Array, pool: Executor | None,
) -> None:  # fmt: skip
    """All query rows of one head, block after block; ``empty`` (n,) is told which may attend to nothing."""
    height = _height(problem)
    own = local()  # each worker's memory for the scores of a block

    def block(start: int) -> None:
        rows = slice(start, min(start + height, problem.n))
        Q = _rows(problem, "Q", entry, head, rows)
        Q = Q if problem.score != "general" else Q @ problem.W_a
        Q = ops.scaled_scores(Q, d_k=problem.d_k, scale=problem.scale) if problem.is_scaled else Q
        allowed, bias = (_of_head(x, problem, entry, head) for x in _mask_rows(problem, rows))
        own.room = getattr(own, "room", None)
        if own.room is None:
            own.room = np.empty(height * problem.m, problem.dtype)
        outputs, hidden = ops.attend(
            Q,
            side.K_T,
            side.V,
            allowed=allowed,
            bias=bias,
            fill=problem.mask_fill,
            softcap=problem.softcap,
            longest_key=side.longest_key,
            room=own.room,
        )
        if problem.empty_rows == "nan":
            outputs[hidden] = np.nan
        put(rows, outputs)
        empty[rows] = hidden

    _each(pool, block, range(0, problem.n, height))


def _height(problem: Problem) -> int:
    """Rows of a block: half a million scores, which stay near the core that works on them."""
    return max(16, min(512, (1 << 19) // problem.m))


def _each(pool: Executor | None, job: Callable[[int], Any], starts: Iterable[int]) -> list[Any]:
    """The job for each start, side by side where there are workers."""
    return list(pool.map(job, starts) if pool else map(job, starts))


def _mask_rows(problem: Problem, rows: slice) -> tuple[Array | None, Array | None]:
    return problem.mask.rows(rows.start, rows.stop) if problem.mask is not None else (None, None)


def _of_head(array: Array | None, problem: Problem, entry: tuple[int, ...], head: int) -> Array | None:
    """One batch entry's and head's part of what broadcasts to (batch.., h, rows, m)."""
    if array is None:
        return None
    lead = (*problem.batch, problem.num_heads)
    part: Array = np.broadcast_to(array, (*lead, *np.atleast_2d(array).shape[-2:]))[(*entry, head)]
    return part


def _rows(problem: Problem, role: str, entry: tuple[int, ...], head: int, rows: slice) -> Array:
    """Some rows of one head's Q, K or V, (rows, width), without those of the others."""
    if role in problem.given:
        given: Array = _entry(problem.given[role], entry, 3)[head][rows]
        return given
    source, weight, bias = (getattr(problem, name) for name in projection_names(problem, role))
    heads = problem.num_heads if role == "Q" else problem.num_kv_heads
    width = weight.shape[1] // heads
    columns = slice(head * width, (head + 1) * width)
    return ops.project(_entry(source, entry, 2)[rows], weight[:, columns], None if bias is None else bias[columns])


def _side(problem: Problem, entry: tuple[int, ...], group: int, pool: Executor | None) -> Side:
    K, V = (_keys_or_values(problem, role, entry, group, pool) for role in ("K", "V"))
    longest = float(np.sqrt(np.einsum("ij,ij->i", K, K).max()))
    return Side(np.ascontiguousarray(K.T), np.concatenate([V, np.ones((len(V), 1), V.dtype)], axis=1), longest)


def _keys_or_values(problem: Problem, role: str, entry: tuple[int, ...], head: int, pool: Executor | None) -> Array:
    """One head's K or V, (m, width), the cached rows before it and the extra ones after it."""
    own = problem.m - problem.past - problem.extra
    starts = range(0, own, 1 + own // 4)
    blocks = _each(pool, lambda at: _rows(problem, role, entry, head, slice(at, min(at + starts.step, own))), starts)
    past, extra = (problem.parts.get(f"{part}_{role}") for part in ("past", "extra"))
    before, after = ([] if part is None else [_entry(part, entry, 3)[head]] for part in (past, extra))
    return np.concatenate([*before, *blocks, *after])


def _entry(array: Array, entry: tuple[int, ...], own: int) -> Array:
    """One batch entry of an array whose last ``own`` axes are its own; leading axes of 1, or none, serve all."""
    lead = array.shape[: array.ndim - own]
    index = tuple(i if size > 1 else 0 for i, size in zip(entry[len(entry) - len(lead) :], lead, strict=True))
    part: Array = array[index]
    return part


@contextmanager
def _workers() -> Iterator[Executor | None]:
    """Threads that take a block each, while every matrix product keeps to its own thread.

    Needs threadpoolctl (extra ``fast``) to tell the BLAS library so; without it the blocks go one after the other,
    and each product uses all cores.
    """
    import os

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        cores = 1
    if cores == 1:
        yield None
        return
    from concurrent.futures import ThreadPoolExecutor

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(cores) as pool:
        yield pool
