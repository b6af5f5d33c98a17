"""`attncli compute` and `attncli examples`: what a person types, and what they get."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import yaml
from places import CONFIGS
from running import data, run

import attncli
from attncli.reading import examples
from attncli.stages.table import STAGES

THREE = CONFIGS / "three-tokens.yaml"

FIRST_SCREEN = """\
Three tokens, one head
scale: 1/√d_k = 0.7071 · mask: none · layout: rows · float64

weights   A = softmax(S̃) along each row   3 × 3 (n × m), rows: queries, columns: keys
         1 私    2 は    3 猫
──────────────────────────────
 1 私  0.2483  0.2483  0.5035
 2 は  0.5760  0.1400  0.2840
 3 猫  0.4458  0.1084  0.4458

outputs   O = A V   3 × 2 (n × d_v), rows: queries
            1       2
──────────────────────
 1 私  1.5035  2.2552
 2 は  1.7199  1.2721
 3 猫  1.7832  1.6626
"""


def stages_shown(text: str) -> list[str]:
    """The stages whose tables are in a text, each once."""
    first = [line.split("   ")[0].split(",")[0] for line in text.splitlines()]
    return list(dict.fromkeys(name for name in first if name in STAGES))


def test_a_file_gives_every_stage_in_order():
    text = data("compute", THREE).decode()
    assert stages_shown(text) == ["Q", "K", "V", "scores", "scaled_scores", "weights", "outputs"]
    assert "Q   Q = Z W^Q   3 × 2 (n × d_k), rows: queries" in text


def test_tables_show_title_what_is_in_force_labels_and_four_decimals():
    assert data("compute", THREE, "-s", "weights,outputs").decode() == FIRST_SCREEN


def test_an_example_goes_by_its_name_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert data("compute", "three-tokens") == data("compute", THREE)


def test_a_file_of_an_examples_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "three-tokens").write_text("Q: [[1]]\nK: [[1]]\nV: [[5]]\n")
    assert data("compute", "three-tokens", "-s", "V", "-f", "csv") == b"5.0\n"


def test_standard_input_is_a_problem():
    assert data("compute", "-", stdin=THREE.read_bytes()) == data("compute", THREE)


def test_json_is_a_problem_file(tmp_path):
    file = tmp_path / "p.json"
    file.write_text(json.dumps(yaml.safe_load(THREE.read_text(encoding="utf-8"))))
    assert data("compute", file) == data("compute", THREE)


def test_keys_alone_are_a_problem(tmp_path):
    np.save(tmp_path / "z.npy", [[1.0, 0], [0, 1], [1, 1]])
    words = [f"Z={tmp_path / 'z.npy'}", "W_Q=1 0; 0 1", "W_K=1 1; 1 -1", "W_V={diag: [2, 3]}"]
    assert data("compute", *words, "-s", "weights", "-f", "csv") == data("compute", THREE, "-s", "weights", "-f", "csv")


def test_a_key_is_set_in_a_problem():
    rows = data("compute", THREE, "mask=causal", "-s", "weights", "-f", "csv").decode().splitlines()
    assert rows[0] == "1.0,0.0,0.0"


def test_stages_are_named_again_or_in_a_comma_list_and_shown_in_the_tables_order():
    again = data("compute", THREE, "-s", "outputs", "-s", "Q")
    assert stages_shown(again.decode()) == ["Q", "outputs"]
    assert again == data("compute", THREE, "--stage", "outputs, Q")


def test_several_heads_show_a_table_each_then_concat_and_multihead():
    lines = data("compute", "two-heads").decode().splitlines()
    captions = [
        line.split("   ")[0] for line in lines if "   " in line and line.split("   ")[0].split(",")[0] in STAGES
    ]
    per_head = [name for name, stage in STAGES.items() if stage.per_head and name in stages_shown("\n".join(lines))]
    expected = [f"{name}, head {r} of 2" for name in per_head for r in (1, 2)]
    assert captions == [*expected, "concat", "multihead"]


def test_one_head_is_shown_alone():
    both = json.loads(data("compute", "two-heads", "-f", "json"))
    second = json.loads(data("compute", "two-heads", "-H", "2", "-f", "json"))
    assert list(second) == [name for name in both if STAGES[name].per_head]
    assert all(second[name] == both[name][1:] for name in second)


def test_a_key_value_head_is_shown_once_for_each_query_head_that_uses_it():
    problem = attncli.load("grouped-query")
    everything = attncli.compute(problem)
    for r in range(1, problem.num_heads + 1):
        shown = json.loads(data("compute", "grouped-query", "-H", r, "-s", "K", "-f", "json"))
        group = (r - 1) * problem.num_kv_heads // problem.num_heads
        assert shown["K"] == [everything["K"][group].tolist()]


def test_a_batch_entry_is_shown_alone():
    both = json.loads(data("compute", "batch", "-s", "weights", "-f", "json"))["weights"]
    assert json.loads(data("compute", "batch", "-B", "2", "-s", "weights", "-f", "json"))["weights"] == both[1:]


def test_contributions_are_shown_when_they_are_asked_for():
    assert "contributions" not in json.loads(data("compute", "two-heads", "-f", "json"))
    shares = json.loads(data("compute", "two-heads", "-s", "contributions,multihead", "-f", "json"))
    assert np.sum(shares["contributions"], axis=0) == pytest.approx(np.array(shares["multihead"]))


@pytest.mark.parametrize(("digits", "number"), [(0, "0"), (2, "0.25"), (7, "0.2482551")])
def test_digits(digits, number):
    assert data("compute", THREE, "-s", "weights", "-d", digits).decode().splitlines()[6].split()[2] == number


@pytest.mark.parametrize("name", examples.names())
def test_every_example_is_computed_and_says_nothing_else(name):
    assert data("compute", name)


def test_what_a_person_should_know_is_said_on_standard_error():
    words = ["Q=1;1", "K=1;2", "V=3;5", "mask={keep: [[1, 1], [0, 0]]}", "-s", "outputs", "-f", "csv"]
    done = run("compute", *words)
    assert done.error == "note: query 2 may attend to nothing: its weights and outputs are zeros\n"
    assert done.text.splitlines()[1] == "0.0"


def test_row_statistics_stand_beside_weights():
    lines = data("compute", THREE, "-s", "weights", "--stats").decode().splitlines()
    assert lines[4].split()[-3:] == ["sum", "max", "entropy"]
    assert [line.split()[-2:] for line in lines[6:]] == [
        ["0.5035", "1.0373"],
        ["0.5760", "0.9505"],
        ["0.4458", "0.9611"],
    ]


def test_the_suffix_of_the_output_picks_the_format(tmp_path):
    for suffix, option in ((".csv", "csv"), (".TSV", "tsv"), (".json", "json"), (".yml", "yaml"), (".npy", "npy")):
        file = tmp_path / f"w{suffix}"
        assert data("compute", THREE, "-s", "weights", "-o", file) == b""
        assert file.read_bytes() == data("compute", THREE, "-s", "weights", "-f", option)


def test_a_named_format_wins_over_the_suffix(tmp_path):
    data("compute", THREE, "-s", "weights", "-f", "csv", "-o", tmp_path / "w.json")
    assert (tmp_path / "w.json").read_text().count("\n") == 3


def test_a_table_in_a_file_is_utf_8_without_colours_and_as_wide_as_it_takes(tmp_path):
    file = tmp_path / "t.txt"
    data("compute", THREE, "-o", file, FORCE_COLOR="", COLUMNS="", encoding="ascii")
    assert "─" in file.read_text(encoding="utf-8")
    assert "\x1b" not in file.read_text(encoding="utf-8")


def test_examples_are_listed_with_their_titles():
    lines = data("examples").decode().splitlines()
    assert [line.split()[0] for line in lines] == sorted(file.stem for file in CONFIGS.glob("*.yaml"))
    assert "three-tokens      Three tokens, one head" in lines


def test_an_example_is_printed_as_it_stands():
    assert data("examples", "library") == (CONFIGS / "library.yaml").read_bytes()


@pytest.mark.parametrize("name", examples.names())
def test_every_example_says_what_it_is_and_where_it_is_from(name):
    problem = attncli.load(name)
    assert problem.title
    assert problem.source
    assert problem.note
    assert problem.title == examples.title(name)


def test_help_has_examples_and_exit_codes():
    top = data("--help").decode()
    assert "attncli compute three-tokens" in top
    assert "Exit codes: 0 done" in top
    assert data().decode() == top == data("-h").decode()
    text = data("compute", "--help").decode()
    assert "attncli compute two-heads -s weights,outputs -H 2" in text
    assert all(name in text for name in STAGES)


def test_version():
    assert data("--version").decode() == f"attncli {attncli.__version__}\n"


def test_the_examples_in_the_help_work(tmp_path, monkeypatch):
    """Each line under Examples is run, for which it needs the files that it names."""
    import shlex

    monkeypatch.chdir(tmp_path)
    run("compute", "two-heads", "-s", "Q", "-o", "q.npz")
    np.savez(tmp_path / "layer.npz", Z=[[1.0, 0], [0, 1]], W_Q=np.eye(2), W_K=np.eye(2), W_V=np.eye(2))
    lines = [line.strip() for line in data("compute", "--help").decode().splitlines()]
    commands = [line for line in lines if line.startswith("attncli ")]
    assert len(commands) >= 5
    for command in commands:
        words = shlex.split(command.split(" | ")[0])[1:]
        assert run(*words).code == 0, command
    assert os.path.exists("stages.npz")


def test_the_python_side_is_the_same():
    result = attncli.compute(attncli.load(str(THREE)))
    assert result["weights"].tolist() == json.loads(data("compute", THREE, "-f", "json"))["weights"]


def test_the_mask_in_words_goes_beside_the_data():
    done = run("compute", "three-tokens", "mask=causal", "-s", "weights", "-f", "csv", "--mask")
    assert done.text.startswith("1.0,0.0,0.0\n")
    assert done.error.splitlines() == [
        "mask: 1 私 may attend to 私",
        "mask: 2 は may attend to 私, は",
        "mask: 3 猫 may attend to 私, は, 猫",
    ]
    none = run("compute", "three-tokens", "-s", "weights", "-f", "csv", "--mask")
    assert none.error == "mask: there is none: every query may attend to every key\n"
    many = run(
        "compute", "Q={ones: [30, 1]}", "K={ones: [30, 1]}", "mask=causal", "-s", "weights", "-f", "csv", "--mask"
    )
    assert many.error.splitlines()[-1] == "mask: 10 more queries; --full says them all"
