"""The command `inspect`: what stands on the screen at any width, as data, and its exit codes."""

from __future__ import annotations

import json
import re

import pytest
from rich.cells import cell_len
from running import data, run

WORDS = {
    "two-heads": ("two-heads", "mask=causal"),
    "foreign": ("weights=[[0.9, 0.1], [0.25, 1.25]]", "tokens=[Hello, world]", "mask=causal"),
    "batch": ("batch",),
    "columns": ("columns",),
    "wide": ("transformer-base",),
}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("width", [120, 100, 60, 40])
def test_no_line_is_wider_than_the_screen_and_nothing_is_cut(words, width):
    narrow = data("inspect", *words, COLUMNS=str(width)).decode()
    whole = data("inspect", *words).decode()
    assert max(map(cell_len, narrow.splitlines())) <= width
    assert sorted(set(tokens(whole))) == sorted(set(tokens(narrow)))
    assert "…" not in narrow


def tokens(text):
    return re.findall(r"[^\s=]+", text)


def test_a_whole_screen():
    text = data("inspect", "weights=[[0.9, 0.1]]", "tokens=[Hello, world]", "V=[[1], [3]]", COLUMNS="80").decode()
    assert (
        text
        == """\
  mask: none · layout: rows · float64 · starts at V, weights

Sizes
  n    =  1  queries              weights' rows
  m    =  2  keys                 V's rows
  d_v  =  1  width of the values  V's columns

Shapes
  V        given    m × d_v  =  2 × 1
  weights  given    n × m    =  1 × 2
  outputs  O = A V  n × d_v  =  1 × 1

Work and memory: 2 multiply-adds, 40 bytes
  V        16 bytes
  weights  16 bytes
  outputs   8 bytes  2  = n·d_v·m
  Multiply-adds are those of matrix products; masked cells count.

Statistics
           mean  variance  least  most
  V         2        1       1     3
  weights   0.5      0.16    0.1   0.9
  outputs   1.2      0       1.2   1.2

Where the queries look
    entropy  of ln m  first  saturated        most on
     0.3251    0.469    0.9     0 of 1  1 Hello (0.9)
  Means over the queries. Entropy in nats, and as a share of ln m, its most;
    saturated: over 0.99 on one key, of those with a choice.

What must hold
  ✓ each row of weights sums to 1 exactly
  ✓ no weight is negative
  ✓ each output lies within the range of its column of V
"""
    )


def test_warnings_do_not_change_the_exit_code():
    done = run("inspect", "weights=[[1.25, 0]]")
    assert (done.code, done.error) == (0, "")
    assert "✗ weights[1] sums to 1.25, not to 1" in done.text
    assert "p at least 0.2" in done.text


def test_digits_are_decimals():
    text = data("inspect", "weights=[[0.9, 0.1]]", "-d", "2").decode()
    assert "0.33" in text
    assert "0.3251" not in text


def test_old_encodings_get_plain_words():
    text = data("inspect", "two-heads", "mask=causal", encoding="ascii").decode("ascii")
    assert re.search(r"Z +given +n x d_model +=  3 x 5", text)
    assert "ok each masked weight is exactly 0" in text
    assert "\\x" not in text
    assert "\\u" not in text


def test_labels_are_literal_and_harmless():
    text = data("inspect", "weights=[[0.9, 0.1]]", r'tokens=["[/CLS]", "a\x1b[31m"]').decode()
    assert "1 [/CLS] (0.9)" in text
    text = data("inspect", "weights=[[0.1, 0.9]]", r'tokens=["[/CLS]", "a\x1b[31m"]').decode()
    assert "2 a␛[31m (0.9)" in text


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_colours_only_on_a_terminal_that_wants_them(environment):
    done = run("inspect", "three-tokens", terminal=True, COLUMNS="80", **environment)
    assert ("\x1b[" in done.text) == (not environment)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", done.text)
    assert "\x1b" not in plain


def test_json_is_all_of_it():
    found = json.loads(data("inspect", "two-heads", "-f", "json"))
    assert set(found) == {
        "title", "scale", "dtype", "layout", "sizes", "shapes", "parameters", "costs", "multiply_adds", "bytes",
        "cache", "mask", "statistics", "head_statistics", "score_variance", "heads", "invariants", "looks_like",
        "warnings", "notes",
    }  # fmt: skip
    assert found["parameters"]["total"] == 140
    assert [look["head"] for look in found["heads"]] == [1, 2]
    assert found["scale"] == {"value": 0.5, "source": "1/√d_k", "usual": 0.5}


def test_json_needs_no_rich(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys; from attncli.cli.app import run; run(['inspect', 'two-heads', '-f', 'json', '-o', sys.argv[1]]); "
        "print(sorted(name for name in sys.modules if name.split('.')[0] == 'rich'))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "s.json"], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["multiply_adds"] == 546


def test_a_head_and_stages_are_selected():
    found = json.loads(data("inspect", "two-heads", "-H", "2", "-s", "weights,outputs", "-f", "json"))
    assert [one["name"] for one in found["statistics"]] == ["weights", "outputs"]
    assert [look["head"] for look in found["heads"]] == [2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("two-heads", "-H", "3"), "there is no head 3"),
        (("two-heads", "-f", "csv"), "inspect has no format 'csv'"),
        (("two-heads", "-s", "masked_scores"), "this problem has no masked_scores: it has no mask"),
        (("weights=[[0.5, 0.5]]", "Q=[[1]]"), "nothing to do"),
        ((), "inspect what?"),
    ],
)
def test_wrong_usage_is_2(words, said):
    done = run("inspect", *words)
    assert (done.code, done.data) == (2, b"")
    assert said in done.error
