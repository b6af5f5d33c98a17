"""evaluate: the one way to a stage. Computing, explaining, checking, the mistakes and exact numbers all take it.

Each stage is its op's array of the values before it, and then finished: written as a mathematician would (exact
numbers), rounded where that is asked for, between the cached rows before it and the further ones after it, with the
problem's batch axes. What is put in a stage's place goes through the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from attncli.maths import ops

if TYPE_CHECKING:
    from attncli.maths.ops import Array
    from attncli.stages.inputs import LayerInputs
    from attncli.stages.ops import Values
    from attncli.stages.plan import Plan, Step


def evaluate(
    plan: Plan, held: Mapping[str, Array] | None = None, only: Iterable[str] | None = None
) -> dict[str, Array]:
    """Every stage of a plan, or those of ``only`` and what they need, in canonical axes.

    ``held``: arrays that stand in place of a stage's own, finished as they are; they may have further leading axes (a
    sheet shaken many times), which what follows from them then has too.
    """
    values: dict[str, Array] = dict(held or {})
    for name, made in evaluated(plan, held or {}, plan.steps if only is None else only):
        values[name] = made[name]
    return values


def evaluated(
    plan: Plan, held: Mapping[str, Array], only: Iterable[str], keep: Collection[str] | None = None
) -> Iterator[tuple[str, dict[str, Array]]]:
    """The same one after the other: each name with the values so far. With ``keep``, what is neither in it nor needed
    any more is let go.
    """
    order = plan.before(only, held)
    values: dict[str, Array] = dict(held)
    for done, name in enumerate(order, 1):
        values[name] = stage(plan.steps[name], values)
        yield name, values
        if keep is not None:
            still = {need for later in order[done:] for need in plan.steps[later].needs}
            for gone in [kept for kept in values if kept not in still and kept not in keep]:
                del values[gone]


def stage(step: Step, values: Values) -> Array:
    """One stage from the values of those that it needs: given, or made by its op, and finished."""
    x = step.inputs
    if step.is_given:
        return finish(step, x.given[step.name])
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return finish(step, step.op.forward(x, {need: values[need] for need in step.needs}))


def finish(step: Step, array: Array) -> Array:
    """What a stage's array is once it is made, rightly or wrongly: (batch.., its axes), rounded, with cached rows."""
    x, row = step.inputs, step.stage
    if x.exact:
        array = ops.tidied(array)
    decimals = x.decimals(row.name)
    if decimals is not None and not step.is_given:
        array = ops.rounded(array, decimals, x.rounding)
    if row.cached:
        array = with_cache(x, row.name, array)
    own = array.shape[-3:] if row.per_head else array.shape[-2:]
    lead = array.shape[: array.ndim - len(own)]
    if lead == x.batch:
        return array
    return np.broadcast_to(array, (*np.broadcast_shapes(x.batch, lead), *own))


def with_cache(x: LayerInputs, role: str, array: Array) -> Array:
    """K or V with the cached rows before it and the extra ones after it.

    array (batch.., g, m_new, d)  ->  (batch.., g, m, d)
    """
    parts = [x.parts.get(f"past_{role}"), array, x.parts.get(f"extra_{role}")]
    there = [part for part in parts if part is not None]
    if len(there) == 1:
        return array
    lead = np.broadcast_shapes(*(part.shape[:-2] for part in there))
    return np.concatenate([np.broadcast_to(part, (*lead, *part.shape[-2:])) for part in there], axis=-2)
