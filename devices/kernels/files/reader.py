"""Readers of queue-fed programs: each takes the name of a file from a queue, gives its records, then takes the next.

    idle --a name from the queue--> in a file --a read finds no more records--> idle
A file counts as started once it is open, and as finished when a read finds its end; a file of one record is finished
with it. Reads are served one after the other; one that needs a file waits for the queue as a dequeue does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ....errors import PartitaError
from ....graph.ops.files.reader_state import ReaderState
from ..queues.queue import Queue
from ..queues.waiting import Attempt, Lines
from .record_sources import KeyedRecord, RecordSource

if TYPE_CHECKING:
    from ..registry import Call

Open = Callable[[bytes], RecordSource]


class Reader:
    """`open_file` opens the file of a name; `single` says that every file is one record."""

    def __init__(self, kind: str, name: str, open_file: Open, *, single: bool) -> None:
        self.kind = kind
        self.name = name
        self.state = ReaderState()
        self.single = single
        self.lines = Lines(1)
        self._open = open_file
        self._source: RecordSource | None = None

    @property
    def is_idle(self) -> bool:
        """Whether the next record is in another file."""
        return self._source is None

    def begin(self, name: bytes) -> None:
        """Opens a file; raises the file system's error."""
        self.state.current_work = name
        self._source = self._open(name)
        self.state.work_started += 1

    def read(self) -> KeyedRecord | None:
        """The next record of the file; None at its end, after which the reader is idle."""
        assert self._source is not None, "a reader that is idle must begin a file first"
        record = self._source.read()
        if record is None or self.single:
            self._source = None
            self.state.work_finished += 1
        self.state.num_records_produced += record is not None
        return record

    def restore(self, state: ReaderState) -> None:
        """Continues from a state."""
        self.state = state
        is_in_a_file = state.work_started > state.work_finished
        self._source = self._open(state.current_work) if is_in_a_file else None


class Reading(Attempt):
    """Reads one record, or with `most` up to so many of one file; asks the queue for a file when the reader is idle."""

    __slots__ = ("_error", "_has_asked", "_is_asking", "most", "queue", "reader", "records", "result")

    def __init__(
        self,
        call: Call,
        reader: Reader,
        queue: Queue,
        most: int,
        result: Callable[[list[KeyedRecord]], tuple[Any, ...]],
    ) -> None:
        super().__init__(call)
        self.reader = reader
        self.queue = queue
        self.most = most
        self.result = result
        self.records: list[KeyedRecord] = []
        self._has_asked = self._is_asking = False
        self._error: PartitaError | None = None

    def advance(self) -> bool:
        """As in `Attempt`; a read ends at once unless it waits for a file, so there is nothing to undo."""
        while len(self.records) < self.most:
            if self.reader.is_idle:
                if self.records:
                    break
                if not self._has_file():
                    return False
            record = self.reader.read()
            if record is not None:
                self.records.append(record)
        self.end = partial(self.call.done, *self.result(self.records))
        return True

    def _has_file(self) -> bool:
        """Asks for a file, once; returns whether it is there already. Raises the queue's error."""
        if not self._has_asked:
            self._has_asked = self._is_asking = True
            self.reader.state.current_work = b""
            self.queue.dequeue(_ForFile(self))
            self._is_asking = False
        if self._error is not None:
            raise self._error
        return not self.reader.is_idle

    def arrived(self, name: bytes) -> None:
        """The queue gave the name of a file."""
        try:
            self._has_asked = False
            self.reader.begin(name)
        except PartitaError as error:
            self._error = error
        self._go_on()

    def refused(self, error: PartitaError) -> None:
        """The queue gave an error."""
        self._error = error
        self._go_on()

    def _go_on(self) -> None:
        if not self._is_asking:  # else `advance` is running, and looks itself
            self.reader.lines.advance()


class _ForFile:
    """The call of a read, as the queue sees it: it is done when the name of a file is there."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    @property
    def step(self) -> object:
        """That of the read."""
        return self._reading.call.step

    def done(self, *outputs: Any) -> None:
        """Passes the name on."""
        self._reading.arrived(outputs[0].item())

    def fail(self, error: PartitaError) -> None:
        """Passes the error on."""
        self._reading.refused(error)

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """As `Waiter.on_cancel`."""
        self._reading.call.on_cancel(callback)
