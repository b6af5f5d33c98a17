"""What is written of a derivation. The expected texts were written by hand from the mathematics:

three tokens, d_k = 2; q_1 = (1, 0), k_3 = (2, 0); the first row of the scaled scores is 1/√2, 1/√2, 2/√2, of which the
exponentials are 2.0281, 2.0281, 4.1133 (in sum 8.1695); v = (2, 0), (0, 3), (2, 3).
"""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from showing import HOSTILE
from variants import VARIANTS

from attncli import Problem, compute, load
from attncli.explaining.explain import explain
from attncli.rendering.formats import EXPLANATIONS, Options, Screen
from attncli.rendering.text.derivations import Explained

CELLS = ("scores[1,3]", "weights[1,3]", "outputs[1]")


def written(problem, *cells, format="table", depth=1, width=100, encoding="utf-8", **options):
    result = compute(problem)
    trees = [explain(result, cell, depth=depth) for cell in cells]
    stream = io.BytesIO()
    shown = Explained(problem, trees)
    EXPLANATIONS[format].write(shown, Options(screen=Screen(width, encoding), **options), stream)
    return stream.getvalue().decode(encoding)


TERMINAL = """\
scores[1,3] = q₁ · k₃ = 1·2 + 0·0 = 2
  query 1 (私), key 3 (猫)
  uses Q[1,1..2], K[3,1..2]

weights[1,3] = exp(s̃₁₃) / (exp(s̃₁₁) + exp(s̃₁₂) + exp(s̃₁₃))
             ≈ exp(1.4142) / (exp(0.7071) + exp(0.7071) + exp(1.4142))
             ≈ 4.1133 / (2.0281 + 2.0281 + 4.1133)
             ≈ 4.1133 / 8.1695
             ≈ 0.5035
  query 1 (私), key 3 (猫)
  uses scaled_scores[1,1..3]

outputs[1] = α₁₁ v₁ + α₁₂ v₂ + α₁₃ v₃
           ≈ 0.2483·(2, 0) + 0.2483·(0, 3) + 0.5035·(2, 3)
           ≈ (1.5035, 2.2552)
  query 1 (私)
  uses weights[1,1..3], V[1..3]
"""

MARKDOWN = r"""**`scores[1,3]`**, query 1 (私), key 3 (猫)

$$
\begin{aligned}
s_{13} &= q_1 \cdot k_3 = 1 \cdot 2 + 0 \cdot 0 = 2
\end{aligned}
$$

uses `Q[1,1..2], K[3,1..2]`

**`weights[1,3]`**, query 1 (私), key 3 (猫)

$$
\begin{aligned}
\alpha_{13} &= \frac{e^{\tilde{s}_{13}}}{e^{\tilde{s}_{11}} + e^{\tilde{s}_{12}} + e^{\tilde{s}_{13}}} \approx \frac{e^{1.4142}}{e^{0.7071} + e^{0.7071} + e^{1.4142}} \cr
&\approx \frac{4.1133}{2.0281 + 2.0281 + 4.1133} \approx \frac{4.1133}{8.1695} \approx 0.5035
\end{aligned}
$$

uses `scaled_scores[1,1..3]`

**`outputs[1]`**, query 1 (私)

$$
\begin{aligned}
o_1 &= \alpha_{11} v_1 + \alpha_{12} v_2 + \alpha_{13} v_3 \cr
&\approx 0.2483 \cdot (2, 0) + 0.2483 \cdot (0, 3) + 0.5035 \cdot (2, 3) \cr
&\approx (1.5035, 2.2552)
\end{aligned}
$$

uses `weights[1,1..3], V[1..3]`
"""  # noqa: E501

LATEX = r"""\paragraph{scores[1,{}3]}
\begin{align*}
s_{13} &= q_1 \cdot k_3 = 1 \cdot 2 + 0 \cdot 0 = 2
\end{align*}

\paragraph{weights[1,{}3]}
\begin{align*}
\alpha_{13} &= \frac{e^{\tilde{s}_{13}}}{e^{\tilde{s}_{11}} + e^{\tilde{s}_{12}} + e^{\tilde{s}_{13}}} \approx \frac{e^{1.4142}}{e^{0.7071} + e^{0.7071} + e^{1.4142}} \\
&\approx \frac{4.1133}{2.0281 + 2.0281 + 4.1133} \approx \frac{4.1133}{8.1695} \approx 0.5035
\end{align*}

\paragraph{outputs[1]}
\begin{align*}
o_1 &= \alpha_{11} v_1 + \alpha_{12} v_2 + \alpha_{13} v_3 \\
&\approx 0.2483 \cdot (2, 0) + 0.2483 \cdot (0, 3) + 0.5035 \cdot (2, 3) \\
&\approx (1.5035, 2.2552)
\end{align*}
"""  # noqa: E501


def test_three_tokens_on_the_screen():
    assert written(load("three-tokens"), *CELLS) == TERMINAL


def test_three_tokens_in_markdown():
    assert written(load("three-tokens"), *CELLS, format="markdown") == MARKDOWN


def test_three_tokens_in_latex():
    problem = load("three-tokens").replace(tokens=None)  # words in scripts that pdfLaTeX lacks: see test_work
    assert written(problem, *CELLS, format="latex") == LATEX


NARROW = """\
weights[1,3] = exp(s̃₁₃) / (exp(s̃₁₁)
                 + exp(s̃₁₂) + exp(s̃₁₃))
             ≈ exp(1.4142)
                 / (exp(0.7071)
                 + exp(0.7071)
                 + exp(1.4142))
             ≈ 4.1133 / (2.0281 + 2.0281
                 + 4.1133)
             ≈ 4.1133 / 8.1695
             ≈ 0.5035
  query 1 (私), key 3 (猫)
  uses scaled_scores[1,1..3]
"""


def test_a_narrow_screen_breaks_before_signs_and_cuts_nothing():
    assert written(load("three-tokens"), "weights[1,3]", width=40) == NARROW


@pytest.mark.parametrize("width", [20, 40, 60])
@pytest.mark.parametrize("name", ["plain", "biased", "softcap", "heads", "additive", "general", "several masks"])
def test_no_width_loses_a_number(name, width):
    problem = Problem(**VARIANTS[name])
    last = "outputs" if "V" in problem.keys or "W_V" in problem.keys else "weights"
    texts = [written(problem, "scores", last, depth=None, width=each).split() for each in (width, 100_000)]
    assert "".join(texts[0]) == "".join(texts[1])


@pytest.mark.parametrize(
    ("name", "cell", "expected"),
    [
        ("causal", "masked_scores[1,3]", "masked_scores[1,3] = −∞   query 1 may not attend to key 3 (mask: causal)"),
        ("mask_fill", "masked_scores[1,3]",
         "masked_scores[1,3] = −1000000000   query 1 may not attend to key 3 (mask: causal)"),
        ("several masks", "masked_scores[4,3]",
         "masked_scores[4,3] = −∞   query 4 may not attend to key 3 (mask: keep)"),
        ("from weights", "weights[1,2]", "weights[1,2] = 0.5   given"),
        ("empty row", "weights[2,1]", "weights[2,1] = 0   query 2 may attend to nothing: its weights are zeros"),
        ("empty row, NaN", "weights[2,1]", "weights[2,1] = NaN   query 2 may attend to nothing: its weights are NaN"),
        ("listed heads", "concat[1,6]", "concat[1,6] = o⁽²⁾₁₂ ≈ "),
        ("cached", "K[1;1,2]", "K[1;1,2] = past_K[1,2] = "),
        ("extra", "V[2;4,1]", "V[2;4,1] = extra_V[1,5] = "),
        ("scale", "scaled_scores[1,1]", "scaled_scores[1,1] = scale·s₁₁ ≈ 0.25·("),
        ("additive", "scores[1,3]", "scores[1,3] = vᵀ tanh(q₁ W_1 + k₃ W_2 + b)"),
        ("additive, columns", "scores[3,1]", "scores[3,1] = vᵀ tanh(W_1 q₁ + W_2 k₃)"),
        ("general", "scores[1,3]", "scores[1,3] = q₁ W_a k₃ᵀ"),
        ("columns", "scores[3,1]", "scores[3,1] = k₃ · q₁ = "),
        ("columns", "V[2,1]", "V[2,1] = row 2 of W^V · x₁ + b₂"),
        ("columns", "outputs[2]", "outputs[2] = α₁₂ v₁ + α₂₂ v₂ + α₃₂ v₃"),
        ("out_in", "Q[1,2]", "Q[1,2] = z₁ · row 2 of W^Q"),
        ("heads", "K[2;3,1]", "K[2;3,1] = z₃ · column 1 of W_2^K + b₁"),
        ("heads", "multihead[1,3]", "multihead[1,3] = row 1 of Concat · column 3 of W^O + b₃"),
        ("heads", "contributions[2;1,3]", "contributions[2;1,3] = o⁽²⁾₁ · column 3 of W_2^O"),
        ("cross", "K[4,1]", "K[4,1] = m₄ · column 1 of W^K + b₁"),
        ("softcap", "capped_scores[1,3]", "capped_scores[1,3] = c tanh(s̃₁₃ / c)"),
        ("added mask", "masked_scores[1,2]", "masked_scores[1,2] = s̃₁₂ + mask ≈ "),
    ],
)  # fmt: skip
def test_every_kind_of_step_in_its_own_symbols(name, cell, expected):
    text = written(Problem(**VARIANTS[name]), cell, width=200)
    assert " ".join(text.split()).startswith(" ".join(expected.split())), text


def test_equality_signs_tell_what_is_shown_in_full():
    problem = Problem(scores=[[3, 1]], score="dot", softcap=2)
    assert written(problem, "capped_scores[1,1]") == (
        "capped_scores[1,1] = c tanh(s₁₁ / c) = 2·tanh(3 / 2) = 2·tanh(1.5) ≈ 2·0.9051 ≈ 1.8103\n  uses scores[1,1]\n"
    )


def test_negative_numbers_stand_in_parentheses_and_sums_take_their_sign():
    problem = Problem(Z=[[-1, 2]], W_Q=[[3], [-4]], b_Q=[-5], W_K=[[1], [1]], W_V=[[1], [1]])
    assert written(problem, "Q[1,1]") == ("Q[1,1] = z₁ · column 1 of W^Q + b₁ = (−1)·3 + 2·(−4) − 5 = −16\n")


def test_scores_far_from_zero_are_shifted_and_that_is_said():
    text = written(Problem(**VARIANTS["far scores"]), "weights[1,2]")
    assert "= exp(601 − 901) / (exp(901 − 901) + exp(601 − 901) + exp(305 − 901))" in text
    assert "the row's largest score is subtracted first, which changes nothing" in text
    assert "≈ (5.1482·10⁻¹³¹) / 1" in text  # e^-300


LONG = Problem(Q=[[1.0] * 12], K=[list(range(1, 13))], score="dot")


def test_a_long_sum_is_shortened_in_the_middle_and_says_so():
    assert written(LONG, "scores[1,1]") == (
        "scores[1,1] = q₁ · k₁ = 1·1 + 1·2 + 1·3 + 1·4 + … 6 more … + 1·11 + 1·12 = 78\n"
        "  uses Q[1,1..12], K[1,1..12]\n\n"
        "(… stands for terms left out; --full shows all)\n"
    )
    full = written(LONG, "scores[1,1]", full=True)
    assert "1·5 + 1·6 + 1·7 + 1·8 + 1·9 + 1·10 +" in " ".join(full.split())
    assert "left out" not in full
    assert r"\cdots\text{ 6 more }\cdots" in written(LONG, "scores[1,1]", format="latex")
    assert "`--full` shows all" in written(LONG, "scores[1,1]", format="markdown")


def test_digits():
    assert "≈ 1.41\n" in written(load("three-tokens"), "scaled_scores[1,3]", digits=2)


def test_a_whole_stage_has_a_line_a_cell():
    lines = written(load("three-tokens"), "scores").splitlines()
    assert len(lines) == 9
    assert lines[4] == "scores[2,2] = q₂ · k₂ = 0·1 + 1·(−1) = −1"


def test_depth_follows_the_cells_back_last_stage_first():
    text = written(load("three-tokens"), "scores[1,3]", depth=2)
    assert text.splitlines()[4:] == [
        "K[3,1] = z₃ · column 1 of W^K = 1·1 + 1·1 = 2",
        "K[3,2] = z₃ · column 2 of W^K = 1·1 + 1·(−1) = 0",
        "",
        "Q[1,1] = z₁ · column 1 of W^Q = 1·1 + 0·0 = 1",
        "Q[1,2] = z₁ · column 2 of W^Q = 1·0 + 0·1 = 0",
    ]
    whole = written(load("three-tokens"), "weights[1,3]", depth=None)
    order = [line.split("[")[0] for line in whole.splitlines() if line[:1].isalpha()]
    assert list(dict.fromkeys(order)) == ["weights", "scaled_scores", "scores", "K", "Q"]


def test_a_terminal_without_unicode_gets_ascii():
    text = written(load("three-tokens").replace(tokens=None), "weights[1,3]", "scaled_scores[1,3]", encoding="ascii")
    assert text.isascii()
    assert "scaled_scores[1,3] = s_13 / sqrt(d_k) = 2 / sqrt(2) ~= 2 / 1.4142 ~= 1.4142" in text


def test_json_is_the_tree():
    data = json.loads(written(load("three-tokens", "mask=causal"), "scores[1,3]", "masked_scores[1,2]", format="json"))
    product = {"op": "product", "value": 2.0, "operands": [
        {"op": "cell", "value": 1.0, "cell": "Q[1,1]", "symbol": "q₁₁"},
        {"op": "cell", "value": 2.0, "cell": "K[3,1]", "symbol": "k₃₁"},
    ]}  # fmt: skip
    assert data["scores[1,3]"]["operands"][0] == product
    assert {name: data["scores[1,3]"][name] for name in ("op", "value", "cell", "symbol", "formula")} == {
        "op": "sum", "value": 2.0, "cell": "scores[1,3]", "symbol": "s₁₃", "formula": "q₁ · k₃",
    }  # fmt: skip
    assert data["masked_scores[1,2]"]["value"] == "-inf"


def test_a_tree_too_large_for_json_is_refused():
    from attncli import AttncliError

    problem = Problem(Z=np.ones((64, 8)), W_Q=np.ones((8, 8)), W_K=np.ones((8, 8)), W_V=np.ones((8, 8)))
    assert written(problem, "outputs[1]", depth=None).count("\n") > 64
    with pytest.raises(AttncliError, match="more than 1000000 entries"):
        written(problem, "outputs[1]", depth=None, format="json")


@pytest.mark.parametrize("format", EXPLANATIONS)
def test_hostile_labels_stay_labels(format):
    n = len(HOSTILE)
    problem = Problem(tokens=list(HOSTILE), Q=np.eye(n), K=np.eye(n), V=np.eye(n), mask="causal")
    text = written(problem, *(f"masked_scores[{i},{n}]" for i in range(1, n)), format=format)
    assert "\x1b" not in text.replace("\\u001b", "")
    assert "\u202e" not in text or format == "json"
    if format == "markdown":
        assert "<script>" not in text.replace("\\<", "")
    if format == "latex":
        assert r"\input{x}" not in text
