"""Speed and size as ratios against yardsticks, in one run on one machine: ``python tests/benchmarks/run.py``.

Each yardstick (in yardsticks/) is what a good engineer would write for that one job by hand. Times are medians of
seven whole processes unless said. PyTorch's rows need an interpreter that has it: ``--torch PYTHON``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
YARDSTICKS = HERE / "yardsticks"
EXAMPLE = HERE.parents[1] / "configs" / "three-tokens.yaml"
ATTNCLI = str(Path(sys.executable).with_name("attncli"))
RUNS = 7


def seconds(*commands: Sequence[str], runs: int = RUNS, output: Path | None = None) -> list[float]:
    """The median time of each command as a whole process; they take turns, so that a slow minute is everyone's.

    ``output`` is what they write; it is removed before each, so that none is charged for an older file's end.
    """
    times: list[list[float]] = [[] for _ in commands]
    for _ in range(runs):
        for command, spent in zip(commands, times, strict=True):
            if output is not None:
                output.unlink(missing_ok=True)
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            spent.append(time.perf_counter() - start)
    return [float(np.median(spent)) for spent in times]


def said_seconds(*commands: Sequence[str], runs: int = RUNS) -> list[float]:
    """The median of the seconds that each command prints of its own work; they take turns."""
    said = [[float(subprocess.check_output(command)) for command in commands] for _ in range(runs)]
    return [float(median) for median in np.median(said, axis=0)]


def peak(command: Sequence[str]) -> float:
    """The largest resident size of a process, in MiB."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    return float(subprocess.check_output([sys.executable, "-c", code, *command]))


def yardstick(name: str, *arguments: str, python: str = sys.executable) -> list[str]:
    return [python, str(YARDSTICKS / f"{name}.py"), *arguments]


def matrices(folder: Path, n: int, width: int) -> list[str]:
    """Z and four weights as float32 .npy files, and the KEY=VALUE words that name them."""
    rng = np.random.default_rng(0)
    np.save(folder / "Z.npy", rng.standard_normal((n, width), dtype=np.float32))
    for key in ("W_Q", "W_K", "W_V", "W_O"):
        np.save(folder / f"{key}.npy", rng.standard_normal((width, width), dtype=np.float32) / np.float32(width**0.5))
    return [f"{key}={folder / key}.npy" for key in ("Z", "W_Q", "W_K", "W_V", "W_O")]


Row = tuple[str, float, float | None, str]
"""What was measured, attncli's figure over the yardstick's, the goal, and the two figures."""


def start_up(folder: Path, torch: str) -> list[Row]:
    rows = []
    example = str(EXAMPLE)
    for what, ours, theirs, goal in (
        ("compute three-tokens, tables", [ATTNCLI, "compute", example], yardstick("tables", example), 1.35),
        (
            "compute three-tokens, -f json",
            [ATTNCLI, "compute", example, "-f", "json"],
            yardstick("as_json", example),
            1.4,
        ),
        ("--version", [ATTNCLI, "--version"], yardstick("typer_program", "one"), 1.15),
        ("compute --help", [ATTNCLI, "compute", "--help"], yardstick("typer_program", "one", "--help"), 1.15),
    ):
        rows.append(ratio(what, *seconds(ours, theirs), goal))
    if torch:
        theirs = yardstick("three_tokens_torch", example, python=torch)
        rows.append(ratio("compute three-tokens, PyTorch", *seconds([ATTNCLI, "compute", example], theirs), 0.15))
    return rows


def long_sequence(folder: Path, torch: str) -> list[Row]:
    words = matrices(folder, 4096, 512)
    ours = [
        ATTNCLI,
        "compute",
        *words,
        "num_heads=8",
        "dtype=float32",
        "-s",
        "multihead",
        "-o",
        str(folder / "ours.npy"),
    ]
    rows = []
    if torch:
        theirs = yardstick("long_torch", str(folder), python=torch)
        rows.append(ratio("n = 4096, d_model = 512, h = 8: multihead", *seconds(ours, theirs), 0.6))
        error = np.abs(np.load(folder / "ours.npy") - np.load(folder / "torch.npy")).max()
        assert error < 1e-4, f"attncli and PyTorch disagree by {error}"
        ours_alone, theirs_alone = (
            yardstick("long_attention", str(folder)), yardstick("long_torch", str(folder), "6", python=torch)
        )  # fmt: skip
        rows.append(ratio("the attention itself", *said_seconds(ours_alone, theirs_alone, runs=3), 1.3))
    data = sum(path.stat().st_size for path in folder.glob("[ZW]*.npy")) + (4096 * 512 * 4)
    bare = peak([sys.executable, "-c", "import numpy"])
    rows.append(ratio("its peak memory: inputs, outputs, numpy", peak(ours), bare + data / 2**20, 1.5, "MiB"))
    return rows


def longest_sequence(folder: Path, torch: str) -> list[Row]:
    words = matrices(folder, 32768, 64)[:4]
    ours = [ATTNCLI, "compute", *words, "dtype=float32", "-s", "outputs", "-o", str(folder / "ours.npy")]
    half = matrices(folder / "half", 16384, 64)[:4]
    shorter = [ATTNCLI, "compute", *half, "dtype=float32", "-s", "outputs", "-o", str(folder / "half.npy")]
    growth = ratio("n = 32,768: time, over that of n = 16,384", *seconds(ours, shorter, runs=3), 4.4)
    return [ratio("n = 32,768, one head of 64: peak, over 300 MiB", peak(ours), 300, 1.0, "MiB"), growth]


def all_stages(folder: Path, torch: str) -> list[Row]:
    words = matrices(folder, 2048, 512)
    output = folder / "stages.npz"
    ours = [ATTNCLI, "compute", *words, "num_heads=8", "-o", str(output)]
    theirs = yardstick("stages_npz", str(folder), str(output))
    return [ratio("n = 2048, h = 8: every stage to .npz", *seconds(ours, theirs, output=output), 1.1)]


def a_million_numbers(folder: Path, torch: str) -> list[Row]:
    rng = np.random.default_rng(0)
    text = "[" + ",\n".join(str([round(x, 4) for x in row]) for row in rng.standard_normal((1000, 1000)).tolist()) + "]"
    path = folder / "million.yaml"
    path.write_text(f"Q: {text}\nK: [{[0] * 1000}]\n", encoding="utf-8")
    both = (yardstick(name, str(path)) for name in ("yaml_attncli", "yaml_load"))
    return [ratio("a YAML matrix of a million numbers", *said_seconds(*both, runs=3), 0.35)]


def a_class(folder: Path, torch: str) -> list[Row]:
    rng = np.random.default_rng(0)
    for i in range(1000):
        rows = "".join(f"  - [{a:.2f}, {b:.2f}]\n" for a, b in rng.uniform(0, 3, (3, 2)))
        (folder / f"sheet{i:04}.yaml").write_text(f"outputs:\n{rows}", encoding="utf-8")
    command = [ATTNCLI, "check", str(EXAMPLE), *map(str, sorted(folder.glob("sheet*.yaml"))), "-f", "csv"]
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    spent = time.perf_counter() - start
    return [ratio("check of 1,000 sheets of 3 × 2: seconds, over 1000 / 300", spent, 1000 / 300, 1.0)]


def ratio(what: str, ours: float, theirs: float, goal: float, unit: str = "s") -> Row:
    return what, ours / theirs, goal, f"{ours:.3g} {unit} / {theirs:.3g} {unit}"


GROUPS: tuple[Callable[[Path, str], list[Row]], ...] = (
    start_up, long_sequence, longest_sequence, all_stages, a_million_numbers, a_class
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", default="", help="a Python interpreter that has PyTorch")
    parser.add_argument("--only", default="", help="a group: " + ", ".join(group.__name__ for group in GROUPS))
    options = parser.parse_args()
    print(f"{'what':<62} {'ratio':>6} {'goal':>6}   figures")
    for group in GROUPS:
        if options.only in ("", group.__name__):
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "half").mkdir()
                for what, found, goal, figures in group(Path(folder), options.torch):
                    met = "" if goal is None or found <= goal else "  <- above the goal"
                    print(f"{what:<62} {found:>6.2f} {goal or '':>6}   {figures}{met}", flush=True)


if __name__ == "__main__":
    main()
