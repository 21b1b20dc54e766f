"""Report pages in headless Chromium: the browser, and visits that fail a test when anything goes wrong in a page.

Without Playwright, or without a browser on PATH, these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from benchmarks import chromium
from tests.browser.reports import Reports
from tests.browser.visits import Visits

if TYPE_CHECKING:
    from playwright.sync_api import Browser


# For one file of tests: as long as Playwright runs, its asyncio loop counts as running in this thread, where tests of
# asyncio sessions could not start theirs.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The installed Chromium, without a window."""
    if missing := chromium.missing():
        pytest.skip(missing)
    with chromium.launched() as launched:
        yield launched


@pytest.fixture
def visits(browser: Browser) -> Iterator[Visits]:
    """Opens pages; at the end of the test nothing may have gone wrong in any of them."""
    made = Visits(browser)
    yield made
    made.close()
    assert made.problems == []


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """The pages of the command line."""
    return Reports(tmp_path_factory.mktemp("reports"))
