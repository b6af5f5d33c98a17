"""What every test may use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

from attncli import Problem, compute

settings.register_profile("attncli", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("attncli")


@pytest.fixture
def result_of():
    """Compute the problem of some keys: ``result_of(Q=..., K=...)``."""
    return lambda stages=None, **keys: compute(Problem(**keys), stages)


@pytest.fixture
def mistakes():
    """The errors of a problem that is wrong, as (key, what) pairs."""
    from attncli import AttncliError

    def found(**keys: Any) -> list[AttncliError]:
        with pytest.raises(AttncliError) as caught:
            Problem(**keys)
        return list(caught.value.errors)

    return found
