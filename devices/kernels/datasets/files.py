"""Datasets of the lines or records of files, and a file of the records of a dataset.

A file that is read is opened when its first element is pulled.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ....errors import InvalidArgumentError, NotFoundError, PermissionDeniedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name
from ....graph.formats.record_file import framed, record_at
from ....graph.formats.storage import file_errors
from ..checks import require, text_of
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel
from ..strings.compression import GZIP, ZLIB, inflated
from .dataset import UNKNOWN, Dataset, Element, ElementSpec, PullSteps, Source, carrying_dataset, dataset_of
from .pulling import compute
from .transformation import count_of

_FORM = ElementSpec((DataType.STRING,), ((),))
_WINDOW_BITS = {b"ZLIB": ZLIB, b"GZIP": GZIP}
_FORMATS = (b"", *_WINDOW_BITS)

Read = Callable[[int, memoryview, str], Iterator[bytes]]
"""takes the number of a file, its content and its name, and gives its records"""


class _RecordsIterator(Source):
    """The records of one file after the other; a file with an error is left at once."""

    __slots__ = ("_dataset", "_number", "_records")

    def __init__(self, dataset: _Records) -> None:
        self._dataset = dataset
        self._number = 0
        self._records: Iterator[bytes] | None = None

    def take(self) -> Element | None:
        """As `Source.take`."""
        files = self._dataset.files
        while self._number < len(files):
            try:
                if self._records is None:
                    name = files[self._number]
                    content = content_of(name, self._dataset.compression)
                    self._records = self._dataset.read(self._number, content, name.decode())
                record = next(self._records, None)
            except Exception:
                self._number, self._records = self._number + 1, None
                raise
            if record is not None:
                return (np.array(record, object),)
            self._number, self._records = self._number + 1, None
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _Records(Dataset):
    files: Sequence[bytes]
    compression: bytes
    read: Read

    def iterator(self) -> _RecordsIterator:
        return _RecordsIterator(self)

    def cardinality(self) -> int:
        return UNKNOWN


def content_of(name: bytes, compression: bytes) -> memoryview:
    """The uncompressed content of a file."""
    path = Path(os.fsdecode(name))
    require("\0" not in str(path), f"the name {str(path)!r} of a file holds a null byte")
    try:
        with path.open("rb") as file:
            if not compression and path.stat().st_size:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            content = file.read()
    except FileNotFoundError:
        raise NotFoundError(f"{path}; No such file or directory") from None
    except PermissionError:
        raise PermissionDeniedError(f"{path}; Permission denied") from None
    except IsADirectoryError:
        raise InvalidArgumentError(f"{path}; Is a directory") from None
    return memoryview(inflated(content, _WINDOW_BITS[compression])[0] if compression else content)


def file_names(files: Array) -> list[bytes]:
    """The names in a scalar or a vector."""
    require(files.ndim <= 1, "`filenames` must be a scalar or a vector.")
    return files.reshape(-1).tolist()


def format_of(compression: Array) -> bytes:
    """The name of a compression; InvalidArgumentError if there is none of that name."""
    name = text_of(compression, "compression_type")
    require(name in _FORMATS, "Unsupported compression_type.")
    return name


def _format_of_records(compression: Array) -> bytes:
    """As `format_of`; what TensorFlow's reader of records does not know it takes for no compression."""
    name = text_of(compression, "compression_type")
    return name if name in _FORMATS else b""


def _lines(_number: int, content: memoryview, _name: str) -> Iterator[bytes]:
    """The lines without their ends; TensorFlow drops every carriage return."""
    text = bytes(content)
    start = 0
    while start < len(text):
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end].replace(b"\r", b"")
        start = end + 1


@kernel("TextLineDataset")
def text_line_dataset(node: Construction) -> Kernel:
    """The lines of files."""

    def make(files: Array, compression: Array, buffer_size: Array) -> Array:
        require(count_of(buffer_size) >= 0, "`buffer_size` must be >= 0 (0 == default)")
        return carrying_dataset(_Records(_FORM, file_names(files), format_of(compression), _lines))

    return make


def _records_from(offsets: Sequence[int]) -> Read:
    def read(number: int, content: memoryview, _name: str) -> Iterator[bytes]:
        position = offsets[number] if offsets else 0
        while (found := record_at(content, position)) is not None:
            record, position = found
            yield record

    return read


@kernel("TFRecordDataset", "TFRecordDatasetV2")
def tf_record_dataset(node: Construction) -> Kernel:
    """The records of TFRecord files, in the second version each from a given place on."""

    def make(files: Array, compression: Array, buffer_size: Array, *offsets: Array) -> Array:
        require(count_of(buffer_size) >= -1, "`buffer_size` must be >= 0 (0 == no buffering)")
        names, starts = file_names(files), [start for array in offsets for start in array.reshape(-1).tolist()]
        require(not starts or len(starts) == len(names), "`byte_offsets` must be of same size as `filenames`")
        return carrying_dataset(_Records(_FORM, names, _format_of_records(compression), _records_from(starts)))

    return make


def _of_length(header: int, record: int, footer: int) -> Read:
    def read(_number: int, content: memoryview, name: str) -> Iterator[bytes]:
        body = len(content) - header - footer
        require(
            body % record == 0,
            f'Excluding the header ({header} bytes) and footer ({footer} bytes), input file "{name}" has body length '
            f"{body} bytes, which is not an exact multiple of the record length ({record} bytes).",
        )
        for start in range(header, header + body, record):
            yield bytes(content[start : start + record])

    return read


@kernel("FixedLengthRecordDataset", "FixedLengthRecordDatasetV2")
def fixed_length_record_dataset(node: Construction) -> Kernel:
    """The records of files, which all have one length."""

    def make(
        files: Array, header: Array, record: Array, footer: Array, buffer_size: Array, *compression: Array
    ) -> Array:
        require(count_of(header) >= 0, "`header_bytes` must be >= 0")
        require(count_of(record) > 0, "`record_bytes` must be > 0")
        require(count_of(footer) >= 0, "`footer_bytes` must be >= 0")
        require(count_of(buffer_size) >= 0, "`buffer_size` must be >= 0")
        read = _of_length(count_of(header), count_of(record), count_of(footer))
        format_name = format_of(compression[0]) if compression else b""
        return carrying_dataset(_Records(_FORM, file_names(files), format_name, read))

    return make


@deferred_kernel("DatasetToTFRecord", "ExperimentalDatasetToTFRecord")
def dataset_to_records(node: Construction) -> Start:
    """Writes the strings of a dataset as the records of one file; it is there once all of them are known."""

    def start(call: Call, variant: Array, file: Array, compression: Array) -> None:
        dataset = dataset_of(variant)
        columns = len(dataset.form.types)
        require(columns == 1, f"ToTFRecordOp currently only support datasets of 1 single column, but got {columns}")
        kind = dataset.form.types[0]
        require(
            kind == DataType.STRING,
            f"ToTFRecordOp currently only supports DT_STRING dataypes, but got {dtype_name(kind)}",
        )
        path = os.fsdecode(text_of(file, "filename"))
        compute(call, _written(dataset, path, text_of(compression, "compression_type")), lambda _: call.done(), node.op)

    return start


def _written(dataset: Dataset, path: str, compression: bytes) -> PullSteps[None]:
    """Of an unknown compression, as in TensorFlow, the records are not compressed."""
    iterator, content = dataset.iterator(), bytearray()
    bits = _WINDOW_BITS.get(compression)
    packer = None if bits is None else zlib.compressobj(wbits=bits)
    while (element := (yield from iterator.next())) is not None:
        record = np.asarray(element[0])
        require(record.ndim == 0, f"a record of a file is one string, not a tensor of shape {shape_text(record.shape)}")
        framed_record = framed(record.item())
        content += framed_record if packer is None else packer.compress(framed_record)
        yield None
    content += b"" if packer is None else packer.flush()
    with file_errors(path):
        Path(path).write_bytes(content)
