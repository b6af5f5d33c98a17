"""Reports for programs: json, jsonl, csv. Every verdict, entry and mistake; indices count from 1."""

from __future__ import annotations

import csv as csv_module
import io
import json as json_module
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.checking.classroom import Row
from attncli.checking.verdicts import CARRIED, CORRECT, MISSING, TOO_COARSE, UNREADABLE, WRONG, Entry, StageVerdict
from attncli.model import cells
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.checking.mistakes import Mistake
    from attncli.model.problem import Problem
    from attncli.rendering.formats import Options, Stream


def as_dict(row: Row) -> dict[str, Any]:
    """A row as plain data: what JSON writes. Infinities and NaN are the strings "-inf", "inf", "nan"."""
    report = row.report
    data: dict[str, Any] = {
        "sheet": row.sheet,
        "correct": row.correct,
        "first_wrong": None if report is None else report.first_wrong,
        "stages": [] if report is None else [_stage(verdict, report.problem) for verdict in report.stages],
        "explanations": [] if report is None else report.names,
        "sentences": [] if report is None else [list(one.sentences) for one in report.explanations],
        "convention": None if report is None else report.convention,
        "rounding": None if report is None else report.rounding,
        "notes": [] if report is None else list(report.notes),
        "rule": None if report is None else report.rule,
    }
    if row.points is not None:
        data |= {"points": row.points, "out_of": row.out_of}
    if row.error is not None:
        data["error"] = str(row.error)
    return data


def _stage(verdict: StageVerdict, problem: Problem) -> dict[str, Any]:
    data: dict[str, Any] = {
        "stage": verdict.stage,
        "verdict": verdict.verdict,
        "judged": verdict.judged,
        "wrong": verdict.wrong,
        "entries": [_entry(entry, verdict, problem) for entry in verdict.entries()],
    }
    if (largest := verdict.largest) is not None:
        data["largest"] = _entry(largest, verdict, problem)
    if verdict.note is not None:
        data["note"] = verdict.note
    if verdict.error is not None:
        data["error"] = verdict.error
    return data


def person_index(index: tuple[int, ...], shape: tuple[int, ...], columns: bool) -> list[int]:
    """A 0-based canonical index as a person reads it: 1-based, batch and head only where there are several."""
    lead = [i + 1 for i, size in zip(index[:-2], shape[:-2], strict=True) if size > 1]
    row, column = index[-2] + 1, index[-1] + 1
    return [*lead, column, row] if columns else [*lead, row, column]


def _entry(entry: Entry, verdict: StageVerdict, problem: Problem) -> dict[str, Any]:
    assert verdict.right is not None
    data = {
        "cell": str(cells.shown(problem, verdict.stage, verdict.right.shape, entry.index)),
        "index": person_index(entry.index, verdict.right.shape, problem.columns),
        "sheet": number(entry.sheet),
        "right": number(entry.right),
        "difference": number(entry.difference),
    }
    if entry.follows is not None:
        data["follows"] = number(entry.follows)
    return data


def number(value: float) -> float | str:
    """A number as JSON has it."""
    return float(value) if np.isfinite(value) else str(float(value))


def json(rows: Sequence[Row], options: Options, stream: Stream) -> None:
    """One object, or a list of them, an object a line."""
    if len(rows) == 1:
        text = json_module.dumps(as_dict(rows[0]), ensure_ascii=False, allow_nan=False, indent=2)
    else:
        text = "[\n" + ",\n".join(map(_object, rows)) + "\n]"
    stream.write(_encoded(text + "\n"))


def jsonl(rows: Sequence[Row], options: Options, stream: Stream) -> None:
    """One object a line."""
    for row in rows:
        stream.write(_encoded(_object(row) + "\n"))


def _object(row: Row) -> str:
    return json_module.dumps(as_dict(row), ensure_ascii=False, allow_nan=False)


def _encoded(text: str) -> bytes:
    """A file's name may hold bytes that are no text: they are written as escapes."""
    return text.encode("utf-8", "backslashreplace")


COLUMNS = (
    "sheet", "correct", "points", "out_of", "right", "carried_forward", "wrong", "missing", "first_wrong", "mistake",
    "convention",
)  # fmt: skip


def csv(rows: Sequence[Row], options: Options, stream: Stream) -> None:
    """A gradebook: a line a sheet, a column for each stage's verdict at the end."""
    stream.write(_line([*COLUMNS, *STAGES, "error"]))
    for row in rows:
        report = row.report
        verdicts = {} if report is None else {verdict.stage: verdict.verdict for verdict in report.stages}
        stream.write(_line([
            row.sheet, "true" if row.correct else "false", _plain(row.points), _plain(row.out_of), row.count(CORRECT),
            row.count(CARRIED), row.count(WRONG, TOO_COARSE, UNREADABLE), row.count(MISSING),
            "" if report is None else report.first_wrong or "", row.mistake or "",
            "" if report is None else report.convention or "",
            *(verdicts.get(stage, "") for stage in STAGES), "" if row.error is None else row.error.what,
        ]))  # fmt: skip


def _line(cells: list[Any]) -> bytes:
    text = io.StringIO()
    csv_module.writer(text, lineterminator="\n").writerow(map(_harmless, cells))
    return _encoded(text.getvalue())


def _harmless(cell: Any) -> Any:
    """A text that a spreadsheet would take for a formula (a sheet's own name) gets a quote before it."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def _plain(points: float | None) -> str:
    return "" if points is None else f"{points:.10g}"


def mistakes(rows: Sequence[Mistake], options: Options, stream: Stream) -> None:
    """The known mistakes as a list of objects."""
    keys = ("name", "stage", "sentence", "formula", "source")
    data = [{key: getattr(row, key) for key in keys} for row in rows]
    stream.write(_encoded(json_module.dumps(data, ensure_ascii=False, indent=2) + "\n"))
