"""Data formats: json, yaml, csv, tsv, long, npy, npz. Numbers in full, always UTF-8, nothing but data.

A number is written with the fewest digits that give the same number (of the problem's dtype) when they are read
back. −∞ and NaN are the strings "-inf" and "nan" in JSON and YAML, which have no words of their own for them or
spell them each in its way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import IO, TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from attncli.inspecting.summary import Summary
    from attncli.maths.ops import Array
    from attncli.model.problem import Problem
    from attncli.rendering.formats import Options, Stream
    from attncli.rendering.views import View

Row = list[str]
_NOT_FINITE = {"inf", "-inf", "nan"}


def json(view: View, options: Options, stream: Stream) -> None:
    """An object: stage → nested lists, one matrix row a line."""
    for i, name in enumerate(view.stages):
        array = rounded(view.array(name), options.digits)
        stream.write(f'{"," if i else "{"}\n  "{name}": '.encode())
        _write_lines(stream, _json_lines(array, "  "))
    stream.write(b"\n}\n" if view.stages else b"{}\n")


def _json_lines(array: Array, indent: str) -> Iterator[str]:
    """Pieces of text that together are an array as nested lists, outer axes indented."""
    if array.ndim == 2:
        yield "[\n"
        for i, row in enumerate(texts(array)):
            yield f"{',' if i else ''}{chr(10) if i else ''}{indent}  [{', '.join(quoted(row))}]"
    else:
        yield "["
        for i, inner in enumerate(array):
            yield f"{',' if i else ''}\n{indent}  "
            yield from _json_lines(inner, indent + "  ")
    yield f"\n{indent}]"


def yaml(view: View, options: Options, stream: Stream) -> None:
    """A mapping: stage → nested lists, one matrix row a line; readable again as an answer sheet."""
    for name in view.stages:
        array = rounded(view.array(name), options.digits)
        stream.write(f"{name}:\n".encode())
        _write_lines(stream, (line + "\n" for line in _yaml_lines(array)))


def _yaml_lines(array: Array) -> Iterator[str]:
    if array.ndim == 2:
        for row in texts(array):
            yield f"- [{', '.join(quoted(list(map(_with_point, row))))}]"
        return
    for inner in array:
        lines = _yaml_lines(inner)
        yield f"- {next(lines)}"
        for line in lines:
            yield f"  {line}"


def _with_point(text: str) -> str:
    """1e-05 as 1.0e-05: without a point, YAML 1.1 reads a word."""
    return re.sub(r"^(-?\d+)e", r"\1.0e", text) if "e" in text else text


def csv(view: View, options: Options, stream: Stream) -> None:
    """One matrix: a line a row, numbers alone."""
    _separated(view, options, stream, ",")


def tsv(view: View, options: Options, stream: Stream) -> None:
    """One matrix, separated by tabs."""
    _separated(view, options, stream, "\t")


def _separated(view: View, options: Options, stream: Stream, separator: str) -> None:
    (name,) = view.stages
    matrix = rounded(view.only(name), options.digits)
    _write_lines(stream, (separator.join(row) + "\n" for row in texts(matrix)))


def long(view: View, options: Options, stream: Stream) -> None:
    """A line a number, counted from 1: stage, batch (one column an axis, where there are any), head, row, column."""
    axes = len(view.problem.batch)
    batch = ["batch"] if axes == 1 else [f"batch_{i + 1}" for i in range(axes)]
    stream.write((",".join(["stage", *batch, "head", "row", "column", "value"]) + "\n").encode())
    for name in view.stages:
        for matrix in view.matrices(name):
            place = ["" for _ in range(axes - len(matrix.batch))] + [str(i) for i in matrix.batch]
            prefix = ",".join([name, *place, "" if matrix.head is None else str(matrix.head)])
            _write_lines(stream, _long_lines(rounded(matrix.numbers, options.digits), prefix))


def _long_lines(matrix: Array, prefix: str) -> Iterator[str]:
    columns = [f"{j}," for j in range(1, matrix.shape[1] + 1)]
    for i, row in enumerate(texts(matrix), 1):
        start = f"{prefix},{i},"
        yield "".join(chain.from_iterable((start, at, text, "\n") for at, text in zip(columns, row, strict=True)))


def npy(view: View, options: Options, stream: Stream) -> None:
    """One stage for NumPy: (row, column) where one matrix is selected, with all its axes else."""
    (name,) = view.stages
    array = rounded(_plain(view.only(name)), options.digits)
    np.save(stream, np.ascontiguousarray(array), allow_pickle=False)


def _plain(array: Array) -> Array:
    """Exact numbers as floats: NumPy's files hold no others."""
    return array.astype(float) if array.dtype == object else array


def npz(view: View, options: Options, stream: Stream) -> None:
    """All stages for NumPy, each under its name, with all its axes."""
    from zipfile import ZipFile

    with ZipFile(stream, "w") as archive:  # type: ignore[call-overload]  # np.savez wants to seek, which a pipe can't
        for name in view.stages:
            array = np.ascontiguousarray(rounded(_plain(view.array(name)), options.digits))
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _write_npy(member, array)


PIECE = 1 << 20
"""Bytes that go to an archive at a time: they are summed (CRC-32) and copied while they are in cache."""


def _write_npy(stream: IO[bytes], array: Array) -> None:
    """What np.save writes of a whole array, without a copy of it."""
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
    data = array.reshape(-1).view(np.uint8).data
    for first in range(0, len(data), PIECE):
        stream.write(data[first : first + PIECE])


def summary(shown: tuple[Summary, Problem], options: Options, stream: Stream) -> None:
    """What `inspect` found, as JSON."""
    found, _ = shown
    stream.write(found.as_json(options.digits).encode("utf-8", "backslashreplace"))


def texts(matrix: Array) -> Iterator[Row]:
    """Each row's numbers as text: the fewest digits that read back to the same number of the matrix's dtype.

    >>> list(texts(np.array([[0.1, -np.inf]])))
    [['0.1', '-inf']]
    >>> list(texts(np.array([[0.1]], dtype=np.float32)))
    [['0.1']]
    """
    write: Callable[[Array], Row] = _narrow if matrix.dtype.itemsize < 8 else _double
    if matrix.dtype == object:
        write = _exact
    return map(write, matrix)


def _double(row: Array) -> Row:
    return list(map(repr, row.tolist()))


def _narrow(row: Array) -> Row:
    return list(map(str, row))


class Exacts(Row):
    """A row of exact numbers, as problem files read them: ``1/3``, ``sqrt(2)``."""


def _exact(row: Array) -> Row:
    return Exacts(map(str, row))


def quoted(row: Row) -> Row:
    """What is no finite number, as a string; so is every exact number that isn't whole."""
    if isinstance(row, Exacts):
        return [text if text.lstrip("-").isdigit() else f'"{text}"' for text in row]
    return row if _NOT_FINITE.isdisjoint(row) else [f'"{text}"' if text in _NOT_FINITE else text for text in row]


def rounded(array: Array, digits: int | None) -> Array:
    """The numbers to so many decimals, correctly rounded as their decimal expansion is; all of them without ``digits``.

    >>> rounded(np.array([0.125, 1 / 3]), 2).tolist()
    [0.12, 0.33]
    """
    if digits is None or array.dtype == object:
        return array
    numbers = [round(number, digits) if number - number == 0 else number for number in array.ravel().tolist()]
    return np.array(numbers, dtype=array.dtype).reshape(array.shape)


def _write_lines(stream: Stream, lines: Iterator[str], at_once: int = 1 << 18) -> None:
    """Write text in pieces of a quarter of a megabyte."""
    piece: list[str] = []
    size = 0
    for line in lines:
        piece.append(line)
        size += len(line)
        if size >= at_once:
            stream.write("".join(piece).encode())
            piece, size = [], 0
    stream.write("".join(piece).encode())
