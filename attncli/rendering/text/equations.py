"""Derivations as equations: Markdown and LaTeX, several lines where one would be too long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from attncli.rendering.text import marks, tex
from attncli.rendering.text.arithmetic import Step, Tex, steps
from attncli.rendering.text.derivations import Explained, blocks, listed, noise, place_words, uses
from attncli.rendering.text.numbers import decimals

if TYPE_CHECKING:
    from attncli.maths.derivation import Derivation
    from attncli.model.problem import Problem
    from attncli.rendering.formats import Options, Stream

LINE = 72
"""So many characters (of the screen's form) fit on a line of an equation; longer sums are broken."""


class Equations:
    """Writes derivations as aligned equations, for LaTeX or (with ``newline``) for Markdown's mathematics."""

    def __init__(self, problem: Problem, options: Options, newline: str = r"\\") -> None:
        digits = decimals(options.digits)
        self.problem, self.newline = problem, newline
        self.style = Tex(digits, options.full, noise(problem))

    def lines(self, derivation: Derivation) -> list[str]:
        """One derivation, as many steps on a line as fit, the first signs of all lines below each other."""
        lines: list[str] = []
        for step in steps(derivation, self.style):
            first, *more = self._broken(step)
            piece = f"{self._sign(step)} {first}"
            if lines and not more and _length(f"{lines[-1]} {piece}") <= LINE and r"\quad" not in lines[-1]:
                lines[-1] += f" {piece}"
            else:
                lines += [f"&{piece}", *(rf"&\quad {text}" for text in more)]
        return [f"{self.style.symbol(derivation.symbol)} {lines[0]}", *lines[1:]]

    def _sign(self, step: Step) -> str:
        return r"\approx" if step.sign == "≈" else "="

    def _broken(self, step: Step) -> list[str]:
        """A step, a long sum in several lines."""
        if _length(step.text) <= LINE or not step.terms:
            return [step.text]
        lines = [""]
        for term in (part for whole in step.terms for part in _parts(whole)):
            if lines[-1] and _length(lines[-1] + term) > LINE:
                lines.append("")
            lines[-1] += term if lines[-1] else term.strip() if not lines[1:] else f"{{}}{term}"
        return lines

    def aligned(self, derivations: Iterable[Derivation]) -> str:
        """The lines of several derivations, to stand in one environment."""
        lines: list[str] = []
        for derivation in derivations:
            own = self.lines(derivation)
            hidden = derivation.op == "hidden" and len(own) == 1
            lines += [f"{own[0]} \\quad \\text{{(masked)}}"] if hidden else own
        return f" {self.newline}\n".join(lines)


def _parts(term: str) -> list[str]:
    """A term that is longer than a line, broken before the signs in it (but not inside braces)."""
    if _length(term) <= LINE:
        return [term]
    places, depth = [], 0
    for i, char in enumerate(term):
        depth += (char == "{") - (char == "}")
        if depth == 0 and i and term[i : i + 3] in (" + ", " - "):
            places.append(i)
    return [term[a:b] for a, b in pairwise([0, *places, len(term)])]


def _length(text: str) -> int:
    """About how wide LaTeX's mathematics is, in characters; of a fraction, its wider part."""
    text = re.sub(r"\\(left|right|text|tilde|sqrt)\b", "", text)
    before = ""
    while text != before:
        before = text
        text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", lambda match: max(match[1], match[2], key=len), text)
        text = re.sub(r"[_^]\{([^{}]*)\}|(?<!\})\{([^{}]*)\}(?!\{)", lambda match: match[1] or match[2] or "", text)
    return len(re.sub(r"\\[a-zA-Z]+", "x", text))


def markdown(explained: Explained, options: Options, stream: Stream) -> None:
    """The writer of ``-f markdown``."""
    parts: list[str] = []
    for tree in explained.trees:
        parts += markdown_parts(explained.problem, tree, options)
    stream.write(("\n\n".join(parts) + "\n").encode())


def markdown_parts(problem: Problem, derivation: Derivation, options: Options) -> Iterator[str]:
    """Each derivation as a heading line, its equations between ``$$``, and what is said of it."""
    equations = Equations(problem, options, newline=r"\cr")  # Markdown would eat one of two backslashes
    shown = list(blocks(derivation))
    if derivation.is_list and len(shown) == len(list(listed(derivation))):
        yield f"**`{derivation.cell}`**"
        yield _mathematics(equations.aligned(shown))
        yield from map(marks.escaped, _said_of_all(shown))
    else:
        for node in shown:
            place = place_words(problem, node.cell)
            yield f"**`{node.cell}`**{f', {marks.escaped(place)}' if place else ''}"
            yield _mathematics(equations.aligned([node]))
            said = [marks.escaped(node.words)] if node.words else []
            said += [f"uses `{found}`"] if (found := uses(node)) else []
            if said:
                yield "; ".join(said)
    if equations.style.left_out:
        yield "*Terms are left out at ⋯; `--full` shows all.*"


def _said_of_all(nodes: Iterable[Derivation]) -> list[str]:
    """What is said of the cells of a list, each sentence once; the masks' and the concat's show in the formulas."""
    return [text for text in dict.fromkeys(n.words for n in nodes if n.op not in ("kept", "hidden", "pick")) if text]


def _mathematics(lines: str) -> str:
    lines = re.sub(r"\\text\{([^{}]*)\}", lambda match: match[0].replace(r"\_", " "), lines)
    return f"$$\n\\begin{{aligned}}\n{lines}\n\\end{{aligned}}\n$$"


def latex(explained: Explained, options: Options, stream: Stream) -> None:
    """The writer of ``-f latex``: a fragment for amsmath, or a document of its own with ``--standalone``."""
    parts = [part for tree in explained.trees for part in latex_parts(explained.problem, tree, options)]
    stream.write(tex.document("\n\n".join(parts), options.standalone).encode())


def latex_parts(problem: Problem, derivation: Derivation, options: Options) -> Iterator[str]:
    """Each derivation as an ``align*``, with what is said of it before it."""
    equations = Equations(problem, options)
    shown = list(blocks(derivation))
    if derivation.is_list and len(shown) == len(list(listed(derivation))):
        said = [f"{tex.escaped(words)}." for words in _said_of_all(shown)]
        lines = f"{{\\allowdisplaybreaks\n\\begin{{align*}}\n{equations.aligned(shown)}\n\\end{{align*}}}}"
        yield "\n".join([*said, lines])
    else:
        for node in shown:
            words = "; ".join(text for text in (place_words(problem, node.cell), node.words) if text)
            said = [rf"\paragraph{{{tex.escaped(str(node.cell))}}} {f'{tex.escaped(words)}.' if words else ''}".strip()]
            yield "\n".join([*said, f"\\begin{{align*}}\n{equations.aligned([node])}\n\\end{{align*}}"])
    if equations.style.left_out:
        yield r"(Terms are left out at $\cdots$.)"
