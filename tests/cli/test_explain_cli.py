"""The command `explain`, and the options that it shares with `compute`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from attncli.cli.app import run
from attncli.rendering.formats import EXPLANATIONS


@pytest.fixture
def attncli(capsys):
    """Run the program: (exit code, standard output, standard error)."""

    def call(*words):
        code = run(list(words))
        sys.stdout.flush()
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_cells_are_found_among_the_words(attncli):
    code, out, err = attncli("explain", "Q=1 0", "scores[1,2]", "K=3 4; 5 6", "score=dot")
    assert (code, err) == (0, "")
    assert out == "scores[1,2] = q₁ · k₂ = 1·5 + 0·6 = 5\n  uses Q[1,1..2], K[2,1..2]\n"


def test_dots_brackets_and_heads_name_the_same_cell(attncli):
    outputs = [
        attncli("explain", "two-heads", *words)
        for words in (["weights[2;1,3]"], ["weights.2.1.3"], ["weights.1.3", "-H", "2"], ["weights[2;cats,mice]"])
    ]  # fmt: skip
    assert {(code, err) for code, _, err in outputs} == {(0, "")}
    assert len({out for _, out, _ in outputs}) == 1
    assert outputs[0][1].startswith("weights[2;1,3] = exp(s̃⁽²⁾₁₃) / ")


def test_several_cells_and_json(attncli):
    code, out, _ = attncli("explain", "three-tokens", "scores[1,3]", "outputs.1", "-f", "json")
    data = json.loads(out)
    assert code == 0
    assert list(data) == ["scores[1,3]", "outputs[1]"]
    assert data["outputs[1]"]["value"] == pytest.approx([1.5035, 2.2552], abs=1e-4)


def test_the_suffix_picks_the_format(attncli, tmp_path):
    code, out, _ = attncli("explain", "three-tokens", "scores[1,3]", "-o", str(tmp_path / "a.tex"))
    assert (code, out) == (0, "")
    assert r"\begin{align*}" in (tmp_path / "a.tex").read_text()


def test_depth(attncli):
    assert "Q[1,1] = z₁" not in attncli("explain", "three-tokens", "scores[1,3]")[1]
    assert "Q[1,1] = z₁" in attncli("explain", "three-tokens", "scores[1,3]", "--depth", "2")[1]
    assert "Q[1,1] = z₁" in attncli("explain", "three-tokens", "weights[1,3]", "--depth", "all")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["three-tokens"], "error: explain what? No cell is named\n"
         "  Name a cell: weights[1,3], a row: outputs[1], or a stage: scores.\n"),
        (["three-tokens", "weights[1,4]"], "error: weights[1,4]: there is no column 4\n"
         "  There are rows 1 to 3 (私, は, 猫), columns 1 to 3 (私, は, 猫): weights[1,1] to weights[3,3].\n"),
        (["three-tokens", "weights[1,1]", "-H", "2"], "error: there is no head 2\n  The problem has one head: 1.\n"),
        (["three-tokens", "weights[1,1]", "--depth", "0"],
         "error: --depth takes a number of stages, or all; not '0'\n"),
        (["three-tokens", "weights[1,1]", "-f", "csv"], "error: explain has no format 'csv'\n"
         "  The formats are table, json, markdown, latex.\n"),
        (["three-tokens", "wieghts[1,1]"], "error: unknown stage 'wieghts'\n  Did you mean weights?\n"),
        (["three-tokens", "multihead[1,1]"], "error: this problem has no multihead: it has no W_O\n"),
    ],
)  # fmt: skip
def test_a_wrong_usage_says_how_to_mend_it(attncli, words, message):
    code, out, err = attncli("explain", *words)
    assert (code, out) == (2, "")
    assert err.startswith(message)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("weigths.1.2", "unknown stage 'weigths'\n  Did you mean weights?\n"),
        ("weigths(1,2)", "unknown stage 'weigths'\n  Did you mean weights?\n"),
        ("weigths", "unknown stage 'weigths'\n  Did you mean weights?\n"),
        ("A.1.2", "unknown stage 'A'\n  Did you mean weights?\n"),
        ("S", "unknown stage 'S'\n  Did you mean scores?\n"),
        ("O[1]", "unknown stage 'O'\n  Did you mean outputs?\n"),
        ("nosuch.1.2", "unknown stage 'nosuch'\n  The stages are Q, K, V, scores, "),
        ("Z.1.1", "Z is an input, and only cells of stages are explained\n  The stages are Q, K, V, "),
        ("W_Q[1,1]", "W_Q is an input, and only cells of stages are explained\n"),
        ("heads.1.W_Q[1,1]", "heads is an input, and only cells of stages are explained\n"),
        ("mask[1,1]", "mask is a key of the problem, and only cells of stages are explained\n"),
        ("weights(1,2)", "weights(1,2): a cell is written in square brackets\n  Write weights[1,2], or weights.1.2 "),
        ("weights[1", "'weights[1' is no cell\n  A cell is written weights[1,3], "),
    ],
)
def test_a_word_that_was_meant_as_a_cell_is_told_so_beside_others_and_alone(attncli, word, message):
    for beside in ([], ["scores[1,1]"]):
        code, out, err = attncli("explain", "three-tokens", *beside, word)
        assert (code, out) == (2, "")
        assert err.startswith(f"error: {message}")


def test_a_file_that_looks_like_a_cell_is_a_file(attncli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("A.1.2", "weigths"):
        (tmp_path / name).write_text("Q: [[1]]\nK: [[2]]\nscore: dot\n")
        assert attncli("explain", name, "scores[1,1]")[:2] == (
            0,
            "scores[1,1] = q₁ · k₁ = 1·2 = 2\n  uses Q[1,1], K[1,1]\n",
        )


def test_what_a_cell_uses_can_be_explained_as_it_is_printed(attncli):
    _, out, _ = attncli(
        "explain", "three-tokens", "scores[1,3]", "weights[1,3]", "outputs[1]", "V[1..2]", "-f", "table"
    )
    used = [line.removeprefix("  uses ") for line in out.splitlines() if line.startswith("  uses ")]
    assert used == ["Q[1,1..2], K[3,1..2]", "scaled_scores[1,1..3]", "weights[1,1..3], V[1..3]"]
    for word in ", ".join(used).split(", "):
        assert attncli("explain", "three-tokens", word)[::2] == (0, "")
    assert attncli("explain", "three-tokens", "K[1..2,2]")[1] == (
        "K[1,2] = z₁ · column 2 of W^K = 1·1 + 0·(−1) = 1\nK[2,2] = z₂ · column 2 of W^K = 0·1 + 1·(−1) = −1\n"
    )


def test_notes_go_to_standard_error(attncli):
    code, out, err = attncli(
        "explain", "three-tokens", "weights[2,1]", "mask={keep: [[1,1,1],[0,0,0],[1,1,1]]}", "-f", "json"
    )
    assert code == 0
    assert json.loads(out)["weights[2,1]"]["op"] == "empty"
    assert err == "note: query 2 may attend to nothing: its weights and outputs are zeros\n"


def test_work_goes_with_what_can_hold_it(attncli):
    code, _, err = attncli("compute", "three-tokens", "--work", "-f", "json")
    assert code == 2
    assert err == (
        "error: --work goes with table, markdown, latex, not json\n"
        "  attncli explain -f json gives the arithmetic of cells as data.\n"
    )


def test_a_whole_stage_in_markdown(attncli):
    out = attncli("explain", "three-tokens", "scores", "-f", "markdown")[1]
    assert out.count("$$") == 2
    assert r"s_{22} &= q_2 \cdot k_2 = 0 \cdot 1 + 1 \cdot (-1) = -1 \cr" in out


def test_json_and_the_screen_import_no_more_than_they_need():
    code = (
        "import sys; from attncli.cli.app import run; run(['explain', 'three-tokens', 'scores[1,3]', '-f', FORMAT]);"
        "print([name for name in ('rich', 'sympy', 'matplotlib') if name in sys.modules], file=sys.stderr)"
    )
    for format in EXPLANATIONS:
        done = subprocess.run(
            [sys.executable, "-c", code.replace("FORMAT", repr(format))], capture_output=True, text=True, check=True
        )
        assert done.stderr.strip() == "[]", format
