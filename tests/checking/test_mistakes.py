"""Every known mistake, made by an independent computation, is named; the right sheet never is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from forms import head_forms, in_the_other_layout
from plain import attend, before, rows, sheet, softmax

from attncli import Problem
from attncli.checking.check import check
from attncli.checking.mistakes import MISTAKES

RANDOM = np.random.default_rng(7)


def some(*shape: int) -> np.ndarray:
    """Numbers of one decimal, none of them 0, some negative."""
    numbers = RANDOM.integers(2, 10, size=shape) / 10
    return numbers * RANDOM.choice([1, 1, -1], size=shape)


# Sizes are all different, so that no mistake hides behind another.
PLAIN = {"Z": some(3, 5), "W_Q": some(5, 4), "W_K": some(5, 4), "W_V": some(5, 2)}
SQUARE = {"Z": some(3, 4), "W_Q": some(4, 4), "W_K": some(4, 4), "W_V": some(4, 4)}
NARROW = {"Z": some(4, 3), "W_Q": some(3, 4), "W_K": some(3, 4), "W_V": some(3, 4)}
ALIKE = {"Z": some(3, 5), "W_Q": some(5, 2), "W_K": some(5, 2), "W_V": some(5, 2)}
CROSS = {"Z": some(2, 5), "memory": some(4, 5), "W_Q": some(5, 3), "W_K": some(5, 3), "W_V": some(5, 2)}
LEVEL = {"Z": some(3, 5), "memory": some(3, 5), "W_Q": some(5, 4), "W_K": some(5, 4), "W_V": some(5, 2)}
CAUSAL = {**PLAIN, "mask": "causal"}
CORNER = {**CROSS, "mask": {"causal": "bottom-right"}}
PADDED = {**PLAIN, "Z": some(4, 5), "mask": {"lengths": 3}}
ADDED = {**PLAIN, "mask": {"add": [[0, -1.5, 0.5], [0.7, 0, -2.0], [-1.0, 0.3, 0]]}}
CAPPED = {**CAUSAL, "softcap": 1.5}
HEADS = {
    "num_heads": 2, "Z": some(3, 5), "W_Q": some(5, 8), "W_K": some(5, 8), "W_V": some(5, 4), "W_O": some(4, 3),
}  # fmt: skip
SQUARE_OUT = {**HEADS, "W_O": some(4, 4)}
GROUPED = {
    "num_heads": 4, "num_kv_heads": 2, "Z": some(3, 5), "W_Q": some(5, 8), "W_K": some(5, 4), "W_V": some(5, 6),
}  # fmt: skip
BIASED = {**HEADS, "b_Q": some(8), "b_K": some(8), "b_V": some(4), "b_O": some(3)}
DOT = {**PLAIN, "score": "dot"}

Known = dict[str, Any]


def scaled_by(factor: Any) -> Any:
    return {"scaled_scores": lambda k: [S * factor(k) for S in k["scores"]]}


def weights_by(function: Any) -> Any:
    return {"weights": lambda k: [function(S) for S in before(k)]}


def masked_by(function: Any) -> Any:
    return {"masked_scores": lambda k: [function(S, k) for S in k.get("capped_scores", k["scaled_scores"])]}


def allowed_by(rule: Any) -> Any:
    """A mask by a rule for query i, key j (from 0), the number of queries n and of keys m."""

    def wrong(S: np.ndarray, k: Known) -> np.ndarray:
        n, m = S.shape
        return np.array([[S[i, j] if rule(i, j, n, m) else -np.inf for j in range(m)] for i in range(n)])

    return masked_by(wrong)


def heads_by(function: Any) -> Any:
    return {"concat": lambda k: function(k["outputs"])}


def split_by_reshape(name: str, source: str) -> Any:
    """The fused projection, cut into heads as if tokens and heads lay one after the other."""

    def wrong(k: Known) -> list[np.ndarray]:
        fused = list((k[source] @ np.asarray(k[f"W_{name}"])).ravel())
        rows_, width = len(k[source]), len(fused) // len(k[source]) // k["h"]
        size = rows_ * width
        return [np.array(fused[r * size : (r + 1) * size]).reshape(rows_, width) for r in range(k["h"])]

    return wrong


def split_interleaved(name: str, source: str) -> Any:
    def wrong(k: Known) -> list[np.ndarray]:
        fused = k[source] @ np.asarray(k[f"W_{name}"])
        return [np.array([[row[c] for c in range(r, len(row), k["h"])] for row in fused]) for r in range(k["h"])]

    return wrong


def interleaved(outputs: list[np.ndarray]) -> np.ndarray:
    return np.array(
        [[one[i, c] for c in range(outputs[0].shape[1]) for one in outputs] for i in range(len(outputs[0]))]
    )


def joined_by_reshape(outputs: list[np.ndarray]) -> np.ndarray:
    flat = [number for output in outputs for row in output for number in row]
    return np.array(flat).reshape(len(outputs[0]), -1)


def one_big_head(k: Known) -> list[np.ndarray]:
    total = np.hstack(k["Q"]) @ np.hstack(k["K"]).T
    return [total] * k["h"]


def tile(k: Known, r: int) -> int:
    return r % k["g"]


def column_sums_to_one(S: np.ndarray) -> np.ndarray:
    return np.column_stack([softmax(S[:, j]) for j in range(S.shape[1])])


def over_heads(k: Known) -> list[np.ndarray]:
    powers = [np.exp(S) for S in before(k)]
    return [P / sum(powers) for P in powers]


def base(number: float) -> Any:
    return lambda S: np.array([[number**s / sum(number**t for t in row) for s in row] for row in S])


def argmax(S: np.ndarray) -> np.ndarray:
    return np.array(
        [[1.0 if j == max(range(len(row)), key=row.__getitem__) else 0.0 for j in range(len(row))] for row in S]
    )


def mean(matrices: list[np.ndarray]) -> np.ndarray:
    return sum(matrices) / len(matrices)


def made_with(name: str, other: str, source: str = "M") -> Any:
    return {name: lambda k: [k[source] @ W for W in k[f"W{other}"]]}


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    # scale
    "unscaled": (PLAIN, scaled_by(lambda k: 1)),
    "scaled_by_d_k": (PLAIN, scaled_by(lambda k: 1 / 4)),
    "scaled_by_sqrt_d_model": (PLAIN, scaled_by(lambda k: 1 / 5**0.5)),
    "scaled_by_sqrt_keys": (PLAIN, scaled_by(lambda k: 1 / 3**0.5)),
    "scaled_by_sqrt_d_v": (PLAIN, scaled_by(lambda k: 1 / 2**0.5)),
    "scaled_by_sqrt_all_heads": (HEADS, scaled_by(lambda k: 1 / 8**0.5)),
    "multiplied_by_sqrt_d_k": (PLAIN, scaled_by(lambda k: 2)),
    "scaled_twice": (PLAIN, scaled_by(lambda k: 1 / 4)),
    "scaled_queries": (
        PLAIN, {"Q": lambda k: [k["Z"] @ k["WQ"][0] / 2], "scaled_scores": lambda k: k["scores"]},
    ),
    "scaled_needlessly": (DOT, {
        "scaled_scores": lambda k: k["scores"], "weights": lambda k: [rows(softmax, S / 2) for S in k["scores"]],
    }),
    # softmax
    "softmax_columns": (PLAIN, weights_by(column_sums_to_one)),
    "softmax_whole_matrix": (PLAIN, weights_by(lambda S: np.exp(S) / np.exp(S).sum())),
    "softmax_over_heads": (HEADS, {"weights": over_heads}),
    "not_normalised": (PLAIN, weights_by(np.exp)),
    "softmax_base_2": (PLAIN, weights_by(base(2.0))),
    "softmax_base_3": (PLAIN, weights_by(base(3.0))),
    "softmax_left_out": (PLAIN, weights_by(lambda S: S)),
    "divided_by_sum": (PLAIN, weights_by(lambda S: rows(lambda row: row / sum(row), S))),
    "exp_over_raw_sum": (PLAIN, weights_by(lambda S: rows(lambda row: np.exp(row) / sum(row), S))),
    "softmax_twice": (PLAIN, weights_by(lambda S: rows(softmax, rows(softmax, S)))),
    "hardmax": (PLAIN, weights_by(argmax)),
    "values_averaged_over_heads": (HEADS, {"weights": lambda k: [mean([rows(softmax, S) for S in before(k)])] * 2}),
    # mask
    "mask_left_out": (CAUSAL, masked_by(lambda S, k: S)),
    "mask_inverted": (CAUSAL, allowed_by(lambda i, j, n, m: j > i)),
    "mask_transposed": (CAUSAL, allowed_by(lambda i, j, n, m: j >= i)),
    "mask_hides_diagonal": (CAUSAL, allowed_by(lambda i, j, n, m: j < i)),
    "mask_one_key_too_many": (CAUSAL, allowed_by(lambda i, j, n, m: j <= i + 1)),
    "mask_after_softmax": (
        CAUSAL, {"weights": lambda k: [rows(softmax, S) * np.tri(3) for S in k["scaled_scores"]]},
    ),
    "mask_as_zero": (CAUSAL, masked_by(lambda S, k: S * np.tri(3))),
    "mask_fill_too_small": (CAUSAL, masked_by(lambda S, k: np.where(np.tri(3) == 1, S, -10))),
    "causal_other_corner": (CORNER, allowed_by(lambda i, j, n, m: j <= i)),
    "padding_on_queries": (PADDED, allowed_by(lambda i, j, n, m: i < 3)),
    "softcap_after_mask": (CAPPED, {
        "masked_scores": lambda k: [1.5 * np.tanh(np.where(k["allowed"], S, -1e30) / 1.5) for S in k["scaled_scores"]],
    }),
    "mask_added_as_numbers": (CAUSAL, masked_by(lambda S, k: S + np.tri(3))),
    "mask_before_scaling": (ADDED, masked_by(lambda S, k: S + k["bias"] / 2)),
    # products
    "W_Q_transposed": (SQUARE, {"Q": lambda k: [k["Z"] @ np.asarray(k["W_Q"]).T]}),
    "W_K_transposed": (SQUARE, {"K": lambda k: [k["Z"] @ np.asarray(k["W_K"]).T]}),
    "W_V_transposed": (SQUARE, {"V": lambda k: [k["Z"] @ np.asarray(k["W_V"]).T]}),
    "K_not_transposed": (NARROW, {"scores": lambda k: [k["Q"][0] @ k["K"][0]]}),
    "Q_K_swapped": (PLAIN, {"scores": lambda k: [k["K"][0] @ k["Q"][0].T]}),
    "W_Q_W_K_exchanged": (PLAIN, {**made_with("Q", "K"), **made_with("K", "Q")}),
    "K_V_swapped": (ALIKE, {**made_with("K", "V"), **made_with("V", "K")}),
    "Q_from_W_K": (PLAIN, made_with("Q", "K")),
    "K_from_W_Q": (PLAIN, made_with("K", "Q")),
    "V_from_W_K": (PLAIN, made_with("V", "K")),
    "V_from_W_Q": (PLAIN, made_with("V", "Q")),
    "V_projected_twice": (SQUARE, {"V": lambda k: [k["K"][0] @ k["WV"][0]]}),
    "weights_times_K": (PLAIN, {"outputs": lambda k: [k["weights"][0] @ k["K"][0]]}),
    "weights_times_Q": (PLAIN, {"outputs": lambda k: [k["weights"][0] @ k["Q"][0]]}),
    "weights_times_Z": (PLAIN, {"outputs": lambda k: [k["weights"][0] @ k["Z"]]}),
    "weights_transposed": (PLAIN, {"outputs": lambda k: [k["weights"][0].T @ k["V"][0]]}),
    "weights_for_outputs": (PLAIN, {"outputs": lambda k: k["weights"]}),
    "memory_ignored": (LEVEL, {**made_with("K", "K", "Z"), **made_with("V", "V", "Z")}),
    "V_from_Z": (LEVEL, made_with("V", "V", "Z")),
    "K_from_Z": (LEVEL, made_with("K", "K", "Z")),
    "queries_from_memory": (LEVEL, made_with("Q", "Q", "M")),
    "no_projections": (PLAIN, {name: lambda k: [k["Z"]] for name in ("Q", "K", "V")}),
    "inputs_times_sqrt_d_model": (
        PLAIN, {name: lambda k, name=name: [5**0.5 * k["Z"] @ k[f"W{name}"][0]] for name in ("Q", "K", "V")},
    ),
    # heads
    "heads_reshaped": (HEADS, {name: split_by_reshape(name, source) for name, source in ("QZ", "KM", "VM")}),
    "heads_split_interleaved": (HEADS, {name: split_interleaved(name, source) for name, source in ("QZ", "KM", "VM")}),
    "heads_interleaved": (HEADS, heads_by(interleaved)),
    "heads_joined_by_reshape": (HEADS, heads_by(joined_by_reshape)),
    "heads_reordered": (HEADS, heads_by(lambda outputs: np.hstack(outputs[::-1]))),
    "heads_averaged": (HEADS, heads_by(mean)),
    "heads_summed": (HEADS, heads_by(sum)),
    "heads_maximised": (HEADS, heads_by(lambda outputs: np.maximum(*outputs))),
    "grouped_in_tiles": (GROUPED, {
        "scores": lambda k: [k["Q"][r] @ k["K"][tile(k, r)].T for r in range(4)],
        "outputs": lambda k: [k["weights"][r] @ k["V"][tile(k, r)] for r in range(4)],
    }),
    "one_big_head": (HEADS, {"scores": one_big_head, "scaled_scores": lambda k: [S / 8**0.5 for S in k["scores"]]}),
    # output
    "W_O_left_out": (SQUARE_OUT, {"multihead": lambda k: k["concat"]}),
    "W_O_transposed": (SQUARE_OUT, {"multihead": lambda k: k["concat"] @ np.asarray(k["W_O"]).T}),
    "activation_after_W_O": (HEADS, {"multihead": lambda k: np.maximum(k["concat"] @ k["W_O"], 0)}),
    "contributions_averaged": (HEADS, {"multihead": lambda k: k["concat"] @ k["W_O"] / 2}),
    "bias_left_out": (BIASED, {"V": lambda k: [k["Z"] @ W for W in k["WV"]]}),
    "bias_twice": (BIASED, {"multihead": lambda k: k["concat"] @ k["W_O"] + 2 * k["b_O"]}),
    # anywhere
    "stage_copied": (ALIKE, {"outputs": lambda k: k["V"]}),
    "signs_dropped": (PLAIN, {"K": lambda k: [abs(k["Z"] @ k["WK"][0])]}),
    "transposed": (PLAIN, {"weights": lambda k: [rows(softmax, S).T for S in before(k)]}),
    "other_head": (HEADS, {"outputs": lambda k: [k["weights"][1] @ k["V"][1], k["weights"][1] @ k["V"][1]]}),
    "rows_exchanged": (PLAIN, {"V": lambda k: [(k["Z"] @ k["WV"][0])[[0, 2, 1]]]}),
    "columns_exchanged": (PLAIN, {"K": lambda k: [(k["Z"] @ k["WK"][0])[:, [1, 0, 2, 3]]]}),
}  # fmt: skip

ELSEWHERE = {"misread", "slip", "one_mask_left_out", "rounded_on_the_way"}
"""Rows that other tests prove."""


def test_every_row_of_the_table_has_a_case():
    assert set(CASES) | ELSEWHERE == set(MISTAKES)


def problem_of(keys: dict[str, Any]) -> Problem:
    return Problem(**keys)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("decimals", [8, 2])
def test_a_mistake_is_named(name, decimals):
    keys, wrong = CASES[name]
    report = check(problem_of(keys), mistaken(keys, wrong, decimals))
    assert not report.correct
    assert [name] in report.names
    assert all(len(names) == 1 for names in report.names)


def mistaken(keys: dict[str, Any], wrong: Any, decimals: int) -> dict[str, Any]:
    stages = attend(keys, wrong)
    if keys.get("score") == "dot":
        del stages["scaled_scores"]
    return sheet(stages, decimals)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("decimals", [8, 2])
def test_the_right_sheet_is_not_accused(name, decimals):
    keys, _ = CASES[name]
    right = {"scaled_scores": lambda k: k["scores"]} if keys.get("score") == "dot" else None
    report = check(problem_of(keys), mistaken(keys, right, decimals))
    assert report.correct
    assert report.names == []
    assert {verdict.verdict for verdict in report.stages} == {"correct"}


LAST = {"bias_left_out": "multihead", "bias_twice": "multihead"}


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("scaled_queries", "transposed")])
def test_a_mistake_is_named_from_the_last_stage_that_shows_it(name):
    """Only one stage on the sheet: the weights where they are wrong, else the last one."""
    keys, wrong = CASES[name]
    right = attend(keys, {"scaled_scores": lambda k: k["scores"]} if keys.get("score") == "dot" else None)
    stages = attend(keys, wrong)
    last = [stage for stage in stages if not np.array_equal(np.array(stages[stage]), np.array(right[stage]))][-1]
    report = check(problem_of(keys), sheet(stages, 6, (last,)))
    assert [name] in report.names


@pytest.mark.parametrize(
    ("name", "keys", "stage", "said"),
    [
        ("mask_left_out", CAUSAL, "masked_scores", "the weights are those of unmasked scores"),
        ("unscaled", PLAIN, "scaled_scores", "the weights are those of unscaled scores"),
        ("unscaled", CAUSAL, "scaled_scores", "the weights are those of unscaled scores"),
    ],
)
@pytest.mark.parametrize("decimals", [8, 2])
def test_a_stage_that_is_right_and_not_used_is_named(name, keys, stage, said, decimals):
    """As in a program that makes masked scores, and takes the softmax of others."""
    stages = attend(keys, CASES[name][1])
    stages |= {shown: attend(keys)[shown] for shown in ("scaled_scores", "masked_scores") if shown in stages}
    report = check(problem_of(keys), sheet(stages, decimals))
    assert (report.first_wrong, report.names[0]) == ("weights", [name])
    assert said in report.explanations[0].sentences[0]


def test_rows_are_told_from_each_other_by_name_and_say_what_they_are():
    for name, mistake in MISTAKES.items():
        assert mistake.name == name
        assert name.replace("_", "").isalnum()
        assert mistake.sentence
        assert mistake.formula
        assert mistake.source


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_named_in_columns_and_with_the_heads_written_apart(name):
    keys, wrong = CASES[name]
    stages = mistaken(keys, wrong, 6)
    turned = {stage: np.array(value, dtype=object).swapaxes(-1, -2).tolist() for stage, value in stages.items()}
    assert [name] in check(Problem(**in_the_other_layout(keys)), turned).names
    for other in head_forms(keys):
        assert [name] in check(Problem(**other), stages).names


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_named_where_there_are_several_sentences(name):
    keys, wrong = CASES[name]
    second = {**keys, "Z": np.asarray(keys["Z"])[::-1] * 1.1}
    both = [mistaken(each, wrong, 6) for each in (keys, second)]
    stages = {stage: [sheet_[stage] for sheet_ in both] for stage in both[0]}
    problem = {**keys, "Z": np.stack([keys["Z"], second["Z"]])}
    if "memory" in keys:
        problem["memory"] = np.stack([keys["memory"]] * 2)
    assert [name] in check(Problem(**problem), stages).names


MISSHAPEN = {
    "memory_ignored": (CROSS, {**made_with("K", "K", "Z"), **made_with("V", "V", "Z")}),
    "queries_from_memory": (CROSS, made_with("Q", "Q", "M")),
    "Q_K_swapped": (CROSS, {"scores": lambda k: [k["K"][0] @ k["Q"][0].T]}),
}


@pytest.mark.parametrize("name", MISSHAPEN)
@pytest.mark.parametrize("decimals", [8, 2])
def test_a_mistake_that_changes_the_shapes_is_named_too(name, decimals):
    keys, wrong = MISSHAPEN[name]
    report = check(Problem(**keys), sheet(attend(keys, wrong), decimals))
    assert [name] in report.names


def test_the_other_corner_is_named_both_ways():
    keys = {**CROSS, "mask": {"causal": "top-left"}}
    wrong = allowed_by(lambda i, j, n, m: j <= i + m - n)
    assert ["causal_other_corner"] in check(Problem(**keys), sheet(attend(keys, wrong), 4)).names


def test_one_of_two_masks_left_out():
    keys = {**PADDED, "mask": ["causal", {"lengths": 3}]}
    both = allowed_by(lambda i, j, n, m: j <= i and j < 3)
    assert check(Problem(**keys), sheet(attend(PADDED, both), 4)).correct
    report = check(Problem(**keys), sheet(attend(PADDED, allowed_by(lambda i, j, n, m: j < 3)), 4))
    assert ["one_mask_left_out"] in report.names
    assert "mask 1 of 2" in next(one for one in report.explanations if one.names == ("one_mask_left_out",)).sentences[0]


@pytest.mark.parametrize("decimals", [1, 2])
def test_rounding_on_the_way_that_the_sheet_does_not_show_is_said(decimals):
    wide = {**PLAIN, "W_V": np.asarray(PLAIN["W_V"]) * 30}
    rounded = attend(wide, {"weights": lambda k: [rows(softmax, S).round(decimals) for S in before(k)]})
    report = check(Problem(**wide), sheet(rounded, 4, ("outputs",)))
    assert ["rounded_on_the_way"] in report.names
    told = f"Rounding as the sheet does, by --round weights={decimals}, makes it right."
    assert (told in report.notes) == (report.names == [["rounded_on_the_way"]])
    assert check(Problem(**wide, round={"weights": decimals}), sheet(rounded, 4, ("outputs",))).correct


def test_numbers_that_were_cut_on_the_way_are_not_right_by_rounding():
    wide = {**PLAIN, "W_V": np.asarray(PLAIN["W_V"]) * 30}
    cut = attend(wide, {"weights": lambda k: [np.floor(rows(softmax, S) * 100) / 100 for S in before(k)]})
    report = check(Problem(**wide), sheet(cut, 4, ("outputs",)))
    assert report.names == [["rounded_on_the_way"]]
    assert not any("--round" in note for note in report.notes)


@pytest.mark.parametrize("weights", ["zeros", "equal"])
def test_a_query_that_padding_hides_by_mistake_may_be_left_empty_or_spread(weights):
    """Hidden queries: weights of 0, or all equal where the fill is finite."""
    filler = 0.0 if weights == "zeros" else 0.25

    def wrong(k):
        return [np.where(np.arange(4)[:, None] < 3, rows(softmax, S), filler) for S in k["scaled_scores"]]

    stages = attend(PADDED, {**allowed_by(lambda i, j, n, m: i < 3), "weights": wrong})
    assert ["padding_on_queries"] in check(Problem(**PADDED), sheet(stages, 3, ("weights", "outputs"))).names
