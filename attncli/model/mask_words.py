"""A mask in words: who may attend to whom, a sentence a query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attncli.maths.mask import Mask
from attncli.maths.ops import Array


def in_words(mask: Mask, queries: Sequence[str] | int, keys: Sequence[str] | int) -> list[str]:
    """A mask as sentences, one a query, in 1-based positions and labels (or how many there are, without labels).

    Where batch entries or heads have masks of their own, each has its sentences.

    >>> in_words(Mask(np.tri(2, dtype=bool)), ["a", "b"], ["a", "b"])
    ['1 a may attend to a', '2 b may attend to a, b']
    >>> in_words(Mask(np.array([[1, 1, 1], [0, 0, 0]], dtype=bool)), 2, 3)
    ['query 1 may attend to keys 1 to 3', 'query 2 may attend to nothing']
    """
    allowed = mask.allowed
    if allowed is None or allowed.all():
        return ["the mask changes nothing" if mask.bias is None else "the mask hides nothing, and adds to the scores"]
    n, m = (len(one) if not isinstance(one, int) else one for one in (queries, keys))
    names = [f"query {i}" for i in range(1, n + 1)] if isinstance(queries, int) else _numbered(queries)
    allowed = np.broadcast_to(allowed, (*allowed.shape[:-2], n, m) if allowed.ndim > 1 else (n, m))
    sentences = []
    for lead in np.ndindex(allowed.shape[:-2]):
        where = _lead_in_words(lead, allowed.shape[:-2])
        sentences += [
            f"{where}{name} may attend to {_seen_in_words(row, keys)}"
            for name, row in zip(names, allowed[lead], strict=True)
        ]
    return sentences


def _numbered(labels: Sequence[str]) -> list[str]:
    return [f"{i} {label}" for i, label in enumerate(labels, 1)]


def _lead_in_words(index: tuple[int, ...], sizes: tuple[int, ...]) -> str:
    """ "batch 1, head 2: ", of the axes that have several entries."""
    names = [*["batch"] * (len(sizes) - 1), "head"][: len(sizes)]
    parts = [f"{name} {i + 1}" for name, i, size in zip(names, index, sizes, strict=True) if size > 1]
    return f"{', '.join(parts)}: " if parts else ""


def _seen_in_words(row: Array, keys: Sequence[str] | int) -> str:
    """The keys that a query sees: their labels (with their positions where labels repeat), or ranges of positions."""
    seen = np.flatnonzero(row)
    if not len(seen):
        return "nothing"
    if not isinstance(keys, int):
        labels = list(keys) if len(set(keys)) == len(keys) else _numbered(keys)
        return ", ".join(labels[j] for j in seen)
    runs = np.split(seen, np.flatnonzero(np.diff(seen) > 1) + 1)
    ends = [(int(run[0]) + 1, int(run[-1]) + 1) for run in runs]
    said = ", ".join(str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a} to {b}" for a, b in ends)
    return f"key{'s' if len(seen) > 1 else ''} {said}"
