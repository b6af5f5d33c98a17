"""Suggestions: which stage, or which of some words, a mistyped or foreign word probably means. Read only for errors."""

from __future__ import annotations

import re
from collections.abc import Iterable

from attncli.names import STAGE_NAMES

STAGE_ALIASES = {
    "attn": "weights",
    "attention": "weights",
    "alpha": "weights",
    "probs": "weights",
    "softmax": "weights",
    "logits": "scores",
}
"""What other programs and books call stages, beside the symbols of the table of stages."""

_CHOICE_ALIASES = {
    "double": "float64", "single": "float32", "half": "float16", "fp64": "float64", "fp32": "float32",
    "fp16": "float16", "bfloat16": None, "float8": None, "bilinear": "general", "multiplicative": "general",
    "bahdanau": "additive", "scaled": "scaled_dot",
}  # fmt: skip
"""What others call the words that settings take; None for what is like one of them, and something else."""


def stage_meant(word: str) -> str | None:
    """The stage that a word is the symbol of (A, S, O), or another name for, or nearly the name of.

    >>> stage_meant("A"), stage_meant("weigths"), stage_meant("attn"), stage_meant("Z")
    ('weights', 'weights', 'weights', None)
    """
    plain = word.strip().lower().replace("\u0303", "~")
    known = {name.lower(): name for name in STAGE_NAMES} | _symbols() | STAGE_ALIASES
    return known.get(plain) or _nearest(plain, {name.lower(): name for name in STAGE_NAMES})


def did_you_mean(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """A hint that asks for the most similar of some words, whatever their case and underscores; or none."""
    close = _nearest(_plain(word), {_plain(one): one for one in known})
    return (f"Did you mean {close}?",) if close else ()


def choice_meant(word: str, choices: Iterable[str]) -> tuple[str, ...]:
    """A hint that asks for the one of a setting's words that is meant; or none.

    >>> choice_meant("colums", ["rows", "columns"]), choice_meant("fp32", ["float64", "float32"])
    (('Did you mean columns?',), ('Did you mean float32?',))
    """
    meant = _CHOICE_ALIASES.get(word.lower(), word)
    return did_you_mean(meant, choices) if meant else ()


def _symbols() -> dict[str, str]:
    """The stages by the letters that stand for them: s, s~, a, o, concat; in small letters."""
    from attncli.stages import STAGES

    letters = {name: re.match(r"[A-Za-z]+~?(?!.* )", stage.symbol) for name, stage in STAGES.items()}
    return {found[0].lower(): name for name, found in letters.items() if found}


def _plain(word: str) -> str:
    return re.sub(r"[\s_-]", "", word.lower())


def _nearest(word: str, known: dict[str, str]) -> str | None:
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1)
    return known[close[0]] if close else None
