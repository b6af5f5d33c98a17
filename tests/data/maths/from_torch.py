"""Writes torch.json beside it: what torch and transformers give for the mathematics of a Transformer.

    python from_torch.py        (with torch and transformers installed; the tests read only the JSON)

Numbers are drawn with a seed and rounded to two decimals; float64 unless the framework works in float32 itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch.nn import functional as F  # noqa: N812
from transformers import LlamaConfig
from transformers.activations import ACT2FN
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.distilbert.modeling_distilbert import create_sinusoidal_embeddings
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as turned_gptj
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as turned_llama
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.qwen3_next.modeling_qwen3_next import l2norm
from transformers.models.t5.modeling_t5 import T5Attention

torch.set_default_dtype(torch.float64)
draw = np.random.default_rng(20)


def drawn(*shape: int, spread: float = 1.0) -> torch.Tensor:
    return torch.tensor(np.round(draw.normal(size=shape) * spread, 2))


def listed(**named: Any) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in named.items()}


def activations() -> dict[str, Any]:
    x = torch.cat([torch.linspace(-12, 12, 97), drawn(30, spread=2)])
    functions = {
        "relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu,
        "quick_gelu": ACT2FN["quick_gelu"], "relu2": ACT2FN["relu2"], "tanh": torch.tanh, "sigmoid": torch.sigmoid,
        "identity": ACT2FN["linear"],
    }  # fmt: skip
    made: dict[str, Any] = {"x": x.tolist()}
    for name, function in functions.items():
        given = x.clone().requires_grad_()
        values = function(given)
        values.sum().backward()
        made[name] = listed(values=values.detach(), slopes=given.grad, float32=function(x.float()))
    return made


def norms() -> list[dict[str, Any]]:
    made = []
    for eps in (1e-5, 0.5, 1e-12):
        x, gamma, beta = drawn(3, 4, 7, spread=2), drawn(7), drawn(7)
        given = {"x": x, "gamma": gamma, "beta": beta, "eps": eps}
        small = [part.float() for part in (x, gamma, beta)]
        half = [part.half() for part in (x, gamma, beta)]
        made.append(listed(
            **given,
            layer=F.layer_norm(x, (7,), gamma, beta, eps), layer_bare=F.layer_norm(x, (7,), eps=eps),
            layer_float32=F.layer_norm(small[0], (7,), *small[1:], eps),
            layer_float16=F.layer_norm(half[0], (7,), *half[1:], eps).double(),
            rms=F.rms_norm(x, (7,), gamma, eps), rms_offset=F.rms_norm(x, (7,), 1 + gamma, eps),
            rms_float32=F.rms_norm(small[0], (7,), small[1], eps), l2=l2norm(x, eps=eps) * gamma,
        ))  # fmt: skip
    return made


SCALINGS: list[dict[str, Any]] = [
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 4.0},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "dynamic", "factor": 3.0, "seq_len": 100},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 32},
    {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 8192},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 4096},
    {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False},
    {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 512, "beta_fast": 16.0, "beta_slow": 2.0,
     "attention_factor": 1.25},
    {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 4},
]  # fmt: skip


def rope() -> dict[str, Any]:
    scaled = []
    for settings in SCALINGS:
        for dim, base in ((8, 10000.0), (16, 500000.0), (6, 50.0)):
            seq_len = settings.get("seq_len")
            parameters = {name: value for name, value in settings.items() if name != "seq_len"}
            config = LlamaConfig(
                hidden_size=dim, num_attention_heads=1, head_dim=dim, max_position_embeddings=64,
                rope_parameters={**parameters, "rope_theta": base},
            )  # fmt: skip
            if settings["rope_type"] == "default":
                theta, factor = 1.0 / base ** (torch.arange(0, dim, 2) / dim), 1.0
            else:
                theta, factor = ROPE_INIT_FUNCTIONS[settings["rope_type"]](config, "cpu", seq_len=seq_len)
            scaled.append(listed(settings=settings, dim=dim, base=base, theta=theta.double(), factor=float(factor)))
    q, angles = drawn(1, 2, 5, 6), drawn(5, 3)
    twice = torch.cat([angles, angles], dim=-1)[None]
    halves = turned_llama(q, q, twice.cos(), twice.sin())[0]
    interleaved = turned_gptj(q.transpose(1, 2), angles.sin()[None], angles.cos()[None]).transpose(1, 2)
    return {"scaled": scaled, "turned": listed(q=q[0], angles=angles, halves=halves[0], interleaved=interleaved[0])}


def positions() -> dict[str, Any]:
    made: dict[str, Any] = {"alibi": {}, "sinusoids": []}
    for h in range(1, 21):
        bloom = build_alibi_tensor(torch.ones(1, 4), h, torch.float64)  # m_r · j, and not −m_r (i − j)
        mpt = build_mpt_alibi_tensor(h, 4)  # −m_r (n − 1 − j)
        made["alibi"][str(h)] = listed(bloom=bloom[:, 0, 1], mpt=-mpt[:, 0, 2].double())
    made["t5"] = []
    for buckets, distance, both in ((32, 128, True), (32, 128, False), (8, 6, True), (8, 6, False), (7, 11, False),
                                    (10, 50, True), (64, 1000, False), (6, 16, True)):  # fmt: skip
        found = T5Attention._relative_position_bucket(torch.arange(-140, 141), both, buckets, distance)
        made["t5"].append(listed(buckets=buckets, distance=distance, bidirectional=both, found=found))
    for d in (4, 6, 10):
        table = torch.empty(9, d)
        create_sinusoidal_embeddings(9, d, table)
        halves = MarianSinusoidalPositionalEmbedding(9, d)
        halves.weight.data = halves.create_weight().double()
        made["sinusoids"].append(listed(d=d, interleaved=table, halves=halves.weight.detach()))
    return made


def losses() -> dict[str, Any]:
    logits, targets = drawn(2, 5, 7, spread=3), torch.tensor([[0, 6, -100, 2, 2], [1, -100, 3, 4, 5]])
    flat, ids = logits.reshape(-1, 7), targets.reshape(-1)
    made = listed(
        logits=logits, targets=targets, log_softmax=F.log_softmax(logits, -1),
        float32=F.log_softmax(logits.float(), -1), none=F.cross_entropy(flat, ids, reduction="none").reshape(2, 5),
        mean=F.cross_entropy(flat, ids), sum=F.cross_entropy(flat, ids, reduction="sum"),
    )  # fmt: skip
    made["smoothed"] = [
        listed(
            label_smoothing=e, mean=F.cross_entropy(flat, ids, label_smoothing=e),
            none=F.cross_entropy(flat, ids, label_smoothing=e, reduction="none").reshape(2, 5),
        )
        for e in (0.1, 0.5, 1.0)
    ]  # fmt: skip
    return made


def sinks() -> dict[str, Any]:
    class Layer(torch.nn.Module):
        num_key_value_groups = 1

    layer = Layer().eval()
    layer.sinks = drawn(3)
    q, k, v = drawn(2, 3, 4, 2, spread=2), drawn(2, 3, 5, 2, spread=2), drawn(2, 3, 5, 2)
    mask = torch.triu(torch.full((4, 5), -torch.inf), 2)
    _, weights = eager_attention_forward(layer, q, k, v, mask, scaling=0.5)
    scores = q @ k.transpose(-1, -2) * 0.5
    return listed(scores=scores, mask=torch.isinf(mask).int(), sinks=layer.sinks, weights=weights)


if __name__ == "__main__":
    made = {
        "made_by": f"torch {torch.__version__}, transformers {transformers.__version__}",
        "activations": activations(), "norms": norms(), "rope": rope(), "positions": positions(),
        "losses": losses(), "sinks": sinks(),
    }  # fmt: skip
    Path(__file__).with_name("torch.json").write_text(json.dumps(made) + "\n", encoding="utf-8")
