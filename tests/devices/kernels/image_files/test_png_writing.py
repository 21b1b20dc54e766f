"""PNG files have libpng's filters, window and parts; values found with TensorFlow 2.21."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.devices.kernels.image_files.png_writing import write_png
from partita.graph.dtypes import Array

_Y, _X = np.mgrid[:6, :5]
_RAMPS = np.stack([_X * 10, _Y * 20 + _X, _X * _Y * 9], -1).astype(np.uint8)


def _parts(contents: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The names and bodies of a file's parts, whose checksums hold."""
    at = 8
    while at < len(contents):
        (size,) = struct.unpack_from(">I", contents, at)
        name, body = contents[at + 4 : at + 8], contents[at + 8 : at + 8 + size]
        assert contents[at + 8 + size : at + 12 + size] == struct.pack(">I", zlib.crc32(name + body))
        yield name, body
        at += size + 12


def _rows(image: Array, compression: int = -1) -> tuple[bytes, Array]:
    """The compressed rows, and uncompressed, each behind its filter."""
    packed = b"".join(body for name, body in _parts(write_png(image, compression)) if name == b"IDAT")
    return packed, np.frombuffer(zlib.decompress(packed), np.uint8).reshape(image.shape[0], -1)


@pytest.mark.parametrize(
    ("image", "filters"),
    [
        (_RAMPS, [1, 4, 4, 4, 4, 4]),
        (_RAMPS[:1], [1]),
        (_RAMPS[:, :1], [0, 0, 2, 2, 2, 2]),
        (_RAMPS[:1, :1], [0]),
        (_RAMPS[:4, :4, :1].astype(np.uint16) * 300, [3, 2, 2, 2]),
    ],
)
def test_filters_and_windows_are_those_libpng_takes(image: Array, filters: list[int]) -> None:
    packed, rows = _rows(image)
    assert rows[:, 0].tolist() == filters
    assert packed[:2] == b"\x08\x99"  # the smallest window, since the image is small


def test_compressed_data_come_in_parts_of_8192_bytes() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (70, 90, 2)).astype(np.uint8)
    parts = [(name, len(body)) for name, body in _parts(write_png(noise, -1))]
    names, sizes = zip(*parts, strict=True)
    assert names == (b"IHDR", b"IDAT", b"IDAT", b"IEND")
    assert sizes[1] == 8192


@given(
    hnp.arrays(np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4))),
    st.integers(0, 9),
)
def test_no_row_is_larger_in_magnitude_than_unfiltered(image: Array, compression: int) -> None:
    """The bytes of a row read as signed: the filter taken has the least sum."""
    _, rows = _rows(image, compression)
    taken = np.abs(rows[:, 1:].view(np.int8).astype(int)).sum(1)
    plain = np.abs(image.reshape(len(image), -1).view(np.int8).astype(int)).sum(1)
    assert (taken <= plain).all()
    assert ((rows[:, 0] == 0) == (taken == plain)).all()


def test_a_transposed_image_is_written_like_any_other() -> None:
    """A view whose channels are not next to each other gives the same file as its copy in row-major order."""
    for dtype in (np.uint8, np.uint16):
        image = np.arange(24, dtype=dtype).reshape(3, 4, 2).T
        assert write_png(image, -1) == write_png(np.ascontiguousarray(image), -1)
