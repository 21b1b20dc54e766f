"""JPEG files give TensorFlow's pixels and are written with its bytes."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InternalError, InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import shapes
from tests.devices.kernels.image_files.pictures import decode, encode, picture

FILE = encode("EncodeJpeg", picture(33, 40), quality=80)
# Digests of what TensorFlow 2.21 gives.
DECODED = [
    ({}, "883cfe43fe19"),
    ({"channels": 1}, "233d514f508e"),
    ({"fancy_upscaling": False}, "8c959ca27794"),
    ({"dct_method": "INTEGER_ACCURATE"}, "c23e009c6ab9"),
    ({"ratio": 2}, "d8433e8cb741"),
    ({"ratio": 4, "channels": 3}, "906edfa269cb"),
    ({"ratio": 8}, "a11f5689611c"),
]
CROPPED = [
    ([0, 0, 33, 40], "883cfe43fe19"),
    ([11, 13, 16, 20], "7087a4c8b935"),
    ([1, 35, 30, 5], "aa1242ff6c77"),
    ([32, 0, 1, 3], "39791725e731"),
]
ENCODED = [
    ({}, 3, "3d663643b595"),
    ({}, 1, "a5dc775bbf30"),
    ({"quality": 10}, 3, "8a348afa7d0b"),
    ({"chroma_downsampling": False}, 3, "e7ad933abbe8"),
    ({"progressive": True}, 3, "43e83a5862e0"),
    ({"optimize_size": True}, 3, "b99cc694aee9"),
    ({"density_unit": "cm", "x_density": 10, "y_density": 20}, 3, "24b5914619b2"),
    ({"xmp_metadata": "abc", "format": "grayscale"}, 1, "ed1f7e458d5c"),
]


def digest(data: bytes) -> str:
    """A short name of some bytes."""
    return hashlib.sha256(data).hexdigest()[:12]


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3]), st.booleans(), st.booleans())
def test_pixels_survive_nearly(height: int, width: int, channels: int, progressive: bool, plain: bool) -> None:
    """Sizes and channels exactly, colours up to what the compression takes away."""
    image = picture(height, width, channels)
    attrs = {"progressive": progressive, "chroma_downsampling": not plain}
    contents = encode("EncodeJpeg", image, quality=95, **attrs)
    found = decode("DecodeJpeg", contents)
    assert found.shape == image.shape
    assert np.abs(found.astype(int) - image).mean() < 12
    assert decode("ExtractJpegShape", contents).tolist() == [height, width, channels]


@pytest.mark.parametrize(("attrs", "expected"), DECODED)
def test_pixels_of_tensorflow(attrs: dict[str, Any], expected: str) -> None:
    """TensorFlow 2.21 decodes the same file to the same pixels, with either chroma and transform, and scaled."""
    assert digest(decode("DecodeJpeg", FILE, **attrs).tobytes()) == expected


@pytest.mark.parametrize(("window", "expected"), CROPPED)
def test_a_part_as_tensorflow_cuts_it(window: list[int], expected: str) -> None:
    """Chroma is smooth up to the edge of the part only, so that it differs a little from a part of the whole."""
    part = decode("DecodeAndCropJpeg", FILE, np.array(window, np.int32))
    assert part.shape == (*window[2:], 3)
    assert digest(part.tobytes()) == expected
    whole = decode("DecodeJpeg", FILE)[window[0] :, window[1] :][: window[2], : window[3]]
    assert np.abs(part.astype(int) - whole).max() < 40


@pytest.mark.parametrize(("attrs", "channels", "expected"), ENCODED)
def test_bytes_of_tensorflow(attrs: dict[str, Any], channels: int, expected: str) -> None:
    """TensorFlow 2.21 writes the same bytes."""
    assert digest(encode("EncodeJpeg", picture(33, 40, channels), **attrs)) == expected


def test_the_quality_may_be_an_input() -> None:
    """The file is that of the attr."""
    image = picture(9, 9)
    assert encode("EncodeJpegVariableQuality", image, np.array(30, np.int32)) == encode("EncodeJpeg", image, quality=30)


def test_channels_are_converted() -> None:
    """Gray is luma; gray files become three equal channels."""
    gray = decode("DecodeJpeg", FILE, channels=1)
    assert gray.shape == (33, 40, 1)
    again = encode("EncodeJpeg", gray, quality=100)
    colours = decode("DecodeJpeg", again, channels=3)
    assert (colours == colours[..., :1]).all()


def test_a_truncated_file_may_be_read_as_far_as_it_goes() -> None:
    """The beginning is that of the whole file."""
    with pytest.raises(InvalidArgumentError, match="Invalid JPEG data or crop window"):
        decode("DecodeJpeg", FILE[:-100])
    found = decode("DecodeJpeg", FILE[:-100], try_recover_truncated=True)
    np.testing.assert_array_equal(found[:8], decode("DecodeJpeg", FILE)[:8])


def test_wrong_arguments_are_refused() -> None:
    """In TensorFlow's words."""
    cases: list[tuple[str, dict[str, Any]]] = [
        ("ratio must be 1, 2, 4, or 8, got 3", {"ratio": 3}),
        ("JPEG does not support 4 channels", {"channels": 4}),
        ("`channels` must be 0, 1, 3 or 4 but got 2", {"channels": 2}),
        ("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}", {"dct_method": "X"}),
    ]
    for message, attrs in cases:
        with pytest.raises(InvalidArgumentError) as error:
            decode("DecodeJpeg", FILE, **attrs)
        assert str(error.value) == message
    for window in ([0, 0, 34, 1], [-1, 0, 3, 3], [0, 0, 0, 3], [0, 40, 1, 1]):
        with pytest.raises(InvalidArgumentError, match="Invalid JPEG data or crop window"):
            decode("DecodeAndCropJpeg", FILE, np.array(window, np.int32))
    with pytest.raises(InvalidArgumentError, match="Invalid JPEG data, size 3"):
        decode("ExtractJpegShape", b"abc", output_type=DataType.INT64)


@pytest.mark.parametrize(
    ("image", "attrs", "message"),
    [
        (picture(2, 2), {"quality": 101}, "quality must be in [0,100], got 101"),
        (picture(2, 2), {"format": "grayscale"}, "format grayscale expects 1 channels, got [2,2,3]"),
        (picture(2, 2, 4), {}, "image must have 1 or 3 channels, got [2,2,4]"),
        (picture(2, 2)[0], {}, "image must be 3-dimensional[2,3]"),
    ],
)
def test_wrong_images_are_refused(image: Array, attrs: dict[str, Any], message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError) as error:
        encode("EncodeJpeg", image, **attrs)
    assert str(error.value) == message


def test_an_image_without_pixels_has_no_file() -> None:
    """An error of the encoder."""
    with pytest.raises(InternalError, match="JPEG encoding failed"):
        encode("EncodeJpeg", picture(0, 2))


def test_the_shape_of_a_part_is_in_its_window() -> None:
    """If that is known."""
    window = np.array([1, 2, 3, 4], np.int32)
    assert shapes("DecodeAndCropJpeg", (), window, channels=3) == [(3, 4, 3)]
    assert shapes("DecodeAndCropJpeg", (), (4,)) == [(None, None, None)]
    with pytest.raises(InvalidArgumentError, match="channels must be non-negative, got -1"):
        shapes("DecodeJpeg", (), channels=-1)
