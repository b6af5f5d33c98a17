"""STAGES: one row a stage of attention. Computing, explaining, checking, showing and the help read this table.

Formulas are in the small notation of `notation`; axes name the sizes of an array in the row convention, behind
any batch axes. A stage is made by `compute(problem, values)` from the values of the stages that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attncli.maths import ops
from attncli.maths.ops import Array

if TYPE_CHECKING:
    from attncli.model.problem import Problem

Values = Mapping[str, Array]
Formula = Callable[["Problem"], str]

SCORES = ("masked_scores", "capped_scores", "scaled_scores", "scores")
"""What the softmax is taken of: the first of these that the problem has."""

LAST = ("outputs", "concat", "multihead")
"""The stages after the weights, each of which can be made without any n × m array (see `blocks`)."""


class Stage(NamedTuple):
    """A stage: its name, symbol, formula, axes, what it needs, and how it is made.

    ``needs``: stages, or a tuple of alternatives of which the first that is present counts. ``exists``: whether a
    problem has it, apart from its needs. ``on_request``: shown only when it is asked for.
    """

    name: str
    symbol: str
    meaning: str
    axes: tuple[str, ...]
    needs: tuple[str | tuple[str, ...], ...]
    formula: Formula
    compute: Callable[[Problem, Values], Array]
    exists: Callable[[Problem], bool] = lambda problem: True
    on_request: bool = False

    @property
    def per_head(self) -> bool:
        return self.axes[0] in ("h", "g")

    def symbol_for(self, problem: Problem) -> str:
        """The symbol, without the head's number where there is one head."""
        return _plain(self.symbol, problem)

    def formula_for(self, problem: Problem) -> str:
        """The formula as this problem has it: its biases, its memory, its score, its layout."""
        return "given" if self.name in problem.given else _plain(self.formula(problem), problem)

    def shape(self, problem: Problem) -> tuple[int, ...]:
        """The shape of the array in the row convention, batch axes first."""
        p = problem
        sizes = {
            "h": p.num_heads, "g": p.num_kv_heads, "n": p.n, "m": p.m, "d_k": p.d_k, "d_v": p.d_v,
            "h·d_v": p.num_heads * (p.d_v or 0), "d_model": p.d_out,
        }  # fmt: skip
        if self.name == "Q" and p.score in ("general", "additive"):
            sizes["d_k"] = p.W_Q.shape[1] // p.num_heads if p.W_Q is not None else p.given["Q"].shape[-1]
        return (*p.batch, *(sizes[axis] or 0 for axis in self.axes))

    def shape_names(self, problem: Problem) -> tuple[str, str]:
        """The names of a matrix's two axes, as shown: (n, d_k), or (d_k, n) in columns."""
        row, column = (f"{self.axes[-1 - i]}" for i in (1, 0))
        return (column, row) if problem.columns else (row, column)


def _plain(text: str, problem: Problem) -> str:
    if problem.num_heads > 1:
        return text
    return text.replace("^(r)", "").replace("^(s)", "").replace("_r^", "^").replace("_s^", "^")


# Formulas


def _projection(role: str) -> Formula:
    def formula(problem: Problem) -> str:
        head = "r" if role == "Q" or problem.num_kv_heads == problem.num_heads else "s"
        source = "X" if problem.columns else "Z"
        if role != "Q" and problem.memory is not None:
            source = "M"
        if role == "V" and problem.memory_V is not None:
            source = "M_V"
        weight, bias = f"W_{head}^{role}", f" + b_{head}^{role}"
        text = f"{weight} {source}" if problem.columns else f"{source} {weight}"
        text += bias if getattr(problem, f"b_{role}") is not None else ""
        parts = [part for part in (f"past_{role}" if problem.past and role != "Q" else "", text) if part]
        parts += [f"extra_{role}"] if problem.extra and role != "Q" else []
        between = ", " if problem.columns else "; "  # side by side, or on top of each other
        return text if len(parts) == 1 else f"[{between.join(parts)}]"

    return formula


def _scores_formula(problem: Problem) -> str:
    s = "(r)" if problem.num_kv_heads == problem.num_heads else "(s)"
    Q, K = "Q^(r)", f"K^{s}"
    if problem.score == "additive":
        bias = " + b" if problem.b is not None else ""
        inner = "W_1 q_i + W_2 k_j" if problem.columns else "q_i W_1 + k_j W_2"
        return f"v^T tanh({inner}{bias})"
    middle = {True: "W_a^T ", False: "W_a "}[problem.columns] if problem.score == "general" else ""
    return f"{K}^T {middle}{Q}" if problem.columns else f"{Q} {middle}{K}^T"


def _scaled_formula(problem: Problem) -> str:
    return "S^(r) / sqrt(d_k)" if problem.scale is None else "scale * S^(r)"


def _capped_formula(problem: Problem) -> str:
    return "c tanh(S~^(r) / c)" if problem.is_scaled else "c tanh(S^(r) / c)"


def _before_mask(problem: Problem) -> str:
    if problem.softcap is not None:
        return _capped_formula(problem)
    return "S~^(r)" if problem.is_scaled else "S^(r)"


def _masked_formula(problem: Problem) -> str:
    mask = problem.mask
    text = _before_mask(problem)
    if mask is not None and mask.bias is not None:
        text += " + mask"
    if mask is None or not mask.hides:
        return text
    hidden = "-inf" if problem.mask_fill is None else f"{problem.mask_fill:g}"
    return f'{text} "where allowed," {hidden} "elsewhere"'


def _weights_formula(problem: Problem) -> str:
    source = next(name for name in SCORES if is_present(problem, name))
    along = "down each column" if problem.columns else "along each row"
    symbol = {"scaled_scores": "S~^(r)", "scores": "S^(r)"}.get(source, f'"{source}"')
    return f'softmax({symbol}) "{along}"'


def _outputs_formula(problem: Problem) -> str:
    V = "V^(r)" if problem.num_kv_heads == problem.num_heads else "V^(s)"
    return f"{V} A^(r)" if problem.columns else f"A^(r) {V}"


def _concat_formula(problem: Problem) -> str:
    heads = "O^(1)..O^(h)" if problem.num_heads > 1 else "O"
    return f"Concat({heads})" + (' "on top of each other"' if problem.columns and problem.num_heads > 1 else "")


def _multihead_formula(problem: Problem) -> str:
    product = "W^O Concat" if problem.columns else "Concat W^O"
    return product + (" + b^O" if problem.b_O is not None else "")


# How each is made


def _make_projection(role: str) -> Callable[[Problem, Values], Array]:
    """Q = Z W_Q + b_Q by heads; K and V from the memory, with cached ones before them."""

    def make(problem: Problem, values: Values) -> Array:
        source, weight, bias = (getattr(problem, name) for name in projection_names(problem, role))
        heads = problem.num_heads if role == "Q" else problem.num_kv_heads
        return ops.split_heads(ops.project(source, weight, bias), heads)

    return make


def projection_names(problem: Problem, role: str) -> tuple[str, str, str]:
    """The keys that Q, K or V is made of: what is projected, the weight, the bias."""
    source = "Z"
    if role != "Q" and problem.memory is not None:
        source = "memory"
    if role == "V" and problem.memory_V is not None:
        source = "memory_V"
    return source, f"W_{role}", f"b_{role}"


def with_cache(problem: Problem, role: str, x: Array) -> Array:
    """K or V with the cached rows before it and the extra ones after it.

    x (batch.., g, m_new, d)  ->  (batch.., g, m, d)
    """
    parts = [problem.parts.get(f"past_{role}"), x, problem.parts.get(f"extra_{role}")]
    there = [part for part in parts if part is not None]
    if len(there) == 1:
        return x
    lead = np.broadcast_shapes(*(part.shape[:-2] for part in there))
    return np.concatenate([np.broadcast_to(part, (*lead, *part.shape[-2:])) for part in there], axis=-2)


def _make_scores(problem: Problem, values: Values) -> Array:
    Q, K = values["Q"], ops.spread_heads(values["K"], problem.num_heads)
    if problem.score == "general":
        return ops.general_scores(Q, K, problem.W_a)
    if problem.score == "additive":
        return ops.additive_scores(Q, K, problem.W_1, problem.W_2, problem.v, problem.b)
    return ops.dot_scores(Q, K)


def _make_scaled(problem: Problem, values: Values) -> Array:
    return ops.scaled_scores(values["scores"], d_k=problem.d_k, scale=problem.scale)


def _make_capped(problem: Problem, values: Values) -> Array:
    return ops.capped_scores(first(values, "scaled_scores", "scores"), problem.softcap)


def _make_masked(problem: Problem, values: Values) -> Array:
    assert problem.mask is not None
    fill = -np.inf if problem.mask_fill is None else problem.mask_fill
    source = first(values, "capped_scores", "scaled_scores", "scores")
    return ops.masked_scores(source, problem.mask.allowed, problem.mask.bias, fill)


def _make_weights(problem: Problem, values: Values) -> Array:
    empty = np.nan if problem.empty_rows == "nan" else 0.0
    return ops.softmax(first(values, *SCORES), empty)


def _make_outputs(problem: Problem, values: Values) -> Array:
    return ops.weighted_values(values["weights"], ops.spread_heads(values["V"], problem.num_heads))


def _make_concat(problem: Problem, values: Values) -> Array:
    return ops.join_heads(values["outputs"])


def _make_multihead(problem: Problem, values: Values) -> Array:
    return ops.project(values["concat"], problem.W_O, problem.b_O)


def _make_contributions(problem: Problem, values: Values) -> Array:
    return ops.contributions(values["outputs"], problem.W_O)


def first(values: Values, *names: str) -> Array:
    """The value of the first stage that is there."""
    return next(values[name] for name in names if name in values)


def _projected(role: str) -> Callable[[Problem], bool]:
    return lambda problem: getattr(problem, f"W_{role}") is not None


_ROWS = (
    Stage("Q", "Q^(r)", "queries", ("h", "n", "d_k"), (), _projection("Q"), _make_projection("Q"), _projected("Q")),
    Stage("K", "K^(r)", "keys", ("g", "m", "d_k"), (), _projection("K"), _make_projection("K"), _projected("K")),
    Stage("V", "V^(r)", "values", ("g", "m", "d_v"), (), _projection("V"), _make_projection("V"), _projected("V")),
    Stage("scores", "S^(r)", "how well query i fits key j", ("h", "n", "m"), ("Q", "K"), _scores_formula, _make_scores),
    Stage(
        "scaled_scores", "S~^(r)", "the scores, scaled", ("h", "n", "m"), ("scores",),
        _scaled_formula, _make_scaled, lambda problem: problem.is_scaled,
    ),
    Stage(
        "capped_scores", "", "the scores, squeezed between -c and c", ("h", "n", "m"), (("scaled_scores", "scores"),),
        _capped_formula, _make_capped, lambda problem: problem.softcap is not None,
    ),
    Stage(
        "masked_scores", "", "the scores of the keys that a query may attend to", ("h", "n", "m"), (SCORES[1:],),
        _masked_formula, _make_masked, lambda problem: problem.mask is not None,
    ),
    Stage(
        "weights", "A^(r)", "how much query i attends to key j", ("h", "n", "m"), (SCORES,),
        _weights_formula, _make_weights,
    ),
    Stage(
        "outputs", "O^(r)", "the values, averaged by the weights", ("h", "n", "d_v"), ("weights", "V"),
        _outputs_formula, _make_outputs,
    ),
    Stage(
        "concat", "Concat(O^(1)..O^(h))", "the heads' outputs side by side", ("n", "h·d_v"), ("outputs",),
        _concat_formula, _make_concat, lambda problem: problem.num_heads > 1 or problem.W_O is not None,
    ),
    Stage(
        "multihead", "MultiHead(Z)", "the layer's output", ("n", "d_model"), ("concat",),
        _multihead_formula, _make_multihead, lambda problem: problem.W_O is not None,
    ),
    Stage(
        "contributions", "O^(r) W_r^O", "each head's share of the output", ("h", "n", "d_model"), ("outputs",),
        lambda problem: "W_r^O O^(r)" if problem.columns else "O^(r) W_r^O", _make_contributions,
        lambda problem: problem.W_O is not None, on_request=True,
    ),
)  # fmt: skip

STAGES: dict[str, Stage] = {stage.name: stage for stage in _ROWS}


def is_present(problem: Problem, name: str) -> bool:
    """Whether a problem has a stage: it is given, or everything that it needs is there."""
    if name in problem.given:
        return True
    if _is_before_given(problem, name):
        return False
    return STAGES[name].exists(problem) and needed(problem, name) is not None


def _is_before_given(problem: Problem, name: str) -> bool:
    """Whether a later score stage is given in place of this one."""
    chain = [*reversed(SCORES), "weights"]
    if name not in chain:
        return False
    return any(later in problem.given for later in chain[chain.index(name) + 1 :])


def needed(problem: Problem, name: str) -> tuple[str, ...] | None:
    """The stages that one is made of in this problem, or None where one of them is absent."""
    found = []
    for need in STAGES[name].needs:
        options = (need,) if isinstance(need, str) else need
        chosen = next((option for option in options if is_present(problem, option)), None)
        if chosen is None:
            return None
        found.append(chosen)
    return tuple(found)


def present(problem: Problem) -> list[Stage]:
    """The stages that a problem has, in order, those on request included."""
    return [stage for stage in STAGES.values() if is_present(problem, stage.name)]
