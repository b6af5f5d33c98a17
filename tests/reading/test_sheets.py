"""Answer sheets: what is judged, how exactly it was written, and that one bad stage leaves the others readable."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attncli
from attncli.language.errors import AttncliError
from attncli.model.sheet import AnswerSheet, SheetStage
from attncli.reading.sheets import is_dump, read_dump, read_sheet


def sheet(folder: Path, text: str, name: str = "a.yaml", **options: Any) -> AnswerSheet:
    (folder / name).write_text(text)
    return read_sheet(folder / name, **options)


def stage(folder: Path, value: str, name: str = "weights") -> SheetStage:
    found = sheet(folder, f"{name}: {value}\n").stages[name]
    assert found.error is None, found.error
    return found


def test_entries_keep_how_they_were_written(tmp_path: Path) -> None:
    found = stage(tmp_path, "[[0.50, 1/3], [1, 1.24326146e-13]]")
    np.testing.assert_array_equal(found.value, [[0.5, 1 / 3], [1, 1.24326146e-13]])
    assert found.decimals.tolist() == [[2, 0], [0, 21]]
    assert found.exact.tolist() == [[False, True], [False, False]]
    assert found.texts is not None
    assert found.texts.tolist() == [["0.50", "1/3"], ["1", "1.24326146e-13"]]
    assert found.judged.all()
    assert not found.binary


@pytest.mark.parametrize("value", ["[[?, 0.5], [null, ~]]", "\n  - [?, 0.5]\n  - [null, '']", "'? 0.5; null ~'"])
def test_open_entries_are_not_judged(tmp_path: Path, value: str) -> None:
    found = stage(tmp_path, value)
    assert found.judged.tolist() == [[False, True], [False, False]]
    np.testing.assert_array_equal(np.isnan(found.value), ~found.judged)


def test_a_written_nan_is_judged(tmp_path: Path) -> None:
    found = stage(tmp_path, '[[.nan, "nan", -inf, "-inf"]]', "masked_scores")
    assert found.judged.all()
    np.testing.assert_array_equal(found.value, [[np.nan, np.nan, -np.inf, -np.inf]])


@pytest.mark.parametrize("value", ["null", "?", "~", ""])
def test_a_stage_left_open_is_not_on_the_sheet(tmp_path: Path, value: str) -> None:
    assert list(sheet(tmp_path, f"weights: {value}\nscores: [[1]]\n").stages) == ["scores"]


def test_some_rows(tmp_path: Path) -> None:
    found = stage(tmp_path, "{1: [0.5, 0.5], 3: [0.25, ?]}")
    assert found.rows == (1, 3)
    whole = found.resolve((3, 2))
    assert whole.judged.tolist() == [[True, True], [False, False], [True, False]]
    np.testing.assert_array_equal(whole.value, [[0.5, 0.5], [np.nan, np.nan], [0.25, np.nan]])
    assert whole.decimals.tolist() == [[1, 1], [0, 0], [2, 0]]


@pytest.mark.parametrize(
    "value",
    [
        "[{1: [0.5, 0.5]}, {2: [0.25, 0.75]}]",
        "{1: {1: [0.5, 0.5]}, 2: {2: [0.25, 0.75]}}",
        "\n  - 1: [0.5, 0.5]\n  - 2: [0.25, 0.75]",
    ],
)
def test_some_rows_of_some_heads(tmp_path: Path, value: str) -> None:
    whole = stage(tmp_path, value).resolve((2, 3, 2))
    assert whole.judged.tolist() == [[[True, True], [False] * 2, [False] * 2], [[False] * 2, [True, True], [False] * 2]]
    np.testing.assert_array_equal(whole.value[1, 1], [0.25, 0.75])


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("[[0.5, abc]]", "weights[1,2]: 'abc' is not a number"),
        ("[[0.5], [1, 2]]", "row 2 of weights has 2 numbers, and row 1 has 1 number"),
        ("hello", "neither a matrix nor a file"),
        ("[[50%]]", "a percentage"),
        ("{x: [1]}", "'x' is no number of a row"),
        ("{1: [1], 2: [1, 2]}", "row 2 of weights has 2 numbers"),
        ("{1: {1: [1]}, 2: {1: [1, 2]}}", "the rows of its heads have 1 and 2 numbers"),
        ("identity", "identity has no size here"),
        ("nowhere.npy", "no such file"),
        ("w.pt", "no such file"),
        ("[]", "weights is empty"),
        ("{}", "weights is empty"),
    ],
)
def test_what_is_wrong_in_one_stage_leaves_the_others(tmp_path: Path, value: str, what: str) -> None:
    stages = sheet(tmp_path, f"scores: [[1, 2]]\nweights: {value}\noutputs: [[3]]\n").stages
    assert list(stages) == ["scores", "weights", "outputs"]
    error = stages["weights"].error
    assert error is not None
    assert what in str(error)
    assert stages["scores"].error is None
    assert stages["outputs"].error is None


def test_expect_may_wrap_the_stages_and_people_s_keys_are_no_stages(tmp_path: Path) -> None:
    text = "student: Ada\ntitle: week 3\nexpect:\n  weights: [[0.5, 0.5]]\n"
    assert list(sheet(tmp_path, text).stages) == ["weights"]
    assert list(sheet(tmp_path, '{"name": "Ada", "weights": [[0.5]]}', "a.json").stages) == ["weights"]


def test_an_unknown_stage_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(AttncliError) as caught:
        sheet(tmp_path, "weigths: [[1]]\nscaled scores: [[1]]\n")
    assert str(caught.value) == (
        f"'weigths' is no stage\n  in {tmp_path}/a.yaml, line 1, column 1\n    weigths: [[1]]\n    ^^^^^^^\n"
        "  Did you mean weights?\n"
        f"'scaled scores' is no stage\n  in {tmp_path}/a.yaml, line 2, column 1\n    scaled scores: [[1]]\n"
        "    ^^^^^^^^^^^^^\n  Did you mean scaled_scores?"
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [("S", "scores"), ("S~", "scaled_scores"), ("A", "weights"), ("O", "outputs"), ("attn", "weights"), ("q", "Q"),
     ("Concat", "concat"), ("MultiHead", "multihead"), ("output", "outputs")],
)  # fmt: skip
def test_the_symbol_of_a_stage_is_no_key_but_names_it(tmp_path: Path, name: str, meant: str) -> None:
    with pytest.raises(AttncliError) as caught:
        sheet(tmp_path, f'"{name}": [[1]]\n')
    assert caught.value.what == f"{name!r} is no stage"
    assert caught.value.hint == (f"Did you mean {meant}?",)


def test_npz_is_judged_at_its_precision(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", weights=np.float32([[0.5]]), outputs=np.array([[1, 2]]))
    stages = read_sheet(tmp_path / "a.npz").stages
    assert stages["weights"].binary
    assert stages["weights"].value.dtype == np.float32
    assert stages["outputs"].value.tolist() == [[1, 2]]
    np.savez(tmp_path / "b.npz", weigths=np.ones(1))
    with pytest.raises(AttncliError, match="weigths"):
        read_sheet(tmp_path / "b.npz")


def test_files_in_a_sheet(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.float32([[0.1]]))
    (tmp_path / "o.csv").write_text("0.50,?\n")
    stages = sheet(tmp_path, "weights: w.npy\noutputs: o.csv\n").stages
    assert stages["weights"].binary
    assert stages["weights"].value.dtype == np.float32
    assert stages["outputs"].judged.tolist() == [[True, False]]
    assert stages["outputs"].decimals.tolist() == [[2, 0]]


LONG = "stage,head,row,column,value\nweights,1,1,1,0.50\nweights,1,1,2,?\nweights,2,2,1,1/3\nmultihead,,1,1,7\n"


def test_tidy_csv(tmp_path: Path) -> None:
    stages = sheet(tmp_path, LONG, "a.csv").stages
    weights = stages["weights"]
    assert weights.value.shape == (2, 2, 2)
    assert weights.judged.sum() == 2
    assert weights.value[1, 1, 0] == 1 / 3
    assert weights.exact[1, 1, 0]
    assert weights.decimals[0, 0, 0] == 2
    assert stages["multihead"].value.tolist() == [[7]]


def test_tidy_csv_with_batches_tabs_and_columns_in_any_order(tmp_path: Path) -> None:
    text = "value\tcolumn\trow\thead\tbatch\tstage\n5\t2\t1\t1\t3\tscores\n"
    stages = sheet(tmp_path, text, "a.tsv").stages
    assert stages["scores"].value.shape == (3, 1, 1, 2)
    assert stages["scores"].value[2, 0, 0, 1] == 5


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("weigths,1,1,1,0.5", "'weigths' is no stage"),
        ("weights,1,0,1,0.5", "row, column and head are numbers"),
        ("weights,1,1,x,0.5", "row, column and head are numbers"),
        ("weights,1,,1,0.5", "row, column and head are numbers"),
        ("weights,1,1,1,0.6", "weights[1,1,1] is given twice"),
    ],
)
def test_mistakes_in_a_tidy_csv_have_a_line(tmp_path: Path, line: str, what: str) -> None:
    with pytest.raises(AttncliError) as caught:
        sheet(tmp_path, LONG + line + "\n", "a.csv")
    assert what in str(caught.value)
    assert "line 6" in str(caught.value)


@pytest.mark.parametrize("line", ["weights,1,1,1,abc", "weights,,1,1,0.5", "weights,1,900000,900000,0.5"])
def test_a_bad_value_in_a_tidy_csv_is_its_stage_s_error(tmp_path: Path, line: str) -> None:
    text = "stage,head,row,column,value\n" + line + "\nweights,1,2,2,0.5\nmultihead,,1,1,7\n"
    stages = sheet(tmp_path, text, "a.csv").stages
    assert stages["weights"].error is not None
    assert stages["multihead"].error is None


def test_a_plain_csv_needs_its_stage(tmp_path: Path) -> None:
    found = sheet(tmp_path, "a,b\n0.50,\n1,2\n", "a.csv", stage="weights").stages["weights"]
    assert found.judged.tolist() == [[True, False], [True, True]]
    assert found.decimals.tolist() == [[2, 0], [0, 0]]
    with pytest.raises(AttncliError, match="a single matrix, of no stage"):
        sheet(tmp_path, "0.5,1\n", "a.csv")
    with pytest.raises(AttncliError, match="'weigths' is no stage"):
        sheet(tmp_path, "0.5,1\n", "a.csv", stage="weigths")
    np.save(tmp_path / "w.npy", np.eye(2))
    assert read_sheet(tmp_path / "w.npy", stage="weights").stages["weights"].binary


@pytest.mark.parametrize(
    "text", ["weights: [[0.5]]\n", '{"weights": [[0.5]]}', "stage,head,row,column,value\nweights,1,1,1,0.5\n"]
)
def test_a_sheet_on_standard_input(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert read_sheet("-").stages["weights"].value.ravel().tolist() == [0.5]


def test_a_problem_s_own_sheet(tmp_path: Path) -> None:
    text = "Q: [[1, 0]]\nK: [[1, 1]]\nV: [[1]]\nexpect:\n  scores: [[1.0]]\n  weights: [[x]]\n"
    (tmp_path / "p.yaml").write_text(text)
    problem = attncli.load(tmp_path / "p.yaml", "expect.outputs=[[0.50]]")
    assert isinstance(problem.expect, AnswerSheet)
    assert list(problem.expect.stages) == ["scores", "weights", "outputs"]
    assert problem.expect.stages["weights"].error is not None
    assert problem.expect.stages["outputs"].decimals.tolist() == [[2]]
    assert list(sheet(tmp_path, text, "b.yaml").stages) == ["scores", "weights"]


@pytest.mark.parametrize("text", ["", "# nothing", "hello", "[[0.5]]", "12"])
def test_what_is_no_sheet(tmp_path: Path, text: str) -> None:
    with pytest.raises(AttncliError) as caught:
        sheet(tmp_path, text)
    assert f"{tmp_path}/a.yaml" in str(caught.value)


def dumped(folder, **arrays):
    folder.mkdir()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.array(array))
    return sorted(str(path) for path in folder.iterdir())


def test_a_file_a_stage(tmp_path):
    names = dumped(tmp_path / "dump", weights=[[0.5, 0.5]], Q=[[1.0]])
    (tmp_path / "dump" / "notes.md").write_text("mine")
    for sheet in (read_dump(names, "dump"), read_sheet(tmp_path / "dump")):
        assert list(sheet.stages) == ["Q", "weights"]
        assert sheet.stages["weights"].value.tolist() == [[0.5, 0.5]]
    assert list(read_sheet(names[1]).stages) == ["weights"]


def test_files_are_one_dump_where_they_are_called_after_stages(tmp_path):
    assert is_dump(["d/Q.npy", "d/weights.npy"])
    assert is_dump(["d/Q.csv", "d/weights.npy"])
    assert is_dump(["d/Z.npy", "d/weights.npy"])
    for names in (
        ["d/Q.npy"],
        ["a/Q.npy", "b/Q.npy"],
        ["d/Q.npy", "e/K.npy"],
        ["ada.npy", "bob.npy"],
        ["Q.csv", "b.csv"],
    ):
        assert not is_dump(names)
    with pytest.raises(AttncliError, match="'weigths' is no stage"):
        read_dump(dumped(tmp_path / "dump", Q=[[1.0]], weigths=[[1.0]]), "dump")


def test_a_folder_without_a_stage(tmp_path):
    (tmp_path / "sheets").mkdir()
    (tmp_path / "sheets" / "ada.yaml").write_text("weights: [[1]]")
    with pytest.raises(AttncliError, match="no file of a stage is in this folder"):
        read_sheet(tmp_path / "sheets")
