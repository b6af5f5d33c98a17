"""Exact numbers: fractions stay fractions, √2 and e^√2 stay symbols. Needs sympy (the extra ``exact``).

`model.exact` makes the problem whose arrays hold `Exact` numbers; `compute` and `explain` then run as they do for
floats. A decimal such as 0.1 is taken as 1/10, and 1/3 or sqrt(2) as written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.language import literals
from attncli.language.errors import AttncliError
from attncli.language.exact_text import STYLES

if TYPE_CHECKING:
    pass

try:
    import sympy
except ImportError:
    raise AttncliError("--exact needs sympy, which is not installed", hint="pip install 'attncli[exact]'") from None


class Exact:
    """A number as a sympy expression, with the arithmetic that numpy asks of the entries of an object array.

    >>> root = Exact.of(2).sqrt()
    >>> str(root / 2), f"{root:.4f}", float(root * root)
    ('sqrt(2)/2', '1.4142', 2.0)
    """

    __slots__ = ("expr",)

    def __init__(self, expr: Any) -> None:
        self.expr = expr

    @classmethod
    def of(cls, value: Any) -> Exact:
        """A number as it is written: 0.1 is 1/10; an infinity is one."""
        if isinstance(value, Exact):
            return value
        if isinstance(value, (bool, int, np.integer)):
            return cls(sympy.Integer(int(value)))
        if isinstance(value, str):
            return parsed(value)
        number = float(value)
        if math.isnan(number):
            return cls(sympy.nan)
        if math.isinf(number):
            return cls(sympy.oo if number > 0 else -sympy.oo)
        return cls(sympy.Rational(str(value)))

    def tidy(self) -> Exact:
        """The same number as a mathematician would write it."""
        return Exact(tidied(self.expr))

    def exp(self) -> Exact:
        return Exact(sympy.exp(self.expr))

    def tanh(self) -> Exact:
        """tanh; of ln x it is (x² − 1)/(x² + 1)."""
        power = sympy.exp(2 * self.expr)
        return Exact((power - 1) / (power + 1) if power.is_Rational else sympy.tanh(self.expr))

    def sqrt(self) -> Exact:
        return Exact(sympy.sqrt(self.expr))

    def log(self) -> Exact:
        """ln; of 0 it is −∞, as NumPy has it."""
        return Exact(sympy.log(self.expr) if self.expr != 0 else -sympy.oo)

    def erf(self) -> Exact:
        return Exact(sympy.erf(self.expr))

    def sin(self) -> Exact:
        return Exact(sympy.sin(self.expr))

    def cos(self) -> Exact:
        return Exact(sympy.cos(self.expr))

    def __add__(self, other: Any) -> Any:
        return _combined(self, other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return _combined(self, other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return _combined(self, other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return _combined(self, other, lambda a, b: a * b)

    def __truediv__(self, other: Any) -> Any:
        return _combined(self, other, lambda a, b: a / b)

    def __rtruediv__(self, other: Any) -> Any:
        return _combined(self, other, lambda a, b: b / a)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Exact:
        return Exact(-self.expr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Exact, int, float)) and bool(self.expr == Exact.of(other).expr)

    def __hash__(self) -> int:
        return hash(self.expr)

    def __lt__(self, other: Any) -> bool:
        return float(self) < float(other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= float(other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > float(other)

    def __float__(self) -> float:
        return _to_float(self.expr)

    def __abs__(self) -> Exact:
        return Exact(abs(self.expr))

    @property
    def is_plain(self) -> bool:
        """Whether it is a whole number (or an infinity), whose decimals say nothing more."""
        return bool(self.expr.is_Integer) or self.expr in (sympy.oo, -sympy.oo, sympy.nan)

    def written(self, style: str = "ascii") -> str:
        """The number in a style of `exact_text`: ascii (which problem files read), unicode, or latex."""
        return STYLES[style].number(self.expr)

    def decimal(self, digits: int) -> str:
        """The number to so many decimals, each of them right."""
        return decimal(self.expr, digits)

    def item(self) -> Exact:
        """Itself, as a numpy number gives a Python one."""
        return self

    def __str__(self) -> str:
        return self.written()

    def __repr__(self) -> str:
        return f"Exact({self.written()})"

    def __format__(self, form: str) -> str:
        if form.startswith(".") and form.endswith("f"):
            return self.decimal(int(form[1:-1]))
        return format(float(self), form) if form else str(self)


def _combined(a: Exact, b: Any, operation: Callable[[Any, Any], Any]) -> Any:
    if isinstance(b, np.ndarray):
        return NotImplemented  # numpy then goes through the array's entries
    return Exact(operation(a.expr, Exact.of(b).expr))


class _Symbols:
    """The arithmetic in which `literals` evaluates a number as it was written."""

    def number(self, text: str) -> Any:
        return sympy.Rational(text)

    def neg(self, a: Any) -> Any:
        return -a

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def sub(self, a: Any, b: Any) -> Any:
        return a - b

    def mul(self, a: Any, b: Any) -> Any:
        return a * b

    def div(self, a: Any, b: Any) -> Any:
        return a / b

    def pow(self, a: Any, b: Any) -> Any:
        return a**b

    def sqrt(self, a: Any) -> Any:
        return sympy.sqrt(a)

    def exp(self, a: Any) -> Any:
        return sympy.exp(a)

    def ln(self, a: Any) -> Any:
        return sympy.log(a)

    def pi(self) -> Any:
        return sympy.pi

    def e(self) -> Any:
        return sympy.E


def parsed(text: str) -> Exact:
    """A number as written in a problem file, exactly: ``0.1``, ``1/3``, ``sqrt(2)/2``.

    >>> str(parsed("sqrt(8) + 0.5"))
    '1/2 + 2*sqrt(2)'
    """
    value = literals.parse(text).value
    if not math.isfinite(value):
        return Exact.of(value)
    return Exact(tidied(literals.evaluate(text, _Symbols())))


# How a mathematician would write it


@lru_cache(1 << 14)
def tidied(expr: Any) -> Any:
    """Roots out of denominators, products multiplied out, one fraction for all terms over one denominator."""
    if expr.is_Rational or expr.is_infinite or expr is sympy.nan:
        return expr
    if not _transcendental(expr):
        return sympy.radsimp(_expanded(expr))
    over: dict[Any, list[Any]] = {}
    for term in sympy.Add.make_args(expr):
        top, bottom = sympy.fraction(term)
        over.setdefault(bottom, []).append(top)
    return sympy.Add(*(_fraction(sympy.Add(*tops), bottom) for bottom, tops in over.items()))


def _fraction(top: Any, bottom: Any) -> Any:
    if bottom.is_Rational:
        return _expanded(top) / bottom
    return sympy.factor_terms(_expanded(top)) / sympy.factor_terms(bottom)


def _transcendental(expr: Any) -> bool:
    return bool(expr.has(sympy.Function, sympy.E, sympy.pi))


def _expanded(expr: Any) -> Any:
    return sympy.expand(expr, power_exp=False, power_base=False, log=False)


# Decimals


@lru_cache(1 << 14)
def _to_float(expr: Any) -> float:
    if expr is sympy.nan:
        return math.nan
    return float(expr.evalf(40, maxn=4000))


def decimal(expr: Any, digits: int) -> str:
    """An expression to so many decimals, rounded from enough of its digits that each one printed is right."""
    if expr.is_infinite or expr is sympy.nan:
        return str(_to_float(expr))
    if expr.is_Rational:
        return _quotient(int(expr.p), int(expr.q), digits)
    step = Decimal(1).scaleb(-digits)
    whole = max(0, math.ceil(math.log10(abs(_to_float(expr)) or 1))) + 1
    with localcontext() as context:
        context.prec = 2000
        for precision in (digits + 30, digits + 100, digits + 400):
            value = Decimal(str(expr.evalf(whole + precision, maxn=20_000)))
            slack = Decimal(1).scaleb(10 - precision)
            low, high = ((value + side).quantize(step, ROUND_HALF_EVEN) for side in (-slack, slack))
            if low == high:
                break
        rounded = value.quantize(step, ROUND_HALF_EVEN)
        return f"{rounded if rounded else abs(rounded):f}"


def _quotient(top: int, bottom: int, digits: int) -> str:
    """A fraction to so many decimals, ties to even, by whole numbers alone."""
    scaled, rest = divmod(abs(top) * 10**digits, bottom)
    if 2 * rest > bottom or (2 * rest == bottom and scaled % 2):
        scaled += 1
    text = str(scaled).rjust(digits + 1, "0")
    sign = "-" if top < 0 and scaled else ""
    return sign + (f"{text[:-digits]}.{text[-digits:]}" if digits else text)
