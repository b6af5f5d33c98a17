"""Shell completion: commands, stages (in comma lists too), formats, examples and keys; and nothing heavy for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from attncli.model.keys import KEYS
from attncli.rendering.formats import FORMATS
from attncli.stages.table import STAGES

ATTNCLI = Path(sys.executable).with_name("attncli")


def completed(line: str) -> list[str]:
    """What bash is offered at the end of a line."""
    words = line.split(" ")
    environ = {
        **os.environ, "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_ATTNCLI_COMPLETE": "complete_bash",
    }  # fmt: skip
    done = subprocess.run([ATTNCLI], env=environ, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("attncli comp", ["compute"]),
        ("attncli compute thr", ["three-tokens"]),
        ("attncli compute three-tokens mask_f", ["mask_fill="]),
        ("attncli compute -s wei", ["weights"]),
        ("attncli compute three-tokens -s weights,out", ["weights,outputs"]),
        ("attncli compute -f js", ["json"]),
        ("attncli compute --st", ["--stage", "--stats", "--standalone"]),
        ("attncli explain three-tokens weigh", ["weights", "weights=", "weight_layout="]),
        ("attncli examples enc", ["encoder-decoder"]),
        ("attncli check three-tokens answers.yaml --require wei", ["weights"]),
        ("attncli compute nothing-like-this", []),
    ],
)
def test_what_is_offered(line, offered):
    assert completed(line) == offered


def test_all_stages_formats_and_keys_are_offered():
    assert completed("attncli compute -s ") == list(STAGES)
    assert completed("attncli compute -f ") == list(FORMATS)
    assert {f"{name}=" for name in KEYS} <= set(completed("attncli compute "))


def test_a_completion_script_is_shown_for_each_shell():
    for shell in ("bash", "zsh", "fish"):
        script = subprocess.run(
            [ATTNCLI, "--show-completion", shell], capture_output=True, text=True, timeout=60,
            env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        )  # fmt: skip
        assert "_ATTNCLI_COMPLETE" in script.stdout
