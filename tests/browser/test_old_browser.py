"""What a page says where it cannot draw: in a browser without DecompressionStream, or with data that were cut off.

The console has the error too, with the place in the script.
"""

from __future__ import annotations

from pathlib import Path

from tests.browser.reports import Reports
from tests.browser.visits import Visits

ALERT = "[role=alert]"


def test_a_browser_that_cannot_inflate_is_told_so(visits: Visits, reports: Reports) -> None:
    """The page names what is missing, and which browsers have it."""
    page = visits.open(reports.step, first="delete globalThis.DecompressionStream", until=ALERT)
    said = page.locator(ALERT).inner_text()
    assert "DecompressionStream" in said
    assert "Firefox" in said
    assert "DecompressionStream" in visits.problems.pop()


def test_a_page_that_was_cut_off_says_so(visits: Visits, reports: Reports, tmp_path: Path) -> None:
    """Half of the data is no archive, and the rest of the page is there."""
    whole = reports.step.read_text("utf-8")
    start = whole.index('id="data">') + len('id="data">')
    end = whole.index("</script>", start)
    half = start + (end - start) // 8 * 4  # whole groups of base64
    (tmp_path / "half.html").write_text(whole[:half] + whole[end:], "utf-8")
    page = visits.open(tmp_path / "half.html", until=ALERT)
    assert "data of this page" in page.locator(ALERT).inner_text()
    assert "data of this page" in visits.problems.pop()
