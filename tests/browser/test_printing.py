"""Pages on paper: light, whatever the screen is, and without the controls."""

from __future__ import annotations

import pytest

from tests.browser.reports import KINDS, Reports
from tests.browser.visits import Visits

# Told last of all that follow the event, so that what the page does about it is done.
NOTE = """() => addEventListener("beforeprint", () => {
  const seen = [document.documentElement, document.body].map((part) => getComputedStyle(part).backgroundColor);
  document.body.dataset.printed = seen.join("; ");
})"""
LIGHT = {"rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_prints(visits: Visits, reports: Reports, kind: str) -> None:
    """To a PDF with its figures, also from a dark screen."""
    page = visits.open(reports.named(kind), scheme="dark")
    page.evaluate(NOTE)
    assert page.pdf(print_background=True).startswith(b"%PDF")
    printed = page.locator("body[data-printed]").get_attribute("data-printed")
    assert printed is not None
    assert set(printed.split("; ")) <= LIGHT
