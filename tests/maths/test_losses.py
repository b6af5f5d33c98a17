"""Softmax with sinks, logarithms of probabilities, tokens and losses against torch's and against loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from published import TORCH, assert_near

from attncli.maths.losses import (
    greatest,
    leading,
    log_softmax,
    loss,
    perplexity,
    softmax_with_sinks,
    token_losses,
)
from attncli.maths.ops import softmax

GIVEN = TORCH["losses"]
LOGITS, TARGETS = np.array(GIVEN["logits"]), np.array(GIVEN["targets"])
COUNTED = TARGETS >= 0


def test_torch_gives_the_same_log_softmax():
    assert_near(log_softmax(LOGITS), GIVEN["log_softmax"])
    assert_near(log_softmax(LOGITS.astype(np.float32)), GIVEN["float32"])


def test_torch_gives_the_same_losses():
    found = token_losses(log_softmax(LOGITS), TARGETS, COUNTED)
    assert_near(np.where(COUNTED, found, 0), GIVEN["none"])
    assert np.isnan(found[~COUNTED]).all()
    assert_near(loss(found, COUNTED), GIVEN["mean"])
    assert_near(loss(found, COUNTED, "sum"), GIVEN["sum"])


@pytest.mark.parametrize("case", GIVEN["smoothed"], ids=lambda case: f"e = {case['label_smoothing']}")
def test_torch_smooths_the_same_way(case):
    found = token_losses(log_softmax(LOGITS), TARGETS, COUNTED, label_smoothing=case["label_smoothing"])
    assert_near(np.where(COUNTED, found, 0), case["none"])
    assert_near(loss(found, COUNTED), case["mean"])


def test_transformers_gives_the_same_weights_with_sinks():
    given = TORCH["sinks"]
    scores = np.where(np.array(given["mask"]) == 1, -np.inf, np.array(given["scores"]))
    found = softmax_with_sinks(scores, np.array(given["sinks"]))
    assert_near(found, given["weights"])


def test_a_sink_takes_its_share_by_hand():
    """Scores ln 1, ln 2 and a sink of ln 3: of 6 parts the keys have 1 and 2."""
    scores = np.log(np.array([[[1.0, 2.0]], [[1.0, 2.0]]]))
    found = softmax_with_sinks(scores, np.array([math.log(3), -np.inf]))
    np.testing.assert_allclose(found, [[[1 / 6, 2 / 6]], [[1 / 3, 2 / 3]]], rtol=1e-15)


def test_a_row_that_hides_all_keys_gives_all_to_the_sink():
    found = softmax_with_sinks(np.full((1, 2, 3), -np.inf), np.array([5.0]))
    np.testing.assert_array_equal(found, np.zeros((1, 2, 3)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_stays(dtype):
    logits = LOGITS.astype(dtype)
    logs = log_softmax(logits)
    losses = token_losses(logs, TARGETS, COUNTED, label_smoothing=0.1, log_base=2)
    mean = loss(losses, COUNTED)
    scores, sinks = logits[:, None], np.zeros(1, dtype)
    made = (logs, losses, mean, perplexity(mean), perplexity(mean, 2), softmax_with_sinks(scores, sinks))
    assert [array.dtype for array in made] == [np.dtype(dtype)] * 6


def test_logarithms_by_hand():
    """Logits 0, ln 2, ln 5 are probabilities 1/8, 2/8, 5/8."""
    logits = np.log(np.array([[1.0, 2.0, 5.0]]))
    np.testing.assert_allclose(log_softmax(logits), np.log([[1 / 8, 2 / 8, 5 / 8]]), rtol=1e-15)
    np.testing.assert_allclose(token_losses(log_softmax(logits), np.array([1]), log_base=2), [2], rtol=1e-15)
    smoothed = 0.9 * math.log(4) + 0.1 * (math.log(8) + math.log(4) + math.log(1.6)) / 3
    np.testing.assert_allclose(token_losses(log_softmax(logits), np.array([1]), label_smoothing=0.1), [smoothed])


def test_large_logits_stay_finite():
    logits = np.array([[1e308, 1e308, 0.0], [1000.0, 0.0, -1000.0], [-1e308, -1e308, -1e308]])
    np.testing.assert_allclose(log_softmax(logits)[:, 0], [-math.log(2), 0, -math.log(3)])
    assert log_softmax(logits)[1].tolist() == [0, -1000, -2000]


def test_a_hidden_row_has_no_probability_anywhere():
    logits = np.array([[-np.inf, -np.inf], [0.0, -np.inf], [np.nan, 0.0]])
    np.testing.assert_array_equal(log_softmax(logits), [[-np.inf] * 2, [0, -np.inf], [np.nan] * 2])


def test_a_target_of_probability_0_costs_infinitely_much():
    logs = log_softmax(np.array([[0.0, -np.inf], [0.0, 0.0]]))
    losses = token_losses(logs, np.array([1, 0]))
    np.testing.assert_array_equal(losses, [np.inf, math.log(2)])
    assert loss(losses) == np.inf
    assert perplexity(loss(losses)) == np.inf


def test_log_softmax_is_the_logarithm_of_softmax_row_by_row_of_many():
    logits = np.random.default_rng(11).normal(size=(3, 400, 300)).astype(np.float32) * 3
    np.testing.assert_allclose(log_softmax(logits), np.log(softmax(logits)), atol=5e-6)


def test_the_mean_is_over_what_is_counted():
    losses, counted = np.array([[2.0, np.nan], [5.0, 8.0]]), np.array([[True, False], [True, True]])
    assert loss(losses, counted) == 5
    assert loss(losses, counted, "sum") == 15
    assert loss(np.array([1.0, 2.0, 6.0])) == 3
    assert np.isnan(loss(losses, np.zeros((2, 2), bool)))


def test_perplexity_of_equal_chances_is_the_count_of_words():
    losses = token_losses(log_softmax(np.zeros((3, 50))), np.array([0, 7, 49]))
    assert loss(losses) == pytest.approx(math.log(50))
    assert perplexity(loss(losses)) == pytest.approx(50)
    bits = token_losses(log_softmax(np.zeros((3, 50))), np.array([0, 7, 49]), log_base=2)
    assert perplexity(loss(bits), 2) == pytest.approx(50)
    tens = token_losses(log_softmax(np.zeros((3, 50))), np.array([0, 7, 49]), log_base=10)
    assert loss(tens) == pytest.approx(math.log10(50))
    assert perplexity(loss(tens), 10) == pytest.approx(50)


def test_of_equal_logits_the_smallest_id_wins_and_it_is_said():
    x = np.array([[[1.0, 3.0, 3.0], [4.0, 2.0, 1.0]], [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]])
    ids, ties = greatest(x)
    assert ids.tolist() == [[1, 0], [0, 2]]
    assert ties.tolist() == [[True, False], [True, False]]


def test_the_leading_tokens_go_down_and_equals_go_up():
    x = np.array([[0.1, 0.4, 0.1, 0.4, 0.0], [5.0, 4.0, 3.0, 2.0, 1.0]])
    assert leading(x, 4).tolist() == [[1, 3, 0, 2], [0, 1, 2, 3]]
    assert (leading(x, 1)[:, 0] == greatest(x)[0]).all()


def test_many_equals_stay_in_the_order_of_their_ids():
    x = np.arange(1000) % 3
    assert leading(x, 400).tolist() == [*range(2, 1000, 3), *range(1, 201, 3)]
