"""The index of a checkpoint: which tensors there are, and where in which data file.

Flows in: a prefix, or entries. Flows out: entries by key, or the bytes of an index, those of TensorFlow for the same
entries. Always holds: an index is read once, whole; damage is an error that names the file.

    PREFIX.index                   a table: "" -> header, name of a tensor -> entry, key of a slice -> entry
    PREFIX.data-00000-of-00002     the elements of tensors one after the other; an entry says where

The header gives the 2 of these names, an entry the 0. Data files that no entry names need not exist: TensorFlow, like
Partita, opens those that it reads from.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from ...errors import DataLossError, InvalidArgumentError, NotFoundError, PartitaError, UnimplementedError
from ..protos import BundleEntryProto, BundleHeaderProto, VersionDef
from .file_system import LOCAL, FileSystem
from .slice_keys import SLICE_MARK, decode_name, encode_name, sliced_name
from .sstable import Table, TableWriter
from .storage import file_errors

_HEADER_KEY = b""
_VERSION = 1
_NO_SUCH_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})

Entries = dict[bytes, BundleEntryProto]
Parsed = TypeVar("Parsed", bound=Message)


def index_file(prefix: str) -> str:
    """Path of a checkpoint's index."""
    return f"{prefix}.index"


def data_file(prefix: str, shard: int, num_shards: int) -> str:
    """Path of a checkpoint's data file number `shard`."""
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


def index_bytes(entries: Mapping[bytes, BundleEntryProto], num_shards: int) -> bytes:
    """The index that holds these entries."""
    table = TableWriter()
    header = BundleHeaderProto(num_shards=num_shards, version=VersionDef(producer=_VERSION))
    table.add(_HEADER_KEY, header.SerializeToString())
    for key in sorted(entries):
        table.add(key, entries[key].SerializeToString())
    return table.finish()


class BundleIndex:
    """The index of the checkpoint that was there when this was made."""

    def __init__(self, prefix: str, files: FileSystem = LOCAL) -> None:
        """Reads it.

        Raises NotFoundError where there is none, DataLossError for a damaged one, UnimplementedError for a checkpoint
        of a machine with another byte order and InvalidArgumentError for one of a newer version.
        """
        self.prefix = prefix
        self._files = files
        data, self._identity = _content(prefix, files)
        try:
            self._table = Table(data)
        except DataLossError as error:
            raise DataLossError(f"{error.message}; {index_file(prefix)} is damaged") from error
        self.header = self._read_header()

    @property
    def num_shards(self) -> int:
        return self.header.num_shards

    def _read_header(self) -> BundleHeaderProto:
        subject = f"Unable to read file ({index_file(self.prefix)}). Perhaps the file is corrupt"
        try:
            stored = self._table.get(_HEADER_KEY)
        except DataLossError as error:
            raise DataLossError(
                f"{subject} or was produced by a newer version of TensorFlow with format changes "
                f"(failed to seek to header entry): {error.message}"
            ) from error
        if stored is None:
            raise DataLossError(f"{subject} (it has no header)")
        header = self._parsed(BundleHeaderProto(), stored)
        if header.endianness != BundleHeaderProto.LITTLE:
            raise UnimplementedError(f"checkpoint {self.prefix!r} was written on a big-endian machine")
        if header.version.min_consumer > _VERSION:
            raise InvalidArgumentError(
                f"checkpoint {self.prefix!r} wants a reader of version {header.version.min_consumer}, "
                f"this one is of version {_VERSION}"
            )
        return header

    def is_current(self) -> bool:
        """Whether the checkpoint has not been saved anew, or removed, since."""
        path = index_file(self.prefix)
        with file_errors(path):
            try:
                return _identity(self._files.stat(path)) == self._identity
            except FileNotFoundError:
                return False

    def entry(self, name: str) -> BundleEntryProto:
        """Where a tensor is; NotFoundError where there is no such tensor."""
        return self.entry_of(encode_name(name))

    def entry_of(self, key: bytes) -> BundleEntryProto:
        """Where a tensor, or a part of one, is; NotFoundError where there is no such key."""
        stored = self._get(key) if key else None
        if stored is None:
            raise NotFoundError(f"Key {decode_name(key)} not found in checkpoint")
        return self._parsed(BundleEntryProto(), stored)

    def __contains__(self, name: str) -> bool:
        return bool(name) and self._get(encode_name(name)) is not None

    def entries(self) -> Iterator[tuple[bytes, BundleEntryProto]]:
        """Key and entry of every tensor and every slice, in the order of the keys."""
        for key, value in self._items():
            yield key, self._parsed(BundleEntryProto(), value)

    def names(self) -> list[str]:
        """Names of the tensors, sorted by their bytes."""
        return [decode_name(key) for key, _ in self._items() if not key.startswith(SLICE_MARK)]

    def tensors_in(self, shard: int) -> list[str]:
        """Names of the tensors that lie in a data file, or have a part there, as far as the index can be read."""
        found: dict[str, None] = {}
        with suppress(PartitaError):
            for key, entry in self.entries():
                if entry.shard_id == shard and not entry.slices:
                    found[sliced_name(key) if key.startswith(SLICE_MARK) else decode_name(key)] = None
        return list(found)

    def _get(self, key: bytes) -> bytes | None:
        try:
            return self._table.get(key)
        except DataLossError as error:
            raise self._damaged(error) from error

    def _items(self) -> Iterator[tuple[bytes, bytes]]:
        try:
            for key, value in self._table.items():
                if key != _HEADER_KEY:
                    yield key, value
        except DataLossError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: DataLossError) -> DataLossError:
        return DataLossError(f"{error.message}; {index_file(self.prefix)} is damaged")

    def _parsed(self, message: Parsed, data: bytes) -> Parsed:
        try:
            message.ParseFromString(data)
        except DecodeError as error:
            raise DataLossError(
                f"{index_file(self.prefix)} holds no {type(message).__name__} where one belongs"
            ) from error
        return message


def _content(prefix: str, files: FileSystem) -> tuple[bytes, tuple[int, ...]]:
    """The bytes of an index, and what tells its file from others that had the name before or will have it."""
    path = index_file(prefix)
    with file_errors(path):
        try:
            handle = files.open(path)
        except OSError as error:
            if error.errno not in _NO_SUCH_FILE:
                raise
            raise NotFoundError(
                f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {prefix}"
            ) from error
        try:
            facts = files.stat(handle)
            data, size = bytearray(facts.st_size), 0
            while count := files.read(handle, memoryview(data)[size:], size):
                size += count
            return bytes(data[:size]), _identity(facts)
        finally:
            files.close(handle)


def _identity(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_size
