"""Markdown, read again by a Markdown library: the same numbers, the same labels, and nothing else."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
import showing
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from attncli.rendering.documents.markdown import markdown
from attncli.rendering.text.labels import visible
from attncli.rendering.text.marks import escaped, formula, paragraph
from attncli.rendering.text.writeup import sections

READER = MarkdownIt("commonmark").enable("table")


def text_of(token: Token) -> str:
    """What a reader sees of inline Markdown; anything but text, and our own span around $ and @, is an error."""
    shown = ""
    for child in token.children or ():
        if child.type == "html_inline":
            assert child.content in ("<span>", "</span>")
        else:
            assert child.type == "text", f"{token.content!r} holds {child.type}"
            shown += child.content
    return shown


def tables(text: str) -> Iterator[list[list[str]]]:
    """The tables of a document, as rows of cells."""
    tokens = READER.parse(text)
    rows: list[list[str]] = []
    for before, token in pairwise(tokens):
        if before.type == "table_open":
            rows = []
        if before.type == "tr_open":
            rows.append([])
        if before.type in ("th_open", "td_open"):
            rows[-1].append(text_of(token))
        if token.type == "table_close":
            yield rows


def number(text: str) -> float:
    return float(text.replace("−∞", "-inf"))


@pytest.mark.parametrize("name", showing.PROBLEMS)
def test_a_markdown_reader_finds_the_same_numbers(name: str) -> None:
    view = showing.view(showing.PROBLEMS[name]())
    sheets = [sheet for section in sections(view) for sheet in section.sheets]
    found = list(tables(markdown(view, digits=6)))
    assert len(found) == len(sheets) > 5
    for (header, *rows), sheet in zip(found, sheets, strict=True):
        numbers = np.array([[number(cell) for cell in row[1:]] for row in rows])
        np.testing.assert_allclose(numbers, sheet.array, atol=5.1e-7, rtol=0)
        assert header[0] == formula(sheet.symbol)
        assert header[1:] == [visible(label).strip() for label in sheet.columns]
        assert [row[0] for row in rows] == [visible(label).strip() for label in sheet.rows]


def test_the_known_weights_stand_in_the_table() -> None:
    text = markdown(showing.view(showing.three_tokens(), "weights"))
    assert next(tables(text))[:2] == [["$A$", "私", "は", "猫"], ["私", "0.2483", "0.2483", "0.5035"]]
    assert "$A = \\operatorname{softmax}(\\tilde{S}) \\text{ along each row}$, $n \\times  m = 3 \\times  3$." in text


def test_minus_infinity_is_written_and_read() -> None:
    rows = next(tables(markdown(showing.view(showing.three_tokens(mask="causal"), "masked_scores"))))
    assert rows[1][2:] == ["−∞", "−∞"]
    assert math.isinf(number(rows[1][2]))


@pytest.mark.parametrize("name", showing.PROBLEMS)
def test_formulas_survive_markdown(name: str) -> None:
    view = showing.view(showing.PROBLEMS[name]())
    tokens = [token for token in READER.parse(markdown(view)) if token.type == "inline"]
    seen = "\n".join(text_of(token) for token in tokens)
    for section in sections(view):
        assert formula(section.equation) in seen
        assert "\\_" not in formula(section.equation)


@given(st.text())
@example("|")
@example("\\|")
@example("&amp; &#36; <br> <!--")
@example("`a` **b** __c__ ~~d~~ ![e](f)")
def test_any_label_is_read_as_itself(label: str) -> None:
    table = f"| a | b |\n| --- | --- |\n| {escaped(label)} | 1 |\n"
    assert next(tables(table))[1] == [visible(label).strip(), "1"]


@given(st.text().filter(str.strip))
@example("- a")
@example("1. a")
@example("12) a")
@example("+ a")
@example("---")
@example("# a")
@example("> a")
@example("    code")
@example("```")
def test_any_note_is_one_paragraph(note: str) -> None:
    tokens = READER.parse(paragraph(note))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert text_of(tokens[1]) == visible(" ".join(note.split())).strip()


def test_a_shortened_matrix_says_so() -> None:
    view = showing.view(showing.long(), "scores")
    text = markdown(view)
    assert "*rows 20 to 31 of 50 are left out, columns 12 to 59 of 70 are left out; `--full` shows all.*" in text
    assert len(next(tables(text))) == 1 + 39
    assert "left out" not in markdown(view, full=True)
    assert len(next(tables(markdown(view, full=True)))) == 51


def test_a_selection_shows_no_inputs() -> None:
    headings = re.findall(r"^## (.*)$", markdown(showing.view(showing.three_tokens(), "scores", "weights")), re.M)
    assert headings == ["scores", "weights"]
    assert re.findall(r"^## (.*)$", markdown(showing.view(showing.own_heads())), re.M)[:3] == [
        "Z", r"heads.1.W\_Q", r"heads.2.W\_Q",
    ]  # fmt: skip
