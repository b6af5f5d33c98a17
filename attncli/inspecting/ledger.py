"""The ledger of a problem: its sizes and where each comes from, the shape of everything, parameters, work, memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeVar

from attncli.model.keys import KEYS
from attncli.model.problem import WEIGHTS
from attncli.model.sizes import axes_of
from attncli.stages.table import STAGES, Stage

if TYPE_CHECKING:
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem

T = TypeVar("T")

PARAMETERS = (*WEIGHTS, "W_a", "v", "b", "b_Q", "b_K", "b_V", "b_O")
"""The keys that a model learns; ``extra_K`` and ``extra_V`` join them where they stand for learned keys."""

_BIASES = ("b", "b_Q", "b_K", "b_V", "b_O")

_MEANINGS = {
    "batch": "batch entries", "n": "queries", "m": "keys", "d_model": "width of the inputs",
    "d_memory": "width of the memory",
    "d_q": "width of the queries", "d_k": "width of the keys", "d_v": "width of the values",
    "d_a": "width of the additive score", "d_out": "width of the output", "h": "heads", "g": "key/value heads",
    "p": "cached keys", "e": "extra keys",
}  # fmt: skip


_HEADS_SAID = {"heads": "the list of heads", "num_heads": "num_heads"}


@dataclass(frozen=True)
class Size:
    """A size: its name, its value, what it counts, and what it was read off: "Z's rows", "num_heads"."""

    name: str
    value: int
    meaning: str
    source: str


@dataclass(frozen=True)
class Entry:
    """A line of the shapes ledger: an input or a stage, as the layout shows it.

    ``axes`` names each axis of ``shape``, batch axes first; ``formula`` is "given" where nothing computes it.
    """

    name: str
    symbol: str
    formula: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    is_input: bool = False


@dataclass(frozen=True)
class Parameter:
    """A weight or bias: how many numbers it holds, and, where it was given as a product, how many that has in full.

    ``count`` counts what was given: the factors of a low-rank form. ``factors``: their shapes, else empty.
    """

    name: str
    shape: tuple[int, ...]
    count: int
    full: int
    factors: tuple[tuple[int, ...], ...] = ()
    is_bias: bool = False


@dataclass(frozen=True)
class Parameters:
    """All that a layer learns: ``weights`` without biases, ``total`` with them, ``full`` with products written out."""

    rows: tuple[Parameter, ...]
    weights: int
    biases: int
    total: int
    full: int


@dataclass(frozen=True)
class Cost:
    """What a stage takes: the multiply-adds of its matrix products, these as sizes, and the bytes of its numbers."""

    name: str
    multiply_adds: int
    product: str
    bytes: int


@dataclass(frozen=True)
class Cache:
    """What keys and values take when they are kept, in bytes; ``ungrouped``: with a key/value head a query head."""

    bytes: int
    bytes_per_token: int
    ungrouped: int


# Sizes


def sizes(problem: Problem) -> tuple[Size, ...]:
    """The sizes that a problem has, in a fixed order, each with the matrix that says so."""
    p = problem
    votes = _first_votes(p)
    self_attention = p.m > 0 and "m" not in votes and "n" in votes
    names = [name for name in _MEANINGS if name in votes or (name == "m" and self_attention)]
    if p.memory is None and "d_memory" in names:
        names.remove("d_memory")
    if p.d_out == p.d_model and "d_out" in names:
        names.remove("d_out")
    rows = [_size(name, *_said(p, votes["n" if name == "m" and self_attention else name], name)) for name in names]
    if p.num_heads > 1 or p.heads_were_given:
        by = next((said for name, said in _HEADS_SAID.items() if name in p.keys), "the head axis")
        rows.append(_size("h", p.num_heads, by))
    if p.num_kv_heads != p.num_heads:
        rows.append(_size("g", p.num_kv_heads, "num_kv_heads"))
    if p.batch:
        axes = "the leading axis" if len(p.batch) == 1 else "the leading axes, " + " × ".join(map(str, p.batch))
        rows.append(_size("batch", prod(p.batch), axes))
    return tuple(rows)


def _size(name: str, value: int, source: str) -> Size:
    return Size(name, value, _MEANINGS[name], source)


def _first_votes(problem: Problem) -> dict[str, tuple[str, int, int]]:
    """For each size the first matrix that says what it is: its name, the axis from the end, the heads side by side."""
    found: dict[str, tuple[str, int, int]] = {}
    for name, axes in axes_of(problem).items():
        if name in problem.arrays:
            for i, axis in enumerate(axes):
                found.setdefault(axis.size, (name, i - len(axes), axis.heads))
    return found


def _said(problem: Problem, vote: tuple[str, int, int], size: str) -> tuple[int, str]:
    """A size's value, and where it comes from: "Z's rows", "W_Q's columns ÷ 2 heads"."""
    name, axis, heads = vote
    value = problem.arrays[name].shape[axis] // heads
    word = "rows" if (axis == -2) != problem.stored_transposed(name) else "columns"
    whose = f"{name}'" if name.endswith("s") else f"{name}'s"
    source = f"{whose} {'numbers' if problem.arrays[name].ndim == 1 else word}"
    source += f" / {heads} heads" if heads > 1 else ""
    if size == "m":
        for number, kind in ((problem.past, "cached"), (problem.extra, "extra")):
            source += f" + {number} {kind}" if number else ""
        value += problem.past + problem.extra
    return value, source


# Shapes


def shapes(problem: Problem, names: Sequence[str], arrays: Mapping[str, Array] | None = None) -> tuple[Entry, ...]:
    """The ledger: what is given, then the stages named. ``arrays``: stages in rows, whose real shapes are taken."""
    return (*_inputs(problem), *(_stage_entry(problem, STAGES[name], arrays or {}) for name in names))


def _inputs(problem: Problem) -> Iterator[Entry]:
    for name, key in KEYS.items():
        if name not in problem.arrays or name in STAGES:
            continue
        shape = problem.parts[name].shape if name in problem.parts else problem.arrays[name].shape
        axes = _axes_in_words(problem, name, key.shape)
        if name in problem.parts:
            axes = (
                "h" if problem.num_kv_heads == problem.num_heads else "g",
                "p" if name.startswith("past") else "e",
                axes[-1].removeprefix("g·").removeprefix("h·"),
            )
        axes = (*("batch",) * (len(shape) - len(axes)), *axes)
        if problem.stored_transposed(name) and len(shape) > 1:
            axes, shape = _swapped(axes), _swapped(shape)
        yield Entry(name, name, "given", axes, shape, is_input=True)


def _axes_in_words(problem: Problem, name: str, shape: str) -> tuple[str, ...]:
    """The axes of a key, from the table of keys, with the names that this problem's sizes have."""
    axes = [axis for axis in shape.strip("()").split(", ") if axis != "batch.."]
    if problem.memory is None and name in ("W_K", "W_V"):
        axes[0] = "d_model"
    if problem.score in ("general", "additive") and name in ("W_Q", "b_Q"):
        axes[-1] = "h·d_q"
    if problem.num_kv_heads == problem.num_heads:
        axes = [axis.replace("g·", "h·") for axis in axes]
    return tuple(axis.replace("h·", "") if problem.num_heads == 1 else axis for axis in axes)


def _stage_entry(problem: Problem, stage: Stage, arrays: Mapping[str, Array]) -> Entry:
    shape = arrays[stage.name].shape if stage.name in arrays else stage.shape(problem)
    axes = _row_axes(problem, stage, len(shape))
    if problem.columns:
        axes, shape = _swapped(axes), _swapped(shape)
    return Entry(stage.name, stage.symbol_for(problem), stage.formula_for(problem), axes, tuple(shape))


def _row_axes(problem: Problem, stage: Stage, count: int) -> tuple[str, ...]:
    """The names of a stage's ``count`` axes in the row convention, as this problem's sizes are called."""
    narrow = problem.score not in ("general", "additive")
    axes = tuple("d_k" if axis == "d_q" and narrow else axis for axis in stage.axes)
    if problem.num_kv_heads == problem.num_heads:
        axes = tuple("h" if axis == "g" else axis for axis in axes)
    if problem.num_heads == 1:
        axes = tuple(axis.replace("h·", "") for axis in axes)
    if problem.d_model in (None, problem.d_out):
        axes = tuple("d_model" if axis == "d_out" else axis for axis in axes)
    return (*("batch",) * (count - len(axes)), *axes)


def _swapped(axes: tuple[T, ...]) -> tuple[T, ...]:
    return (*axes[:-2], *axes[-2:][::-1])


# Parameters


def parameters(problem: Problem) -> Parameters:
    """What the layer learns, as it was given and in full (a low-rank form counts its factors' numbers)."""
    names = [*PARAMETERS, *(name for name in ("extra_K", "extra_V") if name in problem.arrays)]
    rows = tuple(row for name in names if name in problem.arrays for row in _parameter(problem, name))
    biases = sum(row.count for row in rows if row.is_bias)
    total = sum(row.count for row in rows)
    return Parameters(rows, total - biases, biases, total, sum(row.full for row in rows))


def _parameter(problem: Problem, name: str) -> Iterator[Parameter]:
    """One line a key; one a head where a head's own matrix is a product."""
    shape = _swapped(problem.arrays[name].shape) if problem.stored_transposed(name) else problem.arrays[name].shape
    by_head = {path: value for path, value in problem.factors.items() if path.endswith(f".{name}")}
    if not by_head:
        yield _one_parameter(name, shape, problem.factors.get(name), name in _BIASES)
        return
    for head in range(problem.num_heads):
        block = problem.head_block(name, head).shape
        path = f"heads.{head + 1}.{name}"
        shape = _swapped(block) if problem.stored_transposed(name) else block
        yield _one_parameter(f"{name}, head {head + 1}", shape, by_head.get(path), False)


def _one_parameter(
    name: str, shape: tuple[int, ...], factors: Sequence[Sequence[int]] | None, is_bias: bool
) -> Parameter:
    full = prod(shape)
    if not factors:
        return Parameter(name, shape, full, full, (), is_bias)
    parts = tuple(tuple(int(size) for size in factor) for factor in factors)
    return Parameter(name, shape, sum(map(prod, parts)), full, parts, is_bias)


# Work and memory


def costs(problem: Problem, names: Sequence[str], arrays: Mapping[str, Array] | None = None) -> tuple[Cost, ...]:
    """What each of the stages takes. Masked cells count like the others; a given stage takes no work."""
    rows = []
    for name in names:
        shape = arrays[name].shape if arrays and name in arrays else STAGES[name].shape(problem)
        stage = STAGES[name]
        axes = _row_axes(problem, stage, len(shape))
        terms = [] if name in problem.given else stage.right.work(problem, shape, axes)
        work = sum(prod(numbers) for numbers, _ in terms)
        product = " + ".join("·".join(names) for _, names in terms)
        product = product if problem.num_heads > 1 else product.replace("h·", "")
        rows.append(Cost(name, work, product, prod(shape) * problem.dtype.itemsize))
    return tuple(rows)


def cache(problem: Problem) -> Cache | None:
    """What K and V take when they are kept, as a decoder does; None where there are no keys or values."""
    p = problem
    if p.d_k is None or p.d_v is None:
        return None
    batch = prod(p.batch) * p.dtype.itemsize
    per_token = batch * p.num_kv_heads * (p.d_k + p.d_v)
    return Cache(per_token * p.m, per_token, batch * p.num_heads * (p.d_k + p.d_v) * p.m)
