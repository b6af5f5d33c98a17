"""The published examples under `check`: those that agree are correct, those with a printed mistake show its cells."""

from __future__ import annotations

import pytest
from places import DATA

import attncli
from attncli.checking.check import Report, check

FOLDER = DATA / "published"
CASES = {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}

ROOM = {
    "22-cat-sat-mat": {"atol": 1e-6},
    "53-dls-no-mask": {"atol": 1e-6},
    "73-i-love-pizza": {"atol": 5.001e-3},
    "74-silanm-hand-rounded": {"atol": 0.04},
}
"""What a case's comment on its rounding grants.

Single precision; stages printed to 2 decimals beside it (73); weights of 2 decimals, and 1.2 for 1.1667 (74).
"""


def every(*shape: int) -> set[tuple[int, ...]]:
    cells: set[tuple[int, ...]] = {()}
    for size in shape:
        cells = {(*cell, i) for cell in cells for i in range(1, size + 1)}
    return cells


PRINTED_WRONG = {
    "12-raschka-exercise-32": {"concat": every(6, 2)},
    "32-week5-one-query": {"weights": every(1, 3), "outputs": every(1, 2)},
    "55-dls-missing-transpose": {"weights": every(3, 4), "outputs": every(3, 2)},
    "83-deepml-94-example": {"concat": every(2, 2)},
    "84-amanailab-third-decimal": {"outputs": every(2, 2)},
    "85-click4ai-no-softmax": {"outputs": every(2, 2)},
    "86-i-love-dogs-row": {"weights": every(1, 3), "outputs": every(1, 2)},
    "87-i-love-dogs-causal": {"weights": {(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)}},
}

CAUSES = {
    "12-raschka-exercise-32": "softmax_columns",
    "55-dls-missing-transpose": "K_not_transposed",
    "83-deepml-94-example": "stage_copied",
}
"""What a case's note names as the cause."""

FOLLOWS = {"55-dls-missing-transpose": "outputs", "86-i-love-dogs-row": "outputs"}
"""Stages that, as the note says, follow from the wrong ones."""


def report_on(name: str, **room: float) -> Report:
    return check(attncli.load(CASES[name]), **room)


def cells(report: Report) -> dict[str, set[tuple[int, ...]]]:
    found = {}
    for verdict in report.stages:
        entries = {tuple(i + 1 for i in entry.index[-2:]) for entry in verdict.entries()}
        if entries:
            found[verdict.stage] = entries
    return found


def test_the_cases_were_found():
    assert len(CASES) == 50
    assert set(ROOM) | set(PRINTED_WRONG) <= set(CASES)


@pytest.mark.parametrize("name", [name for name in CASES if name not in PRINTED_WRONG])
def test_what_agrees_is_correct(name):
    report = report_on(name, **ROOM.get(name, {}))
    assert report.correct
    assert report.names == []
    assert any(verdict.judged for verdict in report.stages)


@pytest.mark.parametrize("name", PRINTED_WRONG)
def test_printed_mistakes_are_found_cell_by_cell(name):
    report = report_on(name)
    assert not report.correct
    assert cells(report) == PRINTED_WRONG[name]


@pytest.mark.parametrize("name", PRINTED_WRONG)
def test_printed_mistakes_are_named_where_their_cause_is_known(name):
    names = report_on(name).names
    assert [CAUSES[name]] in names if name in CAUSES else names == []


@pytest.mark.parametrize(("name", "stage"), FOLLOWS.items())
def test_what_follows_from_a_printed_mistake_is_carried_forward(name, stage):
    assert report_on(name, atol=2e-6 if name.startswith("55") else None)[stage].verdict == "carried forward"


def test_hand_rounding_that_is_not_shown_is_not_taken_for_correct_without_room():
    report = report_on("74-silanm-hand-rounded")
    assert report.first_wrong == "outputs"
    assert report["concat"].verdict == "carried forward"


def test_digits_beyond_single_precision_are_called_rounding():
    for name in ("22-cat-sat-mat", "53-dls-no-mask", "73-i-love-pizza"):
        assert report_on(name).rounding == "float32"
