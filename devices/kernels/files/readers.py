"""Kernels of readers: making them, reading records of the files that a queue names, and their state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType
from ....graph.ops.files.reader_state import ReaderState
from ..checks import require
from ..handles import Handle, handle_for, handle_value, resource_of
from ..queues.queue import Queue
from ..queues.queue_ops import QUEUE_TYPE
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel
from ..strings.compression import DECODERS
from .reader import Open, Reader, Reading
from .record_sources import KeyedRecord, Lengths, Pieces, Records, Single, TextLines, content_of

_READER_TYPE = "N10tensorflow15ReaderInterfaceE"
_VERSIONS = ("", "V2")


def _versions(op: str) -> list[str]:
    return [op + version for version in _VERSIONS]


def _making(node: Construction, open_file: Open, *, single: bool = False) -> Kernel:
    """The kernel that gives the handle of this node's reader, which is made on first use."""
    handle, state, kind = handle_for(node, _READER_TYPE), node.state, node.op.removesuffix("V2")
    value, name = handle_value(node, handle), node.name

    def put_out() -> Handle:
        state.resource(handle.key, lambda: Reader(kind, name, open_file, single=single))
        return value

    return put_out


@kernel(*_versions("WholeFileReader"))
def whole_file_reader(node: Construction) -> Kernel:
    """Every file is one record."""
    return _making(node, lambda name: Single(name, content_of), single=True)


@kernel(*_versions("IdentityReader"))
def identity_reader(node: Construction) -> Kernel:
    """The name of every file is one record; no file is opened."""
    return _making(node, lambda name: Single(name, bytes), single=True)


@kernel(*_versions("TextLineReader"))
def text_line_reader(node: Construction) -> Kernel:
    """Every line is a record."""
    skip = int(node.attrs["skip_header_lines"])
    require(skip >= 0, f"skip_header_lines must be >= 0 not {skip}")
    return _making(node, lambda name: TextLines(name, content_of(name), skip))


@kernel(*_versions("FixedLengthRecordReader"))
def fixed_length_record_reader(node: Construction) -> Kernel:
    """Every piece of so many bytes is a record."""
    names = ("header_bytes", "record_bytes", "footer_bytes", "hop_bytes")
    for name in names:
        require(node.attrs[name] >= 0, f"{name} must be >= 0 not {node.attrs[name]}")
    lengths = Lengths(*(int(node.attrs[name]) for name in names))
    decode = _decoder(node, "encoding")
    return _making(node, lambda name: Pieces(name, decode(content_of(name)), lengths))


@kernel(*_versions("TFRecordReader"))
def tf_record_reader(node: Construction) -> Kernel:
    """The records of TFRecord files."""
    decode = _decoder(node, "compression_type")
    return _making(node, lambda name: Records(name, decode(content_of(name))))


def _decoder(node: Construction, attr: str) -> Callable[[bytes], bytes]:
    """The function that decompresses; InvalidArgumentError for an unknown compression."""
    name = node.attrs.get(attr, b"")
    if name not in DECODERS:
        raise InvalidArgumentError(f"{attr} is {name.decode(errors='replace')!r}; there are '', 'ZLIB' and 'GZIP'")
    return DECODERS[name]


def _reader_of(node: Construction) -> Callable[[Handle], Reader]:
    return resource_of(node, Reader, _READER_TYPE, "a reader")


def _queue_of(node: Construction) -> Callable[[Handle], Queue]:
    """A function from a handle to a queue of names; InvalidArgumentError for a queue of anything else."""
    find = resource_of(node, Queue, QUEUE_TYPE, "a queue")

    def checked(handle: Handle) -> Queue:
        queue = find(handle)
        require(len(queue.form.types) == 1, "Expected single component queue")
        require(queue.form.types[0] is DataType.STRING, "Expected queue with single string component")
        return queue

    return checked


def _one(records: list[KeyedRecord]) -> tuple[Array, Array]:
    key, value = records[0]
    return np.array(key, object), np.array(value, object)


def _several(records: list[KeyedRecord]) -> tuple[Array, Array]:
    keys, values = [key for key, _ in records], [value for _, value in records]
    return np.array(keys, object), np.array(values, object)


@deferred_kernel(*_versions("ReaderRead"))
def read(node: Construction) -> Start:
    """The next record; waits for the name of a file if need be."""
    reader_of, queue_of = _reader_of(node), _queue_of(node)

    def start(call: Call, reader_handle: Handle, queue_handle: Handle) -> None:
        reader = reader_of(reader_handle)
        reader.lines.join(0, Reading(call, reader, queue_of(queue_handle), 1, _one))

    return start


@deferred_kernel(*_versions("ReaderReadUpTo"))
def read_up_to(node: Construction) -> Start:
    """Up to so many records, all of one file; waits for the name of a file if need be."""
    reader_of, queue_of = _reader_of(node), _queue_of(node)

    def start(call: Call, reader_handle: Handle, queue_handle: Handle, most: Array) -> None:
        reader = reader_of(reader_handle)
        require(np.ndim(most) == 0, f"num_records must be a scalar, not of shape {shape_text(np.shape(most))}")
        require(int(most) >= 0, f"num_records must be >= 0, not {int(most)}")
        reader.lines.join(0, Reading(call, reader, queue_of(queue_handle), int(most), _several))

    return start


@kernel(*_versions("ReaderNumRecordsProduced"))
def num_records_produced(node: Construction) -> Kernel:
    """How many records were read since the start or a reset."""
    reader_of = _reader_of(node)
    return lambda handle: np.int64(reader_of(handle).state.num_records_produced)


@kernel(*_versions("ReaderNumWorkUnitsCompleted"))
def num_work_units_completed(node: Construction) -> Kernel:
    """How many files were finished since the start or a reset."""
    reader_of = _reader_of(node)
    return lambda handle: np.int64(reader_of(handle).state.work_finished)


@kernel(*_versions("ReaderReset"))
def reset(node: Construction) -> Kernel:
    """Back to the start; what is in the queue stays there."""
    reader_of = _reader_of(node)
    return lambda handle: reader_of(handle).restore(ReaderState())


@kernel(*_versions("ReaderSerializeState"))
def serialize_state(node: Construction) -> Kernel:
    """The state; UnimplementedError for a reader whose files have several records."""
    reader_of = _reader_of(node)

    def serialise(handle: Handle) -> Array:
        reader = reader_of(handle)
        if not reader.single:
            raise UnimplementedError("Reader SerializeState")
        return np.array(reader.state.serialised(), object)

    return serialise


@kernel(*_versions("ReaderRestoreState"))
def restore_state(node: Construction) -> Kernel:
    """Continues from a state; a refused one resets the reader. UnimplementedError as for ReaderSerializeState."""
    reader_of = _reader_of(node)

    def restore(handle: Handle, state: Array) -> None:
        reader = reader_of(handle)
        if not reader.single:
            raise UnimplementedError("Reader RestoreState")
        require(np.ndim(state) == 0, f"Reader state must be scalar, but had shape: {shape_text(np.shape(state))}")
        reader.restore(ReaderState())
        reader.restore(ReaderState.parsed(np.asarray(state).item(), f"{reader.kind} '{reader.name}'"))

    return restore
