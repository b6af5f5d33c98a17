"""Bytes, YAML and JSON: read alike by both YAML parsers, with number lists lifted or not, and with places."""

from __future__ import annotations

import codecs
import contextlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attncli.language.errors import AttncliError
from attncli.reading.documents import decode, parse
from attncli.reading.nodes import Document, Held, Mapping, Node, Numbers, Scalar, Sequence


def plain(node: Node | None) -> Any:
    """A tree as lists, dicts and texts; each text with the characters that it spans."""
    if isinstance(node, Numbers):
        node = node.spelled_out()
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    if isinstance(node, Mapping):
        return {key: plain(value) for key, value in node.items.items()}
    if isinstance(node, Scalar):
        return node.text
    assert not isinstance(node, Held)
    return None


def places(node: Node | None) -> list[tuple[int, int]]:
    if isinstance(node, Numbers):
        node = node.spelled_out()
    if isinstance(node, Sequence):
        return [place for item in node.items for place in places(item)]
    if isinstance(node, Mapping):
        return [place for item in node.items.values() for place in places(item)]
    assert isinstance(node, Scalar)
    return [(node.start, node.end)]


def read(text: str, name: str = "p.yaml", **options: bool) -> Any:
    return plain(parse(Document(text, name), **options))


def outcome(text: str, name: str = "p.yaml", **options: bool) -> Any:
    """What comes out: the tree, the places of plain entries, or the error's words."""
    try:
        node = parse(Document(text, name), **options)
    except AttncliError as error:
        return "error", error.what if "nested" not in error.what else "nested"
    if node is None:
        return None
    return plain(node), [(a, b) for a, b in places(node) if text[a:b].strip()[:1] not in ("", "|", ">")]


SAMPLES = [
    "Z: [[1, 2], [3, 4]]\n",
    "Z:\n  - [1, 2]\n  - [3, 4]\n",
    "Z:\n- [1, 2]\n- [3, 4]\n- [5]\n- x\n",
    "Z:\n- [1, 2]\n- [3, 4]\n- [?, 6]\n- [7, 8]\n- [9, 0]\n",
    "Z:\n- [1, 2]  \n- [3, 4]",
    "Z:\n- [[1, 2], [3, 4]]\n- [[5, 6], [7, 8]]\n",
    "note: |\n  - [1, 2]\n  - [3, 4]\nZ:\n- [1]\n- [2]\n  x\n",
    "Z:\n- - 1\n  - 2\n- - 3\n  - -4.5e-3\n",
    "Z: [[1, 2],\n    [3,\n     4]]\nW: 3\n",
    "b:\n- 1\n- 2\n- x\n- 3\n- 4\n",
    "note: '[1, 2]'  # [3, 4]\nZ: [1]\n",
    "note: |\n  [1, 2]\n  - 1\n  - 2\nZ: [1]\n",
    "note: see [1, 2] there\nZ: [[1]]\n",
    "note: why ?\nW: ?\nZ: [?, 1, ?]\n",
    "# [1, 2]\n# - 1\n# - 2\nZ: [[1]]\n",
    "Z: [1, # [2]\n  3]\n",
    "Z: [[1, 2], [3]]\n",
    "Z: [[1, 1/3], [sqrt(2), 4]]\n",
    "Z: [[0, -inf], [.inf, nan]]\n",
    'Z: [["-inf", 0], ["1", 2]]\n',
    "Z: [1_000, 0x10, 010, 1:30]\n",
    "Z: [1 2, 3]\n",
    "Z: [1,, 2]\n",
    "Z: [1, 2\n",
    "Z: [[[1, 2]], [[3, 4]]]\n",
    "Z: []\nW: [[]]\n",
    "? [1, 2]\n: 3\n",
    "[1, 2]: 3\n",
    "[1, 2]: 3: 4\n",
    "a: &x [1, 2]\nb: [*x, *x]\n",
    "a: [1, 2] 3\n",
    "a:\n  - 1\n  - 2\n   3\n",
    "a: text\n  - 1\n  - 2\n",
    "- 1\n- 2\n",
    "- - - 1\n    - 2\n  - - 3\n    - 4\n",
    "Z: [1,\t2]\tW: 3",
    "Z:\t[1]\n",
    "a: x\t# c\n",
    "Z: [[1,2],\n\t[3,4]]",
    "note: |\n  text\n  \ttabbed\n",
    "'a b': 1\n\"c\": 2\n",
    "a: b: c\n",
    "a: 'x\n",
    "a: {b: 1, c: [1, 2]}\n",
    "a: @x\n",
    "%YAML 1.2\n---\na: [no, yes]\n",
    "a: !!float '1e-3'\n",
    "a: !x 1\n",
    "tokens: [nan, 1, 1.50]\n",
    "a: 1\n\n\n\nb: [2,\n\n3]\n",
]


@pytest.mark.parametrize("text", SAMPLES)
def test_both_parsers_and_lifting_agree(text: str) -> None:
    expected = outcome(text, lift=False)
    assert outcome(text, lift=True) == expected
    assert outcome(text, lift=True, pure=True) == expected
    assert outcome(text, lift=False, pure=True) == expected


number = st.sampled_from(["1", "-2", "0.5", "-.5", "5.", "1e-3", "+7", "010", "-inf", "1/3", "x", "?", "~", "1e999"])
row = st.lists(number, min_size=1, max_size=4)
comment = st.sampled_from(["", "  # [1, 2]", "   "])


def flow(rows: list[list[str]]) -> str:
    return "[" + ",\n   ".join("[" + ", ".join(cells) + "]" for cells in rows) + "]"


def lines(rows: list[list[str]]) -> str:
    return "\n" + "\n".join("- - " + "\n  - ".join(cells) for cells in rows)


def flow_lines(rows: list[list[str]]) -> str:
    return "\n" + "\n".join("  - [" + ",".join(cells) + "]" for cells in rows)


matrices = st.builds(
    lambda style, rows: style(rows), st.sampled_from([flow, lines, flow_lines]), st.lists(row, min_size=1)
)
values = matrices | st.sampled_from(
    ["|\n  [1, 2]\n  - 1\n  - 2", "'[1, 2]'", "see [1, 2]", "1", "&a [1, 2]", "*a", "{b: [1]}"]
)
documents = st.lists(st.tuples(values, comment)).map(
    lambda parts: "\n".join(f"k{i}: {value}{after}" for i, (value, after) in enumerate(parts))
)


@settings(deadline=None)
@given(documents)
def test_lifting_changes_nothing(text: str) -> None:
    expected = outcome(text, lift=False)
    assert outcome(text, lift=True) == expected
    assert outcome(text, lift=True, pure=True) == expected


@settings(deadline=None, max_examples=300)
@given(st.text("[]{}:,-?#&*!|>'\"%@ \n\t019.eaZ~", max_size=40))
def test_any_text_is_a_tree_or_an_error(text: str) -> None:
    expected = outcome(text, lift=False)
    assert outcome(text, lift=True) == expected


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_text_or_an_error(data: bytes) -> None:
    text = ""
    with contextlib.suppress(AttncliError):
        text = decode(data, "p.yaml")
    assert "\r" not in text


json_values = st.recursive(
    st.integers(-99, 99) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=3), json_values, max_size=4), st.sampled_from([None, 2, "\t"]), st.booleans())
def test_json_reads_as_json(value: dict[str, Any], indent: Any, ascii_only: bool) -> None:
    def texts(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: texts(inner) for key, inner in part.items()}
        if isinstance(part, list):
            return [texts(inner) for inner in part]
        return part if isinstance(part, str) else json.dumps(part)

    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert read(text, "p.json") == texts(value)
    assert read(text, "p.json", lift=False) == texts(value)


def test_json_where_yaml_differs() -> None:
    text = '{"Z":\t[[1,\t2]],\n\t"title": "a\\/b \\ud83d\\ude00", "mask": [NaN, -Infinity]}'
    assert read(text, "standard input") == {"Z": [["1", "2"]], "title": "a/b 😀", "mask": ["NaN", "-Infinity"]}


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ('{"a": [1, 2}', "a comma or ] was expected", "line 1, column 12"),
        ('{"a": 1,}', 'a key in "quotes" was expected', "line 1, column 9"),
        ("{'a': 1}", 'a key in "quotes" was expected', "line 1, column 2"),
        ('{"a" 1}', "a colon after the key was expected", "line 1, column 6"),
        ('{"a": 1} 2', "one value was expected", "line 1, column 10"),
        ('{"a": "x', "a value was expected", "line 1, column 7"),
        ('{"a": "\\ud83d"}', "a \\ that JSON does not know", "line 1, column 7"),
        ('{"a": 1,\n "a": 2}', "a is given twice: line 1 and line 2", "line 2, column 2"),
        ("", None, None),
    ],
)
def test_json_errors_have_places(text: str, what: str | None, place: str | None) -> None:
    if what is None:
        assert read(text, "p.json") is None
        return
    with pytest.raises(AttncliError) as caught:
        read(text, "p.json")
    assert what in caught.value.what
    assert place in str(caught.value)


@pytest.mark.parametrize(
    ("text", "what", "line", "column"),
    [
        ("Z: [[1,2],\n\t[3,4]]", "a tab indents this line", 2, 1),
        ("heads:\n\t- W_Q: 1\n", "a tab indents this line", 2, 1),
        ("a: 1\na: 2\n", "a is given twice: line 1 and line 2", 2, 1),
        ("a: {b: 1, b: 2}\n", "b is given twice: line 1", 1, 11),
        ("a: [1\nb: 2\n", "not valid YAML: a comma or ] was expected", 2, 2),
        ("a: 'x\nb: 2\n", "this quote is never closed", 1, 4),
        ("a: [1, [2\n", "this [ is never closed", 1, 8),
        ("a:\n  b: 1\n c: 2\n", "not valid YAML: this line fits nothing before it", 3, 2),
        ("a: b: c\n", "not valid YAML: a colon where none can stand", 1, 5),
        ("a: @x\n", "not valid YAML: a value cannot start with this character", 1, 4),
        ("a: *x\n", "*x stands for nothing before it", 1, 4),
        ("a: !!python/none 1\n", "a YAML tag", 1, 4),
        ("a: 1\n--- \nb: 2\n", "a second document starts here", 2, 1),
        ("[1, 2]: 3\n", "a key must be a word", 1, 1),
        ("ключ: [[1, x],\n  [ '", "this quote is never closed", 2, 5),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pure", [False, True])
def test_yaml_errors_have_places(text: str, what: str, line: int, column: int, pure: bool) -> None:
    with pytest.raises(AttncliError) as caught:
        parse(Document(text, "p.yaml"), pure=pure)
    assert what in caught.value.what
    where = caught.value.where
    assert where is not None
    assert (where.file, where.line, where.column) == ("p.yaml", line, column)
    assert where.text == text.split("\n")[line - 1]


ENCODINGS = {
    "utf-8": b"",
    "utf-8-sig": b"",
    "utf-16": b"",
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(encoding: str, end: str) -> None:
    text = f"tokens: [私, café]{end}Z: [[1, 2],{end}  [3, 4]]{end}"
    data = ENCODINGS[encoding] + text.encode(encoding)
    assert read(decode(data, "p.yaml")) == {"tokens": ["私", "café"], "Z": [["1", "2"], ["3", "4"]]}


def test_utf_16_without_a_mark() -> None:
    assert decode("Z: 1".encode("utf-16-le"), None) == "Z: 1"
    assert decode("Z: 1".encode("utf-16-be"), None) == "Z: 1"


def test_latin_1_names_the_byte() -> None:
    with pytest.raises(AttncliError) as caught:
        decode(b"title: x\ntokens: [caf\xe9]\n", "p.yaml")
    assert str(caught.value) == (
        "byte 0xE9 is not UTF-8\n  in p.yaml, line 2, column 13\n"
        "  It may be Latin-1, where it is 'é': save the file as UTF-8."
    )


def test_a_lifted_matrix_knows_its_entries() -> None:
    text = "title: x\nZ: [[1.50, -2],\n    [3e-1, 04]]\n"
    root = parse(Document(text, "p.yaml"))
    assert isinstance(root, Mapping)
    node = root.items["Z"]
    assert isinstance(node, Numbers)
    np.testing.assert_array_equal(node.array, [[1.5, -2], [0.3, 4]])
    assert [scalar.text for scalar in node.scalars()] == ["1.50", "-2", "3e-1", "04"]
    place = node.scalars()[3].place()
    assert (place.line, place.column, place.width) == (3, 12, 2)


def test_a_very_long_line_is_cut_around_its_error() -> None:
    text = "Z: [" + "1, " * 5000 + "x]\n"
    node = parse(Document(text, "p.yaml"))
    assert isinstance(node, Mapping)
    row = node.items["Z"]
    assert isinstance(row, Sequence)
    place = row.items[-1].place()
    assert place.column == 4 + 15000 + 1
    assert place.text is not None
    assert len(place.text) < 3000
    from attncli.language.errors import caret

    line, below = caret(place)
    assert line[below.index("^")] == "x"
