"""A page as one HTML file: its data packed and encoded, its script and its style in it, and nothing from elsewhere.

    document, arrays -> archive, a zip -> base64 in <script id="data">     opened by the script with DecompressionStream

The policy of the page allows its own script and style by their hashes, and nothing else: no other script, no request.
PageNames of a graph are data; none of them is markup, the title apart, which is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files
from pathlib import Path

from ....devices.timing.saved.archive import archive_bytes
from ....devices.timing.saved.whole_file import write_whole
from .page_data import Page
from .panels import panels

_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; base-uri 'none'; form-action 'none'"
)
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="partita">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript>This page draws its data with a script of its own; allow scripts to see it.</noscript>
<script type="application/octet-stream" id="data">"""
_TAIL = """</script>
<script>{script}</script>
</body>
</html>
"""


def page_bytes(page: Page) -> bytes:
    """The whole file, in UTF-8."""
    script, style = _built("page.js"), _built("page.css")
    policy = _POLICY.format(script=_hash(script), style=_hash(style))
    head = _HEAD.format(policy=policy, title=html.escape(_shown(page.title)), style=style)
    data = base64.b64encode(archive_bytes({**page.document, "panels": panels(page.document)}, page.arrays))
    return b"".join([head.encode(), data, _TAIL.format(script=script).encode()])


def write_page(page: Page, path: str | Path) -> None:
    """Writes the page to a file, whole or not at all; OSError where that cannot be."""
    write_whole(path, page_bytes(page))


def licences() -> str:
    """The licences of what the script has in it."""
    return _built("LICENCES.txt")


@cache
def _built(name: str) -> str:
    return files(__package__).joinpath("built", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a policy names a script or a style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _shown(text: str) -> str:
    """A text for the title bar; what does not print, such as marks that turn its direction, is a sign instead."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
