"""PNG files keep their pixels, and channels and depths change as in TensorFlow."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.devices.kernels.image_files.png_files import SIGNATURE
from partita.errors import InternalError, InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes
from tests.devices.kernels.image_files.pictures import decode, encode, picture

TYPES = {np.dtype(np.uint8): DataType.UINT8, np.dtype(np.uint16): DataType.UINT16}
SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4))
IMAGES: st.SearchStrategy[Array] = hnp.arrays(np.uint8, SHAPES) | hnp.arrays(np.uint16, SHAPES)


def chunk(name: bytes, body: bytes) -> bytes:
    """A part of a file."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def file(shape: tuple[int, int], depth: int, colour: int, rows: bytes, *parts: bytes, interlaced: int = 0) -> bytes:
    """A file of filtered rows."""
    head = struct.pack(">IIBBBBB", shape[1], shape[0], depth, colour, 0, 0, interlaced)
    return (
        SIGNATURE + chunk(b"IHDR", head) + b"".join(parts) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )


@given(IMAGES, st.integers(-1, 9))
def test_decoding_undoes_encoding(image: Array, compression: int) -> None:
    """Of both depths and all numbers of channels."""
    contents = encode("EncodePng", image, compression=compression)
    np.testing.assert_array_equal(decode("DecodePng", contents, dtype=TYPES[image.dtype]), image)


def test_a_batch_gives_a_file_each() -> None:
    """Of its shape."""
    images = np.stack([picture(4, 5), picture(4, 5) // 2])
    files = check_shapes("EncodePng", images)
    for contents, image in zip(files.tolist(), images, strict=True):
        np.testing.assert_array_equal(decode("DecodeImage", contents), image)


@pytest.mark.parametrize("channels", [2, 3, 4])
@pytest.mark.parametrize("kind", range(5))
def test_all_filters_of_wide_samples(channels: int, kind: int) -> None:
    """Each row filtered by its definition (ISO/IEC 15948, 9.2), kinds changing from row to row."""
    image = picture(6, 5, channels, np.uint16)
    raw = image.astype(">u2").view(np.uint8).reshape(6, -1).astype(int)
    step, rows = 2 * channels, b""
    for r, row in enumerate(raw):
        above = raw[r - 1] if r else np.zeros_like(row)
        left = np.concatenate([np.zeros(step, int), row[:-step]])
        corner = np.concatenate([np.zeros(step, int), above[:-step]])
        distances = [abs(value - (left + above - corner)) for value in (left, above, corner)]
        nearest = np.choose(np.argmin(distances, axis=0), [left, above, corner])
        filters = [np.zeros_like(row), left, above, (left + above) // 2, nearest]
        number = (kind + r) % 5
        rows += bytes([number]) + ((row - filters[number]) % 256).astype(np.uint8).tobytes()
    contents = file((6, 5), 16, {2: 4, 3: 2, 4: 6}[channels], rows)
    np.testing.assert_array_equal(decode("DecodePng", contents, dtype=DataType.UINT16), image)


def test_interlaced_wide_samples() -> None:
    """The rows of seven passes, one after the other."""
    image = picture(9, 11, 3, np.uint16)
    rows = b""
    for row, column, down, across in zip(
        (0, 0, 4, 0, 2, 0, 1), (0, 4, 0, 2, 0, 1, 0), (8, 8, 8, 4, 4, 2, 2), (8, 8, 4, 4, 2, 2, 1), strict=True
    ):
        rows += b"".join(b"\0" + line.astype(">u2").tobytes() for line in image[row::down, column::across])
    contents = file((9, 11), 16, 2, rows, interlaced=1)
    np.testing.assert_array_equal(decode("DecodePng", contents, dtype=DataType.UINT16), image)


def test_channels_are_added_and_dropped() -> None:
    """Gray is a weighted mean; alpha is opaque where it lacks. TensorFlow 2.21 gives these."""
    image = np.array([[[200, 100, 50], [10, 20, 30]]], np.uint8)
    contents = encode("EncodePng", image)
    assert decode("DecodePng", contents, channels=1).tolist() == [[[124], [18]]]
    assert decode("DecodePng", contents, channels=4)[..., 3].tolist() == [[255, 255]]
    gray = encode("EncodePng", image[..., :1])
    assert decode("DecodePng", gray, channels=3).tolist() == [[[200] * 3, [10] * 3]]


def test_depths_change() -> None:
    """The upper byte of wide samples; narrow ones are repeated in both bytes; parts of one in float32."""
    wide = encode("EncodePng", np.array([[[0x1234]]], np.uint16))
    assert decode("DecodePng", wide).item() == 0x12
    assert decode("DecodeImage", wide, dtype=DataType.FLOAT).item() == np.float32(0x1234) * np.float32(1 / 65535)
    narrow = encode("EncodePng", np.array([[[0x12]]], np.uint8))
    assert decode("DecodePng", narrow, dtype=DataType.UINT16).item() == 0x1212


def test_palettes_and_few_bits() -> None:
    """Colours of the palette, with alpha if it has one; added alpha of one bit is one. So does TensorFlow 2.21."""
    palette, alpha = chunk(b"PLTE", bytes(range(12))), chunk(b"tRNS", b"\x07\x08")
    plain = file((1, 4), 2, 3, b"\0\x1b", palette)
    assert decode("DecodePng", plain).tolist() == [[[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]]
    seen = decode("DecodePng", file((1, 4), 2, 3, b"\0\x1b", palette, alpha))
    assert seen[..., 3].tolist() == [[7, 8, 255, 255]]
    bits = file((1, 4), 1, 0, b"\0\xa0")
    assert decode("DecodePng", bits)[..., 0].tolist() == [[255, 0, 255, 0]]
    assert decode("DecodePng", bits, channels=4)[..., 3].tolist() == [[1] * 4]
    named = file((1, 4), 1, 0, b"\0\xa0", chunk(b"tRNS", b"\0\1"))
    assert decode("DecodePng", named, channels=4)[..., 3].tolist() == [[0, 255, 0, 255]]


def test_damage_and_wrong_arguments_are_refused() -> None:
    """In TensorFlow's words."""
    contents = encode("EncodePng", picture(5, 5))
    for size, message in ((60, "Invalid PNG data, size 60"), (20, "Invalid PNG. Failed to initialize decoder.")):
        with pytest.raises(InvalidArgumentError, match=message):
            decode("DecodePng", contents[:size])
    with pytest.raises(InvalidArgumentError, match=r"compression should be in \[-1,9\], got 10"):
        encode("EncodePng", picture(2, 2), compression=10)
    with pytest.raises(InvalidArgumentError, match="image must have 1, 2, 3, or 4 channels, got 5"):
        encode("EncodePng", picture(2, 2, 5))
    with pytest.raises(InternalError, match="PNG encoding failed at the following flattened batch indices: 0"):
        encode("EncodePng", picture(0, 2))
