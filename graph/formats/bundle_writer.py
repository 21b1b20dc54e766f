"""Checkpoints, written: tensors one after the other into a data file, then the index that says where they are.

Flows in: names and arrays. Flows out: PREFIX.data-00000-of-00001 and PREFIX.index, byte for byte what TensorFlow writes
for the same tensors in the same order. Always holds: both files appear complete, the data first, or not at all; each
key is written once.

    with BundleWriter("model/ckpt") as writer:
        writer.add("w", weights)
"""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import IO, Self

import numpy as np

from ...errors import InvalidArgumentError, UnimplementedError
from ..dtypes import Array, DataType, dtype_name, from_numpy, numpy_dtype
from ..protos import BundleEntryProto, BundleHeaderProto, VersionDef
from ..tensor import shape_to_proto
from .bundle_reader import BUNDLE_VERSION, HEADER_KEY, data_file, index_file
from .bundle_strings import pack_strings
from .crc32c import crc32c, masked
from .slices import TensorSlice, encode_name, slice_key
from .sstable import TableWriter
from .storage import make_folder_of, replacing

_OPAQUE = frozenset({DataType.RESOURCE, DataType.VARIANT})


class BundleWriter:
    """A checkpoint to add tensors to; its files are there after the `with` block, unless that fails."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._entries: dict[bytes, BundleEntryProto] = {}
        self._size = 0
        self._files = ExitStack()
        self._data: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Opens the data file, in a new folder if that is missing; raises the error of the file system."""
        make_folder_of(self.prefix)
        self._data = self._files.enter_context(replacing(data_file(self.prefix, 0, 1)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._data = None
        self._files.__exit__(kind, error, trace)
        if error is None:
            write_index(self.prefix, self._entries, num_shards=1)

    def add(self, name: str, value: Array, dtype: DataType | None = None) -> None:
        """Appends a tensor; `dtype` names the element type where numpy's is ambiguous.

        Raises InvalidArgumentError for a name that is empty or taken, UnimplementedError for handles and variants.
        """
        self._append(encode_name(name), name, np.asarray(value), dtype)

    def add_slice(
        self, name: str, shape: tuple[int, ...], part: TensorSlice, value: Array, dtype: DataType | None = None
    ) -> None:
        """Appends a part of a tensor of that full shape; a part that is all of it is appended as a tensor.

        Raises as `add` does, and InvalidArgumentError where `value` is not of the part's shape, or the tensor had
        another shape or element type before.
        """
        value = np.asarray(value)
        if part.shape_in(shape) != value.shape:
            raise InvalidArgumentError(f"slice {part} of a tensor of shape {shape} cannot have shape {value.shape}")
        if value.shape == shape:
            self.add(name, value, dtype)
            return
        kind = from_numpy(value) if dtype is None else dtype
        whole = self._entries.get(encode_name(name))
        if whole is None:
            whole = BundleEntryProto(dtype=f"DT_{kind.name}", shape=shape_to_proto(shape))
        elif int(whole.dtype) != int(kind) or whole.shape != shape_to_proto(shape) or not whole.slices:
            raise InvalidArgumentError(f"the slices of {name!r} are of tensors of different shapes or element types")
        self._append(slice_key(name, part), name, value, kind)
        whole.slices.append(part.to_proto())
        self._entries[encode_name(name)] = whole

    def _append(self, key: bytes, name: str, value: Array, dtype: DataType | None) -> None:
        """Writes elements and notes where they are."""
        if not name:
            raise InvalidArgumentError("a tensor in a checkpoint needs a name; the empty one is that of the header")
        if key in self._entries:
            raise InvalidArgumentError(f"Adding duplicate key: {name}")
        kind = from_numpy(value) if dtype is None else dtype
        assert self._data is not None, "tensors are added inside the `with` block"
        size, checksum = _write(self._data, value, kind)
        self._entries[key] = BundleEntryProto(
            dtype=f"DT_{kind.name}",
            shape=shape_to_proto(value.shape),
            offset=self._size,
            size=size,
            crc32c=masked(checksum),
        )
        self._size += size


def _write(file: IO[bytes], value: Array, dtype: DataType) -> tuple[int, int]:
    """Writes the elements of a tensor: their size in bytes and checksum."""
    if dtype in _OPAQUE:
        raise UnimplementedError(f"tensors of type {dtype_name(dtype)} are not written to checkpoints")
    if dtype is DataType.STRING:
        packed, checksum = pack_strings(value.reshape(-1).tolist())
        return file.write(packed), checksum
    data = np.ascontiguousarray(value, numpy_dtype(dtype)).reshape(-1).view(np.uint8)
    return file.write(data.data), crc32c(data)


def write_index(prefix: str, entries: dict[bytes, BundleEntryProto], num_shards: int) -> None:
    """Writes the index of a checkpoint whose data files are there."""
    table = TableWriter()
    header = BundleHeaderProto(num_shards=num_shards, version=VersionDef(producer=BUNDLE_VERSION))
    table.add(HEADER_KEY, header.SerializeToString())
    for key in sorted(entries):
        table.add(key, entries[key].SerializeToString())
    with replacing(index_file(prefix)) as file:
        file.write(table.finish())
