"""What holds for any attention layer, on problems drawn at random: sizes are different primes, whatever the options."""

from __future__ import annotations

from typing import Any

import numpy as np
from forms import head_forms, in_the_other_layout
from hypothesis import given
from hypothesis import strategies as st

from attncli import Problem, compute
from attncli.stages.table import present

N, M, D, E, DK, DV, DA = 3, 5, 7, 11, 13, 2, 17


EITHER = st.booleans()


@st.composite
def layers(draw, cross=EITHER, masked=EITHER) -> dict[str, Any]:
    """The keys of a layer: self- or cross-attention, one head or several, every score function, masks, a batch."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    h, g = draw(st.sampled_from([(1, 1), (2, 2), (4, 2), (3, 1)]))
    batch = draw(st.sampled_from([(), (2,)]))
    score = draw(st.sampled_from(["scaled_dot", "dot", "general", "additive"]))
    side = (M, E) if draw(cross) else (N, D)
    keys = {
        "Z": rng.normal(size=(*batch, N, D)), "num_heads": h, "num_kv_heads": g, "score": score,
        "W_Q": rng.normal(size=(D, h * DK)) / 9, "W_K": rng.normal(size=(side[1], g * DK)) / 9,
        "W_V": rng.normal(size=(side[1], g * DV)), "W_O": rng.normal(size=(h * DV, D)),
        "b_Q": rng.normal(size=h * DK), "b_O": rng.normal(size=D),
    }  # fmt: skip
    if side == (M, E):
        keys["memory"] = rng.normal(size=(*batch, *side))
    if score == "general":
        keys["W_a"] = rng.normal(size=(DK, DK)) / 9
    if score == "additive":
        keys |= {"W_1": rng.normal(size=(DK, DA)), "W_2": rng.normal(size=(DK, DA)), "v": rng.normal(size=DA)}
    if draw(st.booleans()):
        keys["softcap"] = draw(st.floats(0.5, 50))
    if draw(masked):
        keep = rng.random((N, side[0])) < 0.6
        keep[:, 0] = True
        keys["mask"] = draw(st.sampled_from([{"keep": keep}, {"causal": "top-left"}, {"add": -rng.random(keep.shape)}]))
    return keys


def close(one, other, what=""):
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=what)


@given(layers())
def test_rows_of_weights_sum_to_one(keys):
    weights = compute(Problem(**keys))["weights"]
    assert (weights >= 0).all()
    close(weights.sum(axis=-1), 1)


@given(layers(masked=st.just(True)), st.integers(0, 2**32))
def test_a_constant_added_to_a_row_of_scores_changes_no_weight(keys, seed):
    result = compute(Problem(**keys))
    scores = result["masked_scores"]
    shift = np.random.default_rng(seed).normal(size=(*scores.shape[:-1], 1)) * 100
    close(compute(Problem(masked_scores=scores + shift))["weights"], result["weights"])


@given(layers(cross=st.just(True), masked=st.just(False)), st.permutations(range(M)))
def test_keys_and_values_permuted_together_change_no_output(keys, order):
    one, other = compute(Problem(**keys)), compute(Problem(**keys | {"memory": keys["memory"][..., order, :]}))
    close(other["weights"], one["weights"][..., order])
    close(other["multihead"], one["multihead"])


@given(layers(masked=st.just(False)), st.permutations(range(N)))
def test_tokens_permuted_permute_the_outputs(keys, order):
    """Without a mask, self-attention doesn't know positions; in cross-attention the queries don't see each other."""
    one, other = compute(Problem(**keys)), compute(Problem(**keys | {"Z": keys["Z"][..., order, :]}))
    close(other["multihead"], one["multihead"][..., order, :])


@given(layers())
def test_contributions_and_the_bias_sum_to_multihead(keys):
    result = compute(Problem(**keys), ["contributions", "multihead"])
    close(result["contributions"].sum(axis=-3) + keys["b_O"], result["multihead"])


@given(layers())
def test_an_output_lies_among_the_values(keys):
    """An average: no output is smaller than the smallest value of its head, or larger than the largest."""
    problem = Problem(**keys)
    result = compute(problem)
    V = np.repeat(result["V"], problem.num_heads // problem.num_kv_heads, axis=-3)
    assert (result["outputs"] >= V.min(axis=-2, keepdims=True) - 1e-12).all()
    assert (result["outputs"] <= V.max(axis=-2, keepdims=True) + 1e-12).all()


@given(layers(masked=st.just(True)))
def test_hidden_keys_have_no_weight_and_no_say(keys):
    """Whatever stands in the values of a key that nobody sees, the outputs are the same."""
    m = keys.get("memory", keys["Z"]).shape[-2]
    keys = keys | {"mask": {"keep": [1] * (m - 1) + [0]}}
    result = compute(Problem(**keys))
    assert not result["weights"][..., -1].any()
    V = result["V"].copy()
    V[..., -1, :] = np.nan
    per_head = {"weights": result["weights"], "V": V, "per_head": True, "num_kv_heads": keys["num_kv_heads"]}
    close(compute(Problem(**per_head))["outputs"], result["outputs"])


@given(layers())
def test_grouped_heads_are_their_heads_repeated(keys):
    h, g = keys["num_heads"], keys["num_kv_heads"]
    repeated = {
        name: np.concatenate([block for block in np.split(keys[name], g, axis=1) for _ in range(h // g)], axis=1)
        for name in ("W_K", "W_V")
    }
    close(compute(Problem(**keys | repeated | {"num_kv_heads": h}))["multihead"], compute(Problem(**keys))["multihead"])


@given(layers())
def test_columns_are_rows_transposed_to_the_last_bit(keys):
    rows, columns = compute(Problem(**keys)), compute(Problem(**in_the_other_layout(keys)))
    for stage in rows:
        assert np.array_equal(columns[stage], rows[stage].swapaxes(-1, -2)), stage


@given(layers())
def test_heads_fused_or_listed_are_the_same_to_the_last_bit(keys):
    if keys["num_heads"] == keys["num_kv_heads"]:
        del keys["num_kv_heads"]
    one = compute(Problem(**keys))
    for other in head_forms(keys):
        for stage, array in compute(Problem(**other)).items():
            assert np.array_equal(array, one[stage]), stage


@given(layers(), st.data())
def test_a_stage_alone_is_the_same_as_with_the_others(keys, data):
    problem = Problem(**keys)
    names = [stage.name for stage in present(problem)]
    wanted = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    part, whole = compute(problem, wanted), compute(problem, names)
    assert list(part) == [name for name in names if name in wanted]
    for name in part:
        assert np.array_equal(part[name], whole[name]), name


@given(layers(), st.sampled_from(["float32", "float64"]))
def test_the_given_arrays_are_left_alone(keys, dtype):
    before = {name: np.copy(value) for name, value in keys.items() if isinstance(value, np.ndarray)}
    compute(Problem(**keys, dtype=dtype))
    for name, array in before.items():
        assert np.array_equal(keys[name], array)
