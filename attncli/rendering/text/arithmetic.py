"""The arithmetic of a derivation, step by step: in symbols, in numbers, its parts worked out one after the other.

`steps` gives the lines that a person would write on paper; `Words` writes them for the screen, `Tex` for LaTeX.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from attncli.language import notation
from attncli.rendering.text.numbers import DIGITS, shown

if TYPE_CHECKING:
    from attncli.maths.derivation import Derivation

MOST_TERMS = 8
"""A longer sum is shortened in the middle, unless all of it is asked for; of both ends, so much is shown:"""
FIRST, LAST = 4, 2

NOISE = 1e-15
"""What is smaller is left over by floating point, and shown as zero."""


@dataclass(frozen=True)
class Step:
    """One line of a derivation: "=", or "≈" where a number in it or in the line before is rounded for showing."""

    sign: str
    text: str
    terms: tuple[str, ...] = ()
    """The text of a sum in pieces, for a line that must be broken."""


class Words:
    """How operations and numbers are written on a screen. Says by ``exact`` whether every number since the last
    ``begin()`` was shown in full, and by ``left_out`` whether a sum was ever shortened."""

    times, between, more, minus = "·", " ", "… {} more …", "−"
    unicode = True

    def __init__(self, digits: int = DIGITS, full: bool = False, eps: float = 2.3e-16) -> None:
        self.digits, self.full, self.eps = digits, full, eps
        self.exact = True
        self.left_out = False

    def begin(self) -> None:
        self.exact = True

    # Numbers and names

    def value(self, value: Any, digits: int | None = None, noise: float = NOISE) -> str:
        """A number, or a vector in parentheses; what is smaller than ``noise`` is shown as 0."""
        if isinstance(value, tuple):
            return self.vector(self._shortened([self.value(one, digits, noise) for one in value]))
        if hasattr(value, "is_plain"):
            return self.exact_number(value)
        return self._number(value, self.digits if digits is None else digits, digits is not None, noise)

    def _number(self, value: float, digits: int, keep_zeros: bool, noise: float) -> str:
        text = shown(value, digits, "inf", "-")
        if "nan" in text.lower() or "inf" in text:
            return self.special(text)
        if abs(value) > noise and not text.strip("-0.") and not keep_zeros:
            text = re.sub(r"\.?0*e", "e", f"{value:.{digits}e}")
        off = abs(float(text) - value)
        in_full = off <= max(1e-12, 8 * self.eps) * abs(value)
        self.exact = self.exact and in_full
        if off <= noise and not float(text) and not keep_zeros:
            return "0"
        if in_full and "." in text and "e" not in text and not keep_zeros:
            text = text.rstrip("0").rstrip(".")
        return self.power_of_ten(*text.split("e")) if "e" in text else text.replace("-", self.minus)

    def special(self, text: str) -> str:
        return {"inf": "∞", "-inf": "−∞"}.get(text, "NaN")

    def power_of_ten(self, mantissa: str, power: str) -> str:
        raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{mantissa.replace('-', self.minus)}·10{raised}"

    def vector(self, entries: Sequence[str]) -> str:
        return f"({', '.join(entries)})" if len(entries) > 1 else entries[0]

    def exact_number(self, number: Any) -> str:
        return str(number.written("unicode"))

    def symbol(self, text: str) -> str:
        return _unicode(text)

    # Operations

    def sum(self, terms: Sequence[str]) -> str:
        return "".join(self.signed(terms))

    def signed(self, terms: Sequence[str]) -> list[str]:
        """The terms, each with its sign before it; the long middle of them left out."""
        pieces: list[str] = []
        for term in self._shortened(terms):
            if pieces and term.startswith(self.minus):
                pieces.append(f" {self.minus} {term[len(self.minus) :]}")
            else:
                pieces.append(f" + {term}" if pieces else term)
        return pieces

    def _shortened(self, terms: Sequence[str]) -> list[str]:
        if self.full or len(terms) <= MOST_TERMS:
            return list(terms)
        self.left_out = True
        return [*terms[:FIRST], self.more.format(len(terms) - FIRST - LAST), *terms[-LAST:]]

    def product(self, factors: Sequence[str]) -> str:
        return self.times.join(factors)

    def quotient(self, top: str, bottom: str) -> str:
        above = f"({top})" if _is_compound(top) else top
        return f"{above} / {self.closed(bottom)}"

    def function(self, name: str, argument: str) -> str:
        return f"{name}({argument})"

    def root(self, argument: str) -> str:
        return f"√{argument}" if re.fullmatch(r"[\w.]+", argument) else f"√({argument})"

    def closed(self, text: str) -> str:
        """In parentheses where it is a sum, a product, a quotient or negative."""
        return f"({text})" if text.startswith(self.minus) or _is_compound(text) else text


class Plain(Words):
    """The same for terminals that can show nothing but ASCII."""

    times, minus, more = "*", "-", "... {} more ..."
    unicode = False

    def special(self, text: str) -> str:
        return text

    def power_of_ten(self, mantissa: str, power: str) -> str:
        return f"{mantissa}e{int(power)}"

    def exact_number(self, number: Any) -> str:
        return str(number.written("ascii"))

    def symbol(self, text: str) -> str:
        return notation.ascii(text).replace("α", "a")

    def root(self, argument: str) -> str:
        return f"sqrt({argument})"


class Tex(Words):
    """The same for LaTeX's mathematics mode."""

    times, between, more, minus = r" \cdot ", " ", r"\cdots\text{{ {} more }}\cdots", "-"

    def special(self, text: str) -> str:
        return {"inf": r"\infty", "-inf": r"-\infty"}.get(text, r"\text{NaN}")

    def power_of_ten(self, mantissa: str, power: str) -> str:
        return rf"{mantissa} \cdot 10^{{{int(power)}}}"

    def vector(self, entries: Sequence[str]) -> str:
        text = ", ".join(entries)
        if len(entries) == 1:
            return text
        return rf"\left({text}\right)" if r"\frac" in text else f"({text})"

    def exact_number(self, number: Any) -> str:
        return str(number.written("latex"))

    def symbol(self, text: str) -> str:
        return notation.latex(text).replace("  ", " ").strip()

    def quotient(self, top: str, bottom: str) -> str:
        return rf"\frac{{{top}}}{{{bottom}}}"

    def function(self, name: str, argument: str) -> str:
        if name == "exp":
            return f"e^{{{argument}}}"
        return rf"\{name}\left({argument}\right)" if r"\frac" in argument else rf"\{name}({argument})"

    def root(self, argument: str) -> str:
        return rf"\sqrt{{{argument}}}"

    def closed(self, text: str) -> str:
        return f"({text})" if text.startswith("-") or re.search(r" [-+] ", _without_braces(text)) else text


_unicode = lru_cache(1 << 14)(notation.unicode)


def _is_compound(text: str) -> bool:
    """Whether an operation stands in it outside any parentheses."""
    depth = 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if depth == 0 and char in " /·*":
            return True
    return False


def _without_braces(text: str) -> str:
    """LaTeX without what stands in braces or parentheses, where a sum needs no further ones."""
    depth, kept = 0, []
    for char in text:
        depth += (char in "{(") - (char in "})")
        if depth == 0:
            kept.append(char)
    return "".join(kept)


# The steps


def steps(derivation: Derivation, style: Words) -> list[Step]:
    """The lines of one derivation (of a cell, or of the outputs' row): what follows its name, line by line."""
    inner = derivation.operands[0] if derivation.op == "rounded" else derivation
    lines = list(_lines(inner, style))
    last = _final(inner, derivation, style)
    if derivation.op == "rounded":
        digits = int(derivation.operands[1].value)
        if not _same(inner.value, derivation.value):
            lines.append(last)
        style.begin()
        lines.append((style.value(derivation.value, digits), lines[-1][1] if lines else True, ()))
        lines[-1] = (lines[-1][0], _same(inner.value, derivation.value) and style.exact, ())
    else:
        lines.append(last)
    if (decimals := _decimals(derivation.value, style)) is not None:
        lines.append((decimals[0], decimals[1], ()))
    return list(_signed(lines))


Line = tuple[str, bool, tuple[str, ...]]


def _lines(tree: Derivation, style: Words) -> Iterator[Line]:
    """The derivation in symbols, then in numbers, its innermost parts worked out first."""
    if tree.is_leaf or tree.op == "hidden":
        return
    symbols = style.symbol(tree.formula) if tree.formula else _written(tree, style, _name(style))
    yield symbols, True, _pieces(tree, style, _name(style)) if not tree.formula else ()
    top = _height(tree)
    for level in range(top if tree.op != "product" else top + 1):
        style.begin()
        text = _written(tree, style, _number(style), level)
        exact = style.exact
        yield text, exact, _pieces(tree, style, _number(style), level)


def _final(tree: Derivation, whole: Derivation, style: Words) -> Line:
    style.begin()
    text = style.value(tree.value if whole is not tree else whole.value, noise=_noise(tree))
    return text, style.exact, ()


def _decimals(value: Any, style: Words) -> tuple[str, bool] | None:
    """The decimals beside an exact value that is not whole."""
    values = value if isinstance(value, tuple) else (value,)
    if all(not hasattr(one, "is_plain") or one.is_plain for one in values):
        return None
    texts = [one.written("ascii") if one.is_plain else one.decimal(style.digits) for one in values]
    same = all(one == type(one).of(text) for one, text in zip(values, texts, strict=True) if not one.is_plain)
    texts = [text.rstrip("0") if "." in text and one == type(one).of(text) else text
             for one, text in zip(values, texts, strict=True)]  # fmt: skip
    texts = [text.replace("-", style.minus) for text in texts]
    return (f"({', '.join(texts)})" if isinstance(value, tuple) else texts[0]), same


def _signed(lines: Sequence[Line]) -> Iterator[Step]:
    """Each line once, with the sign before it."""
    before, was_exact = "", True
    for text, exact, terms in lines:
        if text.replace(" ", "") != before:
            yield Step("=" if exact and was_exact else "≈", text, terms)
        before, was_exact = text.replace(" ", ""), exact


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return all(map(_same, one, other))
    return bool(abs(one - other) < 1e-12 or one == other)


Leaf = Callable[["Derivation"], str]


def _name(style: Words) -> Leaf:
    return lambda leaf: style.symbol(leaf.symbol) if leaf.symbol else style.value(leaf.value)


def _number(style: Words) -> Leaf:
    return lambda leaf: style.value(leaf.value, noise=_noise(leaf))


def _noise(tree: Derivation) -> float:
    """What is left over by floating point in a node; powers of e and their shares are as small as they are."""
    shares = tree.op == "quotient" and tree.operands[0].op == "exp"
    weights = tree.cell is not None and tree.cell.name == "weights"
    return 0.0 if tree.op == "exp" or shares or weights else NOISE


def _is_unit(tree: Derivation) -> bool:
    """What is written as one name or number: a leaf, or a cell that has a derivation of its own."""
    return tree.is_leaf or tree.cell is not None


def _height(tree: Derivation, outermost: bool = True) -> int:
    """How often something must be worked out until the value is there; a product is worked out with its sum."""
    if not outermost and _is_unit(tree):
        return 0
    highest = max(_height(operand, False) for operand in tree.operands)
    return highest if tree.op in ("product", "kept", "pick") else highest + 1


def _written(tree: Derivation, style: Words, leaf: Leaf, level: int = -1, outermost: bool = True) -> str:
    """The tree on one line; what is no higher than ``level`` as its value."""
    if not outermost and _is_unit(tree):
        return leaf(tree)
    if not outermost and level >= 0 and tree.op != "product" and _height(tree, False) <= level:
        return style.value(tree.value, noise=_noise(tree))
    if tree.op == "exp" and level >= 0 and hasattr(tree.value, "is_plain") and not outermost:
        return style.value(tree.value)
    parts = [_written(operand, style, leaf, level, False) for operand in tree.operands]
    match tree.op:
        case "sum":
            return style.sum(parts)
        case "product":
            return _product(style, tree, parts, symbols=level < 0)
        case "quotient":
            return style.quotient(*parts)
        case "difference":
            return f"{parts[0]} {style.minus} {style.closed(parts[1])}"
        case "exp" | "tanh":
            return style.function(tree.op, parts[0])
        case "root":
            return style.root(parts[0])
    return parts[0]


def _product(style: Words, tree: Derivation, parts: Sequence[str], symbols: bool) -> str:
    """Factors with a dot between numbers, and between names that are words; names of one letter stand side by side."""
    if symbols and not any(operand.symbol.startswith('"') for operand in tree.operands):
        return style.between.join(parts)
    return style.product([style.closed(part) if not _is_vector(tree.operands[i]) else part
                          for i, part in enumerate(parts)])  # fmt: skip


def _is_vector(tree: Derivation) -> bool:
    return isinstance(tree.value, tuple) and len(tree.value) > 1


def _pieces(tree: Derivation, style: Words, leaf: Leaf, level: int = -1) -> tuple[str, ...]:
    if tree.op != "sum":
        return ()
    return tuple(style.signed([_written(operand, style, leaf, level, False) for operand in tree.operands]))
