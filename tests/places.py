"""Where things lie: the project, its shipped examples, the tests and their data."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
DATA = TESTS / "data"
ROOT = TESTS.parent
CONFIGS = ROOT / "configs"
