"""What a problem is made of: what is given beside what it would be computed from, what is missing, what is idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from attncli.language.errors import AttncliError
from attncli.model.sizes import SCORE_LIKE, STARTS, source_of
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.model.problem import Problem


def _flat(needs: Sequence[str | tuple[str, ...]]) -> Iterator[str]:
    for need in needs:
        yield from (need,) if isinstance(need, str) else need


_REPLACES = {name: (*_flat(stage.needs), *stage.reads) for name, stage in STAGES.items() if stage.start}
"""What has nothing to do once a stage is given."""

_BESIDE = {"weights": ("mask",), "outputs": ("mask", "weights", "V")}
"""What may stand beside a stage of somebody else's, to hold it to: a mask beside weights, V beside outputs."""

_SCORE_MATRICES = {"general": ("W_a",), "additive": ("W_1", "W_2", "v")}


def replaced_by(stage: str) -> list[str]:
    """Every key that has nothing to do when a stage is given, also what only those that it replaces would use."""
    idle: list[str] = []
    for name in _REPLACES.get(stage, ()):
        idle += [name, *replaced_by(name)]
    return idle


def computed(problem: Problem) -> list[str]:
    """Which of Q, K and V the problem has to make itself."""
    there = problem.arrays.__contains__
    replaced = {name for stage in STARTS if there(stage) for name in replaced_by(stage)}
    wanted = [stage for stage in ("Q", "K", "V") if not there(stage) and stage not in replaced]
    alone = not there("W_V") and (replaced & {"Q", "K"} or (there("Q") and there("K")))
    return [stage for stage in wanted if not (stage == "V" and alone)]  # up to the weights, no values are needed


def superfluous(problem: Problem) -> tuple[set[str], list[AttncliError]]:
    """The keys that have nothing to do because a stage is given in their place, and the error that says so."""
    there = {*problem.keys, *problem.arrays}
    idle: list[str] = []
    causes: list[str] = []
    for stage in reversed(STARTS):
        if stage in there and stage not in idle:
            beside = _BESIDE.get(stage, ()) if problem.foreign else ()
            found = [name for name in replaced_by(stage) if name in there and name not in (*idle, *beside)]
            idle += found
            causes += [stage] if found else []
    given = [stage for stage in STARTS if stage in there and stage not in idle]
    sources = {source_of(problem, stage) for stage in computed(problem)}
    unused = [name for name in ("Z", "memory", "memory_V") if name in there and name not in (*sources, *idle)]
    if unused:
        causes += given
    idle = [name for name in there if name in idle or name in unused]
    idle.sort(key=[*problem.keys, *problem.arrays].index)
    if not idle or not causes:
        return set(idle), []
    causes = [stage for stage in STARTS if stage in causes]
    what = f"{_and(causes)} {_be(causes)} given, so {_and(idle)} {_have(idle)} nothing to do"
    hint = f"Drop {_and(idle)}, or drop {_and(causes)}, which {_be(causes)} then computed."
    return set(idle), [AttncliError(what, hint=hint, key=idle[0])]


def missing(problem: Problem) -> Iterator[AttncliError]:
    """What isn't there although something needs it."""
    if not any(name in problem.arrays for name in (*STARTS, "Z", "memory", "W_Q", "W_K", "W_V")):
        yield AttncliError("there is nothing to compute", hint="Give Z with W_Q, W_K and W_V, or Q, K and V.")
        return
    yield from _unmade(problem)
    yield from _of_scores(problem)
    yield from _pairs(problem)


def _unmade(problem: Problem) -> Iterator[AttncliError]:
    """Q, K and V that can't be made: one error for all that lack their weights, one for those that lack an input."""
    there = problem.arrays.__contains__
    made = computed(problem)
    bare = [stage for stage in made if not there(f"W_{stage}")]
    if bare:
        weights = [f"W_{stage}" for stage in bare]
        themselves = "itself" if len(bare) == 1 else "themselves"
        yield AttncliError(
            f"{_and(weights)} {_be(weights)} missing, so {_and(bare)} can't be computed",
            hint=f"Give {_and(weights)}, or {_and(bare)} {themselves}.",
        )
    dry = [stage for stage in made if there(f"W_{stage}") and not there(source_of(problem, stage))]
    if dry:
        source = "Z" if "Q" in dry else "memory (or Z)"
        weights = [f"W_{stage}" for stage in dry]
        what = f"{source} is missing, so {_and(dry)} can't be computed from {_and(weights)}"
        yield AttncliError(what, hint=f"Give {source}.", key=weights[0])


def _of_scores(problem: Problem) -> Iterator[AttncliError]:
    """The score function's own matrices: all of those that it needs, and none of another's."""
    there = problem.arrays.__contains__
    started = any(map(there, (*SCORE_LIKE, "outputs", "concat")))
    lacking = [name for name in _SCORE_MATRICES.get(problem.score, ()) if not there(name)]
    if lacking and not started:
        yield AttncliError(f"score: {problem.score} needs {_and(lacking)}", hint=f"Give {_and(lacking)}.", key="score")
    for score, names in (("general", ("W_a",)), ("additive", ("W_1", "W_2", "v", "b"))):
        strays = [name for name in names if there(name) and problem.score != score]
        if strays and not started:
            belong = "belongs" if len(strays) == 1 else "belong"
            yield AttncliError(f"{_and(strays)} {belong} to score: {score}", hint=f"Add score: {score}.", key=strays[0])
    if there("scores") and problem.score == "scaled_dot" and problem.scale is None:
        hint = "Give scale (1/√d_k, e.g. scale: 1/sqrt(64)), or score: dot where they are not scaled."
        yield AttncliError("scores are given without Q and K, so √d_k is not known", hint=hint, key="scores")


def _pairs(problem: Problem) -> Iterator[AttncliError]:
    """Keys that come in pairs."""
    there = problem.arrays.__contains__
    for part in ("past", "extra"):
        for one, other in ((f"{part}_K", f"{part}_V"), (f"{part}_V", f"{part}_K")):
            if there(one) and not there(other):
                yield AttncliError(f"{one} comes with {other}, and {other} is missing", hint=f"Give {other}.", key=one)
    if there("b_O") and not there("W_O"):
        yield AttncliError(
            "b_O is added to the product with W_O, and W_O is missing", hint="Give W_O, or drop b_O.", key="b_O"
        )
    if problem.mask_fill is not None and "mask" not in problem.keys:
        hint = "Give a mask, or drop mask_fill."
        yield AttncliError("mask_fill is put at hidden scores, and there is no mask", hint=hint, key="mask_fill")
    with_heads = [name for name in problem.arrays if name in STARTS or name.startswith(("past_", "extra_"))]
    if problem.per_head and not with_heads:
        what = "per_head says how Q, K and V that are given are laid out, and none is given"
        yield AttncliError(what, hint="Drop per_head; num_heads is the number of heads.", key="per_head")


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _be(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
