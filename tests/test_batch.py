"""Leading axes are carried through every stage; cached keys and values come before the new ones."""

from __future__ import annotations

import numpy as np
import pytest

from attncli import AttncliError, Problem, compute
from attncli.stages.table import present

RNG = np.random.default_rng(7)
B, N, M, D, E, H, DK, DV = 2, 3, 5, 7, 11, 13, 17, 19  # all different, so that no axis fits another's place by luck
LAYER = {
    "num_heads": H, "W_Q": RNG.normal(size=(D, H * DK)), "W_K": RNG.normal(size=(E, H * DK)),
    "W_V": RNG.normal(size=(E, H * DV)), "W_O": RNG.normal(size=(H * DV, D)), "b_O": RNG.normal(size=D),
    "softcap": 20,
}  # fmt: skip
Z, MEMORY = RNG.normal(size=(B, N, D)), RNG.normal(size=(B, M, E))
MASK = {"keep": RNG.integers(0, 2, (B, 1, N, M))}


def every(**keys):
    problem = Problem(**LAYER, **keys)
    return compute(problem, [stage.name for stage in present(problem)])


def close(one, other):
    assert list(one) == list(other)
    for stage in one:
        np.testing.assert_allclose(one[stage], other[stage], rtol=1e-9, atol=1e-9)


def test_each_entry_is_computed_as_if_alone():
    both = every(Z=Z, memory=MEMORY, mask=MASK)
    assert both["weights"].shape == (B, H, N, M)
    assert both["contributions"].shape == (B, H, N, D)
    assert both["multihead"].shape == (B, N, D)
    for b in range(B):
        alone = every(Z=Z[b], memory=MEMORY[b], mask={"keep": MASK["keep"][b, 0]})
        close({stage: array[b] for stage, array in both.items()}, alone)


def test_several_leading_axes():
    lead = every(Z=Z.reshape(1, B, 1, N, D), memory=MEMORY.reshape(1, B, 1, M, E))
    plain = every(Z=Z, memory=MEMORY)
    assert lead["weights"].shape == (1, B, 1, H, N, M)
    close({stage: array.reshape(plain[stage].shape) for stage, array in lead.items()}, plain)


def test_a_memory_without_a_batch_axis_serves_all_entries():
    shared = every(Z=Z, memory=MEMORY[0])
    assert shared["K"].shape == (B, H, M, DK)
    close(shared, every(Z=Z, memory=np.stack([MEMORY[0]] * B)))


def test_given_stages_carry_their_batch():
    result = compute(Problem(weights=[[[[1, 0]]], [[[0, 1]]]], V=[[3], [5]]))
    assert result["V"].shape == (2, 1, 2, 1)
    assert result["outputs"].tolist() == [[[[3]]], [[[5]]]]


def test_a_length_for_each_entry():
    weights = every(Z=Z, memory=MEMORY, mask={"lengths": [2, 4]})["weights"]
    assert [(weights[b, 0, 0] > 0).tolist() for b in range(B)] == [[True] * 2 + [False] * 3, [True] * 4 + [False]]


def test_an_offset_for_each_entry():
    weights = every(Z=Z, memory=MEMORY, mask={"causal": "top-left", "offset": [0, 2]})["weights"]
    assert [(weights[b, 0] > 0).sum(axis=-1).tolist() for b in range(B)] == [[1, 2, 3], [3, 4, 5]]


def test_an_empty_row_of_one_entry_is_told_apart():
    notes = every(Z=Z, memory=MEMORY, mask={"lengths": [2, 0]}).notes
    assert notes == (
        "queries 1, 2, 3 may attend to nothing (in some batch entries): their weights and outputs are zeros",
    )


def test_batch_axes_must_agree():
    with pytest.raises(AttncliError) as caught:
        Problem(**LAYER, Z=Z, memory=np.ones((3, M, E)))
    assert [error.what for error in caught.value.errors] == ["memory has the batch axes (3,), but Z has (2,)"]


# A cache


def test_decoding_one_token_at_a_time_is_the_causal_layer():
    whole = every(Z=Z, memory=Z @ np.ones((D, E)), mask="causal")
    side = Z @ np.ones((D, E))
    for i in range(1, N):
        keys = [side[:, :i] @ LAYER[name] for name in ("W_K", "W_V")]
        step = every(Z=Z[:, i : i + 1], memory=side[:, i : i + 1], past_K=keys[0], past_V=keys[1], mask="causal")
        assert step["K"].shape == (B, H, i + 1, DK)
        np.testing.assert_allclose(step["K"], whole["K"][:, :, : i + 1], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(step["multihead"], whole["multihead"][:, i : i + 1], rtol=1e-9, atol=1e-9)


def test_cached_keys_come_first():
    result = compute(Problem(Q=[[1]], K=[[3]], V=[[30]], past_K=[[1], [2]], past_V=[[10], [20]]))
    assert result["K"].ravel().tolist() == [1, 2, 3]
    assert result["V"].ravel().tolist() == [10, 20, 30]


def test_extra_keys_come_last_and_no_mask_hides_them():
    keys = {"Q": [[0], [0]], "K": [[0], [0]], "V": [[1], [2]], "extra_K": [[0]], "extra_V": [[4]]}
    result = compute(Problem(**keys, mask="causal"))
    assert result["weights"][0].tolist() == [[0.5, 0, 0.5], [1 / 3] * 3]
    assert compute(Problem(**keys, mask={"keep": [[0, 0], [0, 0]]}))["outputs"].ravel().tolist() == [4, 4]
    assert compute(Problem(**keys, mask={"window": 0}))["weights"][0, 0].tolist() == [0.5, 0, 0.5]


def test_a_cache_has_keys_and_values():
    with pytest.raises(AttncliError, match="past_K comes with past_V, and past_V is missing"):
        Problem(Q=[[1]], K=[[3]], V=[[30]], past_K=[[1]])
