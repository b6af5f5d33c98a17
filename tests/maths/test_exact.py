"""Exact numbers: the forms that a mathematician would write, held to arithmetic with 50 digits (mpmath)."""

from __future__ import annotations

import json
import sys

import mpmath
import numpy as np
import pytest
from evaluating import evaluate, nodes
from test_published import CASES, keys_of
from variants import VARIANTS

from attncli import AttncliError, Problem, compute, load
from attncli.explaining.explain import explain
from attncli.maths.exact import Exact, decimal, parsed
from attncli.model.exact import exact_problem
from attncli.reading.examples import names

mpmath.mp.dps = 50
SMALL = ("plain", "biased", "causal", "added mask", "several masks", "empty row", "mask_fill", "cross", "listed heads",
         "grouped", "columns", "columns, heads", "out_in", "additive, columns", "general", "scale", "softcap", "batch",
         "cached, given", "extra", "from scores", "from weights", "far scores")  # fmt: skip


def reference(keys):
    """One head's outputs with 50 digits, from Q, K, V as decimals: plain loops, apart from the package."""
    Q, K, V = ([[mpmath.mpf(str(x)) for x in row] for row in keys[name]] for name in "QKV")
    scale = mpmath.sqrt(len(K[0]))
    outputs, weights = [], []
    for q in Q:
        powers = [mpmath.exp(sum(a * b for a, b in zip(q, k, strict=True)) / scale) for k in K]
        total = sum(powers)
        weights.append([power / total for power in powers])
        outputs.append([sum(w * v[c] for w, v in zip(weights[-1], V, strict=True)) for c in range(len(V[0]))])
    return weights, outputs


def test_exact_numbers_agree_with_fifty_digits():
    draw = np.random.default_rng(5).normal
    keys = {"Q": draw(size=(2, 3)).round(1), "K": draw(size=(4, 3)).round(1), "V": draw(size=(4, 2)).round(2)}
    result = compute(exact_problem(Problem(**keys)))
    for stage, rows in zip(("weights", "outputs"), reference(keys), strict=True):
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                entry = result[stage][0, i, j]
                assert abs(mpmath.mpf(entry.decimal(45)) - value) < 0.51 * mpmath.mpf(10) ** -45


@pytest.mark.parametrize("name", SMALL)
def test_exact_and_floating_numbers_agree_in_every_variant(name):
    problem = Problem(**VARIANTS[name])
    exact, floats = compute(exact_problem(problem)), compute(problem)
    assert list(exact) == list(floats)
    assert exact.notes == floats.notes
    for stage in floats:
        np.testing.assert_allclose(exact[stage].astype(float), floats[stage], rtol=1e-9, atol=1e-12, err_msg=stage)


@pytest.mark.parametrize("name", [name for name in SMALL if name != "far scores"])  # e^901 is no float
def test_derivations_of_exact_numbers_evaluate_to_their_cells(name):
    result = compute(exact_problem(Problem(**VARIANTS[name])))
    for stage in result:
        tree = explain(result, stage)
        known = {}
        for node in nodes(tree):
            value = np.array(node.value, dtype=float)
            np.testing.assert_allclose(evaluate(node, known=known), value, rtol=1e-9, atol=1e-12)


LARGE = ("transformer-base", "variance")


@pytest.mark.parametrize("name", LARGE)
def test_shipped_examples_that_are_too_large(name):
    with pytest.raises(AttncliError, match="too large for exact work"):
        exact_problem(load(name))


@pytest.mark.parametrize("name", [name for name in names() if name not in LARGE])
def test_shipped_examples(name):
    result, floats = compute(exact_problem(load(name))), compute(load(name))
    for stage in floats:
        np.testing.assert_allclose(result[stage].astype(float), floats[stage].astype(float), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["26-rao-identity", "77-deepml-53-identity", "32-week5-one-query", "64-keras-dot"])
def test_published_examples(name):
    assert name in CASES
    problem = Problem(**keys_of(name))
    exact, floats = compute(exact_problem(problem)), compute(problem)
    np.testing.assert_allclose(exact["weights"].astype(float), floats["weights"], rtol=1e-9)


def test_three_tokens():
    result = compute(exact_problem(load("three-tokens")))
    assert str(result["scores"][0, 0, 2]) == "2"
    assert str(result["scaled_scores"][0, 0, 2]) == "sqrt(2)"
    weight = result["weights"][0, 0, 2]
    assert weight.written() == "exp(sqrt(2))/(2*exp(sqrt(2)/2) + exp(sqrt(2)))"
    assert weight.written("unicode") == "e^√2 / (2e^(√2/2) + e^√2)"
    assert weight.written("latex") == r"\frac{e^{\sqrt{2}}}{2 e^{\frac{\sqrt{2}}{2}} + e^{\sqrt{2}}}"
    assert weight.decimal(4) == "0.5035"
    assert [str(x) for x in result["outputs"][0, 0]] == [
        "(2*exp(sqrt(2)/2) + 2*exp(sqrt(2)))/(2*exp(sqrt(2)/2) + exp(sqrt(2)))",
        "(3*exp(sqrt(2)/2) + 3*exp(sqrt(2)))/(2*exp(sqrt(2)/2) + exp(sqrt(2)))",
    ]


def test_hidden_keys_are_exactly_minus_infinity_and_zero():
    result = compute(exact_problem(load("three-tokens", "mask=causal")))
    assert str(result["masked_scores"][0, 0, 1]) == "-inf"
    assert str(result["weights"][0, 0, 1]) == "0"
    assert str(result["weights"][0, 0, 0]) == "1"


def test_a_query_that_may_attend_to_nothing():
    keys = VARIANTS["empty row"]
    result = compute(exact_problem(Problem(**keys)))
    assert [str(x) for x in result["weights"][0, 1]] == ["0", "0", "0"]
    assert "query 2 may attend to nothing" in result.notes[0]
    assert np.isnan(float(compute(exact_problem(Problem(**keys, empty_rows="nan")))["weights"][0, 1, 0]))
    with pytest.raises(AttncliError, match="query 2 may attend to nothing"):
        compute(exact_problem(Problem(**keys, empty_rows="error")))


def test_numbers_are_taken_as_they_were_written(tmp_path):
    (tmp_path / "p.yaml").write_text(
        "Q: [[0.1, 1/3]]\nK: [[sqrt(2)/2, 3], [1e-1, 0]]\nV: [[1], [0.30]]\nscale: 1/sqrt(3)"
    )
    result = compute(exact_problem(load(tmp_path / "p.yaml")))
    assert [str(x) for x in result["scores"].flat] == ["1 + sqrt(2)/20", "1/100"]
    assert str(result["scaled_scores"].flat[1]) == "sqrt(3)/300"
    assert str(result["V"].flat[1]) == "3/10"


def test_heads_are_taken_as_written_too(tmp_path):
    (tmp_path / "p.yaml").write_text("Z: [[1]]\nheads:\n- {W_Q: [[1/3]], W_K: [[0.1]], W_V: [[sqrt(2)]]}\n")
    result = compute(exact_problem(load(tmp_path / "p.yaml")))
    assert [str(result[stage].flat[0]) for stage in ("Q", "K", "V", "scores")] == ["1/3", "1/10", "sqrt(2)", "1/30"]


def test_floats_of_a_library_call_are_their_shortest_decimals():
    problem = exact_problem(Problem(Q=[[0.1]], K=np.array([[0.1]], dtype=np.float32), score="dot"))
    assert str(compute(problem)["scores"].flat[0]) == "1/100"


@pytest.mark.parametrize(
    ("text", "ascii", "unicode", "latex"),
    [
        ("1/3", "1/3", "1/3", r"\frac{1}{3}"),
        ("-3/4", "-3/4", "−3/4", r"-\frac{3}{4}"),
        ("sqrt(8)", "2*sqrt(2)", "2√2", r"2 \sqrt{2}"),
        ("1/(1 + sqrt(2))", "-1 + sqrt(2)", "−1 + √2", r"-1 + \sqrt{2}"),
        ("2/sqrt(2)", "sqrt(2)", "√2", r"\sqrt{2}"),
        ("1/(1 + e)", "1/(1 + e)", "1 / (1 + e)", r"\frac{1}{1 + e}"),
        ("exp(2)/(exp(2) + exp(2))", "1/2", "1/2", r"\frac{1}{2}"),
        ("exp(-sqrt(2))", "exp(-sqrt(2))", "e^(−√2)", r"e^{-\sqrt{2}}"),
        ("3*ln(2)", "3*ln(2)", "3·ln(2)", r"3 \ln\left(2\right)"),
        ("2^(1/3)", "2^(1/3)", "2^(1/3)", r"2^{\frac{1}{3}}"),
        ("pi/2", "pi/2", "π/2", r"\frac{\pi}{2}"),
        ("3*sqrt(1 + sqrt(2))", "3*sqrt(1 + sqrt(2))", "3√(1 + √2)", r"3 \sqrt{1 + \sqrt{2}}"),
    ],
)
def test_how_a_mathematician_would_write_it(text, ascii, unicode, latex):
    number = parsed(text)
    assert (number.written(), number.written("unicode"), number.written("latex")) == (ascii, unicode, latex)
    assert parsed(number.written()) == number


def test_what_is_written_is_read_back():
    result = compute(exact_problem(load("three-tokens", "mask=causal")))
    for stage in result:
        for number in result[stage].flat:
            again = Exact.of(str(number))
            assert abs(float(again) - float(number)) < 1e-15 or again == number


def test_tanh_of_a_logarithm_is_rational():
    assert str(parsed("ln(2)").tanh()) == "3/5"


@pytest.mark.parametrize(
    ("text", "digits", "expected"),
    [
        ("1/8", 2, "0.12"), ("3/8", 2, "0.38"), ("-1/8", 2, "-0.12"), ("2/3", 0, "1"), ("1/400", 2, "0.00"),
        ("-1/400", 2, "0.00"), ("10", 2, "10.00"), ("sqrt(2)", 30, "1.414213562373095048801688724210"),
        ("exp(-50)", 4, "0.0000"), ("exp(50)", 2, "5184705528587072464087.45"),
        # 0.123450000000000000000000000001: a float would round it down
        ("0.12345 + 1e-30*sqrt(2)", 4, "0.1235"), ("0.12345 - 1e-30*sqrt(2)", 4, "0.1234"),
        ("1 - exp(-100)", 10, "1.0000000000"),
    ],
)  # fmt: skip
def test_every_printed_digit_is_right(text, digits, expected):
    assert decimal(parsed(text).expr, digits) == expected


def test_decimals_at_random_against_mpmath():
    draw = np.random.default_rng(9)
    for _ in range(100):
        a, b, c = (int(x) for x in draw.integers(1, 50, 3))
        text = f"sqrt({a})*exp({b}/10) - {c}/7"
        value = mpmath.sqrt(a) * mpmath.exp(mpmath.mpf(b) / 10) - mpmath.mpf(c) / 7
        digits = int(draw.integers(0, 12))
        assert abs(mpmath.mpf(parsed(text).decimal(digits)) - value) <= mpmath.mpf(10) ** -digits / 2


def test_too_large_says_so_with_the_limit():
    with pytest.raises(AttncliError) as caught:
        exact_problem(Problem(Q=np.ones((21, 2)), K=np.ones((20, 2)), V=np.ones((20, 2))))
    assert str(caught.value) == (
        "too large for exact work: 420 weights and 2520 products\n"
        "  The limit is 400 weights (batch · h · n · m) and 20000 products in all.\n"
        "  Without --exact it is computed in floating point."
    )


def test_rounding_on_the_way_and_exactness_exclude_each_other():
    with pytest.raises(AttncliError, match="exact numbers are not rounded on the way"):
        exact_problem(load("three-tokens", "round=2"))


def test_without_sympy_one_sentence_says_how_to_install_it(monkeypatch, capsys):
    from attncli.cli.app import run

    monkeypatch.setitem(sys.modules, "sympy", None)
    monkeypatch.delitem(sys.modules, "attncli.maths.exact")
    monkeypatch.delitem(sys.modules, "attncli.model.exact", raising=False)
    assert run(["compute", "three-tokens", "--exact"]) == 2
    assert capsys.readouterr().err == (
        "error: --exact needs sympy, which is not installed\n  pip install 'attncli[exact]'\n"
    )


def command(capsys, *words):
    from attncli.cli.app import run

    code = run(list(words))
    sys.stdout.flush()
    out, err = capsys.readouterr()
    assert code == 0, err
    return out


def test_compute_shows_exact_forms_in_tables_and_data(capsys):
    table = command(capsys, "compute", "three-tokens", "--exact", "-s", "scaled_scores,weights")
    assert "√2 ≈ 1.4142" in table
    assert "e^√2 / (2e^(√2/2) + e^√2) ≈ 0.5035" in table
    data = json.loads(command(capsys, "compute", "three-tokens", "--exact", "-f", "json"))
    assert data["scaled_scores"][0][1] == ["sqrt(2)/2", "-sqrt(2)/2", 0]
    assert data["scores"][0][0] == [1, 1, 2]
    latex = command(capsys, "compute", "three-tokens", "--exact", "-f", "latex", "-s", "weights")
    assert r"\frac{e^{\sqrt{2}}}{2 e^{\frac{\sqrt{2}}{2}} + e^{\sqrt{2}}}" in latex
    csv = command(capsys, "compute", "three-tokens", "--exact", "-f", "csv", "-s", "scaled_scores")
    assert csv.splitlines()[1] == "sqrt(2)/2,-sqrt(2)/2,0"


def test_a_number_wider_than_the_screen_is_not_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    table = command(capsys, "compute", "three-tokens", "--exact", "-s", "weights")
    assert "e^(−√2/2) / (1 + e^(−√2/2) + e^(√2/2)) ≈ 0.1400" in table
    assert "…" not in table


def test_explain_shows_exact_steps(capsys):
    assert command(capsys, "explain", "three-tokens", "weights[1,3]", "scaled_scores[1,3]", "--exact") == (
        "weights[1,3] = exp(s̃₁₃) / (exp(s̃₁₁) + exp(s̃₁₂) + exp(s̃₁₃))\n"
        "             = e^√2 / (e^(√2/2) + e^(√2/2) + e^√2)\n"
        "             = e^√2 / (2e^(√2/2) + e^√2)\n"
        "             ≈ 0.5035\n"
        "  query 1 (私), key 3 (猫)\n"
        "  uses scaled_scores[1,1..3]\n\n"
        "scaled_scores[1,3] = s₁₃ / √d_k = 2 / √2 = √2 ≈ 1.4142\n"
        "  query 1 (私), key 3 (猫)\n"
        "  uses scores[1,3]\n"
    )
    tree = json.loads(command(capsys, "explain", "three-tokens", "scaled_scores[1,3]", "--exact", "-f", "json"))
    assert (tree["scaled_scores[1,3]"]["value"], tree["scaled_scores[1,3]"]["decimal"]) == (
        "sqrt(2)", pytest.approx(2**0.5),
    )  # fmt: skip
