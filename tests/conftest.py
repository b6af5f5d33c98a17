"""What every test runs under: no deadline and the same examples each time, so that a slow machine fails no property."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("attncli", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("attncli")
