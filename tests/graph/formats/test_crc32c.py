"""The checksum is that of RFC 3720 for buffers of every length, in one piece or in several."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.graph.formats.crc32c import crc32c, masked, unmasked


def bit_by_bit(data: bytes) -> int:
    """The definition: division by the polynomial, one bit at a time."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_published_examples(data: bytes, expected: int) -> None:
    """RFC 3720, appendix B.4."""
    assert crc32c(data) == expected


@pytest.mark.parametrize("size", [127, 128, 255, 256, 257, 512, 2047, 4096, 4100, 65536, 131073, 200_001])
def test_long_buffers_have_the_checksum_of_the_definition(size: int) -> None:
    """Whatever rows they are folded in."""
    data = random.Random(size).randbytes(size)
    assert crc32c(data) == bit_by_bit(data)


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 7))
def test_a_checksum_can_be_continued(first: int, second: int, offset: int) -> None:
    """Also from an address that is no multiple of a word."""
    data = np.frombuffer(random.Random(first).randbytes(first + second + offset), np.uint8)[offset:]
    assert crc32c(data[first:], crc32c(data[:first])) == crc32c(data.tobytes())


@given(st.integers(0, 0xFFFFFFFF))
def test_masks_come_off(crc: int) -> None:
    """`unmasked` inverts `masked`."""
    assert unmasked(masked(crc)) == crc != masked(crc)
