"""How long a matrix of a million numbers takes to read, beside yaml's own C loader, json and numpy.

    python tests/benchmarks/reading.py

Each way is measured in this process, the best of three; YAML may take a third of what yaml.load takes.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import attncli.reading.problems as problems
from attncli.reading import arrays, documents

SIZE = 1000
LIMIT = 1 / 3


def seconds(function: Callable[[], Any], times: int = 3) -> float:
    """The best of some runs."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def styles(rows: list[list[str]]) -> dict[str, str]:
    """The same matrix as people and programs write it in YAML."""
    return {
        "a row a line": "weights:\n" + "".join(f"  - [{', '.join(row)}]\n" for row in rows),
        "one list": "weights: [" + ",\n  ".join(f"[{', '.join(row)}]" for row in rows) + "]\n",
        "a number a line": "weights:\n" + "".join("- - " + "\n  - ".join(row) + "\n" for row in rows),
    }


def with_positions(path: Path) -> None:
    """Read a file and ask for the text and the place of its last entry."""
    problem = problems.load(path)
    written = problem.written["weights"]
    assert written.texts[-1, -1]
    place = written.place((SIZE - 1, SIZE - 1))
    assert place is not None
    assert place.line is not None


def main() -> int:
    """Print a line a way of writing; 1 where reading takes longer than it may."""
    rows = [[repr(float(x)) for x in row] for row in np.random.default_rng(0).normal(size=(SIZE, SIZE))]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text in styles(rows).items():
            path = Path(folder, "p.yaml")
            path.write_text(text, encoding="utf-8")
            theirs = seconds(lambda path=path: yaml.load(path.read_bytes(), yaml.CSafeLoader), 1)
            ours = seconds(lambda path=path: problems.load(path))
            asked = seconds(lambda path=path: with_positions(path), 1)
            pure = seconds(lambda text=text: documents.parse(documents.Document(text), pure=True), 1)
            failed |= ours > LIMIT * theirs
            print(f"{name:16} {ours:6.2f} s; yaml {theirs:6.2f} s, {ours / theirs:.2f} of it;", end=" ")
            print(f"with all texts and a place {asked:.2f} s; without the C parser {pure:.2f} s")
        data = json.dumps({"weights": [[float(x) for x in row] for row in rows]})
        Path(folder, "p.json").write_text(data, encoding="utf-8")
        ours, theirs = seconds(lambda: problems.load(Path(folder, "p.json"))), seconds(lambda: json.loads(data))
        print(f"{'JSON':16} {ours:6.2f} s; json {theirs:6.2f} s")
        np.save(Path(folder, "z.npy"), np.ones((4 * SIZE, 4 * SIZE)))
        Path(folder, "p.yaml").write_text("weights: z.npy\n", encoding="utf-8")
        mapped = seconds(lambda: arrays.npy(Path(folder, "z.npy")))
        loaded = seconds(lambda: np.load(Path(folder, "z.npy")))
        print(f"{'.npy, 128 MB':16} {mapped:6.4f} s mapped; numpy.load {loaded:.4f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main())
