"""A visit notices what a page must not do: each of these pages does one such thing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.visits import Visits

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SAID = '<html class="page" data-ready lang="en"><title>a page</title>{}</html>'


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<img src='https://example.org/a.png' alt=''>", "request https://example.org/a.png"),
        ("<link rel='stylesheet' href='beside.css'>", "beside.css"),
        ("<script>fetch('https://example.org/b')</script>", "request https://example.org/b"),
        ("<script>undefined.missing</script>", "error of a script: Cannot read properties of undefined"),
        ("<script>Promise.reject(new Error('late'))</script>", "error of a script: late"),
        ("<script>console.error('said')</script>", "console error: said"),
        ("<script>console.warn('said')</script>", "console warning: said"),
    ],
)
def test_what_must_not_happen_is_noticed(browser: Browser, tmp_path: Path, body: str, problem: str) -> None:
    """Requests, even to files beside the page, errors, and messages in the console."""
    (tmp_path / "page.html").write_text(SAID.format(body))
    visits = Visits(browser)
    page = visits.open(tmp_path / "page.html")
    page.locator("html").click()
    visits.close()
    assert any(problem in noticed for noticed in visits.problems), visits.problems


def test_a_quiet_page_has_no_problems(visits: Visits, tmp_path: Path) -> None:
    """Its own file is no problem, nor is a place in it; it opens in the width and colours that were asked for."""
    style = "<style>@media (prefers-color-scheme: dark) { p { width: 7px } }</style><p>dark</p><h2 id='x'>there</h2>"
    (tmp_path / "page.html").write_text(SAID.format(style))
    page = visits.open(tmp_path / "page.html", "#x", width=400, scheme="dark")
    box = page.locator("p").bounding_box()
    assert box is not None
    assert box["width"] == 7
    assert page.viewport_size == {"width": 400, "height": 900}
