"""Many sheets of one problem: a row for each, points, and which mistake was made how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from attncli.checking.check import Checker, Report
from attncli.checking.verdicts import CARRIED, CORRECT, MISSING
from attncli.language.errors import AttncliError
from attncli.model.sheet import AnswerSheet
from attncli.stages.table import STAGES


@dataclass(frozen=True)
class Marking:
    """Points a stage: all of them for correct, ``follow_through`` of them for carried forward, none else."""

    points: Mapping[str, float] = field(default_factory=dict)
    follow_through: float = 1.0

    @property
    def out_of(self) -> float:
        return sum(self.points.values())

    def score(self, report: Report) -> float:
        """The points of a sheet."""
        share = {CORRECT: 1.0, CARRIED: self.follow_through}
        verdicts = {verdict.stage: verdict.verdict for verdict in report.stages}
        return sum(points * share.get(verdicts.get(stage, MISSING), 0.0) for stage, points in self.points.items())


@dataclass(frozen=True)
class Row:
    """One sheet of a class: its report, or why it can't be read; its points where they are given."""

    sheet: str
    report: Report | None = None
    error: AttncliError | None = None
    points: float | None = None
    out_of: float | None = None

    @property
    def correct(self) -> bool:
        return self.report is not None and self.report.correct

    def count(self, *verdicts: str) -> int:
        """How many stages have one of these verdicts."""
        return 0 if self.report is None else sum(verdict.verdict in verdicts for verdict in self.report.stages)

    @property
    def mistake(self) -> str | None:
        """What explains the sheet, in one phrase: the mistakes of an explanation joined by "+", several by "or"."""
        if self.report is None or not self.report.explanations:
            return None
        return " or ".join(" + ".join(one.names) for one in self.report.explanations)

    @property
    def counted(self) -> list[str]:
        """The mistakes that a class's totals count this sheet under: those of its first explanation, each once."""
        explanations = self.report.explanations if self.report is not None else ()
        return list(dict.fromkeys(explanations[0].names)) if explanations else []


@dataclass(frozen=True)
class Totals:
    """A class as a whole: how many sheets are correct, how many not, how many unreadable; mistakes, commonest first.

    A mistake is counted once a sheet, whether it was made alone or with another.
    """

    sheets: int
    correct: int
    unreadable: int
    mistakes: tuple[tuple[str, int], ...]
    conventions: tuple[tuple[str, int], ...]
    first_wrong: tuple[tuple[str, int], ...]
    unexplained: int

    @property
    def incorrect(self) -> int:
        return self.sheets - self.correct - self.unreadable


def grade(
    checker: Checker,
    sources: Sequence[str],
    read: Callable[[str], AnswerSheet],
    marking: Marking | None = None,
    progress: Callable[[float], None] | None = None,
) -> Iterator[Row]:
    """A row for each sheet, in order; one that can't be read (``read`` raises AttncliError) is a row with its error.

    ``progress`` is told the share that is done.
    """
    marking = marking or Marking()
    for done, source in enumerate(sources, 1):
        try:
            row = marked(source, checker.check(read(source)), marking)
        except AttncliError as error:
            row = Row(source, error=error, points=0.0 if marking.points else None, out_of=marking.out_of or None)
        yield row
        if progress:
            progress(done / len(sources))


def marked(sheet: str, report: Report, marking: Marking) -> Row:
    """A report with its points, where any are given."""
    if not marking.points:
        return Row(sheet, report)
    return Row(sheet, report, points=marking.score(report), out_of=marking.out_of)


def totals(rows: Iterable[Row]) -> Totals:
    """What a class did."""
    rows = list(rows)
    reports = [row.report for row in rows if row.report is not None]
    wrong = [(row, row.report) for row in rows if row.report is not None and not row.correct]
    return Totals(
        sheets=len(rows),
        correct=sum(report.correct for report in reports),
        unreadable=sum(row.error is not None for row in rows),
        mistakes=tuple(Counter(name for row, _ in wrong for name in row.counted).most_common()),
        conventions=tuple(Counter(report.convention for report in reports if report.convention).most_common()),
        first_wrong=tuple(Counter(report.first_wrong for report in reports if report.first_wrong).most_common()),
        unexplained=sum(row.mistake is None and report.first_wrong not in report.missing for row, report in wrong),
    )


def points_of(texts: Iterable[str]) -> dict[str, float]:
    """Points from "weights=2,outputs=3" (several texts add up). Raises AttncliError with the nearest stage's name.

    >>> points_of(["weights=2,outputs=3.5"])
    {'weights': 2.0, 'outputs': 3.5}
    """
    points: dict[str, float] = {}
    for part in (part.strip() for text in texts for part in text.split(",")):
        stage, sign, number = (piece.strip() for piece in part.partition("="))
        if not sign:
            raise AttncliError(
                f"--points takes stage=number, and here is {part!r}", hint="Such as weights=2,outputs=3."
            )
        if stage not in STAGES:
            raise AttncliError(f"--points: {stage!r} is no stage", hint=f"The stages are {', '.join(STAGES)}.")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise AttncliError(f"--points: {number!r} is no number of points for {stage}")
        points[stage] = value
    return points
