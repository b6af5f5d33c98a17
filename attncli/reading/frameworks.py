"""from: {torch_mha: FILE}, {bert: FILE, layer: 0}, gpt2, llama: one attention layer out of a model's file.

FRAMEWORKS is the table: where a framework keeps which matrix, under which names, and which way round.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Mapping as Names
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attncli.language.errors import AttncliError
from attncli.maths.ops import Array
from attncli.reading import files, values
from attncli.reading.arrays import Archive
from attncli.reading.nodes import Mapping, Node, Scalar


@dataclass
class Filled:
    """The keys that a framework's file fills, in the row convention (in, out), and what a reader should be told."""

    values: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Tensors:
    """The tensors of one layer: names after the prefix, each read when asked for, as float64."""

    def __init__(self, archive: Archive, name: str, prefix: str) -> None:
        self.archive, self.name, self.prefix = archive, name, prefix

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.archive

    def __getitem__(self, name: str) -> Array:
        if name not in self:
            raise _no_tensor(self.archive, self.name, self.prefix + name)
        return np.asarray(self.archive[self.prefix + name], dtype=np.float64)

    def some(self, *pairs: tuple[str, str]) -> dict[str, Array]:
        """key → tensor, of the pairs (key, name) whose tensor is there."""
        return {key: self[name] for key, name in pairs if name in self}


def _no_tensor(archive: Archive, file: str, name: str) -> AttncliError:
    hints = list(values.nearest(name, list(archive)))
    layers = sorted({int(found[1]) for key in archive if (found := re.search(r"\b(?:h|layers?)\.(\d+)\.", key))})
    if layers:
        hints.append(f"It has layers {layers[0]} to {layers[-1]}.")
    elif len(archive) <= 20:
        hints.append(f"It holds {', '.join(archive)}.")
    return AttncliError(f"{file} has no tensor {name!r}", hint=hints)


def torch_mha(tensors: Tensors, options: Names[str, Any]) -> Filled:
    """torch.nn.MultiheadAttention: weights (out, in), fused in in_proj_weight where all widths agree."""
    if "in_proj_weight" in tensors:
        blocks = _thirds(tensors["in_proj_weight"], 0, "in_proj_weight")
    else:
        blocks = [tensors[f"{side}_proj_weight"] for side in "qkv"]
    values: dict[str, Any] = {f"W_{side}": block.T for side, block in zip("QKV", blocks, strict=True)}
    if "in_proj_bias" in tensors:
        biases = _thirds(tensors["in_proj_bias"], 0, "in_proj_bias")
        values |= {f"b_{side}": bias for side, bias in zip("QKV", biases, strict=True)}
    values["W_O"] = tensors["out_proj.weight"].T
    values |= tensors.some(("b_O", "out_proj.bias"))
    extra = tensors.some(("extra_K", "bias_k"), ("extra_V", "bias_v"))
    values |= {key: array.reshape(1, -1) for key, array in extra.items()}
    return Filled(values | _heads(options, "torch_mha"))


def bert(tensors: Tensors, options: Names[str, Any]) -> Filled:
    """BERT and what is built like it: query, key, value and output.dense, (out, in)."""
    values: dict[str, Any] = {}
    for side, name in (("Q", "self.query"), ("K", "self.key"), ("V", "self.value"), ("O", "output.dense")):
        values[f"W_{side}"] = tensors[f"{name}.weight"].T
        values |= tensors.some((f"b_{side}", f"{name}.bias"))
    return Filled(values | _heads(options, "bert"))


def gpt2(tensors: Tensors, options: Names[str, Any]) -> Filled:
    """GPT-2: c_attn holds W_Q, W_K and W_V side by side, stored (in, out)."""
    weights = _thirds(tensors["c_attn.weight"], 1, "c_attn.weight")
    biases = _thirds(tensors["c_attn.bias"], 0, "c_attn.bias")
    values: dict[str, Any] = {}
    for side, weight, bias in zip("QKV", weights, biases, strict=True):
        values |= {f"W_{side}": weight, f"b_{side}": bias}
    values |= {"W_O": tensors["c_proj.weight"], "b_O": tensors["c_proj.bias"]}
    notes = [] if "mask" in options else ["GPT-2 masks later tokens: give mask: causal to do as it does."]
    return Filled(values | _heads(options, "gpt2"), notes)


def llama(tensors: Tensors, options: Names[str, Any]) -> Filled:
    """Llama and what is built like it: q_proj, k_proj, v_proj, o_proj, (out, in); fewer key/value heads."""
    values: dict[str, Any] = {}
    for side in "QKVO":
        values[f"W_{side}"] = tensors[f"{side.lower()}_proj.weight"].T
        values |= tensors.some((f"b_{side}", f"{side.lower()}_proj.bias"))
    queries, keys = values["W_Q"].shape[1], values["W_K"].shape[1]
    head, heads = options.get("head_dim"), options.get("num_heads")
    width = head or (queries // heads if heads and queries % heads == 0 else None)
    if not width or queries % width or keys % width:
        hint = "Give num_heads (num_attention_heads in the model's config.json), or head_dim beside the file."
        raise AttncliError(f"the file doesn't say how {queries} query columns are split into heads", hint=hint)
    values |= {"num_heads": queries // width, "num_kv_heads": keys // width}
    notes = ["The rotary position embedding of Llama is not applied: scores are those of Q and K without positions."]
    if "mask" not in options:
        notes.append("Llama masks later tokens: give mask: causal to do as it does.")
    return Filled(values, notes)


def _thirds(array: Array, axis: int, name: str) -> list[Array]:
    if array.ndim <= axis or array.shape[axis] % 3:
        raise AttncliError(f"{name} has shape {array.shape}, which is no W_Q, W_K and W_V of one size")
    return np.split(array, 3, axis=axis)


def _heads(options: Names[str, Any], framework: str) -> dict[str, int]:
    """num_heads, which no file of these says."""
    if not options.get("num_heads"):
        hint = "Give num_heads: h beside from, as in the model's configuration."
        raise AttncliError(f"a {framework} file doesn't say how many heads there are", hint=hint)
    return {"num_heads": options["num_heads"]}


@dataclass(frozen=True)
class Framework:
    """How a framework is read, the prefixes that its files are known to have, and the place of a layer in them."""

    read: Callable[[Tensors, Names[str, Any]], Filled]
    prefixes: tuple[str, ...] = ("",)
    layer: str = ""
    probe: str = ""


FRAMEWORKS: dict[str, Framework] = {
    "torch_mha": Framework(torch_mha),
    "bert": Framework(
        bert, ("", "bert.", "roberta."), "encoder.layer.{layer}.attention.", "self.query.weight"
    ),
    "gpt2": Framework(gpt2, ("", "transformer."), "h.{layer}.attn.", "c_attn.weight"),
    "llama": Framework(llama, ("", "model."), "layers.{layer}.self_attn.", "q_proj.weight"),
}  # fmt: skip

_OPTIONS = ("layer", "prefix", "head_dim")


def read(node: Node, root: Mapping) -> Filled:
    """What `from` fills, in the layout of the problem at ``root``. Raises AttncliError (key ``from``)."""
    if not isinstance(node, Mapping):
        raise node.error("from takes {torch_mha: FILE} or the like", hint=_known(), key="from")
    names = [name for name in node.items if name in FRAMEWORKS]
    stray = [name for name in node.items if name not in FRAMEWORKS and name not in _OPTIONS]
    if stray:
        hint = (*values.nearest(stray[0], [*FRAMEWORKS, *_OPTIONS]), _known())
        raise node.keys[stray[0]].error(f"from: unknown option {stray[0]!r}", hint=hint, key="from")
    if len(names) != 1:
        raise node.error("from names one framework and its file", hint=_known(), key="from")
    try:
        return _stored_as_written(_read(node, names[0], root), root)
    except AttncliError as error:
        raise AttncliError(error.what, hint=error.hint, key="from", where=error.where or node.place()) from None


def _known() -> str:
    return f"Known are {', '.join(FRAMEWORKS)}: from: {{bert: model.safetensors, layer: 0}}."


def _read(node: Mapping, name: str, root: Mapping) -> Filled:
    framework, value = FRAMEWORKS[name], node.items[name]
    file = values.word(value, "from")
    archive = files.load(files.find(file, value), file)
    if not isinstance(archive, Archive):
        raise AttncliError(f"{file} holds no named tensors", hint="A layer is read from .safetensors or .npz.")
    layer = ""
    if framework.layer:
        if "layer" not in node.items:
            raise AttncliError(f"which layer of {file}?", hint=f"from: {{{name}: {file}, layer: 0}} is the first.")
        layer = framework.layer.format(layer=_count(node.items["layer"], "layer", 0))
    options: dict[str, Any] = {key: True for key in ("mask",) if key in root.items}
    if "num_heads" in root.items:
        options["num_heads"] = _count(root.items["num_heads"], "num_heads", 1)
    if "head_dim" in node.items:
        options["head_dim"] = _count(node.items["head_dim"], "head_dim", 1)
    prefix = _prefix(node, framework, archive, layer)
    return framework.read(Tensors(archive, file, prefix + layer), options)


def _prefix(node: Mapping, framework: Framework, archive: Archive, layer: str) -> str:
    if "prefix" in node.items:
        return values.word(node.items["prefix"], "prefix")
    there = (prefix for prefix in framework.prefixes if prefix + layer + framework.probe in archive)
    return next(there, framework.prefixes[-1] if _starts(archive, framework.prefixes[-1]) else "")


def _starts(archive: Archive, prefix: str) -> bool:
    return any(name.startswith(prefix) for name in archive)


def _count(node: Node, key: str, least: int) -> int:
    number = values.number(node, key)
    if not isinstance(number, int) or number < least:
        raise node.error(f"{key} is a whole number from {least} on")
    return number


def _stored_as_written(filled: Filled, root: Mapping) -> Filled:
    """Turned round where the problem says that its weights, or all its matrices, are written transposed."""
    words = {key: value.text for key, value in root.items.items() if isinstance(value, Scalar)}
    columns = words.get("layout") == "columns"
    out_in = words.get("weight_layout", "out_in" if columns else "in_out") == "out_in"
    for key, value in filled.values.items():
        if (key.startswith("W_") and out_in) or (key.startswith("extra_") and columns):
            filled.values[key] = value.T
    return filled
