"""Reads a page as people do: a panel by its heading, a table by its name, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

_CELLS = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"


def panel(page: Page, heading: str) -> Locator:
    """The section with that heading."""
    return page.get_by_role("region", name=heading, exact=True).and_(page.locator("section"))


def table(page: Page, name: str) -> Locator:
    """What scrolls around the table of that name."""
    return page.get_by_role("region", name=name, exact=True).and_(page.locator("div"))


def rows(page: Page, name: str) -> list[list[str]]:
    """The texts of all rows of a table, those included that are shown only on demand."""
    more = page.get_by_role("button", name=f"Show more rows: {name}", exact=True)
    while more.is_visible():
        more.click()
    return [[str(cell) for cell in row] for row in table(page, name).locator("tbody tr").evaluate_all(_CELLS)]


def column(page: Page, name: str, number: int) -> list[str]:
    """One column of a table."""
    return [row[number] for row in rows(page, name)]


def tiles(page: Page, heading: str) -> dict[str, str]:
    """The figures at the top of a panel by their labels."""
    found = panel(page, heading).locator(".tile")
    return {tile.locator("dt").inner_text(): tile.locator("dd").first.inner_text() for tile in found.all()}


def unfold(page: Page) -> None:
    """Opens all that is folded."""
    folded = page.locator("details:not([open]) > summary")
    while folded.count():
        folded.first.click()
