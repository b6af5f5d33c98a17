"""Problem files and KEY=VALUE: keys, words, masks, and messages with what, where and how to mend."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import DATA

import attncli
from attncli.language.errors import AttncliError
from attncli.model.keys import KEYS
from attncli.reading.examples import folder, names

BROKEN = sorted(path for path in (DATA / "broken").iterdir() if path.suffix != ".txt")
BASE = "Z: [[1, 0], [0, 1], [1, 1]]\nW_Q: identity\nW_K: identity\nW_V: identity\n"


def load(tmp_path: Path, text: str, *settings: str) -> attncli.Problem:
    (tmp_path / "p.yaml").write_text(text)
    return attncli.load(tmp_path / "p.yaml", *settings)


def refusal(tmp_path: Path, text: str, *settings: str) -> AttncliError:
    with pytest.raises(AttncliError) as caught:
        load(tmp_path, text, *settings)
    return caught.value


# Broken files, each beside its full message


def test_there_are_broken_files() -> None:
    assert len(BROKEN) > 25


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.name)
def test_a_broken_file_gives_its_message(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    with pytest.raises(AttncliError) as caught:
        attncli.load(path.name)
    assert str(caught.value) + "\n" == path.with_suffix(".txt").read_text()


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.name)
def test_a_message_has_no_machine_s_words_and_no_blank_line(path: Path) -> None:
    message = path.with_suffix(".txt").read_text()
    assert message.strip()
    for word in ("Traceback", "ndarray", "None", "<class", "tag:yaml.org", "0x7f", "\n\n", "\n  \n"):
        assert word not in message


# Where a problem comes from


def test_paths_strings_and_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.yaml").write_text(BASE)
    monkeypatch.chdir(tmp_path)
    assert attncli.load("p.yaml").n == attncli.load(Path("p.yaml")).n == 3
    assert attncli.load("three-tokens").tokens == ("私", "は", "猫")
    (tmp_path / "three-tokens").write_text(BASE.replace("[0, 1], ", ""))
    assert attncli.load("three-tokens").n == 2


def test_a_name_that_is_no_file_and_no_example() -> None:
    with pytest.raises(AttncliError) as caught:
        attncli.load("three-tokns")
    assert caught.value.what == "three-tokns: there is no such file, and no example of this name"
    assert caught.value.hint[0] == "Did you mean three-tokens?"


def test_json_is_read_like_yaml(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(
        '{"Z": [[1, 0]], "W_Q": "identity", "W_K": "identity", "W_V": [[2], [0]], "tokens": ["no"]}'
    )
    problem = attncli.load(tmp_path / "p.json")
    assert (problem.d_v, problem.tokens) == (1, ("no",))


# Words


@pytest.mark.parametrize(
    "text",
    [
        "tokens: [no, on, null]\n",
        "tokens: ['no', \"on\", 'null']\n",
        "tokens:\n  - no\n  - on\n  - null\n",
        '{"tokens": ["no", "on", "null"], "Q": [[1], [2], [3]], "K": [[1]], "V": [[1]]}',
    ],
)
def test_tokens_are_words(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text + ("" if text[0] == "{" else BASE)).tokens == ("no", "on", "null")


def test_tokens_that_look_like_numbers_dates_and_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, "tokens: [1, 1.50, 010]\n" + BASE).tokens == ("1", "1.50", "010")
    assert load(tmp_path, "tokens: [~, 2001-01-01, 1:30]\n" + BASE).tokens == ("~", "2001-01-01", "1:30")
    assert load(tmp_path, "tokens: ['[b]', '', 'a, b']\n" + BASE).tokens == ("[b]", "", "a, b")
    assert load(tmp_path, "tokens: [nan, -inf, ?]\n" + BASE).tokens == ("nan", "-inf", "?")
    assert load(tmp_path, BASE, "tokens=[Hello, world, no]").tokens == ("Hello", "world", "no")


def test_titles_are_texts(tmp_path: Path) -> None:
    problem = load(tmp_path, "title: 1.50\nsource: no\nnote: >-\n  two\n  lines\n" + BASE)
    assert (problem.title, problem.source, problem.note) == ("1.50", "no", "two lines")
    assert load(tmp_path, BASE, "title=a: [b] # c").title == "a: [b] # c"


# KEY=VALUE


def test_a_setting_reads_as_the_file_would(tmp_path: Path) -> None:
    for key, value in {"scale": "1/2", "softcap": "sqrt(4)", "round": "2", "score": "dot", "dtype": "float32"}.items():
        inside = load(tmp_path, BASE + f"{key}: {value}\n")
        outside = load(tmp_path, BASE, f"{key}={value}")
        assert inside.keys[key] == outside.keys[key]
        assert type(inside.keys[key]) is type(outside.keys[key])
    assert load(tmp_path, BASE, "scale=-1").scale == -1
    np.testing.assert_array_equal(load(tmp_path, BASE, "Z=1 0; 0 1").Z, np.eye(2))
    assert load(tmp_path, BASE + "scale: 3\n", "scale=4", "scale=5").scale == 5


def test_a_setting_inside_a_key(tmp_path: Path) -> None:
    heads = "Z: [[1, 0]]\nheads:\n" + "  - {W_Q: [[1], [0]], W_K: [[1], [0]], W_V: [[1], [0]]}\n" * 2
    for path in ("heads.2.W_Q", "heads[2].W_Q", "heads[2][W_Q]"):
        problem = load(tmp_path, heads, f"{path}=[[5], [6]]")
        np.testing.assert_array_equal(problem.W_Q, [[1, 5], [0, 6]])
    assert load(tmp_path, heads, *(f"heads.3.W_{s}=[[7], [8]]" for s in "QKV")).num_heads == 3
    np.testing.assert_array_equal(load(tmp_path, BASE, "Z.1.2=1/2").Z[0], [1, 0.5])
    np.testing.assert_array_equal(load(tmp_path, BASE, "Z.4=[7, 8]").Z[3], [7, 8])


def allowed(problem: attncli.Problem) -> Any:
    assert problem.mask is not None
    return np.broadcast_to(np.asarray(problem.mask.allowed), (1, problem.n, problem.m))[0].astype(int).tolist()


def test_masks_from_settings(tmp_path: Path) -> None:
    assert allowed(load(tmp_path, BASE, "mask.lengths=2")) == [[1, 1, 0]] * 3
    assert allowed(load(tmp_path, BASE + "mask: {lengths: 1}\n", "mask.lengths=2")) == [[1, 1, 0]] * 3
    assert allowed(load(tmp_path, BASE + "mask: [causal, {lengths: 3}]\n", "mask.2.lengths=1")) == [[1, 0, 0]] * 3


KEEP = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize(
    "mask",
    [
        "[[1, 0, 0], [1, 1, 0], [1, 1, 1]]",
        "[[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]",
        "[[true, false, false], [true, true, false], [true, true, true]]",
        "1 0 0; 1 1 0; 1 1 1",
        "|\n  1 0 0\n  1 1 0\n  1 1 1",
        "{keep: [[1, 0, 0], [1, 1, 0], [1, 1, 1]]}",
        "{keep: 1 0 0; 1 1 0; 1 1 1}",
        "{block: [[0, 1, 1], [0, 0, 1], [0, 0, 0]]}",
        "{block: [[false, true, true], [false, false, true], [false, false, false]]}",
        "{add: [[0, -inf, -.inf], [0, 0, '-inf'], [0, 0, 0]]}",
        "[[0, -inf, -Infinity], [0, 0, −inf], [0, 0, 0]]",
        "{keep: m.npy}",
        "{keep: b.npy}",
        "m.npy",
        "b.npy",
        "{file: m.npy}",
        "{block: {file: c.csv}}",
        "causal",
        "[causal]",
        "[causal, {lengths: 3}]",
        "[causal, {window: [null, 0]}]",
        "[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]",
    ],
)
def test_ways_to_write_a_mask(tmp_path: Path, mask: str) -> None:
    np.save(tmp_path / "m.npy", np.tri(3))
    np.save(tmp_path / "b.npy", np.tri(3, dtype=bool))
    (tmp_path / "c.csv").write_text("0,1,1\n0,0,1\n0,0,0\n")
    assert allowed(load(tmp_path, f"{BASE}mask: {mask}\n")) == KEEP


# What is told


def test_an_unknown_key_names_the_nearest(tmp_path: Path) -> None:
    for wrong, right in {
        "w_q": "W_Q",
        "Wq": "W_Q",
        "WQ": "W_Q",
        "Mask": "mask",
        "token": "tokens",
        "numheads": "num_heads",
    }.items():
        error = refusal(tmp_path, f"{BASE}{wrong}: 1\n")
        assert error.what == f"unknown key {wrong!r}"
        assert error.hint == (f"Did you mean {right}?",)
        assert str(error).splitlines()[1] == f"  in {tmp_path}/p.yaml, line 5: {wrong}"


@pytest.mark.parametrize("key", [key for key in KEYS if KEYS[key].kind not in ("text", "labels")])
@pytest.mark.parametrize(
    "value", ["", "null", "{a: {b: [c]}}", "[[[[x]]]]", "hello", "[]", "{}", "'\\x00'", "[1, [2]]"]
)
def test_any_key_with_a_senseless_value_is_an_error_with_a_line(tmp_path: Path, key: str, value: str) -> None:
    text = "".join(line + "\n" for line in BASE.splitlines() if not line.startswith(f"{key}:"))
    try:
        problem = load(tmp_path, f"{text}{key}: {value}\n")
    except AttncliError as error:
        told = [one for one in error.errors if one.where is not None]
        assert told
        return
    assert key == "expect"
    assert problem.expect is not None


def test_errors_are_told_in_the_order_of_the_file_and_settings_last(tmp_path: Path) -> None:
    error = refusal(tmp_path, "W_V: [[x]]\nscor: 1\nZ: [[1_0]]\n", "W_Q=[[y]]")
    assert [one.where.line for one in error.errors if one.where is not None] == [1, 2, 3, None]
    assert str(error.errors[-1]) == (
        "W_Q[1,1]: 'y' is not a number\n  in KEY=VALUE: W_Q\n    W_Q=[[y]]\n          ^\n"
        "  A number is written 0.25, 1e-3, 1/3, sqrt(2)/2, 2*sqrt(3), exp(-1), ln(2), 2^3, pi, e or -inf."
    )


def test_a_mistake_of_shapes_is_told_beside_one_that_it_does_not_come_from(tmp_path: Path) -> None:
    text = BASE.replace("W_K: identity", "W_K: [[1], [2], [3], [4]]").replace("W_V: identity", "W_V: [[1], [x]]")
    assert [one.key for one in refusal(tmp_path, text + "scor: dot\n").errors] == ["W_K", "W_V", "scor"]


def test_mistakes_in_several_settings_are_told_at_once(tmp_path: Path) -> None:
    error = refusal(tmp_path, BASE, "tokens=[a, b", "scale=fast", "Z=[[1]")
    assert [one.what for one in error.errors] == [
        "this [ is never closed", "this [ is never closed", "scale: 'fast' is not a number"
    ]  # fmt: skip


def test_at_most_twenty_mistakes_are_told(tmp_path: Path) -> None:
    error = refusal(tmp_path, BASE + "".join(f"key{i}: 1\n" for i in range(50)))
    assert len(error.errors) == 21
    assert error.errors[-1].what == "and 30 more mistakes"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("foo", "'foo' is no KEY=VALUE\n  in KEY=VALUE\n    foo\n    ^^^\n  Write for example Z=z.npy or mask=causal."),
        ("=1", "the key before = is empty\n  in KEY=VALUE\n    =1\n    ^\n  Write for example Z=z.npy."),
        ("Z=", "Z has no value\n  in KEY=VALUE: Z\n    Z=\n     ^\n  Write the value after the =: Z=..."),
        ("Z.5.1=3", "Z has 3 entries, and none with number 5"),
        (
            "title.x=3",
            "title is a single value, with nothing called 'x' in it\n  in KEY=VALUE\n    title.x=3\n    ^^^^^^^\n"
            "  Set title as a whole.",
        ),
        (
            "Z.x=3",
            "Z is a list, and 'x' is no number of an entry\n  in KEY=VALUE\n    Z.x=3\n    ^^^\n"
            "  Write for example Z.1",
        ),
        ("Z.9=3", "Z has 3 entries, and none with number 9\n  in KEY=VALUE\n    Z.9=3\n    ^^^"),
        ("Z=[[1, 2]", "this [ is never closed\n  in KEY=VALUE\n    Z=[[1, 2]\n      ^"),
        ("w_q=1", "unknown key 'w_q'\n  in KEY=VALUE: w_q\n    w_q=1\n    ^^^\n  Did you mean W_Q?"),
        (
            "multihead=1",
            "unknown key 'multihead'\n  in KEY=VALUE: multihead\n    multihead=1\n    ^^^^^^^^^\n"
            "  multihead is always computed",
        ),
        ("scale=fast", "scale: 'fast' is not a number\n  in KEY=VALUE: scale\n    scale=fast\n          ^^^^"),
        ("W_K=1 2 3", "W_K has 1 row, but Z has 2 columns"),
    ],
)
def test_mistakes_in_settings_show_the_user_s_own_text(tmp_path: Path, setting: str, message: str) -> None:
    assert str(refusal(tmp_path, "title: x\n" + BASE, setting)).startswith(message)


# Nothing but a Problem or an AttncliError

keys = st.sampled_from(
    [*KEYS, "heads.1.W_Q", "heads.2.W_K", "mask.keep", "mask.lengths", "mask.1", "Z.1", "Z.1.2", "expect.weights"]
)
values = st.sampled_from(
    ["1", "[[1, 2], [3, 4]]", "causal", "identity", "{diag: [1, 2]}", "[a, b]", "true", "-1", "1e400", "[]", "{}",
     "[[1], [2, 3]]", "{keep: [[1]]}", "{lengths: [1, 2]}", "nothing.npy", "*a", "&a 1", "!x", "'", '"', "1 2; 3 4",
     "{file: 3}", "{product: [1, 2]}", "{normal: [1], seed: 2}", "99999999999", "0", "nan", "inf", "[null]", "null",
     "{torch_mha: x.npz}", "[[[[1]]]]", "?", "- 1", "a: b"]
)  # fmt: skip
anything = st.text(max_size=30) | values


@settings(deadline=None, max_examples=400)
@given(st.lists(st.tuples(keys | st.text(max_size=8), anything).map("=".join), max_size=4), st.booleans())
def test_any_settings_are_a_problem_or_an_error(texts: list[str], with_example: bool) -> None:
    texts = [text for text in texts if text.partition("=")[2].strip() != "-"]
    try:
        problem = attncli.load("three-tokens" if with_example else None, *texts)
    except AttncliError as error:
        assert str(error)  # noqa: PT017
        return
    assert isinstance(problem, attncli.Problem)


mutations = st.lists(
    st.tuples(st.sampled_from(["put", "drop", "copy", "cut"]), st.integers(0, 10**6), st.integers(0, 255)),
    min_size=1,
    max_size=4,
)


def mutated(data: bytes, changes: list[tuple[str, int, int]]) -> bytes:
    for kind, at, byte in changes:
        at %= len(data) + 1
        if kind == "put":
            data = data[:at] + bytes([byte]) + data[at + 1 :]
        elif kind == "drop":
            data = data[:at] + data[at + 1 + byte % 20 :]
        elif kind == "copy":
            data = data[:at] + data[at : at + byte] * 2 + data[at + byte :]
        else:
            data = data[:at]
    return data


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples' own files beside the mutated one."""
    path = tmp_path_factory.mktemp("mutated")
    for entry in folder().iterdir():
        if entry.is_dir() or entry.suffix not in (".yaml", ".json"):
            os.symlink(entry, path / entry.name)
    return path


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(names()), mutations)
def test_a_mutated_example_is_a_problem_or_an_error(
    scratch: Path, name: str, changes: list[tuple[str, int, int]]
) -> None:
    source = next(path for suffix in (".yaml", ".json") if (path := folder() / f"{name}{suffix}").is_file())
    file = scratch / f"mutated{source.suffix}"
    file.write_bytes(mutated(source.read_bytes(), changes))
    try:
        problem = attncli.load(file)
    except AttncliError as error:
        assert str(error)  # noqa: PT017
        return
    assert isinstance(problem, attncli.Problem)


def test_a_number_of_heads_has_its_own_key() -> None:
    with pytest.raises(AttncliError) as caught:
        attncli.load("three-tokens", "heads=2")
    assert caught.value.hint == ("Did you mean num_heads: 2?",)
