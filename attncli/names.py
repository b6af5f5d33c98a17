"""The stages' names alone, for what must answer without numpy: the help, completion, the first look at an option.

`stages.STAGES` is the table; a test holds this list to it.
"""

from __future__ import annotations

STAGE_NAMES = (
    "Q",
    "K",
    "V",
    "scores",
    "scaled_scores",
    "capped_scores",
    "masked_scores",
    "weights",
    "outputs",
    "concat",
    "multihead",
    "contributions",
)
