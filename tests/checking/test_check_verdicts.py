"""Verdicts: precision as written, partial sheets, carried forward, wrong shapes, tolerances."""

from __future__ import annotations

import numpy as np
import pytest

from attncli import AttncliError, Problem
from attncli.checking.check import check
from attncli.model.sheet import AnswerSheet, of_array

# One query, two keys, chosen weights: 1/8 and 7/8.
EIGHTHS = Problem(masked_scores=[[0.0, float(np.log(7))]], V=[[8.0, 0.0], [0.0, 16.0]])

# The second reference problem of one head: every W unsymmetric.
P1 = Problem(Z=[[1, 0], [2, 1], [0, 3]], W_Q=[[1, 2], [0, 1]], W_K=[[1, 0], [1, -1]], W_V=[[2, 1], [0, 3]])
P1_RIGHT = {
    "Q": [["1", "2"], ["2", "5"], ["0", "3"]],
    "K": [["1", "0"], ["3", "-1"], ["3", "-3"]],
    "V": [["2", "1"], ["4", "5"], ["0", "9"]],
    "scores": [["1", "1", "-3"], ["2", "1", "-9"], ["0", "-3", "-9"]],
    "scaled_scores": [[".7071", ".7071", "-2.1213"], ["1.4142", ".7071", "-6.3640"], ["0", "-2.1213", "-6.3640"]],
    "weights": [[".4856", ".4856", ".0287"], [".6696", ".3301", ".0003"], [".8916", ".1069", ".0015"]],
    "outputs": [["2.9139", "3.1722"], ["2.6597", "2.3228"], ["2.2107", "1.4398"]],
}

P2 = Problem(
    num_heads=2,
    Z=[[1, 0, 2, 1], [0, 1, 1, 0], [2, 1, 0, 1]],
    W_Q=[[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1]],
    W_K=[[0, 1, 1, 0], [1, 0, 0, 1], [0, 0, 1, 0], [1, 1, 0, 0]],
    W_V=[[1, 0, 2, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 2, 1, 1]],
    W_O=[[1, 0, 0, 1], [0, 1, 1, 0], [2, 0, 1, 0], [0, 1, 0, 1]],
)


def verdict(problem, stage, matrix, **more):
    return check(problem, {stage: matrix}, **more)[stage].verdict


def test_a_sheet_that_is_right_is_correct_and_costs_nothing_for_what_is_missing():
    report = check(P1, P1_RIGHT)
    assert report.correct
    assert report.first_wrong is None
    assert [v.verdict for v in report.stages] == ["correct"] * 7
    report = check(P1, {"outputs": P1_RIGHT["outputs"]})
    assert report.correct
    assert report["weights"].verdict == "missing"


@pytest.mark.parametrize(
    ("text", "agrees"),
    [
        ("0.125", True), ("0.13", True), ("0.12", True), ("0.1", False), ("0.10", False), ("0.11", False),
        ("0.14", False), ("1/8", True), ("0.1250000001", False), ("1/7", False), ("12.5e-2", True), ("2^-3", True),
        ("-0.12", False), ("0", False), ("nan", False), ("inf", False),
    ],
)  # fmt: skip
def test_an_entry_stands_for_what_rounds_or_is_cut_to_it(text, agrees):
    # 0.1 beside 0.875 means 0.10, whose cut numbers end at 0.11; and 0 means 0.00.
    assert (verdict(EIGHTHS, "weights", [[text, "0.875"]]) == "correct") is agrees


def test_coarse_entries_are_read_at_the_finest_of_their_matrix():
    assert verdict(EIGHTHS, "weights", [["0.1", "0.9"]]) == "correct"
    assert verdict(EIGHTHS, "weights", [["0.1", "0.8"]]) == "correct"
    assert verdict(EIGHTHS, "weights", [["0.1", "0.87"]]) == "wrong"
    assert verdict(EIGHTHS, "weights", [["0.2", "0.9"]]) == "wrong"


def test_a_cut_goes_towards_zero_and_is_less_than_a_unit():
    problem = Problem(scaled_scores=[[-0.126, 0.13]], V=[[1.0], [2.0]], scale=None)
    right = Problem(scores=[[-0.126, 0.13]], V=[[1.0], [2.0]], scale=1)
    assert verdict(right, "scaled_scores", [["-0.12", "0.13"]]) == "correct"
    assert verdict(right, "scaled_scores", [["-0.13", "0.13"]]) == "correct"
    assert verdict(right, "scaled_scores", [["-0.14", "0.13"]]) == "wrong"
    assert verdict(right, "scaled_scores", [["-0.12", "0.12"]]) == "wrong"
    assert problem.given


def test_expressions_are_exact():
    third = Problem(masked_scores=[[0.0, 0.0, 0.0]], V=[[3.0], [0.0], [0.0]])
    assert verdict(third, "weights", [["1/3", "1/3", "1/3"]]) == "correct"
    assert verdict(third, "weights", [["1/3", "1/3", "3334/10000"]]) == "wrong"
    root = Problem(scores=[[1.0, 2.0]], V=[[1.0], [2.0]], scale=2**-0.5)
    assert verdict(root, "scaled_scores", [["sqrt(2)/2", "sqrt(2)"]]) == "correct"
    assert verdict(root, "scaled_scores", [["sqrt(2)/2", "sqrt(2.001)"]]) == "wrong"


def test_whole_numbers_are_too_coarse_where_the_right_ones_are_not_whole():
    report = check(P1, {"weights": [["0", "0", "0"], ["1", "0", "0"], ["1", "0", "0"]]})
    assert report["weights"].verdict == "too coarse"
    assert not report.correct
    assert report["weights"].wrong == 9
    assert verdict(P1, "scores", P1_RIGHT["scores"]) == "correct"


def test_whole_numbers_that_are_off_are_wrong():
    found = check(P1, {"scaled_scores": P1_RIGHT["scores"]})["scaled_scores"]
    assert found.verdict == "wrong"
    assert found.note == "the other whole numbers are too coarse to judge"


def test_stages_rounded_on_the_way_are_correct_from_their_own_numbers():
    weights = [["0.49", "0.49", "0.03"], ["0.67", "0.33", "0.00"], ["0.89", "0.11", "0.00"]]
    outputs = [["2.94", "3.21"], ["2.66", "2.32"], ["2.22", "1.44"]]  # 2.94 = 2(.49) + 4(.49): exact is 2.91
    assert check(P1, {"weights": weights, "outputs": outputs}).correct
    assert not check(P1, {"outputs": outputs}).correct


def test_open_entries_are_not_judged():
    matrix = [[None, "0.4856", "?"], [".6696", None, None], ["?", "?", "?"]]
    report = check(P1, {"weights": matrix})
    assert report.correct
    assert report["weights"].judged == 2


def test_some_rows_alone():
    report = check(P1, {"weights": {2: [".6696", ".3301", ".0003"]}, "outputs": {3: ["2.2107", "1.5"]}})
    assert report["weights"].verdict == "correct"
    assert report["weights"].judged == 3
    assert [entry.index for entry in report["outputs"].entries()] == [(0, 2, 1)]
    assert report["outputs"].judged == 2


def test_a_row_that_does_not_exist_is_that_stages_error():
    report = check(P1, {"weights": {4: [".1", ".2", ".7"]}, "outputs": P1_RIGHT["outputs"]})
    assert report["weights"].verdict == "unreadable"
    assert "rows 1 to 3" in report["weights"].error
    assert report["outputs"].verdict == "correct"


def test_wrong_then_carried_forward_then_correct_again():
    scores = [["1", "1", "-3"], ["2", "1", "-9"], ["0", "-3", "9"]]  # a sign lost in 3,3
    scaled = [[".7071", ".7071", "-2.1213"], ["1.4142", ".7071", "-6.3640"], ["0", "-2.1213", "6.3640"]]
    report = check(P1, {"scores": scores, "scaled_scores": scaled, "weights": P1_RIGHT["weights"]})
    assert [report[stage].verdict for stage in ("scores", "scaled_scores", "weights")] == [
        "wrong", "carried forward", "correct",
    ]  # fmt: skip
    assert report.first_wrong == "scores"
    assert report["scores"].wrong == 1
    assert report["weights"].note == "correct, although scaled_scores is not"
    assert report["scaled_scores"].note == "follows from the sheet's scores"


def test_carried_forward_allows_for_the_rounding_of_the_wrong_numbers():
    # Weights of the causal mask left out, at two decimals; outputs from unrounded ones.
    causal = P1.replace(mask="causal")
    weights = [["0.49", "0.49", "0.03"], ["0.67", "0.33", "0.00"], ["0.89", "0.11", "0.00"]]
    report = check(causal, {"weights": weights, "outputs": [["2.91", "3.17"], ["2.66", "2.32"], ["2.21", "1.44"]]})
    assert report["outputs"].verdict == "carried forward"
    assert report.names[0] == ["mask_left_out"]


def test_entries_name_the_sheets_number_the_right_one_and_the_difference():
    outputs = [row[:] for row in P1_RIGHT["outputs"]]
    outputs[1][1] = "2.5"
    entry = check(P1, {"outputs": outputs})["outputs"].entries()[0]
    assert (entry.index, entry.sheet, entry.text) == ((0, 1, 1), 2.5, "2.5")
    assert entry.right == pytest.approx(2.3228, abs=5e-5)
    assert entry.difference == pytest.approx(0.1772, abs=5e-5)


def test_minus_infinity_is_compared_as_a_symbol():
    causal = Problem(scores=[[2.0, 4.0], [6.0, 8.0]], V=[[1.0], [2.0]], scale=0.5, mask="causal")
    assert verdict(causal, "masked_scores", [["1", "-inf"], ["3", "4"]]) == "correct"
    assert verdict(causal, "masked_scores", [["1", "-1e9"], ["3", "4"]]) == "correct"
    assert verdict(causal, "masked_scores", [["1", "-100"], ["3", "4"]]) == "wrong"
    assert verdict(causal, "masked_scores", [["1", "inf"], ["3", "4"]]) == "wrong"
    assert verdict(causal, "masked_scores", [["1", "-inf"], ["-inf", "4"]]) == "wrong"


def test_hidden_keys_weigh_zero():
    causal = P1.replace(mask="causal")
    assert verdict(causal, "weights", [["1", "0", "0"], ["0.67", "0.33", "0"], ["0.89", "0.11", "0.00"]]) == "correct"
    assert verdict(causal, "weights", [["1", "0", "0"], ["0.67", "0.33", "0.01"], ["0.89", "0.11", "0"]]) == "wrong"


def test_tolerances_replace_the_decimals():
    assert verdict(EIGHTHS, "weights", [["0.12", "0.87"]]) == "correct"
    assert verdict(EIGHTHS, "weights", [["0.12", "0.87"]], atol=1e-3) == "wrong"
    assert verdict(EIGHTHS, "weights", [["0.12", "0.87"]], atol=1e-2) == "correct"
    assert verdict(EIGHTHS, "weights", [["0.1251", "0.8751"]], rtol=1e-3) == "correct"
    assert verdict(EIGHTHS, "weights", [["0.1251", "0.8751"]], rtol=1e-4) == "wrong"
    assert verdict(EIGHTHS, "weights", [["0", "1"]], atol=0.2) == "correct"
    assert "0.001" in check(EIGHTHS, {"weights": [["0.1", "0.9"]]}, atol=1e-3).rule


def test_an_absolute_and_a_relative_tolerance_add_up():
    assert verdict(EIGHTHS, "weights", [["0.127", "0.875"]], atol=1e-3, rtol=1e-2) == "correct"
    assert verdict(EIGHTHS, "weights", [["0.128", "0.875"]], atol=1e-3, rtol=1e-2) == "wrong"


@pytest.mark.parametrize(
    ("tolerance", "said"),
    [
        ({"rtol": 1e-5}, "1e-5 × |right|"),
        ({"rtol": 1e-4, "atol": 1e-6}, "1e-6 + 1e-4 × |right|"),
        ({"atol": 0.02}, "0.02"),
        ({"atol": 0.0, "rtol": 0.0}, "0"),
        ({"atol": 1e20}, "1e20"),
    ],
)
def test_a_tolerance_is_said_as_the_sum_that_it_is(tolerance, said):
    assert check(EIGHTHS, {"weights": [["0.1", "0.9"]]}, **tolerance).rule == f"each entry within {said}"


ROWS = [[".4856", ".4856", ".0287"], [".6696", ".3301", ".0003"], [".8916", ".1069", ".0015"]]


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ({(0, 1): "nan"}, "weights[1,2] is NaN, where the right entry is not."),
        ({(2, 2): "inf"}, "weights[3,3] is infinite, where the right entry is not."),
        (
            {(1, 0): "nan", (1, 1): "-inf"},
            "2 entries of weights are NaN or infinite, where the right ones are not; the first is weights[2,1].",
        ),
        (
            {(1, 0): "nan", (1, 1): "nan"},
            "2 entries of weights are NaN, where the right ones are not; the first is weights[2,1].",
        ),
    ],
)
@pytest.mark.parametrize("binary", [False, True])
def test_entries_that_are_no_numbers_are_said_and_nothing_is_made_of_them(at, said, binary):
    written = np.array(ROWS, dtype=object)
    for index, text in at.items():
        written[index] = text
    report = check(P1, {"weights": written.astype(float) if binary else written.tolist()})
    assert report.notes[0] == said
    assert not any("sums to nan" in note for note in report.notes)
    assert ["slip"] not in report.names or "nan" not in at.values()
    assert report.rounding is None


def test_nan_where_nan_is_right_and_entries_left_open_are_no_such_entries():
    empty = P1.replace(mask={"keep": [[1, 0, 0], [1, 1, 0], [0, 0, 0]]}, empty_rows="nan")
    weights = [["1", "0", "0"], [".6", ".4", "0"], ["nan", "nan", "nan"]]
    for problem, written in ((empty, weights), (P1, [["?", ".9", "?"], *ROWS[1:]])):
        report = check(problem, {"weights": written})
        assert not report.correct
        assert not any("NaN" in note for note in report.notes)


TEXT = "each entry at the decimals it was written with, rounded or cut"


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ({"weights": np.float32([[0.125, 0.875]])}, "each float32 entry within 1e-5 × the largest of its stage"),
        ({"weights": np.float16([[0.125, 0.875]])}, "each float16 entry within 0.01 × the largest of its stage"),
        ({"weights": np.array([[0.125, 0.875]])}, "each float64 entry within 1e-9 × the largest of its stage"),
        ({"weights": [["0.125", "0.875"]]}, TEXT),
        (
            {"weights": [["0.125", "0.875"]], "outputs": np.array([[0.125, 0.875]])},
            f"{TEXT}; each float64 entry within 1e-9 × the largest of its stage",
        ),
    ],
)
def test_of_a_file_of_numbers_the_room_of_its_dtype_is_said(stages, said):
    assert check(EIGHTHS, stages).rule == said


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_binary_sheets_are_read_at_the_precision_of_their_dtype(dtype):
    right = np.array([[0.125, 0.875]], dtype=dtype)
    assert check(EIGHTHS, AnswerSheet({"weights": of_array(right)})).correct
    off = right.copy()
    off[0, 0] *= 1.1
    assert not check(EIGHTHS, AnswerSheet({"weights": of_array(off)})).correct


@pytest.mark.parametrize(
    ("stage", "matrix", "words"),
    [
        ("V", [["2", "4", "0"], ["1", "5", "9"]], "it is the right matrix, transposed"),
        ("V", [["2", "4", "0"], ["1", "5", "8"]], "its transpose fits"),
        ("weights", [[".49", ".49", ".03"], [".67", ".33", ".00"]], "one row too few"),
        ("outputs", [["2", "3", "1"], ["2", "3", "1"], ["2", "3", "1"]], "one column too many"),
        ("outputs", [["2", "3"], ["2"]], ""),
        ("outputs", [["two", "3"], ["2", "1"], ["2", "1"]], "two"),
    ],
)
def test_a_wrong_shape_is_that_stages_error_and_the_rest_is_judged(stage, matrix, words):
    others = {name: value for name, value in P1_RIGHT.items() if name != stage}
    report = check(P1, {**others, stage: matrix})
    assert report[stage].verdict == "unreadable"
    assert words in report[stage].error
    assert {report[name].verdict for name in others} == {"correct"}
    assert report.first_wrong == stage


@pytest.mark.parametrize(
    ("stage", "matrix", "words"),
    [
        (
            "weights",
            [[".097", ".097", ".807"], [".187", ".045", ".768"], [".104", ".025", ".870"]],
            "head 1 of 2 alone",
        ),
        ("weights", [[".172", ".172", ".655"], [".381", ".092", ".526"], [".194", ".083", ".723"]], "mean over the 2"),
        ("concat", [["2.63", "2.25"], ["2.64", "2.21"], ["2.91", "2.33"]], "added up or averaged"),
        ("multihead", [["1", "2"], ["1", "2"], ["1", "2"]], "must be 3 × 4"),
    ],
)
def test_heads_in_the_wrong_shape(stage, matrix, words):
    report = check(P2, {stage: matrix})
    assert report[stage].verdict == "unreadable"
    assert words in report[stage].error


def test_the_only_head_is_no_axis_to_a_reader():
    assert check(P1, {"weights": [["1", "0"]] * 2})["weights"].error == "it is 2 × 2, and must be 3 × 3"


def test_axes_of_one_may_be_left_out_or_carried():
    row = P1_RIGHT["outputs"]
    for form in (row, [row], [[row]]):
        assert check(P1, {"outputs": form})["outputs"].verdict in ("correct", "unreadable")
    assert check(P1, {"outputs": [row]}).correct
    batch = Problem(Q=[[[1, 0]], [[0, 1]]], K=[[[1, 0]], [[0, 1]]], V=[[[5]], [[7]]])
    assert check(batch, {"outputs": [[["5"]], [["7"]]]}).correct
    assert check(batch, {"outputs": [[[["5"]]], [[["7"]]]]}).correct


def test_columns_are_read_in_the_problems_layout():
    columns = Problem(
        layout="columns", Z=[[1, 2, 0], [0, 1, 3]], W_Q=[[1, 0], [2, 1]], W_K=[[1, 1], [0, -1]], W_V=[[2, 0], [1, 3]]
    )
    outputs = np.array(P1_RIGHT["outputs"]).T.tolist()
    assert check(columns, {"outputs": outputs}).correct
    outputs[0][2] = "9.9999"
    entry = check(columns, {"outputs": outputs})["outputs"].entries()[0]
    assert entry.index == (0, 2, 0)


def test_a_stage_that_the_problem_has_not_is_said():
    report = check(P1, {"multihead": [["1"]], "weights": P1_RIGHT["weights"]})
    assert report["multihead"].verdict == "unreadable"
    assert "no W_O" in report["multihead"].error
    assert report["weights"].verdict == "correct"


def test_what_is_required_must_be_there():
    sheet = {"weights": P1_RIGHT["weights"]}
    assert check(P1, sheet).correct
    assert check(P1, sheet, require=["weights"]).correct
    report = check(P1, sheet, require=["outputs"])
    assert not report.correct
    assert report.first_wrong == "outputs"
    assert check(P1, P1_RIGHT, require=["all"]).correct
    with pytest.raises(AttncliError, match="no multihead"):
        check(P1, sheet, require=["multihead"])


def test_an_empty_sheet_and_none_are_errors():
    with pytest.raises(AttncliError, match="no stage"):
        check(P1, {})
    with pytest.raises(AttncliError, match="no answer sheet"):
        check(P1)


def test_a_problem_that_rounds_every_stage_is_held_against_rounded_numbers():
    rounded = P1.replace(round=2)
    weights = [["0.49", "0.49", "0.03"], ["0.67", "0.33", "0.00"], ["0.89", "0.11", "0.00"]]
    assert check(
        rounded, {"weights": weights, "outputs": [["2.94", "3.21"], ["2.66", "2.32"], ["2.22", "1.44"]]}
    ).correct


def test_a_query_that_may_attend_to_nothing():
    empty = Problem(Q=[[1.0], [2.0]], K=[[1.0], [1.0]], V=[[1.0], [3.0]], mask={"keep": [[0, 0], [1, 1]]})
    assert verdict(empty, "weights", [["0", "0"], ["0.5", "0.5"]]) == "correct"
    assert verdict(empty, "weights", [["nan", "nan"], ["0.5", "0.5"]]) == "wrong"
    assert verdict(empty.replace(empty_rows="nan"), "weights", [["nan", "nan"], ["0.5", "0.5"]]) == "correct"
