"""The files of saved datasets and snapshots.

    FOLDER/snapshot.metadata                     the last run that was completed: a message, below
    FOLDER/RUN/00000000.shard/00000000.snapshot  elements of the first shard; a shard may have several files
    FOLDER/RUN/00000001.shard/00000000.snapshot  of the second one

A file is a TFRecord file, with a TensorProto for each component of each element; as it is, as one gzip stream, or in
blocks, each a length of four bytes (big-endian) and a block of snappy's.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import DataLossError
from ..dtypes import DataType
from ..varint import read_varint, varint
from . import snappy
from .record_file import framed, record_at

METADATA = "snapshot.metadata"
_VERSION = 2  # of the layout of the files
_RUN, _CREATED, _FORMAT, _TYPES, _COUNT, _FINAL = 2, 3, 4, 5, 6, 1000  # numbers of the fields of the message
_GZIP = zlib.MAX_WBITS | 16
_BLOCK_BYTES = 1 << 18  # of records in a block of snappy's, and between two writes to a file
_LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known of a run: its name, the types of components, the number of elements, whether it is complete."""

    run: str
    types: tuple[DataType, ...]
    num_elements: int
    is_final: bool

    def serialised(self) -> bytes:
        """The message."""
        run, types = self.run.encode(), b"".join(map(varint, self.types))
        return b"".join(
            [
                varint(_RUN << 3 | 2) + varint(len(run)) + run,
                varint(_FORMAT << 3) + varint(_VERSION),
                varint(_TYPES << 3 | 2) + varint(len(types)) + types,
                varint(_COUNT << 3) + varint(self.num_elements),
                varint(_FINAL << 3) + varint(self.is_final),
            ]
        )

    @classmethod
    def parse(cls, message: bytes) -> Metadata:
        """The message as a value; DataLossError if it is damaged."""
        fields = _fields(message)
        packed, types, position = _bytes(fields.get(_TYPES, b"")), list[DataType](), 0
        while position < len(packed):
            number, position = read_varint(packed, position)
            types.append(DataType(number))
        return cls(
            _bytes(fields.get(_RUN, b"")).decode(), tuple(types), _int(fields.get(_COUNT, 0)), bool(fields.get(_FINAL))
        )


def _bytes(field: bytes | int) -> bytes:
    return field if isinstance(field, bytes) else b""


def _int(field: bytes | int) -> int:
    return field if isinstance(field, int) else 0


def _fields(message: bytes) -> dict[int, bytes | int]:
    """Numbers and byte strings, by field; the metadata has no fields of other wire types."""
    fields: dict[int, bytes | int] = {}
    position = 0
    while position < len(message):
        tag, position = read_varint(message, position)
        value, position = read_varint(message, position)
        if tag & 7 == 2:
            fields[tag >> 3] = message[position : position + value]
            position += value
        elif tag & 7 == 0:
            fields[tag >> 3] = value
        else:
            raise DataLossError("corrupted metadata of a snapshot")
    return fields


def shard_folder(folder: Path, run: str, shard: int) -> Path:
    """Where a run has the files of a shard."""
    return folder / run / f"{shard:08d}.shard"


def shards(folder: Path, run: str) -> list[Path]:
    """The folders of all shards of a run, in their order."""
    return sorted((folder / run).glob("*.shard"))


class ShardWriter:
    """Writes the elements of one shard to its file. No file is open between two calls."""

    def __init__(self, folder: Path, compression: bytes) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{0:08d}.snapshot"
        self._path.write_bytes(b"")
        self._compression = compression
        self._gzip = zlib.compressobj(wbits=_GZIP) if compression == b"GZIP" else None
        self._records: list[bytes] = []
        self._pending = 0  # bytes of these

    def write(self, components: Sequence[bytes]) -> None:
        """Adds an element."""
        for component in components:
            self._records.append(framed(component))
            self._pending += len(self._records[-1])
        if self._pending >= _BLOCK_BYTES:
            self._flush()

    def close(self) -> None:
        """Writes the rest."""
        self._flush()
        if self._gzip is not None:
            self._append(self._gzip.flush())

    def _flush(self) -> None:
        data = b"".join(self._records)
        self._records, self._pending = [], 0
        if not data:
            return
        if self._gzip is not None:
            data = self._gzip.compress(data)
        elif self._compression == b"SNAPPY":
            block = snappy.as_literals(data)
            data = _LENGTH.pack(len(block)) + block
        self._append(data)

    def _append(self, data: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(data)


def records_of(shard: Path, compression: bytes) -> list[bytes]:
    """All records of the files of a shard; DataLossError for damaged ones."""
    return [record for path in sorted(shard.glob("*.snapshot")) for record in _records(path.read_bytes(), compression)]


def _records(data: bytes, compression: bytes) -> list[bytes]:
    content = memoryview(_inflated(data, compression))
    records, position = [], 0
    while (found := record_at(content, position)) is not None:
        record, position = found
        records.append(record)
    return records


def _inflated(data: bytes, compression: bytes) -> bytes:
    if compression == b"GZIP":
        try:
            return zlib.decompressobj(_GZIP).decompress(data)
        except zlib.error as error:
            raise DataLossError(f"inflate() failed: {error}") from None
    if compression != b"SNAPPY":
        return data
    blocks, position = [], 0
    while position + _LENGTH.size <= len(data):
        start = position + _LENGTH.size
        position = start + int(_LENGTH.unpack_from(data, position)[0])
        blocks.append(snappy.uncompressed(data[start:position]))
    return b"".join(blocks)
