"""Who shows a thing that is asked to show itself, in a notebook or to rich: named from above, by the package's face.

A result is made floors below what draws it, and knows no more than that somebody was named.
"""

from __future__ import annotations

from types import ModuleType

VIEWS: dict[str, str] = {}
"""The name of a class, and the module that shows it: its ``page`` gives HTML, its ``Tables`` are what rich draws."""


def view_of(shown: object) -> ModuleType:
    """The module that shows an object, imported only now."""
    from importlib import import_module

    return import_module(VIEWS[type(shown).__name__])
