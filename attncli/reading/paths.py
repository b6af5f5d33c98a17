"""Which texts name files, where these lie, and what kind of file some bytes are."""

from __future__ import annotations

import re
from pathlib import Path

SUFFIXES = ("npy", "npz", "csv", "tsv", "txt", "json", "safetensors")
"""Of the files that matrices are read from."""
FOREIGN = ("pt", "pth", "bin", "ckpt", "pkl", "pickle", "h5", "mat", "xlsx", "xls", "ods", "onnx", "gguf", "parquet")
"""Of files that are known, and refused with the way to convert them."""

_PATH = re.compile(rf"(?P<file>.*\.(?:{'|'.join(SUFFIXES + FOREIGN)}))(?::(?P<member>.+))?", re.IGNORECASE | re.DOTALL)

_MAGIC = (
    (b"\x93NUMPY", "a .npy file"),
    (b"PK\x03\x04", "a zip archive (an .npz file, a .pt file, or a spreadsheet)"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x7fELF", "a program"),
    (b"\x89HDF", "an HDF5 file"),
)


def split(text: str) -> tuple[str, str | None] | None:
    """A path and the member after its colon (``w.npz:W_Q``); None where ``text`` names no file."""
    match = _PATH.fullmatch(text.strip())
    if match is None or "\n" in text.strip():
        return None
    return match["file"], match["member"]


def kind_by_content(data: bytes) -> str | None:
    """What the first bytes say a file is, in words; None where they say nothing."""
    if data.startswith(b"version https://git-lfs.github.com/spec"):
        return "a Git LFS pointer (git lfs pull fetches the file itself)"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


def nearest(path: Path) -> str | None:
    """The name in the same folder that is most like a missing file's."""
    from difflib import get_close_matches
    from itertools import islice

    try:
        names = [entry.name for entry in islice(path.parent.iterdir(), 1000)]
        names = [name for name in names if split(path.name) is None or split(name) is not None]
    except OSError:
        return None
    close = get_close_matches(path.name, names, 1, cutoff=0.7)
    return close[0] if close else None
