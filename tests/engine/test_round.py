"""Rounding on the way, as on paper. The published numbers are those that their authors rounded while they computed."""

from __future__ import annotations

import io

import numpy as np
import pytest
from test_published import keys_of, printed

from attncli import AttncliError, Problem, compute, load
from attncli.explaining.explain import explain
from attncli.maths.ops import rounded
from attncli.rendering.formats import FORMATS, Options
from attncli.rendering.text.arithmetic import Words, steps
from attncli.rendering.views import View, choose


def as_printed(array, texts):
    """The numbers, each with as many decimals as its printed text has."""
    return [f"{x:.{len(text.partition('.')[2])}f}" for x, text in zip(array.ravel(), texts.ravel(), strict=True)]


def wanted(texts):
    return [f"{float(text):.{len(text.partition('.')[2])}f}" for text in texts.ravel()]


@pytest.mark.parametrize(
    ("name", "round", "stages"),
    [
        ("74-silanm-hand-rounded", {"weights": 2}, ("Q", "K", "V", "outputs", "concat")),
        ("31-dmol-sleepy-child", {"weights": 2}, ("weights", "outputs")),
    ],
)
def test_published_examples_that_round_the_weights_digit_by_digit(name, round, stages):
    result = compute(Problem(**keys_of(name), round=round))
    for stage in stages:
        texts = printed(name)[stage]
        assert as_printed(result[stage], texts) == wanted(texts), stage


def test_the_hand_rounded_weights_are_those_of_the_source():
    weights = compute(Problem(**keys_of("74-silanm-hand-rounded"), round={"weights": 2}))["weights"]
    assert weights[1].tolist() == [[0.11, 0.79, 0.11], [0.05, 0.91, 0.05], [0.45, 0.1, 0.45]]


def test_a_published_mistake_is_followed_from_the_weights_as_printed():
    """86: the weights are wrong, the outputs are computed from them as printed, to 2 decimals."""
    name = "86-i-love-dogs-row"
    weights = printed(name)["weights"].astype(float)
    problem = Problem(weights=weights, V=keys_of(name)["V"])
    texts = printed(name)["outputs"]
    assert as_printed(compute(problem)["outputs"], texts) == wanted(texts)


def test_every_stage_is_rounded_before_the_next_one_uses_it():
    """By hand, to 2 decimals: 1/√2 = 0.71, √2 = 1.41; e^0.71 = 2.0340, e^1.41 = 4.0960, in sum 8.1639."""
    result = compute(load("three-tokens", "round=2"))
    assert result["scaled_scores"][0, 0].tolist() == [0.71, 0.71, 1.41]
    assert result["weights"][0, 0].tolist() == [0.25, 0.25, 0.5]
    assert result["outputs"][0, 0].tolist() == [1.5, 2.25]


def test_ties_go_away_from_zero_or_to_even():
    numbers = np.array([0.125, -0.125, 0.285, 2.675, 0.5, 1.5, -0.0])
    assert rounded(numbers, 2).tolist() == [0.13, -0.13, 0.29, 2.68, 0.5, 1.5, 0.0]
    assert rounded(numbers, 2, "half_even").tolist() == [0.12, -0.12, 0.28, 2.68, 0.5, 1.5, 0.0]
    keys = {"scores": [[0.25, 0.75]], "scale": 1, "round": 1}
    assert compute(Problem(**keys))["scaled_scores"][0].tolist() == [[0.3, 0.8]]
    assert compute(Problem(**keys, rounding="half_even"))["scaled_scores"][0].tolist() == [[0.2, 0.8]]


def test_compute_says_how_far_the_last_stage_is_from_unrounded():
    result = compute(load("three-tokens", "round=2"))
    off = np.abs(result["outputs"] - compute(load("three-tokens"))["outputs"]).max()
    assert result.notes == (
        f"rounded on the way (every stage to 2 decimals): the outputs differ from unrounded ones by at most {off:.2g}",
    )
    assert f"{off:.2g}" == "0.017"  # 1.8 for 1.7832, 1.68 for 1.6626
    assert compute(load("three-tokens", "round={weights: 1}"), ["scores"]).notes == (
        "rounded on the way (weights to 1 decimal): the scores are what they are unrounded",
    )


def test_explain_shows_the_numbers_that_were_used():
    result = compute(load("three-tokens", "round=2"))
    lines = [f"{step.sign} {step.text}" for step in steps(explain(result, "weights[1,3]"), Words())]
    assert lines == [
        "= exp(s̃₁₃) / (exp(s̃₁₁) + exp(s̃₁₂) + exp(s̃₁₃))",
        "= exp(1.41) / (exp(0.71) + exp(0.71) + exp(1.41))",
        "≈ 4.0960 / (2.0340 + 2.0340 + 4.0960)",
        "≈ 4.0960 / 8.1639",
        "≈ 0.5017",
        "≈ 0.50",
    ]
    last = [f"{step.sign} {step.text}" for step in steps(explain(result, "outputs[1]"), Words())]
    assert last[1:] == ["= 0.25·(2, 0) + 0.25·(0, 3) + 0.5·(2, 3)", "= (1.50, 2.25)"]


def test_given_stages_are_not_rounded():
    result = compute(Problem(weights=[[0.125, 0.875]], V=[[1.0], [2.0]], round=1))
    assert result["weights"][0].tolist() == [[0.125, 0.875]]
    assert result["outputs"][0].tolist() == [[1.9]]


@pytest.mark.parametrize(
    ("round", "words"),
    [({"weight": 2}, "unknown key 'weight'"), ({}, "round names no stage"), (-1, "round"),
     ({"weights": 0.5}, "weights"),
     (2.5, "round")],
)  # fmt: skip
def test_a_senseless_round(round, words):
    with pytest.raises(AttncliError, match=words):
        Problem(Q=[[1]], K=[[1]], round=round)


@pytest.mark.parametrize(
    ("option", "expected"),
    [("2", [0.25, 0.25, 0.5]), ("weights=1", [0.2, 0.2, 0.5]), ("weights=2,outputs=0", [0.25, 0.25, 0.5])],
)
def test_the_option(capsys, option, expected):
    import json

    from attncli.cli.app import run

    assert run(["compute", "three-tokens", "-s", "weights", "-f", "json", "--round", option]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["weights"][0][0] == expected
    assert err.startswith("note: rounded on the way (")


def test_a_senseless_option(capsys):
    from attncli.cli.app import run

    assert run(["compute", "three-tokens", "--round", "two"]) == 2
    assert capsys.readouterr().err == (
        "error: --round takes a number of decimals, not 'two'\n"
        "  Write --round 2, or --round weights=2 for one stage alone.\n"
    )


@pytest.mark.parametrize("format", ["table", "markdown", "latex", "html"])
def test_rounded_stages_are_shown_with_the_decimals_that_they_are_rounded_to(format):
    result = compute(load("three-tokens", "round={weights: 2, outputs: 5}"))  # weights of query 1: 0.25, 0.25, 0.50
    stream = io.BytesIO()
    FORMATS[format].write(View(result, choose(result.problem, ["scaled_scores", "weights"])), Options(), stream)
    text = stream.getvalue().decode()
    assert "0.7071" in text
    assert "0.50" in text
    assert "0.500" not in text
    stream = io.BytesIO()
    FORMATS[format].write(View(result, choose(result.problem, ["weights"])), Options(digits=3), stream)
    assert "0.500" in stream.getvalue().decode()
