"""The table of stages, walked, so that no half of a row passes: each is made, shown, explained, inspected, checked."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest

from attncli import Problem, check, compute
from attncli.checking.mistakes import ANYWHERE, MISTAKES
from attncli.explaining.explain import explain
from attncli.inspecting.ledger import shapes
from attncli.language import notation
from attncli.model.keys import KEYS
from attncli.model.sizes import SCORE_LIKE, STARTS
from attncli.rendering.formats import FORMATS, Options
from attncli.rendering.text import captions
from attncli.rendering.views import Choice, View
from attncli.stages.table import SCORES, STAGES, present

DRAW = np.random.default_rng(40).normal
WHOLE = {
    "Z": DRAW(size=(3, 5)), "W_Q": DRAW(size=(5, 4)), "W_K": DRAW(size=(5, 2)), "W_V": DRAW(size=(5, 7)),
    "W_O": DRAW(size=(14, 11)), "num_heads": 2, "num_kv_heads": 1, "softcap": 2, "mask": "causal",
}  # fmt: skip
"""A problem that has every stage: n 3, d_model 5, h 2, g 1, d_k 2, d_v 7, d_out 11."""

SHAPES = {
    "Q": (2, 3, 2), "K": (1, 3, 2), "V": (1, 3, 7), "scores": (2, 3, 3), "scaled_scores": (2, 3, 3),
    "capped_scores": (2, 3, 3), "masked_scores": (2, 3, 3), "weights": (2, 3, 3), "outputs": (2, 3, 7),
    "concat": (3, 14), "multihead": (3, 11), "contributions": (2, 3, 11),
}  # fmt: skip


@pytest.fixture(scope="module")
def result():
    problem = Problem(**WHOLE)
    return compute(problem, [stage.name for stage in present(problem)])


def test_one_problem_has_every_stage(result):
    assert list(result) == list(STAGES) == list(SHAPES)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_has_the_shape_that_its_row_says(result, name):
    assert result[name].shape == STAGES[name].shape(result.problem) == SHAPES[name]
    assert STAGES[name].per_head == (len(SHAPES[name]) == 3)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_needs_earlier_ones_alone(name):
    order = list(STAGES)
    needs = [one for need in STAGES[name].needs for one in ((need,) if isinstance(need, str) else need)]
    assert all(order.index(need) < order.index(name) for need in needs)


@pytest.mark.parametrize("name", STAGES)
def test_a_stages_formula_can_be_written_everywhere(result, name):
    equation = captions.equation(result.problem, STAGES[name], None)
    assert STAGES[name].meaning
    for write in (notation.unicode, notation.ascii, notation.latex, notation.mathml):
        assert write(equation).strip()


@pytest.mark.parametrize("format", [name for name, row in FORMATS.items() if row.holds != "stages" or not row.binary])
@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_rendered_in_every_format(result, name, format):
    head = 1 if STAGES[name].per_head else None
    written = io.BytesIO()
    FORMATS[format].write(View(result, Choice((name,), head)), Options(), written)
    first_digits = str(math.trunc(abs(result[name][(0, 1, 0) if head else (1, 0)]) * 10) / 10)
    if format == "npy":
        assert np.load(io.BytesIO(written.getvalue())).shape == SHAPES[name][-2:]
    else:
        assert first_digits in written.getvalue().decode()


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_explained(result, name):
    cell = f"{name}[{'1;' if SHAPES[name][0] > 1 and STAGES[name].per_head else ''}2,1]"
    assert explain(result, cell).value == result[name][(0, 1, 0) if STAGES[name].per_head else (1, 0)]


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_inspected(result, name):
    assert name in [entry.name for entry in shapes(result.problem, list(result)) if not entry.is_input]


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_checked(result, name):
    right = check(result.problem, {name: result[name].tolist()})
    wrong = check(result.problem, {name: np.where(np.isfinite(result[name]), result[name] + 0.7, 0).tolist()})
    assert (right[name].verdict, right.first_wrong) == ("correct", None)
    assert (wrong[name].verdict, wrong.first_wrong) == ("wrong", name)


def test_a_problem_starts_at_the_stages_that_are_keys():
    assert list(STARTS) == [name for name in STAGES if name in KEYS]
    assert (*reversed(SCORES), "weights") == SCORE_LIKE


def test_a_mistake_is_made_at_a_stage():
    assert {mistake.stage for mistake in MISTAKES.values()} <= {*STAGES, ANYWHERE, "Q, K, V"}
