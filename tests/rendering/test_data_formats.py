"""Data formats read back: by json, PyYAML, csv and NumPy, into the numbers that were computed."""

from __future__ import annotations

import csv
import io
import json
import math
from importlib import import_module

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from running import data, run
from showing import batches, three_tokens, two_heads

import attncli
from attncli import AttncliError, Problem
from attncli.rendering.formats import FORMATS, Options, chosen
from attncli.rendering.views import Choice, View, check_fits, choose

PROBLEMS = {"three_tokens": three_tokens, "two_heads": two_heads, "batches": batches}
ALL = {
    (name, dtype): lambda make=make, dtype=dtype: make(dtype=dtype)
    for name, make in {"three_tokens": three_tokens, "two_heads": two_heads}.items()
    for dtype in ("float64", "float32", "float16")
} | {("batches", "float64"): batches}


@pytest.fixture(params=ALL, ids="-".join)
def problem(request) -> Problem:
    return ALL[request.param]()


def written(problem: Problem, format: str, choice: Choice | None = None, **options: object) -> bytes:
    """What a format's writer makes of a problem's stages."""
    stream = io.BytesIO()
    choice = choice or choose(problem)
    FORMATS[format].write(View(attncli.compute(problem, choice.stages), choice), Options(**options), stream)
    return stream.getvalue()


def no_bare_word(word: str) -> float:
    raise AssertionError(f"{word} is not JSON")


def from_json(text: bytes) -> dict[str, np.ndarray]:
    read = json.loads(text, parse_constant=no_bare_word)
    return {name: np.array(value, dtype=float) for name, value in read.items()}


def same(found: dict[str, np.ndarray], problem: Problem) -> None:
    result = attncli.compute(problem)
    assert list(found) == list(result)
    for name, array in found.items():
        assert array.shape == result[name].shape
        assert np.array_equal(array.astype(result[name].dtype), result[name], equal_nan=True)


def test_json_holds_every_stage_with_its_axes(problem):
    same(from_json(written(problem, "json")), problem)


def test_yaml_holds_the_same(problem):
    read = yaml.safe_load(written(problem, "yaml"))
    same({name: np.array(value, dtype=float) for name, value in read.items()}, problem)


def test_npz_holds_the_same_in_the_problems_dtype(problem):
    with np.load(io.BytesIO(written(problem, "npz")), allow_pickle=False) as archive:
        assert all(archive[name].dtype == problem.dtype for name in archive)
        same(dict(archive), problem)


def test_npz_does_not_need_to_seek():
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.data = b""

        def write(self, piece) -> int:
            self.data += bytes(piece)
            return len(piece)

    pipe = Pipe()
    FORMATS["npz"].write(View(attncli.compute(three_tokens())), Options(), pipe)
    with np.load(io.BytesIO(pipe.data), allow_pickle=False) as archive:
        same(dict(archive), three_tokens())


@pytest.mark.parametrize("stage", ["K", "scores", "weights", "outputs"])
def test_csv_and_tsv_hold_one_matrix_and_nothing_else(stage):
    problem = three_tokens(mask="causal")
    for format, separator in (("csv", ","), ("tsv", "\t")):
        text = written(problem, format, choose(problem, [stage])).decode()
        rows = list(csv.reader(io.StringIO(text), delimiter=separator))
        assert [[float(cell) for cell in row] for row in rows] == attncli.compute(problem)[stage][0].tolist()


def test_csv_of_one_head_and_one_batch_entry():
    problem = batches()
    text = written(problem, "csv", choose(problem, ["weights"], 2, (1,)))
    assert np.array_equal(np.loadtxt(io.BytesIO(text), delimiter=","), attncli.compute(problem)["weights"][0, 1])


@pytest.mark.parametrize("name", PROBLEMS)
def test_long_has_a_line_a_number_which_says_its_place(name):
    problem = PROBLEMS[name]()
    result = attncli.compute(problem)
    rows = list(csv.DictReader(io.StringIO(written(problem, "long").decode())))
    assert len(rows) == sum(array.size for array in result.values())
    for row in rows:
        place = [row[axis] for axis in ("batch", "head", "row", "column") if row.get(axis)]
        assert result[row["stage"]][tuple(int(i) - 1 for i in place)] == float(row["value"])


def test_npy_is_a_matrix_where_one_is_selected_and_has_all_axes_else():
    problem = two_heads()
    weights = attncli.compute(problem)["weights"]
    assert np.array_equal(np.load(io.BytesIO(written(problem, "npy", choose(problem, ["weights"])))), weights)
    one = np.load(io.BytesIO(written(problem, "npy", choose(problem, ["weights"], 2))))
    assert np.array_equal(one, weights[1])


def test_no_infinity_and_no_nan_stands_bare():
    problem = Problem(
        Q=[[1], [1]], K=[[1], [2]], V=[[3], [5]], mask={"keep": [[1, 0], [0, 0]]}, empty_rows="nan"
    )  # fmt: skip
    text = written(problem, "json").decode()
    assert '"-inf"' in text
    assert '"nan"' in text
    found = from_json(text.encode())
    assert found["masked_scores"][0].tolist() == [[1, -math.inf], [-math.inf, -math.inf]]
    assert np.isnan(found["weights"][0, 1]).all()
    assert yaml.safe_load(written(problem, "yaml"))["masked_scores"] == [[[1.0, "-inf"], ["-inf", "-inf"]]]


floats = st.floats(allow_nan=False, allow_infinity=False)


@given(rows=st.lists(st.lists(floats, min_size=3, max_size=3), min_size=1, max_size=4))
def test_a_number_is_written_so_that_the_same_is_read(rows):
    problem = Problem(Q=[[1.0]] * 2, K=[[1.0]] * len(rows), V=rows)
    choice = choose(problem, ["V"])
    expected = np.array(rows)
    for found in (
        from_json(written(problem, "json", choice))["V"][0],
        np.array(yaml.safe_load(written(problem, "yaml", choice))["V"][0], dtype=object).astype(float),
        np.loadtxt(io.BytesIO(written(problem, "csv", choice)), delimiter=",", ndmin=2),
    ):
        assert np.array_equal(np.signbit(found), np.signbit(expected))
        assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("0.1", "0.1"),
        ("1e-5", "1e-05"),
        ("-0.0", "-0.0"),
        ("1/3", "0.3333333333333333"),
        ("1e22", "1e+22"),
        ("2", "2.0"),
    ],
)
def test_shortest_digits(number, text):
    words = ["compute", "Q=1", "K=1", f"V={number}", "-s", "V"]
    assert data(*words, "-f", "csv").decode().strip() == text
    assert data(*words, "-f", "json").decode().split("[")[-1].split("]")[0] == text


def test_yaml_numbers_with_a_power_are_numbers_for_yaml_too():
    words = ["compute", "Q=1", "K=1", "V=1e-5 1e22 -2.5e-7", "-s", "V", "-f", "yaml"]
    assert yaml.safe_load(data(*words)) == {"V": [[[1e-5, 1e22, -2.5e-7]]]}


def test_what_yaml_wrote_is_an_answer_sheet(tmp_path):
    problem = Problem(Q=[[1], [1]], K=[[1], [2]], V=[[3], [5]], mask={"keep": [[1, 0], [1, 1]]})
    sheet = tmp_path / "sheet.yaml"
    sheet.write_bytes(written(problem, "yaml"))
    words = ["Q: 1; 1", "K: 1; 2", "V: 3; 5", "mask: {keep: [[1, 0], [1, 1]]}"]
    (tmp_path / "p.yaml").write_text("\n".join(words))
    assert run("check", tmp_path / "p.yaml", sheet, "--require", "all").code == 0


@pytest.mark.parametrize(("digits", "row"), [(0, "0.0,0.0,1.0"), (2, "0.25,0.25,0.5"), (4, "0.2483,0.2483,0.5035")])
def test_digits_round_data(digits, row):
    line = data("compute", "three-tokens", "-s", "weights", "-f", "csv", "-d", digits).decode().splitlines()[0]
    assert line == row


def test_digits_round_as_the_decimal_expansion_does():
    """0.125 and 2.5 lie half way, 1.005 and 0.15 a little below as doubles."""
    words = ["compute", "Q=1", "K=1", "-s", "V", "-f", "csv"]
    assert data(*words, "V=0.125 1.005 0.375", "-d", "2").decode() == "0.12,1.0,0.38\n"
    assert data(*words, "V=0.15 0.25 0.35", "-d", "1").decode() == "0.1,0.2,0.3\n"


def test_data_are_utf_8_and_without_colours_whatever_the_terminal():
    for format in ("json", "yaml", "long"):
        plain = data("compute", "three-tokens", "-f", format)
        coloured = data("compute", "three-tokens", "-f", format, FORCE_COLOR="1", COLUMNS="20", encoding="ascii")
        assert plain == coloured


def test_data_longer_than_a_piece_are_whole():
    numbers = np.arange(40_000.0).reshape(200, 200) / 7
    problem = Problem(Q=[[1.0]], K=np.ones((200, 1)), V=numbers)
    choice = choose(problem, ["V"])
    assert np.array_equal(from_json(written(problem, "json", choice))["V"][0], numbers)
    assert np.array_equal(np.loadtxt(io.BytesIO(written(problem, "csv", choice)), delimiter=","), numbers)
    assert len(written(problem, "long", choice).splitlines()) == 40_001


@pytest.mark.parametrize("row", FORMATS.values(), ids=lambda row: row.name)
def test_every_formats_writer_is_there_and_its_suffixes_are_its_own(row):
    module, function = row.writer.split(":")
    if module != "attncli.rendering.pictures.plots":
        assert callable(getattr(import_module(module), function))
    for suffix in row.suffixes:
        assert chosen(None, f"file{suffix}") is chosen(None, f"FILE{suffix.upper()}") is row
        assert [one.name for one in FORMATS.values() if suffix in one.suffixes] == [row.name]
    assert row.name in data("compute", "--help").decode()


@pytest.mark.parametrize("format", ["csv", "tsv", "npy"])
def test_one_matrix_alone_is_asked_for(format):
    problem = two_heads()
    with pytest.raises(AttncliError, match=f"{format} holds one") as caught:
        check_fits(problem, choose(problem), FORMATS[format])
    assert "-s" in caught.value.hint[0]


def test_csv_says_how_to_select_a_head_and_a_batch_entry():
    problem = batches()
    with pytest.raises(AttncliError, match="weights has 2: one a head") as caught:
        check_fits(problem, choose(problem, ["weights"]), FORMATS["csv"])
    assert caught.value.hint == ("Select one with -H, from 1 to 2.",)
    with pytest.raises(AttncliError, match="there are 2 batch entries") as caught:
        check_fits(problem, choose(problem, ["weights"], 1), FORMATS["csv"])
    assert "-B 1" in caught.value.hint[0]
    check_fits(problem, choose(problem, ["weights"], 1, (2,)), FORMATS["csv"])
