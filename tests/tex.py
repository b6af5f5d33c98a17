"""The structure of LaTeX that we write, checked without an engine."""

from __future__ import annotations

import re

TOKEN = re.compile(r"\\(?:begin|end)\{\w+\*?\}|\\[a-zA-Z]+|\\.|[{}$&#%^_~]|[^\\{}$&#%^_~]+", re.DOTALL)
CLOSES = {"}": "{", "\\]": "\\[", "\\)": "\\("}
MATHEMATICS = {"$", "\\[", "{align*}"}


def check_structure(text: str) -> None:
    """Braces, environments and mathematics close; & in matrices and alignments; ^ and _ in mathematics; no % or #."""
    stack: list[str] = []
    for token in TOKEN.findall(text):
        if token.startswith("\\begin{"):
            stack.append(token[6:])
        elif token.startswith("\\end{"):
            assert stack.pop() == token[4:]
        elif token in CLOSES.values() or (token == "$" and "$" not in stack[-1:]):
            stack.append(token)
        elif token in CLOSES or token == "$":
            assert stack.pop() == CLOSES.get(token, token), token
        elif token == "&":
            assert stack[-1] in ("{pmatrix}", "{align*}"), stack
        elif token in ("^", "_"):
            assert MATHEMATICS & set(stack), text[-80:]
        else:
            assert token not in ("#", "%"), token
    assert stack == []


def body_of(text: str) -> str:
    """Our own part of a document: comments and definitions of the preamble left out."""
    text = text.partition("\\begin{document}")[2].partition("\\end{document}")[0] or text
    return "\n".join(line for line in text.split("\n") if not line.startswith("\\providecommand"))
