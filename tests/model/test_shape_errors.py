"""Sizes that don't fit: what, where, and a mend that was tried. One mistake is one error."""

from __future__ import annotations

import numpy as np
import pytest
from forms import in_the_other_layout

from attncli import AttncliError, Problem


def matrix(*shape):
    return np.ones(shape)


# d_model = 3, d_k = 5, d_v = 7, n = 2
LAYER = {"Z": matrix(2, 3), "W_Q": matrix(3, 5), "W_K": matrix(3, 5), "W_V": matrix(3, 7), "W_O": matrix(7, 3)}
HEADS = {"Z": matrix(2, 3), "num_heads": 2, "W_Q": matrix(3, 10), "W_K": matrix(3, 10), "W_V": matrix(3, 14)}
CROSS = {**LAYER, "memory": matrix(11, 13), "W_K": matrix(13, 5), "W_V": matrix(13, 7)}


def errors(**keys):
    with pytest.raises(AttncliError) as caught:
        Problem(**keys)
    return caught.value.errors


def said(**keys):
    """The only error, in one line: key | what | hint."""
    found = errors(**keys)
    assert len(found) == 1, [error.what for error in found]
    return f"{found[0].key} | {found[0].what} | {' '.join(found[0].hint)}"


TRANSPOSED = "Is it transposed? Its transpose fits."


def test_the_layers_fit():
    for keys in (LAYER, HEADS, CROSS):
        assert Problem(**keys).n == 2
        assert Problem(**in_the_other_layout(keys)).n == 2


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"W_K": matrix(5, 3)},
            "W_K | W_K has 5 rows, but Z has 3 columns (d_model = 3) | "
            "W_K must be (d_model, d_k) = (3, 5). " + TRANSPOSED,
        ),
        (
            {"W_Q": matrix(5, 3)},
            "W_Q | W_Q has 5 rows, but Z has 3 columns (d_model = 3) | "
            "W_Q must be (d_model, d_k) = (3, 5). " + TRANSPOSED,
        ),
        (
            {"W_V": matrix(7, 3)},
            "W_V | W_V has 7 rows, but Z has 3 columns (d_model = 3) | "
            "W_V must be (d_model, d_v) = (3, 7). " + TRANSPOSED,
        ),
        (
            {"W_O": matrix(3, 7)},
            "W_O | W_O has 3 rows, but W_V has 7 columns (d_v = 7) | "
            "W_O must be (d_v, d_model) = (7, 3). " + TRANSPOSED,
        ),
        (
            {"Z": matrix(3, 2)},
            "Z | Z has 2 columns, but W_Q, W_K and W_V have 3 rows (d_model = 3) | Z must be (n, d_model) = (2, 3). "
            + TRANSPOSED,
        ),
        (
            {"W_K": matrix(3, 4)},
            "W_K | W_K has 4 columns, but W_Q has 5 columns (d_k = 5) | W_K must be (d_model, d_k) = (3, 5).",
        ),
        (
            {"W_K": matrix(4, 5)},
            "W_K | W_K has 4 rows, but Z has 3 columns (d_model = 3) | W_K must be (d_model, d_k) = (3, 5). "
            "One row too many: is a bias in it? Give it apart, as b_K.",
        ),
        (
            {"W_O": matrix(14, 3)},
            "W_O | W_O has 14 rows, but W_V has 7 columns (d_v = 7) | W_O must be (d_v, d_model) = (7, ...). "
            "W_O joins several heads: give num_heads, and all heads' W_Q, W_K and W_V.",
        ),
        ({"b_Q": [1, 2]}, "b_Q | b_Q has 2 numbers, but W_Q has 5 columns (d_k = 5) | "
                          "b_Q is one row of d_k = 5 numbers."),
        ({"b_O": [1, 2]}, "b_O | b_O has 2 numbers, but W_O has 3 columns (d_out = 3) | "
                          "b_O is one row of d_out = 3 numbers."),
        ({"tokens": ["a"]}, "tokens | tokens has 1 label, but Z has 2 rows (n = 2) | One label a row of Z."),
        ({"W_Q": matrix(2, 3, 5)}, "W_Q | W_Q has 3 axes, and a weight is one matrix | "
                                   "Per-head weights go under heads:, "
                                   "or side by side with num_heads."),
    ],
)  # fmt: skip
def test_one_head(change, expected):
    assert said(**{**LAYER, **change}) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"num_heads": 3},
            "num_heads | 3 heads can't share the 10 columns of W_Q equally, nor those of W_K and W_V | "
            "W_Q must be (d_model, 3·d_k) = (3, ...).",
        ),
        (
            {"W_K": matrix(3, 8)},
            "W_K | W_K has 8 columns, but 2 heads of d_k = 5 (W_Q) make 10 | W_K must be (d_model, 2·d_k) = (3, 10).",
        ),
        (
            {"W_K": matrix(10, 3)},
            "W_K | W_K has 10 rows, but Z has 3 columns (d_model = 3) | "
            "W_K must be (d_model, 2·d_k) = (3, 10). " + TRANSPOSED,
        ),
        (
            {"W_V": matrix(3, 13)},
            "W_V | W_V has 13 columns, which 2 heads can't share equally | W_V must be (d_model, 2·d_v) = (3, ...).",
        ),
        (
            {"W_O": matrix(7, 3)},
            "W_O | W_O has 7 rows, but 2 heads of d_v = 7 (W_V) make 14 | W_O must be (2·d_v, d_model) = (14, ...).",
        ),
    ],
)  # fmt: skip
def test_several_heads(change, expected):
    assert said(**{**HEADS, **change}) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"memory": matrix(13, 11)},
            "memory | memory has 11 columns, but W_K and W_V have 13 rows (d_memory = 13) | "
            "memory must be (m, d_memory) = (11, 13). " + TRANSPOSED,
        ),
        (
            {"memory": matrix(11, 12)},
            "memory | memory has 12 columns, but W_K and W_V have 13 rows (d_memory = 13) | "
            "memory must be (m, d_memory) = (..., 13).",
        ),
        (
            {"W_K": matrix(3, 5)},
            "W_K | W_K has 3 rows, but memory has 13 columns (d_memory = 13) | W_K must be (d_memory, d_k) = (13, 5).",
        ),
        (
            {"memory_tokens": ["a", "b"]},
            "memory_tokens | memory_tokens has 2 labels, but memory has 11 rows (m = 11) | One label a row of memory.",
        ),
    ],
)
def test_cross_attention(change, expected):
    assert said(**{**CROSS, **change}) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            {"Q": matrix(2, 5), "K": matrix(5, 3), "V": matrix(3, 7)},
            "K | K has 3 columns, but Q has 5 columns (d_k = 5) | K must be (m, d_k) = (3, 5). " + TRANSPOSED,
        ),
        (
            {"Q": matrix(2, 5), "K": matrix(3, 5), "V": matrix(7, 3)},
            "V | V has 7 rows, but K has 3 rows (m = 3) | V must be (m, d_v) = (3, 7). " + TRANSPOSED,
        ),
        (
            {"Q": matrix(5, 2), "K": matrix(3, 5), "V": matrix(3, 7)},
            "Q | Q has 2 columns, but K has 5 columns (d_k = 5) | Q must be (n, d_k) = (2, 5). " + TRANSPOSED,
        ),
        (
            {"Q": matrix(2, 20), "K": matrix(3, 10), "V": matrix(3, 14)},
            "K | K has 10 columns, but Q has 20 columns (d_k = 20) | K must be (m, d_k) = (3, 20). "
            "If heads lie side by side in it, give num_heads (and num_kv_heads).",
        ),
        (
            {"scores": matrix(3, 2), "V": matrix(3, 7), "score": "dot"},
            "scores | scores has 2 columns, but V has 3 rows (m = 3) | scores must be (n, m) = (2, 3). " + TRANSPOSED,
        ),
        (
            {"weights": matrix(2, 3), "V": matrix(3, 7), "num_heads": 7},
            "weights | no head axis, but there are 7 heads (num_heads): weights (2, 3) | "
            "Write one matrix a head: (batch.., head, row, column).",
        ),
        (
            {"Q": matrix(2, 5), "K": matrix(3, 5), "V": matrix(3, 7), "past_K": matrix(4, 6), "past_V": matrix(4, 7)},
            "past_K | past_K has 6 columns, but Q has 5 columns (d_k = 5) | past_K must be (p, d_k) = (4, 5).",
        ),
        (
            {"Q": matrix(2, 5), "K": matrix(3, 11), "V": matrix(3, 7), "score": "general", "W_a": matrix(11, 5)},
            "W_a | W_a has 11 rows, but Q has 5 columns (d_q = 5) | W_a must be (d_q, d_k) = (5, 11). " + TRANSPOSED,
        ),
        (
            {"Q": matrix(2, 5), "K": matrix(3, 11), "V": matrix(3, 7), "score": "additive", "W_1": matrix(5, 13),
             "W_2": matrix(11, 13), "v": [1, 2]},
            "v | v has 2 numbers, but W_1 has 13 columns (d_a = 13) | v is one row of d_a = 13 numbers.",
        ),
        (
            {"Q": matrix(4, 2, 5), "K": matrix(2, 3, 5), "V": matrix(4, 3, 7), "per_head": True},
            "V | V has 4 heads, but there are 2: its shape is (4, 3, 7) | "
            "The head axis is the third from last: (batch.., head, row, column).",
        ),
    ],
)  # fmt: skip
def test_given_stages(keys, expected):
    assert said(**keys) == expected


def test_a_cache_that_lies_by_heads_is_told_of_per_head():
    keys = {"Z": matrix(1, 8), "W_Q": matrix(8, 8), "W_K": matrix(8, 4), "W_V": matrix(8, 6), "num_heads": 4}
    keys |= {"num_kv_heads": 2, "past_K": matrix(2, 7, 2), "past_V": matrix(2, 7, 3)}
    hint = "If its axis of 2 counts the heads, say so: per_head: true."
    first, second = errors(**keys)
    assert first.what == "past_K has 2 columns, but 2 heads of d_k = 2 (W_Q) make 4"
    assert first.hint == (f"past_K must be (p, 2·d_k) = (..., 4). {hint}",)
    assert second.hint == (f"past_V must be (p, 2·d_v) = (..., 6). {hint}",)
    assert Problem(**keys, per_head=True).m == 8
    square = keys | {"past_K": matrix(2, 4, 2), "past_V": matrix(2, 4, 3)}  # its transpose would fit, too
    assert hint in errors(**square)[0].hint[0]
    assert hint not in errors(**keys | {"past_K": matrix(3, 7, 2)})[0].hint[0]
    columns = {**in_the_other_layout(keys), "past_K": matrix(2, 2, 7), "past_V": matrix(2, 3, 7)}
    assert hint in errors(**columns)[0].hint[0]


# The same in the user's own layout


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"W_K": matrix(3, 5)},
            "W_K | W_K has 5 columns, but Z has 3 rows (d_model = 3) | "
            "W_K must be (d_k, d_model) = (5, 3). " + TRANSPOSED,
        ),
        (
            {"Z": matrix(2, 3)},
            "Z | Z has 2 rows, but W_Q, W_K and W_V have 3 columns (d_model = 3) | Z must be (d_model, n) = (3, 2). "
            + TRANSPOSED,
        ),
        ({"tokens": ["a"]}, "tokens | tokens has 1 label, but Z has 2 columns (n = 2) | One label a column of Z."),
        ({"b_Q": [[1], [2]]}, "b_Q | b_Q has 2 numbers, but W_Q has 5 rows (d_k = 5) | "
                              "b_Q is one row of d_k = 5 numbers."),
        (
            {"W_K": matrix(5, 4)},
            "W_K | W_K has 4 columns, but Z has 3 rows (d_model = 3) | W_K must be (d_k, d_model) = (5, 3). "
            "One column too many: is a bias in it? Give it apart, as b_K.",
        ),
    ],
)  # fmt: skip
def test_columns(change, expected):
    assert said(**{**in_the_other_layout(LAYER), **change}) == expected


def test_weights_stored_out_in():
    stored = {name: value.T if name[0] == "W" else value for name, value in LAYER.items()}
    assert said(**{**stored, "W_K": matrix(3, 5)}, weight_layout="out_in") == (
        "W_K | W_K has 5 columns, but Z has 3 columns (d_model = 3) | W_K must be (d_k, d_model) = (5, 3). "
        + TRANSPOSED
    )


# Several mistakes, and none that only follows from another


def test_independent_mistakes_are_all_told():
    found = errors(**{**LAYER, "W_K": matrix(5, 3), "b_V": [1], "tokens": ["a"], "mask": "casual"})
    assert [error.key for error in found] == ["W_K", "b_V", "tokens", "mask"]
    assert len(errors(**LAYER, round=-1, scale="x", empty_rows="maybe")) == 3
    assert len(errors(**LAYER, W_X=[[1]], foo=1)) == 2


def test_a_matrix_is_wrong_once():
    assert [error.key for error in errors(**{**LAYER, "W_Q": matrix(5, 4)})] == ["W_Q"]


def test_a_wrong_matrix_does_not_make_its_neighbours_wrong():
    """b_K fits the W_K that is meant, and W_O the W_V."""
    assert [e.key for e in errors(**{**LAYER, "W_V": matrix(3, 8), "b_V": [0] * 7})] == ["W_V"]


# Matrices that are none


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ([[1, 0], [1]], "W_Q is no matrix of numbers with rows of one length"),
        ("abc", "W_Q is no matrix of numbers with rows of one length"),
        ([["a", "b"]], "W_Q is no matrix of numbers with rows of one length"),
        (np.array([[1j]]), "W_Q is no matrix of numbers with rows of one length"),
        ([[10**400]], "W_Q is no matrix of numbers with rows of one length"),
        (3, "W_Q is a single number, not a matrix"),
        ([], "W_Q is empty: it has shape (1, 0)"),
        ([[1, float("nan"), 1]] * 3, "W_Q[1,2] is NaN: inputs and weights are finite numbers"),
        ([[1, 1], [1, float("-inf")]], "W_Q[2,2] is -inf: inputs and weights are finite numbers"),
    ],
)
def test_what_is_no_matrix(value, what):
    assert [error.what for error in errors(**{**LAYER, "W_Q": value})] == [what]


def test_a_number_beyond_the_dtype_is_its_infinity_and_no_mistake():
    assert np.isinf(Problem(**{**LAYER, "W_Q": matrix(3, 5) * 1e6}, dtype="float16").W_Q).all()


# Heads in a list

HEAD = {"W_Q": matrix(3, 5), "W_K": matrix(3, 5), "W_V": matrix(3, 7)}


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ([], "heads | heads is a list of {W_Q, W_K, W_V}, one entry a head"),
        (3, "heads | heads is a list of {W_Q, W_K, W_V}, one entry a head"),
        ({"W_Q": 1}, "heads | heads is a list of {W_Q, W_K, W_V}, one entry a head"),
        (
            [HEAD, {**HEAD, "W_Q": matrix(5, 3)}],
            "heads.2.W_Q | W_Q of head 2 has shape (5, 3), and that of head 1 (3, 5)",
        ),
        ([HEAD, {"W_Q": matrix(3, 5), "W_K": matrix(3, 5)}], "heads.2 | head 2 has no W_V, and another head has one"),
        ([{**HEAD, "w_o": matrix(7, 3)}], "heads.1.w_o | unknown key 'w_o'"),
        ([{**HEAD, "W_Q": "x"}], "heads.1.W_Q | W_Q is no matrix of numbers with rows of one length"),
        ([{**HEAD, "W_Q": matrix(4, 5)}] * 2, "heads | W_Q has 4 rows, but Z has 3 columns (d_model = 3)"),
    ],
)
def test_heads_in_a_list(heads, expected):
    assert [f"{error.key} | {error.what}" for error in errors(Z=matrix(2, 3), heads=heads)] == [expected]


# Keys


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("W_q", "W_Q"), ("wk", "W_K"), ("token", "tokens"), ("masks", "mask"), ("Scale", "scale"), ("X", "Z"),
        ("Q_W", "W_Q"), ("WQ", "W_Q"), ("q_proj", "W_Q"), ("w_key", "W_K"), ("out_proj", "W_O"), ("bV", "b_V"),
        ("value_bias", "b_V"), ("h", "num_heads"), ("n_heads", "num_heads"), ("M", "memory"), ("keys", "K"),
        ("A", "weights"), ("S", "scores"), ("attn", "weights"), ("causal", "mask: causal"),
    ],
)  # fmt: skip
def test_an_unknown_key_suggests_the_nearest(name, meant):
    assert errors(**{name: [[1]]})[0].hint == (f"Did you mean {meant}?",)


@pytest.mark.parametrize(
    ("key", "value", "meant"),
    [
        ("layout", "colums", "columns"), ("layout", "row", "rows"), ("score", "scaled-dot", "scaled_dot"),
        ("score", "bilinear", "general"), ("dtype", "float", "float64"), ("dtype", "fp16", "float16"),
        ("empty_rows", "zeros", "zero"), ("weight_layout", "outin", "out_in"), ("rounding", "Half-Even", "half_even"),
        ("dtype", "bfloat16", None), ("layout", "x", None), ("layout", ["rows", 1], None),
    ],
)  # fmt: skip
def test_a_setting_suggests_the_nearest_of_its_words(key, value, meant):
    assert errors(**{**LAYER, key: value})[0].hint == ((f"Did you mean {meant}?",) if meant else ())


@pytest.mark.parametrize("name", ["d_k", "d_model", "head_dim", "n", "m"])
def test_sizes_are_no_keys(name):
    assert errors(**{name: 2})[0].hint == ("Leave it out: sizes follow from the matrices.",)


def test_a_key_that_is_like_none_lists_all():
    assert errors(foo=1)[0].hint[0].startswith("Known keys: title, source, note, tokens")


def test_from_is_for_files():
    assert errors(**{"from": {"bert": "x"}})[0].what == "from is for problem files: attncli.load reads it"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_heads", 0), ("num_heads", 2.5), ("num_heads", "two"), ("num_heads", [1]), ("num_heads", True),
        ("num_kv_heads", -1), ("round", -1), ("round", 31), ("round", 0.5), ("scale", "a"), ("scale", True),
        ("scale", [1]), ("softcap", -1), ("mask_fill", float("nan")), ("layout", "cols"), ("layout", ["rows"]),
        ("dtype", "bfloat16"), ("weight_layout", "x"), ("empty_rows", "maybe"), ("per_head", "yes"),
        ("tokens", "a b"), ("tokens", 3), ("memory_tokens", "a"),
    ],
)  # fmt: skip
def test_a_setting_that_is_none(key, value):
    found = errors(**{**LAYER, key: value})
    assert [error.key for error in found] == [key]
    assert key in found[0].what
