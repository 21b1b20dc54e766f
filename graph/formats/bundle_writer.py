"""Writes checkpoints: tensors one after the other into a data file, then the index.

    with BundleWriter("model/ckpt") as writer:
        writer.add("w", weights)

PREFIX.data-00000-of-00001 and PREFIX.index are byte for byte what TensorFlow writes for the same tensors in the same
order; over an existing checkpoint the data file has other numbers (see `bundle_update`). The old checkpoint stays until
the new one is complete.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self

import numpy as np

from ...errors import InvalidArgumentError, UnimplementedError
from ..dtypes import Array, DataType, dtype_name, from_numpy, numpy_dtype
from ..ops.files.tensor_slices import TensorSlice
from ..protos import BundleEntryProto
from ..tensor import shape_to_proto
from .bundle_index import BundleEntries
from .bundle_strings import pack_strings
from .bundle_update import BundleUpdate
from .crc32c import crc32c, masked
from .file_system import LOCAL, FileSystem
from .slice_keys import encode_name, slice_key
from .storage import NewFile

_OPAQUE = frozenset({DataType.RESOURCE, DataType.VARIANT})


class BundleWriter:
    """A checkpoint to add tensors to; it is in place after the `with` block, unless the block fails."""

    def __init__(self, prefix: str, files: FileSystem = LOCAL) -> None:
        self.prefix = prefix
        self._entries: BundleEntries = {}
        self._size = 0
        self._update = BundleUpdate(prefix, files)
        self._new_data = partial(NewFile.create, files=files)
        self._data: NewFile | None = None
        self._leave = ExitStack()

    def __enter__(self) -> Self:
        """Opens the data file, in a new folder if it is missing.

        Raises file system errors, as do `add` and the end of the block; the old checkpoint is unchanged then.
        """
        with ExitStack() as stack:
            stack.enter_context(self._update)
            (self._data,) = self._update.place([self._new_data])
            self._leave = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._data = None
        if error is not None:
            self._leave.__exit__(kind, error, trace)
        else:
            with self._leave:
                self._update.publish(self._entries)

    def add(self, name: str, value: Array, dtype: DataType | None = None) -> None:
        """Appends a tensor; `dtype` names the element type where numpy's is ambiguous.

        Raises InvalidArgumentError for an empty or repeated name, UnimplementedError for handles and variants.
        """
        self._append(encode_name(name), name, np.asarray(value), dtype)

    def add_slice(
        self, name: str, shape: tuple[int, ...], part: TensorSlice, value: Array, dtype: DataType | None = None
    ) -> None:
        """Appends a slice of a tensor of that full shape; a slice that is the whole tensor is appended as a tensor.

        Raises as `add`, and InvalidArgumentError if `value` does not have the slice's shape, or the tensor had another
        shape or element type before.
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
            # The entry of a sliced tensor has no data, but TensorFlow's merge opens the file with its number.
            whole = BundleEntryProto(
                dtype=f"DT_{kind.name}", shape=shape_to_proto(shape), shard_id=self._update.first_shard
            )
        elif int(whole.dtype) != int(kind) or whole.shape != shape_to_proto(shape) or not whole.slices:
            raise InvalidArgumentError(f"the slices of {name!r} are of tensors of different shapes or element types")
        self._append(slice_key(name, part), name, value, kind)
        whole.slices.append(part.to_proto())
        self._entries[encode_name(name)] = whole

    def _append(self, key: bytes, name: str, value: Array, dtype: DataType | None) -> None:
        """Writes the elements and adds their entry."""
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
            shard_id=self._update.first_shard,
            offset=self._size,
            size=size,
            crc32c=masked(checksum),
        )
        self._size += size


def _write(file: NewFile, value: Array, dtype: DataType) -> tuple[int, int]:
    """Writes the elements of a tensor; returns their size in bytes and their checksum."""
    if dtype in _OPAQUE:
        raise UnimplementedError(f"tensors of type {dtype_name(dtype)} are not written to checkpoints")
    if dtype is DataType.STRING:
        packed, checksum = pack_strings(value.reshape(-1).tolist())
        return file.write(packed), checksum
    data = np.ascontiguousarray(value, numpy_dtype(dtype)).reshape(-1).view(np.uint8)
    return file.write(data.data), crc32c(data)
