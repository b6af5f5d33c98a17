"""What torch and transformers gave for drawn numbers (tests/data/maths/from_torch.py), and how near it must be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).parents[1] / "data" / "maths" / "torch.json"
TORCH: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))

ROOM = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 2e-6, np.dtype(np.float16): 2e-3}
"""How far two ways of computing the same may lie apart, relative to the largest number of an array."""


def assert_near(found: Any, wanted: Any, room: float | None = None) -> None:
    """Same shape, NaN and infinities at the same places, and each number as near as its dtype allows."""
    found, wanted = np.asarray(found), np.asarray(wanted, dtype=float)
    assert found.shape == wanted.shape
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    largest = max(1.0, np.abs(wanted[finite]).max(initial=0))
    off = np.abs(found[finite].astype(float) - wanted[finite]).max(initial=0)
    assert off <= (ROOM[found.dtype] if room is None else room) * largest
