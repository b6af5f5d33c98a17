"""What a derivation comes to, worked out again from its operations alone, apart from the package's own arithmetic."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import numpy as np


def evaluate(tree, rounding="half_away", known=None):
    """The value of a tree: every node's operation applied to its evaluated operands; leaves stand for themselves."""
    known = {} if known is None else known
    if id(tree) not in known:
        parts = [evaluate(operand, rounding, known) for operand in tree.operands]
        known[id(tree)] = _apply(tree, parts, rounding)
    return known[id(tree)]


def _apply(tree, parts, rounding):
    with np.errstate(all="ignore"):
        match tree.op:
            case "number" | "cell" | "input" | "given" | "empty":
                assert not parts
                return np.array(tree.value, dtype=float)
            case "sum":
                return np.sum(parts, axis=0)
            case "product":
                return parts[0] * parts[1]
            case "quotient":
                return parts[0] / parts[1]
            case "difference":
                return parts[0] - parts[1]
            case "exp":
                return np.exp(parts[0])
            case "tanh":
                return np.tanh(parts[0])
            case "root":
                return np.sqrt(parts[0])
            case "pick" | "kept" | "hidden":
                return parts[0]
            case "rounded":
                return _rounded(parts[0], int(parts[1]), rounding)
            case "row" | "stage":
                return np.array(parts)
    raise AssertionError(tree.op)


def _rounded(array, decimals, rounding):
    mode = ROUND_HALF_UP if rounding == "half_away" else ROUND_HALF_EVEN
    step = Decimal(1).scaleb(-decimals)

    def one(number):
        if not np.isfinite(number):
            return number
        return float(Decimal(f"{number:.12f}").quantize(step, mode))

    return np.vectorize(one, otypes=[float])(array)


def nodes(tree):
    """Every node of a tree, each once."""
    seen, todo = {}, [tree]
    while todo:
        node = todo.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            todo += node.operands
    return list(seen.values())
