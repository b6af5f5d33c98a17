"""Who may attend to whom: every way of saying it, and what becomes of a query that may attend to nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attncli import AttncliError, Problem, compute

INF = math.inf
FIVE, THREE = np.zeros((5, 1)), np.zeros((3, 1))


def allowed(mask, n=3, m=5, **keys):
    """Which weights are not 0, as rows of 0 and 1, where all scores are equal."""
    problem = Problem(Q=np.zeros((n, 1)), K=np.zeros((m, 1)), V=np.zeros((m, 1)), mask=mask, **keys)
    weights = compute(problem)["weights"]
    return ["".join("1" if weight else "0" for weight in row) for row in weights.reshape(-1, weights.shape[-1])]


def wrong(mask, n=3, m=5, **keys):
    with pytest.raises(AttncliError) as caught:
        Problem(Q=np.zeros((n, 1)), K=np.zeros((m, 1)), V=np.zeros((m, 1)), mask=mask, **keys)
    assert len(caught.value.errors) == 1
    return caught.value


# The spellings

LOWER = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize(
    "mask",
    [
        "causal",
        {"causal": True},
        {"causal": "top-left"},
        {"causal": "bottom-right"},
        {"keep": LOWER},
        {"block": [[0, 1, 1], [0, 0, 1], [0, 0, 0]]},
        {"add": [[0, -INF, -INF], [0, 0, -INF], [0, 0, 0]]},
        LOWER,
        np.array(LOWER, dtype=float),
        np.array(LOWER, dtype=bool),
        [[0, -INF, -INF], [0, 0, -INF], [0, 0, 0]],
        {"window": [2, 0]},
        {"window": [-1, 0]},
        ["causal", {"lengths": 3}],
    ],
    ids=repr,
)
def test_one_mask_in_many_words(mask):
    assert allowed(mask, 3, 3) == ["100", "110", "111"]


@pytest.mark.parametrize(
    ("mask", "rows"),
    [
        ({"causal": "top-left"}, ["10000", "11000", "11100"]),
        ({"causal": "bottom-right"}, ["11100", "11110", "11111"]),
        ({"lengths": 2}, ["11000"] * 3),
        ({"lengths": 5}, ["11111"] * 3),
        ({"window": 1}, ["11000", "11100", "01110"]),
        ({"window": 0}, ["10000", "01000", "00100"]),
        ({"window": [0, 2]}, ["11100", "01110", "00111"]),
        ({"window": [1, -1]}, ["11111", "11111", "01111"]),
        ([0, 1, 0, 0, 1], ["01001"] * 3),
        ({"block": [0, 1, 0, 0, 1]}, ["10110"] * 3),
        ({"keep": [[1], [1], [1]], "beyond": "hide"}, ["10000"] * 3),
        ({"keep": [[1, 1]], "beyond": "hide"}, ["11000"] * 3),
        ({"causal": "top-left", "offset": 1}, ["11000", "11100", "11110"]),
        ({"window": 1, "offset": 2}, ["01110", "00111", "00011"]),
        ([{"causal": "bottom-right"}, {"window": 1}], ["01100", "00110", "00011"]),
        ([{"causal": "top-left"}, {"lengths": 2}], ["10000", "11000", "11000"]),
        ([{"keep": [1, 0, 1, 1, 1]}, {"block": [0, 0, 0, 0, 1]}, {"window": 2}], ["10100", "10110", "10110"]),
    ],
    ids=repr,
)
def test_which_keys_each_query_sees(mask, rows):
    assert allowed(mask) == rows


def test_a_window_counts_from_where_the_queries_stand_behind_a_cache():
    """Two cached keys: query 1 stands at key 3."""
    keys = {"past_K": np.zeros((2, 1)), "past_V": np.zeros((2, 1))}
    assert allowed({"window": [1, 0]}, 2, 2, **keys) == ["0110", "0011"]
    assert allowed("causal", 2, 2, **keys) == ["1110", "1111"]
    assert allowed({"causal": "top-left"}, 2, 2, **keys) == ["1110", "1111"]


# The mask is added to the scaled scores, or selects


def test_numbers_are_added_to_the_scaled_scores():
    """q·k = 4 and √d_k = 2, so 2 − 1 = 1: an added number is not scaled."""
    result = compute(Problem(Q=[[1, 1, 1, 1]], K=np.ones((2, 4)), V=[[0], [1]], mask={"add": [-1, 0]}))
    assert result["masked_scores"].tolist() == [[[1, 2]]]


def test_several_masks_add_and_hide_together():
    mask = [{"add": [1, 2, 4]}, {"add": [10, -INF, 0]}, {"keep": [1, 1, 0]}]
    result = compute(Problem(Q=[[0]], K=THREE, V=THREE, mask=mask))
    assert result["masked_scores"].tolist() == [[[11, -INF, -INF]]]


def test_a_hidden_number_that_is_not_one_stays_hidden():
    """Selected, not multiplied: 0 · NaN would be NaN."""
    result = compute(Problem(Q=[[1], [1]], K=[[1], [2]], V=[[3], [math.nan]], mask={"keep": [[1, 0], [1, 0]]}))
    assert result["outputs"].tolist() == [[[3], [3]]]


def test_mask_fill_stands_in_place_of_minus_infinity():
    result = compute(Problem(Q=[[0]], K=THREE, V=THREE, mask=[1, 1, 0], mask_fill=math.log(0.5)))
    np.testing.assert_allclose(result["weights"], [[[0.4, 0.4, 0.2]]], rtol=1e-14)


def test_a_row_filled_with_a_finite_number_is_uniform():
    result = compute(Problem(Q=[[5.0], [1.0]], K=[[1.0], [2.0]], V=[[3], [5]], mask=[[0, 0], [1, 1]], mask_fill=-1e9))
    assert result["weights"][0, 0].tolist() == [0.5, 0.5]
    assert result.notes == ()


# A query that may attend to nothing

EMPTY = {"Q": [[1], [1], [1]], "K": [[1], [2]], "V": [[3], [5]], "mask": {"keep": [[1, 1], [0, 0], [1, 0]]}}


def test_an_empty_row_is_zero_and_said():
    result = compute(Problem(**EMPTY))
    assert result["weights"][0, 1].tolist() == [0, 0]
    assert result["outputs"][0].tolist()[1:] == [[0], [3]]
    assert result.notes == ("query 2 may attend to nothing: its weights and outputs are zeros",)


def test_an_empty_row_can_be_nan():
    result = compute(Problem(**EMPTY, empty_rows="nan"))
    assert np.isnan(result["outputs"][0]).ravel().tolist() == [False, True, False]
    assert result.notes == ("query 2 may attend to nothing: its weights and outputs are NaN",)


def test_an_empty_row_can_be_refused():
    with pytest.raises(AttncliError, match=r"^query 2 may attend to nothing"):
        compute(Problem(**EMPTY, empty_rows="error"))


def test_an_empty_row_of_one_head_is_told_apart():
    mask = {"keep": [[[1, 1], [1, 1], [1, 1]], [[1, 1], [1, 1], [0, 0]]]}
    keys = {"Q": np.ones((3, 2)), "K": np.ones((2, 2)), "V": np.ones((2, 2)), "num_heads": 2, "mask": mask}
    assert compute(Problem(**keys)).notes == (
        "query 3 may attend to nothing (in some heads): its weights and outputs are zeros",
    )


def test_many_empty_rows_are_counted():
    notes = compute(Problem(Q=np.ones((9, 1)), K=FIVE, V=FIVE, mask={"lengths": 0})).notes
    assert notes == ("queries 1, 2, 3, 4, 5 and 4 more may attend to nothing: their weights and outputs are zeros",)


# In words


def words(mask, tokens=None, n=3, m=3, **keys):
    return Problem(Z=np.ones((n, 1)), W_Q=[[1]], W_K=[[1]], W_V=[[1]], tokens=tokens, mask=mask, **keys).mask_in_words()


def test_a_mask_in_words():
    assert words("causal", ["私", "は", "猫"]) == [
        "1 私 may attend to 私",
        "2 は may attend to 私, は",
        "3 猫 may attend to 私, は, 猫",
    ]


def test_a_mask_in_words_without_labels():
    assert words([[1, 1, 0, 1, 1, 1], *[[0] * 6] * 5], n=6) == [
        "query 1 may attend to keys 1, 2, 4 to 6",
        *[f"query {i} may attend to nothing" for i in range(2, 7)],
    ]
    assert words([[1, 0], [1, 0]], n=2)[0] == "query 1 may attend to key 1"


def test_repeated_labels_are_told_apart_by_their_positions():
    assert words({"lengths": 2}, ["a", "a", "b"])[0] == "1 a may attend to 1 a, 2 a"


def test_a_mask_that_changes_nothing_says_so():
    assert words([[1, 1, 1]] * 3) == ["the mask changes nothing"]
    assert words({"add": [[0, -1, 0]] * 3}) == ["the mask hides nothing, and adds to the scores"]
    assert words(None) == []
    result = compute(Problem(Q=THREE, K=THREE, V=THREE, mask={"lengths": 3}))
    assert result.notes == ("the mask changes nothing: every query may attend to every key",)


def test_a_decoding_step_sees_everything_without_a_word():
    keys = {"past_K": THREE, "past_V": THREE}
    assert compute(Problem(Q=[[1]], K=[[1]], V=[[1]], mask="causal", **keys)).notes == ()


def test_masks_of_their_own_have_sentences_of_their_own():
    mask = {"keep": [[[1, 0], [1, 1]], [[0, 1], [1, 1]]]}
    problem = Problem(Q=np.ones((2, 2)), K=np.ones((2, 2)), V=np.ones((2, 2)), num_heads=2, mask=mask)
    assert problem.mask_in_words() == [
        "head 1: query 1 may attend to key 1",
        "head 1: query 2 may attend to keys 1, 2",
        "head 2: query 1 may attend to key 2",
        "head 2: query 2 may attend to keys 1, 2",
    ]


def test_keys_of_a_cache_are_called_so():
    problem = Problem(
        Z=[[1]],
        W_Q=[[1]],
        W_K=[[1]],
        W_V=[[1]],
        past_K=THREE,
        past_V=THREE,
        tokens=["cat"],
        mask={"block": [0, 1, 1, 0]},
    )
    assert problem.memory_tokens == ("past 1", "past 2", "past 3", "cat")
    assert problem.mask_in_words() == ["1 cat may attend to past 1, cat"]


# Wrong masks


def test_causal_needs_a_corner_where_n_and_m_differ():
    error = wrong("causal")
    assert error.what == "causal may mean two things for 3 queries and 5 keys"
    assert error.hint[1:] == (
        "{causal: top-left}:  10000 11000 11100",
        "{causal: bottom-right}:  11100 11110 11111",
    )


@pytest.mark.parametrize("mask", [np.zeros((3, 5)), [[2, 1, 0, 0, 0]] * 3, [[0.5] * 5] * 3, [[math.nan] * 5] * 3])
def test_an_ambiguous_matrix_names_the_three_spellings(mask):
    hint = " ".join(wrong(mask).hint)
    assert all(word in hint for word in ("{keep: M}", "{block: M}", "{add: M}"))


@pytest.mark.parametrize(
    ("mask", "what"),
    [
        ("casual", "mask: 'casual' is no mask"),
        ({"kep": [[1]]}, "mask: 'kep' is no kind of mask"),
        ({"keep": [1], "block": [1]}, "a mask says one thing, and this one has keep and block"),
        ({}, "a mask says one thing, and this one has none"),
        ([], "mask is empty"),
        (3, "mask is not a matrix of numbers"),
        (True, "mask is not a matrix of numbers"),
        ({"keep": [[2, 0, 1, 1, 1]] * 3}, "{keep: M} takes 0 and 1 (or true and false) alone"),
        ({"add": [[INF] * 5] * 3}, "{add: M} takes finite numbers and −∞, and here is NaN or +∞"),
        ({"lengths": 6}, "lengths must lie between 0 and the number of keys, 5"),
        ({"lengths": -1}, "lengths must lie between 0 and the number of keys, 5"),
        ({"lengths": 1.5}, "lengths takes whole numbers"),
        ({"lengths": "two"}, "lengths takes a whole number, or one per batch entry"),
        ({"lengths": [1, 2]}, "lengths has 2 numbers, but there is no batch axis"),
        ({"window": "a"}, "window takes a whole number, or two"),
        ({"window": [1, 2, 3]}, "window takes a whole number, or two"),
        ({"window": None}, "window takes a whole number, or two"),
        ({"causal": "left"}, "causal is top-left or bottom-right, not 'left'"),
        ({"causal": "top-left", "offset": "a"}, "offset takes a whole number, or one per batch entry"),
        ({"keep": [1, 1], "beyond": "show"}, "mask: beyond is hide, not 'show'"),
        ({"keep": [[1] * 3] * 5}, "mask has shape (5, 3), but there are 3 queries and 5 keys"),
    ],
    ids=repr,
)
def test_a_mask_that_cannot_be_read(mask, what):
    error = wrong(mask)
    assert error.what == what
    assert error.key == "mask"


def test_what_a_wrong_shape_may_mean():
    assert "Its transpose fits." in " ".join(wrong({"keep": [[1] * 3] * 5}).hint)
    assert "beyond: hide" in " ".join(wrong({"keep": [[1, 1]] * 3}).hint)
    batch = {"Q": np.zeros((2, 3, 1)), "K": np.zeros((2, 5, 1)), "V": np.zeros((2, 5, 1))}
    with pytest.raises(AttncliError) as caught:
        Problem(**batch, mask={"keep": np.ones((2, 3, 5))})
    assert "One mask per batch entry is (batch, 1, n, m)." in " ".join(caught.value.hint)


def test_a_wrong_mask_in_a_list_is_pointed_at():
    assert wrong([{"lengths": 2}, {"lengths": 9}]).key == "mask.2"


def test_a_short_mask_needs_a_word_unless_the_rest_is_hidden_anyway():
    short = {"keep": [[1, 0]] * 3}
    assert wrong(short).what == "mask has shape (3, 2), but there are 3 queries and 5 keys"
    assert allowed([short, {"lengths": 2}]) == ["10000"] * 3
    assert allowed([{"lengths": 2}, short]) == ["10000"] * 3
