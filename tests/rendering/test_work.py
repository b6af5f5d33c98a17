"""The worked solution: every stage, in tables, Markdown, and LaTeX that compiles."""

from __future__ import annotations

import io
import re
import shutil
import subprocess

import numpy as np
import pytest
from tex import body_of, check_structure
from variants import VARIANTS

from attncli import Problem, compute, load
from attncli.explaining.explain import explain
from attncli.model.exact import exact_problem
from attncli.reading.examples import names
from attncli.rendering.formats import FORMATS, Options, Screen
from attncli.rendering.text import derivations, equations
from attncli.rendering.views import View, choose

SMALL = [name for name in names() if name != "transformer-base"]


def work(problem, format="table", stages=None, width=100, **options):
    choice = choose(problem, stages)
    result = compute(problem, choice.stages)
    stream = io.BytesIO()
    options = Options(work=True, screen=Screen(width), **options)
    FORMATS[format].write(View(result, choice), options, stream)
    return stream.getvalue().decode()


WORKED = """\
scaled_scores   S̃ = S / √d_k   3 × 3 (n × m), rows: queries, columns: keys
         1 私     2 は    3 猫
───────────────────────────────
 1 私  0.7071   0.7071  1.4142
 2 は  0.7071  -0.7071  0
 3 猫  1.4142   0       1.4142

  scaled_scores[1,1] = s₁₁ / √d_k = 1 / √2 ≈ 1 / 1.4142 ≈ 0.7071
  scaled_scores[1,2] = s₁₂ / √d_k = 1 / √2 ≈ 1 / 1.4142 ≈ 0.7071
  scaled_scores[1,3] = s₁₃ / √d_k = 2 / √2 ≈ 2 / 1.4142 ≈ 1.4142
  scaled_scores[2,1] = s₂₁ / √d_k = 1 / √2 ≈ 1 / 1.4142 ≈ 0.7071
  scaled_scores[2,2] = s₂₂ / √d_k = −1 / √2 ≈ −1 / 1.4142 ≈ −0.7071
  scaled_scores[2,3] = s₂₃ / √d_k = 0 / √2 ≈ 0 / 1.4142 ≈ 0
  scaled_scores[3,1] = s₃₁ / √d_k = 2 / √2 ≈ 2 / 1.4142 ≈ 1.4142
  scaled_scores[3,2] = s₃₂ / √d_k = 0 / √2 ≈ 0 / 1.4142 ≈ 0
  scaled_scores[3,3] = s₃₃ / √d_k = 2 / √2 ≈ 2 / 1.4142 ≈ 1.4142
"""


def test_each_stage_s_arithmetic_stands_below_its_table():
    assert work(load("three-tokens"), stages=["scaled_scores"]).partition("\n\n")[2] == WORKED


def test_every_cell_of_a_small_problem_is_worked():
    text = work(load("three-tokens", "mask=causal"))
    result = compute(load("three-tokens", "mask=causal"))
    for stage in result:
        for i, j in np.ndindex(result[stage].shape[-2:]):
            name = f"{stage}[{i + 1}]" if stage == "outputs" else f"{stage}[{i + 1},{j + 1}]"
            assert f"  {name} =" in text, name
    assert "go the same way" not in text


LARGE = Problem(Z=np.arange(35.0).reshape(7, 5) / 10, W_Q=np.eye(5), W_K=np.eye(5), W_V=np.eye(5), mask="causal")


def test_one_row_of_a_larger_problem_is_worked_and_that_is_said():
    """The last row under a mask, which hides least there."""
    text = work(LARGE)
    assert re.findall(r"^  weights\[(\d),(\d)\] =", text, re.MULTILINE) == [("7", str(j)) for j in range(1, 8)]
    assert "(weights[7] is worked here; the other 6 rows go the same way; --full works all)" in text
    full = work(LARGE, full=True)
    assert len(re.findall(r"^  weights\[\d,\d\] =", full, re.MULTILINE)) == 49
    assert "go the same way" not in full


def test_of_a_very_long_row_the_first_cells_are_worked():
    text = work(load("transformer-base"), stages=["Q"])
    assert len(re.findall(r"^  Q\[1;1,\d\] =", text, re.MULTILINE)) == 8
    assert "8 of the 3584 cells are worked here" in text  # 8 heads, 7 rows, 64 columns
    assert "… 506 more …" in text


def test_given_stages_have_no_work():
    text = work(Problem(weights=[[0.5, 0.5]], V=[[1], [3]]))
    assert "  outputs[1] = α₁₁ v₁ + α₁₂ v₂ = 0.5·1 + 0.5·3 = 2" in text
    assert "weights[1," not in text


def test_markdown_has_the_formulas_below_each_table():
    text = work(load("three-tokens"), "markdown")
    below = text.partition("## weights")[2].partition("## outputs")[0]
    assert "| 私 | 0.2483 | 0.2483 | 0.5035 |" in below
    assert below.count("$$") == 2
    assert r"\alpha_{13} &= \frac{e^{\tilde{s}_{13}}}" in below
    assert not re.search(r"\\[^a-zA-Z]", re.sub(r"[^$]*?\$\$\n(.*?)\n\$\$|.+", r"\1", below, flags=re.DOTALL))


# LaTeX that compiles


def exactly(problem):
    from attncli import AttncliError

    try:
        return exact_problem(problem)
    except AttncliError:  # too large, or rounds on the way
        return problem


@pytest.mark.parametrize("name", [*names(), *VARIANTS])
def test_the_structure_of_latex(name):
    problem = Problem(**VARIANTS[name]) if name in VARIANTS else load(name)
    text = body_of(work(problem, "latex"))
    check_structure(text)
    assert text.count("\\begin{align*}") >= (0 if name.startswith("from outputs") else 1)
    assert "≈" not in text
    assert "·" not in text
    assert "−" not in text


@pytest.mark.parametrize("name", ["three-tokens", "two-heads", "columns", "additive", "padding", "library"])
def test_the_structure_of_exact_latex(name):
    check_structure(body_of(work(exactly(load(name)), "latex")))


ENGINE = next((engine for engine in ("pdflatex", "lualatex", "xelatex") if shutil.which(engine)), None)
needs_engine = pytest.mark.skipif(ENGINE is None, reason="no LaTeX engine is installed")


def compiled(folder, text):
    (folder / "work.tex").write_text(text, encoding="utf-8")
    command = [ENGINE, "-interaction=nonstopmode", "-halt-on-error", "work.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    log = (folder / "work.log").read_text("utf-8", errors="replace")
    assert "Overfull" not in log, re.findall("Overfull.*", log)


@needs_engine
@pytest.mark.parametrize("name", ["three-tokens", "transformer-base", "two-heads", "columns", "decoding-step"])
def test_a_worked_solution_compiles(name, tmp_path):
    compiled(tmp_path, work(load(name), "latex", standalone=True))


@needs_engine
@pytest.mark.parametrize("name", ["several masks", "additive", "general", "softcap", "far scores", "empty row, NaN",
                                  "rounded", "cached", "batch, heads"])  # fmt: skip
def test_every_kind_of_step_compiles(name, tmp_path):
    compiled(tmp_path, work(Problem(**VARIANTS[name]), "latex", standalone=True))


@needs_engine
@pytest.mark.parametrize("name", ["three-tokens", "additive", "columns"])
def test_exact_solutions_compile(name, tmp_path):
    compiled(tmp_path, work(exactly(load(name)), "latex", standalone=True))


@needs_engine
def test_explanations_of_cells_compile(tmp_path):
    problem = load("three-tokens", "mask=causal")
    result = compute(problem)
    cells = ("masked_scores[1,3]", "weights[2,1]", "outputs[3]", "scores")
    shown = derivations.Explained(problem, [explain(result, cell, depth=None) for cell in cells])
    stream = io.BytesIO()
    equations.latex(shown, Options(standalone=True), stream)
    compiled(tmp_path, stream.getvalue().decode())
