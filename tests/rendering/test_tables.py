"""Tables on the screen: whole pictures at fixed widths, and what must hold at any width.

The pictures are in tests/data/screens/. After a change that is meant, `ATTNCLI_DRAW=1 pytest
tests/rendering/test_tables.py` draws them anew: look at each before it is kept.
"""

from __future__ import annotations

import io
import os
import re

import numpy as np
import pytest
import showing
from hypothesis import given
from hypothesis import strategies as st
from places import DATA
from rich.cells import cell_len

import attncli
from attncli import Problem
from attncli.rendering.formats import Options, Screen
from attncli.rendering.screen import tables
from attncli.rendering.text.labels import plain
from attncli.rendering.text.numbers import shown
from attncli.rendering.views import Choice, View

SCREENS = DATA / "screens"

EMPTY_ROW = {"Q": [[1], [-2.5], [0]], "K": [[1], [2]], "V": [[3], [1e20]], "mask": {"keep": [[1, 1], [0, 0], [0, 1]]}}
MARKUP = ["[mask]", "[/CLS]", "[b]", ":smile:", "\x1b[31mred", "a\tb\n"]
SCRIPTS = ["猫", "한국어", "سلام", "e\u0301te\u0301", "❤️", "👩‍👩‍👧"]


def labelled(labels: list[str]) -> Problem:
    """Self-attention of as many tokens as there are labels."""
    Z = np.arange(len(labels) * 2).reshape(len(labels), 2) % 5
    return Problem(tokens=labels, Z=Z, W_Q=np.eye(2), W_K=np.eye(2), W_V=np.eye(2))


def big(n: int = 50, m: int = 45) -> Problem:
    """Whole numbers, so that each cell tells its place: 100 i + j."""
    return Problem(scores=[[100 * (i + 1) + j + 1 for j in range(m)] for i in range(n)], V=np.ones((m, 1)), score="dot")


PROBLEMS = {
    "three-tokens": lambda: attncli.load("three-tokens"),
    "decoder-causal": lambda: attncli.load("decoder-causal"),
    "encoder-decoder": lambda: attncli.load("encoder-decoder"),
    "grouped-query": lambda: attncli.load("grouped-query"),
    "two-heads": lambda: attncli.load("two-heads"),
    "columns": lambda: attncli.load("columns"),
    "batch": lambda: attncli.load("batch"),
    "base": lambda: attncli.load("transformer-base"),
    "empty-row": lambda: Problem(**EMPTY_ROW),
    "markup": lambda: labelled(MARKUP),
    "scripts": lambda: labelled(SCRIPTS),
    "long-labels": lambda: labelled(["word" * 20, "b", "c"]),
    "big": big,
}

PICTURES = [
    # problem, stages, width, encoding, colours, further options
    ("three-tokens", "", None, "utf-8", False, {}),
    *(("three-tokens", "scores weights outputs", width, "utf-8", False, {}) for width in (120, 80, 60, 40)),
    ("three-tokens", "scaled_scores weights", 100, "cp1252", False, {}),
    ("three-tokens", "scores weights", 80, "utf-8", True, {}),
    ("three-tokens", "weights", 80, "utf-8", False, {"stats": True}),
    ("three-tokens", "weights", 40, "utf-8", False, {"stats": True}),
    ("three-tokens", "weights", 80, "utf-8", False, {"digits": 1}),
    *(("decoder-causal", "masked_scores weights", width, "utf-8", False, {}) for width in (100, 40)),
    ("decoder-causal", "masked_scores weights", 80, "utf-8", True, {}),
    ("decoder-causal", "masked_scores weights", 80, "ascii", False, {}),
    ("decoder-causal", "masked_scores weights", 80, "ascii", True, {}),
    *(("encoder-decoder", "scores weights", width, "utf-8", False, {}) for width in (80, 40)),
    ("two-heads", "K outputs concat multihead contributions", 100, "utf-8", False, {}),
    ("two-heads", "weights", 60, "utf-8", True, {}),
    ("grouped-query", "K scores", 80, "utf-8", False, {}),
    ("columns", "masked_scores weights outputs", 80, "utf-8", False, {"stats": True}),
    ("batch", "masked_scores weights", 80, "utf-8", False, {}),
    *(("base", "weights", width, "utf-8", False, {}) for width in (120, 60)),
    ("empty-row", "masked_scores weights outputs", 80, "utf-8", False, {}),
    ("markup", "weights", 80, "utf-8", False, {}),
    ("markup", "weights", 80, "ascii", False, {}),
    ("scripts", "weights", 80, "utf-8", False, {}),
    ("scripts", "weights", 80, "cp1252", False, {}),
    *(("long-labels", "weights", width, "utf-8", False, {}) for width in (120, 40)),
    ("long-labels", "weights", 120, "utf-8", False, {"full": True}),
    *(("big", "scores", width, "utf-8", False, {}) for width in (None, 100, 40)),
]  # fmt: skip


def name_of(problem, stages, width, encoding, colours, more) -> str:
    """The file of a picture: everything that it depends on."""
    words = [problem, *stages.split(), str(width or "pipe"), encoding, "colour" if colours else "", *more]
    return "_".join(str(word) for word in words if word) + ".txt"


def drawn(problem: Problem, stages: str = "", screen: Screen | None = None, **more: object) -> str:
    """What is written for a problem's stages (of all, where none is named)."""
    stream = io.BytesIO()
    names = tuple(stages.split())
    view = View(attncli.compute(problem, names or None), Choice(names) if names else None)
    screen = screen or Screen()
    tables.write(view, Options(screen=screen, **more), stream)
    return stream.getvalue().decode(screen.encoding)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: name_of(*picture))
def test_a_whole_picture(picture, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    problem, stages, width, encoding, colours, more = picture
    text = drawn(PROBLEMS[problem](), stages, Screen(width, encoding, colours), **more)
    file = SCREENS / name_of(*picture)
    if os.environ.get("ATTNCLI_DRAW"):
        file.write_text(text, encoding="utf-8", newline="\n")
    assert text == file.read_text(encoding="utf-8")


def test_every_picture_is_looked_at():
    assert {file.name for file in SCREENS.iterdir()} == {name_of(*picture) for picture in PICTURES}


@given(
    n=st.integers(1, 7), m=st.integers(1, 30), width=st.none() | st.integers(20, 130), digits=st.integers(0, 6),
    seed=st.integers(0, 9),
)  # fmt: skip
def test_at_any_width_every_number_is_there_whole_and_no_line_is_longer(n, m, width, digits, seed):
    scores = np.random.default_rng(seed).normal(scale=10.0, size=(n, m))
    scores[0, 0] = 2
    text = drawn(Problem(scores=scores, V=np.ones((m, 1)), score="dot"), "scores", Screen(width), digits=digits)
    body = text[text.index("queries") :] if width is None else text
    bands = re.split(r"^[─]+$", body, flags=re.MULTILINE)[1:]
    found: list[list[str]] = [[] for _ in range(n)]
    for band in bands:
        for i, line in enumerate(band.strip("\n").splitlines()[:n]):
            found[i] += line.split()[1:]
    assert found == [[shown(x, digits) for x in row] for row in scores.tolist()]
    if width is not None:
        assert max(map(cell_len, text.splitlines())) <= width


@given(labels=st.lists(st.text(max_size=30), min_size=1, max_size=5), width=st.integers(30, 100))
def test_no_label_moves_a_line_or_reaches_the_terminal(labels, width):
    text = drawn(labelled(labels), "weights", Screen(width))
    lines = text.split("\n")
    assert max(map(cell_len, lines)) <= width
    assert all(c.isprintable() or c in "\u200c\u200d\n" for c in text if c not in "".join(labels) or ord(c) < 0x20)
    assert not any(ord(c) < 0x20 and c != "\n" for c in text)
    assert drawn(labelled(labels), "weights", Screen(width, "ascii")).isascii()


@pytest.mark.parametrize("label", ["[mask]", "[/CLS]", "[b]", "[bold red]x[/]", ":smile:", "[link=http://x]y", "\\[b]"])
def test_a_label_is_literal(label):
    assert drawn(labelled([label, "b"]), "Q").splitlines()[5].startswith(f" 1 {label}")


def test_columns_stand_below_their_labels_whatever_the_script():
    lines = drawn(labelled(SCRIPTS), "scores", Screen(120)).splitlines()
    heading, rows = lines[3], lines[5:]
    ends = [cell_len(heading[: heading.index(label) + len(label)]) for label in SCRIPTS]
    for row in rows:
        numbers = re.finditer(r"\S+", row[row.index(" ", 3) :])
        offset = row.index(" ", 3)
        assert [cell_len(row[: offset + number.end()]) for number in numbers] == ends


def test_long_sides_are_shortened_in_the_middle_and_that_is_said():
    lines = drawn(big(), "scores").splitlines()
    assert lines[-1] == "(30 of 50 rows and 25 of 45 columns left out; --full shows all)"
    numbers = [line.split()[0] for line in lines[5:-1]]
    assert numbers == [*map(str, range(1, 11)), "⋮", *map(str, range(41, 51))]


def test_full_shows_all():
    text = drawn(big(), "scores", full=True)
    assert "left out" not in text
    found = [[int(word) for word in line.split()[1:]] for line in text.splitlines()[5:]]
    assert found == [[100 * (i + 1) + j + 1 for j in range(45)] for i in range(50)]


@pytest.mark.parametrize(("size", "shortened"), [(40, False), (41, True)])
def test_forty_are_shown_whole(size, shortened):
    assert ("left out" in drawn(big(size, 3), "scores")) is shortened


def test_a_cut_label_is_said():
    problem = labelled(["word" * 20, "b"])
    assert drawn(problem, "Q").splitlines()[-1] == "Labels that end in … are cut; --full shows them whole."
    assert "word" * 20 in drawn(problem, "Q", full=True)
    assert "are cut" not in drawn(problem, "Q", full=True)


def test_the_heading_tells_what_is_in_force():
    problem = Problem(
        Q=np.ones((2, 4)), K=np.ones((3, 2)), V=np.ones((3, 2)), num_heads=2, num_kv_heads=1, scale=0.3, softcap=5,
        mask={"lengths": 2}, mask_fill=-1e9, dtype="float32", round=2,
    )  # fmt: skip
    heading = drawn(problem, "scores").splitlines()[0]
    for phrase in (
        "scale: 0.3 (given)", "softcap: 5", "lengths", "-1e+09", "layout: rows", "float32", "starts at Q, K, V",
        "rounded on the way: every stage to 2 decimals", "query heads 1, 2 use key/value head 1",
    ):  # fmt: skip
        assert phrase in heading


def test_the_grouping_of_heads_is_told():
    from attncli.rendering.text.captions import grouping

    problem = Problem(Q=np.ones((1, 4)), K=[[1, 9]], V=np.ones((1, 2)), num_heads=4, num_kv_heads=2)
    assert grouping(problem) == "query heads 1, 2 use key/value head 1; 3, 4 use 2"


def colours_of(text: str) -> set[str]:
    return set(re.findall(r"\x1b\[([\d;]+)m", text)) - {"0"}


@pytest.mark.parametrize(("term", "shaded"), [("xterm-256color", True), ("xterm", False)])
def test_weights_are_shaded_where_the_terminal_has_the_colours(term, shaded, monkeypatch):
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = drawn(showing.three_tokens(), "weights", Screen(80, "utf-8", True))
    assert any(";48;5;" in f";{colour}" for colour in colours_of(text)) is shaded
    scores = drawn(showing.three_tokens(), "scores", Screen(80, "utf-8", True))
    assert not any("48;5" in colour for colour in colours_of(scores))


def test_colours_change_nothing_but_colours(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for problem in (showing.three_tokens(mask="causal"), showing.two_heads(), labelled(SCRIPTS)):
        coloured = re.sub(r"\x1b\[[\d;]*m", "", drawn(problem, screen=Screen(70, "utf-8", True)))
        assert [line.rstrip() for line in coloured.splitlines()] == drawn(problem, screen=Screen(70)).splitlines()


def test_masked_cells_are_dim(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = drawn(showing.three_tokens(mask="causal"), "weights", Screen(80, "utf-8", True))
    assert text.splitlines()[-1].count("\x1b[2m") == 0
    assert text.splitlines()[-3].count("\x1b[2m") == 2


def test_ascii_has_a_word_for_each_symbol_of_ours():
    for problem in (showing.three_tokens(mask="causal"), showing.two_heads(), showing.batches(), big()):
        text = drawn(problem, screen=Screen(100, "ascii"), stats=True)
        assert text.isascii()
        assert "\\u" not in text.replace("\\u79c1", "").replace("\\u306f", "").replace("\\u732b", "")
        assert "-inf" in text or problem.mask is None or not problem.mask.hides


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [
        (2.0, 4, "2"), (-3.0, 4, "-3"), (0.0, 4, "0"), (-0.0, 4, "0"), (0.48583, 4, "0.4858"), (1e-9, 4, "0.0000"),
        (-1e-9, 4, "0.0000"), (0.5, 0, "0"), (1.5, 0, "2"), (123456789.5, 1, "123456789.5"), (1e15, 4, "1e+15"),
        (-1.25e20, 2, "-1.25e+20"), (float("inf"), 4, "∞"), (float("-inf"), 4, "−∞"), (float("nan"), 4, "NaN"),
        (999999999999999.0, 4, "999999999999999"), (2.0000000000000004, 4, "2.0000"),
    ],
)  # fmt: skip
def test_how_a_number_is_shown(number, digits, text):
    assert shown(number, digits) == text


def test_old_encodings_get_plain_words():
    assert plain("S̃ 3 × 2 · −∞ → … √d_k").replace("S̃", "S~") == "S~ 3 x 2 * -inf -> ... sqrt(d_k)"
