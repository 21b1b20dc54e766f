"""axe-core finds nothing: contrast, names of controls, headings, what the keyboard reaches; in both themes and widths.

The width of the page is that of its window: what is wider scrolls in a box of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from tests.browser.reading import unfold
from tests.browser.reports import KINDS, Reports
from tests.browser.visits import Visits

if TYPE_CHECKING:
    from playwright.sync_api import Page

Scheme = Literal["light", "dark"]


def findings(page: Page) -> list[str]:
    """What axe-core finds, each with the elements that it is about."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    violations = axe.Axe().run(page).response["violations"]
    return [f"{found['id']}: {[node['html'][:150] for node in found['nodes']][:4]}" for found in violations]


def sideways(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    return int(page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visits: Visits, reports: Reports, kind: str, width: int, scheme: Scheme) -> None:
    """In each kind of page as it opens; nor is the page wider than its window."""
    page = visits.open(reports.named(kind), width=width, scheme=scheme)
    assert findings(page) == []
    assert sideways(page) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_what_opens_later(visits: Visits, reports: Reports, scheme: Scheme) -> None:
    """With an event selected and all folded parts open."""
    page = visits.open(reports.step, "#node=layer2/product", scheme=scheme)
    page.get_by_text("layer2/product").first.wait_for()
    unfold(page)
    assert findings(page) == []
    assert sideways(page) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_keyboard_reaches_every_control(visits: Visits, reports: Reports, kind: str) -> None:
    """Tab walks through all that can be pressed or typed into, shows where it is, and comes out at the end."""
    page = visits.open(reports.named(kind))
    wanted = page.evaluate(
        "() => [...document.querySelectorAll('button, a[href], input, select, summary, canvas[tabindex]')]"
        ".filter((control) => control.checkVisibility() && !control.disabled).length"
    )
    reached = set()
    for _ in range(wanted + 20):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "() => [...document.querySelectorAll('button, a[href], input, select, summary, canvas[tabindex]')]"
                ".filter((control) => control.checkVisibility() && !control.disabled).indexOf(document.activeElement)"
            )
        )
    assert reached >= set(range(wanted))
