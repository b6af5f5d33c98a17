"""The chain from Z to MultiHead(Z), against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import attncli
from attncli import AttncliError, Problem, compute
from attncli.stages.table import STAGES

I2 = [[1, 0], [0, 1]]
THREE = {"Z": [[1, 0], [0, 1], [1, 1]], "W_Q": I2, "W_K": [[1, 1], [1, -1]], "W_V": [[2, 0], [0, 3]]}
LN2, LN3 = math.log(2), math.log(3)


def close(actual, expected, **room):
    np.testing.assert_allclose(actual, expected, **{"rtol": 1e-14, "atol": 1e-14, **room})


def test_three_tokens_stage_by_stage():
    result = compute(Problem(**THREE))
    assert list(result) == ["Q", "K", "V", "scores", "scaled_scores", "weights", "outputs"]
    assert {array.ndim for array in result.values()} == {3}
    assert result["Q"][0].tolist() == [[1, 0], [0, 1], [1, 1]]
    assert result["K"][0].tolist() == [[1, 1], [1, -1], [2, 0]]
    assert result["V"][0].tolist() == [[2, 0], [0, 3], [2, 3]]
    assert result["scores"][0].tolist() == [[1, 1, 2], [1, -1, 0], [2, 0, 2]]
    close(result["scaled_scores"][0], np.array([[1, 1, 2], [1, -1, 0], [2, 0, 2]]) / math.sqrt(2))
    a = math.exp(1 / math.sqrt(2))  # row 1: a, a, a² over their sum, so 1, 1, a of 2 + a
    close(result["weights"][0, 0], np.array([1, 1, a]) / (2 + a))
    close(result["weights"][0, 1], np.array([a * a, 1, a]) / (a * a + 1 + a))
    close(result["outputs"][0, 0], np.array([2 + 2 * a, 3 + 3 * a]) / (2 + a))


def test_weights_that_are_fractions():
    """Scores 0, ln 2, ln 3 make the weights 1/6, 2/6, 3/6."""
    result = compute(Problem(Q=[[1]], K=[[0], [LN2], [LN3]], V=[[6, 0], [0, 6], [6, 6]]))
    close(result["weights"], [[[1 / 6, 2 / 6, 3 / 6]]])
    close(result["outputs"], [[[1 + 3, 2 + 3]]])


def test_biases_are_added_to_every_row():
    """Z W + b: 1·2 + 10 = 12, and so on; b_O after W_O."""
    result = compute(Problem(
        Z=[[1], [3]], W_Q=[[2]], W_K=[[0]], W_V=[[4]], b_Q=[10], b_K=[0], b_V=[20], W_O=[[1, 0]], b_O=[100, 200],
    ))  # fmt: skip
    assert result["Q"][0].tolist() == [[12], [16]]
    assert result["V"][0].tolist() == [[24], [32]]
    assert result["outputs"][0].tolist() == [[28], [28]]  # equal scores: the mean of 24 and 32
    assert result["multihead"].tolist() == [[128, 200], [128, 200]]


def test_keys_and_values_come_from_the_memory():
    """Cross-attention: n = 1, m = 3, widths 1 and 2. Scores 0, ln 2, 2 ln 2 make 1, 2, 4 of 7."""
    result = compute(Problem(
        Z=[[1]], memory=[[0, 7], [1, 0], [2, 0]], W_Q=[[1]], W_K=[[LN2], [0]], W_V=[[1], [1]], scale=1,
    ))  # fmt: skip
    close(result["weights"], [[[1 / 7, 2 / 7, 4 / 7]]])
    close(result["outputs"], [[[7 / 7 + 2 / 7 + 8 / 7]]])


def test_values_may_come_from_elsewhere_than_keys():
    result = compute(Problem(
        Z=[[1]], memory=[[0, 7], [0, 0]], memory_V=[[1, 2, 3], [3, 2, 1]], W_Q=[[1]], W_K=[[1], [0]],
        W_V=[[1], [1], [2]],
    ))  # fmt: skip
    assert result["V"][0].tolist() == [[9], [7]]
    assert result["outputs"].tolist() == [[[8]]]


def test_what_is_computed_can_be_chosen():
    result = compute(Problem(**THREE), ["outputs", "Q"])
    assert list(result) == ["Q", "outputs"]


@pytest.mark.parametrize(
    ("stage", "why"),
    [("multihead", "no W_O"), ("masked_scores", "no mask"), ("capped_scores", "no softcap"), ("concat", "one head")],
)
def test_a_stage_that_is_not_there_says_why(stage, why):
    with pytest.raises(AttncliError, match=why):
        compute(Problem(**THREE), [stage])


@pytest.mark.parametrize(
    ("name", "meant"), [("weigths", "weights"), ("A", "weights"), ("q", "Q"), ("S~", "scaled_scores")]
)
def test_an_unknown_stage_suggests_the_one_that_is_meant(name, meant):
    with pytest.raises(AttncliError) as caught:
        compute(Problem(**THREE), [name])
    assert caught.value.hint[0] == f"Did you mean {meant}?"


def test_a_table_row_a_stage():
    """Every stage is there in a problem that has all, in the table's order, with the sizes that its axes name."""
    problem = Problem(
        Z=np.ones((2, 3)), num_heads=2, W_Q=np.ones((3, 10)), W_K=np.ones((3, 10)), W_V=np.ones((3, 14)),
        W_O=np.ones((14, 3)), softcap=5, mask="causal",
    )  # fmt: skip
    result = compute(problem, STAGES)
    assert list(result) == list(STAGES)
    sizes = {"h": 2, "g": 2, "n": 2, "m": 2, "d_k": 5, "d_v": 7, "h·d_v": 14, "d_q": 5, "d_out": 3}
    for name, stage in STAGES.items():
        assert result[name].shape == tuple(sizes[axis] for axis in stage.axes)
        assert stage.formula_for(problem)
        assert stage.meaning


def test_what_is_imported_does_not_depend_on_the_order():
    """`attncli.compute` is the function, also after the module of that name was imported."""
    import importlib

    importlib.import_module("attncli.engine.compute")
    assert callable(attncli.compute)
    assert attncli.compute is compute


def test_a_problem_can_be_changed():
    problem = Problem(**THREE)
    assert compute(problem.replace(scale=0))["weights"].tolist() == [[[1 / 3] * 3] * 3]
    assert compute(problem.replace(mask="causal"))["weights"][0, 0].tolist() == [1, 0, 0]
    assert problem.replace(scale=0).replace(scale=None).scale is None
    assert problem.scale is None


# Rounding on the way


def test_round_rounds_every_stage_before_the_next_uses_it():
    """Scores 1 and 2 over √2: 0.7071, 1.4142 become 0.7 and 1.4, so that the weights are 1/(1 + e^0.7) = 0.3318."""
    result = compute(Problem(Q=[[1, 0]], K=[[1, 0], [2, 0]], V=[[0], [10]], round=1))
    assert result["scaled_scores"].tolist() == [[[0.7, 1.4]]]
    assert result["weights"].tolist() == [[[0.3, 0.7]]]
    assert result["outputs"].tolist() == [[[7.0]]]


def test_given_stages_are_not_rounded():
    result = compute(Problem(Q=[[0.26]], K=[[1.0]], V=[[0.26]], round=1))
    assert result["Q"].tolist() == [[[0.26]]]
    assert result["scores"].tolist() == [[[0.3]]]


@pytest.mark.parametrize(("rule", "expected"), [("half_away", [0.29, -0.29, 0.13]), ("half_even", [0.28, -0.28, 0.12])])
def test_ties_are_those_of_the_decimal_that_one_reads(rule, expected):
    """0.285 is a tie, although the binary number is a little below it."""
    result = compute(Problem(Z=[[0.285], [-0.285], [0.125]], W_Q=[[1]], W_K=[[1]], W_V=[[1]], round=2, rounding=rule))
    assert result["Q"][0, :, 0].tolist() == expected


# What a result is


def test_a_result_maps_stages_to_arrays():
    result = compute(Problem(**THREE))
    assert "weights" in result
    assert "multihead" not in result
    assert len(result) == 7
    assert result.notes == ()
    assert "weights 1×3×3" in repr(result)
