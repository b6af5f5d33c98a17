"""One way to a stage: what is held in a stage's place goes on as the stage itself would, cached rows and all."""

from __future__ import annotations

import numpy as np
import pytest

from attncli import Problem, check
from attncli.engine.evaluate import evaluate
from attncli.stages.plan import plan

IDENTITY = [[1, 0], [0, 1]]
CACHED = {
    "Z": [[2, 0], [0, 1]],
    "W_Q": [[1, 1], [0, 1]],
    "W_K": IDENTITY,
    "W_V": IDENTITY,
    "past_K": [[1, 0], [0, 1], [1, 1]],
    "past_V": [[1, 0], [0, 1], [1, 1]],
}
"""Q is [[2, 2], [0, 1]]; K the three cached rows, then Z: scores [[2, 2, 4, 4, 2], [0, 1, 1, 0, 1]]."""


def verdicts(problem, sheet):
    return {one.stage: one.verdict for one in check(problem, sheet).stages if one.verdict != "missing"}


@pytest.mark.parametrize(("number", "verdict"), [(2.4567, "carried forward"), (2.6567, "wrong")])
def test_scores_beside_cached_keys_follow_from_numbers_that_the_written_query_stands_for(number, verdict):
    """By hand: 2.5 on the sheet's Q stands for 2.45 to 2.55, and q_1 times the keys is (2, q, 2 + q, 4, q)."""
    sheet = {
        "Q": [["2", "2.5"], ["0", "1"]],
        "scores": [["2", f"{number}", f"{2 + number}", "4", f"{number}"], ["0", "1", "1", "0", "1"]],
    }
    assert verdicts(Problem(**CACHED), sheet) == {"Q": "wrong", "scores": verdict}


def test_scores_that_follow_beside_cached_keys_are_carried_forward():
    sheet = {"Q": [["2", "2.5"], ["0", "1"]], "scores": [["2", "2.5", "4.5", "4", "2.5"], ["0", "1", "1", "0", "1"]]}
    assert verdicts(Problem(**CACHED), sheet) == {"Q": "wrong", "scores": "carried forward"}


@pytest.mark.parametrize("heads", ["fused", "per head", "grouped"])
def test_what_follows_from_a_wrong_query_is_carried_forward_past_cached_rows(heads):
    """q_11 is one more than it should be, so each score of head 1's first query is more by its key's first entry."""
    random = np.random.default_rng(3)
    whole = {
        name: random.integers(-2, 3, shape).astype(float)
        for name, shape in (("Z", (2, 3)), ("W_Q", (3, 4)), ("W_K", (3, 4)), ("W_V", (3, 4)))
    }
    past = {name: random.integers(-2, 3, (3, 4)).astype(float) for name in ("past_K", "past_V")}
    if heads == "per head":
        past = {name: array.reshape(3, 2, 2).swapaxes(0, 1) for name, array in past.items()}
    if heads == "grouped":
        whole |= {name: whole[name][:, :2] for name in ("W_K", "W_V")}
        past = {name: array[:, :2] for name, array in past.items()}
    more = {"num_kv_heads": 1} if heads == "grouped" else {"per_head": True} if heads == "per head" else {}
    problem = Problem(**whole, **past, num_heads=2, **more)
    values = evaluate(plan(problem))
    Q, scores = values["Q"].copy(), values["scores"].copy()
    Q[0, 0, 0] += 1
    scores[0, 0] += values["K"][0, :, 0]
    sheet = {"Q": Q.tolist(), "scores": scores.tolist()}
    assert verdicts(problem, sheet) == {"Q": "wrong", "scores": "carried forward"}


def test_a_held_stage_may_have_further_axes_before_the_others():
    problem = Problem(**CACHED)
    Q = evaluate(plan(problem))["Q"]
    held = np.stack([Q, Q + 1, Q * 2])
    values = evaluate(plan(problem), {"Q": held}, ["scores"])
    assert values["scores"].shape == (3, 1, 2, 5)
    np.testing.assert_array_equal(values["scores"][2], 2 * values["scores"][0])
    np.testing.assert_array_equal(values["scores"][0, 0], [[2, 2, 4, 4, 2], [0, 1, 1, 0, 1]])


def test_only_what_is_needed_is_made():
    assert set(evaluate(plan(Problem(**CACHED)), only=["scores"])) == {"Q", "K", "scores"}


def test_another_op_in_a_stages_place_changes_what_follows():
    problem = Problem(**CACHED)

    class Transposed:
        def forward(self, x, v):
            return -v["scores"]

    steps = plan(problem).using({"scaled_scores": Transposed()})
    values = evaluate(steps)
    np.testing.assert_array_equal(values["scaled_scores"], -values["scores"])
    np.testing.assert_allclose(values["weights"].sum(axis=-1), 1)
