"""One verdict for each stage of a sheet: correct, too coarse, carried forward, wrong, missing, unreadable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from attncli.checking.chains import Key, Values
from attncli.checking.mistakes.base import NOT_HERE
from attncli.checking.precision import Answer
from attncli.engine.evaluate import stage as evaluate_stage

if TYPE_CHECKING:
    from attncli.maths.ops import Array

CORRECT = "correct"
TOO_COARSE = "too coarse"
CARRIED = "carried forward"
WRONG = "wrong"
MISSING = "missing"
UNREADABLE = "unreadable"

SAMPLES = 24
"""How often a sheet's numbers are shaken, each within what it may stand for, to see how far rounding carries."""


@dataclass(frozen=True)
class Entry:
    """An entry that differs: its index (0-based, canonical axes), the sheet's number, the right one, the difference.

    ``follows`` is what the formula gives from the sheet's own previous stages, where one of them is wrong.
    """

    index: tuple[int, ...]
    sheet: float
    right: float
    text: str | None = None
    follows: float | None = None

    @property
    def difference(self) -> float:
        with np.errstate(invalid="ignore"):
            return float(np.subtract(self.sheet, self.right))


@dataclass(frozen=True)
class StageVerdict:
    """A stage's verdict: how many entries were ``judged``, and where they differ from the right ones (``differs``).

    ``note`` says what a person should know beside the verdict; ``error`` why a stage can't be read. ``hollow``: it
    follows from earlier stages, but from numbers that make that trivial.
    """

    stage: str
    verdict: str
    judged: int = 0
    note: str | None = None
    error: str | None = None
    hollow: bool = False
    answer: Answer | None = field(default=None, repr=False)
    right: Array | None = field(default=None, repr=False)
    follows: Array | None = field(default=None, repr=False)
    differs: Array | None = field(default=None, repr=False)

    @property
    def wrong(self) -> int:
        """How many entries differ."""
        return 0 if self.differs is None else int(self.differs.sum())

    @property
    def is_fault(self) -> bool:
        """Whether this stage keeps the sheet from being correct."""
        return self.verdict not in (CORRECT, MISSING)

    def entry(self, index: tuple[int, ...]) -> Entry:
        assert self.answer is not None
        assert self.right is not None
        texts, follows = self.answer.texts, self.follows
        return Entry(
            index, float(self.answer.value[index]), float(self.right[index]),
            None if texts is None else str(texts[index]), None if follows is None else float(follows[index]),
        )  # fmt: skip

    def entries(self, most: int | None = None) -> list[Entry]:
        """The entries that differ, in order, all or the first few."""
        if self.differs is None:
            return []
        return [self.entry(tuple(int(i) for i in index)) for index in np.argwhere(self.differs)[:most]]

    @property
    def largest(self) -> Entry | None:
        """The entry with the largest difference."""
        if self.differs is None or self.answer is None or self.right is None or not self.wrong:
            return None
        with np.errstate(invalid="ignore"):
            size = np.abs(self.answer.value - self.right)
        size = np.where(self.differs, np.where(np.isnan(size), np.inf, size), -1.0)
        return self.entry(tuple(int(i) for i in np.unravel_index(int(np.argmax(size)), size.shape)))


class Judge:
    """Goes through a sheet's stages in order, and keeps what the sheet's own numbers lead to."""

    def __init__(self, key: Key, answers: Mapping[str, Answer], errors: Mapping[str, str]) -> None:
        self.key, self.answers, self.errors = key, answers, errors
        self.written = {name: (answer.value, answer.judged) for name, answer in answers.items()}
        self.base = key.from_sheet(self.written)
        self.follows = self.base.made
        self.tainted: dict[str, bool] = {}
        """Whether what a stage passes on goes back to something wrong."""
        self.hollow: dict[str, bool] = {}
        """Whether it goes back to something wrong that is all zeros, or all equal."""

    def verdicts(self) -> list[StageVerdict]:
        found = []
        for name in self.key.order:
            needs = self.key.needs[name]
            tainted, hollow = any(self.tainted[need] for need in needs), any(self.hollow[need] for need in needs)
            if name not in self.answers:
                self.tainted[name], self.hollow[name] = tainted, hollow
                if name in self.errors:
                    found.append(StageVerdict(name, UNREADABLE, error=self.errors[name]))
                continue
            verdict = self._one(name, tainted, hollow)
            found.append(verdict)
            whole = self.answers[name].all_judged
            self.tainted[name] = verdict.verdict != CORRECT or (tainted and not whole)
            self.hollow[name] = verdict.verdict != CORRECT and (hollow or self._is_hollow(name))
        return found

    def _one(self, name: str, tainted: bool, hollow: bool) -> StageVerdict:
        answer, right, follows = self.answers[name], self.key.right[name], self.follows[name]
        true = answer.agrees(right)
        own = true if follows is right else answer.agrees(follows)
        either = true | own
        judged = int(answer.judged.sum())

        def verdict(word: str, differs: Array | None = None, note: str | None = None) -> StageVerdict:
            shown = follows if tainted and follows is not right else None
            return StageVerdict(
                name, word, judged, note, answer=answer, right=right, follows=shown, differs=differs
            )  # fmt: skip

        if true.all() or (either.all() and not tainted):
            if answer.whole and not answer.is_whole(right if true.all() else follows):
                note = f"whole numbers can't show whether the right ones, such as {_example(answer, right)}, were found"
                return verdict(TOO_COARSE, ~answer.equals(right), note)
            culprit = self._culprit(name) if tainted else None
            return verdict(CORRECT, note=f"correct, although {culprit} is not" if culprit else None)
        if tainted and not hollow and (either.all() or self._within_rounding(name, answer, true)):
            if answer.whole and not answer.is_whole(follows):
                note = "whole numbers can't show whether they follow from the stages before"
                return verdict(TOO_COARSE, ~true, note)
            return verdict(CARRIED, ~true, f"follows from the sheet's {self._culprit(name)}")
        if tainted and hollow and either.all():
            note = f"follows from the sheet's {self._culprit(name)}, but that is all zeros or all equal"
            return replace(verdict(WRONG, ~true, note), hollow=True)
        coarse = answer.whole and not answer.is_whole(right)
        return verdict(WRONG, ~either, "the other whole numbers are too coarse to judge" if coarse else None)

    def _culprit(self, name: str) -> str:
        """The nearest stages of the sheet that aren't correct and that this one is made of."""
        todo, found = list(self.key.needs[name]), []
        while todo:
            need = todo.pop(0)
            if need in self.answers and self.tainted[need]:
                found.append(need)
            elif need not in self.answers:
                todo += self.key.needs[need]
        return " and ".join(dict.fromkeys(found)) or "what comes before"

    def _is_hollow(self, name: str) -> bool:
        """Whether some matrix is all zeros or all equal, where the right one isn't."""
        own, right = (_matrices(array) for array in (self._passed(name), self.key.right[name]))
        equal = (own == own[:, :1]).all(axis=1)
        if not equal.any():
            return False
        equal &= ~(np.abs(right - right[:, :1]) <= self.key.eps).all(axis=1)
        zero = (own == 0).all(axis=1) & ~(right == 0).all(axis=1)
        return bool((equal | zero).any())

    def _passed(self, name: str) -> Array:
        value, judged = self.written[name]
        return value if judged.all() else np.where(judged, value, self.follows[name])

    def _within_rounding(self, name: str, answer: Answer, true: Array) -> bool:
        """Whether an answer follows from numbers that the sheet's own entries may stand for."""
        if self.key.problem.round is not None or answer.value.size > 100_000:
            return False
        shown = {need for need in self.key.above[name] if need in self.answers}
        hidden = self.key.hidden_before(name, shown)
        random = np.random.default_rng(0)
        values: Values = {}
        try:
            for stage in self.key.order[: self.key.order.index(name) + 1]:
                if stage in hidden:
                    values[stage] = evaluate_stage(self.key.plan.steps[stage], values)
                else:
                    values[stage] = self._shaken(stage, random) if stage in shown else self.follows[stage]
        except NOT_HERE:
            return False
        sample = values[name]
        if sample.ndim == answer.value.ndim:
            return False
        low, high = sample.min(axis=0), sample.max(axis=0)
        return bool((true | answer.agrees(np.clip(answer.value, low, high))).all())

    def _shaken(self, stage: str, random: np.random.Generator) -> Array:
        """A sheet's stage ``SAMPLES`` times (a leading axis), its entries moved within what they may stand for."""
        value, answer = self._passed(stage), self.answers[stage]
        share = random.choice([-0.5, 1.0], size=(SAMPLES, *value.shape))
        is_exact = (np.abs(value - self.key.right[stage]) <= answer.noise) | ~np.isfinite(value) | ~answer.judged
        unit = np.where(is_exact, 0.0, answer.unit)
        sign = np.where(value < 0, -1.0, 1.0)
        return np.asarray(value + share * unit * sign)


def _matrices(array: Array) -> Array:
    """Each matrix of a stage as one row."""
    return array.reshape(-1, array.shape[-2] * array.shape[-1])


def _example(answer: Answer, right: Array) -> str:
    """The first right number that isn't whole."""
    numbers = right[answer.judged]
    broken = numbers[np.abs(numbers - np.round(numbers)) > 1e-9]
    return f"{broken[0]:.4g}" if broken.size else "the unrounded ones"
