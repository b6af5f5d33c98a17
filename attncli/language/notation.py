"""Formulas, kept once in a small ASCII notation, and written as Unicode, LaTeX, MathML or plain ASCII.

The notation is what one would type: ``S~^(r) = S^(r) / sqrt(d_k)``, ``Q^(r) K^(r)^T``, ``Z W_r^Q + b_r^Q``.
A name may carry a tilde, subscripts and superscripts (numbers in braces are a cell's indices, ``s_{13}``); ``-inf`` is
minus infinity, ``*`` a product dot, and what stands in double quotes is words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"\"(?P<text>[^\"]*)\"|(?P<inf>-inf)|(?P<root>sqrt)\((?P<radicand>[^()]*)\)"
    r"|(?P<name>[A-Za-zα-ω]+)(?P<tilde>~?)(?P<scripts>(?:[_^](?:\([^()]*\)|\{[^{}]*\}|[A-Za-z0-9]+))*)"
    r"|(?P<number>[0-9.]+)|(?P<space> +)|(?P<other>.)"
)
_SCRIPT = re.compile(r"([_^])(\([^()]*\)|\{[^{}]*\}|[A-Za-z0-9]+)")
_RAISED = dict(zip("Trhs()0123456789", "ᵀʳʰˢ⁽⁾⁰¹²³⁴⁵⁶⁷⁸⁹", strict=True))
_LOWERED = dict(zip("0123456789,", "₀₁₂₃₄₅₆₇₈₉,", strict=True))
_UNICODE = {"*": "·", "-": "−", "/": "/", "sum": "Σ"}
FUNCTIONS = ("softmax", "tanh", "exp", "Concat", "MultiHead")
"""Names that are written upright, as functions are."""


class Token(NamedTuple):
    """A piece of a formula, by kind: text, inf, root, name, number, space, other; scripts are (mark, text)."""

    kind: str
    text: str
    tilde: bool = False
    scripts: tuple[tuple[str, str], ...] = ()


def tokens(formula: str) -> Iterator[Token]:
    """The pieces of a formula, in order.

    >>> [token.text for token in tokens("S^(r) / sqrt(d_k)")]
    ['S', ' ', '/', ' ', 'd_k']
    """
    for match in _TOKEN.finditer(formula):
        kind = match.lastgroup or "other"
        if match["root"]:
            yield Token("root", match["radicand"])
        elif match["name"]:
            yield Token("name", match["name"], bool(match["tilde"]), tuple(_SCRIPT.findall(match["scripts"])))
        else:
            yield Token(kind, match[kind])


def ascii(formula: str) -> str:
    """The formula as it is kept, which any terminal can show.

    >>> ascii('softmax(S~) "along each row"')
    'softmax(S~) along each row'
    """
    return re.sub(r"_\{([^{}]*)\}", r"_\1", formula.replace('"', ""))


def unicode(formula: str) -> str:
    """The formula with Unicode's raised letters, roots and signs, where Unicode has them.

    >>> unicode("S~^(r) = S^(r) / sqrt(d_k)")
    'S̃⁽ʳ⁾ = S⁽ʳ⁾ / √d_k'
    """
    return "".join(map(_unicode, tokens(formula)))


def _unicode(token: Token) -> str:
    match token.kind:
        case "inf":
            return "−∞"
        case "root":
            return "√" + (token.text if re.fullmatch(r"\w+", token.text) else f"({token.text})")
        case "name":
            base = _UNICODE.get(token.text, token.text) + ("\u0303" if token.tilde else "")
            return base + "".join(_raised(mark, text) for mark, text in token.scripts)
    return _UNICODE.get(token.text, token.text)


def _raised(mark: str, text: str) -> str:
    if text[0] == "{":
        return "".join(_LOWERED.get(c, c) for c in text[1:-1])
    if mark == "^" and all(c in _RAISED for c in text):
        return "".join(_RAISED[c] for c in text)
    return mark + text


def latex(formula: str) -> str:
    r"""The formula for LaTeX's mathematics mode.

    >>> latex("Q^(r) K^(r)^T / sqrt(d_k)")
    'Q^{(r)} {K^{(r)}}^{\\top} / \\sqrt{d_k}'
    """
    return "".join(map(_latex, _roomy(formula)))


def _roomy(formula: str) -> Iterator[Token]:
    """The pieces of a formula, the spaces around words drawn into the words: mathematics mode has none."""
    pieces = [Token("space", ""), *tokens(formula), Token("space", "")]
    for before, token, after in zip(pieces, pieces[1:], pieces[2:], strict=False):
        if token.kind == "text":
            left, right = (" " if piece.kind == "space" and piece.text else "" for piece in (before, after))
            yield token._replace(text=f"{left}{token.text}{right}")
        else:
            yield token


def _latex(token: Token) -> str:
    match token.kind:
        case "inf":
            return r"-\infty"
        case "root":
            return rf"\sqrt{{{latex(token.text)}}}"
        case "name":
            return _latex_name(token)
        case "text":
            return rf"\text{{{token.text}}}".replace("_", r"\_")
        case "number":
            return r"\ldots " if token.text == ".." else token.text
        case "other":
            return {"*": r"\cdot ", "·": r"\cdot ", "×": r"\times ", "−": "-"}.get(token.text, token.text)
    return token.text


def _latex_name(token: Token) -> str:
    if token.text == "sum":
        text = r"\sum"
    elif token.text in FUNCTIONS:
        text = rf"\operatorname{{{token.text}}}"
    elif len(token.text) > 1:
        text = rf"\mathrm{{{token.text}}}"
    else:
        text = {"α": r"\alpha"}.get(token.text, token.text)
    if token.tilde:
        text = rf"\tilde{{{text}}}"
    seen: set[str] = set()
    for mark, script in token.scripts:
        if mark in seen:
            text = f"{{{text}}}"
        seen.add(mark)
        script = script.strip("{}")
        inner = r"\top" if script == "T" else rf"\text{{{script}}}" if script.isalpha() and len(script) > 1 else script
        text += f"{mark}{inner}" if len(inner) == 1 else f"{mark}{{{inner}}}"
    return text


NBSP = "\u00a0"


def mathml(formula: str) -> str:
    """The formula as a MathML element, of the parts that MathML Core has, for a page.

    >>> mathml("S~ / sqrt(d_k)")
    '<math><mover><mi>S</mi><mo>~</mo></mover><mo>/</mo><msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt></math>'
    """
    return f"<math>{_mathml_row(formula)}</math>"


def _mathml_row(formula: str) -> str:
    return "".join(map(_mathml, _roomy(formula)))


def _mathml(token: Token) -> str:
    match token.kind:
        case "inf":
            return "<mo>−</mo><mi>∞</mi>"
        case "root":
            return f"<msqrt>{_mathml_row(token.text)}</msqrt>"
        case "name":
            return _mathml_name(token)
        case "text":
            return f"<mtext>{_escaped(token.text.replace(' ', NBSP))}</mtext>"
        case "number":
            return "<mo>…</mo>" if token.text == ".." else f"<mn>{token.text}</mn>"
        case "space":
            return ""
    return f"<mo>{_escaped(_UNICODE.get(token.text, token.text))}</mo>"


def _mathml_name(token: Token) -> str:
    """A name with its tilde and its scripts: those of one kind stand side by side, ``K^(r)^T`` as K⁽ʳ⁾ᵀ."""
    base = "<mo>∑</mo>" if token.text == "sum" else f"<mi>{token.text}</mi>"
    if token.tilde:
        base = f"<mover>{base}<mo>~</mo></mover>"
    below, above = (_mathml_scripts(text for m, text in token.scripts if m == mark) for mark in "_^")
    if below and above:
        return f"<msubsup>{base}{below}{above}</msubsup>"
    if below or above:
        tag = "msub" if below else "msup"
        return f"<{tag}>{base}{below or above}</{tag}>"
    return base


def _mathml_scripts(texts: Iterable[str]) -> str:
    plain = [text.strip("{}") for text in texts]
    parts = [f"<mi>{'⊤' if text == 'T' else text}</mi>" if text.isalpha() else _mathml_row(text) for text in plain]
    joined = "".join(parts)
    return joined if len(parts) < 2 and not any(mark in joined for mark in "(,") else f"<mrow>{joined}</mrow>"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
