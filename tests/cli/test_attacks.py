"""Attacks by the command line: each has its exit code, one message, nothing on standard output, and no traceback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from running import run

import attncli

THREE = "three-tokens"


def refused(*words: object, **more: str) -> str:
    """The message of a run that must say no."""
    done = run(*words, **more)  # type: ignore[arg-type]
    assert (done.code, done.data) == (2, b""), done.error
    assert done.error.startswith("error: ")
    assert "Traceback" not in done.error
    return done.error


# What stands on the command line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mask={lengths: 99999999999999999999999}"], "lengths takes whole numbers up to 1,000,000,000"),
        (["mask={lengths: inf}"], "lengths takes whole numbers"),
        (["mask={lengths: [1, 2]}"], "lengths has 2 numbers, but there is no batch axis"),
        (["mask={window: 99999999999999999999999}"], "window takes a whole number"),
        (["mask={window: [inf, 0]}"], "window takes a whole number"),
        (["mask={causal: top-left, offset: 99999999999999999999}"], "offset takes whole numbers up to"),
        (["num_heads=1000000000"], "num_heads takes a whole number from 1 to 1,000,000, not 1000000000"),
        (["num_heads=0"], "num_heads takes a whole number from 1 on, not 0"),
        (["round=400"], "round takes a whole number from 0 to 30, not 400"),
        (["round={weights: -1}"], "in KEY=VALUE: round.weights"),
        (["heads.0.W_Q=1"], "Entries count from 1."),
        (["from={bert: , layer: 0}"], "a file's name is empty"),
        (["猫=1"], "'猫' is no key to set"),
        (["Z[1,1]=1"], "'Z[1,1]' is no key to set"),
    ],
)
def test_what_is_wrong_with_a_setting_is_said(words: list[str], said: str) -> None:
    assert said in refused("compute", THREE, *words)


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\x9b31m", "a\u202eb", "bell\x07", "a\u2066b"])
def test_nothing_that_steers_a_terminal_is_echoed(text: str) -> None:
    for words in ([text], [THREE, f"{text}=1"], [THREE, f"Z={text}"], [THREE, "-s", text], [THREE, "-f", text]):
        said = refused("compute", *words)
        assert all(c == "\n" or c.isprintable() for c in said), ascii(said)


def test_a_title_may_be_a_hyphen() -> None:
    done = run("compute", THREE, "title=-", "-s", "Q", stdin=b"title: not this")
    assert done.code == 0
    assert done.text.startswith("-\n")


# A matrix, one row a line, whose line ends YAML would fold into blanks


@pytest.mark.parametrize("rows", ["1 0\n0 1\n1 1", "\n1 0\n0 1\n1 1\n", "1 0\r\n0 1\r\n1 1\r\n", '"1 0\n0 1\n1 1"'])
def test_one_row_a_line(rows: str) -> None:
    assert run("compute", THREE, f"Z={rows}", "-s", "Q", "-f", "csv").text == "1.0,0.0\n0.0,1.0\n1.0,1.0\n"


def test_a_column_is_no_row() -> None:
    """1, 2, 3 below each other are three inputs of one number, and not one of three."""
    problem = attncli.load(None, "Z=1\n2\n3", "W_Q=1", "W_K=1", "W_V=1")
    assert (problem.n, problem.d_model) == (3, 1)


def test_rows_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("Z:\n  1 0\n  0 1\n  1 1\nW_Q: 1 0;\n  0 1\nW_K: identity\nW_V: identity\n")
    problem = attncli.load(path)
    assert (problem.n, problem.d_model, problem.d_k) == (3, 2, 2)


def test_an_open_quote_in_a_csv_file(tmp_path: Path) -> None:
    (tmp_path / "z.csv").write_text('"1","2\n3,4\n')
    said = refused("compute", THREE, f"Z={tmp_path / 'z.csv'}")
    assert "a quote that is never closed" in said
    assert "line 1, column 5" in said


# Answer sheets that want to be right without an answer


def test_hidden_entries_hide_no_others() -> None:
    """−1e30 stands for −∞, and says nothing about how exactly the other scores are known."""
    answer = "[[7,-1e30,-1e30,-1e30],[9,9,-1e30,-1e30],[5,5,5,-1e30],[1.5,2,3,4]]"
    done = run("check", "decoder-causal", f"expect.masked_scores={answer}")
    assert done.code == 1
    assert "wrong in 10 of 16 entries" in done.text


def test_a_sheet_of_question_marks_is_no_answer() -> None:
    open_ = "[[?,?,?],[?,?,?],[?,?,?]]"
    assert "leaves every entry open" in refused("check", THREE, f"expect.weights={open_}")
    done = run("check", THREE, f"expect.weights={open_}", "expect.Q=[[1,0],[0,1],[1,1]]", "--points", "weights=3,Q=1")
    assert done.code == 0
    assert "1 of 4" in done.text
    required = run("check", THREE, f"expect.weights={open_}", "expect.Q=[[1,0],[0,1],[1,1]]", "--require", "weights")
    assert required.code == 1
    assert "missing, and required" in required.text


@pytest.mark.parametrize("option", ["--atol=nan", "--rtol=nan", "--atol=inf", "--rtol=1e400", "--follow-through=nan"])
def test_tolerances_are_finite(option: str) -> None:
    said = refused("check", THREE, "expect.Q=[[1,0],[0,1],[1,1]]", option)
    assert re.search("takes a finite number|should be (greater|less) than", said)  # ours, or that of a newer typer


# What the numbers do, said on standard error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["W_O=[[1e308, 1e308], [1e308, 1]]"], "multihead overflows float64"),
        (["W_O=[[1e308, 1e308], [1e308, 1]]", "-s", "contributions"], "contributions overflows float64"),
        (["dtype=float16", "mask=causal", "mask_fill=-1e9"], "a number of the mask overflows float16"),
        (["dtype=float16", "mask={add: [0, -1e9, 0]}"], "a number of the mask overflows float16"),
        (["dtype=float32", "Z=[[1e200, 1], [-1e200, 1], [1, 1]]"], "Q overflows float32"),
    ],
)
def test_overflows_are_said(words: list[str], said: str) -> None:
    done = run("compute", THREE, *words, "-f", "json")
    assert done.code == 0
    assert said in done.error
    assert done.error.count("\n") == 1
    json.loads(done.data, parse_constant=pytest.fail)


@pytest.mark.parametrize("words", [["dtype=float32", "mask=causal", "mask_fill=-1e9"], ["--exact", "mask=causal"]])
def test_what_does_not_overflow_is_not_said(words: list[str]) -> None:
    assert run("compute", THREE, *words, "-f", "json").error == ""


def test_an_empty_row_of_nan_is_no_overflow() -> None:
    done = run("compute", THREE, "W_O=identity", "mask={block: [[1, 1, 1], [0, 0, 0], [0, 0, 0]]}", "empty_rows=nan")
    assert "overflow" not in done.error
    assert "query 1 may attend to nothing" in done.error


def test_a_matrix_has_few_axes() -> None:
    assert "Z has 40 axes, and at most 24 are read" in refused(
        "compute", f"Z={'[' * 40}1{']' * 40}", "W_Q=1", "W_K=1", "W_V=1"
    )


# Streams that are closed, full, or interrupted


def program(*words: str, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "attncli", *words], **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize(("words", "code"), [(["compute", "nope"], 2), (["--nope"], 2), (["compute", THREE], 0)])
def test_a_full_standard_error_changes_no_exit_code(words: list[str], code: int) -> None:
    with open("/dev/full", "wb") as full:
        child = program(*words, "mask={keep: [0, 0, 0]}", stderr=full, stdout=subprocess.PIPE)
        child.communicate()
    assert child.returncode == code


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("seconds", [0.3, 0.6, 1.0])
def test_an_interrupt_is_quiet_from_the_start(seconds: float, tmp_path: Path) -> None:
    """Also while modules are loading; before that, Python itself may die of the signal."""
    words = ["Z={normal: [4000, 64], seed: 1}", *(f"W_{x}={{identity: 64}}" for x in "QKV"), "-o", "x.json"]
    child = program("compute", *words, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    time.sleep(seconds)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert child.returncode in (130, -signal.SIGINT)
    assert out == b""
    assert child.returncode == -signal.SIGINT or b"Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_one_wild_answer_excuses_no_other(tmp_path):
    sheet = tmp_path / "wild.yaml"
    sheet.write_text("weights: [[1.0e+308, 0.9, 0.9], [0.9, 0.9, 0.9], [0.9, 0.9, 0.9]]\n", encoding="utf-8")
    done = run("check", "three-tokens", sheet)
    assert done.code == 1
    assert "wrong in 9 of 9 entries" in done.text
    np.savez(tmp_path / "wild.npz", weights=np.array([[1e30, 0.9, 0.9], [0.9, 0.9, 0.9], [0.9, 0.9, 0.9]]))
    assert "wrong in 9 of 9 entries" in run("check", "three-tokens", tmp_path / "wild.npz").text


def test_a_variance_beyond_the_largest_number_warns_of_nothing():
    done = run("inspect", "three-tokens", "Z=[[1e200, 1], [-1e200, 1], [1, 1]]")
    assert (done.code, "Warning" in done.error) == (0, False)
