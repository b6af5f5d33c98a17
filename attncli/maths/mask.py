"""Mask: which keys each query may attend to, and what is added to its scores.

Arrays are in the row convention and broadcast to (batch.., h, n, m).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attncli.maths.ops import EVERY, Array


@dataclass(frozen=True)
class Band:
    """A causal mask or a window: query i, which stands at key p = i + offset, sees the keys p - left to p + right.

    Kept as three numbers, so that a long sequence needs no n × m array until somebody asks for one. The ``extra``
    keys behind the m that it speaks of are always seen.
    """

    offset: Array
    left: float
    right: float
    n: int
    m: int
    extra: int = 0

    def part(self, rows: slice, keys: slice = EVERY) -> Array:
        """Some of it, broadcasting to (batch.., 1, rows, keys): the bounds count from 0, the second ones excluded."""
        position = (np.asarray(self.offset)[..., None] + np.arange(self.n)[rows])[..., None, :, None]
        key = np.arange(self.m + self.extra)[keys]
        first, last = position - self.left, position + self.right
        if key[-1] < self.m and (key[-1] < first.min() or last.max() < key[0]):
            return np.zeros((1, 1), bool)
        if first.max() <= key[0] and key[-1] <= last.min():
            return np.ones((1, 1), bool)
        within: Array = (key >= first) & (key <= last)
        return within | (key >= self.m) if self.extra else within


@dataclass(frozen=True)
class Mask:
    """What a problem's masks come to, all of them applied.

    ``selected``: True where a query may attend, None where all may; ``bias``: finite numbers added to the scores,
    or None; ``parts``: each mask in the words in which it was asked for; ``bands`` hide keys besides.
    """

    selected: Array | None = None
    bias: Array | None = None
    parts: tuple[str, ...] = ()
    bands: tuple[Band, ...] = ()

    def __and__(self, other: Mask) -> Mask:
        bias = self.bias if other.bias is None else other.bias
        if self.bias is not None and other.bias is not None:
            bias = self.bias + other.bias
        selected = _both(self.selected, other.selected)
        return Mask(selected, bias, self.parts + other.parts, self.bands + other.bands)

    @property
    def hides(self) -> bool:
        """Whether it can hide anything at all; a mask that only adds numbers can't."""
        return self.selected is not None or bool(self.bands)

    @property
    def changes_nothing(self) -> bool:
        """Whether every query may attend to every key, and nothing is added."""
        return self.bias is None and (self.allowed is None or bool(self.allowed.all()))

    @cached_property
    def allowed(self) -> Array | None:
        """True where a query may attend, broadcasting to (batch.., h, n, m); None where all may."""
        allowed = self.part(EVERY)[0]
        if allowed is None or not self.bands:
            return allowed
        band = self.bands[0]
        return np.broadcast_to(allowed, np.broadcast_shapes(allowed.shape, (band.n, band.m + band.extra)))

    def part(self, rows: slice, keys: slice = EVERY) -> tuple[Array | None, Array | None]:
        """``allowed`` and ``bias`` for some queries and keys: the bounds count from 0, the second ones excluded."""
        allowed = _part_of(self.selected, rows, keys)
        for band in self.bands:
            allowed = _both(allowed, band.part(rows, keys))
        return allowed, _part_of(self.bias, rows, keys)


def _both(one: Array | None, other: Array | None) -> Array | None:
    if one is None or other is None:
        return other if one is None else one
    both: Array = one & other
    return both


def _part_of(array: Array | None, rows: slice, keys: slice) -> Array | None:
    """A part of the last two axes, of which one of size 1, or none, serves all."""
    if array is None or array.ndim == 0:
        return array
    array = array if array.shape[-1] == 1 else array[..., keys]
    return array if array.ndim < 2 or array.shape[-2] == 1 else array[..., rows, :]
