"""LaTeX: strictly checked always, and compiled where an engine is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import showing
from hypothesis import given
from hypothesis import strategies as st
from tex import body_of, check_structure

import attncli
from attncli.rendering.documents.latex import latex, pmatrix
from attncli.rendering.text.tex import document, escaped
from attncli.rendering.text.writeup import sections
from attncli.rendering.views import View


def matrices(text: str) -> list[np.ndarray]:
    """The numbers of each pmatrix."""
    found = []
    for inner in re.findall(r"\\begin\{pmatrix\}(.*?)\\end\{pmatrix\}", text, re.S):
        plain = re.sub(r"\\phantom\{[^}]*\}|[{}]", "", inner).replace("-\\infty", "-inf")
        found.append(np.array([[float(cell) for cell in line.split("&")] for line in plain.split("\\\\")]))
    return found


@pytest.mark.parametrize("name", showing.PROBLEMS)
@pytest.mark.parametrize("standalone", [True, False])
def test_structure_and_numbers(name: str, standalone: bool) -> None:
    view = showing.view(showing.PROBLEMS[name]())
    text = latex(view, digits=5, full=True, standalone=standalone)
    check_structure(body_of(text))
    sheets = [sheet for section in sections(view, full=True) for sheet in section.sheets]
    found = matrices(text)
    assert len(found) == len(sheets) > 5
    for numbers, sheet in zip(found, sheets, strict=True):
        np.testing.assert_allclose(numbers, sheet.array, atol=5.1e-6, rtol=0)


def test_the_known_weights() -> None:
    text = latex(showing.view(showing.three_tokens(), "weights"))
    assert "  0.2483 & 0.2483 & 0.5035 \\\\\n" in text
    assert r"$A = \operatorname{softmax}(\tilde{S}) \text{ along each row}$" in text
    assert r'\attnword{猫}{U+732B}{"732B}' in text


def test_points_stand_below_each_other() -> None:
    lines = pmatrix(np.array([[1.5], [-0.25], [-12.25], [-np.inf]]), 2).split("\n")[1:-1]
    assert lines == [r"  \phantom{-1}1.50 \\", r"  \phantom{0}{-0.25} \\", r"  -12.25 \\", r"  -\infty"]


@given(st.text())
def test_any_label_is_text(label: str) -> None:
    check_structure(escaped(label).replace(r"\textbackslash{}", ""))


def test_escapes_are_the_signs_themselves() -> None:
    assert escaped(r"a_b & 50% of {x} # $y^2$ \input") == (
        r"a\_b \& 50\% of \{x\} \# \$y\textasciicircum{}2\$ \textbackslash{}input"
    )
    assert escaped("café −∞ naïve--") == r"café $-$$\infty$ naïve-{}-{}"
    assert escaped("e² ≈ h₁ Kᵀ") == r"e$^2$ $\approx$ h$_1$ K$^T$"
    assert escaped("ab 猫の") == r'ab \attnword{猫の}{U+732B U+306E}{"732B}'


def test_long_matrices_are_shortened_and_that_is_said() -> None:
    view = showing.view(showing.long(), "scores")
    assert r"\vdots & \vdots" in latex(view)
    assert r"\cdots" in latex(view)
    assert "(rows 12 to 39 of 50 are left out, columns 5 to 66 of 70 are left out.)" in latex(view)
    assert "left out" not in latex(view, full=True)
    assert r"\setcounter{MaxMatrixCols}{70}" in latex(view, full=True)


# With an engine


@pytest.fixture(scope="module")
def pdflatex() -> str:
    engine = shutil.which("pdflatex")
    if engine is None:
        pytest.skip("no pdflatex here (Debian: texlive-latex-base)")
    return engine


@pytest.mark.parametrize(("name", "package"), [("xelatex", "fontspec.sty"), ("lualatex", "luaotfload.sty")])
def test_unicode_engines_compile_it_too(tmp_path: Path, name: str, package: str) -> None:
    engine, finder = shutil.which(name), shutil.which("kpsewhich")
    if engine is None or finder is None:
        pytest.skip(f"no {name} here (Debian: texlive-xetex, texlive-luatex)")
    if not subprocess.run([finder, package], capture_output=True, check=False).stdout.strip():
        pytest.skip(f"no {package} here (Debian: texlive-latex-recommended, texlive-luatex)")
    compiled(engine, latex(showing.view(showing.hostile()), standalone=True), tmp_path)


def compiled(engine: str, text: str, folder: Path) -> str:
    (folder / "page.tex").write_text(text, encoding="utf-8")
    command = [engine, "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    run = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = run.stdout.decode("utf-8", "replace")
    assert run.returncode == 0, log[-2000:]
    assert (folder / "page.pdf").read_bytes().startswith(b"%PDF-")
    return log


@pytest.mark.parametrize("name", [*showing.PROBLEMS, "long"])
def test_a_standalone_document_compiles(pdflatex: str, tmp_path: Path, name: str) -> None:
    problem = showing.PROBLEMS.get(name, showing.long)()
    log = compiled(pdflatex, latex(View(attncli.compute(problem)), standalone=True), tmp_path)
    assert "Overfull" not in log or name == "hostile", log


def test_a_fragment_compiles_in_a_document_of_ones_own(pdflatex: str, tmp_path: Path) -> None:
    fragment = latex(showing.view(showing.three_tokens(mask="causal")))
    text = f"\\documentclass{{article}}\n\\usepackage{{amsmath}}\n\\begin{{document}}\n{fragment}\\end{{document}}\n"
    compiled(pdflatex, text, tmp_path)


def test_every_sign_compiles(pdflatex: str, tmp_path: Path) -> None:
    signs = [chr(code) for code in [*range(0x20, 0x180), *range(0x2010, 0x2040), 0x2212, 0x221E, 0x1F469, 0x200D]]
    body = "\n\n".join(escaped(f"a{sign}b") for sign in signs)
    compiled(pdflatex, document(body, standalone=True), tmp_path)
