"""Checkpoints of the first format: tables that hold the tensors themselves, in one file or in several.

    ""              -> names, full shapes and types of the tensors in this file, and which slices of them it has
    key of a slice  -> name, slice and elements; a whole tensor is one slice

What is written is byte for byte TensorFlow's for the same tensors. The models that were published for TensorFlow before
version 0.12 are such files.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from ...errors import DataLossError, InternalError, InvalidArgumentError, NotFoundError, PartitaError
from ..analysis.dims import shape_text
from ..dtypes import Array, DataType, known_dims
from ..ops.files.tensor_slices import TensorSlice, joined, slice_from_proto
from ..protos import SavedSlice, SavedSliceMeta, SavedTensorSliceMeta, SavedTensorSlices, TensorProto, VersionDef
from ..tensor import fill_fields, shape_from_proto, shape_to_proto, tensor_to_numpy
from .file_system import LOCAL
from .slice_keys import decode_name, encode_name, slice_key
from .sstable import SortedTable, TableWriter
from .storage import NewFile, file_errors, read_file

_META_KEY = b""
_VERSION = 1


class _Tensor(NamedTuple):
    """What the files say of a tensor: in which table each of its slices is."""

    shape: tuple[int, ...]
    dtype: DataType
    slices: list[tuple[TensorSlice, SortedTable]]


class SliceFiles:
    """The tensors in some files of one checkpoint."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Reads the files.

        Raises DataLossError for what is no such file, InternalError for one that is damaged or contradicts another.
        """
        self._tensors: dict[str, _Tensor] = {}
        for path in paths:
            self._add(path)

    def _add(self, path: str) -> None:
        try:
            table = SortedTable(read_file(path))
        except PartitaError as error:
            raise DataLossError(
                f"Unable to open table file {path}: {error.code}: {error.message}: perhaps your file is in a different "
                "file format and you need to use a different restore operator?"
            ) from error
        try:
            meta = _entry(table, _META_KEY).meta
        except DataLossError as error:
            raise InternalError(
                f"Failed to find the saved tensor slices at the beginning of the checkpoint file: {path}"
            ) from error
        if meta.versions.min_consumer > _VERSION:
            raise InvalidArgumentError(f"{path} wants a reader of version {meta.versions.min_consumer}")
        for tensor in meta.tensor:
            name, shape, dtype = tensor.name, _known_shape(tensor), DataType(int(tensor.type))
            own = self._tensors.setdefault(name, _Tensor(shape, dtype, []))
            if own[:2] != (shape, dtype):
                raise InternalError(
                    f"the files of a checkpoint have {name!r} with different shapes or types; see {path}"
                )
            own.slices.extend((slice_from_proto(part), table) for part in tensor.slice)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def dtype(self, name: str) -> DataType:
        """Element type of a tensor."""
        return self._tensor(name).dtype

    def shape(self, name: str) -> tuple[int, ...]:
        """Full shape of a tensor, however it is sliced."""
        return self._tensor(name).shape

    def read(self, name: str) -> Array:
        """The whole tensor; raises as `read_slice`."""
        return self.read_slice(name, TensorSlice((None,) * len(self.shape(name))))

    def read_slice(self, name: str, part: TensorSlice) -> Array:
        """A part of a tensor.

        Raises NotFoundError for an unknown name, InvalidArgumentError where no stored slice has what is wanted,
        InternalError for slices that overlap, DataLossError for damaged blocks.
        """
        shape, dtype, slices = self._tensor(name)
        tables = dict(slices)
        bounds = part.bounds(shape)

        def value_of(stored: TensorSlice) -> Array:
            data = _entry(tables[stored], slice_key(name, stored)).data.data
            data.MergeFrom(TensorProto(dtype=f"DT_{dtype.name}", tensor_shape=shape_to_proto(stored.shape_in(shape))))
            return tensor_to_numpy(data)

        if len(slices) == 1 and slices[0][0].bounds(shape) == bounds:
            return value_of(slices[0][0])  # strings too, which are not joined
        value = joined([stored for stored, _ in slices], value_of, part, shape, dtype)
        if value is None:
            raise InvalidArgumentError("Error copying slice data")
        return value

    def _tensor(self, name: str) -> _Tensor:
        if name not in self._tensors:
            raise NotFoundError(f'Tensor name "{name}" not found in checkpoint')
        return self._tensors[name]


def _known_shape(tensor: SavedSliceMeta) -> tuple[int, ...]:
    shape = shape_from_proto(tensor.shape)
    known = known_dims(shape)
    if known is None:
        raise DataLossError(f"a checkpoint has {tensor.name!r} with the shape {shape_text(shape)}")
    return known


def _entry(table: SortedTable, key: bytes) -> SavedTensorSlices:
    stored = table.get(key)
    if stored is None:
        raise DataLossError(f"it has no entry {decode_name(key)!r}")
    try:
        return SavedTensorSlices.FromString(stored)
    except DecodeError as error:
        raise DataLossError("an entry is damaged") from error


class SliceFileWriter:
    """Collects tensors, or slices of them; `write` makes one file of them."""

    def __init__(self) -> None:
        self._tensors: dict[str, SavedSliceMeta] = {}
        self._data: dict[bytes, bytes] = {}

    def add(self, name: str, shape: tuple[int, ...], part: TensorSlice, value: Array, dtype: DataType) -> None:
        """Adds a slice of a tensor of that full shape.

        Raises InvalidArgumentError for a slice that was added before, for a tensor that had another shape or type, and
        for a type that has no field for its elements.
        """
        key = slice_key(name, part)
        if key in self._data:
            raise InvalidArgumentError(f"slice {part} of tensor {name!r} is saved twice")
        text = encode_name(name).decode(errors="replace")
        new = SavedSliceMeta(name=text, shape=shape_to_proto(shape), type=f"DT_{dtype.name}")
        meta = self._tensors.setdefault(name, new)
        if meta.shape != new.shape or meta.type != new.type:
            raise InvalidArgumentError(f"the slices of {name!r} are of tensors of different shapes or element types")
        meta.slice.append(part.to_proto())
        saved = SavedSlice(name=text, slice=part.to_proto())
        fill_fields(saved.data, value, dtype)
        self._data[key] = SavedTensorSlices(data=saved).SerializeToString()

    def write(self, path: str) -> None:
        """Writes the file; the one of that name before stays until this one is complete. Raises file system errors."""
        meta = SavedTensorSliceMeta(tensor=self._tensors.values(), versions=VersionDef(producer=_VERSION))
        table = TableWriter()
        table.add(_META_KEY, SavedTensorSlices(meta=meta).SerializeToString())
        for key in sorted(self._data):
            table.add(key, self._data[key])
        file = NewFile.create(f"{path}.tempstate{secrets.randbits(64)}")
        try:
            file.write(table.finish())
            file.sync()
            with file_errors(path):
                LOCAL.rename(file.path, os.fspath(path))
        except BaseException:
            file.remove()
            raise
        finally:
            file.close()
