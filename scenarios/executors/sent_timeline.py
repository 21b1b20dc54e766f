"""A timeline on its way from the process that simulated it: as the bytes of a `.timeline` file, which keep everything.

In the process that made it, it is the timeline itself.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Self

from ...devices.timing import Timeline
from ...devices.timing.timeline_file import SUFFIX, read_timeline, timeline_bytes


class SentTimeline:
    """A timeline that can be pickled."""

    def __init__(self, timeline: Timeline | None, content: bytes = b"") -> None:
        self._timeline = timeline
        self._content = content

    @classmethod
    def of(cls, timeline: Timeline) -> Self:
        """Nothing is written before it is pickled."""
        return cls(timeline)

    def __getstate__(self) -> bytes:
        return self._content if self._timeline is None else timeline_bytes(self._timeline)

    def __setstate__(self, content: bytes) -> None:
        self._timeline, self._content = None, content

    def received(self) -> Timeline:
        """The timeline, equal in every answer to the one that was sent."""
        if self._timeline is None:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"sent{SUFFIX}"
                path.write_bytes(self._content)
                self._timeline = read_timeline(path)
        return self._timeline
