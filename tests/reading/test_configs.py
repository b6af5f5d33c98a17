"""The shipped examples: each says what it is and whence, and has the numbers that its note promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from places import CONFIGS

from attncli import compute, load
from attncli.language.notation import unicode
from attncli.stages.table import STAGES

NAMES = sorted(path.stem for path in CONFIGS.glob("*.yaml"))
INF = math.inf


def stages(name):
    return compute(load(CONFIGS / f"{name}.yaml"))


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def test_there_is_one_for_each_variant():
    assert set(NAMES) == {
        "three-tokens", "two-heads", "decoder-causal", "encoder-decoder", "rnn-attention", "transformer-base",
        "library", "columns", "additive", "grouped-query", "padding", "batch", "low-rank", "decoding-step",
        "sliding-window", "variance",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_is_and_whence(name):
    problem = load(CONFIGS / f"{name}.yaml")
    assert problem.title
    assert problem.source
    assert problem.note
    assert (CONFIGS / f"{name}.yaml").stat().st_size < 2000
    assert compute(problem).notes == ()


def test_three_tokens():
    result, a = stages("three-tokens"), math.exp(1 / math.sqrt(2))
    assert result["scores"][0, 0].tolist() == [1, 1, 2]
    close(result["weights"][0, 0], np.array([1, 1, a]) / (2 + a))
    assert result["weights"][0, 0].round(4).tolist() == [0.2483, 0.2483, 0.5035]
    assert result["outputs"][0, 0].round(4).tolist() == [1.5035, 2.2552]


def test_two_heads():
    problem = load(CONFIGS / "two-heads.yaml")
    assert (problem.num_heads, problem.d_v, problem.d_k, problem.d_model, problem.n) == (2, 3, 4, 5, 3)
    result, e = stages("two-heads"), math.exp(2)
    same, other = e / (2 * e + 1), 1 / (2 * e + 1)
    close(result["weights"][0], [[same, other, same], [1 / (2 + e), e / (2 + e), 1 / (2 + e)], [same, other, same]])
    near, far = e / (e + 2), 1 / (e + 2)
    close(result["weights"][1], [[1 / 3] * 3, [near, far, far], [far, near, far]])
    assert np.array_equal(result["outputs"], result["weights"])
    close(result["multihead"][0], [2 * same, other, 1 / 3, 1 / 3, 1 / 3])


CAUSAL_WEIGHTS = np.array(
    [[1, 0, 0, 0], [1 / 3, 2 / 3, 0, 0], [1 / 4, 1 / 4, 1 / 2, 0], [4 / 25, 1 / 25, 4 / 25, 16 / 25]]
)
CAUSAL_OUTPUTS = np.array([[3, 0, 1], [1, 2, 1], [2.25, 2.25, 1.5], [4.8, 0.6, 1.8]])


def test_decoder_causal():
    result = stages("decoder-causal")
    close(result["weights"][0], CAUSAL_WEIGHTS)
    close(result["outputs"][0], CAUSAL_OUTPUTS)


def test_columns_is_decoder_causal_transposed():
    result, rows = stages("columns"), stages("decoder-causal")
    assert list(result) == list(rows)
    for stage in rows:
        assert np.array_equal(result[stage], rows[stage].swapaxes(-1, -2))
    assert unicode(STAGES["scores"].formula_for(result.problem)) == "Kᵀ Q"


def test_decoding_step_is_the_last_row_of_decoder_causal():
    result = stages("decoding-step")
    close(result["weights"][0], CAUSAL_WEIGHTS[-1:])
    close(result["outputs"][0], CAUSAL_OUTPUTS[-1:])
    close(result["K"], stages("decoder-causal")["K"])
    assert result.problem.memory_tokens == ("past 1", "past 2", "past 3", "sat")


def test_encoder_decoder():
    problem = load(CONFIGS / "encoder-decoder.yaml")
    assert (problem.n, problem.m, problem.d_model, problem.d_memory) == (2, 4, 3, 2)
    result = compute(problem)
    close(result["weights"][0], np.array([[4, 2, 2, 1], [2, 1, 4, 2]]) / 9)
    close(result["outputs"][0], [[3, 3, 9], [6, 3, 12]])


def test_rnn_attention():
    result = stages("rnn-attention")
    assert "scaled_scores" not in result
    close(result["weights"][0], [[2 / 12, 3 / 12, 6 / 12, 1 / 12]])
    close(result["outputs"][0], [[2 / 3, 3 / 4]])


def test_additive():
    result = stages("additive")
    close(result["scores"][0], [[math.log(2), 0, 2 * math.log(2)]])
    close(result["outputs"][0], [[4 / 7, 1 / 7]])


def test_library():
    result = stages("library")
    assert result["scores"].tolist() == [[[6, 4, 2, 0]]]
    assert result["scaled_scores"].tolist() == [[[3, 2, 1, 0]]]
    total = sum(math.exp(s) for s in range(4))
    close(result["weights"], [[[math.exp(s) / total for s in (3, 2, 1, 0)]]])
    assert result["outputs"][0, 0].argmax() == 0


def test_grouped_query():
    result = stages("grouped-query")
    assert (result["Q"].shape, result["K"].shape) == ((4, 3, 1), (2, 3, 1))
    third = [1 / 3] * 3
    close(result["weights"][:, 0], [[2 / 5, 1 / 5, 2 / 5], third, [1 / 7, 3 / 7, 3 / 7], third])
    close(result["outputs"][:, 0, 0], [4, 10 / 3, 6, 14 / 3])


def test_padding():
    result = stages("padding")
    close(
        result["weights"][0], [[3 / 4, 1 / 4, 0, 0], [1 / 4, 3 / 4, 0, 0], [1 / 2, 1 / 2, 0, 0], [1 / 2, 1 / 2, 0, 0]]
    )
    assert result["masked_scores"][0, :, 2:].tolist() == [[-INF, -INF]] * 4
    assert result.problem.mask_in_words()[1] == "2 cat may attend to 1 the, 2 cat"


def test_batch():
    result = stages("batch")
    assert result["weights"].shape == (2, 1, 3, 3)
    close(result["weights"][:, 0, 2], [[1 / 4, 1 / 4, 1 / 2], [1 / 2, 1 / 2, 0]])


def test_low_rank():
    result = stages("low-rank")
    close(result["weights"][0, 0], [1 / 2, 1 / 4, 1 / 4])
    close(result["outputs"][0, 0], 9 / 4 * np.array([1, 2, 0, -1]))
    assert np.linalg.matrix_rank(result.problem.W_V) == 1
    assert result.problem.factors == {"W_V": ((4, 1), (1, 4))}
    assert result.problem.W_V.size == 16


def test_sliding_window():
    assert stages("sliding-window")["outputs"].ravel().tolist() == pytest.approx([3, 4.5, 6, 5, 4, 5])


def test_transformer_base():
    problem = load(CONFIGS / "transformer-base.yaml")
    assert (problem.d_model, problem.num_heads, problem.d_k, problem.d_v) == (512, 8, 64, 64)
    assert sum(problem.arrays[name].size for name in ("W_Q", "W_K", "W_V", "W_O")) == 4 * 512**2
    result = compute(problem)
    assert result["multihead"].shape == (7, 512)
    assert 0.5 < result["scaled_scores"].std() < 2
