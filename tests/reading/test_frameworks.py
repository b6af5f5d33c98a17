"""from: a framework's file in place of the weights, held to torch's own results and to sums written out here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import DATA

import attncli
from attncli.language.errors import AttncliError

TORCH = DATA / "torch"
CASES = {case["name"]: case for case in json.loads((TORCH / "manifest.json").read_text())["cases"]}
PLAIN = ("mha_self_unbatched", "mha_cross_kdim_vdim", "mha_cross_kdim_vdim_no_bias_f32")

rng = np.random.default_rng(3)


def load(folder: Path, text: str, *settings: str) -> attncli.Problem:
    (folder / "p.yaml").write_text(text)
    return attncli.load(folder / "p.yaml", *settings)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_torch_multihead_attention(tmp_path: Path, name: str, suffix: str) -> None:
    case, arrays = CASES[name], dict(np.load(TORCH / f"{name}.npz"))
    if suffix == "safetensors":
        save_file = pytest.importorskip("safetensors.numpy").save_file
        prefix, file = "encoder.layers.0.self_attn.", tmp_path / "w.safetensors"
        weights = {prefix + key: np.ascontiguousarray(array) for key, array in arrays.items() if "_proj" in key}
        save_file({**weights, "other": np.zeros(3)}, file)
    else:
        prefix, file = "", TORCH / f"{name}.npz"
    sides = {"Z": "query"} if "self" in name else {"Z": "query", "memory": "key", "memory_V": "value"}
    text = f"from: {{torch_mha: {file}, prefix: '{prefix}'}}\nnum_heads: {case['config']['num_heads']}\n"
    text += "".join(f"{key}: {TORCH}/{name}.npz:{side}\n" for key, side in sides.items())
    result = attncli.compute(load(tmp_path, text))
    tolerance = 1e-6 if case["dtype"] == "float32" else 1e-12
    np.testing.assert_allclose(result["multihead"], arrays["expected_output"], atol=tolerance)
    np.testing.assert_allclose(result["weights"], arrays["expected_weights"], atol=tolerance)


@pytest.mark.parametrize("layout", ["layout: columns", "weight_layout: out_in", "weight_layout: in_out"])
def test_weights_turn_round_with_the_layout(tmp_path: Path, layout: str) -> None:
    name = "mha_self_unbatched"
    arrays = dict(np.load(TORCH / f"{name}.npz"))
    query = arrays["query"].T if layout == "layout: columns" else arrays["query"]
    np.save(tmp_path / "z.npy", query)
    text = f"from: {{torch_mha: {TORCH}/{name}.npz}}\nnum_heads: 3\nZ: z.npy\n{layout}\n"
    output = attncli.compute(load(tmp_path, text))["multihead"]
    output = output.T if layout == "layout: columns" else output
    np.testing.assert_allclose(output, arrays["expected_output"], atol=1e-12)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: Any, k: Any, v: Any, heads: int, groups: int) -> Any:
    """Plain multi-head attention over projected rows, one head after the other."""
    width = q.shape[1] // heads
    outputs = []
    for r in range(heads):
        g = r // (heads // groups)
        a, b, c = q[:, r * width :][:, :width], k[:, g * width :][:, :width], v[:, g * width :][:, :width]
        outputs.append(softmax(a @ b.T / np.sqrt(width)) @ c)
    return np.concatenate(outputs, axis=1)


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_bert(tmp_path: Path, prefix: str) -> None:
    z = rng.normal(size=(5, 6))
    tensors: dict[str, Any] = {}
    for layer in (0, 1):
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            name = f"{prefix}encoder.layer.{layer}.attention.{part}"
            tensors[f"{name}.weight"], tensors[f"{name}.bias"] = rng.normal(size=(6, 6)), rng.normal(size=6)
    np.savez(tmp_path / "model.npz", **tensors)
    np.save(tmp_path / "z.npy", z)
    result = attncli.compute(load(tmp_path, "from: {bert: model.npz, layer: 1}\nnum_heads: 2\nZ: z.npy\n"))

    def linear(x: Any, part: str) -> Any:
        name = f"{prefix}encoder.layer.1.attention.{part}"
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    expected = attention(*(linear(z, f"self.{side}") for side in ("query", "key", "value")), 2, 2)
    np.testing.assert_allclose(result["multihead"], linear(expected, "output.dense"), atol=1e-12)


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_gpt2(tmp_path: Path, prefix: str) -> None:
    z, name = rng.normal(size=(5, 6)), f"{prefix}h.0.attn."
    weight, bias = rng.normal(size=(6, 18)), rng.normal(size=18)
    out, out_bias = rng.normal(size=(6, 6)), rng.normal(size=6)
    np.savez(
        tmp_path / "model.npz",
        **{f"{name}c_attn.weight": weight, f"{name}c_attn.bias": bias},
        **{f"{name}c_proj.weight": out, f"{name}c_proj.bias": out_bias},
    )  # fmt: skip
    np.save(tmp_path / "z.npy", z)
    problem = load(tmp_path, "from: {gpt2: model.npz, layer: 0}\nnum_heads: 3\nZ: z.npy\n")
    assert problem.notes == ("GPT-2 masks later tokens: give mask: causal to do as it does.",)
    assert load(tmp_path, "from: {gpt2: model.npz, layer: 0}\nnum_heads: 3\nZ: z.npy\nmask: causal\n").notes == ()
    q, k, v = np.split(z @ weight + bias, 3, axis=1)
    expected = attention(q, k, v, 3, 3) @ out + out_bias
    np.testing.assert_allclose(attncli.compute(problem)["multihead"], expected, atol=1e-12)


@pytest.mark.parametrize("prefix", ["", "model."])
@pytest.mark.parametrize(
    "said", ["num_heads: 4\nfrom: {llama: m.npz, layer: 2}", "from: {llama: m.npz, layer: 2, head_dim: 3}"]
)
def test_llama(tmp_path: Path, prefix: str, said: str) -> None:
    z, name = rng.normal(size=(5, 7)), f"{prefix}layers.2.self_attn."
    shapes = {"q": (12, 7), "k": (6, 7), "v": (6, 7), "o": (7, 12)}
    w = {side: rng.normal(size=shape) for side, shape in shapes.items()}
    np.savez(tmp_path / "m.npz", **{f"{name}{side}_proj.weight": array for side, array in w.items()})
    np.save(tmp_path / "z.npy", z)
    problem = load(tmp_path, f"{said}\nZ: z.npy\n")
    assert (problem.num_heads, problem.num_kv_heads) == (4, 2)
    assert "rotary position embedding of Llama is not applied" in problem.notes[0]
    expected = attention(z @ w["q"].T, z @ w["k"].T, z @ w["v"].T, 4, 2) @ w["o"].T
    np.testing.assert_allclose(attncli.compute(problem)["multihead"], expected, atol=1e-12)


def test_torch_s_extra_keys_and_values(tmp_path: Path) -> None:
    """bias_k and bias_v are one more key and value after the projected ones, split into heads like these."""
    z, w = rng.normal(size=(5, 6)), rng.normal(size=(18, 6))
    bias_k, bias_v = rng.normal(size=(1, 1, 6)), rng.normal(size=(1, 1, 6))
    np.savez(tmp_path / "m.npz", **{"in_proj_weight": w, "out_proj.weight": np.eye(6)}, bias_k=bias_k, bias_v=bias_v)
    np.save(tmp_path / "z.npy", z)
    q, k, v = np.split(z @ w.T, 3, axis=1)
    k, v = np.concatenate([k, bias_k[0]]), np.concatenate([v, bias_v[0]])
    problem = load(tmp_path, "from: {torch_mha: m.npz}\nnum_heads: 2\nZ: z.npy\n")
    np.testing.assert_allclose(attncli.compute(problem)["multihead"], attention(q, k, v, 2, 2), atol=1e-12)


@pytest.mark.parametrize(
    ("line", "what", "hint"),
    [
        ("from: model.npz", "from takes {torch_mha: FILE}", "Known are torch_mha, bert, gpt2, llama"),
        ("from: {layer: 0}", "from names one framework", "Known are"),
        ("from: {brt: model.npz}", "from: unknown option 'brt'", "Did you mean bert?"),
        ("from: {bert: model.npz}\nnum_heads: 2", "which layer of model.npz?", "layer: 0"),
        ("from: {bert: model.npz, layer: 0}", "doesn't say how many heads", "num_heads: h"),
        ("from: {bert: model.npz, layer: 5}\nnum_heads: 2", "no tensor 'encoder.layer.5", "layers 0 to 0"),
        ("from: {bert: model.npz, layer: x}\nnum_heads: 2", "'x' is not a number", ""),
        ("from: {bert: model.npz, layer: -1}\nnum_heads: 2", "layer is a whole number from 0 on", ""),
        ("from: {bert: nodel.npz, layer: 0}\nnum_heads: 2", "no such file", "Did you mean model.npz?"),
        ("from: {bert: model.pt, layer: 0}\nnum_heads: 2", "no such file", ""),
        ("from: {bert: z.npy, layer: 0}\nnum_heads: 2", "z.npy holds no named tensors", ".safetensors or .npz"),
        ("from: {bert: model.npz, layer: 0}\nnum_heads: 2\nW_Q: [[1]]", "W_Q is given beside from", "Drop W_Q"),
        ("from: {llama: llama.npz, layer: 0}", "doesn't say how 4 query columns are split", "head_dim"),
        ("from: {torch_mha: model.npz}\nnum_heads: 2", "no tensor 'q_proj_weight'", "It has layers 0 to 0"),
    ],
)
def test_mistakes_in_from(tmp_path: Path, line: str, what: str, hint: str) -> None:
    parts = ("self.query", "self.key", "self.value", "output.dense")
    np.savez(tmp_path / "model.npz", **{f"encoder.layer.0.attention.{part}.weight": np.eye(2) for part in parts})
    np.savez(tmp_path / "llama.npz", **{f"layers.0.self_attn.{side}_proj.weight": np.eye(4) for side in "qkvo"})
    np.save(tmp_path / "z.npy", np.eye(2))
    with pytest.raises(AttncliError) as caught:
        load(tmp_path, f"{line}\nZ: z.npy\n")
    error = next(error for error in caught.value.errors if what in error.what)
    assert hint in " ".join(error.hint)
    assert error.where is not None
    assert error.where.line is not None
