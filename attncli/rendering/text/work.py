"""The arithmetic of every cell of a page: a few lines each, and the cells that it was made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attncli.explaining.explain import Explainer
from attncli.language import notation
from attncli.model.cells import parse
from attncli.rendering.text.arithmetic import Words, steps
from attncli.rendering.text.labels import visible
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.engine.compute import Result
    from attncli.maths.derivation import Derivation

MOST_TERMS = 40_000
"""A page holds the arithmetic of so many operands in all: some megabytes. Stages beyond are shown without theirs."""


@dataclass(frozen=True)
class Work:
    """``cells``: cell → {"lines": its arithmetic, "from": cells it was made from}; ``left_out``: what has none."""

    cells: dict[str, dict[str, list[str]]]
    left_out: str


def work(result: Result, names: Iterable[str], digits: int) -> Work:
    """The arithmetic of the cells of these names (as `Sheet.cell` gives them); inputs have none."""
    by_stage: dict[str, list[str]] = {}
    for name in names:
        by_stage.setdefault(name.partition("[")[0], []).append(name)
    cells: dict[str, dict[str, list[str]]] = {}
    room, without = MOST_TERMS, []
    for stage in [stage for stage in by_stage if stage in STAGES]:
        explainer = Explainer(result, 1)
        first = _derived(explainer, by_stage[stage][0])
        cost = len(by_stage[stage]) * (1 + len(sources(first)))
        if cost > room:
            without.append(stage)
            continue
        room -= cost
        for name in by_stage[stage]:
            derivation = _derived(explainer, name)
            cells[name] = {"lines": lines(derivation, digits), "from": sources(derivation)}
    return Work(cells, _said(without, by_stage))


def _said(without: list[str], by_stage: dict[str, list[str]]) -> str:
    if not without:
        return ""
    names = without[0] if len(without) == 1 else f"{', '.join(without[:-1])} and {without[-1]}"
    example = by_stage[without[0]][0]
    return f"The arithmetic of {names} is too much for one page; attncli explain shows it, such as that of {example}."


def _derived(explainer: Explainer, name: str) -> Derivation:
    stage = name.partition("[")[0]
    return explainer.spot(parse(name, explainer.problem, explainer.values[stage].shape))


def sources(derivation: Derivation) -> list[str]:
    """The cells of stages and inputs that a cell was made from directly, each once, in order."""
    return list(dict.fromkeys(_sources(derivation)))


def _sources(derivation: Derivation) -> Iterator[str]:
    for operand in derivation.operands:
        if operand.cell is None:
            yield from _sources(operand)
        elif operand.op != "input" or operand.cell.name not in STAGES:
            yield str(operand.cell)


def lines(derivation: Derivation, digits: int) -> list[str]:
    """A cell's arithmetic, line by line, as `explain` writes it on the screen; then what is said of it in words."""
    symbol = notation.unicode(derivation.symbol)
    found = [f"{step.sign} {step.text}" for step in steps(derivation, Words(digits))]
    words = [visible(derivation.words)] if derivation.words else []
    return [f"{symbol} {found[0]}", *found[1:], *words]
