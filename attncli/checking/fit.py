"""Brings a sheet's stages into the canonical axes, says what is the matter with one of the wrong shape, and reads
whole sheets in other conventions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attncli.checking.chains import Key
from attncli.checking.precision import Answer, Rule
from attncli.language.errors import AttncliError
from attncli.model.sheet import AnswerSheet, SheetStage
from attncli.stages.table import STAGES, why_absent

if TYPE_CHECKING:
    from attncli.maths.ops import Array

Reading = Callable[[SheetStage, str], SheetStage]


def swapped(array: Any) -> Any:
    """The last two axes exchanged."""
    return array.swapaxes(-1, -2) if array.ndim > 1 else array


@dataclass
class Fitted:
    """A sheet against a key: ``answers`` in the canonical axes, ``errors`` in words, and the stages of a wrong shape
    as they are (``misfits``; row convention)."""

    answers: dict[str, Answer]
    errors: dict[str, str]
    misfits: dict[str, Answer]


def fit(key: Key, sheet: AnswerSheet, rule: Rule, reading: Reading | None = None) -> Fitted:
    """Each stage of a sheet in the canonical axes, or the reason why it can't be."""
    fitted = Fitted({}, {}, {})
    for name, stage in sheet.stages.items():
        if stage.error is not None:
            fitted.errors[name] = str(stage.error)
        elif name not in key.right:
            fitted.errors[name] = _absent(key, name)
        else:
            _fit_one(fitted, key, name, stage if reading is None else reading(stage, name), rule)
    return fitted


def _absent(key: Key, name: str) -> str:
    if name not in STAGES:
        return f"there is no stage {name}; the stages are {', '.join(STAGES)}"
    return f"this problem has no {name}: {why_absent(key.problem, STAGES[name])}"


def _fit_one(fitted: Fitted, key: Key, name: str, stage: SheetStage, rule: Rule) -> None:
    columns, right = key.problem.columns, key.right[name]
    shape = right.shape if not columns else (*right.shape[:-2], right.shape[-1], right.shape[-2])
    try:
        resolved = stage.resolve(shape)
        if columns:
            resolved = resolved.mapped(swapped)
        if resolved.judged.any():  # where every entry is left open, the stage is missing
            fitted.answers[name] = Answer(resolved, rule, key.eps, key.scale[name])
    except AttncliError as error:
        inside = stage if not columns or stage.rows is not None else stage.mapped(swapped)
        answer = Answer(inside, rule, key.eps, key.scale[name])
        finding = None
        if stage.rows is None:
            fitted.misfits[name] = answer
            finding = _finding(key, name, answer)
        fitted.errors[name] = f"{error.what}; {finding}" if finding else error.what


def _finding(key: Key, name: str, answer: Answer) -> str | None:
    """What a matrix of the wrong shape is, if that can be seen."""
    right = key.right[name]
    own, target = _lean(answer.value.shape), _lean(right.shape)
    heads = right.shape[-3] if STAGES[name].per_head else 1
    if own == (*target[:-2], target[-1], target[-2]):
        is_right = bool(answer.agrees(swapped(right).reshape(answer.value.shape)).all())
        return "it is the right matrix, transposed" if is_right else "its transpose fits"
    if heads > 1 and own == target[:-3] + target[-2:]:
        return _one_for_all(answer, right)
    if heads > 1 and own == (*target[:-3], target[-2], heads * target[-1]):
        return f"the {heads} heads stand side by side"
    if heads > 1 and own == (*target[:-3], target[-2], heads, target[-1]):
        return "the axis of the heads comes first, before the rows"
    if name == "multihead" and "concat" in key.right and own == _lean(key.right["concat"].shape):
        return "that is the shape of concat: was W_O left out?"
    if name == "concat" and own == (*target[:-1], target[-1] // key.problem.num_heads):
        return "that is as wide as one head: are the heads added up or averaged, not put side by side?"
    return _too_few(own, target)


def _one_for_all(answer: Answer, right: Array) -> str:
    """What one matrix is, where there is one for each head."""
    heads = right.shape[-3]
    for r in range(heads):
        if answer.agrees(right[..., r, :, :].reshape(answer.value.shape)).all():
            return f"it is head {r + 1} of {heads} alone"
    if answer.agrees(right.mean(axis=-3).reshape(answer.value.shape)).all():
        return f"it is the mean over the {heads} heads"
    return f"it is one matrix, and there are {heads} heads"


def _too_few(own: tuple[int, ...], target: tuple[int, ...]) -> str | None:
    if len(own) != len(target) or len(own) < 2:
        return None
    off = [i for i in range(len(own)) if own[i] != target[i]]
    if len(off) != 1 or abs(own[off[0]] - target[off[0]]) != 1:
        return None
    what = {len(own) - 1: "column", len(own) - 2: "row"}.get(off[0], "matrix")
    return f"it has one {what} too {'few' if own[off[0]] < target[off[0]] else 'many'}"


def _lean(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without axes of size 1 in front of the matrix."""
    return tuple(size for size in shape[:-2] if size != 1) + shape[-2:]


# Whole sheets in other conventions


def transposed_reading(stage: SheetStage, name: str) -> SheetStage:
    """Every matrix transposed: columns for rows."""
    return stage.mapped(swapped) if stage.rows is None else stage


def heads_second_reading(stage: SheetStage, name: str) -> SheetStage:
    """Per-head stages with the axes (row, head, column)."""
    if not STAGES[name].per_head or stage.rows is not None or stage.value.ndim < 3:
        return stage
    return stage.mapped(lambda array: array.swapaxes(-2, -3))


def heads_side_by_side(key: Key) -> Reading:
    """Per-head stages as one matrix each, the heads' columns side by side."""

    def read(stage: SheetStage, name: str) -> SheetStage:
        right = key.right.get(name)
        if right is None or not STAGES[name].per_head or stage.rows is not None or right.shape[-3] == 1:
            return stage
        heads, columns = right.shape[-3], key.problem.columns

        def change(array: Any) -> Any:
            matrix = swapped(array) if columns else array
            *lead, rows, width = matrix.shape
            split = matrix.reshape(*lead, rows, heads, width // heads).swapaxes(-2, -3)
            return swapped(split) if columns else split

        wide = stage.value.shape[-2 if columns else -1] if stage.value.ndim > 1 else 0
        return stage.mapped(change) if wide == heads * right.shape[-1] else stage

    return read
