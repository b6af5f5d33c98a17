"""The table of stages, walked, so that no half of a row passes: each is made, shown, explained, inspected, checked."""

from __future__ import annotations

import io
import math
import re

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


NUMBER = re.compile(r"[-−]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|∞|inf|\\infty)")

ENTRIES = {
    "table": r"^ \d+ +(.*)$", "markdown": r"^\| \d+ \| (.*) \|$", "latex": r"^  (.*)$", "json": r"\[(-?[\d\"][^]]*)\]",
    "yaml": r"\[([^]]*)\]", "csv": r"^(.*)$", "tsv": r"^(.*)$", "long": r",([^,]*\d|[^,]*inf)$",
    "html": r"<td id=[^>]*>([^<]*)</td>", "svg": r"<title>[^<]*\] = ([^<]*)</title>",
}  # fmt: skip
"""Where the entries of a matrix stand in a format, a row or a cell each: not its heading, nor what counts its rows."""

WHOLE_NUMBERS = ("json", "yaml", "csv", "tsv", "long")
"""Formats for programs: each number as it is, to the last bit."""


def entries(text: str, format: str) -> list[float]:
    text = re.sub(r"\\phantom\{.\}", "", text)
    rows = re.findall(ENTRIES[format], text, re.MULTILINE)
    found = [re.sub(r"∞|\\infty", "inf", number) for row in rows for number in NUMBER.findall(row)]
    return [float(number.replace("−", "-")) for number in found]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("table", "A, head 1 of 2\n    1   2\n───\n 1  -0.25  −∞"),
        ("latex", "2 \\times 3\n  \\phantom{-}-0.25 & -\\infty \\\\"),
        ("long", "stage,head,row,column,value\nweights,1,1,1,-0.25\nweights,1,1,2,-inf"),
    ],
)
def test_the_entries_of_a_format_are_seen(format, text):
    assert entries(text, format) == [-0.25, -math.inf]


@pytest.mark.parametrize("format", [name for name, row in FORMATS.items() if not row.binary])
@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_rendered_in_every_format_with_each_of_its_numbers(result, name, format):
    head = 1 if STAGES[name].per_head else None
    written = io.BytesIO()
    FORMATS[format].write(View(result, Choice((name,), head)), Options(full=True), written)
    found = entries(written.getvalue().decode(), format)
    matrix = (result[name][0] if head else result[name]).ravel()
    if format in WHOLE_NUMBERS:
        assert found == matrix.tolist()
    else:
        np.testing.assert_allclose(found, matrix, rtol=0, atol=0.5000001e-4)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_stored_in_npy_to_the_last_bit(result, name):
    head = 1 if STAGES[name].per_head else None
    written = io.BytesIO()
    FORMATS["npy"].write(View(result, Choice((name,), head)), Options(), written)
    stored = np.load(io.BytesIO(written.getvalue()))
    assert stored.shape == SHAPES[name][-2:]
    np.testing.assert_array_equal(stored, result[name][0] if head else result[name])


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
