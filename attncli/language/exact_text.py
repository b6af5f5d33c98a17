"""Exact numbers as text: as problem files read them (ascii), for the screen (unicode), and for LaTeX.

Takes sympy expressions made of fractions, roots, powers of e, π and functions such as tanh, ln, erf and sin; imports no
sympy itself.
"""

from __future__ import annotations

from typing import Any


class Ascii:
    """``exp(sqrt(2))/(2*exp(sqrt(2)/2) + exp(sqrt(2)))``: the grammar of `reading.literals`."""

    times = "*"
    infinity = "inf"
    minus = "-"
    pi, e = "pi", "e"

    def number(self, expr: Any) -> str:
        """The whole number, sum, product or fraction."""
        if expr.is_Add:
            return self.sum(expr)
        if expr.could_extract_minus_sign() and not expr.is_Add:
            return f"{self.minus}{self.tight(-expr)}"
        top, bottom = expr.as_numer_denom() if expr.is_Rational else _fraction(expr)
        if bottom != 1:
            return self.fraction(top, bottom)
        if expr.is_Mul:
            return self.product(expr)
        return self.atom(expr)

    def sum(self, expr: Any) -> str:
        text = ""
        for term in sorted(expr.as_ordered_terms(), key=_weight):
            negative = term.could_extract_minus_sign()
            sign = (f" {self.minus} " if negative else " + ") if text else (self.minus if negative else "")
            text += sign + self.number(-term if negative else term)
        return text

    def product(self, expr: Any) -> str:
        parts = [self.tight(factor) for factor in expr.as_ordered_factors()]
        text = parts[0]
        for part in parts[1:]:
            text += self.between(text, part) + part
        return text

    def between(self, before: str, after: str) -> str:
        """What stands between two factors."""
        return self.times

    def fraction(self, top: Any, bottom: Any) -> str:
        under = self.number(bottom)
        closed = bottom.is_Add or bottom.is_Mul
        return f"{self.tight(top)}/{f'({under})' if closed else under}"

    def tight(self, expr: Any) -> str:
        """As a factor: a sum in parentheses."""
        text = self.number(expr)
        return f"({text})" if expr.is_Add else text

    def atom(self, expr: Any) -> str:
        name = type(expr).__name__
        if expr.is_infinite:
            return self.infinity
        if name == "NaN":
            return "nan"
        if name == "Exp1":
            return self.e
        if name == "Pi":
            return self.pi
        if name == "exp":
            return self.exponential(expr.args[0])
        if expr.is_Pow:
            base, power = expr.as_base_exp()
            is_root = power.is_Rational and (power.p, power.q) == (1, 2)
            return self.root(base) if is_root else self.power(base, power)
        if expr.is_Function:
            return self.function({"log": "ln"}.get(name, name), expr.args[0])
        return str(expr)

    def exponential(self, power: Any) -> str:
        return f"exp({self.number(power)})"

    def root(self, radicand: Any) -> str:
        return f"sqrt({self.number(radicand)})"

    def power(self, base: Any, power: Any) -> str:
        inner, outer = self.number(base), self.number(power)
        inner = inner if base.is_Integer or base.is_Symbol else f"({inner})"
        return f"{inner}^{outer if power.is_Integer else f'({outer})'}"

    def function(self, name: str, argument: Any) -> str:
        return f"{name}({self.number(argument)})"


class Unicode(Ascii):
    """``e^√2 / (2e^(√2/2) + e^√2)``."""

    times = "·"
    infinity = "∞"
    minus = "−"
    pi = "π"

    def between(self, before: str, after: str) -> str:
        return "" if before.isdigit() and after[0] in "√e(π" else "·"

    def fraction(self, top: Any, bottom: Any) -> str:
        text = super().fraction(top, bottom)
        long = top.is_Add or bottom.is_Add
        return text if not long else f"{self.tight(top)} / {self.tight(bottom)}"

    def exponential(self, power: Any) -> str:
        text = self.number(power)
        simple = text.isdigit() or (text[0] == "√" and text[1:].isdigit())
        return f"e^{text}" if simple else f"e^({text})"

    def root(self, radicand: Any) -> str:
        text = self.number(radicand)
        return f"√{text}" if radicand.is_Integer else f"√({text})"


class Latex(Ascii):
    r"""``\frac{e^{\sqrt{2}}}{2 e^{\frac{\sqrt{2}}{2}} + e^{\sqrt{2}}}``."""

    infinity = r"\infty"
    pi = r"\pi"

    def between(self, before: str, after: str) -> str:
        return r" \cdot " if after[0].isdigit() or after.startswith(r"\frac") else " "

    def fraction(self, top: Any, bottom: Any) -> str:
        return rf"\frac{{{self.number(top)}}}{{{self.number(bottom)}}}"

    def tight(self, expr: Any) -> str:
        text = self.number(expr)
        return rf"\left({text}\right)" if expr.is_Add else text

    def exponential(self, power: Any) -> str:
        return f"e^{{{self.number(power)}}}"

    def root(self, radicand: Any) -> str:
        return rf"\sqrt{{{self.number(radicand)}}}"

    def power(self, base: Any, power: Any) -> str:
        inner = self.number(base)
        inner = inner if base.is_Integer or base.is_Symbol else rf"\left({inner}\right)"
        return f"{inner}^{{{self.number(power)}}}"

    def function(self, name: str, argument: Any) -> str:
        command = r"\operatorname{erf}" if name == "erf" else rf"\{name}"  # LaTeX knows tanh, ln, sin and cos itself
        return rf"{command}\left({self.number(argument)}\right)"


STYLES = {"ascii": Ascii(), "unicode": Unicode(), "latex": Latex()}


def _fraction(expr: Any) -> tuple[Any, Any]:
    """Numerator and denominator; an e^(-x) stays above, as people write it."""
    top = bottom = expr**0
    for factor in expr.as_ordered_factors() if expr.is_Mul else [expr]:
        if factor.is_Rational:
            top, bottom = top * factor.p, bottom * factor.q
        elif factor.is_Pow and type(factor).__name__ != "exp" and factor.exp.could_extract_minus_sign():
            bottom = bottom * factor.base ** (-factor.exp)
        else:
            top = top * factor
    return top, bottom


def _weight(term: Any) -> tuple[float, bool]:
    """Fractions first, then roots, then powers of e by their exponents."""
    exponents = [1.0] if any(type(atom).__name__ == "Exp1" for atom in term.atoms()) else []
    for part in term.find(lambda part: type(part).__name__ == "exp"):
        exponents += [float(part.args[0])] if part.args[0].is_finite else []
    return max(exponents, default=float("-inf")), not term.is_Rational
