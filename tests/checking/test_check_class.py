"""A class: a row a sheet, points, totals, and what programs are given."""

from __future__ import annotations

import csv
import io
import json

import pytest
from plain import attend, rows, sheet, softmax
from test_check_verdicts import P1, P1_RIGHT, P2
from test_mistakes import CASES, CAUSAL, PLAIN

from attncli import AttncliError, Problem
from attncli.checking.check import Checker, check
from attncli.checking.classroom import Marking, grade, marked, points_of, totals
from attncli.reading.sheets import read_sheet
from attncli.rendering.data.reports import as_dict
from attncli.rendering.formats import REPORTS, Options

SCALED_BY_D_K = {
    **P1_RIGHT,
    "scaled_scores": [[".5", ".5", "-1.5"], ["1", ".5", "-4.5"], ["0", "-1.5", "-4.5"]],
    "weights": [[".4683", ".4683", ".0634"], [".6209", ".3766", ".0025"], [".8102", ".1808", ".0090"]],
    "outputs": [["2.8099", "3.3803"], ["2.7481", "2.5266"], ["2.3436", "1.7951"]],
}


def folder_of(tmp_path, sheets):
    paths = []
    for name, stages in sheets.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(stages), encoding="utf-8")
        paths.append(str(path))
    return paths


def test_a_row_a_sheet_and_an_unreadable_one_does_not_stop_the_run(tmp_path):
    paths = folder_of(tmp_path, {"ada": P1_RIGHT, "bob": SCALED_BY_D_K, "eve": P1_RIGHT})
    (tmp_path / "bob2.yaml").write_text("weights: [[1, 2", encoding="utf-8")
    done = []
    rows = list(
        grade(Checker(P1), [paths[0], str(tmp_path / "bob2.yaml"), *paths[1:]], read_sheet, progress=done.append)
    )
    assert [row.correct for row in rows] == [True, False, False, True]
    assert rows[1].report is None
    assert rows[1].error is not None
    assert rows[2].mistake == "scaled_by_d_k or scaled_twice"
    assert done == [0.25, 0.5, 0.75, 1.0]
    summed = totals(rows)
    assert (summed.sheets, summed.correct, summed.incorrect, summed.unreadable) == (4, 2, 1, 1)
    assert summed.mistakes == (("scaled_by_d_k", 1),)
    assert summed.first_wrong == (("scaled_scores", 1),)


def test_a_mistake_is_counted_once_a_sheet_alone_or_with_another():
    def unscaled(k):
        return k["scores"]

    def by_columns(k):
        return [rows(softmax, S.T).T for S in k["scaled_scores"]]

    sheets = [
        attend(PLAIN, {"scaled_scores": unscaled}),
        attend(PLAIN, {"scaled_scores": unscaled, "weights": by_columns}),
        attend(PLAIN, {"weights": by_columns}),
        attend(PLAIN, {"scaled_scores": unscaled}),
    ]
    checker = Checker(Problem(**PLAIN))
    graded = [marked(str(i), checker.check(sheet(stages, 4)), Marking()) for i, stages in enumerate(sheets)]
    assert [row.mistake for row in graded] == ["unscaled", "unscaled + softmax_columns", "softmax_columns", "unscaled"]
    assert totals(graded).mistakes == (("unscaled", 3), ("softmax_columns", 2))
    assert totals(graded).unexplained == 0


def test_points_are_full_for_correct_and_follow_through_for_carried_forward():
    report = check(P1, SCALED_BY_D_K)
    assert [report[s].verdict for s in ("scaled_scores", "weights", "outputs")] == ["wrong", *["carried forward"] * 2]
    points = {"scores": 1.0, "scaled_scores": 2.0, "weights": 3.0, "outputs": 4.0}
    assert Marking(points).score(report) == 8.0
    assert Marking(points, follow_through=0.5).score(report) == 4.5
    assert Marking(points, follow_through=0).score(report) == 1.0
    row = marked("bob", report, Marking(points))
    assert (row.points, row.out_of) == (8.0, 10.0)
    assert Marking({"multihead": 5.0}).score(report) == 0.0


@pytest.mark.parametrize(
    ("text", "said"),
    [("weights", "stage=number"), ("wieghts=2", "no stage"), ("weights=two", "no number"), ("weights=-1", "no number"),
     ("weights=nan", "no number")],
)  # fmt: skip
def test_points_that_cannot_be_read(text, said):
    with pytest.raises(AttncliError, match=said):
        points_of([text])


def test_the_shape_of_json():
    sheet_ = {
        **P1_RIGHT,
        "weights": [[".4856", ".4856", ".0287"], [".6696", ".3301", ".0003"], [".8916", ".2", ".0015"]],
    }
    data = as_dict(marked("x.yaml", check(P1, sheet_), Marking()))
    assert data["correct"] is False
    assert data["first_wrong"] == "weights"
    stage = next(stage for stage in data["stages"] if stage["stage"] == "weights")
    assert (stage["verdict"], stage["judged"], stage["wrong"]) == ("wrong", 9, 1)
    (entry,) = stage["entries"]
    assert entry["index"] == [3, 2]
    assert entry["sheet"] == 0.2
    assert entry["right"] == pytest.approx(0.10688, abs=1e-5)
    assert entry["difference"] == pytest.approx(0.2 - 0.10688, abs=1e-5)
    assert data["explanations"] == [["slip"]]
    assert data["convention"] is None


def test_an_index_starts_with_batch_and_head_where_there_are_several():
    outputs = [
        [["2", "3"], ["2.141", "3.141"], ["2.079", "3.079"]],
        [["3.262", "1.503"], ["3.148", "1.284"], ["3.7", "9"]],
    ]
    data = as_dict(marked("x", check(P2, {"outputs": outputs}), Marking()))
    entries = next(stage for stage in data["stages"] if stage["stage"] == "outputs")["entries"]
    assert entries[-1]["index"] == [2, 3, 2]
    batch = Problem(Q=[[[1.0]], [[2.0]]], K=[[[1.0]], [[2.0]]], V=[[[5.0]], [[7.0]]])
    data = as_dict(marked("x", check(batch, {"outputs": [[["5"]], [["8"]]]}), Marking()))
    assert data["stages"][-1]["entries"][0]["index"] == [2, 1, 1]


def test_an_index_is_written_as_the_problem_lays_its_matrices_out():
    columns = Problem(
        layout="columns", Z=[[1, 2, 0], [0, 1, 3]], W_Q=[[1, 0], [2, 1]], W_K=[[1, 1], [0, -1]], W_V=[[2, 0], [1, 3]]
    )
    outputs = [["2.9139", "2.6597", "2.2107"], ["3.1722", "9", "1.4398"]]
    data = as_dict(marked("x", check(columns, {"outputs": outputs}), Marking()))
    assert data["stages"][-1]["entries"][0]["index"] == [2, 2]


def written(format, rows):
    """The text of some rows in a format."""
    stream = io.BytesIO()
    REPORTS[format].write(rows, Options(), stream)
    return stream.getvalue().decode()


def test_infinities_are_words_in_json():
    problem = Problem(scores=[[1.0, 2.0], [3.0, 4.0]], V=[[1.0], [2.0]], scale=1, mask="causal")
    row = marked("x", check(problem, {"masked_scores": [["1", "2"], ["3", "4"]]}), Marking())
    text = written("json", [row])
    (entry,) = next(s for s in json.loads(text)["stages"] if s["stage"] == "masked_scores")["entries"]
    assert (entry["right"], entry["difference"]) == ("-inf", "inf")


def test_json_lines_and_lists(tmp_path):
    rows = [marked(name, check(P1, stages), Marking()) for name, stages in (("a", P1_RIGHT), ("b", SCALED_BY_D_K))]
    lines = written("jsonl", rows).splitlines()
    assert [json.loads(line)["sheet"] for line in lines] == ["a", "b"]
    assert [one["correct"] for one in json.loads(written("json", rows))] == [True, False]
    assert json.loads(written("json", [])) == []


def test_a_gradebook(tmp_path):
    paths = folder_of(tmp_path, {"ada": P1_RIGHT, "=bob": SCALED_BY_D_K})
    rows = grade(Checker(P1), [*paths, str(tmp_path / "gone.yaml")], read_sheet, Marking({"outputs": 2.0}, 0.5))
    lines = list(csv.DictReader(io.StringIO(written("csv", list(rows)))))
    assert [line["correct"] for line in lines] == ["true", "false", "false"]
    assert [line["points"] for line in lines] == ["2", "1", "0"]
    assert lines[1]["first_wrong"] == "scaled_scores"
    assert lines[1]["mistake"] == "scaled_by_d_k or scaled_twice"
    assert lines[1]["weights"] == "carried forward"
    assert lines[0]["multihead"] == ""
    assert "no such file" in lines[2]["error"]


def test_a_name_that_a_spreadsheet_would_take_for_a_formula_is_quoted():
    row = marked('=HYPERLINK("x")', check(P1, P1_RIGHT), Marking())
    line = written("csv", [row]).splitlines()[1]
    assert line.startswith("\"'=HYPERLINK")


def test_a_sheet_in_another_convention_is_correct_and_counted_apart():
    stages = {name: [list(column) for column in zip(*matrix, strict=True)] for name, matrix in P1_RIGHT.items()}
    row = marked("x", check(P1, stages), Marking({"outputs": 1.0}))
    assert row.correct
    assert row.points == 1.0
    assert totals([row]).conventions == (("columns", 1),)


def test_a_thousand_small_sheets_share_one_checker():
    names = [name for name, (keys, _) in CASES.items() if keys is CAUSAL]
    sheets = [sheet(attend(CAUSAL), 2)] + [sheet(attend(CAUSAL, CASES[name][1]), 2) for name in names]
    checker = Checker(Problem(**CAUSAL))
    from attncli.model.sheet import AnswerSheet

    written = [AnswerSheet.of(sheets[i % len(sheets)]) for i in range(1000)]
    reports = [checker.check(one) for one in written]
    assert sum(report.correct for report in reports) == len(range(0, 1000, len(sheets)))
