"""Heatmaps: the SVG is read again, cell by cell; PNG and PDF are the same bytes twice."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import showing

from attncli import Problem
from attncli.language.errors import AttncliError
from attncli.rendering.formats import FORMATS, Options
from attncli.rendering.pictures import fonts, svg
from attncli.rendering.pictures import plots as pictures
from attncli.rendering.pictures.colours import brightness, colour, hexadecimal
from attncli.rendering.text.labels import visible
from attncli.rendering.views import View

SVG = "{http://www.w3.org/2000/svg}"
CELL = re.compile(r"(?P<name>\w+\[[\d;,]+\]) = (?P<value>\S+)(?P<hidden> \(hidden by the mask\))?")


def drawn(view: View, kind: str) -> bytes:
    stream = io.BytesIO()
    FORMATS[kind].write(view, Options(), stream)
    return stream.getvalue()


def cells(text: str) -> dict[str, tuple[float, bool, str]]:
    """Each cell's value, whether it is hidden, and its fill, by its title."""
    found = {}
    for box in ET.fromstring(text).iter(f"{SVG}rect"):
        title = box.find(f"{SVG}title")
        if title is not None:
            match = CELL.fullmatch(title.text or "")
            assert match is not None
            value = float(match["value"].replace("−∞", "-inf"))
            found[match["name"]] = value, match["hidden"] is not None, box.attrib["fill"]
    return found


def words(text: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(text).iter(f"{SVG}text")]


def test_the_known_weights_are_read_back() -> None:
    text = svg.svg(showing.view(showing.three_tokens(), "weights"), digits=4)
    found = cells(text)
    assert len(found) == 9
    assert found["weights[1,1]"][0] == pytest.approx(0.2483, abs=5e-5)
    assert found["weights[1,3]"][0] == pytest.approx(0.5035, abs=5e-5)
    assert words(text).count("0.2483") == 2
    assert words(text).count("猫") == 2
    assert {"queries", "keys", "A", "Three tokens, one head"} <= set(words(text))


def test_every_head_and_batch_entry_is_drawn() -> None:
    view = showing.view(showing.batches(), "weights")
    found = cells(svg.svg(view))
    array = view.array("weights")
    assert len(found) == array.size == 2 * 2 * 3 * 5
    for (batch, head, row, column), value in np.ndenumerate(array):
        name = f"weights[{batch + 1};{head + 1};{row + 1},{column + 1}]"
        assert found[name][0] == pytest.approx(value, abs=5e-7)


def test_what_the_mask_hides_is_hatched() -> None:
    for stage in ("masked_scores", "weights"):
        found = cells(svg.svg(showing.view(showing.three_tokens(mask="causal"), stage)))
        hidden = {name for name, (_, is_hidden, fill) in found.items() if is_hidden and fill == "url(#hidden)"}
        assert hidden == {f"{stage}[1,2]", f"{stage}[1,3]", f"{stage}[2,3]"}
    assert found["weights[1,1]"][2] == hexadecimal(colour(1.0))


def test_in_columns_the_mask_lies_on_the_other_side() -> None:
    columns = showing.three_tokens(mask="causal", layout="columns")
    found = cells(svg.svg(showing.view(columns, "weights")))
    assert {name for name, (_, hidden, _) in found.items() if hidden} == {
        "weights[2,1]", "weights[3,1]", "weights[3,2]",
    }  # fmt: skip


def test_labels_are_text_whatever_they_are() -> None:
    text = svg.svg(showing.view(showing.hostile(), "weights"))
    shown = words(text)
    for label in showing.HOSTILE:
        assert shown.count(pictures.label(label)) == 2
        assert pictures.label(label) in (visible(label), visible(label)[:23] + "…")
    assert "<script" not in text


def test_the_same_input_gives_the_same_bytes() -> None:
    for kind in ("svg", "png", "pdf"):
        if kind != "svg":
            pytest.importorskip("matplotlib", reason="png and pdf need matplotlib")
        first, second = (drawn(showing.view(showing.two_heads(), "weights"), kind) for _ in range(2))
        assert first == second
        assert first.startswith({"svg": b"<svg ", "png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-"}[kind])


def test_a_whole_problem_is_shown_by_its_weights() -> None:
    whole, alone = (showing.view(showing.three_tokens(), *stages) for stages in ((), ("weights",)))
    assert svg.svg(whole) == svg.svg(alone)
    with pytest.raises(AttncliError, match="a picture shows one stage, and 2 are selected"):
        svg.svg(showing.view(showing.three_tokens(), "scores", "weights"))


def test_values_stand_in_cells_that_are_large_enough() -> None:
    small, large = (svg.svg(showing.view(showing.long(n, n), "weights")) for n in (5, 40))
    assert len(cells(small)) == 25
    assert len(words(small)) == 25 + 5 + 5 + 3 + 3
    assert len(words(large)) == 40 + 40 + 3 + 3


def test_too_many_cells_for_an_svg() -> None:
    with pytest.raises(AttncliError, match="has 90000 cells, and an SVG takes 60000"):
        svg.svg(showing.view(showing.long(300, 300), "weights"))


def test_colours_only_darken() -> None:
    shades = [brightness(colour(share)) for share in np.linspace(0, 1, 101)]
    assert all(a > b for a, b in pairwise(shades))
    assert shades[0] > 0.9
    assert shades[-1] < 0.25
    assert colour(-1.0) == colour(0.0)


def test_the_colours_are_the_published_ones() -> None:
    """Green 2011, equation 2, as matrices; matplotlib's cubehelix is another's writing of the same formula."""
    colormaps = pytest.importorskip("matplotlib.colors", reason="the other writing of the formula is matplotlib's")
    cm = pytest.importorskip("matplotlib._cm")
    made = colormaps.LinearSegmentedColormap("published", cm.cubehelix(s=0.0 + 3, r=-0.4, h=1.0), N=1001)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        bright = 0.97 + (0.16 - 0.97) * share
        assert colour(share) == pytest.approx([255 * part for part in made(bright)[:3]], abs=1.5)


@pytest.fixture
def no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("no_matplotlib")
def test_without_the_extra_a_sentence_says_how_to_get_it() -> None:
    view = showing.view(showing.three_tokens(), "weights")
    for kind in ("png", "pdf"):
        with pytest.raises(AttncliError, match="which is not installed") as caught:
            drawn(view, kind)
        assert 'pip install "attncli[plot]"' in str(caught.value)
    assert drawn(view, "svg")


def test_letters_that_no_font_has_are_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="png needs matplotlib")
    candidates: Callable[[], dict[str, str]] = fonts._candidates
    only = {fonts.FIRST: candidates()[fonts.FIRST]}
    monkeypatch.setattr(fonts, "_candidates", lambda: only)
    drawn(showing.view(showing.three_tokens(), "weights"), "png")
    assert "note: no font on this machine has は 猫 私: they are drawn as boxes" in capsys.readouterr().err


def test_labels_are_no_formulas_for_matplotlib() -> None:
    pytest.importorskip("matplotlib", reason="png needs matplotlib")
    problem = Problem(Q=[[1.0], [2.0]], K=[[1.0], [2.0]], V=[[1.0], [2.0]], tokens=["$\\frac{$", "$x$"], title="$\\x$")
    assert drawn(showing.view(problem, "weights"), "png").startswith(b"\x89PNG")


def test_all_equal_and_all_hidden() -> None:
    nothing = Problem(
        Q=[[1.0], [2.0]], K=[[1.0], [1.0]], V=[[1.0], [2.0]], mask={"block": [[1, 1], [1, 1]]}, scale=0
    )  # fmt: skip
    for stage in ("scaled_scores", "masked_scores", "weights"):
        for kind in ("svg", "png"):
            assert drawn(showing.view(nothing, stage), kind)
