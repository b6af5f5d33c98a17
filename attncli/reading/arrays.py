"""Arrays out of .npy, .npz and .safetensors, without numpy's loader: nothing is unpickled, no promise is believed.

Every shape is compared with the bytes that are there before anything is read; .npy and .safetensors are memory-mapped.
"""

from __future__ import annotations

import io
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from attncli.language.errors import AttncliError
from attncli.maths.ops import Array

if TYPE_CHECKING:
    from zipfile import ZipInfo


MAX_MEMBER = 2**31
"""Bytes of one member of an archive."""
MAX_RATIO = 200
"""How much a large member may expand. Above 64 MB this tells a zip bomb."""

_NPY = b"\x93NUMPY"
SAVE_AGAIN = (
    "Save it again as numbers, where it can be loaded:",
    "    import numpy",
    "    numpy.save('z.npy', numpy.asarray(matrix, dtype=float))",
)
CONVERT_TORCH = (
    "Such a file may run code when it is loaded. Convert it where it comes from:",
    "    import torch, safetensors.torch",
    "    safetensors.torch.save_file(torch.load('w.pt', weights_only=True), 'w.safetensors')",
)


def npy(path: Path) -> Array:
    """The array of an .npy file, memory-mapped where it is a regular file."""
    with path.open("rb") as stream:
        shape, fortran, dtype = _header(stream)
        offset = stream.tell()
        _check_size(shape, dtype, os.fstat(stream.fileno()).st_size - offset)
    order: Any = "F" if fortran else "C"
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape, order=order)


def npy_from_bytes(data: bytes) -> Array:
    """The array of an .npy file that was read already."""
    stream = io.BytesIO(data)
    shape, fortran, dtype = _header(stream)
    _check_size(shape, dtype, len(data) - stream.tell())
    flat = np.frombuffer(data, dtype, math.prod(shape), stream.tell())
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, Fortran order and dtype; AttncliError where it is no .npy file or one of objects."""
    magic = stream.read(6)
    if not magic:
        raise AttncliError("the file is empty")
    if magic != _NPY:
        raise not_npy(magic + stream.read(100))
    stream.seek(-6, io.SEEK_CUR)
    read: Any = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0, 3: _header_3}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version = np.lib.format.read_magic(stream)
            shape, fortran, dtype = read[version[0]](stream)
    except KeyError:
        raise AttncliError(f"an .npy file of an unknown version, {version[0]}.{version[1]}") from None
    except Exception:  # a header is hostile input to numpy's own parser, which raises whatever it likes
        raise AttncliError("the file is cut or damaged: its .npy header cannot be read") from None
    _refuse_dtype(dtype)
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise AttncliError("the file is damaged: its .npy header promises an impossible shape")
    return shape, fortran, dtype


def _header_3(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Version 3 is version 2 with its header in UTF-8."""
    import ast

    length = int.from_bytes(stream.read(4), "little")
    if length > 10_000:
        raise ValueError("header too long")
    header = ast.literal_eval(stream.read(length).decode("utf-8"))
    return tuple(header["shape"]), bool(header["fortran_order"]), np.lib.format.descr_to_dtype(header["descr"])


def not_npy(start: bytes) -> AttncliError:
    """The error for a file that is called .npy and is something else."""
    from attncli.reading import paths

    kind = paths.kind_by_content(start)
    if kind is None:
        printable = start[:40].decode("ascii", "replace").isprintable() or start.strip()[:1].isalnum()
        kind = "a text" if printable else "something else"
    return AttncliError(f"this is no .npy file: it holds {kind}", hint="numpy.save writes .npy files.")


def _refuse_dtype(dtype: np.dtype[Any]) -> None:
    """Only real numbers and booleans are matrices (and text, which only `tokens` takes)."""
    if dtype.hasobject:
        raise AttncliError("the file holds Python objects, which are never unpickled", hint=SAVE_AGAIN)
    if dtype.names is not None:
        names = ", ".join(dtype.names[:8])
        raise AttncliError(f"the file holds records with the fields {names}", hint="Save one field as a plain array.")
    if dtype.kind == "V":
        hint = "Save it as float32: array.astype('float32')."
        perhaps = ", perhaps bfloat16" if dtype.itemsize == 2 else ""
        raise AttncliError(f"the file holds {dtype.itemsize}-byte opaque values{perhaps}", hint=hint)
    if dtype.kind == "c":
        raise AttncliError(f"the file holds complex numbers ({dtype})", hint="attention here is of real numbers.")
    if dtype.kind not in "biufUS":
        raise AttncliError(f"the file holds {dtype} values, not numbers", hint=SAVE_AGAIN)


def _check_size(shape: tuple[int, ...], dtype: np.dtype[Any], there: int) -> None:
    promised = math.prod(shape) * dtype.itemsize
    if promised > there:
        shown = " x ".join(str(size) for size in shape)
        what = f"the file is cut: its header promises {shown} numbers ({promised:,} bytes), and {there:,} bytes follow"
        raise AttncliError(what, hint="Save or copy it again.")
    if promised == 0:
        raise AttncliError(f"the array in it is empty: its shape is {shape}")


class Archive(Mapping[str, Array]):
    """The members of an .npz or .safetensors file, each read when it is asked for.

    Raises AttncliError where the file or the member is damaged, too large, or no array.
    """

    def __init__(self, source: Path | bytes) -> None:
        self.source = source
        self._read = self._open()

    def _open(self) -> Mapping[str, Any]:
        raise NotImplementedError

    def size(self) -> int:
        """Bytes of the file."""
        return len(self.source) if isinstance(self.source, bytes) else os.stat(self.source).st_size

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


class Npz(Archive):
    """An .npz file: a zip archive of .npy members."""

    def _open(self) -> Mapping[str, Any]:
        if not self.size():
            raise AttncliError("the file is empty")
        import zipfile  # costs a millisecond or two, which a problem without archives doesn't pay

        try:
            self.zip = zipfile.ZipFile(io.BytesIO(self.source) if isinstance(self.source, bytes) else self.source)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
            raise AttncliError("the file is cut or damaged: it is no .npz archive") from error
        infos = {info.filename: info for info in self.zip.infolist()}
        if any(name.endswith(("data.pkl", "/data.pkl")) for name in infos):
            raise AttncliError("this is a file of torch.save", hint=CONVERT_TORCH)
        members = {name.removesuffix(".npy"): info for name, info in infos.items() if name.endswith(".npy")}
        if not members:
            raise AttncliError("there is no array in this archive", hint="numpy.savez writes .npz files.")
        return members

    def __getitem__(self, name: str) -> Array:
        info: ZipInfo = self._read[name]
        bomb = info.file_size > 2**26 and info.file_size > MAX_RATIO * max(1, info.compress_size)
        if info.file_size > MAX_MEMBER or bomb:
            size = f"{info.compress_size:,} bytes that claim to expand to {info.file_size:,}"
            raise AttncliError(f"{name} is too large: {size}", hint="Save it uncompressed, as .npy.")
        try:
            with self.zip.open(info) as stream:
                shape, _, dtype = _header(stream)
                _check_size(shape, dtype, info.file_size - stream.tell())
                stream.seek(0)
                return npy_from_bytes(stream.read())
        except AttncliError as error:
            raise AttncliError(f"{name}: {error.what}", hint=error.hint) from None
        except Exception as error:  # zlib, lzma, bz2 and zipfile raise what they like on damaged input
            raise AttncliError(f"{name}: the archive is cut or damaged here") from error


_SAFE_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


class Safetensors(Archive):
    """A .safetensors file: eight bytes of length, a JSON header, and the numbers."""

    def _open(self) -> Mapping[str, Any]:
        import json

        size = self.size()
        if not size:
            raise AttncliError("the file is empty")
        with io.BytesIO(self.source) if isinstance(self.source, bytes) else self.source.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if size < 8 or length > min(size - 8, 2**24):
                raise AttncliError("this is no .safetensors file, or it is cut")
            try:
                header = json.loads(stream.read(length))
                tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
            except (ValueError, AttributeError, RecursionError):
                raise AttncliError("this is no .safetensors file: its header is damaged") from None
        self.start = 8 + length
        return tensors

    def __getitem__(self, name: str) -> Array:
        entry = self._read[name]
        try:
            kind, shape = entry["dtype"], tuple(int(size) for size in entry["shape"])
            first, last = (int(offset) for offset in entry["data_offsets"])
            valid = all(size >= 0 for size in shape) and 0 <= first <= last <= self.size() - self.start
        except (KeyError, TypeError, ValueError):
            valid = False
        if not valid:
            raise AttncliError(f"{name}: the file is cut or damaged")
        if kind not in _SAFE_TYPES:
            raise AttncliError(f"{name} holds {kind} values, which are not read", hint="Save it as float32.")
        dtype = np.dtype(_SAFE_TYPES[kind])
        if math.prod(shape) * dtype.itemsize != last - first:
            raise AttncliError(f"{name}: the file is damaged: {shape} {kind} values are not {last - first} bytes")
        if not math.prod(shape):
            raise AttncliError(f"{name} is empty: its shape is {shape}")
        if isinstance(self.source, bytes):
            array: Array = np.frombuffer(self.source, dtype, math.prod(shape), self.start + first).reshape(shape)
        else:
            array = np.memmap(self.source, dtype=dtype, mode="r", offset=self.start + first, shape=shape)
        return (array.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else array
