"""Summaries of images and sounds hold files that the codecs read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.devices.kernels.strings.each_string import strings
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from partita.graph.protos import Summary
from tests.devices.kernels.harness import check_shapes, run

TAG = strings([b"tag"], ())
RAMP = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
SOUND = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 3, 2)


def entries(data: Any) -> list[Any]:
    """The values of a serialised summary."""
    return list(Summary.FromString(data.item()).value)


def levels(images: Array, **attrs: Any) -> list[list[int]]:
    """The pixels of all images in a summary."""
    values = entries(check_shapes("ImageSummary", TAG, images, **attrs))
    files = [strings([value.image.encoded_image_string], ()) for value in values]
    return [run("DecodePng", file).reshape(-1).tolist() for file in files]


def test_positive_images_are_scaled_to_white() -> None:
    """In the arithmetic of their own type. TensorFlow 2.21 gives these."""
    expected = [0, 23, 46, 69, 92, 115, 139, 162, 185, 208, 231, 255]
    assert levels(RAMP) == levels(RAMP * 100) == [expected]
    assert levels(RAMP.astype(np.float16)) == [expected]
    assert levels(RAMP.astype(np.float64)) == [[*expected[:-1], 254]]
    assert levels(RAMP.astype(np.uint8)) == [list(range(12))]
    assert levels(RAMP * np.float32(1e-30)) == [[0] * 12]


def test_negative_images_have_a_gray_zero() -> None:
    """TensorFlow 2.21 gives these."""
    assert levels(RAMP - 6) == [[1, 22, 43, 64, 85, 106, 128, 149, 170, 191, 212, 233]]
    assert levels(-RAMP) == [[128, 116, 104, 93, 81, 70, 58, 47, 35, 24, 12, 0]]


def test_pixels_that_are_not_finite_have_the_bad_colour() -> None:
    """Their other values do not count. TensorFlow 2.21 gives these."""
    broken = RAMP - 6
    broken[0, 0, 0, 1] = np.nan
    assert levels(broken) == [[255, 0, 0, 51, 77, 102, 128, 153, 178, 204, 229, 255]]
    assert levels(broken, bad_color=np.array([1, 2, 3], np.uint8))[0][:3] == [1, 2, 3]


def test_tags_are_numbered_if_there_may_be_several() -> None:
    """By the attr, not by the batch."""
    images = np.arange(20, dtype=np.float32).reshape(5, 2, 2, 1)
    assert [value.tag for value in entries(run("ImageSummary", TAG, images))] == [f"tag/image/{i}" for i in range(3)]
    (only,) = entries(run("ImageSummary", TAG, images, max_images=1))
    assert (only.tag, only.image.height, only.image.width, only.image.colorspace) == ("tag/image", 2, 2, 1)


def test_bytes_of_tensorflow() -> None:
    """TensorFlow 2.21 gives these."""
    sound = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)[:1]
    found = check_shapes("AudioSummaryV2", TAG, sound, np.float32(8000)).item()
    head = b'\n]\n\x0btag/audio/02N\r\x00\x00\xfaE\x10\x01\x18\x06"8RIFF0\x00\x00\x00WAVEfmt '
    assert found.startswith(head)
    assert found.endswith(b"\x00\x80F\x97\x8c\xae\xd1\xc5\x17\xdd]\xf4*\taudio/wav")


def test_sounds_of_two_channels() -> None:
    """The first version has the rate as an attr."""
    (only,) = entries(check_shapes("AudioSummary", TAG, SOUND, sample_rate=8000.0, max_outputs=1))
    sound = only.audio
    assert (only.tag, sound.sample_rate, sound.num_channels, sound.length_frames) == ("tag/audio", 8000, 2, 3)
    samples, rate = run("DecodeWav", strings([sound.encoded_audio_string], ()))
    np.testing.assert_allclose(samples, SOUND[0], atol=1e-4)
    assert rate == 8000


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("ImageSummary", (TAG, RAMP[0]), r"Tensor must be 4-D with last dim 1, 3, or 4, not \[2,2,3\]"),
        ("ImageSummary", (TAG, RAMP[:, :0]), r"input tensor must have non-zero dims. Found: \[1, 0, 2, 3\]"),
        ("ImageSummary", (TAG.reshape(1), RAMP), "Tags must be a scalar"),
        ("AudioSummaryV2", (TAG, SOUND[0, 0], np.float32(1)), r"Tensor must be 3-D or 2-D, got: \[2\]"),
        ("AudioSummaryV2", (TAG, SOUND, np.float32(0)), "sample_rate must be > 0"),
        ("AudioSummaryV2", (TAG.reshape(1), SOUND, np.float32(1)), "Tag must be a scalar"),
    ],
)
def test_wrong_inputs_are_refused(op: str, inputs: tuple[Array, ...], message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=message):
        run(op, *inputs)


@pytest.mark.parametrize("most", [1, 3])
def test_no_entries_are_an_empty_summary(most: int) -> None:
    """As in TensorFlow, however many there may be."""
    assert run("ImageSummary", TAG, RAMP[:0], max_images=most) == b""
    assert run("AudioSummary", TAG, SOUND[:0], max_outputs=most, sample_rate=8000.0) == b""


def test_the_bad_colour_has_enough_channels() -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match="got depth = 3, bad_color"):
        run("ImageSummary", TAG, RAMP, bad_color=np.zeros(2, np.uint8))
