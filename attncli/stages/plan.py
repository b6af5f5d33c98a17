"""Plan: the rows of the table that one problem has, in order, each with the stages that it is made of and its op."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attncli.stages.table import Stage, needed, present

if TYPE_CHECKING:
    from attncli.stages.inputs import LayerInputs
    from attncli.stages.ops import Op


@dataclass(frozen=True)
class Step:
    """A stage of a plan: its row, the op that makes it, and the stages that it needs (none where it is given)."""

    stage: Stage
    op: Op
    needs: tuple[str, ...]
    inputs: LayerInputs

    @property
    def name(self) -> str:
        return self.stage.name

    @property
    def is_given(self) -> bool:
        return self.stage.name in self.inputs.given


@dataclass(frozen=True)
class Plan:
    """The steps of one problem, by name and in the order of computing."""

    inputs: LayerInputs
    steps: Mapping[str, Step]

    def using(self, ops: Mapping[str, Op]) -> Plan:
        """The same stages, some made by another op."""
        changed = {name: replace(step, op=ops[name]) if name in ops else step for name, step in self.steps.items()}
        return Plan(self.inputs, changed)

    def before(self, names: Iterable[str], held: Collection[str] = ()) -> list[str]:
        """These stages and all that they need, in order; nothing is needed for what is held already."""
        todo, found = list(names), set()
        while todo:
            name = todo.pop()
            if name not in found and name not in held:
                found.add(name)
                todo += self.steps[name].needs
        return [name for name in self.steps if name in found]


def plan(x: LayerInputs) -> Plan:
    """The plan of a problem: its stages, those on request included."""
    steps = {}
    for stage in present(x):
        needs = () if stage.name in x.given else needed(x, stage.name) or ()
        steps[stage.name] = Step(stage, stage.right, needs, x)
    return Plan(x, steps)
