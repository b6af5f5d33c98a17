"""What a user sees, as a list of fingerprints: ``golden.py`` writes it anew, ``golden.py --show WORDS`` prints one run.

The list holds a line a command: the exit code and the first bytes of a digest of both outputs. A change of code that
is meant to change nothing for a user leaves every line as it is; a change that is meant shows in the list's diff.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from running import Done, run

HERE = Path(__file__).parent
LIST = HERE / "data" / "golden.txt"
EXAMPLES = sorted(file.stem for file in (HERE.parent / "configs").glob("*.yaml"))
FORMATS = ("table", "json", "yaml", "long", "markdown", "latex", "html", "svg")
DATA = ("json", "yaml", "long")
"""Written with ten digits: the last bits of a product are the machine's own."""
COMMANDS = ("compute", "explain", "check", "inspect", "examples", "mistakes")
LARGE = {"transformer-base"}
"""Here the pages and pictures of every stage would take longest; its tables and data stand for them."""
CELLS = {"batch": "1,1;1,1", "grouped-query": "1;1,1", "two-heads": "1;1,1", "transformer-base": "1;1,1"}
"""How the first cell of the weights is called where it is not 1,1."""


def commands() -> Iterator[tuple[str, dict[str, str]]]:
    """Every command of the list, with its environment."""
    for width in ("80", "40"):
        for command in ("", *COMMANDS):
            yield f"{command} --help".strip(), {"COLUMNS": width}
    for name in EXAMPLES:
        for format in FORMATS[:4] if name in LARGE else FORMATS:
            more = " -s weights" if format == "svg" else " -d 10" if format in DATA else ""
            yield f"compute {name}{more} -f {format}", {}
        yield f"compute {name} -d 2", {"COLUMNS": "60"}
        yield f"compute {name} --round 2 -f json", {}
        yield f"inspect {name}", {}
        yield f"inspect {name} -f json", {}
        cell = CELLS.get(name, "1,1")
        for format in ("table", "json", "markdown", "latex"):
            more = " -d 10" if format == "json" else ""
            yield f"explain {name} 'weights[{cell}]'{more} -f {format}", {}
        yield f"check {name} - -f json < compute {name} -d 3 -f yaml", {}
        yield f"check {name} - < compute {name} scale=0.3 -d 3 -f yaml", {}
        if name not in LARGE:
            yield f"explain {name} 'weights[{cell}]' --exact", {}
            yield f"compute {name} --work", {}
            yield f"explain {name} 'weights[{cell}]' --depth 2", {}
    for file in sorted((HERE / "data" / "broken").glob("*.yaml")):
        yield f"compute {file.relative_to(HERE)}", {}
    yield "mistakes -f json", {}
    yield "mistakes", {}
    yield "examples", {}


def done(command: str, environment: dict[str, str]) -> Done:
    """A run of one command of the list."""
    command, _, before = command.partition(" < ")
    stdin = run(*shlex.split(before)).data if before else b""
    words = [str(HERE / word) if word.startswith("data/") else word for word in shlex.split(command)]
    return run(*words, stdin=stdin, **environment)


def fingerprint(result: Done) -> str:
    """The exit code, and eight bytes of a digest of what was printed; the folder's own path doesn't count."""
    said = result.data + b"\0" + result.error.encode()
    said = said.replace(str(HERE).encode(), b"tests")
    return f"{result.code} {hashlib.sha256(said).hexdigest()[:16]}"


def lines() -> Iterator[str]:
    for command, environment in commands():
        said = " ".join(f"{name}={value}" for name, value in environment.items())
        yield f"{fingerprint(done(command, environment))}  {said + ' ' if said else ''}attncli {command}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--show"]:
        shown = done(shlex.join(sys.argv[2:]), {})
        print(shown.text, shown.error, sep="")
    else:
        LIST.write_text("\n".join(lines()) + "\n", encoding="utf-8")
