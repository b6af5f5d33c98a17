"""The mistaken chains of a problem, made once, and those of them that come near an answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

from attncli.checking.chains import Key, Values
from attncli.checking.mistakes import ANYWHERE, MISTAKES, Mistake, Variant
from attncli.checking.mistakes.base import Changes
from attncli.checking.precision import HIDDEN, Answer

if TYPE_CHECKING:
    from attncli.maths.ops import Array

MANY = 200_000
"""Numbers of a problem's chain beyond which mistaken chains are made anew for each sheet, and pairs are not tried."""

FEW_WAYS = ("stage_copied", "signs_dropped", "transposed")
"""Of the mistakes that may happen anywhere, those with few ways, which are tried in large problems too."""

CHANCE = 0.01
"""How likely any pair of mistakes may be to meet a sheet's numbers by chance, for pairs to be named at all."""


@dataclass(eq=False)
class Candidate:
    """One or two ways of going wrong, and the chain that follows."""

    parts: tuple[tuple[Mistake, Variant], ...]
    values: Values = field(default_factory=dict, repr=False)
    free: frozenset[str] = frozenset()
    """Stages that are taken as they are: a slip, which explains itself."""

    @property
    def changes(self) -> Changes:
        return {stage: wrong for _, variant in self.parts for stage, wrong in variant.changes.items()}

    @property
    def silent(self) -> frozenset[str]:
        return frozenset(stage for _, variant in self.parts if variant.shown_only for stage in variant.changes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(mistake.name for mistake, _ in self.parts)

    def __add__(self, other: Candidate) -> Candidate:
        return Candidate(self.parts + other.parts, free=self.free | other.free)


class Catalogue:
    """The mistaken chains of one problem, made when they are first needed."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.size = sum(array.size for array in key.right.values())
        self._table: list[Candidate] | None = None
        self._near: dict[str, list[Candidate]] = {}
        self._stacks: dict[object, list[tuple[list[Candidate], Array]]] = {}
        self._pairs: dict[tuple[str, frozenset[str]], list[Candidate]] = {}

    def table(self) -> list[Candidate]:
        """Every way of every mistake that has its own stage, with the chain that it leads to."""
        if self._table is None:
            found = [
                Candidate(((mistake, variant),))
                for mistake in MISTAKES.values()
                for variant in mistake.ways(self.key.problem, self.key.right)
            ]
            self._table = [candidate for candidate in found if self._make(candidate)]
        return self._table

    def anywhere(self, stage: str) -> list[Candidate]:
        """The ways of the mistakes that may happen at any stage, at this one."""
        if stage not in self._near:
            found = [
                Candidate(((mistake, variant),))
                for mistake in MISTAKES.values()
                if mistake.stage == ANYWHERE
                if mistake.name in FEW_WAYS or self.size < 100_000
                for variant in mistake.ways(self.key.problem, self.key.right, stage)
            ]
            self._near[stage] = [candidate for candidate in found if self._make(candidate)]
        return self._near[stage]

    def _make(self, candidate: Candidate) -> bool:
        """Make the chain of a candidate; False where the mistake changes nothing here."""
        changes, right = candidate.changes, self.key.right
        if not all(stage in right for stage in changes):
            return False
        if self.size > MANY:
            return True
        values = self.key.walk(changes, candidate.silent)
        candidate.values = {name: array for name, array in values.items() if not self._same(array, right[name])}
        return bool(candidate.values) or len(values) < len(right)

    def _same(self, array: Array, right: Array) -> bool:
        if array is right:
            return True
        if array.shape != right.shape:
            return False
        scale = np.abs(right[np.isfinite(right)]).max(initial=0.0)
        with np.errstate(invalid="ignore"):
            return bool(((np.abs(array - right) <= self.key.eps * scale) | (array == right)).all())

    def chain(self, candidate: Candidate) -> Values:
        """The stages of a candidate that differ from the right ones, or all."""
        if candidate.values and self.size <= MANY:
            return candidate.values
        return self.key.walk(candidate.changes, candidate.silent)

    def near(self, stage: str, hidden: frozenset[str], answer: Answer) -> list[Candidate]:
        """Those that come near an answer at one stage: all that may explain it, and few others.

        ``hidden``: the stages between the nearest ones of the sheet and this one, where a large problem is searched.
        """
        candidates = self.table() + self.anywhere(stage)
        if self.size > MANY:
            candidates = [candidate for candidate in candidates if hidden & set(candidate.changes)]
            return [candidate for candidate in candidates if self._comes_near(candidate, stage, answer)]
        return self._near_of((stage,), stage, candidates, answer)

    def _comes_near(self, candidate: Candidate, stage: str, answer: Answer) -> bool:
        array = self.key.walk(candidate.changes, candidate.silent, until=stage).get(stage)
        if array is None or lean(array.shape) != lean(answer.value.shape):
            return False
        return bool(is_near(answer, array.reshape(1, *answer.value.shape)).all())

    def near_from(self, stage: str, shown: str, answer: Answer) -> list[Candidate]:
        """What may happen anywhere, at one stage, and comes near an answer at a later one."""
        if self.size > MANY:
            return []
        candidates = [c for c in self.anywhere(stage) if c.parts[0][0].name != "rounded_on_the_way"]
        if len(candidates) * _chance(answer, self.key.right[shown]) > CHANCE:
            return []
        return self._near_of((stage, shown), shown, candidates, answer)

    def _near_of(self, name: object, stage: str, candidates: list[Candidate], answer: Answer) -> list[Candidate]:
        if name not in self._stacks:
            groups: dict[tuple[int, ...], list[Candidate]] = {}
            for candidate in candidates:
                if stage in candidate.values:
                    groups.setdefault(lean(candidate.values[stage].shape), []).append(candidate)
            self._stacks[name] = [
                (group, np.stack([c.values[stage].reshape(shape) for c in group])) for shape, group in groups.items()
            ]
        near = []
        for group, stack in self._stacks[name]:
            if stack.shape[1:] == lean(answer.value.shape):
                near_ones = is_near(answer, stack.reshape(len(stack), *answer.value.shape))
                near += [group[i] for i in np.flatnonzero(near_ones)]
        return near

    def pairs_near(self, stage: str, hidden: frozenset[str], answer: Answer) -> list[Candidate]:
        """Pairs of mistakes, both made between the nearest stages of the sheet and this one, that come near it."""
        if self.size > MANY:
            return []
        name = (stage, hidden)
        if name not in self._pairs:
            self._pairs[name] = list(self._make_pairs(stage, hidden))
        pairs = self._pairs[name]
        if not pairs or len(pairs) * _chance(answer, self.key.right[stage]) > CHANCE:
            return []
        return self._near_of(name, stage, pairs, answer)

    def _make_joint(self, stage: str) -> Iterable[Candidate]:
        """Pairs of mistakes at this one stage: one made around the wrong formula of the other."""
        ways = [c for c in self.table() if list(c.changes) == [stage] and not c.silent]
        for outer, inner in product(ways, ways):
            mistake, variant = outer.parts[0]
            if variant.around is not None and inner.parts[0][1].around is None:
                wrong = variant.around(inner.changes[stage])
                pair = Candidate((*inner.parts, (mistake, replace(variant, changes={stage: wrong}))))
                if self._make(pair) and self._is_new(pair, outer, inner, stage):
                    yield pair

    def _is_new(self, pair: Candidate, one: Candidate, other: Candidate, stage: str) -> bool:
        """Whether two mistakes give a stage that neither gives alone."""
        alone = [single.values[stage] for single in (one, other) if stage in single.values]
        return stage in pair.values and not any(self._same(pair.values[stage], array) for array in alone)

    def _make_pairs(self, stage: str, hidden: frozenset[str]) -> Iterable[Candidate]:
        for joint in sorted(hidden, key=self.key.order.index):
            yield from (pair for pair in self._make_joint(joint) if stage in pair.values)
        ways = [c for c in self.table() if not c.silent and set(c.changes) <= hidden and stage in c.values]
        if self.size * len(ways) ** 2 / 2 > 200 * MANY:
            return
        for one, other in combinations(ways, 2):
            if one.names != other.names and not set(one.changes) & set(other.changes):
                pair = one + other
                values = self.key.walk(pair.changes, until=stage)
                alone = (one.values[stage], other.values[stage])
                if stage in values and not any(self._same(values[stage], array) for array in alone):
                    pair.values = {stage: values[stage]}
                    yield pair


def lean(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without axes of size 1 in front of the matrix."""
    return tuple(size for size in shape[:-2] if size != 1) + shape[-2:]


def is_near(answer: Answer, stack: Array) -> Array:
    """For each of a stack of candidates, whether all judged entries lie in its neighbourhood."""
    with np.errstate(invalid="ignore"):
        room = 0.05 * answer.largest + 5 * np.max(answer.unit, initial=0.0)
        near = (np.abs(stack - answer.value) <= room) | (stack == answer.value) | ~answer.judged
        near |= np.isneginf(stack) & (answer.value <= HIDDEN) | np.isnan(stack) & np.isnan(answer.value)
    return np.asarray(near.reshape(len(stack), -1).all(axis=1))


def _chance(answer: Answer, right: Array) -> float:
    """How likely numbers of this kind are to agree with the sheet's wrong entries without any reason."""
    differs = answer.judged & np.isfinite(answer.value)
    if answer.value.shape == right.shape:
        differs &= ~answer.agrees(right)
    finite = np.concatenate([right[np.isfinite(right)].ravel(), answer.value[np.isfinite(answer.value)].ravel()])
    spread = float(np.ptp(finite)) if finite.size else 0.0
    share = 1.5 * max(float(np.median(answer.unit)), 1e-9) / max(spread, 1e-300)
    return float(min(1.0, share) ** int(differs.sum()))
