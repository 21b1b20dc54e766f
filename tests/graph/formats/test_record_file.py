"""Records come back as they were framed, and damage is found."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import DataLossError
from partita.graph.formats.record_file import framed, record_at

# TensorFlow 2.21 wrote these records: hello, nothing, world!
WRITTEN = bytes.fromhex(
    "0500000000000000eab2043e68656c6c6fbb1f1c19"
    "000000000000000029039807d8ea82a2"
    "06000000000000007369d537776f726c64210ac6af4f"
)


def records(content: bytes) -> list[bytes]:
    result, place = [], 0
    while (found := record_at(memoryview(content), place)) is not None:
        record, place = found
        result.append(record)
    return result


@given(st.lists(st.binary(max_size=40)))
def test_records_come_back(items: list[bytes]) -> None:
    assert records(b"".join(map(framed, items))) == items


def test_tensorflows_bytes() -> None:
    assert b"".join(map(framed, (b"hello", b"", b"world!"))) == WRITTEN
    assert records(WRITTEN) == [b"hello", b"", b"world!"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (WRITTEN[:-1], "truncated record at 37' failed with Read less bytes than requested"),
        (WRITTEN[:14], "truncated record at 0' failed with Read less bytes than requested"),
        (b"\x04" + WRITTEN[1:], "corrupted record at 0 (Is this even a TFRecord file?)"),
        (WRITTEN[:13] + b"x" + WRITTEN[14:], "corrupted record at 12"),
    ],
)
def test_damage_is_found(content: bytes, message: str) -> None:
    """In TensorFlow 2.21's words."""
    with pytest.raises(DataLossError) as caught:
        records(content)
    assert caught.value.message == message


def test_a_header_that_is_cut_off_is_the_end() -> None:
    """As in TensorFlow 2.21."""
    assert records(WRITTEN[:25]) == [b"hello"]
