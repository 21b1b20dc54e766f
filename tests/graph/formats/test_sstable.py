"""Tables return the entries that were added, in order, and detect damage."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import example, given, strategies as st

from partita.errors import DataLossError
from partita.graph.formats.crc32c import crc32c, masked
from partita.graph.formats.snappy import uncompressed
from partita.graph.formats.sstable import SortedTable, TableWriter
from partita.graph.varint import read_varint, varint

KEYS = st.binary(max_size=12)
ENTRIES = st.dictionaries(KEYS, st.binary(max_size=30), max_size=60)


def table(entries: Mapping[bytes, bytes]) -> bytes:
    """A table of these entries."""
    writer = TableWriter()
    for key in sorted(entries):
        writer.add(key, entries[key])
    return writer.finish()


@given(ENTRIES, KEYS)
@example({}, b"")
@example({b"": b"", b"\xff\xff": b"x"}, b"\xff\xff\xff")
def test_entries_come_back_in_order(entries: dict[bytes, bytes], missing: bytes) -> None:
    """All entries in order, each by its key, and none for other keys."""
    read = SortedTable(table(entries))
    assert list(read.items()) == sorted(entries.items())
    assert {key: read.get(key) for key in entries} == entries
    assert read.get(missing) == entries.get(missing)


@given(st.dictionaries(KEYS, st.just(bytes(100_000)), min_size=4, max_size=9))
def test_long_tables_have_several_blocks(entries: dict[bytes, bytes]) -> None:
    """A key is found whichever block it is in."""
    read = SortedTable(table(entries))
    assert {key: read.get(key) for key in entries} == entries
    assert list(read.items()) == sorted(entries.items())


@given(st.data())
def test_damage_is_noticed(data: st.DataObject) -> None:
    """One flipped bit in a block is a DataLossError, not a wrong value."""
    good = table({b"a": b"1", b"b": b"2"})
    blocks = len(good) - 48
    position = data.draw(st.integers(0, blocks - 1))
    bad = bytearray(good)
    bad[position] ^= 1 << data.draw(st.integers(0, 7))
    metaindex = range(good.index(b"\0\0\0\0\1\0\0\0\0", blocks - 40 - 13), blocks)
    try:
        entries_read = list(SortedTable(bytes(bad)).items())
    except DataLossError:
        return
    assert entries_read == [(b"a", b"1"), (b"b", b"2")], "only the metaindex block, which nobody reads, may be damaged"
    assert position in metaindex


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "file is too short to be an sstable"),
        (bytes(47), "file is too short to be an sstable"),
        (bytes(48), "not an sstable (bad magic number)"),
        (table({})[13:], "block checksum mismatch"),
    ],
)
def test_what_is_no_table_is_refused(data: bytes, message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(DataLossError) as caught:
        SortedTable(data)
    assert caught.value.message == message


def test_compressed_blocks_are_read() -> None:
    """A table with one block that snappy has compressed."""
    plain = table({b"key": b"v" * 64})
    size = plain.index(b"\0\0\0\0\1\0\0\0") + 8
    # The length; a literal of 7 bytes; a copy of 63 bytes from 1 byte back; the rest as a literal.
    packed = varint(size) + bytes([6 << 2]) + plain[:7] + bytes([62 << 2 | 2, 1, 0])
    rest = plain[70:size]
    packed += bytes([len(rest) - 1 << 2]) + rest
    assert uncompressed(packed) == plain[:size]
    block = packed + b"\1"
    block += masked(crc32c(block)).to_bytes(4, "little")
    index_block = TableWriter()
    index_block.add(b"l", varint(0) + varint(len(packed)))
    index = index_block.finish()
    handle = varint(len(block)) + varint(index.index(b"\0\0\0\0\1\0\0\0") + 8)
    file = block + index[:-48] + (varint(0) * 2 + handle).ljust(40, b"\0") + index[-8:]
    assert SortedTable(file).get(b"key") == b"v" * 64


@pytest.mark.parametrize("block", [b"\5\x0cabcd", b"\2\x05\1", b"\3\x02\1", b"", b"\x80", b"\1\xfc"])
def test_damaged_compression_is_refused(block: bytes) -> None:
    """Truncated, or with a copy from before the start."""
    with pytest.raises(DataLossError):
        uncompressed(block)


@given(st.integers(0, (1 << 64) - 1), st.binary(max_size=3))
def test_numbers_come_back(value: int, after: bytes) -> None:
    """With the position behind them."""
    encoded = varint(value)
    assert read_varint(b"\x80" + encoded + after, 1) == (value, 1 + len(encoded))
    with pytest.raises(DataLossError):
        read_varint(encoded[:-1], 0)
