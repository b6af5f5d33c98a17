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
