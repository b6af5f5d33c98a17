"""The examples in the docstrings say what is."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import attncli

PACKAGE = Path(attncli.__file__).parent
MODULES = {
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts): file
    for file in sorted(PACKAGE.rglob("*.py"))
    if ">>>" in file.read_text(encoding="utf-8")
}


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(name):
    if name == "attncli.__init__":
        name = "attncli"
    if "sympy" in MODULES.get(name, PACKAGE / "__init__.py").read_text(encoding="utf-8"):
        pytest.importorskip("sympy")
    failed, tried = doctest.testmod(import_module(name))
    assert tried > 0
    assert failed == 0


@pytest.mark.parametrize("name", ["Problem", "check", "compute", "explain", "inspect", "load"])
def test_what_the_package_offers_is_shown_by_an_example(name):
    offered = getattr(attncli, name)
    assert offered.__module__ in MODULES
    assert doctest.DocTestFinder(recurse=False).find(offered)[0].examples
