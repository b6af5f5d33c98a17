"""How the numbers of a matrix were written: their text, their decimals, their place.

The reader makes these; `check` judges a sheet by the decimals of its text, and `explain --exact` takes 0.1 as 1/10.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from attncli.language.errors import Place

Texts = np.ndarray[Any, np.dtype[np.object_]]


class Written:
    """The texts of one matrix's numbers, in its shape, and where each stands.

    ``texts`` is an object array of str, or a function that makes it when it is first asked for (a million texts
    are not kept unless somebody looks). ``find`` gives the place of an entry by its 0-based index.
    """

    def __init__(
        self,
        texts: Texts | Callable[[], Texts],
        *,
        place: Place | None = None,
        find: Callable[[tuple[int, ...]], Place | None] | None = None,
    ) -> None:
        self._texts = texts
        self._find = find
        self.place_of_all = place
        """Where the matrix as a whole stands."""

    @cached_property
    def texts(self) -> Texts:
        return self._texts() if callable(self._texts) else self._texts

    def place(self, index: tuple[int, ...]) -> Place | None:
        """Where the entry at a 0-based index stands; the matrix's place where that is not known."""
        found = self._find(index) if self._find else None
        return found or self.place_of_all

    def transformed(self, change: Callable[[Any], Any]) -> Written:
        """The same after a change of shape (a transpose, a split into heads): ``change`` maps array to array."""
        return Written(lambda: np.asarray(change(self.texts), dtype=object), place=self.place_of_all)
