"""The colours of a heat map, from dark (0) to bright (1): told apart without colour sight, and in greyscale."""

from __future__ import annotations

SHADES = (
    ("#440154", "#ffffff"),
    ("#482475", "#ffffff"),
    ("#414487", "#ffffff"),
    ("#355f8d", "#ffffff"),
    ("#2a788e", "#ffffff"),
    ("#21918c", "#000000"),
    ("#22a884", "#000000"),
    ("#44bf70", "#000000"),
    ("#7ad151", "#000000"),
    ("#bddf26", "#000000"),
    ("#fde725", "#000000"),
)
"""Ground and ink: eleven steps of the map that matplotlib calls viridis, each with ink that can be read on it."""


def shade(weight: float) -> tuple[str, str]:
    """Ground and ink for a number between 0 and 1.

    >>> shade(0.0)[0], shade(1.0)[0]
    ('#440154', '#fde725')
    """
    return SHADES[min(max(round(weight * (len(SHADES) - 1)), 0), len(SHADES) - 1)]
