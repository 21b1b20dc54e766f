"""Reads tensors from the checkpoints that TensorFlow's Saver and SavedModel write.

The index is read when a reader is made, a tensor when it is asked for. Every array is checked against its checksum, so
all arrays of one reader are of one save, even if the checkpoint is saved again meanwhile. The entry of a sliced tensor
has no data of its own: it lists the slices, which have entries.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import prod
from typing import Self

import numpy as np
import numpy.typing as npt

from ...errors import DataLossError, InvalidArgumentError, OutOfRangeError, UnimplementedError
from ..dtypes import Array, DataType, dtype_name, item_size, known_dims, numpy_dtype
from ..ops.files.tensor_slices import TensorSlice, index_of, joined, slice_from_proto
from ..protos import BundleEntryProto, BundleHeaderProto
from ..tensor import shape_from_proto
from .bundle_index import BundleIndex, data_file
from .bundle_strings import unpack_strings
from .crc32c import crc32c, masked, unmasked
from .file_system import LOCAL, FileSystem
from .slice_keys import slice_key
from .storage import file_errors

_OPAQUE = frozenset({DataType.RESOURCE, DataType.VARIANT})
_KEPT_OPEN = 64  # data files that one reader keeps open; a process may open about a thousand files
_ATTEMPTS = 100  # to open files that are being replaced; after that, checksums detect a mismatch
_NAMED = 8  # how many tensors an error lists


class BundleReader:
    """A checkpoint to read tensors from, as it was when the reader was made.

    A later save of the same prefix does not affect it: the data files (the first 64) stay open until the reader is
    closed or garbage collected.

        with BundleReader("model/ckpt") as reader:
            weights = reader.read("w")
    """

    def __init__(self, prefix: str, files: FileSystem = LOCAL) -> None:
        """Reads the index and opens the data files; raises as `BundleIndex`."""
        self.prefix = prefix
        self._files = files
        self._open: dict[int, int] = {}
        self._forget = weakref.finalize(self, _close, files, self._open)
        for _ in range(_ATTEMPTS):
            _close(files, self._open)  # saved again meanwhile: the files may belong to another index
            self._index = BundleIndex(prefix, files)
            self._open_data_files()
            if self._index.is_current():
                break

    def _open_data_files(self) -> None:
        for shard in range(min(self._index.num_shards, _KEPT_OPEN)):
            with suppress(OSError):  # reported when a tensor of that file is read
                self._open[shard] = self._files.open(data_file(self.prefix, shard, self._index.num_shards))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the data files; later reads open the files that have their names then."""
        self._forget()

    @property
    def header(self) -> BundleHeaderProto:
        """The header of the index: number of data files, byte order and version."""
        return self._index.header

    def entries(self) -> Iterator[tuple[bytes, BundleEntryProto]]:
        """Key and entry of every tensor and every slice, sorted by key."""
        return self._index.entries()

    def names(self) -> list[str]:
        """Names of the tensors, sorted by their bytes."""
        return self._index.names()

    def __contains__(self, name: str) -> bool:
        return name in self._index

    def dtype(self, name: str) -> DataType:
        """Element type of a tensor; NotFoundError for an unknown name."""
        return DataType(self._index.entry(name).dtype)

    def shape(self, name: str) -> tuple[int, ...]:
        """Full shape of a tensor, sliced or not; NotFoundError for an unknown name."""
        return _shape(self._index.entry(name))

    def read(self, name: str) -> Array:
        """The value of a tensor, assembled from slices if it has them.

        Raises NotFoundError for an unknown name, InvalidArgumentError for missing slices, DataLossError for a wrong
        checksum and OutOfRangeError for a truncated data file.
        """
        entry = self._index.entry(name)
        if entry.slices:
            return self._joined(name, entry, TensorSlice((None,) * len(_shape(entry))))
        return self._stored(name, entry)

    def read_slice(self, name: str, part: TensorSlice) -> Array:
        """A part of a tensor; raises as `read`, and InternalError for a part that is not inside the tensor."""
        entry = self._index.entry(name)
        shape = _shape(entry)
        bounds = part.bounds(shape)
        if entry.slices:
            return self._joined(name, entry, part)
        if part.shape_in(shape) == shape:
            return self._stored(name, entry)
        _check_sliceable(DataType(entry.dtype))
        return self._stored(name, entry)[index_of(bounds)]

    def _joined(self, name: str, entry: BundleEntryProto, wanted: TensorSlice) -> Array:
        """A part of a sliced tensor, assembled from the slices that overlap it."""
        dtype = DataType(entry.dtype)
        _check_sliceable(dtype)
        result = joined(
            [slice_from_proto(proto) for proto in entry.slices],
            lambda part: self._stored(name, self._index.entry_of(slice_key(name, part))),
            wanted,
            _shape(entry),
            dtype,
        )
        if result is None:
            raise InvalidArgumentError(
                f"Does not have sufficient slices for partitioned tensor {name} to restore in slice_spec: {wanted}"
            )
        return result

    def _stored(self, name: str, entry: BundleEntryProto) -> Array:
        """The elements at an entry, checked against the checksum."""
        dtype, shape = DataType(entry.dtype), _shape(entry)
        if dtype in _OPAQUE:
            raise UnimplementedError(f"tensors of type {dtype_name(dtype)} are not read from checkpoints")
        try:
            return self._strings(entry, shape) if dtype is DataType.STRING else self._numbers(entry, dtype, shape)
        except DataLossError as error:
            raise DataLossError(f"{error.message}; {self._place(name, entry.shard_id)}") from error

    def _place(self, name: str, shard: int) -> str:
        """A text that names the file of a damaged tensor, and other tensors in it, which may be damaged too."""
        others = [other for other in self._index.tensors_in(shard) if other != name]
        text = f"tensor {name!r} is damaged in {data_file(self.prefix, shard, self._index.num_shards)}"
        if not others:
            return f"{text}, which holds no other tensor"
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        return f"{text}, which also holds {', '.join(map(repr, others[:_NAMED]))}{more}"

    def _numbers(self, entry: BundleEntryProto, dtype: DataType, shape: tuple[int, ...]) -> Array:
        expected = item_size(dtype) * prod(shape)
        if entry.size != expected:
            raise DataLossError(
                f"Invalid size in bundle entry: {self.prefix}; stored size {entry.size}; expected size {expected}"
            )
        array = np.empty(shape, numpy_dtype(dtype))
        data = array.reshape(-1).view(np.uint8)
        self._read_into(data, entry)
        self._check(entry, crc32c(data))
        return array

    def _strings(self, entry: BundleEntryProto, shape: tuple[int, ...]) -> Array:
        data = np.empty(entry.size, np.uint8)
        self._read_into(data, entry)
        array = np.empty(prod(shape), object)
        array[:], checksum = unpack_strings(data.tobytes(), array.size)
        self._check(entry, checksum)
        return array.reshape(shape)

    def _read_into(self, data: npt.NDArray[np.uint8], entry: BundleEntryProto) -> None:
        path = data_file(self.prefix, entry.shard_id, self._index.num_shards)
        with file_errors(path), self._data_file(entry.shard_id, path) as file:
            size = 0
            while count := self._files.read(file, data.data[size:], entry.offset + size):
                size += count
        if size != entry.size:
            raise OutOfRangeError("Read less bytes than requested")

    @contextmanager
    def _data_file(self, shard: int, path: str) -> Iterator[int]:
        """An open data file: the one that is kept open, unless the checkpoint was removed rather than saved again."""
        kept = self._open.get(shard)
        if kept is not None and (self._files.stat(kept).st_nlink or not self._index.is_current()):
            yield kept
            return
        file = self._files.open(path)
        try:
            yield file
        finally:
            self._files.close(file)

    def _check(self, entry: BundleEntryProto, checksum: int) -> None:
        if masked(checksum) != entry.crc32c:
            raise DataLossError(
                f"TensorBundle at {self.prefix} shard {entry.shard_id} ({entry.size} bytes): Checksum does not match: "
                f"stored {unmasked(entry.crc32c)} vs. calculated on the restored bytes {checksum}"
            )


def _check_sliceable(dtype: DataType) -> None:
    if dtype is DataType.STRING:
        raise InvalidArgumentError(f"Dtype {dtype_name(dtype)} not supported.")


def _shape(entry: BundleEntryProto) -> tuple[int, ...]:
    shape = shape_from_proto(entry.shape)
    known = known_dims(shape)
    if known is None:
        raise DataLossError(f"a checkpoint entry has the shape {shape}, which is not fully known")
    return known


def _close(files: FileSystem, handles: dict[int, int]) -> None:
    while handles:
        files.close(handles.popitem()[1])
