"""Problem: an attention layer and its inputs, with every size agreed and checked once.

Whatever the layout it was written in, a Problem holds its arrays in the row convention (Q = Z W), with fused
heads: W_Q is (d_model, h·d_k), and head r is the r-th block of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.language.errors import AttncliError, Collector
from attncli.maths import ops
from attncli.maths.ops import Array
from attncli.model import settings
from attncli.model.fused import fused
from attncli.model.keys import KEYS, unknown_key
from attncli.model.needs import missing, superfluous
from attncli.model.sizes import SCORE_LIKE, STARTS, Sizes
from attncli.stages.inputs import LayerInputs

if TYPE_CHECKING:
    from attncli.language.written import Written

WEIGHTS = ("W_Q", "W_K", "W_V", "W_O", "W_1", "W_2")
"""Weights that ``weight_layout`` speaks of. W_a is no projection with an in and an out: it is always q W_a kᵀ."""

MOST_AXES = 24
"""Of any array, batch axes included: numpy 1.26 has room for 32, and some are added on the way."""

_FINITE = ("Z", "memory", "memory_V", *WEIGHTS, "W_a", "v", "b", "b_Q", "b_K", "b_V", "b_O")


class Problem(LayerInputs):
    """An attention problem, from the keys of a problem file: ``Problem(Z=..., W_Q=..., W_K=..., W_V=...)``.

    Matrices are anything that numpy makes an array of, in the shapes of the table of keys; ``mask`` is "causal",
    {"keep": M}, {"block": M}, {"add": M}, {"lengths": l}, {"window": w}, a bare matrix, or a list of these.

    ``foreign``: given weights and outputs are somebody else's, and a mask or V may stand beside them, to hold them to.

    Raises AttncliError, or AttncliErrors with every independent mistake, where keys are unknown, shapes don't fit,
    something is missing, or too much is given.

    Sizes: ``n`` queries, ``m`` keys (cached ones included), ``d_model``, ``d_k``, ``d_v``, ``d_out`` (None where
    unknown), ``num_heads`` (h), ``num_kv_heads`` (g), ``batch`` (leading axes).

    >>> Problem(Q=[[1, 0]], K=[[1, 0], [0, 1]], V=[[1], [2]]).m
    2
    """

    def __init__(
        self, *, written: Mapping[str, Written] | None = None, factors: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (), exact: bool = False, foreign: bool = False, **keys: Any,
    ) -> None:  # fmt: skip
        self.given, self.parts, self.sizes = {}, {}, {}
        self.keys = {name: value for name, value in keys.items() if value is not None}
        self.written = dict(written or {})
        self.factors = dict(factors or {})
        self.notes = tuple(notes)
        self.exact = exact
        self.foreign = foreign
        _refuse_unknown(self.keys)
        self._read_settings()
        self._read_arrays()
        self._agree_on_sizes()

    def replace(self, **keys: Any) -> Problem:
        """The same problem with some keys changed (None takes a key away)."""
        beside = {name: getattr(self, name) for name in ("written", "factors", "notes", "exact", "foreign")}
        return Problem(**beside, **{**self.keys, **keys})

    # What is set: everything but the arrays

    title: str | None
    source: str | None
    note: str | None
    layout: str
    weight_layout: str
    per_head: bool
    expect: Any
    heads_were_given: bool
    tokens: tuple[str, ...] | None
    memory_tokens: tuple[str, ...] | None

    def _read_settings(self) -> None:
        errors, get = Collector(), self.keys.get
        self.title, self.source, self.note = get("title"), get("source"), get("note")
        self.layout = settings.choice(self.keys, "layout", errors)
        self.columns = self.layout == "columns"
        default = "out_in" if self.columns else "in_out"
        self.weight_layout = settings.choice(self.keys, "weight_layout", errors) if get("weight_layout") else default
        self.score = settings.choice(self.keys, "score", errors)
        self.empty_rows = settings.choice(self.keys, "empty_rows", errors)
        self.rounding = settings.choice(self.keys, "rounding", errors)
        self.dtype: np.dtype[Any] = np.dtype(object if self.exact else settings.choice(self.keys, "dtype", errors))
        self.scale = settings.number(self.keys, "scale", errors)
        self.softcap = settings.number(self.keys, "softcap", errors, positive=True)
        self.mask_fill = settings.number(self.keys, "mask_fill", errors)
        self.round = settings.decimals(self.keys, errors)
        self.per_head = settings.flag(self.keys, "per_head", errors)
        self.expect = get("expect")
        self._read_head_counts(errors)
        errors.raise_any()

    def _read_head_counts(self, errors: Collector) -> None:
        given, kv_given = (settings.count(self.keys, name, errors) for name in ("num_heads", "num_kv_heads"))
        if self.keys.get("per_head"):
            given = given or self._head_axis("Q", "outputs")
            kv_given = kv_given or self._head_axis("K", "V")
        if given is None and isinstance(self.keys.get("heads"), Sequence):
            given = len(self.keys["heads"]) or None
        given = given or self._head_axis(*SCORE_LIKE)
        self.heads_were_given = given is not None
        self.num_heads = given or 1
        self.num_kv_heads = kv_given or self.num_heads
        if self.num_heads % self.num_kv_heads:
            errors.add(AttncliError(
                f"num_heads = {self.num_heads} is no multiple of num_kv_heads = {self.num_kv_heads}",
                hint="Each key/value head serves the same number of query heads.", key="num_kv_heads",
            ))  # fmt: skip

    def _head_axis(self, *names: str) -> int | None:
        """The size of the third axis from last, of the first of these keys that has one."""
        shapes = [_shape(self.keys[name]) for name in names if name in self.keys]
        return next((shape[-3] for shape in shapes if len(shape) > 2), None)

    # The arrays, in rows

    def _read_arrays(self) -> None:
        errors = Collector()
        arrays: dict[str, Array] = {}
        raw = dict(self.keys)
        if "heads" in raw:
            with errors.collect():
                raw |= fused(raw, self.num_heads, self.columns, self.weight_layout)
        for name, key in KEYS.items():
            if name in raw and key.kind in ("matrix", "vector"):
                with errors.collect():
                    arrays[name] = self._array(name, raw[name], key.kind)
        errors.raise_any()
        self.arrays = arrays
        self.tokens = settings.labels(self.keys, "tokens")
        self.memory_tokens = settings.labels(self.keys, "memory_tokens")

    def _array(self, name: str, value: Any, kind: str) -> Array:
        try:
            with np.errstate(over="ignore"):  # a number beyond float16 is its infinity, and shown as such
                if np.iscomplexobj(value):
                    raise TypeError
                array = np.asarray(value, dtype=self.dtype)
        except (ValueError, TypeError, OverflowError):
            raise AttncliError(f"{name} is no matrix of numbers with rows of one length", key=name) from None
        array = _as_matrix(name, array) if kind == "matrix" else _as_vector(name, array)
        transposed = kind == "matrix" and self.stored_transposed(name)
        if array.size == 0:
            raise AttncliError(f"{name} is empty: it has shape {array.shape}", key=name)
        if array.ndim > MOST_AXES:
            raise AttncliError(f"{name} has {array.ndim} axes, and at most {MOST_AXES} are read", key=name)
        if name in _FINITE and not self.exact and not (np.isfinite(array.min()) and np.isfinite(array.max())):
            written = np.asarray(value, dtype=float)  # a number too large for the dtype is finite as written
            if not np.isfinite(written).all():
                raise self._not_finite(name, written)
        # Contiguous, because BLAS rounds a transposed view otherwise: rows and columns must agree to the last bit.
        return np.ascontiguousarray(array.swapaxes(-1, -2) if transposed else array)

    def _not_finite(self, name: str, array: Array) -> AttncliError:
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        cell = ",".join(str(i + 1) for i in index)
        written = self.written.get(name)
        where = written.place(index) if written else None
        found = "NaN" if np.isnan(array[index]) else f"{array[index]}"
        what = f"{name}[{cell}] is {found}: inputs and weights are finite numbers"
        return AttncliError(what, key=name, where=where)

    def stored_transposed(self, name: str) -> bool:
        """Whether a key's matrix is written as the transpose of what is held here."""
        if name in WEIGHTS:
            return self.weight_layout == "out_in"
        return self.columns and name != "W_a"

    def _agree_on_sizes(self) -> None:
        """Nothing too much, nothing too little, all of it fitting; raises every mistake at once."""
        errors = Collector()
        idle, too_much = superfluous(self)
        sizes = Sizes(self, idle)
        for error in too_much or (*missing(self), *sizes.errors):
            errors.add(error)
        self.past, self.extra = sizes.value.get("p", 0), sizes.value.get("e", 0)
        self.n, keys = sizes.value.get("n", 0), sizes.value.get("m", sizes.value.get("n", 0))
        has_keys = any(stage in self.arrays for stage in ("K", "W_K", "V", "W_V", *SCORE_LIKE))
        self.m = keys + self.past + self.extra if has_keys else 0
        self.d_model, self.d_k, self.d_v, self.d_out = (
            sizes.value.get(size) for size in ("d_model", "d_k", "d_v", "d_out")
        )
        self.d_memory = sizes.value.get("d_memory", self.d_model)
        self.batch = sizes.batch
        if not too_much and not sizes.unsure & {"n", "m"}:
            with errors.collect():
                self._read_mask()
        errors.raise_any()
        self._label_keys()
        self._read_heads_of_given()

    def _label_keys(self) -> None:
        """A label for every key: those of the tokens in self-attention; cached and extra keys are called so."""
        own = self.m - self.past - self.extra
        if self.memory_tokens is None and self.tokens and not self.is_cross and own == self.n:
            self.memory_tokens = self.tokens
        if self.memory_tokens is not None:
            cached = [f"past {j}" for j in range(1, self.past + 1)] if len(self.memory_tokens) == own else []
            further = [f"extra {j}" for j in range(1, self.extra + 1)]
            self.memory_tokens = (*cached, *self.memory_tokens, *further)[: self.m]

    def round_in_words(self) -> str:
        """What is rounded: "every stage to 2 decimals", "weights to 2 decimals"; empty where nothing is."""
        counts = {"every stage": self.round} if isinstance(self.round, int) else self.round or {}
        return ", ".join(f"{name} to {count} decimal{'' if count == 1 else 's'}" for name, count in counts.items())

    def _read_heads_of_given(self) -> None:
        """The given stages, and cached keys and values, with their head axis: (batch.., head, row, column)."""
        heads = {"Q": self.num_heads, "outputs": self.num_heads}
        self.given, self.parts = {}, {}
        for name in (*STARTS, "past_K", "past_V", "extra_K", "extra_V"):
            if (array := self.arrays.get(name)) is None:
                continue
            if name in SCORE_LIKE:
                array = array if array.ndim > 2 else array[None]
            elif name != "concat" and not self.per_head:
                array = ops.split_heads(array, heads.get(name, self.num_kv_heads))
            (self.given if name in STARTS else self.parts)[name] = array

    def _read_mask(self) -> None:
        spec = self.mask_spec = self.keys.get("mask")
        if spec is None:
            self.mask = None
            return
        from attncli.model import masks

        m = self.m - self.extra
        frame = masks.Frame(self.n, m, self.num_heads, self.batch, self.past, self.extra, self.columns)
        self.mask = masks.build(spec, frame)

    def mask_in_words(self) -> list[str]:
        """Who may attend to whom: "3 猫 may attend to 私, は, 猫"; empty without a mask."""
        if self.mask is None:
            return []
        from attncli.model.mask_words import in_words

        return in_words(self.mask, self.tokens or self.n, self.memory_tokens or self.m)

    def labels(self, axis: str) -> tuple[str, ...] | None:
        """The tokens along an axis, "n" (queries) or "m" (keys); None where it has no labels."""
        return {"n": self.tokens, "m": self.memory_tokens}.get(axis)

    def head_block(self, name: str, head: int) -> Array:
        """One head's own weights or bias (0-based): W_Q, W_K, W_V, b_Q ... by columns, W_O by rows."""
        heads = self.num_heads if name in ("W_Q", "b_Q", "W_O") else self.num_kv_heads
        array = self.arrays[name]
        axis = 0 if name == "W_O" else -1
        block: Array = np.split(array, heads, axis=axis)[head]
        return block


def _refuse_unknown(keys: Mapping[str, Any]) -> None:
    errors = Collector()
    for name in keys:
        if name == "from":
            errors.add(AttncliError("from is for problem files: attncli.load reads it", key=name))
        elif name not in KEYS:
            errors.add(unknown_key(name))
    errors.raise_any()


def _shape(value: Any) -> tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError:  # ragged: said where the matrix is read
        return ()


def _as_matrix(name: str, array: Array) -> Array:
    if array.ndim == 0:
        raise AttncliError(f"{name} is a single number, not a matrix", hint=f"A 1 × 1 matrix is [[{array}]].", key=name)
    return array[None] if array.ndim == 1 else array


def _as_vector(name: str, array: Array) -> Array:
    if array.ndim == 0 or array.ndim - sum(size == 1 for size in array.shape) > 1:
        raise AttncliError(f"{name} has shape {array.shape}, and is one row of numbers", key=name)
    return array.ravel()
