"""Opens files in a browser as a reader does, and notes what must not happen there.

    visits = Visits(browser)
    page = visits.open(Path("step.html"), width=400, scheme="dark")
    page.get_by_role("button", name="Zoom in").click()
    visits.close()       # every window of it
    visits.problems      # ["request https://example.org/q.png", "console error: ..."]

Each visit has a window with no history, no cache and no network. Problems are errors and warnings in the console,
errors of scripts, and requests for anything but the file that was opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

PATIENCE_MS = 60_000
"""after which an element that does not come is given up: long, as other work may keep the machine busy"""
DRAWN = ".page[data-ready]"


class Visits:
    """Windows of one browser, and the problems in all of them."""

    def __init__(self, browser: Browser) -> None:
        self.problems: list[str] = []
        self._browser = browser
        self._windows: list[BrowserContext] = []

    def open(
        self,
        file: Path,
        fragment: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        scheme: Literal["light", "dark"] = "light",
        first: str = "",
        until: str = DRAWN,
    ) -> Page:
        """A page of the file, once the element `until` is there; the script `first` runs before those of the page."""
        window = self._browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, offline=True, reduced_motion="reduce"
        )
        self._windows.append(window)
        window.set_default_timeout(PATIENCE_MS)
        if first:
            window.add_init_script(first)
        page = window.new_page()
        address = file.absolute().as_uri()
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self.problems.append(f"error of a script: {error}"))
        page.on("request", lambda request: self._note_request(request, address))
        page.goto(address + fragment)
        page.locator(until).first.wait_for(state="attached")
        return page

    def close(self) -> None:
        """Closes all windows."""
        for window in self._windows:
            window.close()
        self._windows.clear()

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.problems.append(f"console {message.type}: {message.text}")

    def _note_request(self, request: Request, address: str) -> None:
        if request.url.partition("#")[0] != address:
            self.problems.append(f"request {request.url[:200]}")
