"""Reports for programs: json, jsonl, csv. Every verdict, entry and mistake; indices count from 1."""

from __future__ import annotations

import csv as csv_module
import io
import json as json_module
from collections.abc import Iterable
from typing import Any

import numpy as np

from attncli.classroom import Row
from attncli.diagnosis import person_index
from attncli.names import STAGE_NAMES
from attncli.verdicts import CARRIED, CORRECT, MISSING, TOO_COARSE, UNREADABLE, WRONG, Entry, StageVerdict


def as_dict(row: Row) -> dict[str, Any]:
    """A row as plain data: what JSON writes. Infinities and NaN are the strings "-inf", "inf", "nan"."""
    report = row.report
    data: dict[str, Any] = {
        "sheet": row.sheet,
        "correct": row.correct,
        "first_wrong": None if report is None else report.first_wrong,
        "stages": [] if report is None else [_stage(verdict, report.problem.columns) for verdict in report.stages],
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


def _stage(verdict: StageVerdict, columns: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "stage": verdict.stage,
        "verdict": verdict.verdict,
        "judged": verdict.judged,
        "wrong": verdict.wrong,
        "entries": [_entry(entry, verdict, columns) for entry in verdict.entries()],
    }
    if (largest := verdict.largest) is not None:
        data["largest"] = _entry(largest, verdict, columns)
    if verdict.note is not None:
        data["note"] = verdict.note
    if verdict.error is not None:
        data["error"] = verdict.error
    return data


def _entry(entry: Entry, verdict: StageVerdict, columns: bool) -> dict[str, Any]:
    assert verdict.right is not None
    data = {
        "index": person_index(entry.index, verdict.right.shape, columns),
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


def json(rows: Iterable[Row], several: bool) -> Iterable[str]:
    """One object, or a list of them."""
    if not several:
        for row in rows:
            yield json_module.dumps(as_dict(row), ensure_ascii=False, allow_nan=False, indent=2) + "\n"
        return
    yield "["
    for i, row in enumerate(rows):
        yield ("," if i else "") + "\n" + json_module.dumps(as_dict(row), ensure_ascii=False, allow_nan=False)
    yield "\n]\n"


def jsonl(rows: Iterable[Row], several: bool) -> Iterable[str]:
    """One object a line."""
    for row in rows:
        yield json_module.dumps(as_dict(row), ensure_ascii=False, allow_nan=False) + "\n"


COLUMNS = (
    "sheet", "correct", "points", "out_of", "right", "carried_forward", "wrong", "missing", "first_wrong", "mistake",
    "convention",
)  # fmt: skip


def csv(rows: Iterable[Row], several: bool) -> Iterable[str]:
    """A gradebook: a line a sheet, a column for each stage's verdict at the end."""
    yield _line([*COLUMNS, *STAGE_NAMES, "error"])
    for row in rows:
        report = row.report
        verdicts = {} if report is None else {verdict.stage: verdict.verdict for verdict in report.stages}
        yield _line([
            row.sheet, "true" if row.correct else "false", _plain(row.points), _plain(row.out_of), row.count(CORRECT),
            row.count(CARRIED), row.count(WRONG, TOO_COARSE, UNREADABLE), row.count(MISSING),
            "" if report is None else report.first_wrong or "", row.mistake or "",
            "" if report is None else report.convention or "",
            *(verdicts.get(stage, "") for stage in STAGE_NAMES), "" if row.error is None else row.error.what,
        ])  # fmt: skip


def _line(cells: list[Any]) -> str:
    text = io.StringIO()
    csv_module.writer(text, lineterminator="\n").writerow(map(_harmless, cells))
    return text.getvalue()


def _harmless(cell: Any) -> Any:
    """A text that a spreadsheet would take for a formula (a sheet's own name) gets a quote before it."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def _plain(points: float | None) -> str:
    return "" if points is None else f"{points:.10g}"


WRITERS = {"json": json, "jsonl": jsonl, "csv": csv}
"""Each takes rows and whether they are a class, and gives pieces of text."""
