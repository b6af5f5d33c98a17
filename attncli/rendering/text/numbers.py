"""How a number is shown to a person: whole numbers whole, the rest to a few decimals, points below one another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attncli.maths.exact import Exact

DIGITS = 4
"""Decimals of what isn't whole, unless ``-d`` says otherwise."""


def decimals(asked: int | None, rounded: int | None = None) -> int:
    """How many decimals are shown: as many as are asked for, else as the numbers are rounded to, else `DIGITS`."""
    return next(count for count in (asked, rounded, DIGITS) if count is not None)


LARGEST = 1e15
"""From here on a number is shown with a power of ten; a double's neighbours lie an eighth apart and more."""


def shown(number: Any, digits: int = DIGITS, infinity: str = "∞", minus: str = "−") -> str:
    """A number as text: ``2``, ``0.4858``, ``−∞``, ``NaN``. What rounds to zero is 0.0000, never -0.0000.

    >>> [shown(x) for x in (2.0, 2.0000000000000004, -0.00001, 1e20, float("-inf"))]
    ['2', '2.0000', '0.0000', '1e+20', '−∞']
    """
    if hasattr(number, "is_plain"):
        return exact(number, digits, minus)
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return infinity if number > 0 else minus + infinity
    if abs(number) >= LARGEST:
        mantissa, _, power = f"{number:.{digits}e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{power}"
    if float(number).is_integer():
        return f"{number:.0f}" if number else "0"
    text = f"{number:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def exact(number: Exact, digits: int = DIGITS, minus: str = "−") -> str:
    """An exact number with its decimals beside it: ``√2 ≈ 1.4142``, ``1/4 = 0.25``; a whole one alone."""
    text = number.written("ascii" if minus == "-" else "unicode")
    if number.is_plain:
        return text
    decimal = number.decimal(digits)
    same = number == type(number).of(decimal)
    sign = "=" if same else "~" if minus == "-" else "≈"
    return f"{text} {sign} {(decimal.rstrip('0') if same else decimal).replace('-', minus)}"


def aligned(texts: Sequence[str]) -> list[str]:
    """The texts of a column, all of one width, with their points (or units, where there is none) below one another.

    >>> aligned(["2", "-0.5000", "NaN"])
    ['  2     ', ' -0.5000', 'NaN     ']
    """
    parts = [text.partition(".") for text in texts]
    before = max((len(whole) for whole, _, _ in parts), default=0)
    after = max((len(point + rest) for _, point, rest in parts), default=0)
    return [whole.rjust(before) + (point + rest).ljust(after) for whole, point, rest in parts]


def kept(size: int, most: int, edge: int) -> list[int | None]:
    """The indices of an axis that are shown: all up to ``most``, else ``edge`` at either end around a None.

    >>> kept(3, 5, 1), kept(6, 5, 1)
    ([0, 1, 2], [0, None, 5])
    """
    if size <= most:
        return list(range(size))
    return [*range(edge), None, *range(size - edge, size)]


def bands(widths: Sequence[int], room: int | None) -> list[range]:
    """Columns of these widths, in runs that fit into the room (each holds at least one).

    >>> bands([4, 4, 4], 8)
    [range(0, 2), range(2, 3)]
    """
    if room is None:
        return [range(len(widths))]
    starts, used = [0], 0
    for i, width in enumerate(widths):
        if used + width > room and i > starts[-1]:
            starts.append(i)
            used = 0
        used += width
    return [range(a, b) for a, b in pairwise([*starts, len(widths)])]
