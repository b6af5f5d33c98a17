"""Which known mistakes give exactly a sheet's numbers: one of them, or two at once.

A mistake explains a sheet if every judged entry agrees, at the precision it was written with, with the chain in which
its formula replaces the right one, computed from the inputs or from the sheet's own stages, and if the right formulas
don't.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attncli.checking.catalogue import Candidate, Catalogue, is_near, lean
from attncli.checking.chains import Base, Values
from attncli.checking.fit import Fitted
from attncli.checking.misread import ROLES, misreadings
from attncli.checking.mistakes import MISTAKES, Variant
from attncli.checking.precision import Answer
from attncli.checking.verdicts import CARRIED, CORRECT, TOO_COARSE, UNREADABLE, WRONG, StageVerdict
from attncli.model import cells

if TYPE_CHECKING:
    from attncli.maths.ops import Array


@dataclass(frozen=True)
class Explanation:
    """The names of the mistakes that together give a sheet's numbers, and a sentence for each."""

    names: tuple[str, ...]
    sentences: tuple[str, ...]


class Diagnosis:
    """The search for what explains one sheet."""

    def __init__(self, catalogue: Catalogue, fitted: Fitted, base: Base, verdicts: Iterable[StageVerdict]) -> None:
        self.catalogue, self.key = catalogue, catalogue.key
        self.answers: Mapping[str, Answer] = {**fitted.answers, **fitted.misfits}
        self.misfits = fitted.misfits
        self.verdicts = {verdict.stage: verdict for verdict in verdicts}
        self.base = base
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
        near = self._near(first)
        found = [candidate for candidate in near if self.fails(candidate) is None]
        found += [candidate for candidate in self._misreadings(first) if self.fails(candidate) is None]
        if not found:
            found = [candidate for candidate in self._from_hidden(first) if self.fails(candidate) is None]
            found += self._hidden_pairs(first) if found else []
        if not found:
            found = [candidate for candidate in self._slips(first) if self.fails(candidate) is None]
        return found

    def _near(self, first: str) -> list[Candidate]:
        """What comes near the first wrong stage; of rounding on the way, what the sheet doesn't show itself."""
        hidden = self._hidden(first)
        near = self.catalogue.near(first, hidden, self.answers[first])
        return [one for one in near if one.names != ("rounded_on_the_way",) or set(one.changes) <= hidden]

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
        near = self._near(first)
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
        array = self.key.walk(pair.changes, pair.silent, self.base, until=stage).get(stage)
        answer = self.answers[stage]
        return array is not None and lean(array.shape) == lean(answer.value.shape) and self._is_near(answer, array)

    def _is_near(self, answer: Answer, array: Array) -> bool:
        return bool(is_near(answer, array.reshape(1, *answer.value.shape)).all())

    def _misreadings(self, stage: str) -> list[Candidate]:
        if stage not in ROLES or stage in self.misfits:
            return []
        answers = {name: self.answers[name] for name in ROLES if name not in self.misfits and name in self.answers}
        return [Candidate(((MISTAKES["misread"], way),)) for way in misreadings(self.key, stage, answers)]

    def _slips(self, stage: str) -> list[Candidate]:
        """One wrong cell alone, and all else right or following from it."""
        verdict = self.verdicts[stage]
        entries = verdict.entries(2)
        if verdict.verdict != WRONG or len(entries) != 1 or verdict.judged < 2 or np.isnan(entries[0].sheet):
            return []
        answer = self.answers[stage]
        if answer.whole and not answer.is_whole(self.key.right[stage]):
            return []  # the others are too coarse to be right
        cell = Variant({}, str(cells.shown(self.key.problem, stage, self.key.right[stage].shape, entries[0].index)))
        return [Candidate(((MISTAKES["slip"], cell),), free=frozenset({stage}))]

    def fails(self, candidate: Candidate, only: str | None = None) -> str | None:
        """The first stage of the sheet that a candidate does not explain; None where it explains all (or ``only``)."""
        chain, first = self.catalogue.chain(candidate), self.faults[0]
        if only is None and first not in candidate.free and self._misses(candidate, chain, first):
            return first
        for name in self.shown if only is None else [only]:
            if name not in candidate.free and self._misses(candidate, chain, name):
                return name
        return None

    def _misses(self, candidate: Candidate, chain: Values, name: str) -> bool:
        """Whether a candidate does not explain a stage, neither from the inputs nor from the sheet's own numbers."""
        changes, strict = candidate.changes, name == self.faults[0]
        is_fault = strict or self.verdicts[name].verdict not in (CORRECT, CARRIED, TOO_COARSE)
        if name not in chain and name not in changes:
            return is_fault
        answer = self.answers[name]
        from_inputs = self._match(answer, chain.get(name, self.key.right[name]), strict)
        if from_inputs.all():
            return False
        own = self.key.walk(changes, candidate.silent, self.base, until=name).get(name)
        if (from_inputs | self._match(answer, own, strict)).all():
            return False
        return is_fault or self._is_touched(name, changes)

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


def explanation(candidate: Candidate, columns: bool = False) -> Explanation:
    """A candidate in words; in a layout of columns, what is a row elsewhere is a column."""
    sentences = []
    for mistake, variant in candidate.parts:
        said = f"{mistake.sentence} ({variant.detail})" if variant.detail else mistake.sentence
        sentences.append(in_columns(said) if columns else said)
    return Explanation(candidate.names, tuple(sentences))


_TURNED = {"row": "column", "column": "row", "upper": "lower", "lower": "upper", "along each": "down each"}
_TURNED |= {"down each": "along each"}


def in_columns(said: str) -> str:
    """A sentence about rows, said of a layout where a token is a column.

    >>> in_columns("the softmax runs down each column (over the queries), not along each row")
    'the softmax runs along each row (over the queries), not down each column'
    """
    return re.sub("along each|down each|row|column|upper|lower", lambda found: _TURNED[found[0]], said)
