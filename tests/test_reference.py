"""The README's reference names every command, option and key, and its screenshots show what the program shows."""

import pytest
import reference
import screens

from attncli.model.keys import KEYS
from attncli.rendering.formats import FORMATS
from attncli.stages.table import STAGES


def test_the_reference_is_what_the_code_says():
    text = reference.README.read_text(encoding="utf-8")
    assert reference.written(text) == text, "run: python tests/reference.py"


@pytest.mark.parametrize("name", [*KEYS, *FORMATS, *STAGES])
def test_every_key_format_and_stage_has_a_row(name):
    assert f"| `{name}` |" in reference.README.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", screens.SCREENS)
def test_a_screenshot_is_what_the_program_shows(name):
    kept = (screens.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert screens.draw(name) == kept, "run: python tests/screens.py"
    assert f".github/screens/{name}.svg" in reference.README.read_text(encoding="utf-8")
