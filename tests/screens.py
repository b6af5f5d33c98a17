"""The README's screenshots, made from the program's own output: ``python tests/screens.py`` draws them anew.

A screen is the command's output with colours, drawn by rich as an SVG that brings no font from elsewhere. A test
draws them again and compares.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

sys.path.insert(0, str(Path(__file__).parent))
from running import run

FOLDER = Path(__file__).parents[1] / ".github" / "screens"
SHEET = """\
scaled_scores: [[0.5, 0.5, 1], [0.5, -0.5, 0], [1, 0, 1]]
weights: [[0.27, 0.27, 0.45], [0.51, 0.19, 0.31], [0.42, 0.16, 0.42]]
"""
SCREENS = {
    "compute": ("attncli compute three-tokens mask=causal -s masked_scores,weights,outputs", ""),
    "explain": ("attncli explain three-tokens 'weights[1,3]' 'outputs[1]'", ""),
    "check": ("attncli check three-tokens answers.yaml", SHEET),
}
WIDTH = 90
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", "Noto Sans Mono CJK JP", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def draw(name: str) -> str:
    """One screen as SVG."""
    command, stdin = SCREENS[name]
    words = [word.strip("'") for word in command.split()[1:]]
    words = ["-" if word == "answers.yaml" else word for word in words]
    # 256 colours: rich keeps a style's codes from the first screen that it was drawn on, and other tests have 256
    done = run(*words, stdin=stdin.encode(), terminal=True, COLUMNS=str(WIDTH), COLORTERM="")
    assert done.code in (0, 1), done.error
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "bold green"), command.replace("'", "")), soft_wrap=True)
    console.print(Text.from_ansi(done.text.replace("standard input: ", "answers.yaml: ", 1)), soft_wrap=True)
    return console.export_svg(title=f"attncli {name}", theme=MONOKAI, code_format=SVG, unique_id=name)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in SCREENS:
        (FOLDER / f"{name}.svg").write_text(draw(name), encoding="utf-8")


if __name__ == "__main__":
    main()
