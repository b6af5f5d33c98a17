"""The README's reference, made from the tables in the code: ``python tests/reference.py`` writes it anew.

What stands between ``<!-- NAME -->`` and ``<!-- end -->`` is replaced; a test holds the README to it.
"""

from __future__ import annotations

import re
from pathlib import Path

import typer.main

from attncli.cli import app as cli
from attncli.model.keys import KEYS

README = Path(__file__).parents[1] / "README.md"


def commands() -> str:
    """Every command with its arguments and options."""
    group = typer.main.get_command(cli.program([]))
    parts = []
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        arguments = [p.metavar or f"[{p.name.upper()}]" for p in command.params if p.param_type_name == "argument"]
        summary = command.help.replace("\b", "").strip().split("\n")[0]
        rows = [
            f"| `{_spelled(option)}` | {option.help} |"
            for option in command.params
            if option.param_type_name == "option"
        ]
        parts.append(f"**`attncli {' '.join([name, *arguments])}`**: {summary}\n")
        parts.append("\n".join(["| option | what |", "|---|---|", *rows]) + "\n" if rows else "")
    return "\n".join(part for part in parts if part)


def _spelled(option) -> str:
    names = ", ".join(sorted(option.opts, key=len))
    return names if option.is_flag else f"{names} {option.metavar or option.name.upper()}"


def keys() -> str:
    """Every key of a problem file."""
    rows = []
    for key in KEYS.values():
        takes = ", ".join(f"`{choice}`" for choice in key.choices) or key.shape.replace("|", "\\|") or key.kind
        rows.append(f"| `{key.name}` | {takes} | {key.meaning.replace('|', chr(92) + '|')} |")
    return "\n".join(["| key | takes | what it means |", "|---|---|---|", *rows]) + "\n"


PARTS = {"commands": commands, "keys": keys}


def written(text: str) -> str:
    """A README with its reference made anew."""
    for name, make in PARTS.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        assert pattern.search(text), f"the README has no place for the {name}"
        made = f"\n{make()}\n".replace("\\", r"\\")
        text = pattern.sub(rf"\g<1>{made}\g<2>", text)
    return text


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
