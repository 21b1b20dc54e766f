"""The LevelDB table format, in which checkpoints store their index: sorted keys and values.

    table:   data blocks, metaindex block (empty), index block (last key of a data block, or a shorter one before the
             next block -> handle), footer (handles of metaindex and index, zeros up to 40 bytes, magic number)
    block:   entries, restart offsets, their number; then compression (0 none, 1 snappy) and masked CRC32C
    entry:   length shared with the previous key, length of the rest, length of the value, rest, value
    handle:  offset and size of a block (without compression byte and checksum)

All lengths and handles are varints; every 16th key of a data block, and every key of the index, is stored in full. Each
block is checked against its checksum before it is used; a written table is byte for byte TensorFlow's for the same
entries. Format: github.com/google/leveldb, doc/table_format.md.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import takewhile
from operator import eq

from ...errors import DataLossError, UnimplementedError
from ..varint import read_varint, varint
from .crc32c import crc32c, masked
from .snappy import uncompressed

_MAGIC = bytes.fromhex("57fb808b247547db")
_HANDLES_BYTES = 40
_FOOTER_BYTES = _HANDLES_BYTES + len(_MAGIC)
_NUMBER_BYTES = 4
_RESTART_INTERVAL = 16
_BLOCK_BYTES = 256 << 10  # a data block ends when it reaches this size, as in TensorFlow
_NO_COMPRESSION, _SNAPPY = 0, 1

BlockHandle = tuple[int, int]


class _Block:
    """A block that is being written."""

    def __init__(self, restart_interval: int) -> None:
        self._interval = restart_interval
        self._data = bytearray()
        self._restarts = [0]
        self._since_restart = 0
        self.last_key = b""

    def __bool__(self) -> bool:
        return bool(self._data)

    def __len__(self) -> int:
        return len(self._data) + _NUMBER_BYTES * (len(self._restarts) + 1)

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._since_restart == self._interval:
            self._restarts.append(len(self._data))
            self._since_restart = 0
        elif self._data:
            shared = _shared(self.last_key, key)
        self._data += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        self._since_restart += 1
        self.last_key = key

    def content(self) -> bytes:
        numbers = [*self._restarts, len(self._restarts)]
        return bytes(self._data) + b"".join(number.to_bytes(_NUMBER_BYTES, "little") for number in numbers)


def _shared(a: bytes, b: bytes) -> int:
    """The length of the common prefix of two keys."""
    return sum(takewhile(bool, map(eq, a, b)))


def _separator(before: bytes, after: bytes) -> bytes:
    """A short key that is at least `before` and less than `after`."""
    shared = _shared(before, after)
    if shared < min(len(before), len(after)):
        raised = before[shared] + 1
        if raised <= 0xFF and raised < after[shared]:
            return before[:shared] + bytes([raised])
    return before


def _successor(key: bytes) -> bytes:
    """A short key that is at least `key`."""
    for at, byte in enumerate(key):
        if byte != 0xFF:
            return key[:at] + bytes([byte + 1])
    return key


class TableWriter:
    """Collects entries; `finish` returns the table."""

    def __init__(self) -> None:
        self._output = bytearray()
        self._block = _Block(_RESTART_INTERVAL)
        self._index = _Block(1)
        self._ended: tuple[bytes, BlockHandle] | None = None  # last key and handle of a block that is not indexed yet

    def add(self, key: bytes, value: bytes) -> None:
        """Appends an entry; its key must be greater than all earlier ones."""
        if self._ended is not None:
            self._index_block(_separator(self._ended[0], key))
        self._block.add(key, value)
        if len(self._block) >= _BLOCK_BYTES:
            self._end_block()

    def finish(self) -> bytes:
        """The bytes of the table."""
        if self._block:
            self._end_block()
        metaindex = self._write(_Block(_RESTART_INTERVAL))
        if self._ended is not None:
            self._index_block(_successor(self._ended[0]))
        handles = _handle_bytes(metaindex) + _handle_bytes(self._write(self._index))
        return bytes(self._output) + handles.ljust(_HANDLES_BYTES, b"\0") + _MAGIC

    def _index_block(self, key: bytes) -> None:
        assert self._ended is not None
        self._index.add(key, _handle_bytes(self._ended[1]))
        self._ended = None

    def _end_block(self) -> None:
        self._ended = self._block.last_key, self._write(self._block)
        self._block = _Block(_RESTART_INTERVAL)

    def _write(self, block: _Block) -> BlockHandle:
        content = block.content()
        handle = len(self._output), len(content)
        kind = bytes([_NO_COMPRESSION])
        checksum = masked(crc32c(kind, crc32c(content)))
        self._output += content + kind + checksum.to_bytes(_NUMBER_BYTES, "little")
        return handle


def _handle_bytes(handle: BlockHandle) -> bytes:
    return varint(handle[0]) + varint(handle[1])


def _read_handle(data: bytes, position: int) -> tuple[BlockHandle, int]:
    offset, position = read_varint(data, position)
    size, position = read_varint(data, position)
    return (offset, size), position


class SortedTable:
    """A table in memory; its blocks are checked and decompressed on first use."""

    def __init__(self, data: bytes) -> None:
        """Reads footer and index; DataLossError if they are damaged."""
        if len(data) < _FOOTER_BYTES:
            raise DataLossError("file is too short to be an sstable")
        if not data.endswith(_MAGIC):
            raise DataLossError("not an sstable (bad magic number)")
        self._data = data
        footer = data[-_FOOTER_BYTES:]
        index_handle, _ = _read_handle(footer, _read_handle(footer, 0)[1])
        index = _entries(self._block(index_handle))
        self._last_keys = [key for key, _ in index]
        self._handles = [_read_handle(value, 0)[0] for _, value in index]
        self._unpacked: dict[int, dict[bytes, bytes]] = {}

    def get(self, key: bytes) -> bytes | None:
        """The value under `key`, None if there is none; DataLossError if its block is damaged."""
        number = bisect_left(self._last_keys, key)
        return self._entries_of(number).get(key) if number < len(self._handles) else None

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All entries, sorted by key."""
        for number in range(len(self._handles)):
            yield from self._entries_of(number).items()

    def _entries_of(self, number: int) -> dict[bytes, bytes]:
        if number not in self._unpacked:
            self._unpacked[number] = dict(_entries(self._block(self._handles[number])))
        return self._unpacked[number]

    def _block(self, handle: BlockHandle) -> bytes:
        """The content of a block, checked and decompressed."""
        offset, size = handle
        end = offset + size + 1
        checksum = self._data[end : end + _NUMBER_BYTES]
        if len(checksum) != _NUMBER_BYTES:
            raise DataLossError("truncated block read")
        if masked(crc32c(memoryview(self._data)[offset:end])) != int.from_bytes(checksum, "little"):
            raise DataLossError("block checksum mismatch")
        content, compression = self._data[offset : end - 1], self._data[end - 1]
        if compression == _NO_COMPRESSION:
            return content
        if compression == _SNAPPY:
            return uncompressed(content)
        raise UnimplementedError(f"a table block has compression {compression}; only none (0) and snappy (1) are read")


def _entries(block: bytes) -> list[tuple[bytes, bytes]]:
    """The entries of a block in order."""
    restarts = int.from_bytes(block[-_NUMBER_BYTES:], "little")
    end = len(block) - _NUMBER_BYTES * (restarts + 1)
    if len(block) < _NUMBER_BYTES or end < 0:
        raise DataLossError("bad block contents")
    entries: list[tuple[bytes, bytes]] = []
    position, key = 0, b""
    while position < end:
        shared, position = read_varint(block, position)
        length, position = read_varint(block, position)
        size, position = read_varint(block, position)
        value_at = position + length
        if shared > len(key) or value_at + size > end:
            raise DataLossError("bad entry in block")
        key = key[:shared] + block[position:value_at]
        position = value_at + size
        entries.append((key, block[value_at:position]))
    return entries
