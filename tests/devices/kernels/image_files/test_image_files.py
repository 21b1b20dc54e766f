"""BMP and GIF files, files of any format, and what happens without Pillow."""

from __future__ import annotations

import io
import struct
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import shapes
from tests.devices.kernels.image_files.pictures import decode, encode, picture


def bmp(image: Array, downwards: bool = False, bits: int | None = None) -> bytes:
    """An uncompressed BMP file."""
    height, width, channels = image.shape
    pixels = image if channels == 1 else np.concatenate([image[..., 2::-1], image[..., 3:]], axis=2)
    rows = [row.tobytes() + b"\0" * (-width * channels % 4) for row in (pixels if downwards else pixels[::-1])]
    header = struct.pack("<IiiHHIIiiII", 40, width, -height if downwards else height, 1, bits or 8 * channels, *[0] * 6)
    body = header + b"".join(rows)
    return b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, 54) + body


def gif(frames: list[Image.Image], **options: int) -> bytes:
    """A GIF file, written by Pillow."""
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=50, **options)
    return file.getvalue()


@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3, 4]), st.booleans())
def test_bmp_files_keep_their_pixels(height: int, width: int, channels: int, downwards: bool) -> None:
    """Alpha is added or dropped, gray repeated."""
    image = picture(height, width, channels)
    contents = bmp(image, downwards)
    np.testing.assert_array_equal(decode("DecodeBmp", contents), image)
    colours = decode("DecodeImage", contents, channels=3)
    np.testing.assert_array_equal(colours, np.broadcast_to(image[..., :3], (height, width, 3)))
    alpha = decode("DecodeBmp", contents, channels=4)[..., 3]
    np.testing.assert_array_equal(alpha, image[..., 3] if channels == 4 else np.full((height, width), 255))


def test_other_bmp_files_are_refused() -> None:
    """In TensorFlow's words."""
    for contents, message in (
        (bmp(picture(2, 2))[:20], "Incomplete bmp content, requires at least 32 bytes to find the header size"),
        (
            bmp(picture(2, 2))[:60],
            r"Input size should match \(header_size \+ row_size \* abs_height\) but they differ by -10",
        ),
        (bmp(picture(2, 2), bits=1), "Number of channels inherent in the image must be 1, 3 or 4, was 0"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            decode("DecodeBmp", contents)
    with pytest.raises(InvalidArgumentError, match="`channels` must be 0, 3 or 4 for BMP, but got 1"):
        decode("DecodeBmp", bmp(picture(2, 2)), channels=1)


@pytest.mark.parametrize("disposal", range(4))
def test_frames_are_painted_over_each_other(disposal: int) -> None:
    """Transparent pixels show the frame before, whatever the disposal says; TensorFlow 2.21 does so."""
    images = [np.zeros((4, 5, 4), np.uint8) for _ in range(3)]
    for k, image in enumerate(images):
        image[k:, k:] = (50 * (k + 1), 0, 0, 255)
    found = decode("DecodeGif", gif([Image.fromarray(image) for image in images], disposal=disposal))
    canvas = np.zeros((4, 5, 3), np.uint8)
    assert found.shape == (3, 4, 5, 3)
    for k, image in enumerate(images):
        canvas = np.where(image[..., 3:] > 0, image[..., :3], canvas)
        np.testing.assert_array_equal(found[k], canvas)


def test_animations_may_be_cut_to_their_first_frame() -> None:
    """DecodeImage gives all frames or one; the ops for one image refuse more."""
    colours = [Image.new("P", (3, 2), k) for k in (0, 1)]
    for k, frame in enumerate(colours):
        frame.putpalette([10, 20, 30, 40, 50, 60])
        assert frame.getpixel((0, 0)) == k
    contents = gif(colours)
    assert decode("DecodeImage", contents).shape == (2, 2, 3, 3)
    assert decode("DecodeImage", contents, expand_animations=False).tolist() == [[[10, 20, 30]] * 3] * 2
    assert decode("DecodePng", gif(colours[:1])).shape == (2, 3, 3)
    with pytest.raises(InvalidArgumentError, match="Got 2 frames, but animated gifs can only be decoded by"):
        decode("DecodePng", contents)
    with pytest.raises(InvalidArgumentError, match="channels must be 0 or 3 for GIF, got 1"):
        decode("DecodeImage", contents, channels=1)


def test_a_gif_file_that_ends_early() -> None:
    """Whole frames are given; a file without one is refused."""
    contents = gif([Image.fromarray(picture(8, 8) // (k + 1)) for k in range(3)])
    assert len(decode("DecodeGif", contents[:-40])) == 2
    with pytest.raises(InvalidArgumentError, match=r"Invalid GIF data \(size 20\), failed to open gif file"):
        decode("DecodeGif", contents[:20])


def test_formats_are_told_by_their_first_bytes() -> None:
    """Most ops read several."""
    image = picture(4, 4)
    png, jpeg = encode("EncodePng", image), encode("EncodeJpeg", image)
    np.testing.assert_array_equal(decode("DecodeJpeg", png), image)
    np.testing.assert_array_equal(decode("DecodePng", jpeg), decode("DecodeJpeg", jpeg))
    np.testing.assert_array_equal(decode("DecodeGif", png), image[None])
    wide = decode("DecodeImage", jpeg, dtype=DataType.UINT16)
    np.testing.assert_array_equal(wide, decode("DecodeJpeg", jpeg).astype(np.uint16) * 256)
    parts = decode("DecodeImage", jpeg, dtype=DataType.FLOAT)
    np.testing.assert_allclose(parts, decode("DecodeJpeg", jpeg) / 255, rtol=1e-6)


@pytest.mark.parametrize(
    ("op", "contents", "message"),
    [
        ("DecodePng", bmp(picture(2, 2)), "Trying to decode BMP format using a wrong op. Use `decode_bmp` or"),
        ("DecodeBmp", b"GIF89a", "Trying to decode GIF format using DecodeBmp op. Use `decode_gif` or"),
        ("DecodeImage", b"abcd", "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required."),
        ("DecodeImage", b"", "Input is empty."),
    ],
)
def test_other_formats_are_refused(op: str, contents: bytes, message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=message):
        decode(op, contents)


def test_without_pillow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    jpeg = encode("EncodeJpeg", picture(2, 2))
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(UnimplementedError, match=r"pip install 'partita\[images\]'"):
        decode("DecodeJpeg", jpeg)


def test_shapes_before_the_run() -> None:
    """An animation has an axis of its own."""
    assert shapes("DecodeGif", ()) == [(None, None, None, 3)]
    assert shapes("DecodeImage", ()) == [None]
    assert shapes("DecodeImage", (), expand_animations=False, channels=3) == [(None, None, 3)]
    assert shapes("EncodePng", (2, None, 3, 4, 1)) == [(2, None)]
