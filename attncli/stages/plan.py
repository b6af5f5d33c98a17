"""Plan: the rows of the table that one problem has, in order, each with the stages that it is made of and its op."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attncli.stages.table import STAGES, UNMADE, Stage

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
