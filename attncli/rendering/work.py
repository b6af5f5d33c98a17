"""The arithmetic of every cell of a page: a few lines each, and the cells that it was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

from attncli import notation
from attncli.cells import parse
from attncli.explain import Explainer
from attncli.rendering.labels import visible
from attncli.rendering.writeup import number
from attncli.stages import STAGES

if TYPE_CHECKING:
    from attncli.compute import Result
    from attncli.derivation import Derivation

NOISE = 1e-12
"""A float that is this near to the decimals shown of it, relatively, is taken to be them."""

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
    """A cell's arithmetic: in symbols, in numbers, and its value."""
    symbol, value = _unicode(derivation.symbol), number(derivation.value, digits)
    words = [visible(derivation.words)] if derivation.words else []
    if derivation.is_leaf:
        return [f"{symbol} = {value}", *words]
    terms = derivation.operands if derivation.op == "sum" else ()
    steps = {_written(derivation, _name): True}  # each with whether its numbers are shown whole; once, if said twice
    steps.setdefault(_written(derivation, lambda leaf: number(leaf.value, digits)), _are_whole(derivation, digits))
    if terms:
        whole = all(_is_whole(term.value, digits) for term in terms)
        steps.setdefault(" + ".join(number(term.value, digits) for term in terms), whole)
    steps.setdefault(value, _is_whole(derivation.value, digits))
    first, *rest = steps
    return [f"{symbol} = {first}", *(f"{'=' if steps[step] else '≈'} {step}" for step in rest), *words]


def _are_whole(node: Derivation, digits: int) -> bool:
    if node.is_leaf:
        return _is_whole(node.value, digits)
    return all(_are_whole(operand, digits) for operand in node.operands)


def _is_whole(value: Any, digits: int) -> bool:
    """Whether a number has no more decimals than are shown of it, but for the noise in its last bits."""
    return hasattr(value, "is_plain") or not isfinite(value) or abs(round(value, digits) - value) <= NOISE * abs(value)


_unicode = lru_cache(1 << 16)(notation.unicode)


def _name(leaf: Derivation) -> str:
    return _unicode(leaf.symbol) if leaf.symbol else number(leaf.value, 4)


def _written(node: Derivation, leaf: Callable[[Derivation], str]) -> str:
    """A tree on one line, with the parentheses that it needs."""
    if node.is_leaf:
        return leaf(node)
    parts = [_part(node, operand, leaf) for operand in node.operands]
    match node.op:
        case "sum":
            return " + ".join(parts)
        case "product":
            return " · ".join(parts)
        case "exp":
            return f"exp({parts[0]})"
        case "tanh":
            return f"tanh({parts[0]})"
        case "root":
            return f"√{parts[0]}"
        case "quotient":
            return f"{parts[0]} / {parts[1]}"
        case "difference":
            return f"{parts[0]} − {parts[1]}"
        case "rounded":
            return f"{parts[0]}, rounded to {parts[1]} decimals"
    return parts[0]


def _part(node: Derivation, operand: Derivation, leaf: Callable[[Derivation], str]) -> str:
    text = _written(operand, leaf)
    tight = node.op in ("product", "quotient", "difference", "root")
    return f"({text})" if tight and (operand.op in ("sum", "difference") or text[0] in "-−") else text
