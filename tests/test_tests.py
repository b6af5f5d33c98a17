"""No test passes whatever happens: each asserts, awaits an error, or calls a function here that does."""

from __future__ import annotations

import ast

import places
import pytest

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
TREES = {file.stem: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(places.TESTS.rglob("*.py"))}
HELPERS = {
    node.name: node
    for tree in TREES.values()
    for node in ast.walk(tree)
    if isinstance(node, FUNCTIONS) and not node.name.startswith("test")
}
"""Every function of the tests that is none, by its name."""

TESTS = {
    f"{stem}::{node.name}": node
    for stem, tree in TREES.items()
    if stem.startswith("test_")
    for node in ast.walk(tree)
    if isinstance(node, FUNCTIONS) and node.name.startswith("test_")
}


def called(call: ast.Call) -> str:
    """The last name of what is called: ``raises`` of ``pytest.raises(...)``."""
    return getattr(call.func, "attr", None) or getattr(call.func, "id", "")


def asserts(node: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a function holds anything to anything: itself, or by a helper that it calls."""
    for part in ast.walk(node):
        if isinstance(part, ast.Assert) and not isinstance(part.test, ast.Constant):
            return True
        if isinstance(part, ast.Call):
            name = called(part)
            if name in ("raises", "warns") or name.startswith("assert_"):
                return True
            if name in HELPERS and name not in seen and asserts(HELPERS[name], seen | {name}):
                return True
    return False


def test_there_are_tests_to_look_at():
    assert len(TESTS) > 500


@pytest.mark.parametrize("name", TESTS)
def test_a_test_holds_something_to_something(name):
    assert asserts(TESTS[name])


@pytest.mark.parametrize("empty", ["pass", "assert True", "print(1)", "compute(problem)", "x == 1"])
def test_a_test_without_an_assertion_would_be_found(empty):
    assert not asserts(ast.parse(f"def test_it():\n    {empty}"))


@pytest.mark.parametrize("full", ["assert x == 1", "with pytest.raises(E): f()", "np.testing.assert_allclose(1, x)"])
def test_what_asserts_is_seen(full):
    assert asserts(ast.parse(f"def test_it():\n    {full}"))
