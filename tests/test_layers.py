"""Imports point one way, and each library has its place: the import statements of every module, held to one order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import attncli

PACKAGE = Path(attncli.__file__).parent

LAYERS = {
    "words": "errors suggestions keys names notation written writing examples exact_text derivation reading.literals",
    "mathematics": "ops masks mask_words",
    "problem": "sizes needs settings fused problem",
    "stages": "stages memory blocks compute cells",
    "explain": "exact explain_inputs explain",
    "check": "sheet precision mistakes chains fit catalogue misread verdicts diagnosis check classroom",
    "inspect": "spread invariants resemblance ledger summary",
    "reading": "reading",
    "rendering": "rendering",
    "command line": "terminal cli_words cli_compute cli_explain cli_check cli_inspect cli __main__",
}
"""A module imports from its own layer and from those before it, and from no other. A folder stands for all in it."""

SIDE_BY_SIDE = {"explain", "check", "inspect"}
"""These layers know nothing of each other."""

UPWARD = {
    ("compute", "rendering.notebook"): "a notebook asks a Result itself how it looks",
    ("suggestions", "stages"): "what is meant by A or S stands in the table of stages; asked for an error alone",
}
"""The only imports against the order, with their reasons."""

PLACES = {
    "typer": ("cli",),
    "rich": ("rendering.", "terminal"),
    "yaml": ("reading.", "rendering.data"),
    "sympy": ("exact",),
    "matplotlib": ("rendering.",),
    "click": (),
    "pickle": (),
}
"""A library, and how the names of the modules begin that may import it, at whatever depth."""

LAZY = {"rich": ("terminal",), "matplotlib": ("rendering.",)}
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


def layer(module: str) -> str:
    """The layer of a module: that which names it, or else that which names its folder."""
    for name in (module, module.partition(".")[0]):
        found = [title for title, names in LAYERS.items() if name in names.split()]
        if found:
            assert len(found) == 1, f"{module} stands in several layers"
            return found[0]
    raise AssertionError(f"{module} stands in no layer")


def ours(module: str) -> list[str]:
    names = (name.removeprefix("attncli.") for name, _ in IMPORTS[module] if name.startswith("attncli."))
    return sorted({name for name in names if (module, name) not in UPWARD})


def test_every_name_in_the_order_is_a_module():
    folders = {name.partition(".")[0] for name in FILES}
    named = [name for names in LAYERS.values() for name in names.split()]
    assert {*named} <= {*FILES, *folders}
    assert all(pair[1] in [name.removeprefix("attncli.") for name, _ in IMPORTS[pair[0]]] for pair in UPWARD)
    assert len(FILES) > 80


@pytest.mark.parametrize("module", FILES)
def test_imports_point_one_way(module):
    order, own = list(LAYERS), layer(module)
    above = [name for name in ours(module) if order.index(layer(name)) > order.index(own)]
    aside = [name for name in ours(module) if {own, layer(name)} <= SIDE_BY_SIDE and layer(name) != own]
    assert above == []
    assert aside == []


@pytest.mark.parametrize("module", FILES)
def test_each_library_has_its_place(module):
    for name, inside in IMPORTS[module]:
        top = name.partition(".")[0]
        assert module.startswith(PLACES.get(top, ("",))), f"{module} imports {top}"
        assert inside or not module.startswith(LAZY.get(top, ("\0",))), f"{module} imports {top} for everybody"


def test_imports_of_all_kinds_are_seen():
    tree = ast.parse("import a.b\nfrom attncli import ops\nif TYPE_CHECKING:\n    import c\ndef f():\n    import d")
    assert list(imports(tree)) == [("a.b", False), ("attncli.ops", False), ("d", True)]
