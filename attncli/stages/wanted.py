"""Which stages are asked for, and what is said where a problem doesn't have one of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from attncli.language.errors import AttncliError
from attncli.stages.table import STAGES, is_present, present, why_absent

if TYPE_CHECKING:
    from attncli.stages.inputs import LayerInputs


def wanted_stages(problem: LayerInputs, stages: Iterable[str] | None) -> list[str]:
    """The names that are asked for, in the table's order; raises where one is unknown or absent."""
    if stages is None:
        return [stage.name for stage in present(problem) if not stage.on_request]
    names = list(stages)
    for name in names:
        if name not in STAGES:
            raise unknown_stage(name)
        if not is_present(problem, name):
            raise AttncliError(f"this problem has no {name}: {why_absent(problem, STAGES[name])}")
    return [name for name in STAGES if name in names]


def unknown_stage(name: str) -> AttncliError:
    """The error for a name that is no stage, with the one that is meant."""
    from attncli.stages.meant import stage_meant

    meant, known = stage_meant(name), f"The stages are {', '.join(STAGES)}."
    return AttncliError(f"unknown stage {name!r}", hint=(f"Did you mean {meant}?", known) if meant else known)
