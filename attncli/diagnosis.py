"""Which known mistakes give exactly a sheet's numbers: one of them, or two at once.

A mistake explains a sheet if every judged entry agrees, at the precision it was written with, with the chain in which
its formula replaces the right one, computed from the inputs or from the sheet's own stages, and if the right formulas
don't. The mistaken chains of a problem are made once, and all sheets are held against them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from attncli.chains import Key, Values
from attncli.fit import Fitted
from attncli.misread import ROLES, misreadings
from attncli.mistakes import ANYWHERE, MISTAKES, Mistake, Variant
from attncli.precision import Answer
from attncli.verdicts import CARRIED, CORRECT, TOO_COARSE, UNREADABLE, WRONG, StageVerdict

if TYPE_CHECKING:
    from attncli.ops import Array

MANY = 2_000_000
"""Numbers of a problem's chain beyond which mistaken chains are made anew for each sheet, and pairs are not tried."""

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
    def changes(self) -> dict[str, object]:
        return {stage: wrong for _, variant in self.parts for stage, wrong in variant.changes.items()}

    @property
    def silent(self) -> frozenset[str]:
        return frozenset(stage for _, variant in self.parts if variant.shown_only for stage in variant.changes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(mistake.name for mistake, _ in self.parts)

    def __add__(self, other: Candidate) -> Candidate:
        return Candidate(self.parts + other.parts, free=self.free | other.free)


@dataclass(frozen=True)
class Explanation:
    """The names of the mistakes that together give a sheet's numbers, and a sentence for each."""

    names: tuple[str, ...]
    sentences: tuple[str, ...]


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
                if mistake.name != "rounded_on_the_way" or self.size < 100_000
                for variant in mistake.ways(self.key.problem, self.key.right, stage)
            ]
            self._near[stage] = [candidate for candidate in found if self._make(candidate)]
        return self._near[stage]

    def _make(self, candidate: Candidate) -> bool:
        """Make the chain of a candidate; False where the mistake changes nothing here."""
        changes, right = candidate.changes, self.key.right
        if not all(stage in right for stage in changes):
            return False
        values = self.key.walk(changes, candidate.silent)  # type: ignore[arg-type]
        candidate.values = {name: array for name, array in values.items() if not self._same(array, right[name])}
        changed = bool(candidate.values) or len(values) < len(right)
        if self.size > MANY:
            candidate.values = {}
        return changed

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
        return self.key.walk(candidate.changes, candidate.silent)  # type: ignore[arg-type]

    def near(self, stage: str, answer: Answer) -> list[Candidate]:
        """Those that come near an answer at one stage: all that may explain it, and few others."""
        candidates = self.table() + self.anywhere(stage)
        if self.size > MANY:
            chains = ((c, self.key.walk(c.changes, c.silent, until=stage).get(stage)) for c in candidates)  # type: ignore[arg-type]
            return [c for c, array in chains if array is not None and _is_near(answer, array[None]).all()]
        return self._near_of((stage,), stage, candidates, answer)

    def near_from(self, stage: str, shown: str, answer: Answer) -> list[Candidate]:
        """What may happen anywhere, at one stage, and comes near an answer at a later one."""
        candidates = [c for c in self.anywhere(stage) if c.parts[0][0].name != "rounded_on_the_way"]
        if self.size > MANY or len(candidates) * _chance(answer, self.key.right[shown]) > CHANCE:
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
                is_near = _is_near(answer, stack.reshape(len(stack), *answer.value.shape))
                near += [group[i] for i in np.flatnonzero(is_near)]
        return near

    def pairs_near(self, stage: str, hidden: frozenset[str], answer: Answer) -> list[Candidate]:
        """Pairs of mistakes, both made between the nearest stages of the sheet and this one, that come near it."""
        name = (stage, hidden)
        if name not in self._pairs:
            self._pairs[name] = list(self._make_pairs(stage, hidden))
        pairs = self._pairs[name]
        if not pairs or len(pairs) * _chance(answer, self.key.right[stage]) > CHANCE:
            return []
        return self._near_of(name, stage, pairs, answer)

    def _make_pairs(self, stage: str, hidden: frozenset[str]) -> Iterable[Candidate]:
        ways = [c for c in self.table() if not c.silent and set(c.changes) <= hidden and stage in c.values]
        if self.size * len(ways) ** 2 / 2 > 20 * MANY:
            return
        for one, other in combinations(ways, 2):
            if one.names != other.names and not set(one.changes) & set(other.changes):
                pair = one + other
                values = self.key.walk(pair.changes, until=stage)  # type: ignore[arg-type]
                alone = (one.values[stage], other.values[stage])
                if stage in values and not any(self._same(values[stage], array) for array in alone):
                    pair.values = {stage: values[stage]}
                    yield pair


def lean(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without axes of size 1 in front of the matrix."""
    return tuple(size for size in shape[:-2] if size != 1) + shape[-2:]


def _is_near(answer: Answer, stack: Array) -> Array:
    """For each of a stack of candidates, whether all judged entries lie in its neighbourhood."""
    with np.errstate(invalid="ignore"):
        room = 0.1 * answer.largest + 20 * np.max(answer.unit, initial=0.0)
        near = (np.abs(stack - answer.value) <= room) | (stack == answer.value) | ~answer.judged
        near |= np.isneginf(stack) | np.isnan(stack)
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


class Diagnosis:
    """The search for what explains one sheet."""

    def __init__(self, catalogue: Catalogue, fitted: Fitted, verdicts: Iterable[StageVerdict]) -> None:
        self.catalogue, self.key = catalogue, catalogue.key
        self.answers: Mapping[str, Answer] = {**fitted.answers, **fitted.misfits}
        self.misfits = fitted.misfits
        self.verdicts = {verdict.stage: verdict for verdict in verdicts}
        self.written = {name: (answer.value, answer.judged) for name, answer in fitted.answers.items()}
        self.shown = [name for name in self.key.order if name in self.answers]
        self.faults = self._faults()

    def _faults(self) -> list[str]:
        """The stages that something must explain; those that are too coarse only where nothing else is wrong."""
        words = {name: self.verdicts[name].verdict for name in self.shown}
        wrong = [name for name in self.shown if words[name] == WRONG or (words[name] == UNREADABLE)]
        return wrong or [name for name in self.shown if words[name] == TOO_COARSE]

    def singles(self) -> list[Candidate]:
        """Single mistakes that explain the sheet: those of the table, a misread, or else a slip."""
        if not self.faults:
            return []
        first = self.faults[0]
        near = self.catalogue.near(first, self.answers[first])
        found = [candidate for candidate in near if self.fails(candidate) is None]
        found += [candidate for candidate in self._misreadings(first) if self.fails(candidate) is None]
        if not found:
            found = [candidate for candidate in self._from_hidden(first) if self.fails(candidate) is None]
            found += self._hidden_pairs(first) if found else []
        if not found:
            found = [candidate for candidate in self._slips(first) if self.fails(candidate) is None]
        return found

    def _from_hidden(self, first: str) -> list[Candidate]:
        """What may happen anywhere, at a stage that the sheet doesn't show."""
        answer, found = self.answers[first], []
        for stage in sorted(self._hidden(first) - {first}, key=self.key.order.index):
            found += self.catalogue.near_from(stage, first, answer)
        return found

    def pairs(self) -> list[Candidate]:
        """Two mistakes at once that explain the sheet, when no single one does."""
        if not self.faults:
            return []
        first = self.faults[0]
        if len(self.faults) == 1 or not (starts := self._starts(first)):
            return self._hidden_pairs(first)
        found = []
        for one in starts[:8]:
            then = self.fails(one)
            if then is not None and then != first:
                found += [pair for pair in self._continued(one, then) if self.fails(pair) is None]
        return found or self._hidden_pairs(first)

    def _hidden_pairs(self, first: str) -> list[Candidate]:
        near = self.catalogue.pairs_near(first, self._hidden(first), self.answers[first])
        return [pair for pair in near if self.fails(Candidate(pair.parts)) is None]

    def _starts(self, first: str) -> list[Candidate]:
        """What explains the first wrong stage, whatever comes after it."""
        near = self.catalogue.near(first, self.answers[first])
        ways = [*near, *self._misreadings(first), *self._slips(first)]
        return [way for way in ways if self.fails(way, only=first) is None]

    def _continued(self, one: Candidate, stage: str) -> Iterable[Candidate]:
        """A first mistake with each second one that may explain a later stage."""
        hidden = self._hidden(stage)
        ways = [c for c in self.catalogue.table() + self.catalogue.anywhere(stage) if set(c.changes) & hidden]
        for other in [*ways, *self._misreadings(stage), *self._slips(stage)]:
            pair = one + other
            if not set(one.changes) & set(other.changes) and self._reaches(pair, stage):
                yield pair

    def _reaches(self, pair: Candidate, stage: str) -> bool:
        """Whether a pair explains a stage from the sheet's own numbers: a quick look before the whole sheet."""
        if stage in pair.free:
            return True
        array = self.key.walk(pair.changes, pair.silent, self.written, until=stage).get(stage)  # type: ignore[arg-type]
        answer = self.answers[stage]
        return array is not None and lean(array.shape) == lean(answer.value.shape) and self._is_near(answer, array)

    def _is_near(self, answer: Answer, array: Array) -> bool:
        return bool(_is_near(answer, array.reshape(1, *answer.value.shape)).all())

    def _misreadings(self, stage: str) -> list[Candidate]:
        if stage not in ROLES or stage in self.misfits:
            return []
        answers = {name: self.answers[name] for name in ROLES if name in self.written}
        return [Candidate(((MISTAKES["misread"], way),)) for way in misreadings(self.key, stage, answers)]

    def _slips(self, stage: str) -> list[Candidate]:
        """One wrong cell alone, and all else right or following from it."""
        verdict = self.verdicts[stage]
        entries = verdict.entries(2)
        if verdict.verdict != WRONG or len(entries) != 1 or verdict.judged < 2:
            return []
        return [Candidate(((MISTAKES["slip"], Variant({}, cell_name(stage, entries[0].index, self.key))),), free=frozenset({stage}))]

    def fails(self, candidate: Candidate, only: str | None = None) -> str | None:
        """The first stage of the sheet that a candidate does not explain; None where it explains all (or ``only``)."""
        chain, changes = self.catalogue.chain(candidate), candidate.changes
        own: Values | None = None
        for name in self.shown if only is None else [only]:
            if name in candidate.free:
                continue
            is_fault = self.verdicts[name].verdict not in (CORRECT, CARRIED, TOO_COARSE)
            if name not in chain and name not in changes:
                if is_fault or name == self.faults[0]:
                    return name
                continue
            answer, strict = self.answers[name], name == self.faults[0]
            from_inputs = self._match(answer, chain.get(name, None if name in changes else self.key.right[name]), strict)
            if from_inputs.all():
                continue
            if own is None:
                own = self.key.walk(changes, candidate.silent, self.written)  # type: ignore[arg-type]
            if (from_inputs | self._match(answer, own.get(name), strict)).all():
                continue
            if is_fault or name == self.faults[0] or self._is_touched(name, changes):
                return name
        return None

    def _match(self, answer: Answer, array: Array | None, strict: bool) -> Array:
        """Where an answer agrees with a candidate's numbers; read exactly where whole numbers would fit too much."""
        if array is None or lean(array.shape) != lean(answer.value.shape):
            return np.zeros(answer.value.shape, dtype=bool)
        array = array.reshape(answer.value.shape)
        if strict and answer.whole and not answer.is_whole(array):
            return answer.equals(array)
        return answer.agrees(array)

    def _is_touched(self, name: str, changes: Iterable[str]) -> bool:
        """Whether a change lies between the nearest stages of the sheet and this one."""
        return bool(self._hidden(name) & set(changes))

    def _hidden(self, stage: str) -> frozenset[str]:
        """A stage, and those between it and the nearest ones that the sheet shows."""
        others = [other for other in self.shown if other != stage and other not in self.misfits]
        return self.key.hidden_before(stage, others)


def explanation(candidate: Candidate) -> Explanation:
    """A candidate in words."""
    sentences = []
    for mistake, variant in candidate.parts:
        sentences.append(f"{mistake.sentence} ({variant.detail})" if variant.detail else mistake.sentence)
    return Explanation(candidate.names, tuple(sentences))


def cell_name(stage: str, index: tuple[int, ...], key: Key) -> str:
    """weights[1,3], or weights[2,1,3] with the head first where there are several; as the problem lays it out."""
    return f"{stage}[{','.join(map(str, person_index(index, key.right[stage].shape, key.problem.columns)))}]"


def person_index(index: tuple[int, ...], shape: tuple[int, ...], columns: bool) -> list[int]:
    """A 0-based canonical index as a person reads it: 1-based, batch and head only where there are several."""
    lead = [i + 1 for i, size in zip(index[:-2], shape[:-2], strict=True) if size > 1]
    row, column = index[-2] + 1, index[-1] + 1
    return [*lead, column, row] if columns else [*lead, row, column]
