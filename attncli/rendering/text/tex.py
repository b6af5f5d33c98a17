"""Somebody's words as LaTeX text, and the document that LaTeX compiles."""

from __future__ import annotations

import unicodedata

from attncli.rendering.text.labels import visible

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": "$<$", ">": "$>$",
    "|": "$|$", '"': r"\texttt{\char34}", "'": "'{}", "`": r"\`{}",
    "-": "-{}", ",": ",{}", "?": "?{}", "!": "!{}",
    "−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "∞": r"$\infty$", "√": r"$\surd$", "–": "--", "—": "---",
    "±": r"$\pm$", "≈": r"$\approx$", "≠": r"$\ne$", "≤": r"$\le$", "≥": r"$\ge$", "→": r"$\to$", "ᵀ": "$^T$",
    **{char: f"$^{i}$" for i, char in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{char: f"$_{i}$" for i, char in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    "‘": "`{}", "’": "'{}", "“": "``", "”": "''", "…": r"\ldots{}", "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}",
    "ø": r"\o{}", "Ø": r"\O{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ł": r"\l{}", "Ł": r"\L{}",
}  # fmt: skip
_ACCENTS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
"""What LaTeX's first font encoding can put on a letter."""

_PREAMBLE = r"""\documentclass{article}
\usepackage[a4paper,margin=2cm]{geometry}
\usepackage{amsmath}
\usepackage{iftex}
\ifPDFTeX
  \usepackage[utf8]{inputenc}
  \newcommand{\attnword}[3]{\texttt{#2}}
\else
  \usepackage{fontspec}
  \newcommand{\attntry}[4]{\IfFontExistsTF{#4}{\fontspec{#4}\iffontchar\font#3\relax#1\else#2\fi}{#2}}
  \newcommand{\attnword}[3]{{\attntry{#1}{%
    \attntry{#1}{\attntry{#1}{\texttt{#2}}{#3}{DejaVu Sans}}{#3}{Droid Sans Fallback}}{#3}{Noto Sans CJK JP}}}
\fi
\setlength{\parindent}{0pt}
"""

_WORD = r"\providecommand{\attnword}[3]{\texttt{#2}}% the word, its code points (for pdfLaTeX), the first it needs"


def document(body: str, standalone: bool) -> str:
    """A fragment as it is to be included, or inside a document that compiles as it is."""
    if standalone:
        return f"{_PREAMBLE}\\begin{{document}}\n\n{body}\n\n\\end{{document}}\n"
    return f"{_WORD}\n{body}\n" if r"\attnword{" in body else f"{body}\n"


def escaped(text: str) -> str:
    r"""Somebody's words as LaTeX text that shows exactly them.

    >>> escaped("50% of \\input{x}")
    '50\\% of \\textbackslash{}input\\{x\\}'
    """
    return " ".join(map(_escaped_word, visible(text).split(" ")))


def _escaped_word(word: str) -> str:
    if all(_is_plain(char) for char in word):
        return "".join(_ESCAPES.get(char, char) for char in word)
    codes = " ".join(f"U+{ord(char):04X}" for char in word)
    itself = "".join(_ESCAPES.get(char, char) for char in word)
    first = next(ord(char) for char in word if not _is_plain(char))
    return rf'\attnword{{{itself}}}{{{codes}}}{{"{first:X}}}'


def _is_plain(char: str) -> bool:
    """Whether pdfLaTeX with its first fonts can set a character: ASCII, some signs, Latin letters with an accent."""
    if char in _ESCAPES or " " <= char <= "~":
        return True
    parts = unicodedata.normalize("NFD", char)
    return char < "\u0180" and len(parts) == 2 and parts[0].isascii() and parts[1] in _ACCENTS
