"""The page in a real browser: it opens in silence, a click or a key shows the arithmetic, nothing leaves the page."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import showing

from attncli import Problem
from attncli.rendering.documents.html import html

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser (pip install playwright)")

FLAGS = [
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium here (Debian: chromium)")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=program, args=FLAGS, chromium_sandbox=getattr(os, "geteuid", lambda: 1)() != 0
        )
        yield running
        running.close()


class Shown:
    """A problem's page, open; what it said on the console and asked of the network."""

    def __init__(self, browser: Any, folder: Path, problem: Problem, **context: Any) -> None:
        file = folder / "page.html"
        file.write_text(html(showing.view(problem)), encoding="utf-8")
        self.page = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **context}).new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())
        self.address = file.as_uri()

    def cell(self, name: str) -> Any:
        return self.page.locator(f'[id="{name}"]')

    def panel(self) -> str:
        return str(self.page.locator("#panel").inner_text())

    def lit(self, kind: str) -> set[str]:
        return set(self.page.eval_on_selector_all(f"td.{kind}", "cells => cells.map(cell => cell.id)"))

    def focused(self) -> str:
        return str(self.page.evaluate("document.activeElement.id"))

    def check_silence(self) -> None:
        """Nothing was said, and nothing but the page itself was asked for."""
        assert self.said == []
        assert self.asked == [self.address]


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Shown:
    return Shown(browser, tmp_path, showing.three_tokens(mask="causal"))


def test_a_click_on_a_weight_shows_the_right_sum(shown: Shown) -> None:
    shown.cell("weights[3,1]").click()
    panel = re.sub(r"\s+", " ", shown.panel())
    # exp(√2) / (exp(√2) + exp(0) + exp(√2)) = 4.1133 / 9.2265
    assert "weights[3,1]" in panel
    assert "exp(1.4142) + exp(0) + exp(1.4142)" in panel
    assert "0.4458" in panel
    assert shown.lit("picked") == {"weights[3,1]"}
    assert shown.lit("from") == {"masked_scores[3,1]", "masked_scores[3,2]", "masked_scores[3,3]"}
    assert shown.lit("into") == {"outputs[3,1]", "outputs[3,2]"}
    shown.check_silence()


def test_every_cell_can_be_clicked(shown: Shown) -> None:
    names = shown.page.eval_on_selector_all("td[id]", "cells => cells.map(cell => cell.id)")
    assert len(names) == 6 + 3 * 4 + 3 * 6 + 4 * 9 + 6
    for name in names:
        shown.cell(name).click()
        assert shown.panel().startswith("Close")
        assert name in shown.panel()
    shown.check_silence()


def test_an_input_says_where_it_is_used(shown: Shown) -> None:
    shown.cell("Z[1,2]").click()
    assert shown.lit("into") == {f"{stage}[1,{column}]" for stage in "QKV" for column in (1, 2)}


def test_the_keyboard_alone_will_do(shown: Shown) -> None:
    shown.cell("weights[1,1]").focus()
    for key, place in (
        ("ArrowRight", "weights[1,2]"), ("ArrowDown", "weights[2,2]"), ("End", "weights[2,3]"),
        ("Home", "weights[2,1]"), ("ArrowUp", "weights[1,1]"), ("ArrowUp", "weights[1,1]"),
        ("Control+End", "weights[3,3]"), ("ArrowLeft", "weights[3,2]"), ("Enter", "weights[3,2]"),
    ):  # fmt: skip
        shown.page.keyboard.press(key)
        assert shown.focused() == place
        assert shown.lit("picked") == {place}
    shown.page.keyboard.press("Tab")
    assert shown.focused() == "outputs[1,1]"
    shown.page.keyboard.press("Escape")
    assert shown.lit("picked") == shown.lit("from") == set()
    assert "How a number arose" in shown.panel()
    shown.check_silence()


def test_the_panel_leads_on_to_the_cells_it_names(shown: Shown) -> None:
    shown.cell("scores[1,3]").click()
    shown.page.get_by_role("button", name="K[3,1]").click()
    assert shown.focused() == "K[3,1]"
    assert "Z[3,1]" in shown.panel()
    shown.page.get_by_role("button", name="Close").click()
    assert shown.lit("picked") == set()


def test_screen_readers_find_grids_with_headers(shown: Shown) -> None:
    grids = shown.page.get_by_role("grid")
    assert grids.count() == 4 + 8
    weights = grids.nth(10)
    assert weights.get_by_role("columnheader").all_inner_texts() == ["1 私", "2 は", "3 猫"]
    assert weights.get_by_role("rowheader").all_inner_texts() == ["1 私", "2 は", "3 猫"]
    assert weights.get_by_role("gridcell").nth(1).inner_text() == "1"
    assert weights.evaluate("table => table.caption.textContent") == "A"


def test_hostile_words_do_nothing(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, tmp_path, showing.hostile())
    shown.cell("weights[1,1]").click()
    assert "weights[1,1]" in shown.panel()
    assert shown.page.locator("b").count() == 0
    shown.check_silence()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_and_either_theme(browser: Any, tmp_path: Path, scheme: str) -> None:
    size = {"width": 390, "height": 844}
    shown = Shown(browser, tmp_path, showing.two_heads(), viewport=size, color_scheme=scheme)
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not shown.page.locator("#panel").is_visible()
    shown.cell("weights[2;3,1]").click()
    assert shown.page.locator("#panel").is_visible()
    assert shown.cell("weights[2;3,1]").bounding_box()["y"] < shown.page.locator("#panel").bounding_box()["y"]
    ink, paper = (
        shown.page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor")
    )
    assert (sum(map(int, re.findall(r"\d+", ink))) > sum(map(int, re.findall(r"\d+", paper)))) == (scheme == "dark")
    shown.check_silence()


def brightness(shown: Shown, name: str) -> int:
    """The red, green and blue of one of the page's colours, added up."""
    return sum(map(int, re.findall(r"\d+", shown.page.evaluate(f"getComputedStyle(document.body).{name}"))))


def test_print_has_no_panel(shown: Shown) -> None:
    shown.page.emulate_media(media="print")
    assert not shown.page.locator("#panel").is_visible()
    assert shown.page.locator("table").last.is_visible()
