"""What all the mathematics here shares: numbers in the kind of an array, float16 by way of float32, work by parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
OfNumbers = Callable[[Array], Array]
Rest = ParamSpec("Rest")
OfAnArray = Callable[Concatenate[Array, Rest], Array]

IN_CACHE = 1 << 16
"""Numbers that are worked on at a time where each is read and written several times over."""


def as_in(number: Any, like: Array) -> Any:
    """A number in the kind of an array, so that float32 and float16 stay what they are, and exact numbers exact.

    >>> (as_in(0.5, np.ones(2, np.float32)) * np.ones(2, np.float32)).dtype
    dtype('float32')
    """
    return like.flat[0].of(number) if like.dtype == object else like.dtype.type(number)


def constant(written: str, value: float, like: Array) -> Any:
    """A number that isn't rational, such as √(2/π): as it is written beside exact numbers, else its float.

    >>> float(constant("sqrt(2)", 2**0.5, np.ones(2)))
    1.4142135623730951
    """
    return as_in(written if like.dtype == object else value, like)


def calculation(function: OfAnArray[Rest]) -> OfAnArray[Rest]:
    """A function that warns of nothing, as ∞ and NaN are answers, and that rounds to float16 only once.

    Sums of squares and exponentials don't fit into float16: what is float16 is worked on in float32.
    """

    @wraps(function)
    def calculated(x: Array, *rest: Rest.args, **named: Rest.kwargs) -> Array:
        with np.errstate(all="ignore"):
            if x.dtype == np.float16:
                return function(x.astype(np.float32), *rest, **named).astype(np.float16)
            return function(x, *rest, **named)

    return cast(OfAnArray[Rest], calculated)


def elementwise(function: OfNumbers) -> OfNumbers:
    """A function of single numbers, as a `calculation` that takes some numbers at a time."""

    @calculation
    @wraps(function)
    def everywhere(x: Array) -> Array:
        return by_parts(function, x)

    return everywhere


def by_parts(function: OfNumbers, x: Array, width: int = 1) -> Array:
    """function(x), for some rows of ``width`` numbers at a time, so that they stay in the processor's cache.

    x (..., width), or of any shape for a function of single numbers  ->  the same shape

    >>> by_parts(np.negative, np.array([[1, 2], [3, 4]])).tolist()
    [[-1, -2], [-3, -4]]
    """
    rows = x.reshape(-1, width)
    height = max(1, IN_CACHE // width)
    if len(rows) <= height:
        return function(rows).reshape(x.shape)
    done = np.empty_like(rows)
    for first in range(0, len(rows), height):
        done[first : first + height] = function(rows[first : first + height])
    return done.reshape(x.shape)
