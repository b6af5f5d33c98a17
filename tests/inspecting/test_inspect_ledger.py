"""Sizes, shapes, parameters, work and memory: counted by hand, the sizes all different."""

from __future__ import annotations

import numpy as np
import pytest

from attncli import Problem, load
from attncli.inspecting.summary import inspect

# n = 2, m = 3, d_model = 5, d_memory = 4, h = 6, g = 2, d_k = 7, d_v = 11
CROSS = {
    "Z": np.ones((2, 5)), "memory": np.ones((3, 4)), "num_heads": 6, "num_kv_heads": 2,
    "W_Q": np.ones((5, 42)), "W_K": np.ones((4, 14)), "W_V": np.ones((4, 22)), "W_O": np.ones((66, 5)),
    "b_Q": np.ones(42), "b_O": np.ones(5),
}  # fmt: skip


def sizes(summary):
    return {size.name: (size.value, size.source) for size in summary.sizes}


def test_sizes_say_where_they_come_from():
    assert sizes(inspect(Problem(**CROSS))) == {
        "n": (2, "Z's rows"), "m": (3, "memory's rows"), "d_model": (5, "Z's columns"),
        "d_memory": (4, "memory's columns"), "d_k": (7, "W_Q's columns / 6 heads"),
        "d_v": (11, "W_V's columns / 2 heads"), "h": (6, "num_heads"), "g": (2, "num_kv_heads"),
    }  # fmt: skip


def test_in_self_attention_keys_are_counted_where_queries_are():
    problem = Problem(Z=np.ones((2, 3)), W_Q=np.ones((3, 5)), W_K=np.ones((3, 5)), W_V=np.ones((3, 7)))
    assert sizes(inspect(problem))["m"] == (2, "Z's rows")


def test_columns_count_the_other_way():
    problem = Problem(
        Z=np.ones((3, 2)), W_Q=np.ones((5, 3)), W_K=np.ones((5, 3)), W_V=np.ones((7, 3)), layout="columns"
    )
    summary = inspect(problem)
    assert sizes(summary)["n"] == (2, "Z's columns")
    assert sizes(summary)["d_k"] == (5, "W_Q's rows")
    shapes = {entry.name: (entry.axes, entry.shape) for entry in summary.shapes}
    assert shapes["Z"] == (("d_model", "n"), (3, 2))
    assert shapes["W_V"] == (("d_v", "d_model"), (7, 3))
    assert shapes["outputs"] == (("h", "d_v", "n"), (1, 7, 2))


def test_cached_keys_are_counted_and_cost_no_projection():
    problem = Problem(
        Z=np.ones((1, 3)), W_Q=np.ones((3, 5)), W_K=np.ones((3, 5)), W_V=np.ones((3, 7)),
        past_K=np.ones((4, 5)), past_V=np.ones((4, 7)), mask="causal",
    )  # fmt: skip
    summary = inspect(problem)
    assert sizes(summary)["m"] == (5, "Z's rows + 4 cached")
    work = {cost.name: (cost.multiply_adds, cost.product) for cost in summary.costs}
    assert work["K"] == (1 * 5 * 3, "m_new·d_k·d_model")
    assert work["scores"] == (1 * 5 * 5, "n·m·d_k")
    assert (summary.cache.bytes, summary.cache.bytes_per_token) == (5 * (5 + 7) * 8, (5 + 7) * 8)


def test_shapes_of_inputs_and_stages():
    shapes = {entry.name: (entry.axes, entry.shape) for entry in inspect(Problem(**CROSS)).shapes}
    assert shapes["memory"] == (("m", "d_memory"), (3, 4))
    assert shapes["W_Q"] == (("d_model", "h·d_k"), (5, 42))
    assert shapes["W_K"] == (("d_memory", "g·d_k"), (4, 14))
    assert shapes["W_O"] == (("h·d_v", "d_model"), (66, 5))
    assert shapes["b_O"] == (("d_model",), (5,))
    assert shapes["Q"] == (("h", "n", "d_k"), (6, 2, 7))
    assert shapes["K"] == (("g", "m", "d_k"), (2, 3, 7))
    assert shapes["weights"] == (("h", "n", "m"), (6, 2, 3))
    assert shapes["concat"] == (("n", "h·d_v"), (2, 66))
    assert shapes["multihead"] == (("n", "d_model"), (2, 5))


def test_batch_axes_are_named():
    problem = Problem(Q=np.ones((3, 2, 5)), K=np.ones((3, 7, 5)), V=np.ones((3, 7, 11)))
    entry = next(entry for entry in inspect(problem).shapes if entry.name == "scores")
    assert (entry.axes, entry.shape) == (("batch", "h", "n", "m"), (3, 1, 2, 7))
    assert {cost.name: cost.multiply_adds for cost in inspect(problem).costs}["outputs"] == 3 * 2 * 7 * 11


def test_parameters_with_and_without_biases():
    parameters = inspect(Problem(**CROSS)).parameters
    assert {row.name: row.count for row in parameters.rows} == {
        "W_Q": 210, "W_K": 56, "W_V": 88, "W_O": 330, "b_Q": 42, "b_O": 5,
    }  # fmt: skip
    assert (parameters.weights, parameters.biases, parameters.total, parameters.full) == (684, 47, 731, 731)


def test_a_base_transformer_layer_has_a_million_parameters():
    """4 · 512² (Vaswani et al. 2017, table 3: d_model = 512, h = 8, d_k = d_v = 64)."""
    assert inspect(load("transformer-base"), ["Q"]).parameters.total == 1_048_576


def test_a_low_rank_form_beside_its_full_form():
    row = next(row for row in inspect(load("low-rank")).parameters.rows if row.name == "W_V")
    assert (row.count, row.full, row.factors) == (4 + 4, 16, ((4, 1), (1, 4)))


def test_low_rank_heads_are_counted_one_by_one():
    head = "{W_Q: [[1], [2], [3]], W_K: [[1], [2], [3]], W_V: {product: [[[1], [1], [1]], [[1, 2, 3, 4, 5]]]}}"
    summary = inspect(load(None, "Z=[[1, 2, 3], [0, 1, 0]]", f"heads=[{head}, {head}]"))
    products = {row.name: (row.count, row.full) for row in summary.parameters.rows if row.factors}
    assert products == {"W_V, head 1": (8, 15), "W_V, head 2": (8, 15)}
    assert (summary.parameters.total, summary.parameters.full) == (12 + 16, 12 + 30)


def test_a_product_that_saves_nothing_is_said():
    summary = inspect(load("three-tokens", "W_V={product: [[[1, 0], [0, 1]], [[1, 0], [0, 1]]]}"))
    assert [(one.name, one.sentence) for one in summary.warnings] == [
        ("no_saving", "W_V as a product has 8 parameters, and in full 4")
    ]


def test_multiply_adds_of_each_product():
    costs = {cost.name: cost.multiply_adds for cost in inspect(Problem(**CROSS)).costs}
    assert costs == {
        "Q": 2 * 5 * 42, "K": 3 * 4 * 14, "V": 3 * 4 * 22, "scores": 6 * 2 * 3 * 7, "scaled_scores": 0, "weights": 0,
        "outputs": 6 * 2 * 3 * 11, "concat": 0, "multihead": 2 * 66 * 5,
    }  # fmt: skip
    assert inspect(Problem(**CROSS)).multiply_adds == 420 + 168 + 264 + 252 + 396 + 660


@pytest.mark.parametrize(("dtype", "size"), [("float64", 8), ("float32", 4), ("float16", 2)])
def test_memory_is_that_of_the_dtype(dtype, size):
    summary = inspect(Problem(**CROSS, dtype=dtype))
    assert {cost.name: cost.bytes for cost in summary.costs}["weights"] == 6 * 2 * 3 * size
    assert summary.cache.bytes == 2 * 3 * (7 + 11) * size
    assert summary.cache.ungrouped == 6 * 3 * (7 + 11) * size


def test_additive_scores_take_two_projections_and_v():
    problem = Problem(
        Q=np.ones((2, 3)), K=np.ones((5, 7)), V=np.ones((5, 1)), score="additive",
        W_1=np.ones((3, 11)), W_2=np.ones((7, 11)), v=np.ones(11),
    )  # fmt: skip
    cost = next(cost for cost in inspect(problem).costs if cost.name == "scores")
    assert cost.multiply_adds == 2 * 3 * 11 + 5 * 7 * 11 + 2 * 5 * 11


def test_general_scores_take_a_product_more():
    problem = Problem(Q=np.ones((2, 3)), K=np.ones((5, 7)), W_a=np.ones((3, 7)), score="general")
    cost = next(cost for cost in inspect(problem).costs if cost.name == "scores")
    assert (cost.multiply_adds, cost.product) == (2 * 3 * 7 + 2 * 5 * 7, "n·d_q·d_k + n·m·d_k")


def test_what_memory_cannot_hold_is_counted_all_the_same():
    problem = Problem(Z=np.ones((600_000, 2)), W_Q=np.ones((2, 3)), W_K=np.ones((2, 3)), W_V=np.ones((2, 5)))
    summary = inspect(problem)
    assert {cost.name: cost.multiply_adds for cost in summary.costs}["scores"] == 600_000**2 * 3
    assert summary.statistics == ()
    assert len(summary.notes) == 1
    assert summary.notes[0].startswith("no statistics: this takes ")
