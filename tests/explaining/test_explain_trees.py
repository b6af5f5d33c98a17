"""A derivation can't say other than what was computed: every tree, evaluated from its operations, gives its cell."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from evaluating import evaluate, nodes
from test_published import CASES, keys_of
from variants import VARIANTS

from attncli import Problem, compute, load
from attncli.explaining.explain import explain
from attncli.maths.cell import Cell
from attncli.reading.examples import names
from attncli.stages.table import STAGES, present

ROOM = {"float32": 1e-6, "float16": 5e-3}
HUGE = ("transformer-base", "variance")
SHIPPED = [f"shipped {name}" for name in names() if name not in HUGE]
PROBLEMS = [*VARIANTS, *(f"published {name}" for name in CASES), *SHIPPED]


def problem_of(name):
    if name in VARIANTS:
        return Problem(**VARIANTS[name])
    where, _, rest = name.partition(" ")
    return load(rest) if where == "shipped" else Problem(**keys_of(rest))


def whole(problem):
    return compute(problem, [stage.name for stage in present(problem)])


def close(one, other, problem):
    room = ROOM.get(problem.dtype.name, 1e-12)
    np.testing.assert_allclose(np.array(one, float), np.array(other, float), rtol=room, atol=room)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_cell_of_every_stage_evaluates_to_itself(name):
    problem = problem_of(name)
    result = whole(problem)
    for stage in result:
        array = result.rows[stage]
        tree = explain(result, stage)
        known = {}
        assert tree.op == "stage"
        close(evaluate(tree, problem.rounding, known), array.reshape(-1, array.shape[-1]), problem)
        for row in nodes(tree):
            close(evaluate(row, problem.rounding, known), row.value, problem)


@pytest.mark.parametrize("name", HUGE)
def test_cells_of_each_stage_of_the_largest_shipped_examples(name):
    problem = load(name)
    result = whole(problem)
    for stage in result:
        for lead in np.ndindex(result[stage].shape[:-2]):
            several = STAGES[stage].per_head and result[stage].shape[-3] > 1
            numbers = [i + 1 for i in lead]
            numbers = numbers if several or not STAGES[stage].per_head else numbers[:-1]
            tree = explain(result, str(Cell(stage, tuple(numbers), (2, 5))))
            close(evaluate(tree), tree.value, problem)
            assert tree.value == pytest.approx(float(result[stage][(*lead, 1, 4)]))


@pytest.mark.parametrize("name", PROBLEMS)
def test_followed_back_to_the_inputs_a_cell_is_the_same(name):
    problem = problem_of(name)
    result = whole(problem)
    last = list(result)[-1]
    lead = [1] * (result[last].ndim - 2)
    lead = lead[:-1] if STAGES[last].per_head and result[last].shape[-3] == 1 else lead
    tree = explain(result, str(Cell(last, tuple(lead), (1, 1))), depth=None)
    assert not [node for node in nodes(tree) if node.op == "cell"]
    shallow = explain(result, str(tree.cell))
    close(tree.value, shallow.value, problem)
    if problem.round is None:  # what is rounded may tip over where the last bits differ
        close(evaluate(tree, problem.rounding), tree.value, problem)


@pytest.mark.parametrize("name", PROBLEMS)
def test_references_are_the_cells_that_are_shown(name):
    """A reference's indices, as printed, find its value in the result; those of an input, in the problem's own keys."""
    problem = problem_of(name)
    result = whole(problem)
    for stage in list(result):
        for node in nodes(explain(result, stage)):
            if node.cell is not None and len(node.cell.index) == 2 and node.cell.name in result and node.op != "input":
                assert shown(result, node.cell) == pytest.approx(node.value, nan_ok=True), str(node.cell)
            elif node.op == "input":
                assert entry(problem, node.cell) == pytest.approx(node.value, nan_ok=True, rel=ROOM.get(
                    problem.dtype.name, 1e-12)), str(node.cell)  # fmt: skip


def shown(result, cell):
    array = result[cell.name]
    lead = [number - 1 for number in cell.lead]
    index = (*lead, *(0,) * (array.ndim - 2 - len(lead)), *(number - 1 for number in cell.index))
    return float(array[index])


def entry(problem, cell):
    *path, name = cell.name.split(".")
    keys = problem.keys["heads"][int(path[1]) - 1] if path else problem.keys
    array = np.array(keys[name], dtype=float)
    array = array[None] if array.ndim < len(cell.lead) + len(cell.index) else array
    return array[tuple(number - 1 for number in (*cell.lead, *cell.index))]


def test_the_variants_reach_every_operation():
    found = set()
    for name in VARIANTS:
        result = whole(problem_of(name))
        found |= {node.op for stage in result for node in nodes(explain(result, stage))}
    assert found == {
        "number", "cell", "input", "given", "empty", "sum", "product", "quotient", "difference", "exp", "tanh", "root",
        "pick", "kept", "hidden", "rounded", "row", "stage",
    }  # fmt: skip


def test_depth_counts_stages():
    problem = problem_of("plain")
    result = compute(problem)
    by_depth = [explain(result, "outputs[2,3]", depth=depth) for depth in (1, 2, 3, 4, 5)]
    references = [{node.cell.name for node in nodes(tree) if node.op == "cell"} for tree in by_depth]
    assert references == [{"weights", "V"}, {"scaled_scores"}, {"scores"}, {"Q", "K"}, set()]
    sizes = [tree.size() for tree in by_depth]
    assert all(a < b for a, b in itertools.pairwise(sizes))


def test_a_row_of_outputs_is_a_sum_of_vectors():
    result = compute(problem_of("plain"))
    row = explain(result, "outputs[2]")
    assert row.op == "sum"
    assert [[part.symbol for part in term.operands] for term in row.operands] == [
        ["α_{21}", "v_{1}"], ["α_{22}", "v_{2}"], ["α_{23}", "v_{3}"],
    ]  # fmt: skip
    np.testing.assert_allclose(row.value, result["outputs"][0, 1])


def test_what_was_not_asked_for_is_made_all_the_same():
    result = compute(problem_of("heads"), ["multihead"])
    assert list(result) == ["multihead"]
    assert explain(result, "contributions[3;1,7]").value == pytest.approx(
        float(compute(result.problem, ["contributions"])["contributions"][2, 0, 6])
    )


def test_a_derivation_that_nobody_could_read_is_refused():
    from attncli import AttncliError

    problem = Problem(Q=np.ones((900, 4)), K=np.ones((900, 4)), V=np.ones((900, 3)))
    result = compute(problem)
    with pytest.raises(AttncliError, match="more than 400000 steps"):
        explain(result, "weights")
    assert explain(result, "weights[1,1]").value == pytest.approx(1 / 900)
