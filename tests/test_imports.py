"""What a run brings in, seen by a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest

import attncli

HEAVY = ("numpy", "yaml", "rich", "matplotlib", "sympy", "safetensors", "torch", "pandas")


def brought_in(code: str) -> set[str]:
    """The top-level modules, and our own modules, that are there after some code has run in a fresh interpreter."""
    program = f"import sys\ntry:\n    {code}\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    names = done.stderr.splitlines()[-1].split()
    return {name if name.startswith("attncli") else name.partition(".")[0] for name in names}


def run_of(*words: str) -> set[str]:
    return brought_in(f"from attncli.cli.app import main; main({list(words)!r})")


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
    assert "attncli.rendering.data.stages" in found
    assert found.isdisjoint({"rich", "matplotlib", "sympy", "safetensors"})
    assert "attncli.rendering.screen.tables" not in found


def test_tables_need_no_extras():
    found = run_of("compute", "three-tokens")
    assert "rich" in found
    assert found.isdisjoint({"matplotlib", "sympy", "safetensors", "pandas"})
    assert found.isdisjoint(
        {
            "attncli.checking.check",
            "attncli.explaining.explain",
            "attncli.checking.mistakes",
            "attncli.rendering.data.stages",
        }
    )


def test_a_problem_in_yaml_needs_nothing_of_other_texts():
    typers_own = brought_in("import typer; app = typer.Typer(); app.command()(lambda: None); app([])")
    found = run_of("compute", "three-tokens", "-f", "json") - typers_own
    assert "attncli.reading.yaml_nodes" in found
    assert found.isdisjoint(
        {"json", "unicodedata", "csv", "zipfile", "attncli.reading.json_nodes", "attncli.engine.blocks"}
    )


def test_keys_alone_need_no_yaml():
    found = run_of("compute", "Q=1;2", "K=1;2", "V=1;2", "-f", "json")
    assert "rich" not in found


def test_what_the_package_offers_is_the_same_whatever_is_imported_first():
    offered = [name for name in attncli.__all__ if name != "__version__"]
    modules = "import attncli.checking.check, attncli.engine.compute, attncli.explaining.explain"
    code = f"{modules}; assert all(callable(getattr(attncli, name)) for name in {offered})"
    assert "attncli.inspecting.summary" in brought_in(code)
    assert all(callable(getattr(attncli, name)) for name in offered)
    assert dir(attncli) == sorted(attncli.__all__)
