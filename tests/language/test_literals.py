"""Numbers as people write them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attncli.language import literals
from attncli.language.errors import AttncliError

EXPRESSIONS = {
    "1/3": 1 / 3,
    "5/3": 5 / 3,
    "sqrt(2)/2": 0.70710678118654752,
    "2*sqrt(3)": 3.4641016151377546,
    "2*sqrt(3)/3": 1.1547005383792515,
    "ln(2)": 0.69314718055994531,
    "exp(-1)": 0.36787944117144233,
    "pi": 3.1415926535897932,
    "e": 2.7182818284590452,
    "e^2": 7.3890560989306502,
    "-1/4": -0.25,
    "−1/4": -0.25,
    "2^10": 1024.0,
    "2**3": 8.0,
    "2^3^2": 512.0,
    "-2^2": -4.0,
    "2^-1": 0.5,
    "(1+2)*3": 9.0,
    "1 + 2 * 3": 7.0,
    "7-2-1": 4.0,
    "8/2/2": 2.0,
    "-(1/2)": -0.5,
    "--1": 1.0,
    "sqrt(sqrt(16))": 2.0,
    "1/(1+e)": 0.26894142136999512,
}


@pytest.mark.parametrize(("text", "value"), EXPRESSIONS.items())
def test_an_expression_is_exact(text: str, value: float) -> None:
    number = literals.parse(text)
    assert number.value == pytest.approx(value, rel=4e-16)
    assert number.exact
    assert number.decimals == 0
    assert number.text == text


DECIMALS = {
    "2.5": (2.5, 1),
    "0.50": (0.5, 2),
    "3": (3.0, 0),
    "1e2": (100.0, 0),
    "1E5": (100000.0, 0),
    "1e-3": (0.001, 3),
    "1.0e3": (1000.0, 0),
    "1.24326146e-13": (1.24326146e-13, 21),
    "2.50e1": (25.0, 1),
    ".5": (0.5, 1),
    "-.5": (-0.5, 1),
    "5.": (5.0, 0),
    "+1": (1.0, 0),
    "010": (10.0, 0),
    "08": (8.0, 0),
    "−1": (-1.0, 0),
    "−0.25": (-0.25, 2),
    " 7 ": (7.0, 0),
    "1e-300": (1e-300, 300),
}


@pytest.mark.parametrize(("text", "expected"), DECIMALS.items())
def test_a_decimal_keeps_how_it_was_written(text: str, expected: tuple[float, int]) -> None:
    number = literals.parse(text)
    assert (number.value, number.decimals, number.exact) == (*expected, False)
    assert number.text == text.strip()


def test_minus_zero_keeps_its_sign() -> None:
    assert math.copysign(1, literals.parse("-0.0").value) == -1


@pytest.mark.parametrize("text", ["inf", "+inf", ".inf", "Inf", ".INF", "Infinity", "infinity", "∞"])
def test_infinity_in_every_spelling(text: str) -> None:
    assert literals.parse(text).value == math.inf
    assert literals.parse("-" + text.lstrip("+")).value == -math.inf
    assert literals.parse("−" + text.lstrip("+")).value == -math.inf


@pytest.mark.parametrize("text", ["nan", "NaN", ".nan", ".NaN", "NAN"])
def test_nan_in_every_spelling(text: str) -> None:
    assert math.isnan(literals.parse(text).value)


REFUSED = {
    "1_000": ("underscores", "Write 1000."),
    "0x1F": ("only decimal", "Write 31."),
    "0b11": ("only decimal", "Write 3."),
    "½": ("one character", "Write 1/2."),
    "1½": ("one character", "Write 1+1/2."),
    "2²": ("one character", "Write 2^2."),
    "٣": ("digits other than 0 to 9", "Write 3."),
    "１２": ("digits other than 0 to 9", "Write 12."),
    "1:30": ("a colon", "hours"),
    "-1:30": ("a colon", "hours"),
    "50%": ("a percentage", "Write 50/100."),
    "1,5": ("a decimal comma", "Write 1.5."),
    "true": ("not a number", "1 or 0"),
    "√2": ("U+221A", "sqrt"),
    "–1": ("U+2013", "Write -"),
    "": ("empty", "Every entry"),
    "1 2": ("two numbers", "comma"),
    "1 -2": ("two numbers", "comma"),
    "2sqrt(3)": ("what does", "2*sqrt(3)"),
    "log(2)": ("to which base", "ln(x)"),
    "sqrt": ("parentheses", "sqrt(2)"),
    "1/0": ("division by zero", ""),
    "0^-1": ("division by zero", ""),
    "sqrt(-1)": ("negative number", ""),
    "ln(0)": ("positive", ""),
    "(-8)^(1/3)": ("not a real number", ""),
    "1e999": ("too large", "1.8e308"),
    "-1e999": ("too large", ""),
    "1e-999": ("too small", "5e-324"),
    "9^999": ("too large", ""),
    "exp(1000)": ("too large", ""),
    "2^1001": ("too large (at most 1000)", ""),
    "((1+1e-9)^100)^100": ("exponent is too large", ""),
    "inf-inf": ("stand alone", ""),
    "(1": ("never closed", ""),
    "1)": ("without its (", ""),
    "1/": ("too early", ""),
    "1.2.3": ("two points", ""),
    "abc": ("not a number", "sqrt(2)/2"),
    "__import__('os')": ("not a number", ""),
    "(" * 50: ("too deeply", ""),
    "1" * 300: ("300 characters", ""),
    "-" * 300 + "1": ("characters", ""),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=lambda value: str(value)[:20])
def test_what_is_no_number_is_refused_by_name(text: str, message: tuple[str, str]) -> None:
    with pytest.raises(AttncliError) as caught:
        literals.parse(text)
    assert message[0] in caught.value.what
    assert message[1] in " ".join(caught.value.hint)


class Fractions:
    """Exact arithmetic of the four operations, to see that decimals arrive as they were written."""

    def number(self, text: str) -> Fraction:
        return Fraction(text)

    def neg(self, a: Fraction) -> Fraction:
        return -a

    def add(self, a: Fraction, b: Fraction) -> Fraction:
        return a + b

    def sub(self, a: Fraction, b: Fraction) -> Fraction:
        return a - b

    def mul(self, a: Fraction, b: Fraction) -> Fraction:
        return a * b

    def div(self, a: Fraction, b: Fraction) -> Fraction:
        return a / b

    def pow(self, a: Fraction, b: Fraction) -> Fraction:
        return Fraction(a**b)

    def sqrt(self, a: Fraction) -> Fraction:
        raise NotImplementedError

    exp = ln = sqrt

    def pi(self) -> Fraction:
        raise NotImplementedError

    e = pi


def test_another_arithmetic_gets_the_digits_as_written() -> None:
    assert literals.evaluate("0.1+0.2", Fractions()) == Fraction(3, 10)
    assert literals.evaluate("−0.1", Fractions()) == Fraction(-1, 10)
    assert literals.evaluate("-(1/3)^2*9", Fractions()) == -1
    with pytest.raises(AttncliError):
        literals.evaluate("inf", Fractions())


numbers = st.integers(0, 9).map(str)
expressions = st.recursive(
    numbers,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda parts: "({}{}{})".format(*parts)),
        inner.map(lambda one: f"(-{one})"),
    ),
    max_leaves=12,
)


@given(expressions)
def test_the_four_operations_agree_with_fractions(text: str) -> None:
    try:
        expected = eval(text, {}, {})  # drawn above from digits, signs and parentheses alone
    except ZeroDivisionError:
        with pytest.raises(AttncliError):
            literals.parse(text)
        return
    assert literals.parse(text).value == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(st.text(max_size=60) | st.text("0123456789.+-*/^() esqrtxplnpi", max_size=60))
def test_any_text_is_a_number_or_an_error(text: str) -> None:
    try:
        number = literals.parse(text)
    except AttncliError:
        return
    assert isinstance(number.value, float)
    assert number.decimals >= 0
    assert literals.how_written(number.text) == (number.decimals, number.exact)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_python_writes_reads_back_the_same(value: float) -> None:
    assert literals.parse(repr(value)).value == value
