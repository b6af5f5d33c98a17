"""attncli: the calculator that shows attention's work.

    >>> import attncli
    >>> problem = attncli.Problem(
    ...     Z=[[1, 0], [0, 1], [1, 1]], W_Q=[[1, 0], [0, 1]], W_K=[[1, 1], [1, -1]], W_V=[[2, 0], [0, 3]]
    ... )
    >>> attncli.compute(problem)["weights"].round(4)[0, 0].tolist()
    [0.2483, 0.2483, 0.5035]

A problem file is read by ``attncli.load("p.yaml")``. What the command line does is a function here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attncli.language.hooks import VIEWS

__version__ = "0.1.0"

if TYPE_CHECKING:
    from attncli.checking.check import Report, check
    from attncli.engine.compute import Result, compute
    from attncli.explaining.explain import explain
    from attncli.inspecting.summary import inspect
    from attncli.language.errors import AttncliError
    from attncli.model.problem import Problem
    from attncli.model.sheet import AnswerSheet
    from attncli.reading.problems import load
    from attncli.reading.sheets import read_sheet

__all__ = [
    "AnswerSheet",
    "AttncliError",
    "Problem",
    "Report",
    "Result",
    "__version__",
    "check",
    "compute",
    "explain",
    "inspect",
    "load",
    "read_sheet",
]

_HOMES = {
    "AnswerSheet": "attncli.model.sheet",
    "AttncliError": "attncli.language.errors",
    "Problem": "attncli.model.problem",
    "Report": "attncli.checking.check",
    "Result": "attncli.engine.compute",
    "check": "attncli.checking.check",
    "compute": "attncli.engine.compute",
    "explain": "attncli.explaining.explain",
    "inspect": "attncli.inspecting.summary",
    "load": "attncli.reading.problems",
    "read_sheet": "attncli.reading.sheets",
}
"""Where each thing that the package offers is defined."""

VIEWS["Result"] = "attncli.rendering.documents.notebook"


def __getattr__(name: str) -> Any:
    """What the package offers, imported when it is first asked for: ``import attncli`` alone brings no numpy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'attncli' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
