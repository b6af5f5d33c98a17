"""The page, read without a browser: one file, escaped, labelled, with the arithmetic of every cell."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
import showing

from attncli import Problem
from attncli.rendering.documents.html import html
from attncli.rendering.text import work
from attncli.rendering.text.labels import one_line, visible

RAW = ("script", "style")
VOID = ("meta",)


class Page(HTMLParser):
    """Every element with its attributes and text; the headings and cells of each table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[int, str] = {}
        self._open: list[int] = []
        self.feed(text)
        assert self._open == [], "an element is left open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts[len(self.elements) - 1] = ""
        if tag not in VOID:
            self._open.append(len(self.elements) - 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self._open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for position in self._open:
            self.texts[position] += data

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        """The attributes and the text of each element of a kind."""
        return [(attrs, self.texts[i]) for i, (name, attrs) in enumerate(self.elements) if name == tag]

    def cells(self) -> dict[str, str]:
        """Each numbered cell's text by its id."""
        return {attrs["id"] or "": text for attrs, text in self.all("td") if "id" in attrs}

    def data(self) -> dict[str, dict[str, list[str]]]:
        """The embedded arithmetic."""
        loaded: dict[str, dict[str, list[str]]] = json.loads(self.all("script")[0][1])
        return loaded


def page(problem: Problem, *stages: str, full: bool = False) -> Page:
    return Page(html(showing.view(problem, *stages), full=full))


def test_a_number_that_is_cut_is_not_said_to_be_equal() -> None:
    lines = {cell: made["lines"] for cell, made in page(showing.PROBLEMS["three_tokens"]()).data().items()}
    assert lines["scaled_scores[1,1]"][1:] == ["= 1 / √2", "≈ 1 / 1.4142", "≈ 0.7071"]
    assert lines["scores[1,3]"][-1] == "= 2"
    assert lines["weights[1,3]"][1:] == [
        "≈ exp(1.4142) / (exp(0.7071) + exp(0.7071) + exp(1.4142))",
        "≈ 4.1133 / (2.0281 + 2.0281 + 4.1133)",
        "≈ 4.1133 / 8.1695",  # 2 e^0.70711 + e^1.41421
        "≈ 0.5035",
    ]


@pytest.mark.parametrize("name", showing.PROBLEMS)
def test_every_cell_of_a_stage_has_its_arithmetic(name: str) -> None:
    read = page(showing.PROBLEMS[name]())
    cells, data = read.cells(), read.data()
    view = showing.view(showing.PROBLEMS[name]())
    assert set(data) <= set(cells)
    assert len(data) == sum(view.array(stage).size for stage in view.stages) > 50
    for cell, made in data.items():
        shown = cells[cell].replace("-", "−")  # formulas have a minus, tables a hyphen
        tiny = shown.strip("−0.") == ""  # the arithmetic says how tiny
        told = any(line.endswith((f"= {shown}", f"≈ {shown}")) or (tiny and "·10⁻" in line) for line in made["lines"])
        assert told, (cell, made, shown)
        assert set(made["from"]) <= set(cells), cell


def test_the_known_weight_and_its_sum() -> None:
    read = page(showing.three_tokens())
    assert read.cells()["weights[1,3]"] == "0.5035"
    made = read.data()["weights[1,3]"]
    assert made["from"] == ["scaled_scores[1,3]", "scaled_scores[1,1]", "scaled_scores[1,2]"]
    assert read.data()["scores[1,3]"]["from"] == ["Q[1,1]", "K[3,1]", "Q[1,2]", "K[3,2]"]
    assert read.data()["Q[3,1]"]["from"] == ["Z[3,1]", "W_Q[1,1]", "Z[3,2]", "W_Q[2,1]"]


def test_tables_are_tables() -> None:
    read = page(showing.two_heads())
    headings = read.all("th")
    assert {attrs.get("scope") for attrs, _ in headings} == {"row", "col"}
    assert len(read.all("caption")) == len(read.all("table")) == 7 + 3 * 2 + 4 * 2 + 2 + 2
    assert len(read.all("section")) == len({attrs["aria-labelledby"] for attrs, _ in read.all("section")})
    panel = next(attrs for attrs, _ in read.all("aside"))
    assert panel["aria-live"] == "polite"
    ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {f"#{one}" for one in ids} >= {attrs["href"] for attrs, _ in read.all("a")}


def test_nothing_comes_from_elsewhere() -> None:
    text = html(showing.view(showing.hostile()))
    read = Page(text)
    for tag, attrs in read.elements:
        assert not {"src", "action", "data", "poster", "srcset", "style", "background"} & set(attrs), tag
        assert not any(name.startswith("on") for name in attrs), tag
        assert (attrs.get("href") or "#").startswith("#")
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in read.elements}
    assert "@import" not in text
    assert "url(" not in text


def test_the_policy_names_the_pages_own_script_and_style() -> None:
    read = page(showing.hostile())
    policy = next(attrs["content"] or "" for attrs, _ in read.all("meta") if "http-equiv" in attrs)
    assert policy.startswith("default-src 'none';")
    for kind, text in (("style", read.all("style")[0][1]), ("script", read.all("script")[1][1])):
        assert f"{kind}-src 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy


def test_hostile_labels_are_text() -> None:
    text = html(showing.view(showing.hostile()))
    read = Page(text)
    assert [len(read.all(tag)) for tag in ("script", "style", "title", "b")] == [2, 1, 1, 0]
    assert read.all("title")[0][1] == one_line(showing.hostile().title or "")
    labels = [label for _, label in read.all("bdi")]
    assert set(labels) == {visible(label) for label in showing.HOSTILE}
    assert not {"\u2028", "\u202e", "\x1b"} & set(text)
    assert "<!--" not in text.split('id="work">')[1].split("</script>")[0]
    assert read.data()["weights[1,1]"]["lines"]


def test_formulas_are_mathml() -> None:
    text = html(showing.view(showing.two_heads(softcap=5)))
    formulas = re.findall(r"<math>.*?</math>", text)
    assert len(formulas) > 40
    tags = {element.tag for formula in formulas for element in ET.fromstring(formula).iter()}
    core = {"math", "mi", "mo", "mn", "mtext", "mrow", "msub", "msup", "msubsup", "mover", "msqrt"}
    assert tags <= core
    assert "".join(ET.fromstring(formulas[-1]).itertext()) == "MultiHead(Z)"


def test_masked_cells_are_marked_not_only_by_colour() -> None:
    read = page(showing.three_tokens(mask="causal"), "weights")
    hidden = [attrs["id"] for attrs, _ in read.all("td") if "hidden" in (attrs.get("class") or "")]
    assert hidden == ["weights[1,2]", "weights[1,3]", "weights[2,3]"]
    titles = [attrs["id"] for attrs, _ in read.all("td") if attrs.get("title") == "hidden by the mask"]
    assert titles == hidden


def test_a_long_matrix_is_shortened_and_that_is_said() -> None:
    read = page(showing.long(), "scores")
    assert len(read.cells()) == 38 * 38
    said = [text for attrs, text in read.all("p") if attrs.get("class") == "note"]
    assert said == ["rows 20 to 31 of 50 are left out, columns 20 to 51 of 70 are left out; --full shows all."]
    assert len(page(showing.long(), "scores", full=True).cells()) == 50 * 70


def test_arithmetic_beyond_the_limit_is_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MOST_TERMS", 100)
    read = page(showing.three_tokens(), "scores", "weights", "outputs")
    assert {cell.partition("[")[0] for cell in read.data()} == {"scores", "weights"}
    said = [text for attrs, text in read.all("p") if attrs.get("class") == "note"]
    assert said == [
        "The arithmetic of outputs is too much for one page; attncli explain shows it, such as that of outputs[1,1]."
    ]
