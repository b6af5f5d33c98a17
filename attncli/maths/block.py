"""What joins the parts of a block: sums along the residual stream, and the gate of a feed-forward network."""

from __future__ import annotations

from typing import Any

from attncli.maths.arrays import Array, as_in


def residual(x: Array, *branches: Array, alpha: Any = None) -> Array:
    """X + F(X), or X + α F(X) (He et al. 2016, equation 1); with several branches, as in parallel blocks, their sum.

    x and each branch (..., n, d_model)  ->  (..., n, d_model)

    >>> import numpy as np
    >>> residual(np.array([[1.0, 2.0]]), np.array([[10.0, 20.0]]), alpha=0.5).tolist()
    [[6.0, 12.0]]
    """
    total = x
    for branch in branches:
        total = total + (branch if alpha is None else branch * as_in(alpha, branch))
    return total


def gated(gate: Array, hidden: Array) -> Array:
    """act(G) ⊙ H: each hidden number times its gate (Shazeer 2020, "GLU variants improve Transformer", section 2).

    gate and hidden (..., n, d_ff)  ->  (..., n, d_ff)

    >>> import numpy as np
    >>> gated(np.array([[0.5, 2.0]]), np.array([[4.0, 5.0]])).tolist()
    [[2.0, 10.0]]
    """
    product: Array = gate * hidden
    return product
