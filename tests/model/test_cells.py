"""How cells are named: by number, by token, with heads and batch; and what is said where one doesn't exist."""

from __future__ import annotations

import numpy as np
import pytest
from variants import VARIANTS

from attncli import AttncliError, Problem, compute
from attncli.explaining.explain import explain
from attncli.maths.cell import Cell
from attncli.model.cells import is_cell

THREE = {"Z": np.eye(3), "W_Q": np.eye(3), "W_K": np.eye(3), "W_V": [[1, 2], [3, 4], [5, 6]]}


def found(keys, text, head=None):
    tree = explain(compute(Problem(**keys)), text, head=head)
    return str(tree.cell), tree.value


def refusal(keys, text, head=None):
    with pytest.raises(AttncliError) as caught:
        found(keys, text, head)
    return str(caught.value)


@pytest.mark.parametrize("text", ["weights[1,3]", "weights.1.3", "weights[ 1 , 3 ]", "weights[a,c]", "weights.a.c",
                                  "weights['a',\"c\"]", "weights[1;1,3]"])  # fmt: skip
def test_a_cell_can_be_written_in_many_ways(text):
    assert found(THREE | {"tokens": ["a", "b", "c"]}, text)[0] == "weights[1,3]"


def test_tokens_name_rows_and_columns_and_may_hold_what_separates_them():
    keys = THREE | {"tokens": ["a,b", "c;d", "e.f"]}
    assert found(keys, "weights['a,b',\"c;d\"]")[0] == "weights[1,2]"
    assert found(keys, "outputs[e.f]")[0] == "outputs[3]"
    assert found(keys, "outputs['c;d',2]") == ("outputs[2,2]", pytest.approx(4.0, abs=2))


def test_a_number_is_a_position_although_a_token_may_look_like_one():
    assert found(THREE | {"tokens": ["3", "2", "1"]}, "weights[1,3]")[0] == "weights[1,3]"


def test_keys_are_named_by_the_memory_s_tokens():
    keys = VARIANTS["cross"] | {"tokens": ["x", "y", "z"], "memory_tokens": ["p", "q", "r", "s"]}
    assert found(keys, "weights[x,s]")[0] == "weights[1,4]"
    assert found(keys, "K[q,1]")[0] == "K[2,1]"
    assert "no column is called 'x'" in refusal(keys, "weights[x,x]")


def test_cached_keys_stand_before_the_tokens():
    keys = VARIANTS["cached"] | {"tokens": ["x", "y"], "memory_tokens": ["p", "q"]}
    assert found(keys, "weights[1;x,p]")[0] == "weights[1;1,4]"


def test_heads_and_batch_come_first():
    two = VARIANTS["batch, heads"]
    result = compute(Problem(**two))["weights"]
    assert found(two, "weights[2;1;3,2]") == ("weights[2;1;3,2]", result[1, 0, 2, 1])
    assert found(two, "weights[2,1,3,2]")[0] == "weights[2;1;3,2]"
    assert found(two, "weights.2.1.3.2")[0] == "weights[2;1;3,2]"
    assert found(two, "weights[2;3,2]", head=1)[0] == "weights[2;1;3,2]"
    assert found(two, "concat[2;3,8]")[0] == "concat[2;3,8]"
    assert found(VARIANTS["heads"], "weights[3,2]", head=3)[0] == "weights[3;3,2]"


def test_a_query_head_means_the_key_value_head_that_it_uses():
    keys = VARIANTS["grouped"]  # 4 query heads on 2
    assert [found(keys, "K[1,1]", head=head)[0] for head in (1, 2, 3, 4)] == ["K[1;1,1]"] * 2 + ["K[2;1,1]"] * 2


def test_rows_and_whole_stages():
    row, value = found(THREE, "outputs[2]")
    assert (row, len(value)) == ("outputs[2]", 2)
    assert np.shape(found(THREE, "scores")[1]) == (3, 3)
    assert np.shape(found(VARIANTS["heads"], "scores")[1]) == (9, 3)  # 3 heads of 3 rows
    assert found(VARIANTS["heads"], "scores[2;]")[0] == "scores[2;]"
    assert np.shape(found(VARIANTS["heads"], "scores", head=2)[1]) == (3, 3)


@pytest.mark.parametrize(
    ("text", "cell", "parts"),
    [
        ("weights[1..3,2]", "weights[1..3,2]", ["weights[1,2]", "weights[2,2]", "weights[3,2]"]),
        ("weights.2.1..2", "weights[2,1..2]", ["weights[2,1]", "weights[2,2]"]),
        ("K[1..2, 2..3]", "K[1..2,2..3]", ["K[1,2]", "K[1,3]", "K[2,2]", "K[2,3]"]),
        ("V[2..3]", "V[2..3]", ["V[2]", "V[3]"]),
        ("outputs.1..2", "outputs[1..2]", ["outputs[1]", "outputs[2]"]),
        ("scores[1..1,1]", "scores[1..1,1]", ["scores[1,1]"]),
    ],
)
def test_a_range_is_its_cells_one_after_another(text, cell, parts):
    result = compute(Problem(**THREE))
    tree = explain(result, text)
    assert str(tree.cell) == cell
    assert [str(one.cell) for one in tree.operands] == parts
    assert list(tree.operands) == [explain(result, part) for part in parts]


def test_ranges_in_heads_batches_and_columns():
    assert found(VARIANTS["batch, heads"], "weights[2;1;1..2,3]")[0] == "weights[2;1;1..2,3]"
    keys = VARIANTS["columns"]
    result = compute(Problem(**keys))["weights"]
    assert found(keys, "weights[2..3,1]") == ("weights[2..3,1]", (result[0, 1, 0], result[0, 2, 0]))
    assert found(keys, "outputs[1..2]")[0] == "outputs[1..2]"


def test_a_range_within_tokens_is_a_token_and_a_wrong_one_says_what_there_is():
    assert found(THREE | {"tokens": ["1..2", "b", "c"]}, "outputs[1..2]")[0] == "outputs[1]"
    assert refusal(THREE, "V[2..4]").startswith("V[2..4]: there is no row 4\n  There are rows 1 to 3")
    assert refusal(THREE, "V[0..2]").startswith("V[0..2]: there is no row 0; indices count from 1")
    assert refusal(THREE, "V[3..1]").startswith("V[3..1]: the range 3..1 runs backwards\n  There are rows 1 to 3")
    assert "which one is not said" in refusal(VARIANTS["heads"], "weights[1..2,1]")


def test_in_columns_indices_are_those_of_the_shown_matrix_and_a_vector_is_a_column():
    keys = VARIANTS["columns"]
    result = compute(Problem(**keys))
    assert found(keys, "weights[3,1]") == ("weights[3,1]", result["weights"][0, 2, 0])
    cell, value = found(keys, "outputs[2]")
    assert cell == "outputs[2]"
    np.testing.assert_allclose(value, result["outputs"][0, :, 1])
    assert found(keys | {"tokens": ["a", "b", "c"]}, "outputs[4,b]")[0] == "outputs[4,2]"


def test_a_wrong_index_says_which_exist():
    keys = THREE | {"tokens": ["a", "b", "c"]}
    there = "  There are rows 1 to 3 (a, b, c), columns 1 to 3 (a, b, c): weights[1,1] to weights[3,3]."
    assert refusal(keys, "weights[4,1]") == f"weights[4,1]: there is no row 4\n{there}"
    assert refusal(keys, "weights[1,0]") == f"weights[1,0]: there is no column 0; indices count from 1\n{there}"
    assert refusal(keys, "weights[-1,1]").startswith("weights[-1,1]: there is no row -1; indices count from 1")
    assert refusal(keys, "weights[d,1]") == f"weights[d,1]: no row is called 'd'\n{there}"
    assert refusal(keys, "outputs[1,a]") == (
        "outputs[1,a]: a column of outputs is named by its number, not 'a'\n"
        "  There are rows 1 to 3 (a, b, c), columns 1 to 2: outputs[1,1] to outputs[3,2]."
    )
    assert refusal(VARIANTS["heads"], "weights[4;1,1]") == (
        "weights[4;1,1]: there is no head 4\n"
        "  There are heads 1 to 3, rows 1 to 3, columns 1 to 3: weights[1;1,1] to weights[3;3,3]."
    )
    assert ": there is no row 9" in refusal(keys, f"weights[{'9' * 5000},1]")
    assert "there is no batch entry 3" in refusal(VARIANTS["batch"], "weights[3;1,1]")


def test_a_token_that_stands_twice_needs_its_number():
    assert refusal(THREE | {"tokens": ["a", "b", "a"]}, "outputs[a]") == (
        "outputs[a]: 'a' stands at 1 and 3\n  Write the number of the one you mean."
    )


def test_a_head_that_is_not_said_is_asked_for():
    assert refusal(VARIANTS["heads"], "weights[1,3]") == (
        "weights[1,3]: weights has 3 heads, and which one is not said\n"
        "  Write weights[1;1,3] or weights[2;1,3]. -H 2 picks a head, too."
    )
    assert "2 batch entries" in refusal(VARIANTS["batch"], "weights[1,3]")


@pytest.mark.parametrize("text", ["weights[1,2,3,4]", "weights[1;2;1,3]", "weights[,]", "weights[1,]", "weights[;1,2]"])
def test_too_many_or_missing_parts(text):
    assert "weights" in refusal(THREE, text)


def test_what_is_no_stage_gets_the_nearest_and_what_is_absent_its_reason():
    assert "Did you mean weights?" in refusal(THREE, "weigths[1,1]")
    assert "no multihead: it has no W_O" in refusal(THREE, "multihead[1,1]")
    assert refusal(THREE, "weights[1").startswith("'weights[1' is no cell")
    assert "no cell" in refusal(THREE, "")


@pytest.mark.parametrize(
    ("word", "is_one"),
    [("weights[1,3]", True), ("weights.1.3", True), ("scores", True), ("weigth[1,3]", True), ("three-tokens", False),
     ("p.yaml", False), ("scores.yaml", False), ("scores.npz", False), ("-", False), ("dir/scores", False)],
)  # fmt: skip
def test_cells_are_told_from_problems(word, is_one):
    assert is_cell(word) is is_one


def test_a_cell_is_written_as_it_is_typed():
    assert str(Cell("outputs", (), (1,))) == "outputs[1]"
    assert str(Cell("outputs", (2, 1))) == "outputs[2;1;]"
    assert str(Cell("outputs")) == "outputs"
