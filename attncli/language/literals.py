"""Numbers as people write them: 0.25, 1e-3, 1/3, sqrt(2)/2, 2*sqrt(3), exp(-1), -inf. A closed grammar, never `eval`.

    number  = ["+" | "-"] ("inf" | "nan") | sum
    sum     = product (("+" | "-") product)*
    product = sign (("*" | "/") sign)*
    sign    = ("+" | "-") sign | power
    power   = atom ["^" sign]                       2^3^2 is 2^(3^2); ** may stand for ^
    atom    = DECIMAL | "pi" | "e" | ("sqrt" | "exp" | "ln") "(" sum ")" | "(" sum ")"

Length, depth and exponents are bounded, so that no text takes long to evaluate, exactly or in floating point.
"""

from __future__ import annotations

import math
import re
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar

from attncli.language.errors import AttncliError

MAX_LENGTH = 200
MAX_DEPTH = 20
MAX_DEGREE = 1000
"""The largest exponent, nested ones multiplied."""

DECIMAL = r"(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
_PLAIN = re.compile(rf"[-+]?{DECIMAL}")
_TOKEN = re.compile(rf"\s*+(?:(?P<number>{DECIMAL})|(?P<word>[A-Za-z_]\w*+)|(?P<sign>\*\*|[-+*/^()]))")
_SPECIAL = re.compile(r"([-+]?)(?:\.?(inf|Inf|INF)|(?:[iI]nfinity)|(∞))")
_NAN = re.compile(r"\.?(?:nan|NaN|NAN)")
FUNCTIONS = ("sqrt", "exp", "ln")
GRAMMAR_HINT = "A number is written 0.25, 1e-3, 1/3, sqrt(2)/2, 2*sqrt(3), exp(-1), ln(2), 2^3, pi, e or -inf."


class Number(NamedTuple):
    """A number and how it was written.

    ``decimals`` counts the digits after the point down to the last one written (``2.50`` -> 2, ``1.2e-3`` -> 4,
    ``1e2`` -> 0). ``exact`` tells an expression such as ``1/3`` from a decimal, which may be a rounded one.
    """

    value: float
    text: str
    decimals: int
    exact: bool


T = TypeVar("T")


class Arithmetic(Protocol[T]):
    """What evaluates an expression: floating point here, symbols in the exact mode. ``text`` is an unsigned decimal."""

    def number(self, text: str) -> T: ...
    def neg(self, a: T) -> T: ...
    def add(self, a: T, b: T) -> T: ...
    def sub(self, a: T, b: T) -> T: ...
    def mul(self, a: T, b: T) -> T: ...
    def div(self, a: T, b: T) -> T: ...
    def pow(self, a: T, b: T) -> T: ...
    def sqrt(self, a: T) -> T: ...
    def exp(self, a: T) -> T: ...
    def ln(self, a: T) -> T: ...
    def pi(self) -> T: ...
    def e(self) -> T: ...


def parse(text: str) -> Number:
    """The number that ``text`` writes; AttncliError says what is wrong with it otherwise.

    >>> parse("0.50")
    Number(value=0.5, text='0.50', decimals=2, exact=False)
    >>> parse("1/4").exact
    True
    """
    written = text.strip()
    clean = _ascii(written)
    if len(clean) <= MAX_LENGTH and _PLAIN.fullmatch(clean):
        return Number(_decimal(clean), written, decimals(clean), False)
    special = _special(clean)
    if special is not None:
        return Number(special, written, 0, False)
    value, _ = _evaluate(written, clean, _Floats())
    return Number(value, written, 0, True)


def decimals(text: str) -> int:
    """Digits after the point down to the last written one, of a plain decimal: ``2.50`` -> 2, ``1.2e-3`` -> 4."""
    mantissa, _, exponent = text.lower().partition("e")
    return min(max(0, len(mantissa.partition(".")[2]) - int(exponent or 0)), 2 * MAX_LENGTH)


def how_written(text: str) -> tuple[int, bool]:
    """decimals and exact, as `parse` has them, of a text that is known to be a number."""
    clean = _ascii(text.strip())
    if _PLAIN.fullmatch(clean):
        return decimals(clean), False
    return 0, _special(clean) is None


def evaluate(text: str, arithmetic: Arithmetic[T]) -> T:
    """``text`` in another arithmetic, after `parse` found that it is a finite number within bounds.

    Decimals come to ``arithmetic.number`` as written (``0.1``), so that it may take them as the fraction 1/10.
    Raises AttncliError for ``inf`` and ``nan``, which have no such value.
    """
    number = parse(text)
    if not math.isfinite(number.value):
        raise AttncliError(f"{number.text} has no exact value")
    return _evaluate(number.text, _ascii(number.text), arithmetic)


def _ascii(text: str) -> str:
    """Minus signs as PDFs have them (U+2212) as ASCII; nothing else is guessed."""
    return text.replace("−", "-")


def _special(text: str) -> float | None:
    if _NAN.fullmatch(text):
        return math.nan
    match = _SPECIAL.fullmatch(text)
    if match is None:
        return None
    return -math.inf if match[1] == "-" else math.inf


def _decimal(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise AttncliError(f"{text} is too large for a number", hint="The largest is about 1.8e308.")
    if value == 0 and re.match(r"[-+.0]*[1-9]", text):
        raise AttncliError(f"{text} is too small for a number", hint="The smallest is about 5e-324.")
    return value


def _evaluate(written: str, clean: str, arithmetic: Arithmetic[T]) -> T:
    _refuse_by_name(written, clean)
    return _Parser(written, clean, arithmetic).whole()


class _Floats:
    """Floating point; beside each value its degree, the product of the exponents it went through."""

    def number(self, text: str) -> tuple[float, float]:
        return _decimal(text), 1

    def neg(self, a: tuple[float, float]) -> tuple[float, float]:
        return -a[0], a[1]

    def add(self, a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
        return a[0] + b[0], max(a[1], b[1])

    def sub(self, a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
        return a[0] - b[0], max(a[1], b[1])

    def mul(self, a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
        return a[0] * b[0], max(a[1], b[1])

    def div(self, a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
        if b[0] == 0:
            raise AttncliError("division by zero")
        return a[0] / b[0], max(a[1], b[1])

    def pow(self, a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
        degree = a[1] * max(1.0, abs(b[0]))
        if degree > MAX_DEGREE or b[1] > MAX_DEGREE:
            raise AttncliError(f"the exponent is too large (at most {MAX_DEGREE})")
        if a[0] == 0 and b[0] < 0:
            raise AttncliError("division by zero")
        if a[0] < 0 and b[0] != int(b[0]):
            raise AttncliError("a fractional power of a negative number is not a real number")
        return float(a[0] ** b[0]), degree

    def sqrt(self, a: tuple[float, float]) -> tuple[float, float]:
        if a[0] < 0:
            raise AttncliError("the square root of a negative number is not a real number")
        return math.sqrt(a[0]), a[1]

    def exp(self, a: tuple[float, float]) -> tuple[float, float]:
        return math.exp(a[0]), a[1]

    def ln(self, a: tuple[float, float]) -> tuple[float, float]:
        if a[0] <= 0:
            raise AttncliError("ln is defined for positive numbers only")
        return math.log(a[0]), a[1]

    def pi(self) -> tuple[float, float]:
        return math.pi, 1

    def e(self) -> tuple[float, float]:
        return math.e, 1


class _Parser(Generic[T]):
    """Recursive descent over the grammar above; each method is one of its lines."""

    def __init__(self, written: str, clean: str, arithmetic: Arithmetic[T]) -> None:
        self.written = written
        self.text = clean
        self.at = 0
        self.depth = 0
        self.arithmetic = arithmetic

    def whole(self) -> T:
        try:
            value = self.sum()
            if self.text[self.at :].strip():
                self.fail()
        except AttncliError as error:
            shown = repr(self.written)
            what = error.what if error.what.startswith(shown) else f"{shown}: {error.what}"
            raise AttncliError(what, hint=error.hint) from None
        except (OverflowError, ZeroDivisionError):
            raise AttncliError(f"{self.written!r} is too large for a number") from None
        if isinstance(value, tuple) and not math.isfinite(value[0]):
            raise AttncliError(f"{self.written!r} is too large for a number")
        return value

    def take(self, *signs: str) -> str | None:
        """Move past the next token if it is one of ``signs``."""
        match = _TOKEN.match(self.text, self.at)
        if match is None or match[0].strip() not in signs:
            return None
        self.at = match.end()
        return match[0].strip()

    def fail(self) -> NoReturn:
        rest = self.text[self.at :].strip()
        if not rest:
            raise AttncliError("the expression stops too early", hint=GRAMMAR_HINT)
        if rest[0] == ")":
            raise AttncliError("a ) without its (")
        before = self.text[: self.at].strip()
        if before and re.match(r"\.\d", rest):
            raise AttncliError("two points in one number")
        if before and re.match(r"[\w(.]", rest):
            if re.match(r"\s", self.text[self.at :]) and re.match(r"[-+]?[\d.]", rest):
                raise AttncliError("two numbers where one is expected", hint="Put a comma between them.")
            raise AttncliError(
                f"what does {rest!r} do after {before!r}?", hint=f"A product needs its sign: {before}*{rest}"
            )
        raise AttncliError(f"{rest!r} is not understood", hint=GRAMMAR_HINT)

    def sum(self) -> T:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise AttncliError(f"nested too deeply (at most {MAX_DEPTH})")
        value = self.product()
        while sign := self.take("+", "-"):
            if re.search(r"\s[-+]$", self.text[: self.at]) and re.match(r"\S", self.text[self.at :]):
                raise AttncliError("two numbers where one is expected", hint="Put a comma between them.")
            other = self.product()
            value = self.arithmetic.add(value, other) if sign == "+" else self.arithmetic.sub(value, other)
        self.depth -= 1
        return value

    def product(self) -> T:
        value = self.sign()
        while sign := self.take("*", "/"):
            other = self.sign()
            value = self.arithmetic.mul(value, other) if sign == "*" else self.arithmetic.div(value, other)
        return value

    def sign(self) -> T:
        negative = False
        while sign := self.take("+", "-"):
            negative ^= sign == "-"
        value = self.power()
        return self.arithmetic.neg(value) if negative else value

    def power(self) -> T:
        base = self.atom()
        if not self.take("^", "**"):
            return base
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise AttncliError(f"nested too deeply (at most {MAX_DEPTH})")
        value = self.arithmetic.pow(base, self.sign())
        self.depth -= 1
        return value

    def atom(self) -> T:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            self.fail()
        if match["number"]:
            self.at = match.end()
            return self.arithmetic.number(match["number"])
        if self.take("("):
            return self.closed(self.sum())
        if self.take("pi"):
            return self.arithmetic.pi()
        if self.take("e"):
            return self.arithmetic.e()
        name = self.take(*FUNCTIONS)
        if name is None or not self.take("("):
            if match["word"]:
                self.unknown_word(match["word"])
            self.fail()
        function: Any = getattr(self.arithmetic, name)
        value: T = function(self.closed(self.sum()))
        return value

    def closed(self, value: T) -> T:
        if not self.take(")"):
            if not self.text[self.at :].strip():
                raise AttncliError("a ( is never closed")
            self.fail()
        return value

    def unknown_word(self, word: str) -> NoReturn:
        if word in FUNCTIONS:
            raise AttncliError(f"{word} needs parentheses", hint=f"Write {word}(2).")
        if word.lower().startswith("log"):
            raise AttncliError(f"{word}: to which base?", hint="Write ln(x), or ln(x)/ln(2).")
        if word.lower() in ("inf", "infinity", "nan"):
            raise AttncliError(f"{word} must stand alone")
        raise AttncliError(f"{word!r} is not a number", hint=GRAMMAR_HINT)


def _refuse_by_name(written: str, clean: str) -> None:
    """Raise for what looks like a number to somebody, with the way to write it here."""
    if not clean:
        raise AttncliError("an entry is empty", hint="Every entry must be a number.")
    if len(clean) > MAX_LENGTH:
        raise AttncliError(f"a number of {len(clean)} characters", hint=f"At most {MAX_LENGTH} are read.")
    shown = repr(written)
    if re.fullmatch(r"[-+]?[0-9_.]+", clean) and "_" in clean and re.search(r"\d_\d", clean):
        raise AttncliError(f"{shown}: underscores in a number", hint=f"Write {clean.replace('_', '')}.")
    if re.match(r"[-+]?0[xob]", clean, re.IGNORECASE):
        raise AttncliError(f"{shown}: only decimal numbers are read", hint=_decimal_hint(clean))
    if re.fullmatch(r"[-+]?\d+(:\d+)+(\.\d+)?", clean):
        raise AttncliError(
            f"{shown}: a colon in a number", hint="YAML might take it for hours and minutes. Is a / or a comma meant?"
        )
    if re.fullmatch(r"[-+]?\d+,\d+", clean):
        raise AttncliError(f"{shown}: a decimal comma", hint=f"Write {clean.replace(',', '.')}.")
    if clean.endswith("%"):
        raise AttncliError(f"{shown}: a percentage", hint=f"Write {clean[:-1].strip()}/100.")
    if clean.lower() in ("true", "false", "yes", "no", "on", "off"):
        raise AttncliError(f"{shown} is not a number", hint="Write 1 or 0 (true and false are for masks).")
    for character in clean:
        if ord(character) > 127:
            _refuse_character(shown, clean, character)


def _decimal_hint(text: str) -> str:
    try:
        return f"Write {int(text, 0)}."
    except ValueError:
        return "Write it with the digits 0 to 9."


def _refuse_character(shown: str, text: str, character: str) -> NoReturn:
    import unicodedata

    digits = "".join(str(unicodedata.digit(c)) if unicodedata.digit(c, None) is not None else c for c in text)
    if unicodedata.decimal(character, None) is not None:
        raise AttncliError(f"{shown}: digits other than 0 to 9", hint=f"Write {digits}.")
    numeric = unicodedata.numeric(character, None)
    if numeric is not None and unicodedata.normalize("NFKD", character) != character:
        plain = unicodedata.normalize("NFKD", character).replace("\u2044", "/")
        whole = text.partition(character)[0]
        mend = (
            f"{whole}^{plain}" if "/" not in plain else f"{whole}+{plain}" if whole.strip("+-") else f"{whole}{plain}"
        )
        raise AttncliError(f"{shown}: {character} is one character", hint=f"Write {mend}." if mend[0] != "^" else ())
    other = {"√": "sqrt(2)", "π": "pi", "×": "*", "·": "*", "÷": "/", "∞": "inf", "–": "-", "—": "-"}.get(character)
    hint = f"Write {other} in place of {character}." if other else GRAMMAR_HINT
    raise AttncliError(
        f"{shown}: the character {character!r} (U+{ord(character):04X}) is not part of a number", hint=hint
    )
