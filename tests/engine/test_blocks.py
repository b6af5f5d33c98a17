"""The last stage by blocks of rows says what the whole arrays say, and holds no n × m array."""

import tracemalloc

import numpy as np
import pytest

from attncli import AttncliError, Problem, compute
from attncli.engine import blocks, memory
from attncli.maths import ops
from attncli.stages import table as stages

RNG = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


# n = 53 queries, in blocks of 16 queries and 8 keys: several blocks, the last one short.
CASES = {
    "grouped, causal, capped, biases, batch": {
        "Z": normal(2, 53, 12), "num_heads": 4, "num_kv_heads": 2, "W_Q": normal(12, 20), "W_K": normal(12, 10),
        "W_V": normal(12, 6), "W_O": normal(12, 7), "b_Q": normal(20), "b_K": normal(10), "b_V": normal(6),
        "b_O": normal(7), "mask": "causal", "softcap": 3.0,
    },
    "rows that see nothing": {
        "Z": normal(53, 12), "num_heads": 4, "W_Q": normal(12, 20), "W_K": normal(12, 20), "W_V": normal(12, 8),
        "W_O": normal(8, 7), "mask": [{"lengths": 3}, {"window": 2}],
    },
    "cache, extra keys, general score, added mask": {
        "Q": normal(53, 12), "K": normal(31, 12), "V": normal(31, 3), "past_K": normal(7, 12), "past_V": normal(7, 3),
        "extra_K": normal(2, 12), "extra_V": normal(2, 3), "mask": ["causal", {"add": normal(53, 38)}],
        "score": "general", "W_a": normal(12, 12),
    },
    "per head, a mask a batch entry": {
        "Q": normal(3, 2, 53, 5), "K": normal(3, 2, 31, 5), "V": normal(3, 2, 31, 3), "per_head": True, "scale": 0.3,
        "mask": {"keep": RNG.integers(0, 2, (3, 1, 53, 31))},
    },
    "filled, cross": {
        "Z": normal(53, 12), "memory": normal(2, 29, 9), "W_Q": normal(12, 5), "W_K": normal(9, 5),
        "W_V": normal(9, 4), "W_O": normal(4, 4), "mask": {"lengths": [3, 0]}, "mask_fill": -5.0,
    },
    "empty rows as NaN": {
        "Z": normal(53, 12), "memory": normal(2, 29, 9), "W_Q": normal(12, 5), "W_K": normal(9, 5),
        "W_V": normal(9, 4), "W_O": normal(4, 4), "mask": {"lengths": [3, 0]}, "empty_rows": "nan",
    },
    "scores of ±40000": {"Q": 200 * normal(53, 2), "K": 200 * normal(31, 2), "V": normal(31, 3)},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stage", [name for name, stage in stages.STAGES.items() if stage.blocked])
def test_blocks_agree_with_the_whole_arrays(case: str, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(**CASES[case])
    whole = compute(problem)
    if stage not in whole:
        with pytest.raises(AttncliError, match=f"no {stage}"):
            compute(problem, [stage])
        return
    by_small_blocks(monkeypatch)
    assert blocks.fits(problem, [stage])
    by_blocks = compute(problem, [stage])
    np.testing.assert_allclose(by_blocks.rows[stage], whole.rows[stage], rtol=1e-12, atol=1e-12)
    assert by_blocks.notes == whole.notes


EYE = [[1.0]]
HUGE = np.full((8, 1), 1e30)
AGREEING = {
    "extra keys without a head axis": {
        "Q": normal(2, 3, 4), "K": normal(2, 3, 4), "V": normal(2, 3, 4), "per_head": True, "extra_K": normal(2, 4),
        "extra_V": normal(2, 4),
    },
    "the same with a batch as long": {
        "Q": normal(2, 3, 5, 4), "K": normal(2, 3, 5, 4), "V": normal(2, 3, 5, 4), "per_head": True,
        "extra_K": normal(2, 4), "extra_V": normal(2, 4),
    },
    "a hidden cached key of NaN": {
        "Z": EYE, "W_Q": EYE, "W_K": [[0.0]], "W_V": [[2.0]], "past_K": EYE, "past_V": [[np.nan]],
        "mask": {"keep": [[0, 1]]},
    },
    "V overflows behind the mask": {
        "Z": [[1.0], [1e30]], "W_Q": EYE, "W_K": [[0.0]], "W_V": [[1e30]], "mask": "causal", "dtype": "float32",
    },
    "a large score and a large V": {"Q": [[50.0]], "K": EYE, "V": [[1e20]], "dtype": "float32"},
    "a low score and a small V": {"Q": [[-50.0]], "K": EYE, "V": [[1e-20]], "dtype": "float32"},
    "a softcap near the largest number": {"Q": EYE, "K": [[1.0], [2.0]], "V": [[1.0], [2.0]], "softcap": 1.5e308},
    "a softcap near the smallest": {"Q": EYE, "K": [[0.0], [2.0]], "V": [[1.0], [2.0]], "softcap": 1e-310},
    "scores that overflow": {"Z": HUGE, "W_Q": EYE, "W_K": EYE, "W_V": EYE, "dtype": "float32"},
    "scores that overflow to -inf": {
        "Z": HUGE, "W_Q": EYE, "W_K": [[-1e5]], "W_V": [[1e-30]], "dtype": "float32", "empty_rows": "error",
    },
    "sums over heads that overflow on the way": {
        "Z": np.ones((2, 1)), "W_Q": [[1.0, 1.0]], "W_K": [[1.0, 1.0]], "W_V": [[1e19, 1e19]],
        "W_O": [[3e19], [-3e19]], "b_O": [3e38], "num_heads": 2, "dtype": "float32",
    },
    "a mask that changes nothing": {"Q": EYE * 2, "K": EYE * 2, "V": EYE * 2, "mask": {"window": 5}},
    "a mask_fill that overflows": {
        "Q": EYE * 2, "K": EYE * 2, "V": EYE * 2, "mask": "causal", "mask_fill": -1e39, "dtype": "float32",
    },
    "the same of a mask that changes nothing": {
        "Q": EYE * 2, "K": EYE * 2, "V": EYE * 2, "mask": {"window": 5}, "mask_fill": -1e39, "dtype": "float32",
    },
    "an empty head beside one that overflows": {
        "Z": np.ones((2, 1)), "W_Q": [[1.0, 1.0]], "W_K": [[1.0, 1.0]], "W_V": [[1e30, 1e30]], "W_O": [[1.0], [1e30]],
        "num_heads": 2, "dtype": "float32", "mask": {"keep": [[[0, 0], [0, 0]], [[1, 1], [1, 1]]]},
    },
}  # fmt: skip
"""What was wrong, or said otherwise, where only exponentials were thought of."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", AGREEING)
def test_blocks_and_whole_arrays_agree_at_the_ends_of_the_numbers(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(**AGREEING[case])
    last = "multihead" if "W_O" in AGREEING[case] else "outputs"
    whole = compute(problem, ["weights", last] if last == "outputs" else None)
    by_small_blocks(monkeypatch)
    by_blocks = compute(problem, [last])
    rtol = 1e-12 if problem.dtype == np.float64 else 1e-6
    np.testing.assert_allclose(by_blocks.rows[last], whole.rows[last], rtol=rtol)
    assert by_blocks.notes == whole.notes


def by_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, size in ((blocks, "FEW", 0), (blocks, "EACH", 0), (blocks, "ROWS", 16), (ops, "KEYS", 8)):
        monkeypatch.setattr(module, name, size)


@pytest.mark.parametrize("stage", ["outputs", "multihead"])
def test_an_overflow_is_said_where_no_memory_is_left_to_find_its_stage(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(
        Z=[[1e30, 1.0], [1.0, 1.0]], W_Q=np.eye(2), W_K=np.eye(2), W_V=np.eye(2), W_O=np.eye(2), dtype="float32"
    )  # the score of query 1 and key 1 is 1e60
    by_small_blocks(monkeypatch)
    monkeypatch.setattr(memory, "available", lambda: memory.needed_for(problem, [stage]))
    result = compute(problem, [stage])
    assert np.isnan(result.rows[stage].reshape(2, 2)).all(axis=1).tolist() == [True, False]
    assert result.notes == (f"numbers on the way to the {stage} overflow float32, whose largest number is 3.40282e+38",)


def test_blocks_are_for_the_last_stage_alone_and_for_many_scores() -> None:
    problem = Problem(**CASES["scores of ±40000"])
    assert not blocks.fits(problem, ["outputs"])
    long = Problem(Q=np.ones((3000, 1)), K=np.ones((3000, 1)), V=np.ones((3000, 1)))
    assert blocks.fits(long, ["outputs"])
    assert not blocks.fits(long, ["weights"])
    assert not blocks.fits(long, ["weights", "outputs"])
    assert not blocks.fits(long.replace(round=2), ["outputs"])


@pytest.mark.parametrize("mask", [None, "causal", {"window": [5, 0]}])
def test_no_n_by_m_array_is_held(mask: object) -> None:
    n = 6000  # n² float64 scores would take 275 MiB, and a mask of bools 34 MiB
    problem = Problem(Q=normal(n, 8), K=normal(n, 8), V=normal(n, 8), mask=mask)
    tracemalloc.start()
    compute(problem, ["outputs"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20


def test_more_than_the_memory_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 2**30)
    n = 20_480  # 3.1 GiB a stage of scores
    problem = Problem(Z=np.ones((n, 2)), W_Q=np.eye(2), W_K=np.eye(2), W_V=np.eye(2))
    with pytest.raises(AttncliError) as caught:
        compute(problem)
    assert "1 GiB is free" in str(caught.value)
    assert "-s outputs alone takes 320 KiB" in str(caught.value)


def test_stages_that_nothing_needs_any_more_are_dropped() -> None:
    n = 1000  # 7.6 MiB an array of scores
    problem = Problem(Q=normal(n, 4), K=normal(n, 4), V=normal(n, 4), mask="causal")
    tracemalloc.start()
    compute(problem, ["outputs"])
    one = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    compute(problem)
    everything = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert one < everything - 7 * 2**20
