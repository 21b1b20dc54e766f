"""An installed Chromium without a window, driven by Playwright; `missing` says why there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# There is no display; the others keep the browser off the network. None changes how a page is drawn.
_FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def path() -> str | None:
    """Where the browser is."""
    return next((found for name in _NAMES if (found := shutil.which(name)) is not None), None)


def missing() -> str:
    """Why no page can be opened here; "" where one can."""
    if find_spec("playwright") is None:
        return "playwright is not installed (pip install '.[browser]')"
    return "" if path() else "no Chromium on PATH (apt-get install chromium)"


@contextmanager
def launched() -> Iterator[Browser]:
    """The browser, until the end of the block."""
    from playwright.sync_api import sync_playwright

    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path(), args=[*_FLAGS, *sandbox])
        try:
            yield browser
        finally:
            browser.close()
