"""The colours of pictures: one map from light to dark that every eye, and a grey print, can order."""

from __future__ import annotations

from math import cos, pi, sin

Colour = tuple[int, int, int]

HIDDEN: Colour = (0xD5, 0xD5, 0xD5)
"""Behind the hatching of a cell that a mask hides."""

_LIGHTEST, _DARKEST, _START, _TURNS, _HUE = 0.97, 0.16, 0.0, -0.4, 1.0


def colour(share: float) -> Colour:
    """The colour of a share between 0 (the lightest) and 1 (the darkest), as red, green, blue in 0..255.

    Green's cubehelix, along which perceived brightness only falls (D. A. Green 2011, A colour scheme for the display
    of astronomical intensity images, Bulletin of the Astronomical Society of India 39, 289-295, equation 2), without
    its white and black ends.

    >>> colour(0)[1] > colour(0.5)[1] > colour(1)[1]
    True
    """
    bright = _LIGHTEST + (_DARKEST - _LIGHTEST) * min(1.0, max(0.0, share))
    angle = 2 * pi * (_START / 3 + 1 + _TURNS * bright)
    amplitude = _HUE * bright * (1 - bright) / 2
    red = bright + amplitude * (-0.14861 * cos(angle) + 1.78277 * sin(angle))
    green = bright + amplitude * (-0.29227 * cos(angle) - 0.90649 * sin(angle))
    blue = bright + amplitude * (1.97294 * cos(angle))
    clipped = (round(255 * min(1.0, max(0.0, part))) for part in (red, green, blue))
    return next(clipped), next(clipped), next(clipped)


def brightness(colour: Colour) -> float:
    """The perceived brightness of a colour, 0 to 1: 0.30 R + 0.59 G + 0.11 B, which cubehelix keeps in order."""
    red, green, blue = colour
    return (0.30 * red + 0.59 * green + 0.11 * blue) / 255


def hexadecimal(colour: Colour) -> str:
    """As ``#rrggbb``."""
    return "#{:02x}{:02x}{:02x}".format(*colour)
