"""inspect(problem): what can be said of an attention problem besides its numbers.

Shapes, parameters, work and memory; the mask in words; how the numbers of each stage spread; where each head looks;
what must hold of the weights, and what a person would want to be warned of. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.engine.compute import compute
from attncli.engine.memory import refuse_beyond_memory
from attncli.inspecting import invariants, ledger, resemblance, spread
from attncli.language.errors import AttncliError
from attncli.model.mask_words import in_words
from attncli.stages.table import STAGES, is_present
from attncli.stages.wanted import wanted_stages

if TYPE_CHECKING:
    from attncli.engine.blocks import Progress
    from attncli.engine.compute import Result
    from attncli.maths.mask import Mask
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem

UNIFORM = 0.995
"""A head counts as nearly uniform where its entropy reaches this share of what its queries could have at most."""

MOST_SENTENCES, MOST_LABELS = 12, 24
"""So many sentences on a mask, and so many labels in one, unless all are asked for."""


@dataclass(frozen=True)
class Scale:
    """The number that multiplies the scores, where it comes from, and what 1/√d_k would be; None: not scaled."""

    value: float
    source: str
    usual: float | None


@dataclass(frozen=True)
class MaskWords:
    """A mask: as it was asked for, who may attend to whom, and how many such sentences were left out."""

    parts: tuple[str, ...]
    sentences: tuple[str, ...]
    left_out: int = 0
    adds: str | None = None


@dataclass(frozen=True)
class ScoreVariance:
    """The variance of the scores before and after the scale. Independent q, k ~ N(0, 1) would have d_k and 1."""

    before: float | None
    after: float | None
    d_k: int | None


@dataclass(frozen=True)
class Warned:
    """A warning: a short name, and a sentence."""

    name: str
    sentence: str


@dataclass(frozen=True)
class Summary:
    """What `inspect` shows, as data; ``as_data`` makes it plain lists and mappings, fit for JSON.

    ``heads`` has one Look a head, ``statistics`` one Spread a stage, and ``head_statistics`` one a stage and head.
    """

    title: str | None
    scale: Scale | None
    dtype: str
    layout: str
    sizes: tuple[ledger.Size, ...]
    shapes: tuple[ledger.Entry, ...]
    parameters: ledger.Parameters
    costs: tuple[ledger.Cost, ...]
    multiply_adds: int
    bytes: int
    cache: ledger.Cache | None
    mask: MaskWords | None
    statistics: tuple[spread.Spread, ...]
    head_statistics: tuple[spread.Spread, ...]
    score_variance: ScoreVariance | None
    heads: tuple[spread.Look, ...]
    invariants: tuple[invariants.Invariant, ...]
    looks_like: tuple[str, ...]
    warnings: tuple[Warned, ...]
    notes: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """Plain data: mappings, lists, text, numbers; what is not finite is "inf", "-inf" or "nan"."""
        data: dict[str, Any] = _plain(self)
        return data

    def as_json(self, digits: int | None = None) -> str:
        """The same as JSON, its numbers rounded to so many decimals where ``digits`` is given."""
        from json import dumps

        return dumps(_rounded(self.as_data(), digits), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value


def _rounded(value: Any, digits: int | None) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one, digits) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one, digits) for one in value]
    return round(value, digits) if isinstance(value, float) and digits is not None else value


def inspect(
    problem: Problem,
    stages: Iterable[str] | None = None,
    *,
    head: int | None = None,
    batch: Sequence[int] | None = None,
    full: bool = False,
    progress: Progress | None = None,
) -> Summary:
    """The summary of a problem: of all its stages or of those named, of all heads and batch entries or of one (from 1).

    ``full`` spells a long mask out whole. Where memory can't hold the stages, the summary has no statistics, and a
    note says so. Raises AttncliError where a stage doesn't exist, or ``compute`` refuses.

    >>> from attncli.model.problem import Problem
    >>> inspect(Problem(weights=[[0.5, 0.25]])).invariants[0].sentence
    'weights[1] sums to 0.75, not to 1 (numbers that fit bfloat16 may be off by 0.01953)'
    """
    names = wanted_stages(problem, stages)
    result, notes = _result(problem, names, progress)
    arrays = {} if result is None else {name: np.asarray(array) for name, array in result.rows.items()}
    shown = {name: _part(problem, name, array, head, batch) for name, array in arrays.items()}
    costs = ledger.costs(problem, names)
    together = tuple(spread.spread(name, array) for name, array in shown.items() if name in names)
    looks = tuple(_looks(problem, arrays, head, batch))
    held = invariants.invariants(problem, arrays)
    weights = arrays.get("weights")
    like = () if weights is None else resemblance.looks(problem, weights)
    variance = _variance(problem, together)
    return Summary(
        problem.title, _scale(problem), problem.dtype.name, problem.layout, ledger.sizes(problem),
        ledger.shapes(problem, names), ledger.parameters(problem), costs,
        sum(cost.multiply_adds for cost in costs), sum(cost.bytes for cost in costs), ledger.cache(problem),
        _mask(problem, full), together, tuple(_by_head(problem, shown, names, head)), variance, looks, held, like,
        tuple(_warnings(problem, names, together, looks, held)), notes,
    )  # fmt: skip


def _result(problem: Problem, names: Sequence[str], progress: Progress | None) -> tuple[Result | None, tuple[str, ...]]:
    """The stages that are asked for, and those that bound the outputs; or why there are none."""
    wanted = [*names, *(name for name in ("V", "weights") if "outputs" in names and is_present(problem, name))]
    try:
        refuse_beyond_memory(problem, wanted)
    except AttncliError as error:
        return None, (f"no statistics: {error.what}",)
    result = compute(problem, wanted, progress)
    return result, tuple(note for note in result.notes if not note.startswith("the mask changes nothing"))


def _part(problem: Problem, name: str, array: Array, head: int | None, batch: Sequence[int] | None) -> Array:
    """One head (of a key/value stage: the one that a query head uses) and one batch entry of a canonical array."""
    if batch is not None:
        array = array[tuple(i - 1 for i in batch)]
    if head is None or not STAGES[name].per_head:
        return array
    own = array.shape[-3]
    at = -(-head * own // problem.num_heads)
    return array[..., at - 1 : at, :, :]


def _by_head(
    problem: Problem, shown: Mapping[str, Array], names: Sequence[str], head: int | None
) -> Iterator[spread.Spread]:
    for name, array in shown.items():
        if name in names and STAGES[name].per_head:
            for r in range(array.shape[-3]):
                number = r + 1 if head is None else -(-head * problem_heads(problem, name) // problem.num_heads)
                yield spread.spread(name, array[..., r, :, :], number)


def problem_heads(problem: Problem, name: str) -> int:
    """How many matrices a per-head stage has: h, or g for keys and values."""
    return problem.num_kv_heads if STAGES[name].axes[0] == "g" else problem.num_heads


# What is in force


def _scale(problem: Problem) -> Scale | None:
    usual = None if problem.d_k is None else 1 / sqrt(problem.d_k)
    if not is_present(problem, "scaled_scores") or "scaled_scores" in problem.given:
        return None
    if problem.scale is not None:
        return Scale(float(problem.scale), "given", usual)
    return None if usual is None else Scale(usual, "1/√d_k", usual)


def _mask(problem: Problem, full: bool) -> MaskWords | None:
    mask = problem.mask
    if mask is None:
        return None
    whole = full or problem.m <= MOST_LABELS
    queries = problem.tokens or problem.n
    sentences = in_words(mask, queries, (whole and problem.memory_tokens) or problem.m)
    if len(sentences) == problem.n > 1 and _is_one_row(mask):
        sentences = ["every query" + sentences[0][sentences[0].index(" may attend") :]]
    left_out = 0
    if not full and len(sentences) > MOST_SENTENCES:
        left_out = len(sentences) - MOST_SENTENCES
        sentences = [*sentences[: MOST_SENTENCES - 2], "…", *sentences[-2:]]
    adds = None
    if mask.bias is not None and mask.bias.any():
        adds = f"adds {mask.bias.min():.4g} to {mask.bias.max():.4g} to the scores".replace("-", "−")
    return MaskWords(mask.parts, tuple(sentences), left_out, adds)


def _is_one_row(mask: Mask) -> bool:
    """Whether the mask is the same for every query, head and batch entry."""
    allowed = mask.allowed
    return allowed is not None and bool((allowed == allowed.reshape(-1, allowed.shape[-1])[0]).all())


# Statistics


def _variance(problem: Problem, statistics: Sequence[spread.Spread]) -> ScoreVariance | None:
    by_name = {one.name: one.variance for one in statistics}
    if "scores" not in by_name:
        return None
    return ScoreVariance(by_name["scores"], by_name.get("scaled_scores"), problem.d_k)


def _looks(
    problem: Problem, arrays: Mapping[str, Array], head: int | None, batch: Sequence[int] | None
) -> Iterator[spread.Look]:
    if "weights" not in arrays:
        return
    weights = arrays["weights"]
    good = invariants.distributions(problem, weights)
    allowed = invariants.allowed_keys(problem, weights.shape)
    if batch is not None:
        entry = tuple(i - 1 for i in batch)
        weights, good, allowed = weights[entry], good[entry], allowed[entry]
    at = spread.first_position(problem)
    for r in range(weights.shape[-3]):
        if head in (None, r + 1):
            own = problem.m - problem.extra
            yield spread.look(r + 1, weights[..., r, :, :], good[..., r, :], allowed[..., r, :, :], at, own)


# Warnings


def _warnings(
    problem: Problem, names: Sequence[str], statistics: Sequence[spread.Spread], looks: Sequence[spread.Look],
    held: Sequence[invariants.Invariant],
) -> Iterator[Warned]:  # fmt: skip
    for one in looks:
        yield from _about_head(problem, one, statistics)
    if problem.num_heads > 1 and problem.W_O is None and "concat" in names:
        yield Warned("no_W_O", f"{problem.num_heads} heads and no W_O: the heads are joined, not mixed")
    yield from _about_empty_rows(problem)
    yield from _about_scale(problem)
    yield from _about_infinities(problem, statistics)
    for row in ledger.parameters(problem).rows:
        if row.factors and row.count >= row.full:
            what = f"{row.name} as a product has {row.count} parameters, and in full {row.full}"
            yield Warned("no_saving", what)
    for broken in held:
        if not broken.holds:
            yield Warned(broken.name, broken.sentence)


def _about_head(problem: Problem, look: spread.Look, statistics: Sequence[spread.Spread]) -> Iterator[Warned]:
    of_head = f"head {look.head}: " if problem.num_heads > 1 else ""
    if look.choices and 2 * look.saturated >= look.choices:
        scores = next((one for one in statistics if one.name in ("scaled_scores", "scores")), None)
        unscaled = "; the scores are not scaled" if scores and not problem.is_scaled else ""
        rows = f"{look.saturated} of {look.choices} queries put more than {spread.SATURATED} on one key"
        yield Warned("saturated", f"{of_head}{rows}: the softmax is saturated{unscaled}")
    if look.of_allowed is not None and look.of_allowed > UNIFORM and 2 * look.choices > look.rows:
        share = f"the entropy is {100 * look.of_allowed:.4g} % of what it can be"
        yield Warned("uniform", f"{of_head}the weights are nearly uniform: {share}")


def _about_empty_rows(problem: Problem) -> Iterator[Warned]:
    if problem.mask is None or problem.mask.allowed is None:
        return
    empty = ~problem.mask.allowed.any(axis=-1)
    if not empty.any():
        return
    by_query = np.broadcast_to(empty, (*empty.shape[:-1], problem.n)).reshape(-1, problem.n)
    rows = [int(i) + 1 for i in np.flatnonzero(by_query.any(axis=0))]
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    who = f"{'query' if len(rows) == 1 else 'queries'} {', '.join(map(str, rows[:5]))}{more} may attend to nothing"
    some = "" if by_query[:, [row - 1 for row in rows]].all() else " (in some heads or batch entries)"
    put = "NaN" if problem.empty_rows == "nan" else "zeros"
    if problem.mask_fill is not None and _is_finite(problem, problem.mask_fill):
        put = f"shared out over hidden keys (mask_fill {problem.mask_fill:g})"
    yield Warned("empty_rows", f"{who}{some}: {'its' if len(rows) == 1 else 'their'} weights are {put}")


def _is_finite(problem: Problem, number: float) -> bool:
    """Whether a number is one in the problem's dtype: −1e9 is −∞ in float16."""
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.asarray(number, dtype=problem.dtype)))


def _about_scale(problem: Problem) -> Iterator[Warned]:
    """A given scale that is some other well-known number than 1/√d_k."""
    if problem.scale is None or not problem.d_k:
        return
    scale, d_k = abs(float(problem.scale)), problem.d_k
    others = {"1/d_k": 1 / d_k, "√d_k": sqrt(d_k)}
    if problem.d_model:
        others |= {"1/√d_model": 1 / sqrt(problem.d_model), "1/d_model": 1 / problem.d_model}
    if problem.d_v:
        others["1/√d_v"] = 1 / sqrt(problem.d_v)
    if abs(scale - 1 / sqrt(d_k)) <= 1e-3 * scale:
        return
    named = [name for name, value in others.items() if abs(scale - value) <= 1e-6 * value and scale != 1]
    if named:
        usual = f"1/√d_k is {1 / sqrt(d_k):.4g}"
        yield Warned("scale", f"scale {scale:.4g} is {' and '.join(named)}; {usual}")


def _about_infinities(problem: Problem, statistics: Sequence[spread.Spread]) -> Iterator[Warned]:
    """The first stage with numbers beyond the dtype, or with NaN that no empty row explains."""
    for one in statistics:
        infinite = one.plus_infinite + (one.minus_infinite if one.name in ("Q", "K", "V", "scores") else 0)
        if infinite and one.name not in problem.given:
            verb = "overflows" if infinite == 1 else "overflow"
            what = f"{one.name}: {infinite} of {_count(one)} numbers {verb} {problem.dtype.name}"
            yield Warned("overflow", what)
            return
        if one.nan and problem.empty_rows != "nan":
            verb = "is" if one.nan == 1 else "are"
            yield Warned("nan", f"{one.name}: {one.nan} of {_count(one)} numbers {verb} NaN")
            return


def _count(one: spread.Spread) -> int:
    return one.count + one.minus_infinite + one.plus_infinite + one.nan
