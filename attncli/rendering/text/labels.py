"""Labels and symbols as a terminal may be sent them: no control character, nothing that its encoding can't show."""

from __future__ import annotations

from unicodedata import category

_SHOWN_AS_IS = {"\u200c", "\u200d"}
"""Joiners that Persian words and emoji are made with; they move nothing and hide nothing."""

_ASCII = str.maketrans({
    "×": "x", "·": "*", "−": "-", "∞": "inf", "…": "...", "→": "->", "√": "sqrt ", "⋮": ":", "Σ": "sum",
    "⌈": "", "⌉": "",
})  # fmt: skip


def visible(text: str, encoding: str = "utf-8") -> str:
    r"""A label with a symbol or an escape for each character that would steer the terminal, or that it can't show.

    Control characters, marks that turn the direction of text, line ends, and lone surrogates.

    >>> visible("a\x1b[31m\u202e")
    'a␛[31m\\u202e'
    >>> visible("猫\n", "ascii")
    '\\u732b\\x0a'
    """
    if text.isprintable() and text.isascii():
        return text
    shown = "".join(c if c.isprintable() or c in _SHOWN_AS_IS else _symbol(c, encoding) for c in text)
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def _symbol(c: str, encoding: str) -> str:
    if category(c) == "Zs" or "\U000e0020" <= c <= "\U000e007f":  # wide spaces; the letters of flags
        return c
    code = ord(c)
    symbol = chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else ""
    if symbol and can_show(symbol, encoding):
        return symbol
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str) -> str:
    r"""A title or a note on one line, made harmless.

    >>> one_line("two\n lines")
    'two lines'
    """
    return visible(" ".join(text.split()))


def can_show(symbols: str, encoding: str) -> bool:
    """Whether an encoding has all of these characters."""
    try:
        symbols.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def plain(text: str) -> str:
    """Our own words without the symbols that an old encoding lacks.

    >>> plain("3 × 2, 1/√d_k")
    '3 x 2, 1/sqrt(d_k)'
    """
    return text.replace("√d_k", "sqrt(d_k)").translate(_ASCII)
