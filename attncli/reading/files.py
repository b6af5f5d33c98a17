"""Files that hold matrices: found, told apart by their content, and opened. What is in them is read elsewhere."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attncli.language.errors import AttncliError, Place
from attncli.maths.ops import Array
from attncli.reading import arrays, documents, paths
from attncli.reading.arrays import Archive, Npz, Safetensors
from attncli.reading.nodes import Document, Node

MAX_TEXT = 64 * 2**20
"""Bytes of a text file."""
MAX_STREAM = 256 * 2**20
"""Bytes of what comes through a pipe."""

Content = Array | Archive | Document
"""What a file may hold: one array, named arrays, or text."""


def find(text: str, node: Node) -> Path:
    """The file that a text in a document means; AttncliError where it may not be read or isn't there."""
    document = node.document
    if not text.strip():
        raise node.error("a file's name is empty")
    path = document.folder / text
    if "\0" in text:
        raise node.error("a path cannot hold the character U+0000")
    if document.confined and not _inside(path, document.folder):
        hint = "An answer sheet may only name files in its own folder."
        raise node.error(f"{text} lies outside the folder of the answer sheet", hint=hint)
    return path


def _inside(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        return False


def load(path: Path, shown: str) -> Content:
    """What a file holds: its first bytes decide, then its suffix. ``shown`` is its name in messages.

    Raises AttncliError that starts with the name.
    """
    with _errors_named(path, shown):
        return _load(path)


@contextmanager
def _errors_named(path: Path, shown: str) -> Iterator[None]:
    """What the block raises, as an error that starts with the name of the file."""
    if not shown:
        raise AttncliError("a file's name is empty")
    try:
        yield
    except AttncliError as error:
        raise _named(error, shown) from None
    except FileNotFoundError:
        raise missing(path, shown) from None
    except (OSError, ValueError) as error:
        raise unreadable(error, shown) from None


def _named(error: AttncliError, shown: str) -> AttncliError:
    """An error of a file's content; where it has a place, that names the file already."""
    what = error.what if error.where and error.where.file else f"{shown}: {error.what}"
    return AttncliError(what, hint=error.hint, where=error.where)


def missing(path: Path, shown: str) -> AttncliError:
    """The error for a file that is not there, or for a pattern that the shell left as it stands."""
    if is_pattern(shown):
        return _unmatched(path, shown)
    near = paths.nearest(path)
    folder = str(path.parent)
    looked = "this folder" if folder == "." else f"the folder {folder!r}"
    hint = f"Did you mean {near}?" if near else f"It was looked for in {looked}."
    return AttncliError(f"{shown}: there is no such file", hint=hint)


def is_pattern(text: str) -> bool:
    """Whether a name that no file has is a pattern, which the shell would have replaced if files matched it."""
    return re.search(r"[*?]|\[.+\]", text) is not None


def _unmatched(path: Path, shown: str) -> AttncliError:
    from glob import iglob

    if next(iglob(str(path)), None) is not None:
        what = f"{shown}: this is a pattern, and no file is called so"
        return AttncliError(what, hint="Write it without quotes: the shell puts the files' names in its place.")
    hint = () if path.parent.is_dir() else f"There is no folder {str(path.parent)!r}."
    return AttncliError(f"{shown}: this pattern matches no file", hint=hint)


def unreadable(error: OSError | ValueError, shown: str) -> AttncliError:
    """The error for a file that the system does not give."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return AttncliError(f"{shown} cannot be read: {reason[:1].lower()}{reason[1:]}")


def _load(path: Path) -> Content:
    kind = path.suffix.lower().lstrip(".")
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise AttncliError("this is a folder, not a file")
    if kind in paths.FOREIGN:
        raise foreign(kind)
    if not stat.S_ISREG(mode):
        return from_bytes(_read(path, MAX_STREAM), str(path), folder=path.parent)
    with path.open("rb") as stream:
        start = stream.read(8)
    if start.startswith(b"\x93NUMPY"):
        return arrays.npy(path)
    if start.startswith(b"PK"):
        return Npz(path)
    if kind == "safetensors":
        return Safetensors(path)
    if kind in ("npy", "npz"):
        raise _misnamed(path, kind)
    return from_bytes(_read(path, MAX_TEXT), str(path), folder=path.parent)


def _misnamed(path: Path, kind: str) -> AttncliError:
    start = _read(path, MAX_TEXT)[:100] if path.stat().st_size <= MAX_TEXT else b"\0"
    if not start:
        return AttncliError("the file is empty")
    return AttncliError(arrays.not_npy(start).what.replace(".npy", f".{kind}"), hint="numpy.save writes .npy files.")


def foreign(kind: str) -> AttncliError:
    """The error for a file of a kind that isn't read, with the way to convert it."""
    if kind in ("pt", "pth", "bin", "ckpt", "pkl", "pickle"):
        return AttncliError(f".{kind} files hold Python objects, which are never unpickled", hint=arrays.CONVERT_TORCH)
    known = ", ".join(f".{suffix}" for suffix in paths.SUFFIXES)
    return AttncliError(f".{kind} files are not read", hint=f"Matrices are read from {known}.")


def from_bytes(data: bytes, name: str, *, folder: Path | None = None) -> Content:
    """What some bytes hold: an .npy file, an .npz or .safetensors archive, or text."""
    if not data:
        raise AttncliError("the file is empty" if folder is not None else "nothing came in", where=Place(name))
    if data.startswith(b"\x93NUMPY"):
        return arrays.npy_from_bytes(data)
    if data.startswith(b"PK"):
        return Npz(data)
    if len(data) > 9 and data[8:9] == b"{" and int.from_bytes(data[:8], "little") <= len(data):
        return Safetensors(data)
    return Document(documents.decode(data, name), name, folder=folder)


def _read(path: Path, limit: int) -> bytes:
    """All bytes, also of a pipe; AttncliError beyond the limit, which is looked at first where the size is known."""
    hint = "Save large matrices as .npy files (numpy.save) and name these."
    if path.stat().st_size > limit:
        raise AttncliError(
            f"the file has {path.stat().st_size // 2**20} MB, and {limit // 2**20} MB are read", hint=hint
        )
    with path.open("rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise AttncliError(f"more than {limit // 2**20} MB", hint=hint)
    return data


def read_text(path: Path, shown: str) -> bytes:
    """The bytes of a problem file or an answer sheet. Raises AttncliError as `load` does."""
    with _errors_named(path, shown):
        if path.is_dir():
            raise AttncliError("this is a folder, not a file")
        return _read(path, MAX_TEXT)


def is_regular(path: Path) -> bool:
    """Whether a path is a file of known size (no pipe, no folder)."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
