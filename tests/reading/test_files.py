"""Files of matrices: .npy, .npz, .csv, .tsv, .txt, .json, .safetensors, and standard input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attncli
from attncli.language.errors import AttncliError
from attncli.reading.sheets import read_sheet

MATRIX = np.array([[1.0, 2.5, -3.0], [0.125, 1e-3, 7.0]])


def z(folder: Path, value: str, key: str = "Q") -> Any:
    """The matrix that a problem file in ``folder`` reads."""
    (folder / "p.yaml").write_text(f"{key}: {value}\nK: [[1, 1, 1]]\nV: [[1]]\n")
    return getattr(attncli.load(folder / "p.yaml"), key)


def refusal(folder: Path, value: str) -> AttncliError:
    with pytest.raises(AttncliError) as caught:
        z(folder, value)
    return caught.value


DTYPES = ["<f8", ">f8", "<f4", ">f4", "<f2", "i1", "<i2", ">i4", "<i8", "u1", "<u4", ">u8", "g", "?"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_any_real_dtype_byte_order_and_memory_order(tmp_path: Path, dtype: str, order: Any) -> None:
    array = np.array([[1, 0, 3], [4, 5, 6]], order=order).astype(dtype)
    np.save(tmp_path / "z.npy", array)
    read = z(tmp_path, "z.npy")
    assert read.dtype == np.float64
    assert read.dtype.isnative
    np.testing.assert_array_equal(read, np.array(array, dtype=float))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.filterwarnings("ignore:Stored array in format")
def test_npy_versions(tmp_path: Path, version: tuple[int, int]) -> None:
    with open(tmp_path / "z.npy", "wb") as stream:
        np.lib.format.write_array(stream, MATRIX, version=version)
    np.testing.assert_array_equal(z(tmp_path, "z.npy"), MATRIX)


def test_npy_is_mapped_not_read(tmp_path: Path) -> None:
    from attncli.reading import arrays

    np.save(tmp_path / "z.npy", MATRIX)
    assert isinstance(arrays.npy(tmp_path / "z.npy"), np.memmap)


def test_float16_is_taken_at_its_value_and_said(tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", np.float16([[0.1, 0.2, 0.3]]))
    (tmp_path / "p.yaml").write_text("Q: z.npy\nK: [[1, 1, 1]]\nV: [[1]]\n")
    problem = attncli.load(tmp_path / "p.yaml")
    assert problem.Q[0, 0] == 0.0999755859375
    assert problem.notes == ("z.npy holds float16: about 3 digits of each number (Q).",)


def test_a_vector_is_one_row_and_a_bias_as_it_is(tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", np.array([1.0, 2.0, 3.0]))
    assert z(tmp_path, "z.npy").shape == (1, 3)
    settings = [f"{key}={tmp_path}/z.npy" for key in ("Z", "b_Q")]
    problem = attncli.load(None, *settings, *(f"W_{s}=identity" for s in "QKV"))
    assert problem.b_Q.shape == (3,)


def test_three_axes_are_a_batch(tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", np.arange(12.0).reshape(2, 2, 3))
    assert z(tmp_path, "z.npy").shape == (2, 2, 3)


REFUSED: dict[str, tuple[Any, str, str]] = {
    "0-d": (np.array(3.0), "holds a single number: its shape is ()", "rows and columns"),
    "no rows": (np.zeros((0, 3)), "is empty: its shape is (0, 3)", ""),
    "complex": (np.array([[1j]]), "holds complex numbers (complex128)", ""),
    "text": (np.array([["a"]]), "holds text", ""),
    "bytes": (np.array([[b"a"]]), "holds text", ""),
    "dates": (np.array([["2020-01-01"]], dtype="datetime64[D]"), "datetime64[D] values", ""),
    "records": (np.zeros((1,), dtype=[("a", float), ("b", int)]), "records with the fields a, b", ""),
    "bfloat16": (np.array([[b"\x80?"]], dtype="V2"), "2-byte opaque values, perhaps bfloat16", "float32"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_npy_of_anything_else_is_refused(tmp_path: Path, name: str) -> None:
    array, what, hint = REFUSED[name]
    np.save(tmp_path / "z.npy", array)
    error = refusal(tmp_path, "z.npy")
    assert "z.npy" in error.what
    assert what in error.what
    assert hint in " ".join(error.hint)
    assert error.key == "Q"
    assert error.where is not None
    assert (error.where.file, error.where.line, error.where.column) == (str(tmp_path / "p.yaml"), 1, 4)


def test_objects_are_refused_with_two_lines_to_convert_them(tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", np.array([[1, None]], dtype=object), allow_pickle=True)
    error = refusal(tmp_path, "z.npy")
    assert error.what == "z.npy: the file holds Python objects, which are never unpickled"
    assert [line.strip() for line in error.hint[1:]] == [
        "import numpy",
        "numpy.save('z.npy', numpy.asarray(matrix, dtype=float))",
    ]


@pytest.mark.parametrize("suffix", ["pt", "pth", "bin", "pkl"])
def test_pickled_weights_are_refused_with_two_lines_to_convert_them(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"w.{suffix}").write_bytes(b"PK\x03\x04")
    error = refusal(tmp_path, f"w.{suffix}")
    assert "never unpickled" in error.what
    assert "safetensors.torch.save_file" in error.hint[-1]


def test_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", MATRIX)
    np.savez_compressed(tmp_path / "two.npz", W_Q=MATRIX, W_K=-MATRIX)
    np.testing.assert_array_equal(z(tmp_path, "one.npz"), MATRIX)
    np.testing.assert_array_equal(z(tmp_path, "two.npz:W_K"), -MATRIX)
    np.testing.assert_array_equal(z(tmp_path, "{file: two.npz, key: W_K}"), -MATRIX)
    error = refusal(tmp_path, "two.npz")
    assert error.what == "two.npz holds several arrays: W_Q, W_K"
    assert error.hint == ("Name the one that is meant: two.npz:W_Q",)
    error = refusal(tmp_path, "two.npz:W_q")
    assert error.hint == ("Did you mean W_Q?", "It holds W_Q, W_K.")


def test_part_of_a_file(tmp_path: Path) -> None:
    array = np.arange(35.0).reshape(5, 7)
    np.save(tmp_path / "w.npy", array)
    np.testing.assert_array_equal(z(tmp_path, "{file: w.npy, rows: [2, 4], columns: [5, 7]}"), array[1:4, 4:7])
    np.testing.assert_array_equal(z(tmp_path, "{file: w.npy, rows: [1, 3], transpose: true}")[:, :3], array[:3].T)
    np.testing.assert_array_equal(z(tmp_path, "{file: w.npy, rows: 5, columns: [1, 3]}"), array[4:, :3])
    assert "rows 4 to 6 of 5" in refusal(tmp_path, "{file: w.npy, rows: [4, 6]}").what
    assert "counts from 1" in refusal(tmp_path, "{file: w.npy, rows: [0, 2]}").what
    assert "counts from 1" in refusal(tmp_path, "{file: w.npy, columns: [3, 2]}").what
    assert "true or false" in refusal(tmp_path, "{file: w.npy, transpose: maybe}").what


def test_part_of_a_vector(tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.arange(24.0))
    (tmp_path / "b.json").write_text(str(list(range(24))))
    for name in ("b.npy", "b.json"):
        for axis in ("rows", "columns"):
            read = z(tmp_path, f"{{file: {name}, {axis}: [4, 6]}}")
            np.testing.assert_array_equal(read, [[3, 4, 5]])
            assert f"{axis} 22 to 25 of 24" in refusal(tmp_path, f"{{file: {name}, {axis}: [22, 25]}}").what
        np.testing.assert_array_equal(z(tmp_path, f"{{file: {name}, rows: 1, columns: [4, 6]}}"), [[3, 4, 5]])
        assert "rows 2 to 2 of 1" in refusal(tmp_path, f"{{file: {name}, rows: 2, columns: [4, 6]}}").what
    (tmp_path / "p.yaml").write_text(
        "Z: [[1]]\nW_Q: [[1, 1]]\nW_K: [[1, 1]]\nW_V: [[1]]\n"
        "b_Q: {file: b.npy, rows: [1, 2]}\nb_K: {file: b.json, columns: [23, 24]}\n"
    )
    problem = attncli.load(tmp_path / "p.yaml")
    assert (problem.b_Q.tolist(), problem.b_K.tolist()) == ([0, 1], [22, 23])


CSV = {
    "z.csv": "1,2.50,-3\n.125,1e-3,7\n",
    "header.csv": "a,b,c\n1,2.50,-3\n.125,1e-3,7\n",
    "labels.csv": ",a,b,c\nthe,1,2.50,-3\ncat,.125,1e-3,7\n",
    "words.csv": "the,1,2.50,-3\ncat,.125,1e-3,7\n",
    "index.csv": ",0,1,2\n0,1,2.50,-3\n1,.125,1e-3,7\n",
    "quoted.csv": '"a","b,c","d"\n"1","2.50","-3"\n".125","1e-3","7"\n',
    "semicolons.csv": "1;2.50;-3\n.125;1e-3;7\n",
    "crlf.csv": "1,2.50,-3\r\n.125,1e-3,7\r\n",
    "blank.csv": "\n1, 2.50, -3\n\n.125, 1e-3, 7\n\n",
    "mark.csv": "\ufeff1,2.50,-3\n.125,1e-3,7\n",
    "fractions.csv": "1,5/2,-3\n1/8,1e-3,7\n",
    "z.tsv": "1\t2.50\t-3\n.125\t1e-3\t7\n",
    "z.txt": "# saved by hand\n1 2.50  -3\n.125 1e-3 7 # the end\n",
    "commas.txt": "1, 2.50, -3\n.125, 1e-3, 7\n",
    "z.json": "[[1, 2.50, -3],\n [0.125, 1e-3, 7]]",
    "member.json": '{"W_Q": [[1, 2.50, -3], [0.125, 1e-3, 7]]}',
}


@pytest.mark.parametrize("name", CSV)
def test_matrices_as_text(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(CSV[name])
    value = name + ":W_Q" if name == "member.json" else name
    np.testing.assert_array_equal(z(tmp_path, value), MATRIX)


@pytest.mark.parametrize("name", ["z.csv", "header.csv", "labels.csv", "semicolons.csv", "z.txt", "z.json"])
def test_matrices_as_text_keep_how_they_were_written(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(CSV[name])
    (tmp_path / "p.yaml").write_text(f"Q: {name}\nK: [[1, 1, 1]]\nV: [[1]]\n")
    written = attncli.load(tmp_path / "p.yaml").written["Q"]
    assert written.texts[0].tolist() == ["1", "2.50", "-3"]
    place = written.place((0, 1))
    assert place is not None
    assert place.file == str(tmp_path / name)
    assert place.text is not None
    assert place.column is not None
    assert place.text[place.column - 1 :].startswith("2.50")


def test_savetxt_and_back(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "z.txt", MATRIX, header="three columns")
    np.testing.assert_array_equal(z(tmp_path, "z.txt"), MATRIX)
    np.savetxt(tmp_path / "z.csv", MATRIX, delimiter=",")
    np.testing.assert_array_equal(z(tmp_path, "z.csv"), MATRIX)


@pytest.mark.parametrize(
    ("name", "text", "what", "line", "column"),
    [
        ("z.csv", "1,2\n3,x\n", "'x' is not a number", 2, 3),
        ("z.csv", "a,b\n1,2\n3,1_0\n", "'1_0': underscores", 3, 3),
        ("z.csv", "1,2\n3\n", "row 2 has 1 number, and row 1 has 2", 2, None),
        ("z.csv", "0,5;1,5\n2,5;3,5\n", "'0,5': a decimal comma", 1, 1),
        ("z.csv", "1,\n2,3\n", "an entry is empty", 1, 3),
        ("z.json", "[[1, 2], [3]]", "row 2 of Q has 1 number", 1, 10),
        ("z.json", "[[1, 2], [3, yes]]", "Q[2,2]: 'yes' is not a number", 1, 14),
        ("z.json", "[[1, 2], [3, 4]", "a comma or ] was expected", 1, 15),
    ],
)
def test_errors_in_text_files_have_places(
    tmp_path: Path, name: str, text: str, what: str, line: int, column: int | None
) -> None:
    (tmp_path / name).write_text(text)
    error = refusal(tmp_path, name)
    assert what in error.what
    assert error.where is not None
    assert (error.where.file, error.where.line, error.where.column) == (str(tmp_path / name), line, column)


def test_safetensors(tmp_path: Path) -> None:
    save_file = pytest.importorskip("safetensors.numpy").save_file
    arrays = {"attn.q.weight": MATRIX, "b": MATRIX.astype(np.float32), "c": MATRIX.astype(np.float16)}
    save_file({**arrays, "i": np.array([[1, 2, 3]])}, tmp_path / "w.safetensors", metadata={"format": "np"})
    for name, array in arrays.items():
        np.testing.assert_array_equal(z(tmp_path, f"w.safetensors:{name}"), array.astype(float))
    np.testing.assert_array_equal(z(tmp_path, "w.safetensors:i"), [[1, 2, 3]])
    _, _, names = refusal(tmp_path, "w.safetensors").what.partition("w.safetensors holds several arrays: ")
    assert set(names.split(", ")) == {"attn.q.weight", "b", "c", "i"}


def test_safetensors_bfloat16(tmp_path: Path) -> None:
    """bfloat16 is the upper half of float32: 0x3F80 is 1, 0xC020 is -2.5, 0x3DCD is 0.10009765625."""
    numbers = b"\x80\x3f\x20\xc0\xcd\x3d"
    header = json.dumps({"w": {"dtype": "BF16", "shape": [1, 3], "data_offsets": [0, 6]}}).encode()
    (tmp_path / "w.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + numbers)
    np.testing.assert_array_equal(z(tmp_path, "w.safetensors"), [[1, -2.5, 0.10009765625]])


def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "z.npy", MATRIX)
    np.save(tmp_path / "z.npy", -MATRIX)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in" / "p.yaml").write_text("Q: z.npy\nK: [[1, 1, 1]]\nV: [[1]]\n")
    np.testing.assert_array_equal(attncli.load("in/p.yaml").Q, MATRIX)
    np.testing.assert_array_equal(attncli.load("in/p.yaml", "Q=z.npy").Q, -MATRIX)
    np.testing.assert_array_equal(attncli.load("in/p.yaml", "Q=../" + tmp_path.name + "/in/z.npy").Q, MATRIX)


def stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


STREAMS = {
    "npy": npy(MATRIX),
    "npy in Fortran order": npy(np.asfortranarray(MATRIX)),
    "npz": npz(Z=MATRIX),
    "csv": CSV["z.csv"].encode(),
    "csv with a header": CSV["header.csv"].encode(),
    "tsv": CSV["z.tsv"].encode(),
    "blanks": CSV["z.txt"].encode(),
    "json": CSV["z.json"].encode(),
    "yaml": b"- [1, 2.50, -3]\n- [0.125, 1e-3, 7]\n",
    "utf-16": CSV["z.csv"].encode("utf-16"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_standard_input_is_told_apart_by_content(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    stdin(monkeypatch, STREAMS[name])
    problem = attncli.load(None, "Q=-", "K=[[1, 1, 1]]", "V=[[1]]")
    np.testing.assert_array_equal(problem.Q, MATRIX)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"Q": [[1, 2, 3]]}', "-"),
        (b'{"anything": [[1, 2, 3]]}', "-"),
        (b'{"K": [[9]], "Q": [[1, 2, 3]]}', "-"),
        (b'{"K": [[9]], "a": [[1, 2, 3]]}', "{file: -, key: a}"),
        (b'{"a": [[0, 0, 0], [1, 2, 3]]}', "{file: -, rows: [2, 2]}"),
        (b"1 2 3\n", "{file: -}"),
    ],
)
def test_of_an_object_on_standard_input_the_entry_that_is_meant_is_taken(
    monkeypatch: pytest.MonkeyPatch, data: bytes, value: str
) -> None:
    stdin(monkeypatch, data)
    problem = attncli.load(None, f"Q={value}", "K=[[1, 1, 1]]", "V=[[1]]")
    np.testing.assert_array_equal(problem.Q, [[1, 2, 3]])


@pytest.mark.parametrize(
    ("data", "value", "what", "hint"),
    [
        (b'{"a": [[1]], "b": [[2]]}', "-", "standard input holds a, b", "{file: -, key: a}"),
        (b'{"a": [[1]]}', "{file: -, key: b}", "standard input holds a", "{file: -, key: a}"),
        (b"1 2 3\n", "{file: -, key: b}", "standard input is one matrix, and has no member b", "Write -, without key."),
    ],
)
def test_what_can_be_typed_is_said_where_the_entry_is_not_clear(
    monkeypatch: pytest.MonkeyPatch, data: bytes, value: str, what: str, hint: str
) -> None:
    stdin(monkeypatch, data)
    with pytest.raises(AttncliError) as caught:
        attncli.load(None, f"Q={value}", "K=[[1, 1, 1]]", "V=[[1]]")
    assert caught.value.what == what
    assert caught.value.hint[0].endswith(hint)


def test_of_a_file_the_entry_of_the_key_s_own_name_is_taken(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", Q=MATRIX, W_K=-MATRIX)
    (tmp_path / "all.json").write_text(json.dumps({"W_K": [[1]], "Q": MATRIX.tolist()}))
    np.testing.assert_array_equal(z(tmp_path, "all.npz"), MATRIX)
    np.testing.assert_array_equal(z(tmp_path, "all.json"), MATRIX)


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, STREAMS["npy"])
    with pytest.raises(AttncliError, match=r"K reads standard input \(-\), and Q does already"):
        attncli.load(None, "Q=-", "K=-", "V=[[1]]")
    stdin(monkeypatch, b"K: [[1, 1, 1]]\nV: [[1]]\n")
    with pytest.raises(AttncliError, match="Q reads standard input"):
        attncli.load("-", "Q=-")


def test_a_pattern_that_the_shell_left_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sheets").mkdir()
    (tmp_path / "sheets" / "a.yaml").write_text("weights: [[1]]\n")
    for pattern, hint in (("sheets/*.yml", ()), ("sheet[12]/?.yaml", ("There is no folder 'sheet[12]'.",)), ("*x", ())):
        for read in (attncli.load, read_sheet):
            with pytest.raises(AttncliError) as caught:
                read(pattern)
            assert (caught.value.what, caught.value.hint) == (f"{pattern}: this pattern matches no file", hint)
    with pytest.raises(AttncliError) as caught:
        read_sheet("sheets/*.yaml")
    assert caught.value.what == "sheets/*.yaml: this is a pattern, and no file is called so"
    assert "without quotes" in caught.value.hint[0]
    (tmp_path / "[1].yaml").write_text("weights: [[1]]\n")
    assert list(read_sheet("[1].yaml").stages) == ["weights"]


def test_nothing_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"")
    with pytest.raises(AttncliError, match="nothing came in"):
        attncli.load(None, "Q=-", "K=[[1, 1, 1]]", "V=[[1]]")


def test_a_problem_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"Q: [[1, 0]]\nK: [[1, 1]]\nV: [[1]]\n")
    assert attncli.load("-").d_k == 2
    stdin(monkeypatch, npz(Q=[[1, 0]], K=[[1, 1]], V=[[1]]))
    assert attncli.load("-").d_k == 2
    stdin(monkeypatch, npy([[1, 0]]))
    with pytest.raises(AttncliError, match="one matrix, not a problem"):
        attncli.load("-")


def test_a_matrix_as_problem_is_told_to_name_its_key(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("0.5,0.5\n0.25,0.75\n")
    with pytest.raises(AttncliError) as caught:
        attncli.load(tmp_path / "w.csv")
    assert any("name its key: Z=" in hint for hint in caught.value.hint)


def test_an_archive_as_problem(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "p.npz", Z=[[1.0, 0], [0, 1]], W_Q=np.eye(2), W_K=np.eye(2), W_V=np.eye(2), num_heads=2,
        tokens=np.array(["no", "1.50"]), title=np.array("two"), **{"mask.keep": np.array([[1, 0], [1, 1]], dtype=bool)},
    )  # fmt: skip
    problem = attncli.load(tmp_path / "p.npz")
    assert (problem.num_heads, problem.tokens, problem.title) == (2, ("no", "1.50"), "two")
    assert problem.mask is not None
    np.testing.assert_array_equal(np.broadcast_to(problem.mask.allowed, (1, 2, 2))[0], [[True, False], [True, True]])
    np.savez(tmp_path / "q.npz", W_q=np.eye(2))
    with pytest.raises(AttncliError) as caught:
        attncli.load(tmp_path / "q.npz")
    assert "Did you mean W_Q?" in str(caught.value)
