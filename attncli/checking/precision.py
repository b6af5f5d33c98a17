"""When a written number agrees with a computed one: the precision rule of `check`.

An entry stands for every number that rounds or is cut to it at its last written decimal. It is never read more
coarsely than two decimals, or than its matrix's finest entry if that is coarser: beside 0.4858, a 0 means 0.00.
Expressions (1/3, sqrt(2)) are exact. Absolute and relative tolerances replace all this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attncli.maths.ops import Array
from attncli.model.sheet import SheetStage

EXACT = 1e-9
"""How far, relatively, an exact expression may be from what was computed."""

WILD = 1e6
"""How many times larger than the right numbers an entry may be, to count in the noise of the arithmetic."""

BINARY = {"float64": 1e-9, "float32": 1e-5, "float16": 1e-2}
"""How far the entries of a binary file may be, relatively to the largest of their matrix, by its dtype."""

HIDDEN = -1e9
"""What people write in place of −∞: this or less counts as −∞ where −∞ is right."""


@dataclass(frozen=True)
class Rule:
    """How entries are compared: as they are written, or within ``atol + rtol·|right|`` where one is given."""

    atol: float | None = None
    rtol: float | None = None

    @property
    def is_tolerance(self) -> bool:
        return self.atol is not None or self.rtol is not None

    def words(self, answers: Iterable[Answer]) -> str:
        """The rule, as the report of a sheet with these stages says it."""
        if self.is_tolerance:
            parts = [_short(self.atol)] if self.atol else []
            parts += [f"{_short(self.rtol)} × |right|"] if self.rtol else []
            return "each entry within " + (" + ".join(parts) or "0")
        kinds = {str(answer.value.dtype) if answer.stage.binary else "" for answer in answers} or {""}
        said = ["each entry at the decimals it was written with, rounded or cut"] if "" in kinds else []
        said += [
            f"each {dtype} entry within {_short(BINARY.get(dtype, BINARY['float64']))} × the largest of its stage"
            for dtype in sorted(kinds - {""})
        ]
        return "; ".join(said)


def _short(number: float) -> str:
    """0.02 and 0.001, but 1e-5 and 1e20."""
    if 1e-3 <= number < 1e6:
        return f"{number:g}"
    mantissa, _, exponent = f"{number:e}".partition("e")
    return f"{float(mantissa):g}e{int(exponent)}"


class Answer:
    """One stage of a sheet, in the canonical axes, ready to be compared.

    ``eps``: the noise of the arithmetic, relative to the largest number here or, as ``scale``, in the right answer.
    Comparing warns of nothing: it is meant to run under ``np.errstate(all="ignore")``, as `Checker` sees to.
    """

    def __init__(self, stage: SheetStage, rule: Rule, eps: float, scale: float = 0.0) -> None:
        self.stage, self.rule = stage, rule
        self.value, self.judged, self.exact = stage.value, stage.judged, stage.exact
        self.texts = stage.texts
        self.all_judged = bool(self.judged.all())
        self.any_exact = bool(self.exact.any())
        decimal = self.judged & ~self.exact & np.isfinite(self.value)
        self.finest = int(stage.decimals[decimal].max()) if decimal.any() else 0
        self.whole = bool(decimal.any()) and self.finest == 0 and not (stage.binary or rule.is_tolerance)
        """Whether it is a matrix of whole numbers, by which those of another kind can't be judged."""
        finite = self.value[np.isfinite(self.value)]
        shown = finite[finite > HIDDEN]
        self.largest = float(np.abs(shown).max()) if shown.size else 0.0
        self.all_finite = finite.size == self.value.size
        self.hides = shown.size < finite.size
        """Whether some entry may stand for −∞; such a one says nothing about how large the others are."""
        self.noise = eps * max(min(self.largest, WILD * max(scale, 1.0)), scale)
        self.reach = min(self.largest, 10 * scale) if scale else self.largest
        """How large the numbers of a binary sheet are taken to be: one wild entry excuses no other."""

    @cached_property
    def decimals(self) -> Array:
        """The decimals at which each entry is read."""
        return np.maximum(self.stage.decimals, min(2, self.finest))

    @cached_property
    def unit(self) -> Array:
        """One unit of each entry's last decimal (0 where it is exact)."""
        if self.stage.binary or self.rule.is_tolerance:
            return np.zeros(self.value.shape)
        return np.where(self.exact, 0.0, 10.0 ** -self.decimals.astype(float))

    @cached_property
    def _limits(self) -> tuple[Array, Array, Array]:
        """How far a number may be that was rounded; how far one that was cut; and how small that one may be."""
        return self.unit / 2 + self.noise, self.unit - self.noise, np.abs(self.value) - self.noise

    @cached_property
    def may_be_half(self) -> bool:
        """Whether float16 arithmetic may have made these numbers: a text doesn't say; of a file, its numbers do."""
        return not self.stage.binary or is_half(self.value)

    def agrees(self, right: Array) -> Array:
        """For each entry, whether it stands for the right number. Entries that aren't judged agree.

        ``right`` has the shape of the answer, or a leading axis more (many candidates at once).
        """
        size = np.abs(right - self.value)
        if self.rule.is_tolerance or self.stage.binary:
            return self._or_equal(self._within(right, size), right)
        rounded, cut, least = self._limits
        agree = (size <= rounded) | ((size < cut) & (np.abs(right) >= least) & (right * self.value >= 0))
        if self.any_exact:
            agree = np.where(self.exact, size <= EXACT * np.abs(right) + self.noise, agree)
        return self._or_equal(agree, right)

    def equals(self, right: Array) -> Array:
        """For each entry, whether it is the right number itself: whole numbers read as exact ones."""
        return self._or_equal(np.abs(right - self.value) <= EXACT * np.abs(right) + self.noise, right)

    def _within(self, right: Array, size: Array) -> Array:
        if self.rule.is_tolerance:
            room = (self.rule.atol or 0.0) + (self.rule.rtol or 0.0) * np.abs(right)
        else:
            room = np.asarray(BINARY.get(str(self.value.dtype), BINARY["float64"]) * max(self.reach, 1e-300))
        return np.asarray((size <= room + self.noise) & np.isfinite(right))

    def _or_equal(self, agree: Array, right: Array) -> Array:
        """The same, with infinities and NaN compared as symbols."""
        if not self.all_finite:
            agree = agree | (self.value == right) | (np.isnan(right) & np.isnan(self.value) & self.judged)
        if self.hides:
            agree = agree | (np.isneginf(right) & (self.value <= HIDDEN))
        return np.asarray(agree if self.all_judged else agree | ~self.judged)

    def is_whole(self, right: Array) -> bool:
        """Whether the right numbers (of the judged entries) are all whole."""
        numbers = right[self.judged & np.isfinite(right)]
        return bool((np.abs(numbers - np.round(numbers)) <= self.noise).all())


def is_half(array: Array) -> bool:
    """Whether every number is one of float16 or every one is one of bfloat16, in whatever dtype they are kept.

    >>> is_half(np.array([0.25, 65504.0])), is_half(np.array([0.1], np.float32))
    (True, False)
    """
    numbers = array[np.isfinite(array)]
    with np.errstate(over="ignore"):
        if (numbers.astype(np.float16) == numbers).all():
            return True
        single = numbers.astype(np.float32)
    return bool((single == numbers).all() and not (single.view(np.uint32) & 0xFFFF).any())
