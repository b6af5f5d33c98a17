"""Hostile and broken input: an error before long and within 500 MB, one clear message, nothing written."""

from __future__ import annotations

import io
import os
import signal
import struct
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

LOAD = """
import sys, attncli
try:
    attncli.load(*sys.argv[1:])
except attncli.AttncliError as error:
    print(error)
    sys.exit(2)
"""

REST = "W_Q: [[1]]\nW_K: [[1]]\nW_V: [[1]]\n"


HANGING = 10
"""Seconds of work that no refusal comes near: it takes two at most on an idle machine. Speed is for the benchmarks."""


class Outcome:
    """What a run of its own gave: status, both streams, seconds, and the most memory it had in MB."""

    def __init__(self, arguments: list[str], folder: Path) -> None:
        start = time.monotonic()
        with open(folder.parent / "out.txt", "w+b") as out, open(folder.parent / "err.txt", "w+b") as err:
            child = subprocess.Popen([sys.executable, "-c", LOAD, *arguments], cwd=folder, stdout=out, stderr=err)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = self.status = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            self.out, self.err = out.read().decode(), err.read().decode()
        self.seconds = time.monotonic() - start
        self.user_seconds = usage.ru_utime + usage.ru_stime
        self.megabytes = usage.ru_maxrss / 1024


def refused(folder: Path, *arguments: str) -> str:
    """Run and hold to all the promises; gives the message."""
    before = {path: path.lstat().st_mtime_ns for path in folder.iterdir()}
    outcome = Outcome(list(arguments), folder)
    assert outcome.err == ""
    assert outcome.status == 2, outcome.out
    assert outcome.user_seconds < HANGING
    assert outcome.megabytes < 500
    assert {path: path.lstat().st_mtime_ns for path in folder.iterdir()} == before
    assert outcome.out.strip()
    return outcome.out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def npy(array: object, **options: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array, **options))  # type: ignore[call-overload]
    return stream.getvalue()


def npy_header(shape: str, descr: str = "<f8") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def bomb() -> bytes:
    """An .npz of 300 kB that holds 300 MB of zeros."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("Z.npy", "w") as member:
        member.write(npy_header("(40000000, 1)"))
        for _ in range(320):
            member.write(bytes(10**6))
    return stream.getvalue()


def aliases() -> str:
    """Nine levels of nine aliases each: 43 million leaves."""
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    return "\n".join([*lines, "Z: *a8", REST])


PROBLEMS: dict[str, tuple[Callable[[], bytes | str], str]] = {
    "empty": (lambda: "", "says nothing|is empty"),
    "only a comment": (lambda: "# nothing\n", "says nothing"),
    "binary": (lambda: bytes(range(256)) * 10, "not text|not UTF-8|no text"),
    "pickle": (lambda: b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94.", "pickle"),
    "a PNG": (lambda: b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "PNG"),
    "latin-1": (lambda: b"tokens: [caf\xe9]\n", "byte 0xE9 is not UTF-8"),
    "nested lists": (lambda: "Z: " + "[" * 2000, "nested"),
    "a million brackets": (lambda: "Z: " + "[" * 10**6, "nested|value was expected"),
    "a million closed brackets": (lambda: "Z: " + "[" * 500_000 + "1" + "]" * 500_000, "nested"),
    "nested mappings": (lambda: "".join(f"{' ' * i}a:\n" for i in range(500)), "nested"),
    "nested JSON": (lambda: '{"Z": ' + "[" * 5000, "nested"),
    "alias bomb": (aliases, "values"),
    "alias of itself": (lambda: "Z: &z [*z, 1]\n", "stands for nothing"),
    "python tag": (lambda: "Z: !!python/object/apply:os.system ['echo boom']\n", "tag"),
    "python name": (lambda: "Z: !!python/name:os.system\n", "tag"),
    "own tag": (lambda: "Z: !matrix [[1]]\n", "tag"),
    "100 MB": (lambda: "Z: [[" + "1, " * 33_000_000 + "1]]\n", "MB"),
    "60 MB of numbers": (lambda: "Z: [[" + "1, " * 20_000_000 + "1]]\n", "values"),
    "60 MB of words": (lambda: "Z: [[" + "x, " * 20_000_000 + "1]]\n", "values"),
    "60 MB of lines": (lambda: "Z:\n" + "- 1\n" * 15_000_000, "values"),
    "60 MB of one number": (lambda: "Z: [[" + "1" * 60_000_000 + "]]\n", "characters"),
    "60 MB of one key": (lambda: "Z" * 60_000_000 + ": 1\n", "characters"),
    "60 MB of blanks": (lambda: "Z:" + " " * 60_000_000 + "1\n", "blanks"),
    "100000 keys": (lambda: "".join(f"k{i}: 1\n" for i in range(100_000)), "more than 10,000 keys"),
    "9000 keys": (lambda: "".join(f"k{i}: 1\n" for i in range(9000)), "and 8980 more mistakes"),
    "100000 keys in a mask": (lambda: "mask:\n" + "".join(f"  k{i}: 1\n" for i in range(100_000)), "10,000 keys"),
    "100000 wrong numbers": (lambda: "Z: [[" + "x, " * 100_000 + "1]]\n", "more mistakes|more entries"),
    "100000 heads": (lambda: "heads: [" + "{}, " * 100_000 + "{}]\n", "."),
    "many quotes": (lambda: "note: " + "'" * 1_000_001 + "\n", "never closed"),
    "many question marks": (lambda: "Z: [" + "?, " * 100_000 + "?]\n", "empty"),
    "many tabs": (lambda: "\t" * 10**6 + "Z: 1", "tab"),
    "many anchors": (lambda: "Z: [" + ", ".join(f"&a{i} x" for i in range(100_000)) + "]\n", "not a number"),
    "a word for a matrix": (lambda: "Z: hello\n" + REST, "neither a matrix nor a file"),
    "long word": (lambda: "Z: '" + "a" * 10**6 + "'\n" + REST, "."),
    "long word with a sign": (lambda: "Z: '" + "a" * 10**6 + "!'\n" + REST, "characters"),
    "long block of escapes": (lambda: 'Z: "' + r"\u0041 " * 400_000 + '"\n' + REST, "not a number"),
    "many half lists": (lambda: "Z: " + "[1, [2 " * 300_000 + "\n" + REST, "."),
    "many lists": (lambda: "Z: [" + "[1], [], " * 75_000 + "]\n" + REST, "."),
    "many dashes": (lambda: "Z: \n" + "- " * 10**6 + "1\n" + REST, "nested|fits nothing"),
    "dashes and numbers": (lambda: "Z: \n" + "- - 1\n  - 2\n   3\n" * 50_000 + REST, "."),
    "long block": (lambda: 'Z: "' + "1 " * 5_000_000 + '"\n' + REST, "values"),
    "deep expression": (lambda: "Z: ['" + "(" * 10_000 + "']\n" + REST, "characters|deeply"),
    "tower of powers": (lambda: "Z: ['9^9^9^9^9']\n" + REST, "exponent is too large"),
    "control characters": (lambda: "title: a\x1bb\n", "U\\+001B"),
    "two documents": (lambda: "Z: 1\n---\nZ: 2\n", "second document"),
    "a list": (lambda: "- 1\n- 2\n", "a list, not a problem"),
    "a NUL": (lambda: "title: a\0b\n", "U\\+0000|not text"),
    "a path with NUL": (lambda: 'Z: "a\\0b.npy"\n' + REST, "U\\+0000|no such file|value"),
    "its own folder": (lambda: "Z: ..csv\nW_Q: ./.npy\n" + REST.replace("W_Q: [[1]]\n", ""), "no such file"),
    "a huge identity": (lambda: "Z: {identity: 100000000}\n" + REST, "At most"),
    "huge zeros": (lambda: "Z: {zeros: [99999, 99999]}\n" + REST, "At most"),
    "huge normal": (lambda: "Z: {normal: [99999, 99999], seed: 1}\n" + REST, "At most"),
    "a huge diagonal": (lambda: "Z: {diag: [" + "1, " * 9999 + "1]}\n" + REST, "."),
    "nested products": (lambda: "Z: " + "{product: [[[1]], " * 40 + "[[1]]" + "]}" * 40, "nested|missing"),
    "a product too large": (lambda: "Z: {product: [{ones: [100000, 1]}, {ones: [1, 100000]}]}\n" + REST, "."),
    "many heads asked for": (lambda: "num_heads: 1000000000000\nZ: [[1]]\n" + REST, "num_heads"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_hostile_problem_is_refused(name: str, folder: Path) -> None:
    import re

    make, message = PROBLEMS[name]
    content = make()
    (folder / "p.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert re.search(message, refused(folder, "p.yaml"))


FILES: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "text named npy": ("z.npy", lambda: b"Z: [[1]]\n", "it holds a text"),
    "empty npy": ("z.npy", lambda: b"", "empty"),
    "four bytes": ("z.npy", lambda: b"\x93NUM", "no .npy file|damaged"),
    "magic alone": ("z.npy", lambda: b"\x93NUMPY", "damaged"),
    "a cut header": ("z.npy", lambda: npy([[1.0]])[:50], "cut or damaged"),
    "cut numbers": ("z.npy", lambda: npy(np.ones((9, 9)))[:200], "is cut"),
    "10^12 numbers": ("z.npy", lambda: npy_header("(1000000, 1000000)"), "promises 1000000 x 1000000"),
    "10^40 numbers": ("z.npy", lambda: npy_header(f"({10**20}, {10**20})"), "is cut"),
    "a negative shape": ("z.npy", lambda: npy_header("(-1, 2)"), "damaged"),
    "a shape of words": ("z.npy", lambda: npy_header("('a', 2)"), "damaged"),
    "a shape of code": ("z.npy", lambda: npy_header("(__import__('os').system('echo boom'),)"), "damaged"),
    "a header of brackets": ("z.npy", lambda: npy_header("(" * 5000), "damaged"),
    "objects": ("z.npy", lambda: npy_header("(1, 2)", "|O") + b"\x80\x04.", "never unpickled"),
    "git-lfs": ("z.npy", lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
    "a pickle named npy": ("z.npy", lambda: b"\x80\x04\x95\x00", "a Python pickle"),
    "empty npz": ("z.npz", lambda: b"", "empty"),
    "text named npz": ("z.npz", lambda: b"hello", "no .npz file"),
    "a cut npz": ("z.npz", lambda: b"PK\x03\x04" + bytes(50), "cut or damaged"),
    "a zip bomb": ("z.npz", bomb, "too large"),
    "an empty zip": ("z.npz", lambda: b"PK\x05\x06" + bytes(18), "no array"),
    "a torch file": ("w.pt", lambda: b"PK\x03\x04", "weights_only=True"),
    "empty csv": ("z.csv", lambda: b"", "empty"),
    "a csv of blanks": ("z.csv", lambda: b" \n\n", "no numbers"),
    "a csv of words": ("z.csv", lambda: b"a,b\nc,d\n", "is not a number"),
    "a ragged csv": ("z.csv", lambda: b"1,2\n3\n", "row 2 has 1 number"),
    "a huge csv": ("z.csv", lambda: b"1,2\n" * 15_000_000, "cells|MB"),
    "a binary csv": ("z.csv", lambda: bytes(range(256)), "not text|no text|not UTF-8"),
    "a latin csv": ("z.csv", lambda: b"\xe9,1\n1,2\n", "0xE9"),
    "a json of words": ("z.json", lambda: b'["a"]', "is not a number"),
    "nested json": ("z.json", lambda: b"[" * 10_000, "nested"),
    "a cut json": ("z.json", lambda: b"[[1, 2], [3", "not valid JSON"),
    "a json of a text": ("z.json", lambda: b'"hello"', "no matrix"),
    "empty safetensors": ("z.safetensors", lambda: b"", "empty"),
    "cut safetensors": ("z.safetensors", lambda: struct.pack("<Q", 10**15) + b"{}", "cut"),
    "damaged safetensors": ("z.safetensors", lambda: struct.pack("<Q", 4) + b"[1,]", "damaged"),
    "safetensors out of bounds": (
        "z.safetensors",
        lambda: struct.pack("<Q", 65) + b'{"a": {"dtype": "F64", "shape": [9, 9], "data_offsets": [0, 648]}}',
        "cut or damaged|header is damaged",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_refused(name: str, folder: Path) -> None:
    import re

    file, make, message = FILES[name]
    (folder / file).write_bytes(make())
    (folder / "p.yaml").write_text(f"Z: {file}\n{REST}")
    out = refused(folder, "p.yaml")
    assert re.search(message, out)
    assert file in out
    assert "allow_pickle" not in out


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_no_problem_either(name: str, folder: Path) -> None:
    file, make, _ = FILES[name]
    (folder / file).write_bytes(make())
    refused(folder, file)


def test_a_folder_is_refused(folder: Path) -> None:
    (folder / "z.npy").mkdir()
    (folder / "p.yaml").write_text(f"Z: z.npy\n{REST}")
    assert "z.npy: this is a folder" in refused(folder, "p.yaml")
    assert ".: this is a folder" in refused(folder, ".")


def test_a_missing_file_names_the_nearest(folder: Path) -> None:
    (folder / "weights_q.npy").write_bytes(npy([[1.0]]))
    (folder / "p.yaml").write_text(f"Z: weight_q.npy\n{REST}")
    assert "Did you mean weights_q.npy?" in refused(folder, "p.yaml")


def test_a_path_that_is_its_own_parent(folder: Path) -> None:
    (folder / "z.npy").symlink_to("z.npy")
    (folder / "p.yaml").write_text(f"Z: z.npy\n{REST}")
    assert "z.npy cannot be read: too many levels of symbolic links" in refused(folder, "p.yaml")
    (folder / "z.npy").unlink()
    (folder / "q.yaml").symlink_to("q.yaml")
    assert "too many levels of symbolic links" in refused(folder, "q.yaml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(folder: Path) -> None:
    (folder / "z.npy").write_bytes(npy([[1.0]]))
    (folder / "z.npy").chmod(0)
    (folder / "p.yaml").write_text(f"Z: z.npy\n{REST}")
    assert "z.npy cannot be read: permission denied" in refused(folder, "p.yaml")


def test_a_file_named_far_too_long(folder: Path) -> None:
    assert "cannot be read" in refused(folder, "x" * 5000 + ".yaml")
    (folder / "p.yaml").write_text(f"Z: {'z' * 5000}.npy\n{REST}")
    assert "cannot be read" in refused(folder, "p.yaml")


def test_an_endless_device_is_refused(folder: Path) -> None:
    if Path("/dev/zero").exists():
        assert "MB" in refused(folder, "/dev/zero")


def test_a_pipe_that_never_answers_can_be_interrupted(folder: Path) -> None:
    os.mkfifo(folder / "z.npy")
    (folder / "p.yaml").write_text(f"Z: z.npy\n{REST}")
    child = subprocess.Popen([sys.executable, "-c", LOAD, "p.yaml"], cwd=folder, stderr=subprocess.DEVNULL)
    time.sleep(1)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    assert child.wait(5) != 0


def test_a_pipe_that_answers_is_read_whole(folder: Path) -> None:
    import attncli

    fifo = folder / "z.npy"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(npy([[1.0, 2.0]])))
    writer.start()
    problem = attncli.load(None, f"Z={fifo}", "W_Q=identity", "W_K=identity", "W_V=identity")
    writer.join()
    np.testing.assert_array_equal(problem.Z, [[1, 2]])


def test_a_sheet_cannot_read_outside_its_folder(folder: Path) -> None:
    from attncli.reading.sheets import read_sheet

    np.save(folder.parent / "secret.npy", np.ones((2, 2)))
    np.save(folder / "own.npy", np.ones((2, 2)))
    (folder / "link.npy").symlink_to("../secret.npy")
    absolute = folder.parent / "secret.npy"
    for name in ("../secret.npy", str(absolute), "link.npy", "../work/../secret.npy"):
        (folder / "a.yaml").write_text(f"weights: {name}\nscores: {{file: {name}}}\noutputs: own.npy\n")
        stages = read_sheet(folder / "a.yaml").stages
        for stage in ("weights", "scores"):
            error = stages[stage].error
            assert error is not None
            assert "outside the folder of the answer sheet" in error.what
        assert stages["outputs"].error is None
