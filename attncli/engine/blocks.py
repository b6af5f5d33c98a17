"""The last stages by blocks of query rows, so that no n × m array is ever whole.

What is computed is exact (see `ops.attend`), in memory O(n·d) rather than O(n·m); and the scores of a block of queries
and some keys stay in the processor's cache while they are masked, raised and summed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from math import prod
from mmap import mmap
from threading import Event, local
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from attncli.maths import ops
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.maths.ops import Array, MaskOfKeys
    from attncli.stages.inputs import LayerInputs

FEW = 1 << 22
"""Up to so many scores in all, the arrays are kept whole: 32 MiB of float64."""

EACH = 1 << 14
"""Up to so many scores of each head, too: many small matrices are quicker together."""

ROWS = 512
"""Queries of a block."""

AHEAD = 16
"""Blocks that may be under way or done before the first of them is asked for."""

Progress = Callable[[float], None]
T = TypeVar("T")


class Made(NamedTuple):
    """A last stage; which rows (batch.., h, n) may attend to nothing; whether the mask hides anything at all."""

    array: Array
    empty: Array
    hides: bool


class Side(NamedTuple):
    """What the heads of a group look at: K (m, d_k), V (m, d_v), and the largest |k| (infinite: don't rely on it)."""

    K: Array
    V: Array
    longest_key: float


class Workers(Protocol):
    """What takes jobs, in order."""

    def submit(self, job: Callable[..., T], /, *args: Any) -> Future[T]: ...


def fits(problem: LayerInputs, wanted: Sequence[str]) -> bool:
    """Whether the stages that are wanted can be, and are better, made by blocks."""
    return (
        len(wanted) == 1
        and STAGES[wanted[0]].blocked
        and problem.dtype in (np.float64, np.float32)
        and problem.round is None
        and problem.score in ("scaled_dot", "dot", "general")
        and not set(problem.given) - {"Q", "K", "V"}
        and problem.n * problem.m > EACH
        and prod(problem.batch) * problem.num_heads * problem.n * problem.m > FEW
        and all(_is_finite(array) for array in (*problem.given.values(), *problem.parts.values()))
    )


def _is_finite(array: Array) -> bool:
    with np.errstate(all="ignore"):
        return bool(np.isfinite(array.sum()) or (np.isfinite(array.min()) and np.isfinite(array.max())))


def compute_last(problem: LayerInputs, name: str, progress: Progress | None = None) -> Made:
    """One of the stages after the weights.

    Its array is (batch.., h, n, d_v) for outputs, (batch.., n, h·d_v) for concat, (batch.., n, d_out) for multihead.
    """
    p, h = problem, problem.num_heads
    assert p.d_v is not None
    widths = {"outputs": p.d_v, "concat": h * p.d_v, "multihead": p.d_out or 0}
    lead = (*p.batch, h) if name == "outputs" else p.batch
    result = np.zeros((*lead, p.n, widths[name]), p.dtype)
    if name == "multihead" and p.b_O is not None:
        result += p.b_O
    empty = np.zeros((*p.batch, h, p.n), bool)
    blocks, hiding = prod(p.batch) * h * -(-p.n // ROWS), Event()
    with _workers() as workers:
        jobs = _jobs(p, name, result, empty, hiding, workers)
        for done, job in enumerate(_under_way(jobs), 1):
            job.result()
            if progress:
                progress(done / blocks)
    return Made(result, empty, hiding.is_set())


def _under_way(jobs: Iterator[Future[None]]) -> Iterator[Future[None]]:
    """The same jobs, each given out when `AHEAD` more have been handed to the workers."""
    waiting: deque[Future[None]] = deque()
    for job in jobs:
        waiting.append(job)
        if len(waiting) > AHEAD:
            yield waiting.popleft()
    yield from waiting


def _jobs(
    problem: LayerInputs, name: str, result: Array, empty: Array, hiding: Event, workers: Workers
) -> Iterator[Future[None]]:
    """A job a block of rows of a head. The keys and values of the next group are made while this one's are in use."""
    p, own = problem, local()  # each worker's memory for the scores of a block
    groups = [(entry, group) for entry in np.ndindex(p.batch) for group in range(p.num_kv_heads)]
    sides = (workers.submit(_quietly, _side, p, *group) for group in groups)
    side = next(sides)
    turns: dict[tuple[tuple[int, ...], int], Future[None]] = {}
    for entry, group in groups:
        following = next(sides, side)
        for head in _heads_of(p, group):
            put = _target(p, name, result, entry, head)
            for start in range(0, p.n, ROWS):
                rows, before = slice(start, min(start + ROWS, p.n)), turns.get((entry, start))
                job = workers.submit(
                    _quietly, _block, p, entry, head, rows, side, own, put, empty[(*entry, head)], hiding, before
                )
                turns[entry, start] = job
                yield job
        side = following


def _quietly(job: Callable[..., T], *args: Any) -> T:
    """Do a job. What overflows is seen in the result, and said there (see `compute`)."""
    with np.errstate(all="ignore"):
        return job(*args)


def _block(
    problem: LayerInputs, entry: tuple[int, ...], head: int, rows: slice, side: Future[Side], own: local,
    put: Callable[[slice, Array], None], empty: Array, hiding: Event, before: Future[None] | None,
) -> None:  # fmt: skip
    """Some query rows of one head; ``empty`` (n,) is told which may attend to nothing, ``hiding`` if a key is hidden.

    The head before it has its turn first, so that sums over heads are taken in the same order at each run.
    """
    K, V, longest_key = side.result()
    Q = _rows(problem, "Q", entry, head, rows)
    Q = Q if problem.score != "general" else Q @ problem.W_a
    Q = ops.scaled_scores(Q, d_k=problem.d_k, scale=problem.scale) if problem.is_scaled else Q
    if not hasattr(own, "room"):
        own.room = _memory((ROWS, ops.KEYS), problem.dtype).reshape(-1)
    outputs, hidden = ops.attend(
        Q, K, V, mask=_mask_of(problem, entry, head, rows, hiding), fill=problem.mask_fill, softcap=problem.softcap,
        longest_key=longest_key, room=own.room,
    )  # fmt: skip
    if problem.empty_rows == "nan":
        outputs[hidden] = np.nan
    if before is not None:
        before.result()
    put(rows, outputs)
    empty[rows] = hidden


def _heads_of(problem: LayerInputs, group: int) -> range:
    each = problem.num_heads // problem.num_kv_heads
    return range(group * each, (group + 1) * each)


def _target(
    problem: LayerInputs, name: str, result: Array, entry: tuple[int, ...], head: int
) -> Callable[[slice, Array], None]:
    """Where the rows of one head's outputs go."""
    width = problem.d_v or 0
    into = result[entry]
    if name == "outputs":
        return lambda rows, block: into[head].__setitem__(rows, block)
    columns = slice(head * width, (head + 1) * width)
    if name == "concat":
        return lambda rows, block: into.__setitem__((rows, columns), block)
    share = problem.arrays["W_O"][columns]

    def add(rows: slice, block: Array) -> None:
        for first in range(0, len(block), 64):  # some at a time: d_out may be a multiple of what a block holds
            part = block[first : first + 64] @ share
            into[rows.start + first : rows.start + first + len(part)] += part

    return add


def _mask_of(problem: LayerInputs, entry: tuple[int, ...], head: int, rows: slice, hiding: Event) -> MaskOfKeys | None:
    """The mask of one batch entry and head, for some queries, by the keys that are asked for."""
    mask = problem.mask
    if mask is None:
        return None
    lead = (*problem.batch, problem.num_heads)

    def own(array: Array | None) -> Array | None:
        if array is None:
            return None
        part: Array = np.broadcast_to(array, (*lead, *np.atleast_2d(array).shape[-2:]))[(*entry, head)]
        return part

    def of_keys(keys: slice) -> tuple[Array | None, Array | None]:
        allowed, bias = map(own, mask.part(rows, keys))
        if allowed is not None and not hiding.is_set() and not allowed.all():
            hiding.set()
        return allowed, bias

    return of_keys


def _rows(problem: LayerInputs, role: str, entry: tuple[int, ...], head: int, rows: slice = ops.EVERY) -> Array:
    """Some rows of one head's Q, K or V, (rows, width), without those of the others."""
    if role in problem.given:
        given: Array = _entry(problem.given[role], entry, 3)[head][rows]
        return given
    source, weight, bias = (problem.arrays.get(name) for name in problem.projection(role))
    assert source is not None
    assert weight is not None
    heads = problem.num_heads if role == "Q" else problem.num_kv_heads
    width = weight.shape[1] // heads
    columns = slice(head * width, (head + 1) * width)
    return ops.project(_entry(source, entry, 2)[rows], weight[:, columns], None if bias is None else bias[columns])


def _side(problem: LayerInputs, entry: tuple[int, ...], group: int) -> Side:
    """One group's K and V, the cached rows before them and the extra ones after them."""
    K, V = (_keys_or_values(problem, role, entry, group) for role in ("K", "V"))
    adds = problem.mask is not None and problem.mask.bias is not None
    longest = float(np.sqrt(np.einsum("ij,ij->i", K, K).max()))
    return Side(K, V, longest if not adds and ops.is_moderate(V) else np.inf)


def _keys_or_values(problem: LayerInputs, role: str, entry: tuple[int, ...], group: int) -> Array:
    """One group's K or V, (m, width), made some rows at a time."""
    past, extra = (_part(problem, f"{part}_{role}", entry, group) for part in ("past", "extra"))
    if role in problem.given and past is None and extra is None:
        return _rows(problem, role, entry, group)
    made = _memory((problem.m, (problem.d_k if role == "K" else problem.d_v) or 0), problem.dtype)
    own = slice(problem.past, problem.m - problem.extra)
    if past is not None:
        made[: own.start] = past
    if extra is not None:
        made[own.stop :] = extra
    for first in range(own.start, own.stop, ROWS):
        rows = slice(first - own.start, min(first + ROWS, own.stop) - own.start)
        made[own.start + rows.start : own.start + rows.stop] = _rows(problem, role, entry, group, rows)
    return made


def _part(problem: LayerInputs, name: str, entry: tuple[int, ...], group: int) -> Array | None:
    """One group's cached or extra rows; those without a head axis, or with one of 1, serve all."""
    part = problem.parts.get(name)
    if part is None or part.ndim == 2:
        return part
    heads = _entry(part, entry, 3)
    own: Array = heads[group if len(heads) > 1 else 0]
    return own


def _memory(shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
    """An array whose memory goes back to the system as soon as it is freed; malloc would keep some of it."""
    return np.ndarray(shape, dtype, mmap(-1, max(1, prod(shape) * dtype.itemsize)))


def _entry(array: Array, entry: tuple[int, ...], own: int) -> Array:
    """One batch entry of an array whose last ``own`` axes are its own; leading axes of 1, or none, serve all."""
    lead = array.shape[: array.ndim - own]
    index = tuple(i if size > 1 else 0 for i, size in zip(entry[len(entry) - len(lead) :], lead, strict=True))
    part: Array = array[index]
    return part


class _AtOnce:
    """Does each job when it is handed over."""

    def submit(self, job: Callable[..., T], /, *args: Any) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(job(*args))
        return done


@contextmanager
def _workers() -> Iterator[Workers]:
    """Threads that take a block each, while every matrix product keeps to its own thread.

    Needs threadpoolctl (extra ``fast``) to tell the BLAS library so; without it the blocks go one after the other,
    and each product uses all cores. Jobs that nobody waits for any more (Ctrl-C, an error) are dropped.
    """
    import os

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        cores = 1
    if cores == 1:
        yield _AtOnce()
        return
    with threadpool_limits(1, "blas"):
        pool = ThreadPoolExecutor(cores)
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
