"""Sizes: what n, m, d_model, d_k, d_v are, which matrices say so, and what doesn't fit them.

`axes_of` says what each matrix's rows and columns count. All matrices vote on each size; one that is outvoted is
wrong. A mend is tried before it is offered: does everything fit once this matrix is transposed?
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attncli.language.errors import AttncliError
from attncli.stages.table import STAGES

if TYPE_CHECKING:
    from attncli.model.problem import Problem

SCORE_LIKE = tuple(stage.name for stage in STAGES.values() if stage.is_score_like)
STARTS = tuple(stage.name for stage in STAGES.values() if stage.start)
"""Stages that a problem may start at, in the order of the table of stages."""

# Widths before lengths: a transposed K is found by its width, before its rows are held against those of V.
_ORDER = ("d_model", "d_memory", "d_memory_V", "d_q", "d_k", "d_v", "d_a", "d_out", "n", "m", "p", "e")

Shape = tuple[int, ...]


class Axis(NamedTuple):
    """What an axis counts: a size, or that many for each of some heads."""

    size: str
    heads: int = 1

    def __str__(self) -> str:
        return self.size if self.heads == 1 else f"{self.heads}·{self.size}"


class Vote(NamedTuple):
    """A matrix's axis, which says what a size is."""

    name: str
    axis: int
    length: int
    heads: int

    @property
    def value(self) -> float:
        return self.length / self.heads


class Misfit(NamedTuple):
    """A vote that is outvoted: ``value`` is what the size is, by the ``witnesses`` (None: it can't be shared out)."""

    vote: Vote
    size: str
    value: int | None = None
    witnesses: tuple[Vote, ...] = ()


def source_of(problem: Problem, stage: str) -> str:
    """The key that Q, K or V is projected from."""
    side = "memory" if "memory" in problem.arrays else "Z"
    return "Z" if stage == "Q" else "memory_V" if stage == "V" and "memory_V" in problem.arrays else side


def axes_of(problem: Problem) -> dict[str, tuple[Axis, ...]]:
    """What rows and columns of every matrix count, in the row convention; a vector has one axis."""
    h, g = problem.num_heads, problem.num_kv_heads
    there = problem.arrays.__contains__
    from_z = any(there(f"W_{stage}") and source_of(problem, stage) == "Z" for stage in ("K", "V"))
    m = "n" if from_z and there("Z") else "m"
    d_q = "d_q" if problem.score in ("general", "additive") else "d_k"
    width = {"Z": "d_model", "memory": "d_memory", "memory_V": "d_memory_V"}
    d_in = {stage: width[source_of(problem, stage)] for stage in ("Q", "K", "V")}
    given = 1 if problem.per_head else h, 1 if problem.per_head else g
    return {
        "Z": (Axis("n"), Axis("d_model")),
        "memory": (Axis(m), Axis("d_memory")),
        "memory_V": (Axis(m), Axis("d_memory_V")),
        "W_Q": (Axis(d_in["Q"]), Axis(d_q, h)),
        "W_K": (Axis(d_in["K"]), Axis("d_k", g)),
        "W_V": (Axis(d_in["V"]), Axis("d_v", g)),
        "b_Q": (Axis(d_q, h),),
        "b_K": (Axis("d_k", g),),
        "b_V": (Axis("d_v", g),),
        "Q": (Axis("n"), Axis(d_q, given[0])),
        "K": (Axis(m), Axis("d_k", given[1])),
        "V": (Axis(m), Axis("d_v", given[1])),
        "past_K": (Axis("p"), Axis("d_k", given[1])),
        "past_V": (Axis("p"), Axis("d_v", given[1])),
        "extra_K": (Axis("e"), Axis("d_k", given[1])),
        "extra_V": (Axis("e"), Axis("d_v", given[1])),
        "W_a": (Axis("d_q"), Axis("d_k")),
        "W_1": (Axis("d_q"), Axis("d_a")),
        "W_2": (Axis("d_k"), Axis("d_a")),
        "v": (Axis("d_a"),),
        "b": (Axis("d_a"),),
        **{name: (Axis("n"), Axis(m)) for name in SCORE_LIKE},
        "outputs": (Axis("n"), Axis("d_v", given[0])),
        "concat": (Axis("n"), Axis("d_v", h)),
        "W_O": (Axis("d_v", h), Axis("d_out")),
        "b_O": (Axis("d_out"),),
    }


class Sizes:
    """The sizes that a problem's matrices agree on, and an error for each that doesn't."""

    def __init__(self, problem: Problem, idle: set[str]) -> None:
        self.p = problem
        self.arrays = {name: array for name, array in problem.arrays.items() if name not in idle}
        self.errors: list[AttncliError] = []
        self._refuse_head_axes()
        self.axes = {name: axes for name, axes in axes_of(problem).items() if name in self.arrays}
        self.shapes = {name: self.arrays[name].shape[-len(axes) :] for name, axes in self.axes.items()}
        self.value, misfits = _agree(self.shapes, self.axes)
        self.wrong: set[str] = set()
        if misfits:
            self._explain(misfits)
        self.unsure = {axis.size for name in self.wrong for axis in self.axes[name]}
        self.batch = self._batch()
        self._let_tokens_label_keys()
        self._hold_labels()

    # What has too many axes, or too few

    def _refuse_head_axes(self) -> None:
        """Refuse weights with a head axis, and given stages whose head axis isn't what the heads say."""
        lacking = []
        for name, array in list(self.arrays.items()):
            heads = self.p.num_kv_heads if name in ("K", "V") or name[:5] in ("past_", "extra") else self.p.num_heads
            if name[:2] == "W_" and array.ndim > 2:
                hint = "Per-head weights go under heads:, or side by side with num_heads."
                self._drop(name, f"{name} has {array.ndim} axes, and a weight is one matrix", hint)
            elif not self._has_head_axis(name):
                continue
            elif array.ndim > 2 and array.shape[-3] != heads:
                self._drop(
                    name, f"{name} has {array.shape[-3]} heads, but there {_be(heads)} {heads}: its shape is "
                    f"{self._shape(name)}", "The head axis is the third from last: (batch.., head, row, column).",
                )  # fmt: skip
            elif array.ndim == 2 and (heads > 1 or name not in SCORE_LIKE):
                lacking.append(name)
        if lacking:
            names = ", ".join(f"{name} {self._shape(name)}" for name in lacking)
            what = f"no head axis, but there {_be(self.p.num_heads)} {self.p.num_heads} heads (num_heads): {names}"
            if self.p.per_head and lacking[0] not in SCORE_LIKE:
                what = f"per_head says that there is a head axis, third from last, but there is none: {names}"
            for name in lacking[1:]:
                del self.arrays[name]
            self._drop(lacking[0], what, "Write one matrix a head: (batch.., head, row, column).")

    def _has_head_axis(self, name: str) -> bool:
        if name in SCORE_LIKE:
            return True
        stages = ("Q", "K", "V", "outputs", "past_K", "past_V")
        return self.p.per_head and (name in stages or (name[:5] == "extra" and self.arrays[name].ndim > 2))

    def _drop(self, name: str, what: str, hint: str) -> None:
        self.errors.append(AttncliError(what, hint=hint, key=self._key(name)))
        del self.arrays[name]

    # What doesn't fit

    def _explain(self, misfits: Sequence[Misfit]) -> None:
        """An error a misfit; where transposing a single matrix mends all of them, that matrix alone is wrong."""
        shapes = self.shapes
        mends = [name for name in shapes if len(shapes[name]) == 2 and not _agree(_swap(shapes, name), self.axes)[1]]
        wrong = [misfit.vote.name for misfit in misfits]
        mends.sort(key=lambda name: name not in wrong)
        if mends and mends[0] not in wrong:
            misfits = [_against(mends[0], shapes, self.axes)]
        self.wrong = {misfit.vote.name for misfit in misfits}
        unshared = [misfit for misfit in misfits if misfit.value is None]
        if len(unshared) > 1:
            self.errors.append(self._unshared(unshared))
            misfits = [misfit for misfit in misfits if misfit.value is not None]
        for misfit in misfits[:1] if mends else misfits:
            name = misfit.vote.name
            fits = name in mends or _mends(_swap(shapes, name), self.axes, name, len(wrong))
            turned_width = shapes[name][0]
            if name == "W_O" and turned_width != self.value.get("d_model", turned_width):
                fits = False  # then W_O would no longer lead back to d_model
            fits = fits and not self._lies_by_heads(misfit)
            self.errors.append(self._error(misfit, fits))

    def _unshared(self, misfits: Sequence[Misfit]) -> AttncliError:
        """Several matrices that the heads can't share: it is the number of heads that is wrong."""
        first = misfits[0].vote
        names = [misfit.vote.name for misfit in misfits]
        what = f"{first.heads} heads can't share the {self._count(first)} of {names[0]} equally"
        others = f", nor those of {' and '.join(names[1:])}"
        return AttncliError(what + others, hint=self._must_be(first.name), key="num_heads")

    def _error(self, misfit: Misfit, fits: bool) -> AttncliError:
        vote, value = misfit.vote, misfit.value
        name = vote.name
        if value is None:
            what = f"{name} has {self._count(vote)}, which {vote.heads} heads can't share equally"
        elif vote.heads > 1:
            make = f"{vote.heads} heads of {misfit.size} = {value} ({misfit.witnesses[0].name})"
            what = f"{name} has {self._count(vote)}, but {make} make {vote.heads * value}"
        else:
            what = f"{name} has {self._count(vote)}, but {self._said(misfit)}"
        hint = [self._must_be(name, fits)]
        if fits:
            hint.append("Is it transposed? Its transpose fits.")
        elif value is not None:
            hint += self._other_mends(misfit, value)
        return AttncliError(what, hint=" ".join(hint), key=self._key(name))

    def _key(self, name: str) -> str:
        """Where a matrix stands in the problem: in ``heads`` unless it has a key of its own."""
        return name if name in self.p.keys else "heads"

    def _said(self, misfit: Misfit) -> str:
        """Who says what the size is: "Z has 2 columns (d_model = 2)"."""
        names = [witness.name for witness in misfit.witnesses]
        first = misfit.witnesses[0]
        who = f"{', '.join(names[:-1])} and {names[-1]} have" if len(names) > 1 else f"{names[0]} has"
        equal = f"{misfit.size} = {misfit.value}"
        return f"{who} {equal}" if first.heads > 1 else f"{who} {self._count(first)} ({equal})"

    def _must_be(self, name: str, fits: bool = False) -> str:
        """ "W_K must be (d_model, d_k) = (2, ...)", by what the others say, as the user writes it."""
        axes = self.axes[name]
        known, _ = _agree(self.shapes, {one: those for one, those in self.axes.items() if one != name})
        numbers = [str(axis.heads * known[axis.size]) if axis.size in known else "..." for axis in axes]
        if len(axes) == 1:
            return f"{name} is one row of {axes[0]} = {numbers[0]} numbers."
        if fits:
            numbers = [str(length) for length in reversed(self.shapes[name])]
        names = [str(axis).replace("d_out", "d_model") for axis in axes]
        if self.p.stored_transposed(name):
            names.reverse()
            numbers.reverse()
        return f"{name} must be ({', '.join(names)}) = ({', '.join(numbers)})."

    def _other_mends(self, misfit: Misfit, value: int) -> Iterator[str]:
        vote = misfit.vote
        if self._lies_by_heads(misfit):
            yield f"If its axis of {vote.heads} counts the heads, say so: per_head: true."
            return
        more = vote.length > value and vote.length % value == 0
        if not self.p.heads_were_given and more and vote.name == "W_O" and vote.axis == 0:
            yield "W_O joins several heads: give num_heads, and all heads' W_Q, W_K and W_V."
        elif not self.p.heads_were_given and misfit.size in ("d_k", "d_v") and (more or value % vote.length == 0):
            yield "If heads lie side by side in it, give num_heads (and num_kv_heads)."
        elif vote.name in ("W_Q", "W_K", "W_V", "W_O") and vote.axis == 0 and vote.length == vote.heads * value + 1:
            line = "column" if self.p.stored_transposed(vote.name) else "row"
            yield f"One {line} too many: is a bias in it? Give it apart, as b_{vote.name[2:]}."

    def _lies_by_heads(self, misfit: Misfit) -> bool:
        """Whether a given stage, or cached keys or values, would fit if its third axis from last counted heads."""
        name, _, length, heads = misfit.vote
        lead = self.arrays[name].shape[:-2]
        by_heads = name in ("Q", "K", "V", "outputs") or name.startswith(("past_", "extra_"))
        return by_heads and not self.p.per_head and heads > 1 and lead[-1:] == (heads,) and length == misfit.value

    def _count(self, vote: Vote) -> str:
        """ "3 rows", "1 column": an axis of a matrix, as the user wrote it."""
        if len(self.axes[vote.name]) == 1:
            word = "number"
        else:
            word = "row" if (vote.axis == 0) != self.p.stored_transposed(vote.name) else "column"
        return f"{vote.length} {word}{'' if vote.length == 1 else 's'}"

    def _shape(self, name: str) -> Shape:
        """A matrix's shape as the user wrote it."""
        shape = self.p.arrays[name].shape
        return (*shape[:-2], shape[-1], shape[-2]) if self.p.stored_transposed(name) else shape

    # What goes with the matrices: batch axes, labels

    def _batch(self) -> Shape:
        """The leading axes of everything that has some, which must agree."""
        batch: Shape = ()
        first = ""
        for name, axes in self.axes.items():
            if len(axes) == 1 or name[:2] == "W_":
                continue
            lead = self.arrays[name].shape[: -3 if self._has_head_axis(name) else -2]
            try:
                batch = np.broadcast_shapes(batch, lead)
            except ValueError:
                what = f"{name} has the batch axes {lead}, but {first} has {batch}"
                hint = "Leading axes are batch axes, and must agree."
                self.errors.append(AttncliError(what, hint=hint, key=name))
                break
            first = first or (name if lead else "")
        return batch

    def _let_tokens_label_keys(self) -> None:
        """Without Z, tokens that are as many as the keys, and not as many as the queries, are the keys' labels."""
        tokens, n, m = self.p.tokens, self.value.get("n"), self.value.get("m")
        if tokens and self.p.memory_tokens is None and "Z" not in self.arrays and n != len(tokens) == m:
            self.p.tokens, self.p.memory_tokens = None, tokens

    def _hold_labels(self) -> None:
        """As many labels as rows; those of the keys may leave out cached and extra ones."""
        past, extra = self.value.get("p", 0), self.value.get("e", 0)
        keys = "m" if "m" in self.value else "n"
        for key, labels, size in (("tokens", self.p.tokens, "n"), ("memory_tokens", self.p.memory_tokens, keys)):
            if labels is None or size not in self.value or size in self.unsure:
                continue
            number = self.value[size]
            counts = {number} if key == "tokens" else {number, number + past, number + past + extra}
            if len(labels) not in counts:
                self.errors.append(self._labels_error(key, len(labels), size))

    def _labels_error(self, key: str, found: int, size: str) -> AttncliError:
        by = next(vote for vote in _votes({n: a.shape[-2:] for n, a in self.arrays.items()}, self.axes, size))
        array = self.arrays[by.name]
        lead = array.shape[: -3 if self._has_head_axis(by.name) else -2]
        batch = f"; {by.name} has a batch axis of {lead[0]}" if lead else ""
        what = f"{key} has {found} label{'' if found == 1 else 's'}, but {by.name} has {self._count(by)}"
        line = self._count(by).split()[1].rstrip("s")
        return AttncliError(f"{what} ({size} = {by.length}{batch})", hint=f"One label a {line} of {by.name}.", key=key)


def _votes(
    shapes: Mapping[str, Shape], axes: Mapping[str, tuple[Axis, ...]], size: str, but: Sequence[str] = ()
) -> list[Vote]:
    """What the matrices say about a size, in the order of `axes_of`."""
    return [
        Vote(name, i, shapes[name][i], axis.heads)
        for name, those in axes.items()
        if name not in but
        for i, axis in enumerate(those)
        if axis.size == size
    ]


def _agree(shapes: Mapping[str, Shape], axes: Mapping[str, tuple[Axis, ...]]) -> tuple[dict[str, int], list[Misfit]]:
    """Each size's value, and at most one misfit a matrix. The first vote decides, unless it stands against several."""
    values: dict[str, int] = {}
    misfits: dict[str, Misfit] = {}
    for size in _ORDER:
        votes = _votes(shapes, axes, size, [*misfits])
        whole = [vote for vote in votes if vote.length % vote.heads == 0]
        for vote in votes:
            if vote not in whole and len(whole) == 0:
                misfits.setdefault(vote.name, Misfit(vote, size))
        if not whole:
            continue
        value = int(_elected(whole))
        values[size] = value
        witnesses = tuple(vote for vote in whole if vote.value == value)
        for vote in votes:
            if vote.value != value:
                shown = witnesses if vote == votes[0] else witnesses[:1]
                misfits.setdefault(vote.name, Misfit(vote, size, value, shown))
    return values, [*misfits.values()]


def _elected(votes: Sequence[Vote]) -> float:
    """The first vote's value; where nobody shares it and several others agree, theirs."""
    counts = Counter(vote.value for vote in votes)
    value, number = counts.most_common(1)[0]
    return value if counts[votes[0].value] == 1 and number > 1 else votes[0].value


def _swap(shapes: Mapping[str, Shape], name: str) -> dict[str, Shape]:
    return {**shapes, name: shapes[name][::-1]}


def _mends(shapes: Mapping[str, Shape], axes: Mapping[str, tuple[Axis, ...]], name: str, before: int) -> bool:
    """Whether a change of shapes leaves fewer misfits, and none of this matrix."""
    misfits = _agree(shapes, axes)[1]
    return len(misfits) < before and name not in [misfit.vote.name for misfit in misfits]


def _against(name: str, shapes: Mapping[str, Shape], axes: Mapping[str, tuple[Axis, ...]]) -> Misfit:
    """How a matrix differs from what all the others agree on."""
    others = {one: those for one, those in axes.items() if one != name}
    values, _ = _agree(shapes, others)
    for vote, axis in zip(shapes[name], range(2), strict=True):
        size, heads = axes[name][axis]
        if size in values and vote / heads != values[size]:
            witnesses = tuple(w for w in _votes(shapes, others, size) if w.value == values[size])
            return Misfit(Vote(name, axis, vote, heads), size, values[size], witnesses[:1])
    raise AssertionError(name)


def _be(number: int) -> str:
    return "is" if number == 1 else "are"
