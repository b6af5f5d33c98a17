"""Over random problems: the true mistake is named every time; garbage is never explained; zeros earn nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plain import attend, sheet
from test_mistakes import CASES

from attncli import Problem
from attncli.checking.check import Checker, check
from attncli.checking.verdicts import CARRIED, WRONG

SHAPE_BOUND = {"heads_maximised", "one_big_head"}
GENERAL = [name for name in CASES if name != "scaled_needlessly"]
"""Mistakes whose independent computation holds for any numbers in the shapes of their case."""


def redrawn(keys: dict[str, Any], seed: int) -> dict[str, Any]:
    """The same problem with other numbers, to two decimals."""
    random = np.random.default_rng(seed)

    def other(name: str, value: Any) -> Any:
        if name[0] in "ZWbm" and name != "mask":
            return (random.normal(size=np.shape(value)) * 0.7).round(2)
        return value

    return {name: other(name, value) for name, value in keys.items()}


def wrong_somewhere(stages: dict[str, Any], right: dict[str, Any], room: float) -> bool:
    return any(
        np.shape(stages[name]) != np.shape(right[name])
        or not np.allclose(stages[name], right[name], rtol=0, atol=room, equal_nan=True)
        for name in stages
    )


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("seed", range(4))
def test_the_true_mistake_is_always_named(name, seed):
    keys, wrong = CASES[name]
    keys = redrawn(keys, 1000 * seed + len(name))
    stages, right = attend(keys, wrong), attend(keys)
    checker = Checker(Problem(**keys))
    for decimals in (6, 2):
        report = checker.check(sheet(stages, decimals))
        if wrong_somewhere(stages, right, 10.0**-decimals):
            assert not report.correct
            assert [name] in report.names
        elif report.correct:
            assert report.names == []


def garbage(shape: tuple[int, ...], random: np.random.Generator, kind: int) -> np.ndarray:
    if kind == 0:
        return random.normal(size=shape)
    if kind == 1:
        return random.random(shape)
    return random.integers(-9, 10, size=shape).astype(float)


@pytest.mark.parametrize("seed", range(40))
def test_garbage_is_never_explained(seed):
    random = np.random.default_rng(seed)
    keys, _ = list(CASES.values())[seed % len(CASES)]
    keys = redrawn(keys, seed)
    right = attend(keys)
    if keys.get("score") == "dot":
        del right["scaled_scores"]
    names = list(right)
    only = tuple(names) if seed % 3 else tuple(names[-1:])
    made = {name: garbage(np.shape(right[name]), random, seed % 3 if name != "weights" else 1) for name in only}
    decimals = 0 if seed % 3 == 2 else 2
    report = check(Problem(**keys), sheet(made, decimals))
    assert not report.correct
    assert report.names == []
    assert report.convention is None


@pytest.mark.parametrize("name", ["unscaled", "mask_left_out", "heads_reordered", "grouped_in_tiles"])
@pytest.mark.parametrize("decimals", [0, 2])
def test_all_zeros_are_never_carried_forward(name, decimals):
    keys = CASES[name][0]
    zeros = {stage: np.zeros_like(value) for stage, value in attend(keys).items()}
    report = check(Problem(**keys), sheet(zeros, decimals))
    assert not report.correct
    assert CARRIED not in {verdict.verdict for verdict in report.stages}


def test_all_equal_is_not_carried_forward_either():
    keys = CASES["unscaled"][0]
    equal = {stage: np.full_like(value, 0.5) for stage, value in attend(keys).items()}
    equal["weights"] = np.full((1, 3, 3), 1 / 3)
    equal["outputs"] = np.full((1, 3, 2), 0.5)
    report = check(Problem(**keys), sheet(equal, 4))
    assert {verdict.verdict for verdict in report.stages} == {WRONG}


def test_zeros_that_the_problem_has_itself_are_carried_like_any_number():
    keys = {"Z": [[0.0, 0.0], [0.0, 0.0]], "W_Q": np.eye(2), "W_K": np.eye(2), "W_V": np.eye(2)}
    report = check(
        Problem(**keys), {"V": [["1.0", "0.0"], ["0.0", "1.0"]], "outputs": [["0.5", "0.5"], ["0.5", "0.5"]]}
    )
    assert report["outputs"].verdict == CARRIED
