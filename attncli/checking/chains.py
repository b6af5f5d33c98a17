"""Key: the right chain of a problem, computed once, and other chains: with a formula replaced, or from a sheet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from attncli.checking.mistakes.base import NOT_HERE, Changes
from attncli.engine.evaluate import evaluate, finish
from attncli.engine.evaluate import stage as evaluate_stage
from attncli.stages.plan import plan

if TYPE_CHECKING:
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem

Values = dict[str, "Array"]


@dataclass
class Base:
    """A walk without any mistake: what each stage comes to, what is passed on from it, and what a sheet shows."""

    made: Values
    passed: Values
    written: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)


class Key:
    """What the sheets of one problem are held against: its right values (canonical axes), and how stages hang together.

    ``order``: its stages in the table's order; ``needs``: the stages that each is made of; ``right``: their values.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.plan = plan(problem)
        self.order = [*self.plan.steps]
        self.needs = {name: step.needs for name, step in self.plan.steps.items()}
        self.right: Values = evaluate(self.plan)
        eps = float(np.finfo(problem.dtype).eps) if problem.dtype.kind == "f" else 0.0
        self.eps = max(1e-12, 16 * eps)
        """The noise of the arithmetic, relative to a matrix's largest number."""

        self.scale = {name: largest(array) for name, array in self.right.items()}
        """The largest number of each stage."""

    @cached_property
    def above(self) -> dict[str, frozenset[str]]:
        """The stages that each hangs on, at any distance."""
        above: dict[str, frozenset[str]] = {}
        for name in self.order:
            above[name] = frozenset(self.needs[name]).union(*(above[need] for need in self.needs[name]))
        return above

    def hidden_before(self, stage: str, shown: Iterable[str]) -> frozenset[str]:
        """The stage itself and those before it that are made on the way from the nearest shown ones."""
        seen, todo, found = set(shown), [stage], {stage}
        while todo:
            for need in self.needs[todo.pop()]:
                if need not in seen and need not in found:
                    found.add(need)
                    todo.append(need)
        return frozenset(found)

    def from_sheet(self, written: Mapping[str, tuple[Array, Array]]) -> Base:
        """The right formulas on what a sheet shows: ``written`` maps a stage to (value, judged)."""
        base = Base(self.right, self.right)
        base.made, base.passed = self._walk({}, (), base, written, None)
        base.written = written
        return base

    def walk(
        self, changes: Changes, silent: Iterable[str] = (), base: Base | None = None, until: str | None = None
    ) -> Values:
        """Every stage, with some formulas replaced, from the inputs or (``base``) from what a sheet shows.

        The wrong formulas of ``silent`` stages are not passed on. ``until`` is the last stage that is wanted. A stage
        that can't be made is left out, and so is one whose wrong formula makes no sense here.
        """
        base = base or Base(self.right, self.right)
        return self._walk(changes, silent, base, base.written, until)[0]

    def _walk(
        self,
        changes: Changes,
        silent: Iterable[str],
        base: Base,
        written: Mapping[str, tuple[Array, Array]],
        until: str | None,
    ) -> tuple[Values, Values]:
        """What each stage comes to, and what is passed on from it."""
        made_values: Values = {}
        passed: Values = {}
        with np.errstate(all="ignore"):
            for name in self.order:
                plain = self._plain(name, passed, base)
                array = plain if name not in changes else self._changed(name, changes, passed)
                if array is None:
                    continue
                made_values[name] = array
                if name == until:
                    break
                if name in silent and name in changes:
                    passed |= {} if plain is None else {name: plain}
                else:
                    passed[name] = _merged(array, *written[name]) if name in written else array
        return made_values, passed

    def _plain(self, name: str, passed: Values, base: Base) -> Array | None:
        """A stage by its own formula; nothing is computed again where nothing before it has changed."""
        needs = self.needs[name]
        if any(need not in passed for need in needs):
            return None
        if all(passed[need] is base.passed.get(need) for need in needs):
            return base.made.get(name)
        try:
            return evaluate_stage(self.plan.steps[name], passed)
        except NOT_HERE:
            return None

    def _changed(self, name: str, changes: Changes, passed: Values) -> Array | None:
        """A stage by a wrong formula."""
        try:
            array = changes[name](self.problem, passed)
            return None if array is None else finish(self.plan.steps[name], array)
        except NOT_HERE:
            return None


def largest(array: Array) -> float:
    """The largest size of a finite entry."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def _merged(array: Array, value: Array, judged: Array) -> Array:
    """What was written, and what was computed where nothing was."""
    if array.shape != value.shape or judged.all():
        return value
    return np.where(judged, value, array)
