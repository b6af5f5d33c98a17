"""The README's console blocks print what they say, its Python runs, and its tables name everything there is."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import tomllib

import pytest
from places import ROOT
from running import run

import attncli
from attncli.rendering.formats import FORMATS
from attncli.stages.table import STAGES

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The code blocks in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


CONSOLE = [
    (command, printed)
    for block in blocks("console")
    for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


def test_there_are_examples_to_test():
    assert len(CONSOLE) >= 8
    assert CONSOLE[0][0] == "attncli compute three-tokens"
    assert sum(block.count("\n") for block in blocks("console")) == sum(1 + text.count("\n") for _, text in CONSOLE)


@pytest.mark.parametrize(("command", "printed"), CONSOLE, ids=[command for command, _ in CONSOLE])
def test_a_command_prints_what_the_readme_says(command, printed, tmp_path):
    quiet = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}
    done = subprocess.run(
        ["bash", "-c", f'attncli() {{ "{sys.executable}" -m attncli "$@"; }}\n{command}'],
        cwd=tmp_path, env=quiet | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
    )  # fmt: skip
    assert done.stdout.decode() == printed


def test_the_first_screen_installs_and_runs_the_main_job_and_the_tests():
    main_job, tests = blocks("sh")[0].splitlines()
    assert main_job.endswith(".venv/bin/attncli compute three-tokens")
    assert tests.endswith(".venv/bin/pytest -n auto")


def test_its_python_gives_what_it_says():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    (block,) = blocks("python")
    results = runner.run(parser.get_doctest(block, {}, "README", "README.md", 0))
    assert results.attempted >= 3
    assert results.failed == 0


def rows(first: str) -> list[list[str]]:
    """The rows of the table with this heading, cell by cell, without the heading."""
    table = README[README.index(f"| {first} |") :].split("\n\n")[0]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_every_format_is_in_the_table_with_its_meaning():
    assert [(row[0], row[1]) for row in rows("format")] == [(name, row.meaning) for name, row in FORMATS.items()]


def test_every_stage_is_in_the_table_with_its_meaning():
    assert [(row[0], row[2]) for row in rows("stage")] == [(name, stage.meaning) for name, stage in STAGES.items()]


def test_the_changes_tell_of_every_command_and_of_what_the_package_offers():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = text.split("\n## ")[1]
    assert newest.startswith(("Unreleased\n", f"{attncli.__version__} "))
    told = set(re.findall(r"`([^`]+)`", text))
    commands = re.findall(r"^[│ ]+(\w+) {2,}", run("--help").text.partition("Commands")[2], re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        assert any(words.split()[:2] == ["attncli", command] for words in told), command
    for name in ("load", "Problem", "compute", "Result", "explain", "check", "inspect"):
        assert name in told
        assert name in attncli.__all__


def test_the_table_of_formats_says_what_one_file_holds():
    words = {"stages": "all that is selected", "stage": "one stage", "matrix": "one matrix"}
    for name, row in FORMATS.items():
        holds = "one stage, all its heads" if name in ("svg", "png", "pdf") else words[row.holds]
        assert f"| `{name}` | {row.meaning} | {holds} |" in README


def test_the_extras_of_users_are_spoken_of_with_how_to_install_them():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for name in ("exact", "plot", "fast"):
        assert name in extras
        assert f"pip install '.[{name}]'" in README
