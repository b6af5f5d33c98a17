"""Worked examples as other people printed them: each agrees to half a unit of its last printed decimal."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import yaml
from forms import head_forms, in_the_other_layout
from places import DATA

from attncli import Problem, compute, load
from attncli.rendering.data import stages as data
from attncli.rendering.formats import Options
from attncli.rendering.views import View, choose

FOLDER = DATA / "published"
CASES = {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}

ROOM = {
    "07-raschka-causal-batch": (1e-6, "single precision"),
    "22-cat-sat-mat": (1e-6, "single precision, 7 decimals"),
    "40-yeh-self-attention-small": (1e-14, "double precision, all its digits"),
    "41-yeh-self-attention-medium": (1e-14, "double precision, all its digits"),
    "46-morgan-batch-causal-heads": (2e-4, "the source computed on from inputs with more decimals than it printed"),
    "53-dls-no-mask": (1e-6, "single precision, 8 decimals"),
    "73-i-love-pizza": (1e-6, "single precision, 8 decimals"),
    "90-mystic-padding-1e9": (1e-4, "the source computed on from scores with more decimals than it printed"),
}
"""How much more than half a unit a case may be off, and why."""

EXACT = ("83-deepml-94-example",)
"""Printed without decimals, and meant exactly."""

BY_HAND = ("74-silanm-hand-rounded",)
"""Written by a person: each entry has its own decimals."""


def cells(*indices: str) -> set[tuple[int, ...]]:
    return {tuple(int(i) for i in index.split(",")) for index in indices}


def every(*shape: int) -> set[tuple[int, ...]]:
    return {tuple(i + 1 for i in index) for index in np.ndindex(*shape)}


MISTAKES: dict[str, dict[str, set[tuple[int, ...]]]] = {
    "12-raschka-exercise-32": {"concat": every(6, 2)},
    "32-week5-one-query": {"weights": every(1, 3), "outputs": every(1, 2)},
    "55-dls-missing-transpose": {"weights": every(3, 4), "outputs": every(3, 2)},
    "74-silanm-hand-rounded": {
        # Rounded on the way, and so no mistake: 1.2 stands for 1.1667, and three outputs are off in the third decimal.
        "outputs": cells("2,1,1", "2,2,1", "2,3,1"), "concat": cells("1,2", "2,2", "3,2"),
    },
    "83-deepml-94-example": {"concat": every(2, 2)},
    "84-amanailab-third-decimal": {"outputs": every(2, 2)},
    "85-click4ai-no-softmax": {"outputs": every(2, 2)},
    "86-i-love-dogs-row": {"weights": every(1, 3), "outputs": every(1, 2)},
    "87-i-love-dogs-causal": {"weights": cells("2,1", "2,2", "3,1", "3,2", "3,3")},
}  # fmt: skip
"""The cells (1-based) that the source itself has wrong, as the case's note says; all others must agree."""


def keys_of(name: str) -> dict[str, Any]:
    return {key: value for key, value in yaml.safe_load(CASES[name].read_text("utf-8")).items() if key != "expect"}


def printed(name: str) -> dict[str, np.ndarray]:
    """What the source printed, as text: stage -> array of str."""
    texts = yaml.load(CASES[name].read_text("utf-8"), Loader=yaml.BaseLoader)["expect"]
    return {stage: np.array(value, dtype=object) for stage, value in texts.items()}


def half_units(texts: np.ndarray, own: bool) -> np.ndarray:
    """Half a unit of the last decimal of each number; arrays are printed with trailing zeros cut, so that the
    finest mantissa counts for all (not where each entry has its ``own`` decimals, as people write)."""
    numbers = [Decimal(text) for text in texts.ravel()]
    scales = [int(text.lower().partition("e")[2] or 0) for text in texts.ravel()]
    decimals = [scale - int(number.as_tuple().exponent) for number, scale in zip(numbers, scales, strict=True)]
    finest = max(decimals)
    units = [10.0 ** (scale - (d if own else finest)) / 2 for scale, d in zip(scales, decimals, strict=True)]
    return np.array(units).reshape(texts.shape)


def shaped_like(array: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """A stage without its axes of 1 in front of the matrix, as far as the source leaves them out."""
    while array.ndim > texts.ndim:
        assert 1 in array.shape[:-2]
        array = array.squeeze(axis=max(i for i in range(array.ndim - 2) if array.shape[i] == 1))
    assert array.shape == texts.shape
    return array


def wrong_cells(name: str, stage: str, array: np.ndarray) -> set[tuple[int, ...]]:
    texts = printed(name)[stage]
    units = 0.0 if name in EXACT else half_units(texts, own=name in BY_HAND) * (1 + 1e-9)
    room = units + ROOM.get(name, (0.0, ""))[0]
    off = np.abs(shaped_like(array, texts) - texts.astype(float))
    return {tuple(int(i) + 1 for i in index) for index in np.argwhere(off > room)}


def test_the_cases_were_found():
    assert len(CASES) == 50
    assert set(ROOM) | set(MISTAKES) <= set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_it_agrees_with_what_was_printed(name):
    result = compute(load(CASES[name]))
    assert printed(name)
    for stage in printed(name):
        assert wrong_cells(name, stage, result[stage]) == MISTAKES.get(name, {}).get(stage, set()), stage


def same(one: Any, other: Any, change: Any = lambda array: array) -> None:
    assert list(one) == list(other)
    for stage in one:
        assert np.array_equal(one[stage], change(other[stage])), stage


@pytest.mark.parametrize("name", CASES)
def test_rows_and_columns_agree_exactly(name):
    keys = keys_of(name)
    same(compute(Problem(**keys)), compute(Problem(**in_the_other_layout(keys))), lambda array: array.swapaxes(-1, -2))


@pytest.mark.parametrize("name", CASES)
def test_the_problem_as_json_is_the_same_problem(name, tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps(yaml.safe_load(CASES[name].read_text("utf-8"))), "utf-8")
    same(compute(load(CASES[name])), compute(load(path)))
    same(compute(load(CASES[name])), compute(Problem(**keys_of(name))))


@pytest.mark.parametrize("name", CASES)
def test_its_stages_go_through_json_and_back(name):
    problem = load(CASES[name])
    result, stream = compute(problem), io.BytesIO()
    data.json(View(result, choose(problem)), Options(), stream)
    read = {stage: np.array(value, dtype=float) for stage, value in json.loads(stream.getvalue()).items()}
    same(result, read)


WITH_HEADS = [name for name in CASES if head_forms(keys_of(name))]


@pytest.mark.parametrize("name", WITH_HEADS)
def test_heads_fused_or_apart_give_the_same(name):
    keys = keys_of(name)
    for other in head_forms(keys):
        same(compute(Problem(**keys)), compute(Problem(**other)))


def test_cases_with_heads_were_found():
    assert len(WITH_HEADS) == 12
