"""explain(result, cell): how one number, row or stage arose, as a Derivation: the formula with the numbers in it.

Each stage's op says how one of its cells is made of cells of the stages before it; here it gets them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.engine.evaluate import evaluate
from attncli.explaining.inputs import Inputs, hidden_by, spoken
from attncli.language.errors import AttncliError
from attncli.maths.cell import At, Cell
from attncli.maths.derivation import Derivation, Value, node, number
from attncli.model.cells import Spot, parse, shown, shown_range, stage_of
from attncli.stages.plan import plan
from attncli.stages.table import STAGES, is_present

if TYPE_CHECKING:
    from attncli.engine.compute import Result
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem
    from attncli.stages.plan import Plan

MOST_NODES = 400_000
"""A derivation of more steps is refused: nobody would read it, and it takes long."""


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

    def __init__(self, result: Result, steps: Plan) -> None:
        super().__init__(result.rows)
        self.plan = steps

    def __missing__(self, name: str) -> Array:
        self.update(evaluate(self.plan, self, [name]))
        return self[name]  # type: ignore[no-any-return]


class Explainer:
    """Makes the derivations of one result; cells that are used twice are derived once."""

    def __init__(self, result: Result, depth: int | None = 1) -> None:
        self.problem: Problem = result.problem
        self.plan = plan(result.problem)
        self.values = _Stages(result, self.plan)
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
        tree = self.inputs.cached(stage, at) or self._rounded(stage, self._entry(stage, at, depth - 1))
        self._spend(tree.size() if depth == 1 else len(tree.operands))
        return replace(tree, value=value, cell=cell, symbol=symbol)

    def _entry(self, stage: str, at: At, depth: int) -> Derivation:
        step = self.plan.steps[stage]
        return step.op.entry(step.inputs, at, _Followed(self, depth))

    def row(self, stage: str, at: At, depth: int = 0) -> Derivation:
        """One token's vector: as a whole where its op says how (the weighted sum of values), else cell by cell."""
        width = self.values[stage].shape[-1]
        cell, symbol = self.shown(stage, at, whole_row=True), self.symbol(stage, at, whole_row=True)
        if depth <= 0:
            value = tuple(self.value(stage, replace(at, j=j)) for j in range(width))
            return Derivation("cell", value, cell=cell, symbol=symbol)
        step = self.plan.steps[stage]
        whole = None if step.is_given else step.op.row(step.inputs, at, _Followed(self, depth - 1))
        if whole is not None:
            value = tuple(self.value(stage, replace(at, j=j)) for j in range(width))
            self._spend(len(whole.operands) * width)
            return replace(self._rounded(stage, whole), value=value, cell=cell, symbol=symbol)
        entries = [self.cell(stage, replace(at, j=j), depth) for j in range(width)]
        return replace(node("row", *entries), cell=cell, symbol=symbol)

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
        return f"{STAGES[stage].letter}{f'^({head})' if several else ''}{indices}"

    def indices(self, *positions: int) -> str:
        """_{13}, or _{1,13} where one has two digits; the other way around in columns."""
        numbers = [str(position + 1) for position in positions]
        if self.problem.columns:
            numbers.reverse()
        return f"_{{{(',' if any(len(one) > 1 for one in numbers) else '').join(numbers)}}}"

    def number(self, value: Any, symbol: str = "") -> Derivation:
        """A constant, exact where the problem is."""
        return number(self.inputs.number(value), symbol)


class _Followed:
    """What an op's entry is made of (see `stages.ops.Cells`), each cell followed back so many stages."""

    def __init__(self, explainer: Explainer, depth: int) -> None:
        self._explainer, self._depth, self._inputs = explainer, depth, explainer.inputs
        self.entry = explainer.inputs.entry
        self.number, self.symbol, self.value = explainer.number, explainer.symbol, explainer.value
        self.projection_formula = explainer.inputs.projection_formula
        self.output_formula = explainer.inputs.output_formula

    def cell(self, stage: str, at: At) -> Derivation:
        return self._explainer.cell(stage, at, self._depth)

    def vector(self, stage: str, at: At) -> Derivation:
        return self._explainer.row(stage, at, self._depth)

    def product(self, a: Derivation, b: Derivation) -> Derivation:
        """a · b, or b · a in columns, where a token's vector stands on the other side."""
        vector = isinstance(b.value, tuple)
        return node("product", b, a) if self._explainer.problem.columns and not vector else node("product", a, b)

    def weighted(self, weight: Derivation, value: Derivation) -> Derivation:
        entries = value.value if isinstance(value.value, tuple) else (value.value,)
        finite = self._explainer.problem.exact or np.isfinite(np.array(entries, dtype=float)).all()
        if weight.value == 0 and not finite:
            value = replace(number(0.0 if value.value is entries[0] else (0.0,) * len(entries)), words="takes no part")
        return self.product(weight, value)

    def needs(self, stage: str) -> tuple[str, ...]:
        return self._explainer.plan.steps[stage].needs

    def width(self, stage: str) -> int:
        return int(self._explainer.values[stage].shape[-1])

    def head(self, stage: str, at: At) -> int:
        return self._explainer.place(stage, at)[-3]

    def spoken(self, axis: str, position: int) -> str:
        return spoken(self._explainer.problem, axis, position)

    def hidden_by(self, at: At) -> str:
        return hidden_by(self._explainer.problem, at)
