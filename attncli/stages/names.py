"""The names of stages alone, for what must answer at once without numpy: the help, completion.

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
