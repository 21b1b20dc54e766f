"""Writers of summaries: the resource that TensorFlow 2 writes event files with.

no file --CreateSummaryFileWriter--> a file --CloseSummaryWriter--> no file
           (again: nothing happens)     `--Write..., ImportEvent, FlushSummaryWriter--> the same file
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.formats.event_file import EventFile
from ....graph.ops.files.summaries import histogram_summary, scalar_summary, tensor_summary
from ...state import DEFAULT_CONTAINER, ResourceHandle, handle_array, handle_of
from ..checks import require
from ..handles import resource_of
from ..registry import Construction, Kernel, kernel
from .histogram import histogram_of

_WRITER_TYPE = "N10tensorflow22SummaryWriterInterfaceE"

WriterOf = Callable[[Array], EventFile]


@kernel("SummaryWriter")
def summary_writer(node: Construction) -> Kernel:
    """The handle of the writer of this container and name, the node's own if it has none."""
    container = node.attrs["container"].decode() or DEFAULT_CONTAINER
    name = node.attrs["shared_name"].decode() or node.name
    handle = handle_array(ResourceHandle(node.device, container, name, _WRITER_TYPE))
    return lambda: handle


@kernel("CreateSummaryFileWriter")
def create_summary_file_writer(node: Construction) -> Kernel:
    """Opens an event file for a writer that has none.

    `max_queue` and `flush_millis` bound how many events may wait, and how long; here none waits.
    """
    state = node.state

    def create(handle: Array, folder: Array, max_queue: Array, flush_millis: Array, suffix: Array) -> None:
        _single("max_queue", max_queue)
        _single("flush_millis", flush_millis)
        path, ending = _single("logdir", folder), _single("filename_suffix", suffix)
        state.resource(handle_of(handle).key, lambda: EventFile(os.fsdecode(path), os.fsdecode(ending)))

    return create


def _single(what: str, value: Array) -> Any:
    """The one element of a tensor, of any type; InvalidArgumentError if there are none or several."""
    require(np.size(value) == 1, f"{what} must be scalar, but has shape {shape_text(np.shape(value))}")
    return np.asarray(value).item()


def _writer_of(node: Construction) -> WriterOf:
    """A function from a handle to its writer; it raises NotFoundError for a writer that has no file."""
    return resource_of(node, EventFile, _WRITER_TYPE, "a summary writer")


@kernel("WriteSummary")
def write_summary(node: Construction) -> Kernel:
    """A whole tensor under a tag, with metadata for a plugin of TensorBoard."""
    writer_of, dtype = _writer_of(node), node.input_types[2]

    def write(handle: Array, step: Array, tensor: Array, tag: Array, metadata: Array) -> None:
        writer, number = writer_of(handle), _single("step", step)
        data = _single("summary_metadata", metadata) or None
        writer.add_summary(number, tensor_summary(_single("tag", tag), np.asarray(tensor), dtype, data))

    return write


@kernel("WriteScalarSummary")
def write_scalar_summary(node: Construction) -> Kernel:
    """One number, the first if there are several, under a tag."""
    writer_of = _writer_of(node)

    def write(handle: Array, step: Array, tag: Array, value: Array) -> None:
        require(np.size(value) > 0, "value must have an element")
        number = np.asarray(value).reshape(-1)[:1].astype(np.float32).tolist()
        writer_of(handle).add_summary(_single("step", step), scalar_summary([_single("tag", tag)], number))

    return write


@kernel("WriteHistogramSummary")
def write_histogram_summary(node: Construction) -> Kernel:
    """A histogram of all values under a tag."""
    writer_of = _writer_of(node)

    def write(handle: Array, step: Array, tag: Array, values: Array) -> None:
        writer, name = writer_of(handle), _single("tag", tag)
        shown = name.decode(errors="replace")
        histogram = histogram_of(np.asarray(values), shown, "Infinity in summary histogram")
        writer.add_summary(_single("step", step), histogram_summary(name, histogram))

    return write


@kernel("WriteGraphSummary")
def write_graph_summary(node: Construction) -> Kernel:
    """A serialised GraphDef."""
    writer_of = _writer_of(node)
    return lambda handle, step, graph: writer_of(handle).add_graph(_single("step", step), _single("tensor", graph))


@kernel("WriteRawProtoSummary")
def write_raw_proto_summary(node: Construction) -> Kernel:
    """The values of serialised summaries, as one event."""
    writer_of = _writer_of(node)

    def write(handle: Array, step: Array, summaries: Array) -> None:
        writer_of(handle).add_summaries(_single("step", step), np.asarray(summaries).reshape(-1).tolist())

    return write


@kernel("ImportEvent")
def import_event(node: Construction) -> Kernel:
    """A serialised event, as it is."""
    writer_of = _writer_of(node)
    return lambda handle, event: writer_of(handle).add_event(_single("event", event))


@kernel("FlushSummaryWriter")
def flush_summary_writer(node: Construction) -> Kernel:
    """Nothing: every event has been written. NotFoundError for a writer that has no file."""
    writer_of = _writer_of(node)

    def flush(handle: Array) -> None:
        writer_of(handle)

    return flush


@kernel("CloseSummaryWriter")
def close_summary_writer(node: Construction) -> Kernel:
    """Closes and forgets the file."""
    writer_of, resources = _writer_of(node), node.state.resources

    def close(handle: Array) -> None:
        writer = writer_of(handle)
        del resources[handle_of(handle).key]
        writer.close()

    return close
