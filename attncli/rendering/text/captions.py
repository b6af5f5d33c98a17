"""What stands over a run and over each matrix: what is in force, the formula, the shape. Plain sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attncli.language import notation
from attncli.rendering.text.numbers import shown
from attncli.stages.table import Stage, is_present

if TYPE_CHECKING:
    from attncli.model.problem import Problem
    from attncli.rendering.views import Matrix

_AXES = {"n": "queries", "m": "keys"}
_MASK_WORDS = {"keep": "keep (1 = may attend)", "block": "block (1 = may not)", "add": "add (added to the scores)"}


def in_force(problem: Problem) -> list[str]:
    """What a problem's numbers were computed with, a phrase each: scale, mask, layout, dtype, and what is unusual."""
    phrases = [_scale(problem), _mask(problem), f"layout: {problem.layout}", _arithmetic(problem)]
    if problem.score != "scaled_dot":
        phrases.insert(0, f"score: {problem.score}")
    if problem.softcap is not None:
        phrases.insert(1, f"softcap: {shown(float(problem.softcap))}")
    if problem.num_kv_heads < problem.num_heads:
        phrases.append(f"heads: {grouping(problem)}")
    if problem.weight_layout != ("out_in" if problem.columns else "in_out"):
        phrases.append(f"weight_layout: {problem.weight_layout}")
    if problem.round is not None:
        phrases.append(f"rounded on the way: {problem.round_in_words()}")
    if problem.past:
        phrases.append(f"{problem.past} cached key{'' if problem.past == 1 else 's'} before the others")
    if problem.given:
        phrases.append(f"starts at {', '.join(problem.given)}")
    return [phrase for phrase in phrases if phrase]


def _arithmetic(problem: Problem) -> str:
    return "exact numbers" if problem.exact else problem.dtype.name


def _scale(problem: Problem) -> str:
    if not is_present(problem, "scaled_scores") or "scaled_scores" in problem.given:
        return "" if "weights" in problem.given or "outputs" in problem.given else "scale: none"
    if problem.scale is not None:
        return f"scale: {float(problem.scale):.6g} (given)"
    assert problem.d_k is not None
    return f"scale: 1/√d_k = {shown(problem.d_k**-0.5)}"


def _mask(problem: Problem) -> str:
    if problem.mask is None:
        return "mask: none"
    words = ", ".join(_MASK_WORDS.get(part, part) for part in problem.mask.parts)
    fill = "" if problem.mask_fill is None else f", filled with {problem.mask_fill:g}"
    return f"mask: {words}{fill}"


def grouping(problem: Problem) -> str:
    """Which query heads use which key/value head.

    "query heads 1, 2 use key/value head 1; 3, 4 use 2"
    """
    size = problem.num_heads // problem.num_kv_heads
    groups = [f"{_members(s, size)} {'use' if size > 1 else 'uses'} {s}" for s in range(1, problem.num_kv_heads + 1)]
    first = groups[0].replace(" use 1", " use key/value head 1").replace(" uses 1", " uses key/value head 1")
    return f"query heads {'; '.join([first, *groups[1:]])}"


def _members(s: int, size: int) -> str:
    heads = range((s - 1) * size + 1, s * size + 1)
    return ", ".join(map(str, heads)) if size <= 4 else f"{heads[0]} to {heads[-1]}"


def place(problem: Problem, stage: Stage, matrix: Matrix) -> str:
    """Which of a stage's matrices this is: "head 1 of 2, batch entry 1 of 3"; empty where there is only one."""
    parts = []
    kv = stage.axes[0] == "g"
    heads = problem.num_kv_heads if kv else problem.num_heads
    if matrix.head is not None and problem.num_heads > 1:
        grouped = kv and heads < problem.num_heads
        parts.append(f"{'key/value head' if grouped else 'head'} {matrix.head} of {heads}")
        if grouped:
            parts.append(f"for query heads {_members(matrix.head, problem.num_heads // heads)}")
    if matrix.batch:
        sizes = problem.batch[len(problem.batch) - len(matrix.batch) :]
        numbers, total = ",".join(map(str, matrix.batch)), ",".join(map(str, sizes))
        parts.append(f"batch entry {numbers} of {total}")
    return ", ".join(parts)


def equation(problem: Problem, stage: Stage, head: int | None) -> str:
    """A stage's symbol and formula in `notation`, with the head's number in place of r: "A^(1) = softmax(S~^(1))"."""
    symbol, formula = stage.symbol_for(problem), stage.formula_for(problem)
    if formula == "given":
        text = f'{symbol} "(given)"'.strip()
    elif not symbol or symbol.split("(")[0] == formula.split("(")[0]:
        text = formula
    else:
        text = f"{symbol} = {formula}"
    return _numbered(text, problem, stage, head)


def _numbered(text: str, problem: Problem, stage: Stage, head: int | None) -> str:
    if head is None or problem.num_heads == 1:
        return text
    group = head if stage.axes[0] == "g" else -(-head * problem.num_kv_heads // problem.num_heads)
    text = text.replace("^(r)", f"^({head})").replace("_r^", f"_{head}^")
    return text.replace("^(s)", f"^({group})").replace("_s^", f"_{group}^")


def shape(problem: Problem, stage: Stage, size: tuple[int, ...]) -> str:
    """A matrix's shape with the names of its axes, and what its rows and columns are.

    "3 × 2 (n × d_k), rows: queries"
    """
    names = stage.shape_names(problem)
    text = f"{size[0]} × {size[1]} ({names[0]} × {names[1]})"
    for word, name in zip(("rows", "columns"), names, strict=True):
        if name in _AXES:
            text += f", {word}: {_AXES[name]}"
    return text


def written(formula: str, symbols: bool) -> str:
    """A formula of `notation` for the screen: with Unicode's symbols, or in ASCII."""
    return notation.unicode(formula) if symbols else notation.ascii(formula)
