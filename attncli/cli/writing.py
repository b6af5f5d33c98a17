"""Where output goes: standard output, or a file that is replaced whole or left as it was.

A file's new text is written beside it under another name and then renamed over it. Whoever reads the file sees the
old one or the new one, never half of one. What is no regular file (a terminal, a pipe, /dev/null) is written to.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from attncli.language.errors import AttncliError

CHUNK = 1 << 20
"""How much is written to a pipe at a time, so that it is soon known when nobody reads any more."""


class Output:
    """A stream of bytes that are all written, or it raises: standard output, or what is no regular file."""

    def __init__(self, raw: BinaryIO, name: str = "standard output") -> None:
        self._raw = raw
        self._name = name

    def write(self, data: bytes, /) -> int:
        """Write all of the data. Raises AttncliError, or BrokenPipeError where nobody reads any more."""
        with _named(self._name):
            rest = memoryview(data).cast("B")
            while rest:
                rest = rest[self._raw.write(rest[:CHUNK]) or 0 :]
        return len(data)

    def flush(self) -> None:
        with _named(self._name):
            self._raw.flush()


def is_standard(path: str | None) -> bool:
    """Whether a name means standard output. Opened by its name in /dev, what it was sent to would be cut off first."""
    return path in (None, "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def standard_output() -> Output:
    """Standard output for bytes. Raises AttncliError where it is closed."""
    if sys.stdout is None:
        raise AttncliError("standard output is closed", hint="-o FILE writes to a file.")
    sys.stdout.flush()
    with suppress(OSError, ValueError, AttributeError):  # another program may share it, and not wish to wait
        os.set_blocking(sys.stdout.fileno(), True)
    return Output(sys.stdout.buffer)


@contextmanager
def destination(path: str | None) -> Iterator[Output | BinaryIO]:
    """A stream of bytes to a file (replaced whole when the block ends well), or to standard output (None, "-").

    Raises AttncliError, naming the file, where it can't be written; the file is then as it was.
    """
    if path is None or is_standard(path):
        output = standard_output()
        yield output
        output.flush()
        return
    with _named(path):
        place = _existing(path)
        if path.startswith(("/dev/", "/proc/")) or (place is not None and not stat.S_ISREG(place.st_mode)):
            opened = _directly(path)
        else:
            opened = _replacing(path, place)
        with opened as stream:
            yield stream


def _existing(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


@contextmanager
def _directly(path: str) -> Iterator[Output | BinaryIO]:
    with open(path, "wb") as stream:
        yield Output(stream, path)


@contextmanager
def _replacing(path: str, place: os.stat_result | None) -> Iterator[Output | BinaryIO]:
    if place is not None and not os.access(path, os.W_OK):
        raise PermissionError(13, "it is write-protected")
    target = os.path.realpath(path)  # a link stays one: what it points to is replaced
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise AttncliError(f"can't write {path}: there is no folder {os.path.dirname(path) or folder}")
    beside = os.path.join(folder, f".attncli-{os.urandom(6).hex()}.tmp")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with open(handle, "wb") as stream:
            if place is not None:
                _keep_owner_and_mode(beside, place)
            yield stream
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _keep_owner_and_mode(path: str, place: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(path, place.st_uid, place.st_gid)
    os.chmod(path, stat.S_IMODE(place.st_mode))


@contextmanager
def _named(name: str) -> Iterator[None]:
    """An operating system's refusal as an error that names what couldn't be written; a closed pipe stays one."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise AttncliError(f"can't write {name}: {reason[0].lower()}{reason[1:]}") from error


def silence_standard_output() -> None:
    """Point standard output at nothing, so that what is still to be flushed at exit raises no more."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
