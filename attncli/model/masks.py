"""Masks: every way of saying which keys a query may attend to, made into one `Mask`.

Arrays are in the row convention and broadcast to (batch.., h, n, m).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attncli.language.errors import AttncliError
from attncli.maths.mask import Band, Mask
from attncli.maths.ops import Array

SPELLINGS = ("Write {keep: M} (1 = may attend), {block: M} (1 = may not), or {add: M} (added to the scaled scores).",)
CAUSAL = ("top-left", "bottom-right")
MOST = 10**9
"""The largest length, offset or window that is read."""


@dataclass(frozen=True)
class Frame:
    """What masks are read against: the sizes they must fit.

    ``n`` queries, ``m`` keys (``past`` cached ones among them, before the others), ``heads`` query heads, ``batch``
    leading axes; ``columns``: matrices are written transposed, a column a query; ``extra`` keys after m that no
    mask hides.
    """

    n: int
    m: int
    heads: int = 1
    batch: tuple[int, ...] = ()
    past: int = 0
    extra: int = 0
    columns: bool = False
    positions: Any = field(default=None)
    """The offset that a causal mask in the same list gives the queries, for a window that names none."""


def build(spec: Any, frame: Frame) -> Mask:
    """The mask that a problem's ``mask`` says: a word, a mapping, a bare matrix, or a list of these (all applied).

    Raises AttncliError (key ``mask``, or ``mask.N`` in a list) where it can't be read or doesn't fit.
    """
    specs, several = (list(spec), True) if _is_list_of_masks(spec) else ([spec], False)
    keys = [f"mask.{i}" if several else "mask" for i in range(1, len(specs) + 1)]
    frame = Frame(**{**frame.__dict__, "positions": _positions(specs, frame)})
    readings = [_reading(one, key) for one, key in zip(specs, keys, strict=True)]
    exact = [_one(kind, value, options, frame, key) for (kind, value, options), key in zip(readings, keys, strict=True)]
    mask = Mask()
    for one in exact:
        mask &= one if isinstance(one, Mask) else Mask()
    whole = mask
    for one in exact:
        mask &= Mask() if isinstance(one, Mask) else one(whole)
    return _with_extra(mask, frame)


def _is_list_of_masks(spec: Any) -> bool:
    return isinstance(spec, (list, tuple)) and any(isinstance(one, (str, Mapping)) for one in spec)


def _with_extra(mask: Mask, frame: Frame) -> Mask:
    if not frame.extra:
        return mask

    def widened(array: Array | None, value: Any) -> Array | None:
        if array is None:
            return None
        array = np.broadcast_to(array, (*array.shape[:-1], frame.m))
        return np.concatenate([array, np.full((*array.shape[:-1], frame.extra), value, array.dtype)], axis=-1)

    bands = tuple(replace(band, extra=frame.extra) for band in mask.bands)
    return Mask(widened(mask.selected, True), widened(mask.bias, 0), mask.parts, bands)


def _reading(spec: Any, key: str) -> tuple[str, Any, Mapping[str, Any]]:
    """A mask as (kind, value, further options): the kind of a bare matrix is worked out from its numbers."""
    if isinstance(spec, str):
        if spec == "causal":
            return "causal", None, {}
        raise AttncliError(f"mask: {spec!r} is no mask", hint=_hint_for(spec), key=key)
    if isinstance(spec, Mapping):
        kinds = [name for name in spec if name in _KINDS]
        stray = [str(name) for name in spec if name not in _KINDS and name not in ("offset", "beyond")]
        if stray:
            raise AttncliError(f"mask: {stray[0]!r} is no kind of mask", hint=_hint_for(stray[0]), key=key)
        if spec.get("beyond") not in (None, "hide"):
            raise AttncliError(f"mask: beyond is hide, not {spec['beyond']!r}", key=key)
        if len(kinds) != 1:
            found = "none" if not kinds else " and ".join(kinds)
            raise AttncliError(
                f"a mask says one thing, and this one has {found}", key=key,
                hint="To apply several masks, write a list: [causal, {lengths: 2}].",
            )  # fmt: skip
        return kinds[0], spec[kinds[0]], {name: value for name, value in spec.items() if name != kinds[0]}
    return _kind_of_matrix(_matrix(spec, key), key), spec, {}


def _hint_for(word: str) -> tuple[str, ...]:
    from difflib import get_close_matches

    close = get_close_matches(word.lower(), [*_KINDS], 1)
    known = "Masks are causal, {keep: M}, {block: M}, {add: M}, {lengths: l}, {window: w}, or a list of these."
    return (f"Did you mean {close[0]}?", known) if close else (known,)


def _kind_of_matrix(matrix: Array, key: str) -> str:
    """The reading rule for a bare matrix: 0/1 with a 1 in it keeps; −∞ or negative values are added."""
    if matrix.dtype == bool or np.isin(matrix, (0, 1)).all():
        if matrix.any():
            return "keep"
        if matrix.size == 0:
            raise AttncliError("mask is empty", hint=_hint_for(""), key=key)
        raise AttncliError("mask is 0 throughout, which may mean two things", hint=SPELLINGS, key=key)
    if (matrix < 0).any():
        return "add"
    raise AttncliError("mask is neither 0/1 nor has it a negative number or −∞", hint=SPELLINGS, key=key)


def _matrix(value: Any, key: str) -> Array:
    try:
        matrix = np.asarray(value)
    except ValueError:
        matrix = np.asarray(None)
    if matrix.dtype.kind not in "bifu" or matrix.ndim == 0:
        raise AttncliError("mask is not a matrix of numbers", hint=SPELLINGS, key=key)
    return matrix


def _keep(value: Any, options: Any, frame: Frame, key: str) -> Any:
    return _selection(value, options, frame, key, "keep")


def _block(value: Any, options: Any, frame: Frame, key: str) -> Any:
    return _selection(value, options, frame, key, "block")


def _selection(value: Any, options: Mapping[str, Any], frame: Frame, key: str, kind: str) -> Any:
    matrix = _matrix(value, key)
    if not np.isin(matrix, (0, 1)).all():
        hint = ("{add: M} is for numbers that are added to the scaled scores.",)
        raise AttncliError(f"{{{kind}: M}} takes 0 and 1 (or true and false) alone", hint=hint, key=key)
    allowed = matrix.astype(bool)
    allowed = allowed if kind == "keep" else ~allowed
    return _fitted(allowed, frame, key, options, lambda array: Mask(array, None, (kind,)), missing=False)


def _add(value: Any, options: Mapping[str, Any], frame: Frame, key: str) -> Any:
    matrix = _matrix(value, key).astype(float)
    if np.isnan(matrix).any() or np.isposinf(matrix).any():
        raise AttncliError("{add: M} takes finite numbers and −∞, and here is NaN or +∞", key=key)

    def mask(array: Array) -> Mask:
        hidden = np.isneginf(array)
        finite = np.where(hidden, 0.0, array)
        return Mask(~hidden if hidden.any() else None, finite if finite.any() else None, ("add",))

    return _fitted(matrix, frame, key, options, mask, missing=-np.inf)


def _fitted(
    matrix: Array, frame: Frame, key: str, options: Mapping[str, Any], make: Callable[[Array], Mask], missing: Any
) -> Any:
    """The mask of a matrix that fits the frame; a short one waits for what the other masks hide."""
    if frame.columns and matrix.ndim >= 2:
        matrix = matrix.swapaxes(-1, -2)
    hide = options.get("beyond") == "hide"
    short = matrix.ndim > 0 and (0 if hide else 1) < matrix.shape[-1] < frame.m
    size = (*matrix.shape[:-1], frame.m) if short else matrix.shape
    if not _fits(size, frame):
        raise _misfit(matrix, frame, key)
    if not short:
        return make(matrix)
    columns = frame.m - matrix.shape[-1]
    padded = np.concatenate([matrix, np.full((*matrix.shape[:-1], columns), missing, matrix.dtype)], axis=-1)

    def when_others_are_known(others: Mask) -> Mask:
        hidden = others.allowed is not None and not others.allowed[..., -columns:].any()
        if not hide and not hidden:
            raise _misfit(matrix, frame, key)
        return make(padded)

    return when_others_are_known


def _fits(size: tuple[int, ...], frame: Frame) -> bool:
    """(m), (n, m), (h, n, m), (batch.., 1 or h, n, m); an axis of 1 stands for all of its axis."""
    target = (*frame.batch, frame.heads, frame.n, frame.m)
    if not 1 <= len(size) <= len(target):
        return False
    return all(a in (1, b) for a, b in zip(reversed(size), reversed(target), strict=False)) and size[-1] == frame.m


def _misfit(matrix: Array, frame: Frame, key: str) -> AttncliError:
    n, m, h = frame.n, frame.m, frame.heads
    shown = matrix.swapaxes(-1, -2) if frame.columns and matrix.ndim >= 2 else matrix
    size, names = (f"({m}, {n})", "(m, n)") if frame.columns else (f"({n}, {m})", "(n, m)")
    what = f"mask has shape {shown.shape}, but there are {n} queries and {m} keys"
    hints = [f"A mask is {names} = {size}, (h, n, m), (batch, 1 or h, n, m), or a row of m = {m} numbers."]
    if matrix.ndim >= 2 and _fits((*matrix.shape[:-2], matrix.shape[-1], matrix.shape[-2]), frame):
        hints.append("Are rows and columns swapped? Its transpose fits.")
    elif matrix.ndim == 3 and frame.batch and matrix.shape[0] == frame.batch[-1]:
        hints.append(f"Three axes are (h, n, m), with h = {h}. One mask per batch entry is (batch, 1, n, m).")
    elif matrix.ndim >= 3 and frame.batch and matrix.shape[0] == frame.batch[-1] * h:
        hints.append(f"Are batch and heads fused? Reshape it to ({frame.batch[-1]}, {h}, {n}, {m}).")
    elif 1 < (matrix.shape[-1] if matrix.ndim else 0) < m:
        hints.append("{keep: M, beyond: hide} hides the keys that the mask does not reach.")
    return AttncliError(what, hint=hints, key=key)


def _lengths(value: Any, options: Any, frame: Frame, key: str) -> Mask:
    lengths = per_batch(value, frame, key, "lengths")
    if (lengths < 0).any() or (lengths > frame.m).any():
        raise AttncliError(f"lengths must lie between 0 and the number of keys, {frame.m}", key=key)
    return Mask(np.arange(frame.m) < lengths[..., None, None, None], None, (f"lengths {_said(lengths)}",))


def _window(value: Any, options: Mapping[str, Any], frame: Frame, key: str) -> Mask:
    sides = list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value, value]
    if value is None or len(sides) != 2 or any(side is not None and not _whole(side) for side in sides):
        hint = "{window: w} is w keys on each side; {window: [left, right]} counts them apart; -1 is no bound."
        raise AttncliError("window takes a whole number, or two", hint=hint, key=key)
    left, right = (np.inf if side is None or side < 0 else int(side) for side in sides)
    band = Band(_offset(options, frame, key, "window"), left, right, frame.n, frame.m)
    text = [("all" if np.isinf(side) else str(side)) for side in (left, right)]
    return Mask(None, None, (f"window: {text[0]} keys to the left, {text[1]} to the right",), (band,))


def _causal(value: Any, options: Mapping[str, Any], frame: Frame, key: str) -> Mask:
    offset = _offset({**options, "causal": value}, frame, key, "causal")
    corner = f" ({value})" if value in CAUSAL else ""
    return Mask(None, None, (f"causal{corner}",), (Band(offset, np.inf, 0, frame.n, frame.m),))


def _offset(options: Mapping[str, Any], frame: Frame, key: str, kind: str) -> Array:
    """At which key the first query stands: shape () or batch."""
    if options.get("offset") is not None:
        return per_batch(options["offset"], frame, key, "offset")
    if kind == "causal":
        return np.asarray(_corner(options.get("causal"), frame, key))
    return np.asarray(frame.past if frame.positions is None else frame.positions)


def _corner(value: Any, frame: Frame, key: str) -> int:
    """How far the first query stands along the keys: cached keys come before it; else the corner decides."""
    if value not in (None, True, *CAUSAL):
        raise AttncliError(f"causal is top-left or bottom-right, not {value!r}", key=key)
    if value == "bottom-right":
        return frame.m - frame.n
    if frame.past or value == "top-left" or frame.n == frame.m:
        return frame.past
    pictures = [_picture(frame, offset) for offset in (0, frame.m - frame.n)]
    hint = [f"{{causal: {name}}}:  {picture}" for name, picture in zip(CAUSAL, pictures, strict=True)]
    what = f"causal may mean two things for {frame.n} queries and {frame.m} keys"
    raise AttncliError(what, hint=["Say which corner the first query stands in (1 = may attend):", *hint], key=key)


def _picture(frame: Frame, offset: int, most: int = 8) -> str:
    """The first rows of a causal mask, as 0 and 1."""
    rows = ["".join("1" if j <= i + offset else "0" for j in range(min(frame.m, most))) for i in range(frame.n)]
    return " ".join(rows[:most]) + (" …" if max(frame.n, frame.m) > most else "")


def _positions(specs: Iterable[Any], frame: Frame) -> Any:
    """The offset of the first causal mask in a list, which a window beside it shares."""
    for one in specs:
        if isinstance(one, Mapping) and "causal" in one:
            if one.get("offset") is not None:
                return per_batch(one["offset"], frame, "mask", "offset")
            if one["causal"] == "bottom-right":
                return frame.m - frame.n
    return None


def per_batch(value: Any, frame: Frame, key: str, what: str) -> Array:
    """A whole number, or one a batch entry, as an array of shape () or batch."""
    if isinstance(value, bool) or np.asarray(value).dtype.kind not in "if":
        raise AttncliError(f"{what} takes a whole number, or one per batch entry", key=key)
    numbers = np.asarray(value)
    if not (np.isfinite(numbers) & (numbers == np.floor(numbers))).all():
        raise AttncliError(f"{what} takes whole numbers", key=key)
    if (np.abs(numbers) > MOST).any():
        raise AttncliError(f"{what} takes whole numbers up to {MOST:,}", key=key)
    if numbers.ndim and numbers.shape not in ((1,), frame.batch):
        there = f"there are {int(np.prod(frame.batch))} batch entries" if frame.batch else "there is no batch axis"
        raise AttncliError(f"{what} has {numbers.size} numbers, but {there}", key=key)
    return numbers.astype(int) if frame.batch or numbers.ndim == 0 else numbers.astype(int)[0]


def _whole(number: Any) -> bool:
    if isinstance(number, bool) or np.asarray(number).dtype.kind not in "if":
        return False
    return float(number).is_integer() and abs(number) <= MOST


def _said(numbers: Array) -> str:
    return ", ".join(str(number) for number in np.ravel(numbers))


_KINDS: dict[str, Callable[[Any, Any, Frame, str], Any]] = {
    "causal": _causal,
    "keep": _keep,
    "block": _block,
    "add": _add,
    "lengths": _lengths,
    "window": _window,
}
"""Each kind reads (value, options, frame, key) and gives a Mask, or a function that waits for the other masks."""


def _one(kind: str, value: Any, options: Mapping[str, Any], frame: Frame, key: str) -> Any:
    return _KINDS[kind](value, options, frame, key)
