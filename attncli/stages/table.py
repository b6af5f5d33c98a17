"""STAGES: one row a stage. Computing, explaining, checking, showing, the help and completion read this table.

A row names its op, and nothing is imported before a plan looks it up: the help needs no numpy. Axes name the sizes of
an array in the row convention, behind any batch axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attncli.stages.inputs import LayerInputs
    from attncli.stages.ops import Op

SCORES = ("masked_scores", "capped_scores", "scaled_scores", "scores")
"""What the softmax is taken of: the first of these that the problem has."""

UNMADE = "what it is computed from is not given"


@dataclass(frozen=True)
class Stage:
    """A row: a stage's name, symbol, ``letter`` (what a cell is called in formulas), meaning, axes, and its ``op``.

    ``needs``: stages that it is made of, or a tuple of alternatives of which the first that is there counts;
    ``reads``: keys of the problem that have nothing else to do. ``absent`` says why a problem doesn't have it, "" where
    it does. ``start``: a problem may give it. ``on_request``: shown only when it is asked for. ``cached``: rows are
    kept from before it, and further ones put after it (K, V). ``blocked``: it can be made by blocks of rows, without
    any n × m array. ``overflows``: "numbers" that are finite may give infinite ones; "rows": so may whole rows.
    ``aliases``: what else people call it.
    """

    name: str
    symbol: str
    letter: str
    meaning: str
    axes: tuple[str, ...]
    needs: tuple[str | tuple[str, ...], ...]
    op: str
    reads: tuple[str, ...] = ()
    absent: Callable[[LayerInputs], str] = lambda x: ""
    start: bool = False
    on_request: bool = False
    cached: bool = False
    blocked: bool = False
    overflows: str = ""
    aliases: tuple[str, ...] = ()

    @cached_property
    def right(self) -> Op:
        """The stage's own op, imported when it is first asked for."""
        from importlib import import_module

        module, name = self.op.split(":")
        found: Op = getattr(import_module(module), name)
        return found

    @property
    def per_head(self) -> bool:
        return self.axes[0] in ("h", "g")

    @property
    def is_score_like(self) -> bool:
        """Whether a problem may give it as a matrix a head, a query a row and a key a column."""
        return self.start and self.axes == ("h", "n", "m")

    def symbol_for(self, x: LayerInputs) -> str:
        """The symbol, without the head's number where there is one head."""
        return _plain(self.symbol, x)

    def formula_for(self, x: LayerInputs) -> str:
        """The formula as this problem has it: its biases, its memory, its score, its layout."""
        return "given" if self.name in x.given else _plain(self.right.formula(x, needed(x, self.name) or ()), x)

    def shape(self, x: LayerInputs) -> tuple[int, ...]:
        """The shape of the array in the row convention, batch axes first."""
        return (*x.batch, *(x.size(axis) for axis in self.axes))

    def shape_names(self, x: LayerInputs) -> tuple[str, str]:
        """The names of a matrix's two axes, as shown: (n, d_k), or (d_k, n) in columns."""
        row, column = (_SHOWN.get(axis, axis) for axis in self.axes[-2:])
        return (column, row) if x.columns else (row, column)


_SHOWN = {"d_q": "d_k", "d_out": "d_model"}
"""Sizes that are nearly always another one, and are called so beside a matrix."""


def _plain(text: str, x: LayerInputs) -> str:
    if x.num_heads > 1:
        return text
    return text.replace("^(r)", "").replace("^(s)", "").replace("_r^", "^").replace("_s^", "^")


def _unprojected(role: str) -> Callable[[LayerInputs], str]:
    return lambda x: "" if f"W_{role}" in x.arrays else UNMADE


def _no_output_weights(x: LayerInputs) -> str:
    return "" if x.W_O is not None else "it has no W_O"


_ROWS = (
    Stage(
        "Q", "Q^(r)", "q", "queries", ("h", "n", "d_q"), (), "attncli.stages.projections:Q",
        reads=("W_Q", "b_Q"), absent=_unprojected("Q"), start=True, overflows="numbers",
    ),
    Stage(
        "K", "K^(r)", "k", "keys", ("g", "m", "d_k"), (), "attncli.stages.projections:K",
        reads=("W_K", "b_K"), absent=_unprojected("K"), start=True, cached=True, overflows="numbers",
    ),
    Stage(
        "V", "V^(r)", "v", "values", ("g", "m", "d_v"), (), "attncli.stages.projections:V",
        reads=("W_V", "b_V", "memory_V"), absent=_unprojected("V"), start=True, cached=True, overflows="numbers",
    ),
    Stage(
        "scores", "S^(r)", "s", "how well query i fits key j", ("h", "n", "m"), ("Q", "K"),
        "attncli.stages.scores:scores", start=True, overflows="numbers",
        reads=("past_K", "past_V", "extra_K", "extra_V", "W_a", "W_1", "W_2", "v", "b"), aliases=("logits",),
    ),
    Stage(
        "scaled_scores", "S~^(r)", "s~", "the scores, scaled", ("h", "n", "m"), ("scores",),
        "attncli.stages.scores:scaled_scores", reads=("scale",), start=True, overflows="numbers",
        absent=lambda x: "" if x.is_scaled else f"score is {x.score}, which isn't scaled (give scale to scale it)",
    ),
    Stage(
        "capped_scores", "", "t", "the scores, squeezed between -c and c", ("h", "n", "m"), (SCORES[2:],),
        "attncli.stages.scores:capped_scores", reads=("softcap",), start=True,
        absent=lambda x: "" if x.softcap is not None else "it has no softcap",
    ),
    Stage(
        "masked_scores", "", "x", "the scores of the keys that a query may attend to", ("h", "n", "m"), (SCORES[1:],),
        "attncli.stages.scores:masked_scores", reads=("mask", "mask_fill"), start=True,
        absent=lambda x: "" if x.mask is not None else "it has no mask",
    ),
    Stage(
        "weights", "A^(r)", "α", "how much query i attends to key j", ("h", "n", "m"), (SCORES,),
        "attncli.stages.weighing:weights", start=True, aliases=("attn", "attention", "alpha", "probs", "softmax"),
    ),
    Stage(
        "outputs", "O^(r)", "o", "the values, averaged by the weights", ("h", "n", "d_v"), ("weights", "V"),
        "attncli.stages.weighing:outputs", reads=("num_kv_heads",), start=True, blocked=True,
    ),
    Stage(
        "concat", "Concat(O^(1)..O^(h))", "c", "the heads' outputs side by side", ("n", "h·d_v"), ("outputs",),
        "attncli.stages.joining:concat", start=True, blocked=True,
        absent=lambda x: "" if x.num_heads > 1 or x.W_O is not None else "it has one head and no W_O",
    ),
    Stage(
        "multihead", "MultiHead(Z)", "y", "the layer's output", ("n", "d_out"), ("concat",),
        "attncli.stages.joining:multihead", absent=_no_output_weights, blocked=True, overflows="rows",
    ),
    Stage(
        "contributions", "O^(r) W_r^O", "y", "each head's share of the output", ("h", "n", "d_out"), ("outputs",),
        "attncli.stages.joining:contributions", absent=_no_output_weights, on_request=True, overflows="rows",
    ),
)  # fmt: skip

STAGES: dict[str, Stage] = {stage.name: stage for stage in _ROWS}


def is_present(x: LayerInputs, name: str) -> bool:
    """Whether a problem has a stage: it is given, or everything that it needs is there."""
    if name in x.given:
        return True
    if _is_before_given(x, name):
        return False
    return not STAGES[name].absent(x) and needed(x, name) is not None


def _is_before_given(x: LayerInputs, name: str) -> bool:
    """Whether a later score stage is given in place of this one."""
    chain = [stage.name for stage in STAGES.values() if stage.is_score_like]
    return name in chain and any(later in x.given for later in chain[chain.index(name) + 1 :])


def needed(x: LayerInputs, name: str) -> tuple[str, ...] | None:
    """The stages that one is made of in this problem, or None where one of them is absent."""
    found = []
    for need in STAGES[name].needs:
        options = (need,) if isinstance(need, str) else need
        chosen = next((option for option in options if is_present(x, option)), None)
        if chosen is None:
            return None
        found.append(chosen)
    return tuple(found)


def present(x: LayerInputs) -> list[Stage]:
    """The stages that a problem has, in order, those on request included."""
    return [stage for stage in STAGES.values() if is_present(x, stage.name)]


def why_absent(x: LayerInputs, stage: Stage) -> str:
    """Why a problem doesn't have a stage, in words."""
    reason = stage.absent(x)
    if reason and reason != UNMADE:
        return reason
    given = [name for name in x.given if STAGES[name].needs]
    return f"it starts at {given[0]}" if given else UNMADE
