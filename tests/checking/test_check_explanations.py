"""What explains a sheet: a misread entry, a slip, two mistakes at once, every equivalent one; conventions instead."""

from __future__ import annotations

import numpy as np
import pytest
from plain import attend, before, rows, sheet, softmax
from test_check_verdicts import P1, P1_RIGHT
from test_mistakes import ALIKE, BIASED, CASES, CAUSAL, CROSS, HEADS, PLAIN, SQUARE, SQUARE_OUT

from attncli import Problem
from attncli.checking.check import check

THREE = {"Z": [[1, 0], [0, 1], [1, 1]], "W_Q": [[1, 0], [0, 1]], "W_K": [[1, 1], [1, -1]], "W_V": [[2, 0], [0, 3]]}


def with_entry(keys, name, index, value):
    changed = np.array(keys[name], dtype=float)
    changed[index] = value
    return {**keys, name: changed}


def sentences(report):
    return [sentence for one in report.explanations for sentence in one.sentences]


# Misread


@pytest.mark.parametrize(
    ("name", "index", "value", "said"),
    [
        ("W_K", (1, 0), -1, "W_K[2,1] were −1 (it is 1)"),
        ("W_K", (0, 1), 7, "W_K[1,2] were 7 (it is 1)"),
        ("W_Q", (1, 1), -1, "W_Q[2,2] were −1 (it is 1)"),
        ("W_V", (0, 1), 3, "W_V[1,2] were 3 (it is 0)"),
        ("Z", (2, 0), -1, "Z[3,1] were −1 (it is 1)"),
    ],
)
def test_one_misread_entry_is_solved_for(name, index, value, said):
    wrong = attend(with_entry(THREE, name, index, value))
    report = check(Problem(**THREE), sheet(wrong, 4))
    assert ["misread"] in report.names
    assert any(said in sentence for sentence in sentences(report))


@pytest.mark.parametrize("decimals", [1, 2, 6])
def test_a_misread_entry_is_found_from_rounded_numbers(decimals):
    wrong = attend(with_entry(PLAIN, "W_K", (2, 1), 1.5))
    report = check(Problem(**PLAIN), sheet(wrong, decimals))
    assert report.names == [["misread"]]
    assert ("W_K[3,2] were 1." if decimals == 1 else "W_K[3,2] were 1.5 (it is") in sentences(report)[0]


def test_a_misread_entry_of_the_inputs_moves_all_that_is_made_of_them():
    wrong = attend(with_entry(PLAIN, "Z", (1, 4), -2.0))
    report = check(Problem(**PLAIN), sheet(wrong, 3))
    assert report.names == [["misread"]]
    assert (
        sentences(report)[0].endswith("(as if Z[2,5] were −2 (it is 0.8))") or "Z[2,5] were −2" in sentences(report)[0]
    )


def test_a_misread_entry_of_the_inputs_for_one_projection_alone():
    wrong = attend(PLAIN, {"K": lambda k: [np.where(np.arange(5) == 0, 3.0, k["Z"])[[0, 1, 2]] @ k["WK"][0]]})
    wrong = attend(PLAIN, {"K": lambda k: [np.vstack([[3.0, *k["Z"][0][1:]], k["Z"][1:]]) @ k["WK"][0]]})
    report = check(Problem(**PLAIN), sheet(wrong, 4))
    assert report.names == [["misread"]]
    assert "Z[1,1] were 3" in sentences(report)[0]
    assert "for K alone" in sentences(report)[0]


def test_a_misread_entry_of_the_memory_and_of_a_fused_weight():
    wrong = attend(with_entry(CROSS, "memory", (3, 1), 2.5))
    assert "memory[4,2] were 2.5" in sentences(check(Problem(**CROSS), sheet(wrong, 4)))[0]
    wrong = attend(with_entry(HEADS, "W_Q", (1, 6), 2.5))
    assert "W_Q[2,7] were 2.5" in sentences(check(Problem(**HEADS), sheet(wrong, 4)))[0]


def test_a_misread_weight_of_a_head_is_named_in_that_head():
    heads = [
        {"W_Q": [[1], [2]], "W_K": [[1], [-1]], "W_V": [[2], [1]]},
        {"W_Q": [[3], [1]], "W_K": [[0], [2]], "W_V": [[1], [1]]},
    ]
    report = check(
        Problem(Z=[[1, 0], [2, 1], [1, 3]], heads=heads), {"K": [[["1"], ["1"], ["-2"]], [["0"], ["3"], ["9"]]]}
    )
    assert report.names == [["misread"]]
    assert "head 2's W_K[2,1] were 3" in sentences(report)[0]


def test_misread_entries_are_named_as_the_problem_stores_them():
    wrong = attend(with_entry(THREE, "W_K", (1, 0), -1))
    turned = {name: np.array(value).T for name, value in THREE.items()}
    stages = {name: np.array(value).swapaxes(-1, -2) for name, value in wrong.items()}
    report = check(Problem(layout="columns", **turned), sheet(stages, 4))
    assert any("W_K[1,2] were −1" in sentence for sentence in sentences(report))


def test_one_number_that_differs_is_no_misreading():
    report = check(Problem(**PLAIN), {"K": {1: [f"{x:.4f}" for x in [9.0, *attend(PLAIN)["K"][0][0][1:]]]}})
    assert report.names == [["slip"]]


# Slips


def test_one_wrong_cell_alone_is_a_slip_and_what_follows_is_carried():
    wrong = attend(PLAIN, {"scores": lambda k: [k["Q"][0] @ k["K"][0].T + np.diag([0.0, 1.0, 0.0])]})
    report = check(Problem(**PLAIN), sheet(wrong, 4))
    assert report.names == [["slip"]]
    assert "scores[2,2]" in sentences(report)[0]
    assert [report[stage].verdict for stage in ("scores", "scaled_scores", "weights", "outputs")] == [
        "wrong", "carried forward", "carried forward", "carried forward",
    ]  # fmt: skip


def test_two_wrong_cells_are_no_slip():
    wrong = attend(PLAIN, {"scores": lambda k: [k["Q"][0] @ k["K"][0].T + np.diag([0.0, 1.0, 0.3])]})
    report = check(Problem(**PLAIN), sheet(wrong, 4))
    assert report.names == []


# Two at once


def scaled(factor):
    return lambda k: [S * factor for S in k["scores"]]


PAIRS = {
    ("scaled_by_d_k", "weights_transposed"): (PLAIN, {
        "scaled_scores": scaled(1 / 4), "outputs": lambda k: [k["weights"][0].T @ k["V"][0]],
    }),
    ("mask_left_out", "unscaled"): (CAUSAL, {
        "scaled_scores": scaled(1), "masked_scores": lambda k: k["scaled_scores"],
    }),
    ("W_Q_transposed", "softmax_columns"): (SQUARE, {
        "Q": lambda k: [k["Z"] @ np.asarray(k["W_Q"]).T],
        "weights": lambda k: [rows(softmax, S.T).T for S in before(k)],
    }),
    ("W_O_transposed", "heads_reordered"): (SQUARE_OUT, {
        "concat": lambda k: np.hstack(k["outputs"][::-1]), "multihead": lambda k: k["concat"] @ np.asarray(k["W_O"]).T,
    }),
    ("bias_left_out", "unscaled"): (BIASED, {
        "K": lambda k: [k["Z"] @ W for W in k["WK"]], "scaled_scores": scaled(1),
    }),
    ("K_from_W_Q", "V_from_W_Q"): (ALIKE, {
        "K": lambda k: [k["Z"] @ k["WQ"][0]], "V": lambda k: [k["Z"] @ k["WQ"][0]],
    }),
}  # fmt: skip


@pytest.mark.parametrize("names", PAIRS)
@pytest.mark.parametrize("decimals", [8, 3])
def test_two_mistakes_at_once_are_named_from_a_whole_sheet(names, decimals):
    keys, wrong = PAIRS[names]
    report = check(Problem(**keys), sheet(attend(keys, wrong), decimals))
    assert sorted(names) in [sorted(found) for found in report.names]
    assert all(len(found) == 2 for found in report.names)


@pytest.mark.parametrize("names", [names for names in PAIRS if "unscaled" not in names])
def test_two_mistakes_at_once_are_named_from_the_last_stage_alone(names):
    keys, wrong = PAIRS[names]
    stages = attend(keys, wrong)
    report = check(Problem(**keys), sheet(stages, 6, (list(stages)[-1],)))
    assert sorted(names) in [sorted(found) for found in report.names]


def by_columns(scores):
    return [rows(softmax, S.T).T for S in scores]


AT_ONE_STAGE = {
    ("softmax_columns", "mask_after_softmax"): lambda k: [
        np.where(k["allowed"], A, 0.0) for A in by_columns(k["scaled_scores"])
    ],
    ("softmax_base_2", "mask_after_softmax"): lambda k: [
        np.where(k["allowed"], rows(lambda row: 2.0**row / (2.0**row).sum(), S), 0.0) for S in k["scaled_scores"]
    ],
    ("softmax_columns", "mask_left_out"): lambda k: by_columns(k["scaled_scores"]),
    ("softmax_columns", "unscaled"): lambda k: by_columns([np.where(k["allowed"], S, -np.inf) for S in k["scores"]]),
}


@pytest.mark.parametrize("names", AT_ONE_STAGE)
@pytest.mark.parametrize("keys", [CAUSAL, {**HEADS, "mask": "causal"}])
def test_two_mistakes_at_one_stage_are_named(names, keys):
    wrong = attend(keys, {"weights": AT_ONE_STAGE[names]})
    assert check(Problem(**keys), sheet(wrong, 4)).names == [list(names)]
    assert list(names) in check(Problem(**keys), sheet(wrong, 6, ("weights",))).names


def test_two_mistakes_at_one_stage_in_columns():
    keys = {"Z": [[1, 0, 1], [0, 1, -1]], "W_Q": [[1, 1], [0, 2]], "W_K": [[2, 0], [1, 1]], "W_V": [[1, 2], [3, 0]]}
    scores = np.array([[2, 4, -2], [0, 2, -2], [2, 2, 0]]) / np.sqrt(2)  # keys by queries
    weights = np.triu(rows(softmax, scores))  # the softmax along each row, over the queries; then the mask
    report = check(Problem(**keys, layout="columns", mask="causal"), sheet({"weights": weights}, 4))
    assert report.names == [["softmax_columns", "mask_after_softmax"]]


def test_an_equivalent_single_mistake_does_not_hide_the_pair():
    keys, wrong = PAIRS["mask_left_out", "unscaled"]
    names = check(Problem(**keys), sheet(attend(keys, wrong), 6, ("outputs",))).names
    assert names[0] == ["stage_copied"]  # the masked scores are the scores
    assert sorted(names[1]) == ["mask_left_out", "unscaled"]


def test_a_slip_and_a_mistake():
    wrong = attend(PLAIN, {
        "K": lambda k: [k["Z"] @ k["WK"][0] + np.array([[0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 0, 0]])],
        "scaled_scores": scaled(1 / 4),
    })  # fmt: skip
    report = check(Problem(**PLAIN), sheet(wrong, 4))
    assert ["slip", "scaled_by_d_k"] in report.names


def test_a_misreading_and_a_mistake():
    wrong = attend(with_entry(PLAIN, "W_V", (0, 0), 4.0), {"scaled_scores": scaled(1)})
    report = check(Problem(**PLAIN), sheet(wrong, 4))
    assert ["misread", "unscaled"] in report.names


def test_two_are_not_sought_where_one_explains():
    keys, wrong = CASES["unscaled"]
    assert all(len(names) == 1 for names in check(Problem(**keys), sheet(attend(keys, wrong), 3)).names)


# Several names


def test_every_mistake_that_gives_these_numbers_is_named():
    report = check(P1, {"weights": {1: [".4683", ".4683", ".0634"]}})
    assert report.names == [["scaled_by_d_k"], ["scaled_twice"]]


def test_digits_that_tell_too_little_are_said():
    # Powers of 2 after √2 come within 0.003 of the scores over d_k: two decimals can't tell them apart in this row.
    report = check(P1, {"weights": {1: [".47", ".47", ".06"]}})
    assert ["scaled_by_d_k"] in report.names
    assert ["softmax_base_2"] in report.names
    assert any("one more decimal" in note for note in report.notes)


def test_what_no_known_mistake_explains_has_no_name():
    report = check(P1, {"weights": [[".2", ".3", ".5"], [".1", ".1", ".8"], [".6", ".2", ".2"]]})
    assert report.names == []
    assert not report.correct


def test_masking_after_the_softmax_and_normalising_again_is_right():
    causal = P1.replace(mask="causal")
    weights = rows(
        lambda row: row / row.sum(),
        np.array([[0.4856, 0.4856, 0.0287], [0.66957, 0.33015, 0.0003], [0.8916, 0.1069, 0.0015]]) * np.tri(3),
    )
    report = check(causal, {"weights": [[f"{x:.3f}" for x in row] for row in weights]})
    assert report.correct


def test_a_mistake_is_named_from_the_sheets_own_rounded_numbers():
    scaled_scores = [["0.50", "0.50", "-1.50"], ["1.00", "0.50", "-4.50"], ["0.00", "-1.50", "-4.50"]]
    weights = [["0.47", "0.47", "0.06"], ["0.62", "0.38", "0.00"], ["0.81", "0.18", "0.01"]]
    outputs = [["2.82", "3.36"], ["2.76", "2.52"], ["2.34", "1.80"]]
    report = check(P1, {"scaled_scores": scaled_scores, "weights": weights, "outputs": outputs})
    assert report.names == [["scaled_by_d_k"], ["scaled_twice"]]
    assert [report[s].verdict for s in ("scaled_scores", "weights", "outputs")] == ["wrong", *["carried forward"] * 2]


def test_a_layout_of_columns_has_its_own_words():
    columns = Problem(layout="columns", Q=[[1, 0, 1], [0, 1, 1]], K=[[1, 1, 2], [1, -1, 0]], V=[[2, 0, 2], [0, 3, 3]])
    report = check(columns, {"weights": [[".248", ".248", ".503"], [".576", ".140", ".284"], [".446", ".108", ".446"]]})
    said = next(one.sentences[0] for one in report.explanations if one.names == ("softmax_columns",))
    assert said == "the softmax runs along each row (over the queries), not down each column"
    assert "Column 1 of the weights sums to 1.27, not to 1." in report.notes


def test_a_stage_that_a_formula_copies_is_explained_by_the_formula_alone():
    keys, wrong = CASES["W_O_left_out"]
    assert check(Problem(**keys), sheet(attend(keys, wrong), 6)).names == [["W_O_left_out"]]


def test_rows_that_cannot_be_weights_are_said():
    report = check(P1, {"weights": [[".5", ".5", ".2"], [".67", ".33", ".00"], [".89", ".11", ".00"]]})
    assert any("Row 1 of the weights sums to 1.2" in note for note in report.notes)
    report = check(P1, {"weights": [["-.5", ".5", "1"], [".67", ".33", ".00"], [".89", ".11", ".00"]]})
    assert any("negative" in note for note in report.notes)
    halves = [[[".50", ".50", "0"]] * 3, [[".50", ".50", "0"]] * 2 + [[".50", ".50", ".20"]]]
    assert "Row 3 of head 2's weights sums to 1.2, not to 1." in check(Problem(**HEADS), {"weights": halves}).notes


# Conventions


def test_a_sheet_in_the_other_layout_is_right_in_that_layout():
    stages = {name: np.array(value).swapaxes(-1, -2) for name, value in attend(PLAIN).items()}
    report = check(Problem(**PLAIN), sheet(stages, 4))
    assert report.correct
    assert report.convention == "columns"
    assert report.names == []
    few = check(Problem(**PLAIN), sheet(stages, 4, ("weights", "outputs")))
    assert few.convention == "columns"


def test_rows_where_columns_are_asked_for():
    columns = Problem(layout="columns", **{name: np.array(value).T for name, value in PLAIN.items()})
    report = check(columns, sheet(attend(PLAIN), 4))
    assert report.correct
    assert report.convention == "rows"


def test_weights_taken_as_out_in():
    turned = {name: value if name == "Z" else np.array(value).T for name, value in SQUARE.items()}
    report = check(Problem(**SQUARE), sheet(attend(turned), 4))
    assert report.correct
    assert report.convention == "out_in"


def test_one_weight_transposed_is_a_mistake_and_no_convention():
    keys, wrong = CASES["W_K_transposed"]
    report = check(Problem(**keys), sheet(attend(keys, wrong), 4))
    assert report.convention is None
    assert not report.correct


def test_heads_after_rows_and_heads_side_by_side():
    stages = attend(HEADS)
    per_head = ("Q", "K", "V", "scores", "scaled_scores", "weights", "outputs")
    second = {name: np.array(value).swapaxes(0, 1) if name in per_head else value for name, value in stages.items()}
    report = check(Problem(**HEADS), sheet(second, 4))
    assert report.correct
    assert report.convention == "heads_second"
    beside = {name: np.hstack(value) if name in per_head else value for name, value in stages.items()}
    report = check(Problem(**HEADS), sheet(beside, 4))
    assert report.correct
    assert report.convention == "heads_side_by_side"


def test_a_convention_must_hold_for_the_whole_sheet():
    stages = attend(PLAIN)
    stages["outputs"] = np.array(stages["outputs"]).swapaxes(-1, -2)
    report = check(Problem(**PLAIN), sheet(stages, 4))
    assert report.convention is None
    assert report.names == [["transposed"]]


# Framework dumps


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-9), ("float16", 1e-5)])
def test_a_dump_that_differs_by_rounding_is_said_to(dtype, rtol):
    problem = Problem(**HEADS)
    from attncli import compute

    low = compute(problem.replace(dtype=dtype))
    report = check(problem, {name: low[name].astype(float) for name in low}, rtol=rtol)
    assert not report.correct
    assert report.rounding == dtype


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_noise_in_a_finer_dump_is_not_excused_by_float16(dtype):
    random = np.random.default_rng(5)
    stages = {name: np.array(value) for name, value in attend(HEADS).items()}
    noisy = {name: (array + 1e-3 * random.normal(size=array.shape)).astype(dtype) for name, array in stages.items()}
    report = check(Problem(**HEADS, dtype=dtype), noisy)
    assert not report.correct
    assert report.rounding is None
    assert check(Problem(**HEADS, dtype=dtype), noisy, rtol=1e-9).rounding is None


def bfloat16(array):
    bits = np.asarray(array, np.float32).view(np.uint32)
    return ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("halved", [lambda array: array.astype(np.float16), bfloat16])
@pytest.mark.parametrize("kept", [np.float32, np.float64])
def test_halved_numbers_that_are_kept_in_a_larger_dtype_are_known_by_their_bits(halved, kept):
    dump = {name: halved(np.array(value)).astype(kept) for name, value in attend(HEADS).items()}
    report = check(Problem(**HEADS), dump, rtol=1e-5)
    assert not report.correct
    assert report.rounding == "float16"


def test_a_dump_that_differs_by_a_bug_is_not_called_rounding():
    problem = Problem(**HEADS)
    from attncli import compute

    right = compute(problem)
    values = {name: right[name].copy() for name in right}
    values["weights"][1, 2, 0] += 1e-3
    report = check(problem, values, rtol=1e-5)
    assert report.first_wrong == "weights"
    assert report.rounding is None
    largest = report["weights"].largest
    assert largest.index == (1, 2, 0)
    assert largest.difference == pytest.approx(1e-3)


def test_the_reference_sheet_of_p1_is_what_its_table_says():
    assert check(P1, P1_RIGHT).correct
