"""Sizes: what n, m, d_model, d_k, d_v are, by which matrix, and what doesn't fit them.

Each mismatch says what the sizes are, where they come from, and the mend, tried first: does the transpose fit,
are the heads fused?
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.errors import AttncliError, Collector
from attncli.ops import Array

if TYPE_CHECKING:
    from attncli.problem import Problem

SCORE_LIKE = ("scores", "scaled_scores", "capped_scores", "masked_scores", "weights")
STARTS = ("Q", "K", "V", *SCORE_LIKE, "outputs", "concat")
"""Stages that a problem may start at, in the order of the table of stages."""

_PROJECTIONS = {"Q": "W_Q", "K": "W_K", "V": "W_V"}


class Sizes:
    """The sizes of a problem, agreed one matrix after the other; the first to bind a size decides."""

    def __init__(self, problem: Problem) -> None:
        self.p = problem
        self.arrays: dict[str, Array] = problem.arrays
        self.bound: dict[str, tuple[int, str]] = {}
        self.errors = Collector()
        self.past = self.extra = 0
        self.batch: tuple[int, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name in ("n", "m", "d_model", "d_memory", "d_k", "d_v", "d_out"):
            return self.bound[name][0] if name in self.bound else None
        raise AttributeError(name)

    # What is there, and what isn't

    def refuse_unused_and_missing(self) -> None:
        """Every matrix has a use, and everything that the stages need is there."""
        has = self.arrays.__contains__
        starts = [stage for stage in SCORE_LIKE if has(stage)]
        computed = [stage for stage in ("Q", "K", "V") if not has(stage)]
        if starts or has("outputs") or has("concat"):
            computed = [stage for stage in computed if stage == "V" and has("W_V")]
        elif "V" in computed and not (has("W_V") or has("W_Q") or has("W_K")):
            computed.remove("V")  # queries and keys alone: the stages up to the weights
        for stage in computed:
            with self.errors.collect():
                self._require(stage)
        if not self.errors and not computed and not starts and not any(map(has, ("Q", "outputs", "concat"))):
            self.errors.add(
                AttncliError("there is nothing to compute", hint="Give Z with W_Q, W_K and W_V, or Q, K and V.")
            )
        self._refuse_unused(computed)
        self._refuse_half_scores()
        self.errors.raise_any()

    def _require(self, stage: str) -> None:
        weight, side = _PROJECTIONS[stage], "Z" if stage == "Q" else "memory"
        has_source = (
            "Z" in self.arrays
            or (stage != "Q" and "memory" in self.arrays)
            or (stage == "V" and "memory_V" in self.arrays)
        )
        if weight not in self.arrays:
            instead = f"Give {weight}, or {stage} itself in place of Z and {weight}."
            raise AttncliError(f"{weight} is missing, so {stage} can't be computed", hint=instead)
        if not has_source:
            source = "Z" if stage == "Q" else f"Z (or {side})"
            raise AttncliError(
                f"{source} is missing, so {stage} can't be computed from {weight}", hint=f"Give {source}.", key=weight
            )

    def _refuse_unused(self, computed: list[str]) -> None:
        sources = {"Q": "Z", "K": "memory" if "memory" in self.arrays else "Z"}
        sources["V"] = "memory_V" if "memory_V" in self.arrays else sources["K"]
        used = {sources[stage] for stage in computed}
        given = [stage for stage in STARTS if stage in self.arrays]
        for name in ("Z", "memory", "memory_V"):
            if name in self.arrays and name not in used:
                what = f"{name} is given, but nothing is computed from it: {', '.join(given)} {_are(given)} given"
                hint = f"Drop {name}, or drop {given[0] if given else 'the rest'}, which is then computed."
                self.errors.add(AttncliError(what, hint=hint, key=name))

    def _refuse_half_scores(self) -> None:
        """The score function's own matrices: all of those that it needs, and none of another's."""
        needs = {"general": ("W_a",), "additive": ("W_1", "W_2", "v")}
        started = [
            stage
            for stage in ("scores", "scaled_scores", "capped_scores", "masked_scores", "weights")
            if stage in self.arrays
        ]
        if not started:
            for name in needs.get(self.p.score, ()):
                if name not in self.arrays:
                    self.errors.add(
                        AttncliError(f"score: {self.p.score} needs {name}", hint=f"Give {name}.", key="score")
                    )
        for score, names in needs.items():
            names = (*names, "b") if score == "additive" else names
            for name in names:
                if self.p.score != score and name in self.arrays:
                    self.errors.add(
                        AttncliError(f"{name} belongs to score: {score}", hint=f"Add score: {score}.", key=name)
                    )
        for one, other in (("past_K", "past_V"), ("past_V", "past_K"), ("extra_K", "extra_V"), ("extra_V", "extra_K")):
            if one in self.arrays and other not in self.arrays:
                self.errors.add(AttncliError(f"{one} comes with {other}, and {other} is missing", key=one))
        if (self.p.score == "dot" or "scores" not in self.arrays) or self.p.scale is not None:
            return
        if self.p.score == "scaled_dot":
            hint = "Give scale (1/√d_k, e.g. scale: 1/sqrt(64)), or score: dot where they are not scaled."
            self.errors.add(
                AttncliError("scores are given without Q and K, so √d_k is not known", hint=hint, key="scores")
            )

    # How it fits

    def agree(self) -> None:
        """Bind every size, and raise for all that don't fit."""
        h, g = self.p.num_heads, self.p.num_kv_heads
        for step in (
            self._inputs,
            self._projections,
            self._given,
            self._cached,
            self._score_matrices,
            self._output,
            self._labels,
        ):
            step(h, g)
        self._batch()
        self.errors.raise_any()

    def _inputs(self, h: int, g: int) -> None:
        self._bind("n", "Z", -2)
        self._bind("d_model", "Z", -1)
        self._bind("m", "memory", -2)
        self._bind("d_memory", "memory", -1)
        if "memory" not in self.arrays and "Z" in self.arrays:
            if "memory_V" not in self.arrays and "K" not in self.arrays and "V" not in self.arrays:
                self.bound["m"] = self.bound["n"]
            self.bound["d_memory"] = self.bound["d_model"]
        if "memory_V" in self.arrays:
            self._bind("m", "memory_V", -2)
            self._bind("d_memory_V", "memory_V", -1)
        elif "d_memory" in self.bound:
            self.bound["d_memory_V"] = self.bound["d_memory"]

    def _projections(self, h: int, g: int) -> None:
        same = self.p.score not in ("general", "additive")
        for weight, bias, d_in, width, heads in (
            ("W_Q", "b_Q", "d_model", "d_k" if same else "d_q", h),
            ("W_K", "b_K", "d_memory", "d_k", g),
            ("W_V", "b_V", "d_memory_V", "d_v", g),
        ):
            if weight in self.arrays:
                shape = f"({self._name(d_in)}, {_times(heads)}{width})"
                if (
                    self._bind(d_in, weight, 0, shape)
                    and self._split(weight, heads, width, shape)
                    and bias in self.arrays
                ):
                    self._bias(bias, self.arrays[weight].shape[1], weight)

    def _bias(self, bias: str, width: int, weight: str) -> None:
        if self.arrays[bias].size != width:
            self.errors.add(AttncliError(
                f"{bias} has {self.arrays[bias].size} numbers, but {weight} has {self._count(weight, 1)}",
                hint=f"{bias} is added to every row of the product with {weight}.", key=bias,
            ))  # fmt: skip

    def _given(self, h: int, g: int) -> None:
        same = self.p.score not in ("general", "additive")
        for name, rows, width, heads in (
            ("Q", "n", "d_k" if same else "d_q", h),
            ("K", "m", "d_k", g),
            ("V", "m", "d_v", g),
            ("outputs", "n", "d_v", h),
        ):  # fmt: skip
            if name in self.arrays and self._heads_of(name, heads) and self._bind(rows, name, -2):
                self._split(name, 1 if self.p.per_head else heads, width, f"({rows}, {_times(heads)}{width})", axis=-1)
        for name in SCORE_LIKE:
            if name in self.arrays and self._heads_of(name, h) and self._bind("n", name, -2, "(n, m)"):
                self._bind("m", name, -1, "(n, m)")
        if "concat" in self.arrays:
            self._bind("n", "concat", -2)
            self._split("concat", h, "d_v", f"(n, {_times(h)}d_v)", axis=-1)

    def _heads_of(self, name: str, heads: int) -> bool:
        """Whether a matrix that carries a head axis has as many heads as the problem."""
        array = self.arrays[name]
        carries = self.p.per_head if name in ("Q", "K", "V", "outputs") else array.ndim > 2
        if not carries and name not in ("Q", "K", "V", "outputs") and heads > 1:
            found: int | str = "no head axis"
        elif not carries or (
            array.ndim > 2 and array.shape[-3] in (heads, 1 if name not in ("Q", "K", "V", "outputs") else heads)
        ):
            return True
        else:
            found = f"{array.shape[-3]} heads" if array.ndim > 2 else "no head axis"
        self.errors.add(AttncliError(
            f"{name} has shape {array.shape}, so {found}, but there are {heads}",
            hint="The head axis is the third from last: (batch.., head, row, column).", key=name,
        ))  # fmt: skip
        return False

    def _cached(self, h: int, g: int) -> None:
        new = self.bound.get("m")
        for part in ("past", "extra"):
            name_k, name_v = f"{part}_K", f"{part}_V"
            if name_k not in self.arrays or name_v not in self.arrays:
                continue
            for name, width in ((name_k, "d_k"), (name_v, "d_v")):
                self._bind(part, name, -2)
                self._split(name, 1 if self.p.per_head else g, width, f"(p, {_times(g)}{width})", axis=-1)
            setattr(self, part, self.bound[part][0])
        if new:
            self.bound["m"] = (new[0] + self.past + self.extra, new[1])

    def _score_matrices(self, h: int, g: int) -> None:
        general = self.p.score == "general" and "W_a" in self.arrays
        if general and self._bind("d_q", "W_a", 0, "(d_q, d_k)"):
            self._bind("d_k", "W_a", 1, "(d_q, d_k)")
        if self.p.score == "additive":
            for name, width in (("W_1", "d_q"), ("W_2", "d_k")):
                if name in self.arrays and self._bind(width, name, 0, f"({width}, d_a)"):
                    self._bind("d_a", name, 1, f"({width}, d_a)")
            for name in ("v", "b"):
                if name in self.arrays and "d_a" in self.bound and self.arrays[name].size != self.bound["d_a"][0]:
                    size, by = self.bound["d_a"]
                    what = (
                        f"{name} has {self.arrays[name].size} numbers, but {by} has {self._count(by, 1)} (d_a = {size})"
                    )
                    self.errors.add(AttncliError(what, key=name))

    def _output(self, h: int, g: int) -> None:
        if "W_O" in self.arrays:
            shape = f"({_times(h)}d_v, d_model)"
            if "d_v" in self.bound:
                self.bound["h·d_v"] = (h * self.bound["d_v"][0], f"{h} × d_v" if h > 1 else self.bound["d_v"][1])
                self._bind("h·d_v", "W_O", 0, shape)
            self.bound["d_out"] = (self.arrays["W_O"].shape[1], "W_O")
            if "b_O" in self.arrays:
                self._bias("b_O", self.arrays["W_O"].shape[1], "W_O")
        elif "b_O" in self.arrays:
            self.errors.add(AttncliError("b_O is added to the product with W_O, and W_O is missing", key="b_O"))

    def _labels(self, h: int, g: int) -> None:
        for name, labels, axis in (("tokens", self.p.tokens, "n"), ("memory_tokens", self.p.memory_tokens, "m")):
            if labels is None or axis not in self.bound:
                continue
            size, by = self.bound[axis]
            allowed = {size} if axis == "n" else {size, size - self.past - self.extra, size - self.extra}
            if len(labels) not in allowed:
                array = self.arrays.get(by)
                batch = f"; {by} has a batch axis of {array.shape[0]}" if array is not None and array.ndim > 2 else ""
                what = f"{name} has {len(labels)} labels, but {by} has {self._count(by, -2)} ({axis} = {size}{batch})"
                self.errors.add(AttncliError(what, hint=f"One label a row of {by}.", key=name))

    def _batch(self) -> None:
        """The leading axes of everything that has some, which must agree."""
        lead: dict[str, tuple[int, ...]] = {}
        for name, array in self.arrays.items():
            if array.ndim < 2 or name.startswith(("W_", "b")):
                if array.ndim > 2:
                    what = f"{name} has {array.ndim} axes, and a weight is one matrix"
                    self.errors.add(
                        AttncliError(
                            what, hint="Per-head weights go under heads:, or side by side with num_heads.", key=name
                        )
                    )
                continue
            scores = name.endswith("scores") or name == "weights"
            own_heads = scores or (self.p.per_head and name not in ("Z", "memory", "memory_V", "concat"))
            lead[name] = array.shape[: -3 if own_heads else -2]
        for name, axes in lead.items():
            try:
                self.batch = np.broadcast_shapes(self.batch, axes)
            except ValueError:
                what = f"{name} has the batch axes {axes}, but {_first(lead, self.batch)} has {self.batch}"
                self.errors.add(AttncliError(what, hint="Leading axes are batch axes, and must agree.", key=name))

    # One size of one matrix

    def _bind(self, size: str, name: str, axis: int, shape: str = "") -> bool:
        """Bind a size to an axis of a matrix, or hold the matrix to what it is bound to."""
        if name not in self.arrays:
            return False
        array = self.arrays[name]
        if size not in self.bound:
            self.bound[size] = (array.shape[axis], name)
        if array.shape[axis] == self.bound[size][0]:
            return True
        self.errors.add(self._mismatch(size, name, axis, shape))
        return False

    def _mismatch(self, size: str, name: str, axis: int, shape: str) -> AttncliError:
        array = self.arrays[name]
        expected, by = self.bound[size]
        by_array = self.arrays.get(by)
        source = by
        if by_array is not None:
            along = 0 if size in ("n", "m", "past", "extra") else 1
            along = 0 if by in ("W_a", "W_1", "W_2") and size in ("d_q", "d_k") else along
            source = f"{by} has {self._count(by, along)}" if size[0] != "h" else by
        label = self._name(size)
        known = f"({label} = {expected})" if by_array is not None else f"is {label} = {expected}"
        what = f"{name} has {self._count(name, axis)}, but {source} {known}"
        hints = []
        if shape:
            first, second = shape.strip("()").split(", ")
            sizes = [str(expected), "..."] if axis in (0, -2) else ["...", str(expected)]
            pair, numbers = [first, second], sizes
            if self.p.stored_transposed(name):
                pair, numbers = pair[::-1], numbers[::-1]
            hints.append(f"{name} must be ({', '.join(pair)}) = ({', '.join(numbers)}).")
        if (
            array.ndim == 2
            and axis in (0, 1, -2, -1)
            and array.shape[1 - axis % 2] == expected
            and array.shape[0] != array.shape[1]
        ):
            hints.append("Is it transposed? Its transpose fits.")
        elif (
            name == "W_O"
            and not self.p.heads_were_given
            and "d_v" in self.bound
            and array.shape[0] % self.bound["d_v"][0] == 0
        ):
            hints.append("W_O joins several heads: give num_heads, and all heads' W_Q, W_K, W_V.")
        elif array.ndim == 2 and axis in (0, -2) and array.shape[0] == expected + 1 and name[0] == "W":
            hints.append("One row too many: is a bias in it? Give it apart, as b_...")
        return AttncliError(what, hint=" ".join(hints) if hints else (), key=name)

    def _split(self, name: str, heads: int, width: str, shape: str, axis: int = 1) -> bool:
        """Bind a head's width, from the columns of a fused matrix."""
        array = self.arrays[name]
        columns = array.shape[axis]
        if columns % heads:
            self.errors.add(AttncliError(
                f"{name} has {self._count(name, -1)}, which {heads} heads can't share equally",
                hint=f"{name} must be {shape}.", key=name,
            ))  # fmt: skip
            return False
        if width not in self.bound:
            self.bound[width] = (columns // heads, name)
        expected, by = self.bound[width]
        if columns // heads == expected:
            return True
        what = f"{name} has {self._count(name, -1)}, so {width} = {columns // heads}, but {by} has {width} = {expected}"
        hints = [f"{name} must have {heads * expected}."]
        if array.ndim == 2 and array.shape[0] == heads * expected:
            hints.append("Is it transposed? Its transpose fits.")
        elif not self.p.heads_were_given and columns % expected == 0 and name == "V":
            hints.append("If the heads are fused, give num_heads.")
        self.errors.add(AttncliError(what, hint=" ".join(hints), key=name))
        return False

    def _name(self, size: str) -> str:
        """A size as a person calls it: in self-attention the memory's width is d_model."""
        return "d_model" if size.startswith("d_memory") and "memory" not in self.arrays else size

    def _count(self, name: str, axis: int) -> str:
        """ "3 rows", "1 column": an axis of a matrix, as the user wrote it."""
        number, second = self.arrays[name].shape[axis], axis in (1, -1)
        word = "column" if second != self.p.stored_transposed(name) else "row"
        return f"{number} {word}{'' if number == 1 else 's'}"


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _times(heads: int) -> str:
    return f"{heads}·" if heads > 1 else ""


def _first(lead: dict[str, tuple[int, ...]], batch: tuple[int, ...]) -> str:
    return next((name for name, axes in lead.items() if axes == batch), "the rest")
