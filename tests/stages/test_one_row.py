"""A stage is one row and one op: one that is added here, and nowhere else, is computed, explained, checked, shown."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from running import run

from attncli.maths.derivation import node
from attncli.stages.ops import Op
from attncli.stages.table import STAGES, Stage


class Residual(Op):
    """Z + MultiHead(Z)."""

    def forward(self, x, v):
        return x.arrays["Z"] + v["multihead"]

    def entry(self, x, at, cells):
        return node("sum", cells.entry("Z", at.batch, at.i, at.j), cells.cell("multihead", at))

    def formula(self, x, needs):
        return "X + MultiHead(X)" if x.columns else "Z + MultiHead(Z)"


residual = Residual()

ROW = Stage(
    "residual", "R", "r", "the input added back", ("n", "d_model"), ("multihead",), f"{__name__}:residual",
    absent=lambda x: "" if x.Z is not None and x.d_model == x.d_out else "it has no Z to add",
    aliases=("skip",),
)  # fmt: skip

PROBLEM = (
    "Z=1 0; 0 1; 1 1", "W_Q=1 0; 0 1", "W_K=1 1; 1 -1", "W_V=2 0; 0 3", "W_O=1 0; 0 1",
)  # fmt: skip
MULTIHEAD = [[1.5035, 2.2552], [1.7199, 1.2721], [1.7832, 1.6626]]
"""The outputs that the README prints, since W_O is the identity here; the residual is one more where Z has a 1."""
RESIDUAL = [[2.5035, 2.2552], [1.7199, 2.2721], [2.7832, 2.6626]]


@pytest.fixture(autouse=True)
def row(monkeypatch):
    monkeypatch.setitem(STAGES, "residual", ROW)


def out(*words, code=0, **more):
    done = run(*words, **more)
    assert done.code == code, done.error
    return done


def computed(format, *more):
    return out("compute", *PROBLEM, "-f", format, *more)


def test_it_is_computed_last_in_tables_and_data():
    assert "residual   R = Z + MultiHead(Z)   3 × 2 (n × d_model)" in computed("table").text
    stages = json.loads(computed("json").text)
    assert list(stages)[-1] == "residual"
    np.testing.assert_allclose(stages["residual"], RESIDUAL, atol=2e-4)


def test_it_is_in_npz_html_latex_and_long():
    with zipfile.ZipFile(io.BytesIO(computed("npz").data)) as archive:
        assert "residual.npy" in archive.namelist()
        found = np.load(io.BytesIO(archive.read("residual.npy")))
    np.testing.assert_allclose(found, RESIDUAL, atol=2e-4)
    assert ">residual<" in computed("html").text
    assert r"\paragraph{residual}" in computed("latex").text
    assert any(line.startswith("residual,") and ",3,2,2.66" in line for line in computed("long").text.splitlines())


def test_it_can_be_selected_completed_and_meant():
    assert list(json.loads(computed("json", "-s", "residual").text)) == ["residual"]
    assert "Did you mean residual?" in out("compute", *PROBLEM, "-s", "resdual", code=2).error
    assert "Did you mean residual?" in out("compute", *PROBLEM, "-s", "skip", code=2).error
    from attncli.cli.words import complete_stages

    assert complete_stages("resi") == ["residual"]


def test_a_problem_without_it_says_why():
    done = out("compute", "Q=1;2", "K=1;2", "V=1;2", "-s", "residual", code=2)
    assert "this problem has no residual: it has no Z to add" in done.error


def test_a_cell_of_it_is_explained():
    text = out("explain", *PROBLEM, "residual[1,1]").text
    assert text == "residual[1,1] = Z[1,1] + y₁₁ ≈ 1 + 1.5035 ≈ 2.5035\n  uses multihead[1,1]\n"


def test_it_is_exact_too():
    """One query and key: the softmax is 1, so that V = 2 comes through, and 1 + 2 = 3."""
    words = ("Z=1", "W_Q=1", "W_K=1", "W_V=2", "W_O=1")
    assert out("explain", *words, "residual[1,1]", "--exact").text.splitlines()[0] == (
        "residual[1,1] = Z[1,1] + y₁₁ = 1 + 2 = 3"
    )


def sheet(residual, multihead=None):
    lines = [] if multihead is None else [f"multihead: {json.dumps(multihead)}"]
    return "\n".join([*lines, f"residual: {json.dumps(residual)}"]).encode()


def verdicts(stdin):
    Path("p.yaml").write_text("\n".join(word.replace("=", ': "', 1) + '"' for word in PROBLEM), encoding="utf-8")
    done = run("check", "p.yaml", "-", "-f", "json", stdin=stdin)
    return done.code, {one["stage"]: one["verdict"] for one in json.loads(done.text)["stages"]}


def test_it_is_checked_right_wrong_and_carried_forward(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, found = verdicts(sheet(RESIDUAL))
    assert (code, found["residual"]) == (0, "correct")
    code, found = verdicts(sheet(MULTIHEAD))
    assert (code, found["residual"]) == (1, "wrong")
    high = [[1.5035, 3.2552], *MULTIHEAD[1:]]
    follows = [[2.5035, 3.2552], *RESIDUAL[1:]]
    code, found = verdicts(sheet(follows, high))
    assert (code, found["multihead"], found["residual"]) == (1, "wrong", "carried forward")


def test_it_is_inspected():
    done = json.loads(out("inspect", *PROBLEM, "-f", "json").text)
    names = {entry["name"] for entry in done["shapes"]}
    assert "residual" in names
