"""Matrices as people write them, with the text and the place of each entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import attncli
from attncli.language.errors import AttncliError
from attncli.reading import documents, matrices
from attncli.reading.lists import Matrix, Wanted
from attncli.reading.nodes import Document, Mapping


def read(text: str, key: str = "W", **wanted: bool) -> Matrix:
    """The matrix after ``W: `` in a problem file."""
    root = documents.parse(Document(f"{key}: {text}\n", "p.yaml"))
    assert isinstance(root, Mapping)
    return matrices.read(root.items[key], Wanted(key, **wanted))


def refusal(text: str, **wanted: bool) -> AttncliError:
    with pytest.raises(AttncliError) as caught:
        read(text, **wanted)
    return caught.value


IDENTITY = [[1, 0], [0, 1]]

WRITTEN = {
    "[[1, 0], [0, 1]]": IDENTITY,
    "\n  - [1, 0]\n  - [0, 1]": IDENTITY,
    "\n  - - 1\n    - 0\n  - - 0\n    - 1": IDENTITY,
    '"1 0; 0 1"': IDENTITY,
    "1 0; 0 1": IDENTITY,
    "'1, 0; 0, 1'": IDENTITY,
    "'[1 0; 0 1]'": IDENTITY,
    "'1 0; 0 1;'": IDENTITY,
    "|\n  1 0\n  0 1": IDENTITY,
    "|\n  1, 0\n  0, 1\n": IDENTITY,
    ">-\n  1 0;\n  0 1": IDENTITY,
    "{identity: 2}": IDENTITY,
    "{diag: [1, 1]}": IDENTITY,
    '{diag: "1 1"}': IDENTITY,
    "{zeros: [2, 3]}": [[0, 0, 0], [0, 0, 0]],
    "{ones: [1, 2]}": [[1, 1]],
    "{product: [[[1, 0], [0, 2]], [[3], [4]]]}": [[3], [8]],
    "[[1/2, sqrt(4)], [2^3, −1]]": [[0.5, 2], [8, -1]],
    "1/2 sqrt(4); 2^3 −1": [[0.5, 2], [8, -1]],
    "'1 / 2, 2; 3, 4'": [[0.5, 2], [3, 4]],
    "[1e-3, 1e3, 1.0e3, 1.0e-3, .5, -.5, 010, 08]": [0.001, 1000, 1000, 0.001, 0.5, -0.5, 10, 8],
    "[[[1, 2]], [[3, 4]]]": [[[1, 2]], [[3, 4]]],
    "1 2 3": [1, 2, 3],
    "[1, 2, 3]": [1, 2, 3],
    "[[-inf, .inf], [Infinity, -Infinity]]": [[-np.inf, np.inf], [np.inf, -np.inf]],
    '[["-inf", "nan"]]': [[-np.inf, np.nan]],
    "[['0.5', \"1\"]]": [[0.5, 1]],
}


@pytest.mark.parametrize(("text", "expected"), WRITTEN.items())
def test_ways_to_write_a_matrix(text: str, expected: Any) -> None:
    matrix = read(text)
    assert matrix.array is not None
    assert matrix.array.dtype == np.float64
    np.testing.assert_array_equal(matrix.array, expected)
    assert matrix.array.shape == np.shape(expected)


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("[[1.50, 2], [3e-1, 1/3]]", [["1.50", "2"], ["3e-1", "1/3"]]),
        ("[[1.50, 2], [3e-1, 4]]", [["1.50", "2"], ["3e-1", "4"]]),
        ("1.50 2; 3e-1 1/3", [["1.50", "2"], ["3e-1", "1/3"]]),
        ("|\n  1.50 2\n  3e-1 1/3", [["1.50", "2"], ["3e-1", "1/3"]]),
        ("\n- - 1.50\n  - 2\n- - 3e-1\n  - 4", [["1.50", "2"], ["3e-1", "4"]]),
        ("{diag: [2.50, 3]}", [["2.50", "0"], ["0", "3"]]),
        ("[[[1, 2.0]]]", [[["1", "2.0"]]]),
        ('[["-inf", 0.5]]', [["-inf", "0.5"]]),
    ],
)
def test_entries_keep_their_texts(text: str, texts: Any) -> None:
    written = read(text).written
    assert written is not None
    assert written.texts.tolist() == texts


@pytest.mark.parametrize(
    ("text", "index", "line", "column"),
    [
        ("[[1, 2], [3, 45]]", (1, 1), 1, 17),
        ("[[1, 2], [3, 1/3]]", (1, 1), 1, 17),
        ("\n  - [1, 2]\n  - [3, 45]", (1, 1), 3, 9),
        ("\n  - - 1\n    - 2\n  - - 3\n    - 4", (1, 0), 4, 7),
        ("'1 2; 3 45'", (1, 1), 1, 12),
        ("|\n  1 2\n  3 45", (1, 1), 3, 5),
        ("|\n  1 1\n  1 1", (1, 0), 3, 3),
        ("[[[1, 2]], [[3, 4]]]", (1, 0, 1), 1, 20),
    ],
)
def test_entries_know_their_places(text: str, index: tuple[int, ...], line: int, column: int) -> None:
    written = read(text).written
    assert written is not None
    place = written.place(index)
    assert place is not None
    assert (place.file, place.line) == ("p.yaml", line)
    assert place.column == column


def test_normal_is_numpy_s_generator() -> None:
    expected = np.random.default_rng(7).normal(size=(2, 3))
    np.testing.assert_array_equal(read("{normal: [2, 3], seed: 7}").array, expected)


def test_a_product_keeps_the_shapes_of_its_factors() -> None:
    matrix = read("{product: ['1 0; 0 1; 1 1', [[1, 2, 3, 4], [5, 6, 7, 8]]]}")
    assert matrix.factors == ((3, 2), (2, 4))
    np.testing.assert_array_equal(matrix.array, [[1, 2, 3, 4], [5, 6, 7, 8], [6, 8, 10, 12]])


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ("[[1, 2], [3]]", "row 2 of W has 1 number, and row 1 has 2 numbers", "line 1, column 13"),
        ("\n  - [1, 2]\n  - [3]", "row 2 of W has 1 number", "line 3, column 5"),
        ("1 2; 3", "row 2 of W has 1 number, and row 1 has 2 numbers", "line 1, column 9"),
        ("[[1, 2], 3]", "W mixes numbers with rows: entry 2 is a single number", "line 1, column 13"),
        ("[[[1]], [[2, 3]]]", "row 2 of W has shape (1, 2), and row 1 has shape (1, 1)", "line 1"),
        ("[[1, x]]", "W[1,2]: 'x' is not a number", "line 1, column 9"),
        ("1 2; x 3", "W[2,1]: 'x' is not a number", "line 1, column 9"),
        ("[[1, 1:30]]", "W[1,2]: '1:30': a colon in a number", "line 1, column 9"),
        ("[[1, 1_000]]", "W[1,2]: '1_000': underscores in a number", "line 1, column 9"),
        ("[[1 0], [0 1]]", "W[1,1]: '1 0': two numbers where one is expected", "line 1, column 6"),
        ("[[1, yes]]", "W[1,2]: 'yes' is not a number", "line 1, column 9"),
        ("[[1, null]]", "W[1,2]: an entry is empty", "line 1, column 9"),
        ("[[1, ?]]", "W[1,2]: an entry is empty", "line 1, column 9"),
        ("[[1, {a: 1}]]", "W[1,2] is not a number", "line 1, column 9"),
        ("'1,, 2'", "W[1,2]: an entry is empty", "line 1"),
        ("[]", "W is empty", "line 1, column 4"),
        ("[[], []]", "W[1] is empty", "line 1, column 5"),
        ("''", "W is empty", "line 1"),
        ("hello", "W is 'hello', which is neither a matrix nor a file", "line 1, column 4"),
        ("{diagonal: [1]}", "W is none of the ways to write a matrix", "line 1, column 4"),
        ("{diag: [1], zeros: [1, 1]}", "W is diag and zeros", "line 1"),
        ("{diag: [[1]]}", "W: {diag: [2, 3]} takes one list of numbers", "line 1"),
        ("{zeros: [2, 0]}", "W: {zeros: [rows, columns]} takes whole numbers from 1", "line 1"),
        ("{zeros: x}", "W: {zeros: [rows, columns]} takes whole numbers from 1", "line 1"),
        ("{normal: [2, 2]}", "W: {normal: [rows, columns], seed: s} needs a whole number as seed", "line 1"),
        ("{normal: [2, 2], sed: 1}", "W: unknown option 'sed'", "line 1, column 21"),
        ("{product: [[[1]]]}", "W: {product: [A, B]} takes two matrices", "line 1"),
        ("{product: [[[1, 2]], [[1, 2]]]}", "W: a product of shapes (1, 2) and (1, 2)", "line 1"),
        ("{product: [identity, [[1]]]}", "W: identity has no size here", "line 1"),
    ],
)
def test_what_is_no_matrix_is_refused_with_its_place(text: str, what: str, place: str) -> None:
    error = refusal(text).errors[0]
    assert what in error.what
    assert error.where is not None
    assert place in str(error)


def test_all_wrong_entries_are_told_at_once() -> None:
    told = refusal("[[1, x, 3],\n    [y, 5, 1_0]]").errors
    assert [error.what.partition(":")[0] for error in told] == ["W[1,2]", "W[2,1]", "W[2,3]"]


def test_true_and_false_are_for_masks_alone() -> None:
    np.testing.assert_array_equal(read("[[true, false], [1, 0]]", booleans=True).array, [[1, 0], [1, 0]])
    assert "not a number" in refusal("[[true, false]]").what
    assert "not a number" in refusal("[[yes, no]]", booleans=True).what


def test_blanks_are_for_answers_alone() -> None:
    matrix = read("[[1, ?], [null, ~], ['', 2]]", blanks=True)
    np.testing.assert_array_equal(matrix.array, [[1, np.nan], [np.nan, np.nan], [np.nan, 2]])


def load(*settings: str) -> attncli.Problem:
    return attncli.load(None, *settings)


def test_identity_takes_the_size_of_what_it_multiplies() -> None:
    memory = "memory=[[1, 2, 3], [4, 5, 6]]"
    problem = load("Z=[[1, 2]]", memory, "W_Q=1 2 3; 4 5 6", "W_K=identity", "W_V=1 0; 0 1; 1 1", "W_O=identity")
    np.testing.assert_array_equal(problem.W_K, np.eye(3))
    np.testing.assert_array_equal(problem.W_O, np.eye(2))
    np.testing.assert_array_equal(load("Z=[[1, 2]]", *(f"W_{s}=identity" for s in "QKV")).W_Q, np.eye(2))


def test_identity_in_columns_heads_and_grouped_queries() -> None:
    columns = load("layout=columns", "Z=[[1, 2, 3], [4, 5, 6]]", *(f"W_{s}=identity" for s in "QKV"))
    np.testing.assert_array_equal(columns.W_Q, np.eye(2))
    heads = [f"heads.{r}.W_{s}=1; 2" for r in (1, 2) for s in "QKV"]
    np.testing.assert_array_equal(load("Z=[[1, 2]]", *heads, "W_O=identity").W_O, np.eye(2))
    grouped = load(
        "Z=[[1, 2]]", "num_heads=2", "num_kv_heads=1", "W_Q=identity", "W_K=1; 2", "W_V=1; 2", "W_O=identity"
    )
    np.testing.assert_array_equal(grouped.W_O, np.eye(2))


def test_identity_without_anything_around_asks_for_a_size() -> None:
    with pytest.raises(AttncliError) as caught:
        load("Q=identity", "K=[[1]]", "V=[[1]]")
    assert caught.value.what == "Q: nothing says how large this identity is"
    assert caught.value.hint == ("Give its size: {identity: 2}.",)


@pytest.mark.parametrize("entry", ["nan", ".nan", "inf", "-inf"])
@pytest.mark.parametrize("key", ["Z", "W_K", "b_V"])
def test_inputs_and_weights_are_finite(key: str, entry: str) -> None:
    keys = {"Z": "[[1, 2]]", "W_Q": "identity", "W_K": "[[1, 2]\n, [3, 4]]", "W_V": "identity", "b_V": "[1, 2]"}
    keys[key] = keys[key].replace("2", entry, 1)
    with pytest.raises(AttncliError) as caught:
        load(*(f"{name}={value}" for name, value in keys.items()))
    (error,) = caught.value.errors
    cell = "[2]" if key == "b_V" else "[1,2]"
    assert error.what.startswith(f"{key}{cell} is ")
    assert error.where is not None
    assert error.where.column == len(key) + (7 if key != "b_V" else 6)


def test_given_stages_may_hold_infinity_and_nan() -> None:
    problem = load("masked_scores=[[0, -inf]]", "V=[[1], [.nan]]")
    np.testing.assert_array_equal(problem.given["masked_scores"], [[[0, -np.inf]]])
    assert np.isnan(problem.given["V"]).sum() == 1
