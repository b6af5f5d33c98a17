"""How numbers spread, where heads look, the mask in words, warnings: closed forms and numbers worked by hand."""

from __future__ import annotations

import json
from math import inf, log, sqrt

import numpy as np
import pytest

from attncli import Problem, load
from attncli.inspecting.summary import inspect
from attncli.language.errors import AttncliError

ONE_KEY = 1e4
"""A score beside which exp(0) is nothing."""


def statistics(summary):
    return {one.name: one for one in summary.statistics}


def names(summary):
    return [one.name for one in summary.warnings]


def test_statistics_leave_out_what_is_not_finite():
    one = statistics(inspect(Problem(masked_scores=[[1, -inf, -inf], [3, 5, -inf]])))["masked_scores"]
    assert (one.count, one.mean, one.least, one.most, one.minus_infinite) == (3, 3, 1, 5, 3)
    assert one.variance == pytest.approx(8 / 3)  # ((−2)² + 0² + 2²) / 3


def test_variance_of_the_scores_before_and_after_the_scale():
    summary = inspect(Problem(Q=[[1, 0, 0, 0], [0, 2, 0, 0]], K=[[4, 0, 0, 0], [0, 4, 0, 0]]))
    # scores 4, 0, 0, 8: mean 3, variance (1 + 9 + 9 + 25) / 4 = 11; scaled by 1/2: 11/4
    variance = summary.score_variance
    assert (variance.before, variance.after, variance.d_k) == (11, 2.75, 4)


def test_random_queries_and_keys_have_a_variance_of_d_k_and_of_1():
    summary = inspect(load("variance"))
    Q, K = (np.random.default_rng(seed).standard_normal((100, 64)) for seed in (64, 65))
    scores = np.einsum("id,jd->ij", Q, K)
    assert summary.score_variance.before == pytest.approx(((scores - scores.mean()) ** 2).mean())
    assert summary.score_variance.before == pytest.approx(64, rel=0.05)
    assert summary.score_variance.after == pytest.approx(1, rel=0.05)
    assert summary.heads[0].of_all == pytest.approx(0.89, abs=0.005)
    assert inspect(load("variance", "score=dot")).heads[0].of_all == pytest.approx(0.16, abs=0.005)


def test_statistics_of_each_head():
    problem = Problem(weights=[[[1, 0]], [[0.25, 0.75]]], num_heads=2)
    summary = inspect(problem)
    assert [(one.head, one.least, one.most) for one in summary.head_statistics] == [(1, 0, 1), (2, 0.25, 0.75)]
    assert [one.head for one in inspect(problem, head=2).head_statistics] == [2]
    assert statistics(inspect(problem, head=2))["weights"].variance == 0.0625


def test_keys_of_a_head_are_those_of_its_group():
    problem = Problem(
        Q=np.ones((2, 4)), K=[[1, 10], [2, 20], [3, 30]], V=[[1, 10], [2, 20], [3, 30]], num_heads=4, num_kv_heads=2
    )
    means = [statistics(inspect(problem, head=head))["K"].mean for head in (1, 2, 3, 4)]
    assert means == [2, 2, 20, 20]


def test_one_batch_entry():
    problem = Problem(weights=[[[[1, 0]]], [[[0.5, 0.5]]]])
    assert inspect(problem, batch=(2,)).heads[0].entropy == pytest.approx(log(2))
    assert inspect(problem).heads[0].entropy == pytest.approx(log(2) / 2)


# Where a head looks


def test_entropy_of_equal_weights_is_ln_m():
    look = inspect(Problem(weights=[[0.25] * 4] * 4)).heads[0]
    assert look.entropy == pytest.approx(log(4))
    assert (look.of_all, look.of_allowed) == (pytest.approx(1), pytest.approx(1))
    # |i − j| over 4 × 4 cells: 3·2·1 + 2·2·2 + 1·2·3 = 20, of 16
    assert look.distance == pytest.approx(20 / 16)
    assert (look.previous, look.first, look.itself) == (0.25, 0.25, 0.25)


def test_under_a_causal_mask_the_first_query_has_no_choice():
    problem = Problem(Q=[[0], [0], [0]], K=[[0], [0], [0]], V=[[1], [2], [3]], mask="causal")
    look = inspect(problem).heads[0]  # weights 1; 1/2 1/2; 1/3 1/3 1/3
    assert look.entropy == pytest.approx((log(2) + log(3)) / 3)
    assert look.of_all == pytest.approx((log(2) + log(3)) / 3 / log(3))
    assert look.of_allowed == pytest.approx(1)
    assert (look.choices, look.saturated) == (2, 0)
    assert look.previous == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert look.itself == look.first == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert look.distance == pytest.approx((0 + 1 / 2 + (2 + 1) / 3) / 3)


def test_a_head_that_looks_at_the_previous_token():
    summary = inspect(Problem(weights=[[1, 0, 0], [1, 0, 0], [0, 1, 0]], tokens=["a", "b", "c"]))
    look = summary.heads[0]
    assert (look.previous, look.itself, look.entropy) == (1, pytest.approx(1 / 3), 0)
    assert (look.distance, look.favourite, look.favourite_weight) == (pytest.approx(2 / 3), 1, pytest.approx(2 / 3))
    assert (look.choices, look.saturated) == (3, 3)
    assert "saturated" in names(summary)


def test_a_query_of_a_decoding_step_stands_behind_the_cached_keys():
    problem = Problem(
        Z=[[1]], W_Q=[[1]], W_K=[[1]], W_V=[[1]], scale=ONE_KEY, past_K=[[0], [2]], past_V=[[0], [0]], mask="causal"
    )
    look = inspect(problem).heads[0]  # all weight on the second of three keys, and the query is the third
    assert (look.previous, look.itself, look.distance) == (1, 0, 1)


def test_in_cross_attention_no_key_is_the_query_itself():
    look = inspect(Problem(Q=[[1], [2]], K=[[1], [2], [3]], V=[[1], [2], [3]])).heads[0]
    assert (look.distance, look.previous, look.itself) == (None, None, None)
    assert look.first > 0


def test_with_one_key_there_is_no_share_of_ln_1():
    look = inspect(Problem(weights=[[1], [1]])).heads[0]
    assert (look.entropy, look.of_all, look.of_allowed, look.choices) == (0, None, None, 0)


def test_rows_that_are_no_distribution_are_left_out():
    look = inspect(Problem(weights=[[0.5, 0.5], [2, 3]])).heads[0]
    assert (look.rows, look.left_out, look.entropy) == (1, 1, pytest.approx(log(2)))


# The mask in words


def test_the_mask_in_words():
    mask = inspect(load("three-tokens", "mask=causal")).mask
    tokens = load("three-tokens").tokens
    assert mask.sentences[2] == f"3 {tokens[2]} may attend to {', '.join(tokens)}"
    assert mask.left_out == 0


def test_a_mask_that_changes_nothing():
    mask = inspect(load("three-tokens", "mask={keep: [[1, 1, 1], [1, 1, 1], [1, 1, 1]]}")).mask
    assert mask.sentences == ("the mask changes nothing",)


def test_one_sentence_where_all_queries_see_the_same():
    problem = Problem(Q=np.ones((3, 1)), K=np.ones((4, 1)), mask={"lengths": 2})
    assert inspect(problem).mask.sentences == ("every query may attend to keys 1, 2",)


def test_a_query_that_may_attend_to_nothing():
    problem = Problem(Q=[[1], [1]], K=[[1], [2]], V=[[3], [5]], mask={"keep": [[1, 1], [0, 0]]})
    summary = inspect(problem)
    assert summary.mask.sentences[1] == "query 2 may attend to nothing"
    assert [one.sentence for one in summary.warnings] == ["query 2 may attend to nothing: its weights are zeros"]
    assert all(one.holds for one in summary.invariants)
    assert summary.heads[0].rows == 1


def test_a_long_mask_is_shortened_and_that_is_said():
    problem = Problem(Q=np.ones((50, 1)), K=np.ones((50, 1)), mask="causal")
    mask = inspect(problem).mask
    assert mask.left_out == 38
    assert len([one for one in mask.sentences if one != "…"]) == 12
    assert mask.sentences[-1] == "query 50 may attend to keys 1 to 50"
    assert len(inspect(problem, full=True).mask.sentences) == 50


def test_what_a_mask_adds():
    problem = Problem(Q=np.ones((1, 1)), K=np.ones((2, 1)), mask={"add": [[0, -2]]})
    assert inspect(problem).mask.adds == "adds −2 to 0 to the scores"


# Warnings


def test_a_saturated_softmax():
    summary = inspect(Problem(Q=[[1], [2]], K=[[0], [100]], V=[[1], [2]], score="dot"))
    assert [one.sentence for one in summary.warnings] == [
        "2 of 2 queries put more than 0.99 on one key: the softmax is saturated; the scores are not scaled"
    ]


def test_nearly_uniform_weights():
    problem = {"Q": [[1], [2]], "K": [[0], [0.001]], "V": [[1], [2]]}
    assert names(inspect(Problem(**problem))) == ["uniform"]
    assert names(inspect(Problem(**{**problem, "K": [[0], [1]]}))) == []


def test_several_heads_without_W_O():
    problem = {"Z": np.eye(2), "num_heads": 2, "W_Q": [[1, 0], [0, 1]], "W_K": np.eye(2), "W_V": np.eye(2)}
    assert names(inspect(Problem(**problem))) == ["no_W_O"]
    assert names(inspect(Problem(**problem, W_O=np.eye(2)))) == []


def test_overflow_of_the_dtype():
    summary = inspect(Problem(Q=[[300]], K=[[300], [1]], V=[[1], [2]], dtype="float16"))
    assert [one.sentence for one in summary.warnings if one.name == "overflow"] == [
        "scores: 1 of 2 numbers overflows float16"
    ]


@pytest.mark.parametrize(("scale", "name"), [(1 / 4, "1/d_k"), (2, "√d_k"), (1 / sqrt(3), "1/√d_model")])
def test_a_scale_that_is_another_well_known_number(scale, name):
    problem = {"Z": np.eye(3), "W_Q": np.eye(3, 4), "W_K": np.eye(3, 4), "W_V": np.eye(3, 5)}
    found = [one.sentence for one in inspect(Problem(**problem, scale=scale)).warnings if one.name == "scale"]
    assert found == [f"scale {scale:.4g} is {name}; 1/√d_k is 0.5"]
    assert "scale" not in names(inspect(Problem(**problem, scale=0.5)))
    assert "scale" not in names(inspect(Problem(**problem, scale=0.3)))


def test_where_the_scale_comes_from():
    problem = {"Q": np.ones((1, 4)), "K": np.ones((1, 4))}
    assert (inspect(Problem(**problem)).scale.value, inspect(Problem(**problem)).scale.source) == (0.5, "1/√d_k")
    given = inspect(Problem(**problem, scale=0.3)).scale
    assert (given.value, given.source, given.usual) == (0.3, "given", 0.5)
    assert inspect(Problem(**problem, score="dot")).scale is None


# As data


def test_everything_is_plain_json():
    problem = Problem(Q=[[1], [1]], K=[[1], [2]], V=[[3], [np.nan]], mask={"keep": [[1, 0], [0, 0]]}, empty_rows="nan")
    text = inspect(problem).as_json()
    data = json.loads(text, parse_constant=lambda word: pytest.fail(word))
    assert data["statistics"][-1]["nan"] == 1
    assert data == inspect(problem).as_data()
    assert json.loads(inspect(problem).as_json(digits=1))["score_variance"]["before"] == 0.2


def test_a_stage_that_is_not_there_is_refused():
    with pytest.raises(AttncliError, match="this problem has no multihead: it has no W_O"):
        inspect(load("three-tokens"), ["multihead"])
