"""The program among others: pipes that close, terminals, streams that are not there, interruption."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from running import PLAIN, Terminal, data, run

from attncli.cli.terminal import screen
from attncli.reading import examples

ATTNCLI = [sys.executable, "-m", "attncli"]
LARGE = ["Q={normal: [300, 8], seed: 1}", "K={normal: [300, 8], seed: 2}", "V={normal: [300, 8], seed: 3}"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **PLAIN, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"], **more}


def shell(command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A command of bash, where $A is the program."""
    program = f"A='{sys.executable} -m attncli'; "
    return subprocess.run(
        ["bash", "-c", program + command], capture_output=True, text=True, env=environment(**more), timeout=60
    )  # fmt: skip


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("format", ["long", "json", "table", "npz"])
def test_a_reader_that_leaves_ends_the_run_quietly(format, unbuffered):
    words = " ".join(f"'{word}'" for word in LARGE)
    done = shell(f"$A compute {words} -f {format} | head -c 10 >/dev/null; echo ${{PIPESTATUS[0]}}",
                 PYTHONUNBUFFERED=unbuffered)  # fmt: skip
    assert (done.stdout, done.stderr) == ("141\n", "")


@pytest.mark.parametrize("words", ["--help", "--version", "examples", "examples library", "compute three-tokens"])
def test_nobody_reads_at_all(words):
    done = shell(f"$A {words} | (exec <&-; sleep 0.5); echo ${{PIPESTATUS[0]}}", PYTHONUNBUFFERED="1")
    assert done.stderr == ""
    assert done.stdout in ("141\n", "0\n")  # 0: it was written before the reader had gone


def test_a_short_answer_goes_through_head():
    done = shell("$A compute three-tokens -s weights -f csv | head -1; echo ${PIPESTATUS[0]}")
    assert done.stdout == "0.2482550782577231,0.2482550782577231,0.5034898434845538\n0\n"


def test_json_goes_through_pythons_own_reader():
    done = shell("$A compute two-heads -f json | python -m json.tool")
    assert done.returncode == 0
    assert list(json.loads(done.stdout))[-1] == "multihead"


def test_npy_goes_through_a_pipe(tmp_path):
    done = shell(f"cd {tmp_path} && $A compute three-tokens -s weights -f npy > w.npy && $A compute Q=w.npy K=w.npy "
                 "V=w.npy -s V -f csv")  # fmt: skip
    assert np.load(tmp_path / "w.npy").shape == (3, 3)
    assert done.stdout.splitlines()[0].startswith("0.2482550782577231,")


def test_a_problem_comes_in_by_a_pipe():
    done = shell("$A examples three-tokens | $A compute - -s outputs -f tsv -d 4")
    assert done.stdout == "1.5035\t2.2552\n1.7199\t1.2721\n1.7832\t1.6626\n"


def test_standard_input_that_is_closed_matters_to_those_who_read_it():
    assert shell("$A compute three-tokens -s Q -f csv <&-").stdout == "1.0,0.0\n0.0,1.0\n1.0,1.0\n"
    done = shell("$A compute - <&-")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")


def test_standard_output_that_is_closed_is_said(tmp_path):
    done = shell("$A compute three-tokens >&-")
    assert (done.returncode, done.stderr) == (
        2, "error: standard output is closed\n  -o FILE writes to a file.\n"
    )  # fmt: skip
    assert shell(f"$A compute three-tokens -o {tmp_path}/t.json >&-").returncode == 0
    assert json.loads((tmp_path / "t.json").read_text())


def test_standard_error_that_is_closed_changes_no_exit_code():
    assert shell("$A compute three-tokens -f json 2>&- | tail -1").stdout == "}\n"
    assert shell("$A compute no-such-problem 2>&-").returncode == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has a full disk to try")
@pytest.mark.parametrize("words", ["compute three-tokens", "compute three-tokens -f npz", "--help", "examples"])
def test_a_full_disk_is_said(words):
    done = shell(f"$A {words} >/dev/full")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "standard output: no space left on device" in done.stderr


def test_an_interrupted_run_leaves_no_file(tmp_path):
    """Ctrl-C while a large file is being written."""
    words = [word.replace("300", "3000") for word in LARGE]
    file = tmp_path / "big.csv"
    file.write_text("old")
    process = subprocess.Popen(
        [*ATTNCLI, "compute", *words, "-s", "scores", "-f", "csv", "-o", str(file)],
        stderr=subprocess.PIPE, env=environment(), text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while len(os.listdir(tmp_path)) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["big.csv"]


def on_terminal(*words: str, **more: str) -> tuple[int, str]:
    """Run on a terminal of its own: exit code, and all that it was sent."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [*ATTNCLI, *words], stdin=follower, stdout=follower, stderr=follower, env=environment(**more)
    ) as process:  # fmt: skip
        os.close(follower)
        sent = b""
        while piece := _read(leader):
            sent += piece
    os.close(leader)
    return process.returncode, sent.decode().replace("\r\n", "\n")


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 65536)
    except OSError:  # the other side is closed
        return b""


def test_a_terminal_is_never_sent_binary_data():
    code, sent = on_terminal("compute", "three-tokens", "-s", "weights", "-f", "npy")
    assert code == 2
    assert sent == (
        "error: npy is binary, and standard output is a terminal\n  Send it to a file: -o FILE.npy, or > FILE.npy\n"
    )


def test_a_terminal_gets_colours_and_its_own_width():
    code, sent = on_terminal("compute", "decoder-causal", "-s", "weights", COLUMNS="44")
    assert code == 0
    assert "\x1b[38;5;16;48;5;220m" in sent
    plain = re.sub(r"\x1b\[[\d;]*m", "", sent)
    assert re.search(
        r"softmax\(masked_scores\) along *\neach row\n4 × 4 \(n × m\), rows: queries, columns: keys\n", plain
    )


def shown(terminal: bool = False, encoding: str = "utf-8", **more: str) -> str:
    words = ["compute", "decoder-causal", "-s", "weights"]
    done = run(*words, terminal=terminal, encoding=encoding, **more)
    assert (done.code, done.error) == (0, "")
    return done.data.decode(encoding)


def test_a_pipe_gets_no_colours_and_all_the_width_it_takes():
    text = shown()
    assert "\x1b" not in text
    assert "A = softmax(masked_scores) along each row   4 × 4 (n × m), rows: queries, columns: keys\n" in text


@pytest.mark.parametrize(
    ("terminal", "environ", "coloured"),
    [
        (True, {}, True), (True, {"NO_COLOR": "1"}, False), (True, {"TERM": "dumb"}, False), (False, {}, False),
        (False, {"FORCE_COLOR": "1"}, True), (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)  # fmt: skip
def test_who_decides_on_colours(terminal, environ, coloured):
    assert ("\x1b[" in shown(terminal, **environ)) is coloured


@pytest.mark.parametrize("columns", ["40", "60", "100"])
@pytest.mark.parametrize("terminal", [True, False])
def test_columns_sets_the_width(columns, terminal):
    text = shown(terminal, COLUMNS=columns, NO_COLOR="1", TERM="dumb", GITHUB_ACTIONS="true")
    assert max(map(len, text.splitlines())) <= int(columns)


@pytest.mark.parametrize("columns", ["", "0", "-5", "wide", "1e3"])
def test_columns_that_are_no_number_are_none(columns, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    monkeypatch.setenv("COLUMNS", columns)
    assert screen(None).width is None


def test_a_terminals_encoding_is_kept_to(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal(io.BytesIO(), encoding="cp1252"))
    assert screen(None).encoding == "cp1252"
    assert screen("file.txt").encoding == "utf-8"
    assert "softmax(masked_scores)" in shown(encoding="cp1252")
    assert "-----" in shown(True, encoding="ascii")


@pytest.mark.parametrize("name", examples.names())
def test_standard_output_is_data_alone(name):
    assert json.loads(data("compute", name, "-f", "json"))


@pytest.mark.parametrize(
    "words",
    [
        ["Q=1;1", "K=1;2", "V=3;5", "mask={keep: [[1, 1], [0, 0]]}"],
        ["Q=1;1", "K=1;2", "V=3;5", "mask={keep: [[1, 1], [0, 0]]}", "empty_rows=nan"],
        ["Q=300;1", "K=300;2", "V=3;5", "dtype=float16"],
        ["Q=1e200;1", "K=1e200;2", "V=3;5"],
    ],
)
def test_what_is_remarkable_is_said_beside_the_data(words):
    done = run("compute", *words, "-f", "json")
    assert done.code == 0
    assert done.error.startswith("note: ")
    assert json.loads(done.data)
