"""The plain Transformer that other tests lean on: held to what torch and transformers gave, and to hand computation."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from plain_transformer import computed

TESTS = Path(__file__).parent
CASES = sorted((TESTS / "data" / "transformer").iterdir())


def revived(value):
    """Nested lists as an array; "nan" and "-inf" are written as texts."""

    def plain(x):
        return [plain(y) for y in x] if isinstance(x, list) else float(x)

    return np.array(plain(value), float)


def assert_same(found, wanted, room):
    assert found.shape == wanted.shape
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    off = np.abs(found[finite].astype(float) - wanted[finite])
    assert (off <= room * np.maximum(1, np.abs(wanted[finite]))).all()


def test_there_are_cases():
    assert len(CASES) >= 45


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_it_gives_every_stage_of_a_framework(folder):
    problem = yaml.safe_load((folder / "problem.yaml").read_text(encoding="utf-8"))
    wanted = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    found = computed(problem, folder)
    assert wanted["framework"]
    for part in ("framework", "stages"):
        for address, value in wanted[part].items():
            assert_same(found[address], revived(value), wanted["tolerance"])


def test_it_knows_nothing_of_the_package():
    for name in ("plain_transformer", "plain_attention", "plain_parts"):
        tree = ast.parse((TESTS / f"{name}.py").read_text(encoding="utf-8"))
        imported = [
            alias.name if isinstance(node, ast.Import) else str(node.module)
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        ]
        assert imported
        assert not any(module.split(".")[0] == "attncli" for module in imported)


def test_it_refuses_what_it_does_not_know():
    with pytest.raises(KeyError, match="gamma_9"):
        computed({"Z": [[1, 2]], "gamma_9": [1, 1]})
    with pytest.raises(KeyError, match="turns"):
        computed(
            {
                "Z": [[1, 2]],
                "W_Q": [[1], [1]],
                "W_K": [[1], [1]],
                "W_V": [[1], [1]],
                "positions": {"rope": {"turns": 1}},
            }
        )


# By hand: what no framework's module above does

ONE = [[1, 0], [0, 1]]
HALF = [[0.5, 0], [0, 0.5]]
BLOCK = {"Z": [[3, 1]], "W_F1": ONE, "W_F2": HALF, "activation": "identity", "norm": "layer", "eps": 0}


def test_the_four_places_of_a_norm():
    """F halves; Norm makes 1, −1 of 3, 1. x + F = 4.5, 1.5; of it the norm is 1, −1 again."""
    pre = computed(BLOCK | {"norm_place": "pre"})
    assert pre["norm_1"].tolist() == [[1, -1]]
    assert pre["residual_1"].tolist() == [[3.5, 0.5]]
    post = computed(BLOCK)
    assert post["residual_1"].tolist() == [[4.5, 1.5]]
    assert post["norm_1"].tolist() == [[1, -1]]
    output = computed(BLOCK | {"norm_place": "output", "gamma_1": [2, 4]})
    assert output["ffn_output"].tolist() == [[1.5, 0.5]]
    assert output["sublayer_norm_1"].tolist() == [[2, -4]]
    assert output["residual_1"].tolist() == [[5, -3]]
    both = computed(BLOCK | {"norm_place": "both", "gamma_1": [6, 2], "gamma_1_out": [10, 20], "gamma_offset": 1})
    assert both["norm_1"].tolist() == [[7, -3]]
    assert both["ffn_output"].tolist() == [[3.5, -1.5]]
    assert both["sublayer_norm_1"].tolist() == [[11, -21]]
    assert both["residual_1"].tolist() == [[14, -20]]


def test_a_residual_with_a_factor_and_without():
    assert computed(BLOCK | {"norm_place": "pre", "residual": 0.5})["residual_1"].tolist() == [[3.25, 0.75]]
    assert "residual_1" not in computed(BLOCK | {"norm_place": "pre", "residual": False})
    assert "residual_1" not in computed({key: BLOCK[key] for key in ("Z", "W_F1", "W_F2")})


def test_a_parallel_block_with_two_norms():
    keys = BLOCK | {"W_Q": ONE, "W_K": ONE, "W_V": ONE, "parallel": True, "norm_place": "pre"}
    found = computed(keys | {"gamma_1": [1, 1], "gamma_2": [10, 10]})
    # attention of one token gives N₁ = 1, −1; the network half of N₂ = 10, −10
    assert found["residual_1"].tolist() == [[3 + 1 + 5, 1 - 1 - 5]]
    assert computed(keys | {"gamma_1": [1, 1]})["residual_1"].tolist() == [[3 + 1 + 0.5, 1 - 1 - 0.5]]


ATTENTION = {"Z": [[1, 0], [0, 1]], "W_Q": ONE, "W_K": ONE, "W_V": ONE}


def test_a_sink_takes_its_share():
    found = computed(ATTENTION | {"scale": math.log(2), "sinks": [0]})
    # powers 2 and 1, and 1 of the sink
    np.testing.assert_allclose(found["weights"], [[[0.5, 0.25], [0.25, 0.5]]])


def test_norms_of_queries_and_keys():
    keys = ATTENTION | {"Z": [[3, 4], [0, 2]], "eps": 0}
    l2 = computed(keys | {"qk_norm": "l2", "gamma_Q": [1, 10], "beta_K": [1, 1]})
    np.testing.assert_allclose(l2["normed_Q"], [[[0.6, 8], [0, 10]]])
    np.testing.assert_allclose(l2["normed_K"], [[[1.6, 1.8], [1, 2]]])
    rms = computed(keys | {"gamma_Q": [1, 1]})
    np.testing.assert_allclose(rms["normed_Q"][0, 0], np.array([3, 4]) / math.sqrt(12.5))
    layer = computed(keys | {"gamma_Q": [1, 1], "qk_norm": "layer"})
    np.testing.assert_allclose(layer["normed_K"], [[[-1, 1], [-1, 1]]])


def test_norms_of_heads_alone_and_joined():
    keys = ATTENTION | {"Z": [[3, 4]], "num_heads": 2, "eps": 0, "qk_norm": "l2"}
    alone = computed(keys | {"gamma_Q": [[2], [5]]})
    assert alone["normed_Q"].tolist() == [[[2]], [[5]]]
    joined = computed(keys | {"gamma_Q": [1, 10]})
    np.testing.assert_allclose(joined["normed_Q"], [[[0.6]], [[8]]])
    np.testing.assert_allclose(computed(keys | {"qk_norm_over": "row"})["normed_K"], [[[0.6]], [[0.8]]])


def test_interleaved_pairs_turn_beside_each_other():
    turned = computed(
        {"Z": [[0] * 4, [1, 2, 3, 4]], "W_Q": np.eye(4), "W_K": np.eye(4), "W_V": np.eye(4)}
        | {"positions": {"rope": {"base": 16, "pairs": "interleaved"}}}
    )["rotated_Q"][0, 1]
    # θ = 1, 1/4
    np.testing.assert_allclose(turned[:2], [math.cos(1) - 2 * math.sin(1), 2 * math.cos(1) + math.sin(1)])
    np.testing.assert_allclose(
        turned[2:], [3 * math.cos(0.25) - 4 * math.sin(0.25), 4 * math.cos(0.25) + 3 * math.sin(0.25)]
    )


@pytest.mark.parametrize(
    ("scaling", "thetas", "factor"),
    [
        ({"linear": 2}, [1 / 2, 1 / 20], 1),
        ({"ntk": 3}, [1, 1 / 30], 1),
        ({"dynamic": {"factor": 2, "original": 1}}, [1, 1 / 30], 1),  # 2 tokens for 1: 2 · 2 − 1 = 3
        ({"dynamic": {"factor": 2, "original": 5}}, [1, 1 / 10], 1),
        ({"llama3": {"factor": 8, "low": 1, "high": 4, "original": 2 * math.pi}}, [1 / 8, 1 / 80], 1),
        ({"llama3": {"factor": 8, "low": 0, "high": 2, "original": 2 * math.pi}}, [9 / 16, 0.1 * (0.05 + 0.95 / 8)], 1),
        (
            {"yarn": {"factor": 2, "original": 200 * math.pi, "beta_fast": 100, "beta_slow": 1, "truncate": False}},
            [1, 0.075],
            0.1 * math.log(2) + 1,
        ),
        ({"yarn": {"factor": 2, "original": 4000, "attention_factor": 3}}, [1, 0.1], 3),
    ],
)
def test_scalings_of_rope(scaling, thetas, factor):
    """dim 4, base 100: θ = 1, 1/10. Of yarn's last, c(32) = 1.3, c(1) = 2.8: the ramp goes from 1 to 3, past both."""
    found = computed(
        {"Z": [[1, 2, 0, 0]] * 2, "W_Q": np.eye(4), "W_K": np.eye(4), "W_V": np.eye(4)}
        | {"positions": {"rope": {"base": 100, "scaling": scaling}}}
    )
    np.testing.assert_allclose(found["angles"][1], thetas, rtol=1e-12)
    np.testing.assert_allclose(found["rotated_Q"][0, 0], np.array([1, 2, 0, 0]) * factor)


def test_masks():
    def weights(mask, **further):
        keys = {"Z": [[0, 0]] * 3, "W_Q": ONE, "W_K": ONE, "W_V": ONE, "mask": mask}
        return computed(keys | further)["weights"][0].round(4).tolist()

    assert weights("causal") == [[1, 0, 0], [0.5, 0.5, 0], [0.3333] * 3]
    assert weights({"window": 1}) == [[0.5, 0.5, 0], [0.3333] * 3, [0, 0.5, 0.5]]
    assert weights(["causal", {"window": [1, 0]}]) == [[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]]
    assert weights({"block": [1, 0, 0]}) == [[0, 0.5, 0.5]] * 3
    assert weights({"keep": [[0, 0, 0], [1, 0, 0], [1, 1, 0]]}) == [[0, 0, 0], [1, 0, 0], [0.5, 0.5, 0]]
    assert weights({"add": [[math.log(2), 0, 0]]}) == [[0.5, 0.25, 0.25]] * 3
    assert weights({"lengths": 1}, mask_fill="-1e9") == [[1, 0, 0]] * 3


def test_every_batch_entry_is_a_problem_of_its_own():
    keys = {"W_E": [[1, 0], [0, 1], [1, 1]], "layers": [{"W_Q": ONE, "W_K": ONE, "W_V": ONE, "W_O": ONE}], "tied": True}
    ids, lengths, targets = [[0, 1], [2, 0]], [2, 1], [[1, "?"], [0, 2]]
    found = computed(keys | {"ids": ids, "mask": {"lengths": lengths}, "targets": targets})
    for b in range(2):
        alone = computed(keys | {"ids": ids[b], "mask": {"lengths": lengths[b]}, "targets": targets[b]})
        for address in ("layers.1.weights", "logits", "token_losses"):
            np.testing.assert_array_equal(found[address][b], alone[address])
    counted = found["token_losses"][[0, 1, 1], [0, 0, 1]]
    assert found["loss"] == pytest.approx(counted.mean())


def test_generating_with_the_cache_is_generating_without():
    draw = np.random.default_rng(2)
    layers = [{f"W_{role}": draw.normal(size=(4, 4)) for role in "QKVO"} for _ in range(2)]
    keys = {"W_E": draw.normal(size=(7, 4)) * 3, "layers": layers, "num_heads": 2, "mask": "causal", "tied": True}
    for positions in (
        "sinusoid",
        {"rope": {"base": 50}},
        "alibi",
        {"t5": {"table": draw.normal(size=(8, 2)), "buckets": 8}},
    ):
        ids = [3, 1, 4]
        found = computed(keys | {"ids": ids, "positions": positions, "generate": 4})
        for step in range(1, 5):
            whole = computed(keys | {"ids": ids, "positions": positions})
            np.testing.assert_allclose(found[f"steps.{step}.logits"][-1], whole["logits"][-1])
            np.testing.assert_allclose(found[f"steps.{step}.layers.2.weights"][:, -1], whole["layers.2.weights"][:, -1])
            ids = [*ids, int(whole["next_tokens"][-1])]
        assert found["generated"].tolist() == ids[3:]


def test_from_logits_by_hand():
    """Logits 0, 2 ln 2: capped and divided by 2 they would be ln 2; probabilities 1/3, 2/3."""
    found = computed(
        {"logits": [[0, 2 * math.log(2)]], "temperature": 2, "targets": [1], "log_base": 2, "label_smoothing": 0.5}
    )
    np.testing.assert_allclose(found["probabilities"], [[1 / 3, 2 / 3]])
    third, two_thirds = math.log2(3), math.log2(1.5)
    assert found["loss"] == pytest.approx(0.5 * two_thirds + 0.5 * (third + two_thirds) / 2)
    assert found["perplexity"] == pytest.approx(2 ** found["loss"])
    assert computed({"logits": [[5, 1, 5]]})["next_tokens"].tolist() == [0]
    capped = computed({"logits": [[0, 1e9]], "logit_softcap": 3})
    assert capped["capped_logits"].tolist() == [[0, 3]]


def test_the_transform_before_the_vocabulary():
    keys = {"Z": [[3, 1]], "W_T": ONE, "b_T": [0, 1], "gamma_T": [2, 2], "activation": "relu", "eps": 0, "W_vocab": ONE}
    found = computed(keys)
    assert found["transformed"].tolist() == [[3, 2]]
    assert found["transform_norm"].tolist() == [[2, -2]]
    assert found["logits"].tolist() == [[2, -2]]
