"""Checkpoints, read: one index and the data files beside it, as TensorFlow's Saver and SavedModel write them.

Flows in: a prefix ("model/variables/variables") and names of tensors. Flows out: arrays. Always holds: the index is
read when a reader is made, a tensor when it is asked for; no array leaves before its checksum was right.

    PREFIX.index                   a table: "" -> header, name of a tensor -> entry, key of a slice -> entry
    PREFIX.data-00000-of-00002     the elements of tensors one after the other; an entry says where

The entry of a tensor that was saved in parts has no place of its own: it lists the slices, which have entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError, Message

from ...errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    UnimplementedError,
)
from ..dtypes import Array, DataType, dtype_name, item_size, numpy_dtype
from ..protos import BundleEntryProto, BundleHeaderProto
from ..tensor import shape_from_proto
from .bundle_strings import unpack_strings
from .crc32c import crc32c, masked, unmasked
from .slices import TensorSlice, decode_name, encode_name, slice_from_proto, slice_key
from .sstable import Table
from .storage import file_errors, read_file

HEADER_KEY = b""
SLICE_MARK = b"\0"  # what the keys of slices begin with
BUNDLE_VERSION = 1
_OPAQUE = frozenset({DataType.RESOURCE, DataType.VARIANT})

Bounds = tuple[tuple[int, int], ...]
Parsed = TypeVar("Parsed", bound=Message)


def index_file(prefix: str) -> str:
    """Path of a checkpoint's index."""
    return f"{prefix}.index"


def data_file(prefix: str, shard: int, num_shards: int) -> str:
    """Path of a checkpoint's data file number `shard`."""
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


class BundleReader:
    """A checkpoint to read tensors from."""

    def __init__(self, prefix: str) -> None:
        """Reads the index.

        Raises NotFoundError where there is none, DataLossError for a damaged one, UnimplementedError for a checkpoint
        of a machine with another byte order and InvalidArgumentError for one of a newer version.
        """
        self.prefix = prefix
        if not Path(index_file(prefix)).exists():
            raise NotFoundError(
                f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {prefix}"
            )
        self._table = Table(read_file(index_file(prefix)))
        self.header = self._read_header()

    def _read_header(self) -> BundleHeaderProto:
        subject = f"Unable to read file ({index_file(self.prefix)}). Perhaps the file is corrupt"
        try:
            stored = self._table.get(HEADER_KEY)
        except DataLossError as error:
            raise DataLossError(
                f"{subject} or was produced by a newer version of TensorFlow with format changes "
                f"(failed to seek to header entry): {error.message}"
            ) from error
        if stored is None:
            raise DataLossError(f"{subject} (it has no header)")
        header = _parsed(BundleHeaderProto(), stored)
        if header.endianness != BundleHeaderProto.LITTLE:
            raise UnimplementedError(f"checkpoint {self.prefix!r} was written on a big-endian machine")
        if header.version.min_consumer > BUNDLE_VERSION:
            raise InvalidArgumentError(
                f"checkpoint {self.prefix!r} wants a reader of version {header.version.min_consumer}, "
                f"this one is of version {BUNDLE_VERSION}"
            )
        return header

    def entries(self) -> Iterator[tuple[bytes, BundleEntryProto]]:
        """Key and entry of every tensor and every slice, in the order of the keys."""
        for key, value in self._table.items():
            if key != HEADER_KEY:
                yield key, _parsed(BundleEntryProto(), value)

    def names(self) -> list[str]:
        """Names of the tensors, sorted by their bytes."""
        return [decode_name(key) for key, _ in self._table.items() if key and not key.startswith(SLICE_MARK)]

    def __contains__(self, name: str) -> bool:
        return bool(name) and self._table.get(encode_name(name)) is not None

    def dtype(self, name: str) -> DataType:
        """Element type of a tensor; NotFoundError where there is none."""
        return DataType(self._entry(encode_name(name)).dtype)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor, whole where it was saved in parts; NotFoundError where there is none."""
        return _shape(self._entry(encode_name(name)))

    def read(self, name: str) -> Array:
        """The value of a tensor, put together where it was saved in parts.

        Raises NotFoundError for a missing tensor, InvalidArgumentError for missing parts, DataLossError for a wrong
        checksum and OutOfRangeError for a data file that ends too early.
        """
        entry = self._entry(encode_name(name))
        if entry.slices:
            return self._joined(name, entry, TensorSlice((None,) * len(_shape(entry))))
        return self._stored(entry)

    def read_slice(self, name: str, part: TensorSlice) -> Array:
        """A part of a tensor; raises as `read` does, and InternalError for a part that is not inside the tensor."""
        entry = self._entry(encode_name(name))
        shape = _shape(entry)
        bounds = part.bounds(shape)
        if entry.slices:
            return self._joined(name, entry, part)
        if part.shape_in(shape) == shape:
            return self._stored(entry)
        _check_sliceable(DataType(entry.dtype))
        return self._stored(entry)[_index(bounds)]

    def _entry(self, key: bytes) -> BundleEntryProto:
        stored = self._table.get(key) if key else None
        if stored is None:
            raise NotFoundError(f"Key {decode_name(key)} not found in checkpoint")
        return _parsed(BundleEntryProto(), stored)

    def _joined(self, name: str, entry: BundleEntryProto, wanted: TensorSlice) -> Array:
        """The wanted part of a tensor, from the slices that hold it."""
        dtype, shape = DataType(entry.dtype), _shape(entry)
        _check_sliceable(dtype)
        parts = [slice_from_proto(proto) for proto in entry.slices]
        _check_apart(parts, shape)
        bounds = wanted.bounds(shape)
        result = np.empty([end - start for start, end in bounds], numpy_dtype(dtype))
        missing = result.size
        for part in parts:
            held = part.bounds(shape)
            common = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(bounds, held, strict=True))
            if all(start < end for start, end in common):
                value = self._stored(self._entry(slice_key(name, part)))
                result[_index(common, bounds)] = value[_index(common, held)]
                missing -= prod(end - start for start, end in common)
        if missing:
            raise InvalidArgumentError(
                f"Does not have sufficient slices for partitioned tensor {name} to restore in slice_spec: {wanted}"
            )
        return result

    def _stored(self, entry: BundleEntryProto) -> Array:
        """The elements that an entry points to, checked."""
        dtype, shape = DataType(entry.dtype), _shape(entry)
        if dtype in _OPAQUE:
            raise UnimplementedError(f"tensors of type {dtype_name(dtype)} are not read from checkpoints")
        if dtype is DataType.STRING:
            return self._strings(entry, shape)
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
        path = data_file(self.prefix, entry.shard_id, self.header.num_shards)
        with file_errors(path), Path(path).open("rb") as file:
            file.seek(entry.offset)
            if file.readinto(data.data) != entry.size:
                raise OutOfRangeError("Read less bytes than requested")

    def _check(self, entry: BundleEntryProto, checksum: int) -> None:
        if masked(checksum) != entry.crc32c:
            raise DataLossError(
                f"TensorBundle at {self.prefix} shard {entry.shard_id} ({entry.size} bytes): Checksum does not match: "
                f"stored {unmasked(entry.crc32c)} vs. calculated on the restored bytes {checksum}"
            )


def _index(part: Bounds, within: Bounds | None = None) -> tuple[slice, ...]:
    """What takes a part out of an array, or out of an array that itself is the part `within`."""
    origins = [0] * len(part) if within is None else [start for start, _ in within]
    return tuple(slice(start - origin, end - origin) for (start, end), origin in zip(part, origins, strict=True))


def _check_apart(parts: list[TensorSlice], shape: tuple[int, ...]) -> None:
    """InternalError, as in TensorFlow, where two slices hold the same element."""
    bounds = np.array([part.bounds(shape) for part in parts], np.int64)
    for number in range(1, len(parts)):
        before, here = bounds[:number], bounds[number]
        common = (np.maximum(before, here)[..., 0] < np.minimum(before, here)[..., 1]).all(axis=-1)
        if common.any():
            existing = parts[int(common.argmax())]
            raise InternalError(f"Overlapping slices: existing slice = {existing}, new slice = {parts[number]}")


def _check_sliceable(dtype: DataType) -> None:
    if dtype is DataType.STRING:
        raise InvalidArgumentError(f"Dtype {dtype_name(dtype)} not supported.")


def _shape(entry: BundleEntryProto) -> tuple[int, ...]:
    shape = shape_from_proto(entry.shape)
    if shape is None or None in shape:
        raise DataLossError(f"a checkpoint entry has the shape {shape}, which is not fully known")
    return tuple(size for size in shape if size is not None)


def _parsed(message: Parsed, data: bytes) -> Parsed:
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise DataLossError(f"a checkpoint's index holds no {type(message).__name__} where one belongs") from error
    return message
