"""explain(result, cell): how one number, row or stage arose, as a Derivation: the formula with the numbers in it.

`STEPS` has a function for each stage, which says how one of its cells is made of cells of the stages before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.engine.compute import made
from attncli.explaining.inputs import Inputs, hidden_by, spoken
from attncli.language.errors import AttncliError
from attncli.maths.cell import At, Cell
from attncli.maths.derivation import Derivation, Value, node, number
from attncli.model.cells import Spot, parse, shown, shown_range, stage_of
from attncli.stages.table import SCORES, STAGES, is_present, needed, projection_names

if TYPE_CHECKING:
    from attncli.engine.compute import Result
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem

MOST_NODES = 400_000
"""A derivation of more steps is refused: nobody would read it, and it takes long."""

FAR = 30.0
"""Where a row's largest score is further from 0, it is subtracted before the exponential, as every program does."""


def explain(result: Result, cell: str, *, depth: int | None = 1, head: int | None = None) -> Derivation:
    """How a cell of a result arose: ``weights[1,3]``, a row ``outputs[1]``, a range ``V[1..3]``, or a stage ``scores``.

    ``depth`` stages are followed back, None for all of them to Z and the weights; ``head`` (from 1) counts where
    the cell names none. A row's derivation lists its cells, except that of the outputs, which is the weighted sum of
    the value vectors; a stage's lists its rows, a range's its cells or rows. Raises AttncliError where the cell doesn't
    exist.

    >>> from attncli import Problem, compute
    >>> result = compute(Problem(Q=[[1, 2]], K=[[3, 4]], score="dot"))
    >>> made = explain(result, "scores[1,1]")
    >>> made.op, made.value, [term.value for term in made.operands]
    ('sum', 11.0, [3.0, 8.0])
    """
    explainer = Explainer(result, depth)
    name = stage_of(cell)
    shape = explainer.values[name].shape if name in STAGES and is_present(result.problem, name) else None
    return explainer.spot(parse(cell, result.problem, shape, head))


def refuse_head(problem: Problem, head: int) -> None:
    """Raise where a problem has no head of this number (from 1)."""
    if not 1 <= head <= problem.num_heads:
        there = "one head: 1" if problem.num_heads == 1 else f"heads 1 to {problem.num_heads}"
        raise AttncliError(f"there is no head {head}", hint=f"The problem has {there}.")


class _Stages(dict[str, Any]):
    """The canonical arrays by stage: the result's, and those that it lacks, made when they are asked for."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.rows)
        self.problem = result.problem

    def __missing__(self, name: str) -> Array:
        for need in () if name in self.problem.given else needed(self.problem, name) or ():
            self[need]
        self[name] = made(self.problem, name, self)
        return self[name]  # type: ignore[no-any-return]


class Explainer:
    """Makes the derivations of one result; cells that are used twice are derived once."""

    def __init__(self, result: Result, depth: int | None = 1) -> None:
        self.problem: Problem = result.problem
        self.values = _Stages(result)
        self.inputs = Inputs(result.problem)
        self.depth = 1 << 30 if depth is None else depth
        self._known: dict[Any, Derivation] = {}
        self._count = 0

    # What may be asked for

    def spot(self, spot: Spot) -> Derivation:
        """The derivation of what a person named: a cell, a row, or a stage's matrices."""
        array = self.values[spot.stage]
        if spot.is_range:
            return self._range(spot)
        if spot.row is not None and spot.column is not None:
            return self._canonical(spot.stage, (*spot.lead, spot.row, spot.column), self.depth)  # type: ignore[arg-type]
        if spot.row is not None:
            return self._canonical(spot.stage, (*spot.lead, spot.row), self.depth)  # type: ignore[arg-type]
        axes = [range(size) if i is None else (i,) for i, size in zip(spot.lead, array.shape, strict=False)]
        rows = [
            self._canonical(spot.stage, (*lead, i), self.depth)
            for lead in product(*axes)
            for i in range(array.shape[-2])
        ]
        said = () if None in spot.lead else spot.lead
        cell = shown(self.problem, spot.stage, array.shape, said) if said else Cell(spot.stage)  # type: ignore[arg-type]
        return replace(node("stage", *rows), cell=cell)

    def _range(self, spot: Spot) -> Derivation:
        """A range's cells, or its tokens' vectors, one after the other."""
        axes = [axis for axis in (spot.row, spot.column) if axis is not None]
        places = product(*(axis if isinstance(axis, range) else (axis,) for axis in axes))
        found = [self._canonical(spot.stage, (*spot.lead, *place), self.depth) for place in places]  # type: ignore[arg-type]
        tree = node("row" if len(axes) == 2 else "stage", *found)
        return replace(tree, cell=shown_range(self.problem, spot, self.values[spot.stage].shape))

    def _canonical(self, stage: str, index: tuple[int, ...], depth: int) -> Derivation:
        """The derivation of a cell or row at an index of its stage's own array."""
        leads = self.values[stage].ndim - 2
        per_head = STAGES[stage].per_head
        batch = index[: leads - 1] if per_head else index[:leads]
        head = index[leads - 1] if per_head else 0
        if STAGES[stage].axes[0] == "g":
            head *= self.problem.num_heads // self.problem.num_kv_heads
        at = At(batch, head, *index[leads:])
        return self.row(stage, at, depth) if len(index) == leads + 1 else self.cell(stage, at, depth)

    # One cell, and one row

    def cell(self, stage: str, at: At, depth: int = 0) -> Derivation:
        """One cell: with its arithmetic where ``depth`` is left, else as a reference to it."""
        key = (stage, self.place(stage, at), max(depth, 0))
        if key not in self._known:
            self._spend(1)
            self._known[key] = self._cell(stage, at, depth)
        return self._known[key]

    def _cell(self, stage: str, at: At, depth: int) -> Derivation:
        value, cell, symbol = self.value(stage, at), self.shown(stage, at), self.symbol(stage, at)
        if depth <= 0:
            return Derivation("cell", value, cell=cell, symbol=symbol)
        if stage in self.problem.given:
            return self.inputs.cached(stage, at) or Derivation("given", value, cell=cell, symbol=symbol, words="given")
        tree = self.inputs.cached(stage, at) or self._rounded(stage, STEPS[stage](self, at, depth - 1))
        self._spend(tree.size() if depth == 1 else len(tree.operands))
        return replace(tree, value=value, cell=cell, symbol=symbol)

    def row(self, stage: str, at: At, depth: int = 0) -> Derivation:
        """One token's vector: of the outputs the weighted sum of values, else its cells one after the other."""
        width = self.values[stage].shape[-1]
        cell, symbol = self.shown(stage, at, whole_row=True), self.symbol(stage, at, whole_row=True)
        if depth <= 0:
            value = tuple(self.value(stage, replace(at, j=j)) for j in range(width))
            return Derivation("cell", value, cell=cell, symbol=symbol)
        if stage == "outputs" and stage not in self.problem.given:
            tree = self._rounded(stage, self._weighted_vectors(at, depth - 1))
            value = tuple(self.value(stage, replace(at, j=j)) for j in range(width))
            return replace(tree, value=value, cell=cell, symbol=symbol)
        entries = [self.cell(stage, replace(at, j=j), depth) for j in range(width)]
        return replace(node("row", *entries), cell=cell, symbol=symbol)

    def _weighted_vectors(self, at: At, depth: int) -> Derivation:
        keys = range(self.values["weights"].shape[-1])
        weights = [self.cell("weights", replace(at, j=j), depth) for j in keys]
        vectors = [self.row("V", replace(at, i=j), depth) for j in keys]
        self._spend(len(keys) * len(vectors[0].value))
        return node("sum", *(self._term(*both) for both in zip(weights, vectors, strict=True)))

    def _term(self, weight: Derivation, value: Derivation) -> Derivation:
        """α v; a key of weight 0 takes no part, whatever its value is (NaN, ∞)."""
        entries = value.value if isinstance(value.value, tuple) else (value.value,)
        finite = self.problem.exact or np.isfinite(np.array(entries, dtype=float)).all()
        if weight.value == 0 and not finite:
            value = replace(number(0.0 if value.value is entries[0] else (0.0,) * len(entries)), words="takes no part")
        return self._product(weight, value)

    def _product(self, a: Derivation, b: Derivation) -> Derivation:
        """a · b, or b · a in columns, where a token's vector stands on the other side."""
        vector = isinstance(b.value, tuple)
        return node("product", b, a) if self.problem.columns and not vector else node("product", a, b)

    def _rounded(self, stage: str, tree: Derivation) -> Derivation:
        decimals = self.problem.decimals(stage)
        if decimals is None:
            return tree
        return Derivation("rounded", tree.value, (tree, number(float(decimals))))

    def _spend(self, nodes: int) -> None:
        self._count += nodes
        if self._count > MOST_NODES:
            hint = "Explain one cell or row, or follow fewer stages back (--depth 1)."
            raise AttncliError(f"this would take more than {MOST_NODES} steps", hint=hint)

    # Values and names

    def place(self, stage: str, at: At) -> tuple[int, ...]:
        """The index in a stage's own canonical array: key/value heads for K and V, and as many batch axes as it has."""
        shape = self.values[stage].shape
        lead = list(at.batch)
        if STAGES[stage].per_head:
            groups = self.problem.num_heads // self.problem.num_kv_heads
            lead.append(at.head // groups if STAGES[stage].axes[0] == "g" else at.head)
        lead = lead[len(lead) - (len(shape) - 2) :]
        return (*(i if size > 1 else 0 for i, size in zip(lead, shape, strict=False)), at.i, at.j)

    def value(self, stage: str, at: At) -> Value:
        entry = self.values[stage][self.place(stage, at)]
        return entry if self.problem.exact else float(entry)

    def shown(self, stage: str, at: At, whole_row: bool = False) -> Cell:
        index = self.place(stage, at)
        return shown(self.problem, stage, self.values[stage].shape, index[:-1] if whole_row else index)

    def symbol(self, stage: str, at: At, whole_row: bool = False) -> str:
        """q^(2)_{13}: the letter of a stage, its head where there are several, and the indices as shown."""
        head = self.place(stage, at)[-3] + 1 if STAGES[stage].per_head else None
        several = head is not None and self.values[stage].shape[-3] > 1
        indices = self.indices(at.i) if whole_row else self.indices(at.i, at.j)
        return f"{LETTERS[stage]}{f'^({head})' if several else ''}{indices}"

    def indices(self, *positions: int) -> str:
        """_{13}, or _{1,13} where one has two digits; the other way around in columns."""
        numbers = [str(position + 1) for position in positions]
        if self.problem.columns:
            numbers.reverse()
        return f"_{{{(',' if any(len(one) > 1 for one in numbers) else '').join(numbers)}}}"

    def number(self, value: Any, symbol: str = "") -> Derivation:
        """A constant, exact where the problem is."""
        return number(self.inputs.number(value), symbol)


LETTERS = {
    "Q": "q", "K": "k", "V": "v", "scores": "s", "scaled_scores": "s~", "capped_scores": "t", "masked_scores": "x",
    "weights": "α", "outputs": "o", "concat": "c", "multihead": "y", "contributions": "y",
}  # fmt: skip
"""What a cell of each stage is called in formulas."""

Step = Callable[[Explainer, At, int], Derivation]


def _projection(role: str) -> Step:
    """q_ia = z_i · (column a of W_Q) + b_a."""

    def step(x: Explainer, at: At, depth: int) -> Derivation:
        problem, inputs = x.problem, x.inputs
        source, weight, bias = projection_names(problem, role)
        head = x.place(role, at)[-3]
        column = head * x.values[role].shape[-1] + at.j
        row = at.i - (problem.past if role != "Q" else 0)
        terms = [
            x._product(inputs.entry(source, at.batch, row, k), inputs.entry(weight, (), k, column))
            for k in range(getattr(problem, weight).shape[0])
        ]
        terms += [inputs.entry(bias, (), column)] if getattr(problem, bias) is not None else []
        return node("sum", *terms, formula=inputs.projection_formula(role, row, head, at.j))

    return step


def _scores(x: Explainer, at: At, depth: int) -> Derivation:
    """s_ij = q_i · k_j, q_i W_a k_jᵀ, or vᵀ tanh(q_i W_1 + k_j W_2 + b)."""
    problem = x.problem
    q = [x.cell("Q", At(at.batch, at.head, at.i, a), depth) for a in range(x.values["Q"].shape[-1])]
    k = [x.cell("K", At(at.batch, at.head, at.j, a), depth) for a in range(x.values["K"].shape[-1])]
    qi = x.symbol("Q", at, whole_row=True)
    kj = x.symbol("K", replace(at, i=at.j), whole_row=True)
    if problem.score == "additive":
        inner = f"W_1 {qi} + W_2 {kj}" if problem.columns else f"{qi} W_1 + {kj} W_2"
        formula = f"v^T tanh({inner}{' + b' if problem.b is not None else ''})"
        return node("sum", *(_additive_term(x, q, k, c) for c in range(len(problem.v))), formula=formula)
    if problem.score == "general":
        columns = problem.W_a.shape[1]
        inner_sums = [
            node("sum", *(x._product(one, x.inputs.entry("W_a", (), a, b)) for a, one in enumerate(q)))
            for b in range(columns)
        ]
        formula = f"{kj}^T W_a^T {qi}" if problem.columns else f"{qi} W_a {kj}^T"
        return node("sum", *(x._product(one, k[b]) for b, one in enumerate(inner_sums)), formula=formula)
    formula = f"{kj} * {qi}" if problem.columns else f"{qi} * {kj}"
    return node("sum", *(x._product(*both) for both in zip(q, k, strict=True)), formula=formula)


def _additive_term(x: Explainer, q: Sequence[Derivation], k: Sequence[Derivation], c: int) -> Derivation:
    inputs = x.inputs
    terms = [x._product(one, inputs.entry("W_1", (), a, c)) for a, one in enumerate(q)]
    terms += [x._product(one, inputs.entry("W_2", (), a, c)) for a, one in enumerate(k)]
    terms += [inputs.entry("b", (), c)] if x.problem.b is not None else []
    return node("product", inputs.entry("v", (), c), node("tanh", node("sum", *terms)))


def _scaled(x: Explainer, at: At, depth: int) -> Derivation:
    score = x.cell("scores", at, depth)
    if x.problem.scale is not None:
        return node("product", x.number(x.problem.scale, '"scale"'), score)
    return node("quotient", score, node("root", x.number(x.problem.d_k, "d_k")))


def _source(x: Explainer, stage: str, at: At, depth: int) -> Derivation:
    """The cell of the stage that this one is made of."""
    names = needed(x.problem, stage)
    assert names is not None
    return x.cell(names[0], at, depth)


def _capped(x: Explainer, at: At, depth: int) -> Derivation:
    cap = x.number(x.problem.softcap, "c")
    return node("product", cap, node("tanh", node("quotient", _source(x, "capped_scores", at, depth), cap)))


def _masked(x: Explainer, at: At, depth: int) -> Derivation:
    """The score itself where the query may attend, with the mask's own number; −∞ (or mask_fill) elsewhere."""
    problem = x.problem
    mask = problem.mask
    assert mask is not None
    allowed, bias = (_at(array, at) for array in mask.part(slice(at.i, at.i + 1)))
    query, key = spoken(problem, "n", at.i), spoken(problem, "m", at.j)
    if allowed is not None and not allowed:
        fill = -np.inf if problem.mask_fill is None else problem.mask_fill
        words = f"query {query} may not attend to key {key} ({hidden_by(problem, at)})"
        return node("hidden", x.number(fill), words=words)
    score = _source(x, "masked_scores", at, depth)
    if bias is not None and bias != 0:
        score = node("sum", score, x.number(bias, '"mask"'))
    words = f"query {query} may attend to key {key}" if mask.hides else ""
    return node("kept", score, words=words)


def _at(array: Array | None, at: At) -> Any:
    """The entry for one query row (already cut out) and key of what broadcasts to (batch.., h, 1, m)."""
    if array is None:
        return None
    index = (*at.batch, at.head, 0, at.j)[-array.ndim :] if array.ndim else ()
    return array[tuple(i if size > 1 else 0 for i, size in zip(index, array.shape, strict=True))]


def _weights(x: Explainer, at: At, depth: int) -> Derivation:
    """exp(s_ij) / Σ_j exp(s_ij), or nothing of it where the query may attend to nothing."""
    source = next(name for name in SCORES if is_present(x.problem, name))
    scores = [x.cell(source, replace(at, j=j), depth) for j in range(x.values[source].shape[-1])]
    top = max(float(score.value) for score in scores)
    if top == -np.inf:
        put = "NaN" if x.problem.empty_rows == "nan" else "zeros"
        words = f"query {spoken(x.problem, 'n', at.i)} may attend to nothing: its weights are {put}"
        return Derivation("empty", x.value("weights", at), words=words)
    shift = x.number(top) if abs(top) > FAR and not x.problem.exact else None
    powers = [node("exp", score if shift is None else node("difference", score, shift)) for score in scores]
    words = "the row's largest score is subtracted first, which changes nothing" if shift else ""
    return node("quotient", powers[at.j], node("sum", *powers), words=words)


def _outputs(x: Explainer, at: At, depth: int) -> Derivation:
    keys = range(x.values["weights"].shape[-1])
    weights = [x.cell("weights", replace(at, j=j), depth) for j in keys]
    values = [x.cell("V", replace(at, i=j), depth) for j in keys]
    return node("sum", *(x._term(*both) for both in zip(weights, values, strict=True)))


def _concat(x: Explainer, at: At, depth: int) -> Derivation:
    width = x.values["outputs"].shape[-1]
    head, column = divmod(at.j, width)
    origin = x.cell("outputs", At(at.batch, head, at.i, column), depth)
    what = "row" if x.problem.columns else "column"
    of_head = f"head {head + 1}, " if x.problem.num_heads > 1 else ""
    counted = f": {what} {at.j + 1} = ({head + 1} − 1)·{width} + {column + 1}" if of_head else ""
    return node("pick", origin, words=f"{of_head}{what} {column + 1}{counted}")


def _multihead(x: Explainer, at: At, depth: int) -> Derivation:
    inputs, problem = x.inputs, x.problem
    terms = [
        x._product(x.cell("concat", replace(at, j=k), depth), inputs.entry("W_O", (), k, at.j))
        for k in range(problem.W_O.shape[0])
    ]
    terms += [inputs.entry("b_O", (), at.j)] if problem.b_O is not None else []
    token = f'"{"column" if problem.columns else "row"} {at.i + 1} of" Concat'
    return node("sum", *terms, formula=inputs.output_formula(token, "W^O", at.j, problem.b_O is not None))


def _contributions(x: Explainer, at: At, depth: int) -> Derivation:
    width = x.values["outputs"].shape[-1]
    terms = [
        x._product(x.cell("outputs", replace(at, j=a), depth), x.inputs.entry("W_O", (), at.head * width + a, at.j))
        for a in range(width)
    ]
    weight = f"W_{at.head + 1}^O" if x.problem.num_heads > 1 else "W^O"
    token = x.symbol("outputs", at, whole_row=True)
    return node("sum", *terms, formula=x.inputs.output_formula(token, weight, at.j, False))


STEPS: dict[str, Step] = {
    "Q": _projection("Q"),
    "K": _projection("K"),
    "V": _projection("V"),
    "scores": _scores,
    "scaled_scores": _scaled,
    "capped_scores": _capped,
    "masked_scores": _masked,
    "weights": _weights,
    "outputs": _outputs,
    "concat": _concat,
    "multihead": _multihead,
    "contributions": _contributions,
}
"""How a cell of each stage is made."""
