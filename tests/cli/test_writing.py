"""Writing replaces a file whole or leaves it as it was; a pipe that nobody reads ends the run, a full disk is said."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from running import run

from attncli import AttncliError
from attncli.cli.writing import CHUNK, Output, destination, standard_output


def write(path: Path, *pieces: bytes) -> None:
    with destination(str(path)) as stream:
        for piece in pieces:
            stream.write(piece)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_file_is_made_with_the_usual_mode(tmp_path):
    write(tmp_path / "new", b"a", b"b")
    (tmp_path / "usual").write_bytes(b"")
    assert (tmp_path / "new").read_bytes() == b"ab"
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert names(tmp_path) == ["new", "usual"]


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"old")
    file.chmod(0o640)
    write(file, b"new")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, MemoryError, SystemExit])
def test_what_fails_half_way_leaves_the_file_as_it_was_and_nothing_beside_it(failure, tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"old")

    def half() -> None:
        with destination(str(file)) as stream:
            stream.write(b"half")
            raise failure

    with pytest.raises(failure):
        half()
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == ["f"]


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"old")
    with destination(str(file)) as stream:
        stream.write(b"new" * 1000)
        assert file.read_bytes() == b"old"
    assert file.read_bytes() == b"new" * 1000


def test_what_a_link_points_to_is_replaced_and_the_link_stays(tmp_path):
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)
    write(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_a_link_to_nothing_makes_its_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", b"new")
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("none/f", "can't write none/f: there is no folder none"),
        (".", "can't write .: is a directory"),
        ("file/f", "can't write file/f: not a directory"),
        ("x" * 300, "file name too long"),
    ],
)
def test_what_cannot_be_written_is_named_as_it_was_typed(path, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(AttncliError) as caught:
        write(Path(path) if path != "." else ".", b"x")  # type: ignore[arg-type]
    assert said in caught.value.what
    assert names(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_write_protected_file_is_left_alone(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"old")
    file.chmod(0o444)
    with pytest.raises(AttncliError, match="write-protected"):
        write(file, b"new")
    assert file.read_bytes() == b"old"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has a full disk to try")
def test_a_full_disk_is_said():
    with pytest.raises(AttncliError, match="can't write /dev/full: no space left on device"):
        write(Path("/dev/full"), b"x" * 100_000)


def test_a_device_is_written_to_and_not_replaced():
    write(Path(os.devnull), b"x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_named_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe, b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="standard output has a name of its own on Unix")
def test_standard_output_by_its_name_keeps_what_was_there(tmp_path):
    words = [sys.executable, "-m", "attncli", "compute", "three-tokens", "-s", "Q", "-f", "csv", "-o", "/dev/stdout"]
    with open(tmp_path / "log", "wb") as log:
        log.write(b"before\n")
        log.flush()
        subprocess.run(words, stdout=log, check=True, timeout=60)
    assert (tmp_path / "log").read_text() == "before\n1.0,0.0\n0.0,1.0\n1.0,1.0\n"


class Slow(io.RawIOBase):
    """Takes a few bytes at a time, as a pipe may."""

    def __init__(self) -> None:
        self.taken = bytearray()

    def write(self, data) -> int:
        self.taken += bytes(data[:7])
        return min(len(data), 7)


def test_every_byte_is_written_to_what_takes_a_few_at_a_time():
    slow = Slow()
    text = bytes(range(256)) * 4
    assert Output(slow).write(text) == len(text)  # type: ignore[arg-type]
    assert slow.taken == text


def test_a_large_write_is_handed_on_in_pieces():
    sizes = []

    class Counting(io.RawIOBase):
        def write(self, data) -> int:
            sizes.append(len(data))
            return len(data)

    Output(Counting()).write(b"x" * (2 * CHUNK + 1))  # type: ignore[arg-type]
    assert sizes == [CHUNK, CHUNK, 1]


def test_a_closed_standard_output_is_said(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(AttncliError, match="standard output is closed"):
        standard_output()


def test_nothing_is_written_where_the_input_is_wrong(tmp_path):
    file = tmp_path / "w.csv"
    file.write_bytes(b"old")
    assert run("compute", "two-heads", "-o", file).code == 2
    assert run("compute", "no-such-example", "-o", file).code == 2
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == ["w.csv"]
