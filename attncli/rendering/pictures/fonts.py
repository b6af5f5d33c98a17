"""Fonts for pictures that matplotlib draws: which of those on this machine have the letters of the labels."""

from __future__ import annotations

from functools import cache

FIRST = "DejaVu Sans"
"""matplotlib brings it along: Latin, Greek, Cyrillic, Arabic, mathematics."""

_LIKELY = ("CJK", "Noto Sans", "IPA", "Source Han", "WenQuanYi", "Hiragino", "Yu Gothic", "Gothic", "Hei", "Emoji")
"""Words in the names of fonts that are looked into first."""


def families(text: str) -> tuple[list[str], str]:
    """The fonts, by name, that together have every character of a text; and the characters that none here has."""
    candidates = _candidates()
    missing = {char for char in text if not char.isspace() and ord(char) not in _letters(candidates[FIRST])}
    found = [FIRST]
    for name in sorted(candidates, key=lambda name: (not any(word in name for word in _LIKELY), name)):
        if not missing:
            break
        covered = {char for char in missing if ord(char) in _letters(candidates[name])}
        if covered:
            found.append(name)
            missing -= covered
    return found, "".join(sorted(missing))


@cache
def _candidates() -> dict[str, str]:
    """The upright fonts of this machine: name → file."""
    from matplotlib import font_manager

    ordered = sorted(font_manager.fontManager.ttflist, key=lambda font: (font.style != "normal", font.weight != 400))
    files: dict[str, str] = {}
    for font in ordered:
        files.setdefault(font.name, font.fname)
    return files


@cache
def _letters(file: str) -> frozenset[int]:
    """The code points that a font has."""
    from matplotlib.font_manager import get_font

    try:
        return frozenset(get_font(file).get_charmap())
    except (RuntimeError, OSError):
        return frozenset()
