"""Writers of summaries add events to one file, from its creation until it is closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.devices.state import DeviceState
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph.dtypes import Array
from partita.graph.ops.files.summaries import scalar_summary
from partita.graph.protos import Event
from tests.devices.kernels.harness import run
from tests.graph.formats.test_event_file import events

STEP = np.int64(4)


def text(data: str | bytes) -> Array:
    return np.array(data.encode() if isinstance(data, str) else data, object)


class Writer:
    """A writer on a device of its own."""

    def __init__(self) -> None:
        self.state = DeviceState()
        self.handle = run("SummaryWriter", state=self.state, shared_name="w")

    def do(self, op: str, *inputs: Any) -> None:
        run(op, self.handle, *inputs, state=self.state)

    def create(self, folder: Path) -> None:
        self.do("CreateSummaryFileWriter", text(str(folder)), np.int32(10), np.int32(1000), text(".v2"))


def test_every_kind_of_event(tmp_path: Path) -> None:
    writer = Writer()
    writer.create(tmp_path)
    writer.create(tmp_path)
    writer.do("WriteScalarSummary", STEP, text("s"), np.float64(7.5))
    writer.do("WriteSummary", STEP, np.array([1, 2], np.float32), text("t"), text(b"\n\x03\n\x01p"))
    writer.do("WriteSummary", STEP, np.float32(1), text("u"), text(b""))
    writer.do("WriteHistogramSummary", STEP, text("h"), np.array([True, False]))
    writer.do("WriteRawProtoSummary", STEP, np.array([scalar_summary([b"q"], [2])], object))
    writer.do("WriteGraphSummary", STEP, text(b""))
    writer.do("ImportEvent", text(Event(wall_time=1, step=9).SerializeToString()))
    writer.do("FlushSummaryWriter")
    (path,) = tmp_path.iterdir()
    _, scalar, tensor, plain, histogram, raw, graph, imported = events(path)
    assert scalar.summary.value[0].simple_value == 7.5
    assert tensor.summary.value[0].metadata.plugin_data.plugin_name == "p"
    assert not plain.summary.value[0].HasField("metadata")
    assert histogram.summary.value[0].histo.num == 2
    assert raw.summary.value[0].tag == "q"
    assert graph.WhichOneof("what") == "graph_def"
    assert {event.step for event in (scalar, tensor, plain, histogram, raw, graph)} == {4}
    assert (imported.wall_time, imported.step) == (1, 9)


def test_a_writer_without_a_file(tmp_path: Path) -> None:
    """Before it is made, and after it was closed; a new file can be made then."""
    writer = Writer()
    with pytest.raises(NotFoundError, match="localhost/w"):
        writer.do("FlushSummaryWriter")
    writer.create(tmp_path)
    writer.do("CloseSummaryWriter")
    for op in ("CloseSummaryWriter", "FlushSummaryWriter"):
        with pytest.raises(NotFoundError, match="localhost/w/N10tensorflow22SummaryWriterInterfaceE does not exist"):
            writer.do(op)
    writer.create(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_refused_events_leave_no_trace(tmp_path: Path) -> None:
    """TensorFlow 2.21 has these words for histograms; it is killed by a step that is no scalar."""
    writer = Writer()
    writer.create(tmp_path)
    with pytest.raises(InvalidArgumentError, match="Nan in summary histogram for: h"):
        writer.do("WriteHistogramSummary", STEP, text("h"), np.array([np.nan]))
    with pytest.raises(InvalidArgumentError, match="Infinity in summary histogram for: h"):
        writer.do("WriteHistogramSummary", STEP, text("h"), np.array([np.inf]))
    with pytest.raises(InvalidArgumentError, match=r"step must be scalar, but has shape \[2\]"):
        writer.do("WriteScalarSummary", np.array([1, 2]), text("s"), np.float32(1))
    (path,) = tmp_path.iterdir()
    assert len(events(path)) == 1
