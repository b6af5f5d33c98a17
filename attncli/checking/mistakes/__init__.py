"""MISTAKES: one row a known mistake with attention. `attncli mistakes` lists them, `check` names them."""

from __future__ import annotations

from attncli.checking.mistakes import anywhere, heads, masking, output, products, scaling, softmax
from attncli.checking.mistakes.base import ANYWHERE, Mistake, Variant

MISTAKES: dict[str, Mistake] = {
    mistake.name: mistake
    for module in (products, scaling, masking, softmax, heads, output, anywhere)
    for mistake in module.ROWS
} | {mistake.name: mistake for mistake in anywhere.SOLVED}

__all__ = ["ANYWHERE", "MISTAKES", "Mistake", "Variant"]
