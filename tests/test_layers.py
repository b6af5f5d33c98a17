"""Each library has its place: the imports of every module. Import-linter holds the floors (pyproject.toml)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import TESTS

import attncli

PACKAGE = Path(attncli.__file__).parent

PLACES = {
    "typer": ("cli",),
    "rich": ("rendering.", "cli.terminal"),
    "yaml": ("reading.", "rendering.data."),
    "sympy": ("maths.exact",),
    "matplotlib": ("rendering.",),
    "click": (),
    "pickle": (),
}
"""A library, and how the names of the modules begin that may import it, at whatever depth."""

LAZY = {"rich": ("cli.terminal",), "matplotlib": ("rendering.",)}
"""What these modules import inside a function alone, so that whoever doesn't need it doesn't pay for it."""


def dotted(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


FILES = {
    dotted(file): file for file in sorted(PACKAGE.rglob("*.py")) if file.parent != PACKAGE or file.stem[:6] != "__init"
}


def imports(node: ast.AST, inside: bool = False) -> Iterator[tuple[str, bool]]:
    """Every module that a tree imports, and whether it does so inside a function; not what only types need."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from ((name.name, inside) for name in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "a relative import"
            for name in child.names:
                whole = f"{child.module}.{name.name}"
                yield (whole if whole.removeprefix("attncli.") in FILES else str(child.module)), inside
        yield from imports(child, inside or isinstance(child, (ast.FunctionDef, ast.Lambda)))


IMPORTS = {name: list(imports(ast.parse(file.read_text(encoding="utf-8")))) for name, file in FILES.items()}


@pytest.mark.parametrize("module", FILES)
def test_each_library_has_its_place(module):
    for name, inside in IMPORTS[module]:
        top = name.partition(".")[0]
        assert module.startswith(PLACES.get(top, ("",))), f"{module} imports {top}"
        assert inside or not module.startswith(LAZY.get(top, ("\0",))), f"{module} imports {top} for everybody"


def test_imports_of_all_kinds_are_seen():
    tree = ast.parse("import a.b\nfrom attncli import Problem\nif TYPE_CHECKING:\n    import c\ndef f():\n    import d")
    assert list(imports(tree)) == [("a.b", False), ("attncli", False), ("d", True)]


def test_the_tests_are_laid_out_as_the_package():
    rooms = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    folders = {file.relative_to(TESTS).parts[0] for file in TESTS.rglob("test_*.py") if file.parent != TESTS}
    assert folders == rooms
