"""check(problem, sheet): is this right, where did it go wrong first, and how?

A `Checker` holds a problem's right numbers and the chains of the known mistakes, and checks any number of sheets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.checking.catalogue import Candidate, Catalogue, lean
from attncli.checking.chains import Base, Key, largest
from attncli.checking.diagnosis import Diagnosis, Explanation, explanation
from attncli.checking.fit import Fitted, Reading, fit, heads_second_reading, heads_side_by_side, transposed_reading
from attncli.checking.mistakes import MISTAKES
from attncli.checking.precision import Rule
from attncli.checking.verdicts import CARRIED, MISSING, UNREADABLE, WRONG, Judge, StageVerdict
from attncli.language.errors import AttncliError
from attncli.model import cells
from attncli.model.sheet import AnswerSheet
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.model.problem import Problem

CONVENTIONS = {
    "columns": "in the column convention (layout: columns): every matrix is transposed",
    "rows": "in the row convention (layout: rows): every matrix is transposed",
    "out_in": "with the weights taken as (out, in), as torch stores them (weight_layout: out_in)",
    "in_out": "with the weights taken as (in, out) (weight_layout: in_out)",
    "heads_second": "with the axis of the heads after that of the rows",
    "heads_side_by_side": "with the heads side by side in one matrix",
}
"""What else a whole sheet may be right in, and how that is said."""

SINGLE = Rule(atol=1e-6, rtol=2e-6)
"""The noise of float32 arithmetic in numbers that it printed with all their digits."""

ROUNDING_ROOM = 8.0
"""A difference of up to so many times the error of float32 or float16 arithmetic here looks like rounding."""


@dataclass(frozen=True)
class Report:
    """What came of checking a sheet: a verdict for each stage, explanations (fewest mistakes first), a convention.

    ``rounding`` names the dtype whose arithmetic would give differences of this size, where one does.
    """

    sheet: str
    problem: Problem = field(repr=False)
    stages: tuple[StageVerdict, ...]
    explanations: tuple[Explanation, ...] = ()
    convention: str | None = None
    rounding: str | None = None
    rule: str = ""
    notes: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()

    @property
    def correct(self) -> bool:
        """Whether all judged stages are correct, and all required ones are there."""
        return self.first_wrong is None

    @property
    def first_wrong(self) -> str | None:
        """The first stage that keeps the sheet from being correct; one that is only missing where none is wrong."""
        return next((s.stage for s in self.stages if s.is_fault), next(iter(self.missing), None))

    @property
    def missing(self) -> list[str]:
        """The required stages that the sheet doesn't have."""
        return [s.stage for s in self.stages if s.verdict == MISSING and s.stage in self.required]

    def __getitem__(self, stage: str) -> StageVerdict:
        return next(verdict for verdict in self.stages if verdict.stage == stage)

    @property
    def names(self) -> list[list[str]]:
        """The explanations as lists of mistakes' names."""
        return [list(one.names) for one in self.explanations]


def check(
    problem: Problem,
    sheet: AnswerSheet | Mapping[str, Any] | None = None,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    require: Iterable[str] = (),
) -> Report:
    """A verdict for each stage of an answer sheet (the problem's own ``expect`` by default), and what explains it.

    ``sheet`` is an AnswerSheet, or a mapping of stages to nested lists (numbers, texts such as "0.50" or "1/3", None
    where nothing is judged). ``atol`` and ``rtol`` replace the decimals of the text. Raises AttncliError where
    there is nothing to judge.

    >>> from attncli.model.problem import Problem
    >>> one = [[1.0, 0.0], [0.0, 1.0]]
    >>> report = check(Problem(Q=one, K=one, V=one), {"scaled_scores": [["1.00", "0.00"], ["0.00", "1.00"]]})
    >>> report.first_wrong, report.names[0]
    ('scaled_scores', ['unscaled'])
    """
    return Checker(problem, Rule(atol, rtol), require).check(sheet)


class Checker:
    """Checks sheets of one problem; what they share is computed once."""

    def __init__(self, problem: Problem, rule: Rule | None = None, require: Iterable[str] = ()) -> None:
        self.problem, self.rule = problem, rule or Rule()
        self.key = Key(problem)
        self.catalogue = Catalogue(self.key)
        self.required = frozenset(self._required(require))
        self._errors: dict[str, dict[str, float]] = {}

    def _required(self, require: Iterable[str]) -> Iterable[str]:
        for name in require:
            if name == "all":
                yield from (
                    one for one in self.key.order if not STAGES[one].on_request and one not in self.problem.given
                )
            elif name not in STAGES:
                raise AttncliError(f"unknown stage {name!r}", hint=f"The stages are {', '.join(STAGES)}.")
            elif name not in self.key.right:
                raise AttncliError(f"this problem has no {name}, so no sheet can be required to have it")
            else:
                yield name

    def check(self, sheet: AnswerSheet | Mapping[str, Any] | None = None) -> Report:
        """One sheet's report. Raises AttncliError where it has no stage."""
        answers = self._sheet(sheet)
        with np.errstate(all="ignore"):
            fitted = fit(self.key, answers, self.rule)
            verdicts, base = self._judge(fitted)
            report = self._report(answers, fitted, verdicts)
            if not any(verdict.is_fault for verdict in verdicts):
                return report
            return self._explained(report, answers, Diagnosis(self.catalogue, fitted, base, verdicts))

    def _sheet(self, sheet: AnswerSheet | Mapping[str, Any] | None) -> AnswerSheet:
        if sheet is None:
            if self.problem.expect is None:
                hint = "Give an answer sheet, or an expect: of the problem itself."
                raise AttncliError("there is no answer sheet to check", hint=hint)
            sheet = self.problem.expect
        found = sheet if isinstance(sheet, AnswerSheet) else AnswerSheet.of(sheet, "expect")
        if not found.stages:
            raise AttncliError(
                f"{found.name} has no stage on it", hint="Write stage: matrix, such as weights: [[...]]."
            )
        if not any(stage.error is not None or stage.judged.any() for stage in found.stages.values()):
            raise AttncliError(f"{found.name} leaves every entry open", hint="Fill in at least one number.")
        return found

    def _judge(self, fitted: Fitted) -> tuple[tuple[StageVerdict, ...], Base]:
        """A verdict for each stage, and what the sheet's own numbers lead to."""
        judge = Judge(self.key, fitted.answers, fitted.errors)
        found = {verdict.stage: verdict for verdict in judge.verdicts()}
        absent = {name: StageVerdict(name, UNREADABLE, error=what) for name, what in fitted.errors.items()}
        wanted = [name for name in self.key.order if name in self.required or self._is_expected(name)]
        missing = {name: StageVerdict(name, MISSING) for name in wanted}
        merged = {**missing, **absent, **found}
        order = [*STAGES, *(set(merged) - set(STAGES))]
        return tuple(merged[name] for name in order if name in merged), judge.base

    def _is_expected(self, name: str) -> bool:
        return not STAGES[name].on_request and name not in self.problem.given

    def _report(self, sheet: AnswerSheet, fitted: Fitted, verdicts: tuple[StageVerdict, ...]) -> Report:
        rule = self.rule.words([*fitted.answers.values(), *fitted.misfits.values()])
        if self.problem.round:
            rule += f"; the right answers rounded on the way, {self.problem.round_in_words()}"
        return Report(sheet.name, self.problem, verdicts, rule=rule, required=self.required)

    def _explained(self, report: Report, sheet: AnswerSheet, diagnosis: Diagnosis) -> Report:
        """The report with what explains the sheet: one mistake, another convention, or two mistakes."""
        found = diagnosis.singles()
        if not found:
            other = self._in_another_convention(sheet)
            if other is not None:
                return other
            found = diagnosis.pairs() or self._in_single_precision(report, answers=sheet)
        explanations = _distinct(found, next(iter(diagnosis.faults), ""), self.problem.columns)
        return replace(
            report,
            explanations=explanations,
            stages=self._follows(report.stages, diagnosis, found),
            rounding=self._rounding(report.stages),
            notes=(*_notes(report.stages, diagnosis, found), *self._right_if_rounded(sheet, found)),
        )

    def _right_if_rounded(self, sheet: AnswerSheet, found: list[Candidate]) -> Iterator[str]:
        """Of a sheet that only rounding on the way explains: what it is right by, which is tried."""
        if not found or any(candidate.names != ("rounded_on_the_way",) for candidate in found):
            return
        settings = [setting for one in found if (setting := one.parts[0][1].round) is not None]
        for setting in sorted(settings, key=lambda setting: not isinstance(setting, int)):
            other = Checker(self.problem.replace(round=setting), self.rule, self.required)
            verdicts, _ = other._judge(fit(other.key, sheet, self.rule))
            if not any(verdict.is_fault for verdict in verdicts):
                counts = {"": setting} if isinstance(setting, int) else setting
                said = ",".join(f"{name}={count}".lstrip("=") for name, count in counts.items())
                yield f"Rounding as the sheet does, by --round {said}, makes it right."
                return

    def _in_single_precision(self, report: Report, answers: AnswerSheet) -> list[Candidate]:
        """What explains a sheet of many decimals up to the noise that float32 leaves in its last ones."""
        if self.rule.is_tolerance or not any(v.answer is not None and v.answer.finest >= 6 for v in report.stages):
            return []
        fitted = fit(self.key, answers, SINGLE)
        verdicts, base = self._judge(fitted)
        return Diagnosis(self.catalogue, fitted, base, verdicts).singles()

    def _follows(
        self, verdicts: tuple[StageVerdict, ...], diagnosis: Diagnosis, found: list[Candidate]
    ) -> tuple[StageVerdict, ...]:
        """Later stages that a single mistake explains follow from it, although they were rounded from other numbers."""
        if not found or len(found[0].parts) != 1 or not diagnosis.faults:
            return verdicts
        first, changes = diagnosis.faults[0], found[0].changes
        changed = []
        for verdict in verdicts:
            below = verdict.verdict == WRONG and first in self.key.above[verdict.stage]
            later = any(name not in self.key.above[first] | {first} for name in changes)
            if below and not later and not verdict.hollow:
                assert verdict.answer is not None
                differs = ~verdict.answer.agrees(self.key.right[verdict.stage])
                verdict = replace(
                    verdict, verdict=CARRIED, differs=differs, note=f"follows from the mistake in {first}"
                )
            changed.append(verdict)
        return tuple(changed)

    # Conventions

    def _in_another_convention(self, sheet: AnswerSheet) -> Report | None:
        """The report of a sheet that is right throughout when it is read in another convention."""
        columns = self.problem.columns
        readings: list[tuple[str, Reading]] = [("rows" if columns else "columns", transposed_reading)]
        if self.problem.num_heads > 1:
            readings += [("heads_second", heads_second_reading), ("heads_side_by_side", heads_side_by_side(self.key))]
        for name, reading in readings:
            report = self._read_as(self.key, sheet, reading)
            if report is not None:
                return replace(report, convention=name)
        if self._other_weights is not None:
            report = self._read_as(self._other_weights, sheet, None)
            if report is not None:
                name = "in_out" if self.problem.weight_layout == "out_in" else "out_in"
                return replace(report, convention=name)
        return None

    def _read_as(self, key: Key, sheet: AnswerSheet, reading: Reading | None) -> Report | None:
        try:
            fitted = fit(key, sheet, self.rule, reading)
        except (ValueError, IndexError):
            return None
        if fitted.errors:
            return None
        verdicts = Judge(key, fitted.answers, fitted.errors).verdicts()
        if any(verdict.is_fault for verdict in verdicts):
            return None
        missing = [StageVerdict(n, MISSING) for n in key.order if self._is_expected(n) and n not in fitted.answers]
        merged = {verdict.stage: verdict for verdict in [*missing, *verdicts]}
        return self._report(sheet, fitted, tuple(merged[name] for name in STAGES if name in merged))

    @cached_property
    def _other_weights(self) -> Key | None:
        """The key of the same problem with its weights stored the other way, where that fits."""
        other = "in_out" if self.problem.weight_layout == "out_in" else "out_in"
        if not any(getattr(self.problem, f"W_{role}") is not None for role in "QKVO"):
            return None
        try:
            return Key(self.problem.replace(weight_layout=other))
        except AttncliError:
            return None

    # Rounding

    def _rounding(self, verdicts: tuple[StageVerdict, ...]) -> str | None:
        """The dtype whose arithmetic differs as much as the sheet does, in every stage that is wrong."""
        wrong = [v for v in verdicts if v.verdict in (WRONG, CARRIED) and v.answer is not None]
        if not wrong or any(v.verdict == UNREADABLE for v in verdicts) or self.problem.dtype.kind != "f":
            return None
        for dtype in possible_arithmetic(self.problem, wrong):
            errors = self._arithmetic_errors(dtype)
            if all(self._is_rounding(verdict, errors) for verdict in wrong) and _is_noise(wrong, self.key.eps):
                return dtype
        return None

    def _is_rounding(self, verdict: StageVerdict, errors: Mapping[str, float]) -> bool:
        entry = verdict.largest
        if entry is None or verdict.answer is None:
            return False
        room = float(np.max(verdict.answer.unit, initial=0.0)) if not verdict.answer.rule.is_tolerance else 0.0
        return abs(entry.difference) <= ROUNDING_ROOM * errors[verdict.stage] + room

    def _arithmetic_errors(self, dtype: str) -> dict[str, float]:
        """How far each stage is off, at most, when this problem is computed in a smaller dtype (which is run)."""
        if dtype not in self._errors:
            with np.errstate(all="ignore"):
                other = Key(self.problem.replace(dtype=dtype)).right
                self._errors[dtype] = {
                    name: _farthest(other[name], right) + float(np.finfo(dtype).eps) * largest(right)
                    for name, right in self.key.right.items()
                }
        return self._errors[dtype]


def possible_arithmetic(problem: Problem, verdicts: Sequence[StageVerdict]) -> list[str]:
    """The smaller dtypes in which all of these stages may have been computed, as far as the sheet tells."""
    answers = [verdict.answer for verdict in verdicts if verdict.answer is not None]
    dump = all(answer.stage.binary or answer.rule.is_tolerance for answer in answers)
    half = dump and (problem.dtype == np.float16 or all(answer.may_be_half for answer in answers))
    fine = all(answer.finest >= 6 for answer in answers)
    return ["float32"] * (fine or dump) + ["float16"] * half


def _is_noise(verdicts: list[StageVerdict], eps: float) -> bool:
    """Whether many entries are a little off, as arithmetic leaves them, and not one or two."""
    off, judged = 0, 0
    for verdict in verdicts:
        if verdict.answer is not None and verdict.right is not None:
            with np.errstate(invalid="ignore"):
                size = np.abs(verdict.answer.value - verdict.right)
            off += int((size > eps * verdict.answer.largest).sum())
            judged += int((verdict.answer.judged & (verdict.right != 0) & np.isfinite(verdict.right)).sum())
    return off > judged / 5


def _farthest(one: Any, other: Any) -> float:
    size = np.abs(one.astype(float) - other)
    return float(size[np.isfinite(size)].max(initial=0.0))


def _distinct(found: list[Candidate], first: str, columns: bool) -> tuple[Explanation, ...]:
    """Each explanation once, by its names. Where a wrong formula of the first wrong stage gives the numbers of
    another stage, it alone is named, and not the copy.
    """
    explanations: dict[tuple[str, ...], Explanation] = {}
    for candidate in found:
        explanations.setdefault(candidate.names, explanation(candidate, columns))
    instead = [
        {*names} - {name} | {"stage_copied"}
        for names in explanations
        for name in names
        if MISTAKES[name].stage == first
    ]
    explanations = {names: one for names, one in explanations.items() if {*names} not in instead}
    return tuple(sorted(explanations.values(), key=lambda one: len(one.names)))


def _notes(verdicts: tuple[StageVerdict, ...], diagnosis: Diagnosis, found: list[Candidate]) -> tuple[str, ...]:
    notes = [note for verdict in verdicts if (note := _not_finite(verdict, diagnosis.key.problem))][:1]
    notes += [note for verdict in verdicts if (note := _row_sums(verdict, diagnosis.key.problem.columns))]
    if diagnosis.faults and _differ(diagnosis, found):
        notes.append("The digits given can't tell these apart; one more decimal would.")
    return tuple(notes)


def _differ(diagnosis: Diagnosis, found: list[Candidate]) -> bool:
    """Whether explanations give other numbers, which only more decimals would show."""
    first, catalogue = diagnosis.faults[0], diagnosis.catalogue
    singles = [one for one in found if len(one.parts) == 1 and one.parts[0][0].name in catalogue_names(catalogue)]
    arrays = [catalogue.chain(one).get(first) for one in singles]
    there = [array.reshape(lean(array.shape)) for array in arrays if array is not None]
    return any(a.shape == there[0].shape and not np.allclose(a, there[0], equal_nan=True) for a in there[1:])


def catalogue_names(catalogue: Catalogue) -> set[str]:
    """The mistakes that a catalogue has chains of."""
    return {mistake.name for candidate in catalogue.table() for mistake, _ in candidate.parts}


def _not_finite(verdict: StageVerdict, problem: Problem) -> str | None:
    """A note on entries that are NaN or infinite, where the right ones are not."""
    if verdict.answer is None or verdict.right is None or verdict.differs is None:
        return None
    value, right = verdict.answer.value, verdict.right
    odd = verdict.differs & (np.isnan(value) | (np.isinf(value) & np.isfinite(right)))
    if not odd.any():
        return None
    kinds = ["NaN"] * bool(np.isnan(value[odd]).any()) + ["infinite"] * bool(np.isinf(value[odd]).any())
    first, count = tuple(int(i) for i in np.argwhere(odd)[0]), int(odd.sum())
    cell, what = cells.shown(problem, verdict.stage, right.shape, first), " or ".join(kinds)
    if count == 1:
        return f"{cell} is {what}, where the right entry is not."
    return f"{count} entries of {verdict.stage} are {what}, where the right ones are not; the first is {cell}."


def _row_sums(verdict: StageVerdict, columns: bool) -> str | None:
    """A note on weights whose rows can't be weights at all: negative, or of another sum than 1."""
    answer = verdict.answer
    if verdict.stage != "weights" or answer is None or not verdict.is_fault or not answer.judged.all():
        return None
    if (answer.value < 0).any():
        return "A weight is negative: no softmax gives that."
    sums = answer.value.sum(axis=-1)
    room = np.maximum(answer.unit, 1e-6).sum(axis=-1)
    off = np.argwhere(~((np.abs(sums - 1) <= room) | (sums == 0)) & np.isfinite(sums))
    if not len(off):
        return None
    *_, head, row = index = tuple(int(i) for i in off[0])
    whose = f"head {head + 1}'s" if sums.shape[-2] > 1 else "the"
    return f"{'Column' if columns else 'Row'} {row + 1} of {whose} weights sums to {sums[index]:.4g}, not to 1."
