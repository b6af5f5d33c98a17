"""What must hold of weights and outputs without any key, also of a foreign matrix; what a broken one looks like."""

from __future__ import annotations

import json

import numpy as np
import pytest
from variants import VARIANTS

from attncli import Problem, load
from attncli.inspecting.invariants import stored_as
from attncli.inspecting.summary import inspect
from attncli.language.errors import AttncliError


def foreign(*settings):
    return inspect(load(None, *settings, foreign=True))


def holds(summary):
    return {one.name: one.holds for one in summary.invariants}


def sentence(summary, name):
    return next(one.sentence for one in summary.invariants if one.name == name)


def test_every_shipped_example_keeps_them():
    from attncli.reading import examples

    for name in examples.names():
        summary = inspect(load(name))
        assert summary.invariants
        assert all(one.holds for one in summary.invariants), name
        assert summary.looks_like == ()


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_every_variant_keeps_them(name, dtype):
    summary = inspect(Problem(**{**VARIANTS[name], "dtype": dtype}))
    assert [one.sentence for one in summary.invariants if not one.holds] == []
    assert bool(json.loads(summary.as_json())["invariants"]) == ("weights" in [cost.name for cost in summary.costs])


def test_all_of_them_are_looked_at():
    assert holds(inspect(load("decoder-causal"))) == {
        "rows_sum_to_1": True, "none_negative": True, "masked_are_0": True, "outputs_in_range": True,
    }  # fmt: skip


# Rows sum to 1, as exactly as the numbers are known


@pytest.mark.parametrize(
    "row",
    [
        "0.33, 0.33, 0.33",  # rounded: 0.99
        "0.67, 0.17, 0.17",  # rounded: 1.01
        "0.4, 0.48, 0.1",  # cut: 0.98
        "1/3, 1/3, 1/3",
        "0.999, 0, 0",  # beside 0.999, a 0 was written to two decimals
        "0.1, 0.2, 0.7",
    ],
)
def test_sums_within_the_decimals_that_were_written(row):
    assert holds(foreign(f"weights=[[{row}]]"))["rows_sum_to_1"]


@pytest.mark.parametrize("row", ["0.33, 0.33, 0.36", "0.4858, 0.4858, 0.0288", "1/3, 1/3, 1/4", "1, 1, 0"])
def test_sums_beyond_them(row):
    assert not holds(foreign(f"weights=[[{row}]]"))["rows_sum_to_1"]


def test_the_row_is_named_and_what_it_sums_to():
    summary = foreign("weights=[[0.2, 0.8], [0.9, 0.35], [0.7, 0.7]]")
    assert sentence(summary, "rows_sum_to_1") == (
        "weights[2] sums to 1.25, not to 1 (weights written to 2 decimals may be off by 0.01), and 1 other not either"
    )
    assert [one.name for one in summary.warnings] == ["rows_sum_to_1"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_arrays_are_held_to_the_precision_that_they_were_stored_in(dtype):
    weights = np.random.default_rng(1).dirichlet(np.ones(40), 30).astype(dtype)
    assert holds(inspect(Problem(weights=weights)))["rows_sum_to_1"]
    assert stored_as(weights) == dtype
    weights[3, 5] += 0.05
    assert not holds(inspect(Problem(weights=weights)))["rows_sum_to_1"]


def test_bfloat16_is_recognised():
    bits = np.random.default_rng(1).dirichlet(np.ones(9), 9).astype(np.float32).view(np.uint32) & 0xFFFF0000
    weights = bits.view(np.float32)
    assert stored_as(weights) == "bfloat16"
    assert holds(inspect(Problem(weights=weights)))["rows_sum_to_1"]


def test_in_columns_each_column_sums_to_1():
    summary = foreign("weights=[[0.25, 0.5], [0.75, 0.5]]", "layout=columns")
    assert sentence(summary, "rows_sum_to_1") == "each column of weights sums to 1 exactly"
    broken = foreign("weights=[[0.25, 0.5], [0.75, 0.9]]", "layout=columns")
    assert sentence(broken, "rows_sum_to_1").startswith("weights[2] sums to 1.4, not to 1")


def test_rounding_on_the_way_is_allowed_for():
    summary = inspect(load("three-tokens", "round=1"))
    assert holds(summary) == dict.fromkeys(holds(summary), True)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("nan, 1", "weights[1] holds NaN, and doesn't sum to 1"),
        ("inf, 1", "weights[1] holds ∞, and doesn't sum to 1"),
        ("0, 0", "weights[1] is 0 throughout, as of a query that may attend to nothing"),
    ],
)
def test_rows_that_have_no_sum(row, said):
    assert sentence(foreign(f"weights=[[{row}]]"), "rows_sum_to_1") == said


# None negative, masked ones 0, outputs in range


def test_negative_weights_and_signs_that_mark_dropped_entries():
    summary = foreign("weights=[[-0.5, 0.5]]")
    assert sentence(summary, "none_negative") == "weights[1,1] = −0.5 is negative"
    assert summary.looks_like == (
        "without their signs, the entries of each row sum to 1: some kernels mark dropped entries so",
    )


def test_a_mask_beside_weights():
    summary = foreign("weights=[[0.9, 0.1], [0.5, 0.5]]", "mask=causal")
    assert sentence(summary, "masked_are_0") == "weights[1,2] = 0.1 is masked and not 0"
    assert holds(foreign("weights=[[1, 0], [0.5, 0.5]]", "mask=causal"))["masked_are_0"]


def test_elsewhere_a_mask_beside_weights_has_nothing_to_do():
    with pytest.raises(AttncliError, match="weights is given, so mask has nothing to do"):
        load(None, "weights=[[1, 0], [0.5, 0.5]]", "mask=causal")


def test_a_finite_mask_fill_leaks():
    problem = Problem(Q=[[1]], K=[[1], [1]], V=[[1], [2]], mask={"keep": [[1, 0]]}, mask_fill=-10)
    assert sentence(inspect(problem), "masked_are_0").startswith(
        "weights[1,2] = 1.7e−05 is masked and not 0; mask_fill"
    )
    assert holds(inspect(problem.replace(mask_fill=-1e9)))["masked_are_0"]  # exp(−1e9) is 0 exactly


def test_outputs_beyond_the_values():
    summary = foreign("weights=[[0.5, 0.5], [0, 1]]", "V=[[1, 7], [2, 9]]", "outputs=[[1.5, 8], [2.5, 9]]")
    assert sentence(summary, "outputs_in_range") == (
        "outputs[2,1] = 2.5 is outside 1 to 2, the range of its column of V"
    )
    assert holds(foreign("V=[[1, 7], [2, 9]]", "weights=[[0.5, 0.5]]", "outputs=[[1.5, 8]]"))["outputs_in_range"]


def test_outputs_are_bounded_by_the_keys_that_may_be_seen():
    problem = {"weights": [[1, 0], [0.5, 0.5]], "V": [[1], [2]], "mask": "causal"}
    assert holds(inspect(Problem(**problem, outputs=[[1], [1.5]], foreign=True)))["outputs_in_range"]
    summary = inspect(Problem(**problem, outputs=[[1.5], [1.5]], foreign=True))
    assert sentence(summary, "outputs_in_range").startswith("outputs[1,1] = 1.5 is outside 1 to 1")


# What a matrix looks like


def looks(weights, *settings):
    return foreign(f"weights={weights}", *settings).looks_like


def test_dropout_with_no_row_that_lost_nothing():
    assert looks("[[1.25, 0]]") == (
        "looks like dropout: zeros, and sums up to 1.25 = 1/(1 − 0.2); entries are 0 or w/(1 − p), p at least 0.2",
    )


def test_dropout_with_a_row_that_lost_nothing_tells_p():
    # (.5 .25 .25), (.5 .25 .25) at p = 1/2, the second has lost its last entry
    assert looks("[[1, 0.5, 0.5], [1, 0.5, 0]]")[0].endswith("entries are 0 or w/(1 − p), p = 0.5")


def test_no_dropout_where_whole_rows_disagree():
    assert not any("dropout" in said for said in looks("[[0.9, 0.9], [0.7, 0.5], [0.2, 0]]"))


def test_a_softmax_down_the_columns():
    assert looks("[[0.30, 0.80], [0.70, 0.20]]") == (
        "each column sums to 1: a softmax along the other axis, or a matrix of layout: columns",
    )


def test_a_softmax_over_the_whole_matrix():
    assert looks("[[0.1, 0.2], [0.3, 0.4]]") == ("all entries together sum to 1: a softmax over the whole matrix",)


def test_percent_and_logarithms():
    assert looks("[[20, 80], [55, 45]]") == ("each row sums to 100: these are percent",)
    assert looks("[[-0.693147180559945, -0.693147180559945]]") == ("these are the logarithms of weights",)


def test_masked_after_the_softmax_without_renormalising():
    """Row sums below 1 where the mask hides: 1/3 of three equal keys, and so on."""
    summary = foreign("weights=[[1/3, 0, 0], [1/3, 1/3, 0], [1/3, 1/3, 1/3]]", "mask=causal")
    assert summary.looks_like == (
        "the rows that the mask touches are short: masked after the softmax, and not renormalised?",
    )


def test_constant_padding():
    assert looks("[[0.5, 0.5, 0, 0], [0.25, 0.75, 0, 0]]") == ("keys 3 to 4 get 0 from every query: padding?",)
    assert looks("[[0.5, 0.5], [0.25, 0.75]]") == ()


def test_a_causal_matrix():
    assert looks("[[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]]") == ("looks causal: no token attends to a later one",)


# Tokens beside a foreign matrix


def test_tokens_that_fit_the_keys_alone_are_their_labels():
    problem = load(None, "weights=[[0.9, 0.1]]", "tokens=[Hello, world]")
    assert (problem.tokens, problem.memory_tokens) == (None, ("Hello", "world"))


def test_tokens_that_fit_nothing_are_an_error():
    with pytest.raises(AttncliError, match="tokens has 3 labels, but weights has 1 row"):
        load(None, "weights=[[0.9, 0.1]]", "tokens=[a, b, c]")


def test_tokens_of_a_square_matrix_label_both_sides():
    problem = load(None, "weights=[[0.9, 0.1], [0.5, 0.5]]", "tokens=[a, b]")
    assert problem.tokens == problem.memory_tokens == ("a", "b")
