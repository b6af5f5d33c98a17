"""What a run brings in, seen by a fresh interpreter; and that imports point one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import attncli
from attncli.names import FORMAT_NAMES, STAGE_NAMES
from attncli.rendering.formats import FORMATS
from attncli.stages import STAGES

PACKAGE = Path(attncli.__file__).parent
HEAVY = ("numpy", "yaml", "rich", "matplotlib", "sympy", "safetensors", "torch", "pandas")


def brought_in(code: str) -> set[str]:
    """The top-level modules, and our own modules, that are there after some code has run in a fresh interpreter."""
    program = f"import sys\ntry:\n    {code}\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    names = done.stderr.splitlines()[-1].split()
    return {name if name.startswith("attncli") else name.partition(".")[0] for name in names}


def run_of(*words: str) -> set[str]:
    return brought_in(f"from attncli.cli import main; main({list(words)!r})")


def test_the_package_alone_brings_in_nothing_heavy():
    assert brought_in("import attncli").isdisjoint({*HEAVY, "typer", "click"})


def test_the_library_brings_in_no_rich_and_no_typer():
    found = brought_in("import attncli; attncli.compute(attncli.Problem(Q=[[1]], K=[[1]], V=[[1]]))")
    assert "numpy" in found
    assert found.isdisjoint({"rich", "typer", "click", "yaml"})


def test_reading_a_problem_brings_in_yaml_but_no_rich_and_no_typer():
    found = brought_in("import attncli; attncli.load('three-tokens')")
    assert "yaml" in found
    assert found.isdisjoint({"rich", "typer", "click"})


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], ["compute", "--help"], ["check", "--help"], ["examples"], ["examples", "batch"]],
)
def test_help_version_and_examples_need_nothing_heavy(words):
    assert run_of(*words).isdisjoint(HEAVY)


@pytest.mark.parametrize("words", [["compute", "-d"], ["compute", "--nothing"], ["nothing"], ["compute"]])
def test_a_wrong_usage_is_told_without_rich(words):
    assert "rich" not in run_of(*words)


@pytest.mark.parametrize("format", ["json", "yaml", "csv", "tsv", "long"])
def test_data_need_no_rich(format):
    found = run_of("compute", "three-tokens", "-s", "weights", "-f", format)
    assert "attncli.rendering.data" in found
    assert found.isdisjoint({"rich", "matplotlib", "sympy", "safetensors"})
    assert "attncli.rendering.tables" not in found


def test_tables_need_no_extras():
    found = run_of("compute", "three-tokens")
    assert "rich" in found
    assert found.isdisjoint({"matplotlib", "sympy", "safetensors", "pandas"})
    assert found.isdisjoint({"attncli.check", "attncli.explain", "attncli.mistakes", "attncli.rendering.data"})


def test_keys_alone_need_no_yaml():
    found = run_of("compute", "Q=1;2", "K=1;2", "V=1;2", "-f", "json")
    assert "rich" not in found


def test_the_names_that_need_no_numpy_are_those_of_the_tables():
    assert tuple(STAGES) == STAGE_NAMES
    assert tuple(FORMATS) == FORMAT_NAMES


def imported_by(file: Path) -> set[str]:
    """The modules that a file imports at any depth, by their full names."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


def dotted(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)


@pytest.mark.parametrize("file", FILES, ids=dotted)
def test_each_library_has_its_place(file):
    name, imports = dotted(file), imported_by(file)
    top = {one.partition(".")[0] for one in imports}
    command_line = name.startswith("attncli.cli") or name == "attncli.__main__"
    assert "typer" not in top or command_line
    assert "click" not in top
    assert "pickle" not in top
    assert "rich" not in top or name.startswith("attncli.rendering") or name == "attncli.terminal"
    assert "yaml" not in top or name.startswith(("attncli.reading", "attncli.rendering"))
    assert command_line or not any(one.startswith("attncli.cli") for one in imports)


CORE = (
    "errors", "keys", "written", "notation", "masks", "ops", "sizes", "fit", "problem", "stages", "needs", "memory",
    "blocks", "precision",
)  # fmt: skip


@pytest.mark.parametrize("module", CORE)
def test_the_mathematics_knows_nobody_above_it(module):
    above = ("attncli.reading", "attncli.rendering", "attncli.check", "attncli.explain", "attncli.mistakes")
    assert not any(one.startswith(above) for one in imported_by(PACKAGE / f"{module}.py"))


def test_there_are_modules_to_look_at():
    assert len(FILES) > 40
