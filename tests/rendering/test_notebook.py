"""A Result shows itself: as HTML in a notebook, as tables to rich, in short at a prompt."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from io import StringIO

import pytest
import showing
from rich.console import Console

import attncli
from attncli.rendering.text.labels import visible


class Reader(HTMLParser):
    """Collects the tags, the attributes, and the texts of table cells; counts what is open."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.cells: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader


def test_a_notebook_gets_static_tables() -> None:
    reader = read(attncli.compute(showing.three_tokens())._repr_html_())
    assert {"0.2483", "0.5035", "1 私", "3 猫"} <= set(reader.cells)
    assert not {"script", "style", "iframe", "img", "link"} & set(reader.tags)
    assert not {"id", "onclick"} & reader.attributes
    assert reader.tags.count("table") == 7


def test_hostile_labels_stay_labels() -> None:
    reader = read(attncli.compute(showing.hostile(), ["weights"])._repr_html_())
    for position, label in enumerate(showing.HOSTILE, 1):
        assert reader.cells.count(f"{position} {visible(label)}") == 2
    assert "b" not in reader.tags
    assert "script" not in reader.tags


@pytest.mark.parametrize("width", [40, 100])
def test_rich_draws_the_tables_of_the_screen(width: int) -> None:
    drawn = StringIO()
    Console(file=drawn, width=width).print(attncli.compute(showing.three_tokens(), ["weights"]))
    lines = drawn.getvalue().splitlines()
    assert any(line.split() == ["1", "私", "0.2483", "0.2483", "0.5035"] for line in lines)
    assert max(map(len, lines)) <= width


def test_notes_are_shown() -> None:
    result = attncli.compute(showing.three_tokens(mask={"keep": [[0, 0, 0], [1, 1, 1], [1, 1, 1]]}))
    drawn = StringIO()
    Console(file=drawn, width=100).print(result)
    for shown in (drawn.getvalue(), result._repr_html_()):
        assert "query 1 may attend to nothing" in shown


def test_repr_is_short() -> None:
    result = attncli.compute(showing.three_tokens(), ["scores", "outputs"])
    assert repr(result) == "<Result: scores 1×3×3, outputs 1×3×2>"


def test_a_result_alone_imports_no_rich() -> None:
    code = (
        "import sys, attncli; r = attncli.compute(attncli.Problem(Q=[[1]], K=[[1]], V=[[1]])); r._repr_html_();"
        "assert 'rich' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
