"""Event files, which TensorBoard reads: summaries and graphs of a run, each with its step and the time in seconds.

    EventFile("runs/1", ".v2") -> runs/1/events.out.tfevents.1700000000.host.4242.0.v2
        brain.Event:2 | event | event ...

Every event is written at once, so none is lost when a program is killed and no reader waits for one.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import TypeVar
from weakref import finalize

from google.protobuf.message import DecodeError, Message

from ...errors import DataLossError
from ..protos import Event, GraphDef, RunMetadata, SourceMetadata, Summary, TaggedRunMetadata
from .record_file import framed
from .storage import file_errors

Parsed = TypeVar("Parsed", bound=Message)
_VERSION, _SOURCE = "brain.Event:2", SourceMetadata(writer="tensorflow.core.util.events_writer")


class EventFile:
    """A new event file in a folder, which is made if need be; raises the file system's error.

    It is closed by `close`, or at the latest when it is garbage.
    """

    def __init__(self, folder: str, suffix: str = "") -> None:
        self._file = _created(folder, suffix)
        self.path = str(self._file.name)
        self._finish = finalize(self, self._file.close)
        self._add(Event(wall_time=float(int(time.time())), file_version=_VERSION, source_metadata=_SOURCE))

    def add_summary(self, step: int, summary: bytes) -> None:
        """Adds a serialised Summary."""
        self._add(Event(wall_time=time.time(), step=step, summary=Summary.FromString(summary)))

    def add_summaries(self, step: int, summaries: Sequence[bytes]) -> None:
        """Adds the values of several serialised summaries as one event; DataLossError for a damaged one."""
        merged = Summary()
        for index, data in enumerate(summaries):
            merged.MergeFrom(_parsed(Summary, data, "tf.compat.v1.Summary", f" at index {index}"))
        self._add(Event(wall_time=time.time(), step=step, summary=merged))

    def add_graph(self, step: int, graph: bytes) -> None:
        """Adds a serialised GraphDef; DataLossError for a damaged one."""
        _parsed(GraphDef, graph, "tf.GraphDef")
        self._add(Event(wall_time=time.time(), step=step, graph_def=graph))

    def add_run_metadata(self, step: int, tag: str, metadata: bytes) -> None:
        """Adds a serialised RunMetadata under a tag; DataLossError for a damaged one."""
        _parsed(RunMetadata, metadata, "tf.RunMetadata")
        tagged = TaggedRunMetadata(tag=tag, run_metadata=metadata)
        self._add(Event(wall_time=time.time(), step=step, tagged_run_metadata=tagged))

    def add_event(self, event: bytes) -> None:
        """Adds a serialised Event, with its own time and step; DataLossError for a damaged one."""
        self._add(_parsed(Event, event, "tf.Event"))

    def _add(self, event: Event) -> None:
        data = memoryview(framed(event.SerializeToString()))
        with file_errors(self.path):
            while data:
                data = data[self._file.write(data) :]

    def close(self) -> None:
        """Closes the file, to which nothing can be added any more."""
        self._finish()


def _parsed(kind: type[Parsed], data: bytes, what: str, where: str = "") -> Parsed:
    try:
        return kind.FromString(data)
    except DecodeError:
        raise DataLossError(f"Bad {what} binary proto tensor string{where}") from None


def _created(folder: str, ending: str) -> FileIO:
    """A new file whose name has the time, the host and the process, and a number that makes it unique."""
    with file_errors(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
    begin = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
    number = 0
    while True:
        path = Path(folder, f"{begin}.{number}{ending}")
        with file_errors(path), suppress(FileExistsError):
            return FileIO(str(path), "xb")
        number += 1
