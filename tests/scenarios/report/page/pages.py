"""Reads a page back out of its HTML, as the script in it does, for tests that compare it with what it was made of."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partita.devices.timing import TimelineEvent
from partita.devices.timing.saved.archive import read_archive
from partita.devices.timing.saved.coding import ColumnDocument
from partita.devices.timing.saved.columns import EventsDocument, read_events

_DATA = re.compile(r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>')


@dataclass(frozen=True)
class ReadPage:
    """The document and the arrays of a page, and its markup without the data."""

    document: dict[str, Any]  # Any: JSON
    arrays: Mapping[str, np.ndarray[Any, Any]]
    markup: str

    def run(self, number: int = 0) -> dict[str, Any]:
        """The document of a run."""
        run: dict[str, Any] = self.document["runs"][number]
        return run

    def array(self, name: str) -> list[Any]:
        """An array as a list."""
        values: list[Any] = self.arrays[name].tolist()
        return values

    def events(self, number: int = 0) -> Sequence[TimelineEvent]:
        """The events of a run."""
        run = self.run(number)
        columns = {name: ColumnDocument(**column) for name, column in run["columns"].items()}
        return tuple(read_events(EventsDocument(columns, run["texts"], run["kinds"]), self.arrays, run["events"], "it"))


def read_page(content: bytes) -> ReadPage:
    """The page of an HTML file, whose data are in one element."""
    text = content.decode("utf-8")
    (data,) = _DATA.findall(text)
    document, arrays = read_archive(base64.b64decode(data, validate=True))
    return ReadPage(document, arrays, _DATA.sub("", text))
