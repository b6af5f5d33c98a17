"""What is wrong with the usage: said in one form, on standard error, with exit code 2; faults of ours are 70."""

from __future__ import annotations

import pytest
from places import DATA
from running import run

from attncli.cli import app as cli

BROKEN = sorted(file for file in (DATA / "broken").iterdir() if file.suffix != ".txt")
STAGES = (
    "The stages are Q, K, V, scores, scaled_scores, capped_scores, masked_scores, weights, outputs, concat, multihead, "
    "contributions."
)

MESSAGES = {
    "compute": """\
error: compute what? No problem is named
  Name a file, KEY=VALUE, or an example: attncli compute three-tokens. `attncli examples` lists them.
""",
    "compute two-heads three-tokens": """\
error: two problems are named: two-heads and three-tokens
  One PROBLEM, and KEY=VALUE for what is set in it.
""",
    "compute three-tokens weights": """\
error: two problems are named: three-tokens and weights
  A stage is selected with -s: -s weights
""",
    "compute three-tokens Z = z.npy": """\
error: two problems are named: three-tokens and Z
  KEY=VALUE is one word, without spaces around the =.
""",
    "three-tokens": """\
error: no such command 'three-tokens'
  To compute it: attncli compute three-tokens
  `attncli --help` shows how it is used.
""",
    "Z=z.npy": """\
error: no such command 'Z=z.npy'
  To compute it: attncli compute Z=z.npy
  `attncli --help` shows how it is used.
""",
    "compute two-heads --stge Q": """\
error: no such option: --stge
  Did you mean --stage, --stats?
  `attncli compute --help` shows how it is used.
""",
    "compute two-heads -s wieghts": f"""\
error: unknown stage 'wieghts'
  Did you mean weights?
  {STAGES}
""",
    "compute two-heads -s ,": f"""\
error: -s names no stage
  {STAGES}
""",
    "compute two-heads -H 3": """\
error: there is no head 3
  The problem has heads 1 to 2.
""",
    "compute three-tokens -H 0": """\
error: there is no head 0
  The problem has one head: 1.
""",
    "compute two-heads -s concat -H 1": """\
error: concat joins the heads, and has none to select
  Drop -H.
""",
    "compute two-heads -B 1": """\
error: there is no batch entry 1
  The problem has no batch axis.
""",
    "compute batch -B 3": """\
error: there is no batch entry 3
  The problem has batch entries 1 to 2.
""",
    "compute batch -B one": """\
error: -B takes whole numbers, not 'one'
  -B 2, or -B 2,1 for two batch axes.
""",
    "compute two-heads -f jsn": """\
error: unknown format 'jsn'
  Did you mean json?
  The formats are table, json, yaml, csv, tsv, long, npy, npz, markdown, latex, html, svg, png, pdf.
""",
    "compute two-heads -f txt": """\
error: unknown format 'txt'
  Did you mean table?
  The formats are table, json, yaml, csv, tsv, long, npy, npz, markdown, latex, html, svg, png, pdf.
""",
    "compute two-heads -f csv -s weights": """\
error: csv holds one matrix, and weights has 2: one a head
  Select one with -H, from 1 to 2.
""",
    "compute three-tokens -o nowhere/t.csv -s Q": """\
error: can't write nowhere/t.csv: there is no folder nowhere
""",
    "compute three-tokens -d": """\
error: option '-d' requires an argument
  `attncli compute --help` shows how it is used.
""",
    "compute -1": """\
error: no such option: -1
  A word that begins with a minus sign reads as an option: write `--` before it, or KEY=-1.
  `attncli compute --help` shows how it is used.
""",
    "comptue three-tokens": """\
error: no such command 'comptue'
  Did you mean 'compute'?
  `attncli --help` shows how it is used.
""",
    "examples three-tokens two-heads": """\
error: too many words: two-heads
  `attncli examples --help` shows how it is used.
""",
    "compute two-heads -s masked_scores": """\
error: this problem has no masked_scores: it has no mask
""",
}


@pytest.mark.parametrize("words", MESSAGES)
def test_a_wrong_usage_has_its_message(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*words.split())
    assert (done.code, done.data) == (2, b"")
    assert done.error == MESSAGES[words]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("digits", ["-1", "18", "many", "1.5"])
def test_a_wrong_number_of_an_option_is_told(digits):
    """The middle of the sentence is typer's, and differs between its versions."""
    done = run("compute", "three-tokens", "-d", digits)
    assert (done.code, done.data) == (2, b"")
    assert done.error.startswith("error: invalid value for '--digits' / '-d': ")
    assert done.error.endswith("\n  `attncli compute --help` shows how it is used.\n")


@pytest.mark.parametrize("file", BROKEN, ids=lambda file: file.name)
def test_a_broken_problem_is_told_as_in_the_gallery(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    done = run("compute", file.name)
    assert (done.code, done.data) == (2, b"")
    found = done.error.splitlines()
    assert all(line.startswith(("error: ", "  ")) or not line for line in found)
    told = file.with_suffix(".txt").read_text(encoding="utf-8").strip()
    assert "\n".join(found).replace("error: ", "") == told.replace("error: ", "")


def test_a_problem_that_is_a_letter_off_is_suggested(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "Did you mean three-tokens?" in run("compute", "three-token").error
    assert "Did you mean three-tokens?" in run("examples", "threetokens").error


def test_many_mistakes_are_cut_short_and_that_is_said(tmp_path):
    file = tmp_path / "many.yaml"
    file.write_text("".join(f"unknown_{i}: 1\n" for i in range(60)))
    lines = run("compute", file).error.splitlines()
    assert sum(line.startswith("error: ") for line in lines) == cli.MOST_ERRORS + 1
    assert lines[-1].startswith("error: and ")


@pytest.fixture
def fault(monkeypatch):
    """A fault inside the program."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("attncli.rendering.views.choose", fail)


@pytest.mark.usefixtures("fault")
def test_a_fault_of_ours_is_one_sentence():
    done = run("compute", "three-tokens")
    assert (done.code, done.data) == (70, b"")
    assert done.error == (
        "error: a fault of attncli, not of yours (ZeroDivisionError); ATTNCLI_DEBUG=1 shows the traceback to report\n"
    )


@pytest.mark.usefixtures("fault")
@pytest.mark.parametrize(("words", "environ"), [(["--debug"], {}), ([], {"ATTNCLI_DEBUG": "1"})])
def test_its_traceback_is_shown_to_those_who_ask(words, environ):
    done = run(*words, "compute", "three-tokens", **environ)
    assert done.code == 70
    assert done.error.startswith("Traceback (most recent call last)")
    assert "secret detail" in done.error
    assert done.error.splitlines()[-1].startswith("error: a fault of attncli")


@pytest.mark.parametrize(
    ("raised", "code"),
    [(KeyboardInterrupt(), 130), (BrokenPipeError(32, "Broken pipe"), 141), (MemoryError(), 2),
     (OSError(28, "No space left on device"), 2), (RecursionError("deep"), 70), (SystemError(), 70)],
)  # fmt: skip
def test_each_way_to_end_has_its_code(raised, code, monkeypatch):
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr("attncli.rendering.views.choose", fail)
    done = run("compute", "three-tokens")
    assert done.code == code
    assert "Traceback" not in done.error
    assert done.data == b""


def test_an_error_can_be_said_in_any_encoding():
    done = run("compute", "three-tokens", "猫=1", encoding="ascii")
    assert done.code == 2
    assert done.error.isascii()
    assert "Traceback" not in done.error


def test_main_leaves_with_the_code(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["compute", "no-such-problem"])
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("error: no-such-problem: ")
