"""`attncli check` and `attncli mistakes`: what is printed, and the exit code."""

from __future__ import annotations

import json

import numpy as np
import pytest
import typer
from plain import attend
from test_check_class import SCALED_BY_D_K
from test_check_verdicts import P1_RIGHT
from test_mistakes import HEADS
from typer.testing import CliRunner

from attncli import AttncliError
from attncli.checking.mistakes import MISTAKES
from attncli.cli.app import main
from attncli.cli.check import register
from attncli.rendering.formats import REPORTS

APP = typer.Typer(rich_markup_mode=None)
register(APP)

PROBLEM = """\
title: P1
tokens: [a, b, c]
Z: [[1, 0], [2, 1], [0, 3]]
W_Q: [[1, 2], [0, 1]]
W_K: [[1, 0], [1, -1]]
W_V: [[2, 1], [0, 3]]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    (tmp_path / "p.yaml").write_text(PROBLEM, encoding="utf-8")
    for name, stages in {"ada": P1_RIGHT, "bob": SCALED_BY_D_K}.items():
        (tmp_path / f"{name}.yaml").write_text(yaml_of(stages), encoding="utf-8")
    return tmp_path


def yaml_of(stages):
    return "".join(f"{name}:\n" + "".join(f"- [{', '.join(row)}]\n" for row in rows) for name, rows in stages.items())


def run(*arguments, text=None, columns=None):
    environment = {} if columns is None else {"COLUMNS": str(columns)}
    return CliRunner().invoke(APP, ["check", *map(str, arguments)], input=text, env=environment)


def test_a_correct_sheet(folder):
    result = run("p.yaml", "ada.yaml")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "ada.yaml: correct (7 stages)"
    assert "Compared: each entry at the decimals it was written with, rounded or cut." in result.stdout


def test_a_wrong_sheet_word_for_word(folder):
    result = run("p.yaml", "bob.yaml")
    assert result.exit_code == 1
    assert (
        result.stdout
        == """\
bob.yaml: 4 of 7 stages correct; it goes wrong first at scaled_scores
✓ Q              correct
✓ K              correct
✓ V              correct
✓ scores         correct
✗ scaled_scores  wrong in 8 of 9 entries
                  1         2         3
    1 a          .5✗       .5✗     -1.5✗
      right  0.7071    0.7071   -2.1213
    2 b           1✗       .5✗     -4.5✗
      right  1.4142    0.7071   -6.3640
    3 c           0      -1.5✗     -4.5✗
      right           -2.1213   -6.3640
    scaled_scores[1,1] is .5, and should be 0.7071 (difference -0.2071)
    scaled_scores[1,2] is .5, and should be 0.7071 (difference -0.2071)
    scaled_scores[1,3] is -1.5, and should be -2.1213 (difference +0.6213)
    scaled_scores[2,1] is 1, and should be 1.4142 (difference -0.4142)
    scaled_scores[2,2] is .5, and should be 0.7071 (difference -0.2071)
    and 3 more entries
→ weights        carried forward (9 of 9 entries differ from the right ones)
    Follows from the sheet's scaled_scores.
→ outputs        carried forward (6 of 6 entries differ from the right ones)
    Follows from the sheet's weights.

Each of these 2 explains every entry:
- scaled_by_d_k: the scores were divided by d_k, not √d_k.
- scaled_twice: the scores were scaled twice.
Right, given what comes before: weights, outputs.
Compared: each entry at the decimals it was written with, rounded or cut.
"""
    )


@pytest.mark.parametrize("columns", [20, 40, 60, 100])
def test_no_line_is_wider_than_the_screen_and_no_number_is_lost(folder, columns):
    lines = run("p.yaml", "bob.yaml", columns=columns).stdout.splitlines()
    words = " ".join(lines).split()
    assert {"-4.5✗", "-6.3640", "scaled_by_d_k:"} <= set(words)
    if columns >= 40:
        assert max(map(len, lines)) <= columns


def test_the_problems_own_expect_is_checked_without_a_sheet(folder):
    inner = "".join("  " + line for line in yaml_of({"weights": P1_RIGHT["weights"]}).splitlines(keepends=True))
    (folder / "key.yaml").write_text(PROBLEM + "expect:\n" + inner, encoding="utf-8")
    result = run("key.yaml")
    assert result.exit_code == 0
    assert result.stdout.startswith("key.yaml: expect: correct (1 stage)")


def test_without_a_sheet_and_without_expect(folder):
    result = run("p.yaml")
    assert isinstance(result.exception, AttncliError)
    assert "no answer sheet" in str(result.exception)


def test_a_single_unreadable_sheet_is_an_error(folder):
    (folder / "cut.yaml").write_text("weights: [[1, 2", encoding="utf-8")
    assert isinstance(run("p.yaml", "cut.yaml").exception, AttncliError)
    assert isinstance(run("p.yaml", "gone.yaml").exception, AttncliError)


def test_a_sheet_from_standard_input(folder):
    assert run("p.yaml", "-", text=yaml_of(P1_RIGHT)).exit_code == 0
    assert run("-", "ada.yaml", text=PROBLEM).exit_code == 0
    assert "only once" in str(run("-", "-", text=PROBLEM).exception)


def test_cells_are_named_as_explain_names_them(folder):
    weights = np.array(attend(HEADS)["weights"])
    weights[1, 2, 0] += 0.125
    keys = {name: np.array(value).tolist() for name, value in HEADS.items()}
    for name, stages in {"heads": keys, "sheet": {"weights": weights.tolist()}}.items():
        (folder / f"{name}.yaml").write_text(json.dumps(stages), encoding="utf-8")
    assert "weights[2;3,1] is" in run("heads.yaml", "sheet.yaml").stdout
    found = json.loads(run("heads.yaml", "sheet.yaml", "-f", "json").stdout)
    assert [entry["cell"] for stage in found["stages"] for entry in stage["entries"]] == ["weights[2;3,1]"]


def test_json_of_one_sheet_and_of_none(folder):
    result = run("p.yaml", "bob.yaml", "-f", "json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data["explanations"] == [["scaled_by_d_k"], ["scaled_twice"]]
    assert data["sheet"] == "bob.yaml"


def test_quiet_says_it_by_its_exit_code(folder):
    for sheets, code in (
        (["ada.yaml"], 0),
        (["bob.yaml"], 1),
        (["ada.yaml", "ada.yaml"], 0),
        (["ada.yaml", "bob.yaml"], 1),
    ):
        result = run("p.yaml", *sheets, "-q")
        assert (result.exit_code, result.stdout) == (code, "")


def test_a_class_has_a_line_a_sheet_and_totals(folder):
    result = run(
        "p.yaml", "ada.yaml", "bob.yaml", "gone.yaml", "--points", "weights=2,outputs=3", "--follow-through", "0.5"
    )
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["sheet", "right", "carried", "wrong", "points", "first", "wrong", "mistake"]
    assert lines[1].split() == ["ada.yaml", "7", "0", "0", "5"]
    assert lines[2].split()[:6] == ["bob.yaml", "4", "2", "1", "2.5", "scaled_scores"]
    assert "unreadable" in lines[3]
    assert "Of 3 sheets: 1 correct, 1 not, 1 unreadable." in lines
    assert "   1 × scaled_by_d_k" in lines


def test_a_class_on_a_narrow_screen(folder):
    result = run("p.yaml", "ada.yaml", "bob.yaml", columns=40)
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 40
    assert "    4 right, 2 carried, 1 wrong" in lines


def test_a_class_as_lines_and_as_a_gradebook(folder):
    result = run("p.yaml", "ada.yaml", "bob.yaml", "-f", "jsonl")
    assert [json.loads(line)["correct"] for line in result.stdout.splitlines()] == [True, False]
    result = run("p.yaml", "ada.yaml", "bob.yaml", "-o", "grades.csv")
    assert result.stdout == ""
    assert (folder / "grades.csv").read_text("utf-8").startswith("sheet,correct,points")


def test_formats_that_it_has_not(folder):
    assert "table, json, jsonl, csv" in str(run("p.yaml", "ada.yaml", "-f", "npy").exception)
    assert "doesn't say" in str(run("p.yaml", "ada.yaml", "-o", "grades.xlsx").exception)
    assert not (folder / "grades.xlsx").exists()


def test_the_help_names_the_formats_of_the_table(folder):
    assert f"{', '.join(REPORTS)}." in run("--help").stdout.replace("\n", " ")


def test_a_plain_matrix_is_told_its_stage(folder):
    np.save(folder / "w.npy", np.array(P1_RIGHT["scores"], dtype=float))
    assert run("p.yaml", "w.npy", "-s", "scores").exit_code == 0
    assert run("p.yaml", "w.npy", "-s", "weights").exit_code == 1
    assert isinstance(run("p.yaml", "w.npy").exception, AttncliError)


def test_required_stages(folder):
    (folder / "few.yaml").write_text(yaml_of({"Q": P1_RIGHT["Q"]}), encoding="utf-8")
    assert run("p.yaml", "few.yaml").exit_code == 0
    result = run("p.yaml", "few.yaml", "--require", "Q,outputs")
    assert result.exit_code == 1
    assert result.stdout.startswith("few.yaml: 1 of 1 stage correct; missing: outputs\n")
    assert "outputs        missing, and required" in result.stdout
    (folder / "bad.yaml").write_text(yaml_of({"scaled_scores": SCALED_BY_D_K["scaled_scores"]}), encoding="utf-8")
    start = "bad.yaml: 0 of 1 stage correct; it goes wrong first at scaled_scores; missing: Q\n"
    assert run("p.yaml", "bad.yaml", "--require", "Q").stdout.startswith(start)
    everyone = run("p.yaml", "few.yaml", "bad.yaml", "--require", "Q,outputs").stdout
    assert "outputs (missing)" in everyone
    assert "no known mistake" not in everyone


def test_only_what_was_tried_is_denied(folder):
    (folder / "bad.yaml").write_text("weights: [[.2, .3, .5], [.1, .1, .8], [.6, .2, .2]]\n", encoding="utf-8")
    said = "No known mistake gives these numbers, nor does any pair of them that was tried.\n"
    assert said in run("p.yaml", "bad.yaml").stdout


def test_one_more_entry_is_one(folder):
    wrong = [["9", "9", "9"], ["9", "9", "9"], P1_RIGHT["scores"][2]]
    (folder / "bad.yaml").write_text(yaml_of({"scores": wrong}), encoding="utf-8")
    assert "    and 1 more entry\n" in run("p.yaml", "bad.yaml").stdout


def test_a_frameworks_dump(folder):
    keys = HEADS
    np.savez(folder / "w.npz", **{name: value for name, value in keys.items() if name != "num_heads"})
    text = "num_heads: 2\n" + "".join(f"{name}: w.npz:{name}\n" for name in keys if name != "num_heads")
    (folder / "layer.yaml").write_text(text, encoding="utf-8")
    stages = {name: np.array(value) for name, value in attend(keys).items()}
    np.savez(folder / "good.npz", **{name: value.astype(np.float32) for name, value in stages.items()})
    assert run("layer.yaml", "good.npz", "--rtol", "1e-4").exit_code == 0
    result = run("layer.yaml", "good.npz", "--rtol", "1e-9")
    assert result.exit_code == 1
    assert "looks like rounding: float32" in " ".join(result.stdout.split())
    stages["weights"][1] = stages["weights"][0]
    np.savez(folder / "bug.npz", **stages)
    result = run("layer.yaml", "bug.npz", "--rtol", "1e-5")
    said = " ".join(result.stdout.split())
    assert "The first stage that differs is weights; the largest difference there is" in said
    assert "That is more than float32 arithmetic gives in this problem: it looks like a bug." in said


def test_no_difference_is_measured_from_nan(folder):
    weights = np.float32([[np.nan, np.nan, np.nan], [0.6696, 0.3301, 0.0003], [0.8916, 0.1069, 0.0015]])
    np.savez(folder / "nan.npz", weights=weights)
    said = " ".join(run("p.yaml", "nan.npz").stdout.split())
    assert "3 entries of weights are NaN, where the right ones are not; the first is weights[1,1]." in said
    assert "The first stage that differs is weights. Compared:" in said
    assert "nan" not in said.replace("nan.npz", "")


def test_tolerances_are_not_negative(folder):
    assert run("p.yaml", "ada.yaml", "--atol", "-1").exit_code == 2


# P1's weights, rounded to two decimals, times V = [[2, 1], [4, 5], [0, 9]]: first .49·2 + .49·4, .49·1 + .49·5 + .03·9
ROUNDED = "outputs: [[2.94, 3.21], [2.66, 2.32], [2.22, 1.44]]\n"


def test_a_sheet_that_was_rounded_on_the_way_is_judged_by_round(folder):
    (folder / "rounded.yaml").write_text(ROUNDED, encoding="utf-8")
    result = run("p.yaml", "rounded.yaml")
    assert result.exit_code == 1
    assert "Rounding as the sheet does, by --round 2, makes it right." in result.stdout
    result = run("p.yaml", "rounded.yaml", "--round", "2")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "rounded.yaml: correct (1 stage)")
    assert "the right answers rounded on the way, every stage to 2 decimals." in result.stdout
    assert run("p.yaml", "rounded.yaml", "--round", "weights=2").exit_code == 0
    assert run("p.yaml", "rounded.yaml", "--round", "1").exit_code == 1
    assert "takes a number of decimals, not 'x'" in str(run("p.yaml", "rounded.yaml", "--round", "x").exception)


def test_a_problems_own_sheet_is_judged_by_round_too(folder):
    (folder / "own.yaml").write_text(f"{PROBLEM}expect:\n  {ROUNDED}", encoding="utf-8")
    assert [run("own.yaml").exit_code, run("own.yaml", "--round", "2").exit_code] == [1, 0]


def mistakes(*arguments):
    return CliRunner().invoke(APP, ["mistakes", *arguments], env={"COLUMNS": "120"})


def test_the_known_mistakes_are_listed():
    result = mistakes()
    assert result.exit_code == 0
    for name, mistake in MISTAKES.items():
        assert f"{name}  " in result.stdout
        assert mistake.source in result.stdout


def test_one_mistake_and_one_that_is_none():
    text = mistakes("scaled_by_d_k").stdout
    assert text == (
        "scaled_by_d_k  scaled_scores\n    The scores were divided by d_k, not √d_k.\n"
        "    Formula: S / d_k\n    Seen: delzac/cntkx#10\n"
    )
    assert "Did you mean softmax_twice?" in str(mistakes("softmax_twise").exception)


@pytest.mark.parametrize(
    "words", [["unscaled,softmax_columns"], ["unscaled, softmax_columns,"], ["unscaled", "softmax_columns"]]
)
def test_mistakes_are_named_in_a_comma_list_or_one_by_one(words):
    rows = json.loads(mistakes(*words, "-f", "json").stdout)
    assert [row["name"] for row in rows] == ["unscaled", "softmax_columns"]
    assert "no known mistake is called 'unscald'" in str(mistakes("softmax_columns,unscald").exception)
    assert "no mistake is named" in str(mistakes(",").exception)


def test_the_known_mistakes_for_programs():
    rows = json.loads(mistakes("-f", "json").stdout)
    assert [row["name"] for row in rows] == list(MISTAKES)
    assert set(rows[0]) == {"name", "stage", "sentence", "formula", "source"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["p.yaml", "ada.yaml"], 0), (["p.yaml", "bob.yaml"], 1), (["p.yaml", "gone.yaml"], 2), (["p.yaml"], 2),
        (["gone.yaml", "ada.yaml"], 2), (["p.yaml", "ada.yaml", "gone.yaml"], 1), (["p.yaml", "-q", "bob.yaml"], 1),
        (["p.yaml", "ada.yaml", "-f", "npy"], 2), (["p.yaml", "ada.yaml", "--points", "x"], 2), ([], 2),
    ],
)  # fmt: skip
def test_exit_codes(folder, arguments, code, capfd):
    with pytest.raises(SystemExit) as left:
        main(["check", *arguments])
    assert left.value.code == code
    assert "Traceback" not in capfd.readouterr().err


def test_key_value_sets_a_key_of_the_problem_and_of_its_own_sheet():
    # causal: row 1 sees key 1 alone; row 2 is e^(1/√2) : e^(−1/√2) = 0.8044 : 0.1956
    sheet = "weights=1 0 0; 0.8044 0.1956 0; 0.4458 0.1084 0.4458"
    causal = run("three-tokens", "mask=causal", f"expect.{sheet}")
    assert (causal.exit_code, "correct" in causal.stdout) == (0, True)
    assert run("three-tokens", f"expect.{sheet}").exit_code == 1
