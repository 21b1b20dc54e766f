"""The index of a checkpoint: its tensors, and where in which data file each is.

    PREFIX.index                   a table: "" -> header, name of a tensor -> entry, key of a slice -> entry
    PREFIX.data-00000-of-00002     the elements of tensors; an entry has file number, offset and size

The header has the 2 of these names, an entry the 0. Data files without entries need not exist: TensorFlow, like
Partita, opens only those that it reads from. The index is read once as a whole; damage is an error that names the file.
A written index is byte for byte TensorFlow's for the same entries.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from ...errors import DataLossError, InvalidArgumentError, NotFoundError, PartitaError, UnimplementedError
from ..protos import BundleEntryProto, BundleHeaderProto, VersionDef
from .file_system import LOCAL, FileSystem
from .slice_keys import SLICE_MARK, decode_name, encode_name, sliced_name
from .sstable import SortedTable, TableWriter
from .storage import file_errors

_HEADER_KEY = b""
_VERSION = 1
_NO_SUCH_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})

BundleEntries = dict[bytes, BundleEntryProto]
Parsed = TypeVar("Parsed", bound=Message)


def index_file(prefix: str) -> str:
    return f"{prefix}.index"


def data_file(prefix: str, shard: int, num_shards: int) -> str:
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


def index_bytes(entries: Mapping[bytes, BundleEntryProto], num_shards: int) -> bytes:
    """The serialised index with these entries."""
    table = TableWriter()
    header = BundleHeaderProto(num_shards=num_shards, version=VersionDef(producer=_VERSION))
    table.add(_HEADER_KEY, header.SerializeToString())
    for key in sorted(entries):
        table.add(key, entries[key].SerializeToString())
    return table.finish()


class BundleIndex:
    """The index of a checkpoint, as it was when this object was made."""

    def __init__(self, prefix: str, files: FileSystem = LOCAL, path: str | None = None) -> None:
        """Reads the index, from another path if it has got one.

        Raises NotFoundError if there is none, DataLossError for a damaged one, UnimplementedError for a checkpoint from
        a machine with another byte order and InvalidArgumentError for one of a newer version.
        """
        self.prefix = prefix
        self._files = files
        self._path = index_file(prefix) if path is None else path
        with file_errors(self._path):
            try:
                self._data, self._identity = _content(self._path, files)
            except OSError as error:
                if error.errno not in _NO_SUCH_FILE:
                    raise
                raise NotFoundError(
                    f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {prefix}"
                ) from error
        try:
            self._table = SortedTable(self._data)
        except DataLossError as error:
            raise DataLossError(f"{error.message}; {self._path} is damaged") from error
        self.header = self._read_header()

    @property
    def num_shards(self) -> int:
        return self.header.num_shards

    def _read_header(self) -> BundleHeaderProto:
        subject = f"Unable to read file ({self._path}). Perhaps the file is corrupt"
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
        """Whether the checkpoint has neither been saved again nor removed since."""
        with file_errors(self._path):
            return self.is_at(self._path)

    def is_at(self, path: str) -> bool:
        """Whether a path is one of this index; raises OSError.

        The bytes are compared too: a file that is made right after another was removed often gets its inode, and within
        one tick of the kernel's clock its time. Equal bytes have the checksums of equal tensors.
        """
        try:
            data, identity = _content(path, self._files)
        except FileNotFoundError:
            return False
        return identity == self._identity and data == self._data

    def entry(self, name: str) -> BundleEntryProto:
        """The entry of a tensor; NotFoundError for an unknown name."""
        return self.entry_of(encode_name(name))

    def entry_of(self, key: bytes) -> BundleEntryProto:
        """The entry of a tensor or a slice; NotFoundError for an unknown key."""
        stored = self._get(key) if key else None
        if stored is None:
            raise NotFoundError(f"Key {decode_name(key)} not found in checkpoint")
        return self._parsed(BundleEntryProto(), stored)

    def __contains__(self, name: str) -> bool:
        return bool(name) and self._get(encode_name(name)) is not None

    def entries(self) -> Iterator[tuple[bytes, BundleEntryProto]]:
        """Key and entry of every tensor and every slice, sorted by key."""
        for key, value in self._items():
            yield key, self._parsed(BundleEntryProto(), value)

    def names(self) -> list[str]:
        """Names of the tensors, sorted by their bytes."""
        return [decode_name(key) for key, _ in self._items() if not key.startswith(SLICE_MARK)]

    def shards(self) -> list[int]:
        """The numbers of the data files that have elements of tensors."""
        return sorted({entry.shard_id for _, entry in self.entries() if not entry.slices})

    def tensors_in(self, shard: int) -> list[str]:
        """Names of the tensors that are in a data file, wholly or in part, as far as the index can be read."""
        names: dict[str, None] = {}
        with suppress(PartitaError):
            for key, entry in self.entries():
                if entry.shard_id == shard and not entry.slices:
                    names[sliced_name(key) if key.startswith(SLICE_MARK) else decode_name(key)] = None
        return list(names)

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
        return DataLossError(f"{error.message}; {self._path} is damaged")

    def _parsed(self, message: Parsed, data: bytes) -> Parsed:
        try:
            message.ParseFromString(data)
        except DecodeError as error:
            raise DataLossError(f"{self._path} holds no {type(message).__name__} where one belongs") from error
        return message


def _content(path: str, files: FileSystem) -> tuple[bytes, tuple[int, ...]]:
    """The bytes of an index file, and what tells its file from others that exist; raises OSError."""
    handle = files.open(path)
    try:
        facts = files.stat(handle)
        data, size = bytearray(facts.st_size), 0
        while count := files.read(handle, memoryview(data)[size:], size):
            size += count
        return bytes(data[:size]), (facts.st_dev, facts.st_ino)
    finally:
        files.close(handle)
