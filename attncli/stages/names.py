"""The names of stages and formats alone, for what must answer at once: the help, completion.

`stages.STAGES` and `rendering.formats.FORMATS` are the tables; a test holds these lists to them.
"""

from __future__ import annotations

FORMAT_NAMES = (
    "table",
    "json",
    "yaml",
    "csv",
    "tsv",
    "long",
    "npy",
    "npz",
    "markdown",
    "latex",
    "html",
    "svg",
    "png",
    "pdf",
)
