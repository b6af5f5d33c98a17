"""Problems for the tests of what is shown: sizes are different primes, labels are hostile."""

from __future__ import annotations

import numpy as np

import attncli
from attncli import Problem
from attncli.rendering.views import Choice, View

HOSTILE = (
    "</script><script>alert(1)</script>", "<!-- x", "a|b", "*b* _c_ `d`", "$x$ @you #1", "\\input{x} %{}^~&amp;",
    "\x1b[2J\r\n", "\u202eabc\u2028", "[a](http://b)", "\"'>", "猫の手", "سلام", "👩‍🔬", "- 1. é",
)  # fmt: skip


def three_tokens(**keys: object) -> Problem:
    """The example of the README, whose numbers a person can check: weights 0.2483, 0.2483, 0.5035 in the first row."""
    Z, W_Q, W_K, W_V = ([[1, 0], [0, 1], [1, 1]], [[1, 0], [0, 1]], [[1, 1], [1, -1]], [[2, 0], [0, 3]])
    Z = np.transpose(Z).tolist() if keys.get("layout") == "columns" else Z  # the weights are symmetric
    return Problem(
        title="Three tokens, one head", tokens=["私", "は", "猫"], Z=Z, W_Q=W_Q, W_K=W_K, W_V=W_V, **keys
    )  # fmt: skip


def two_heads(**keys: object) -> Problem:
    """n 5, d_model 7, h 2, d_k 3, d_v 4, with a causal mask, biases and W_O."""
    draw = np.random.default_rng(20).normal
    return Problem(
        Z=draw(size=(5, 7)), W_Q=draw(size=(7, 6)), W_K=draw(size=(7, 6)), W_V=draw(size=(7, 8)),
        W_O=draw(size=(8, 7)), b_Q=draw(size=6), b_O=draw(size=7), num_heads=2, mask="causal", **keys,
    )  # fmt: skip


def hostile() -> Problem:
    """Labels, title, source and note that try to be markup."""
    draw = np.random.default_rng(21).normal
    n = len(HOSTILE)
    return Problem(
        title="</title><b>T</b> $1$ | 50% \\_", source="- no list", note="1. no list", tokens=list(HOSTILE),
        Z=draw(size=(n, 2)), W_Q=np.eye(2), W_K=np.eye(2), W_V=np.eye(2), mask="causal",
    )  # fmt: skip


def batches() -> Problem:
    """Two batch entries, cross-attention of 3 queries to 5 keys, two heads on one key/value head, in columns."""
    draw = np.random.default_rng(22).normal
    return Problem(
        layout="columns", Q=draw(size=(2, 6, 3)), K=draw(size=(2, 3, 5)), V=draw(size=(2, 2, 5)), num_heads=2,
        num_kv_heads=1, mask={"add": [[0, -1, -2]] * 5},
    )  # fmt: skip


def own_heads() -> Problem:
    """Heads that are given one by one, and stored as (out, in)."""
    draw = np.random.default_rng(23).normal
    heads = [{"W_Q": draw(size=(2, 5)), "W_K": draw(size=(2, 5)), "W_V": draw(size=(3, 5))} for _ in range(2)]
    return Problem(Z=draw(size=(3, 5)), heads=heads, weight_layout="out_in")


def long(n: int = 50, m: int = 70) -> Problem:
    """More rows and columns than a write-up shows."""
    draw = np.random.default_rng(24).normal
    return Problem(Q=draw(size=(n, 3)), K=draw(size=(m, 3)), V=draw(size=(m, 2)))


PROBLEMS = {
    "three_tokens": three_tokens, "two_heads": two_heads, "hostile": hostile, "batches": batches,
    "own_heads": own_heads,
}  # fmt: skip


def view(problem: Problem, *stages: str) -> View:
    """A view of a problem's stages: of all, or of those named."""
    return View(attncli.compute(problem, stages or None), Choice(stages) if stages else None)
