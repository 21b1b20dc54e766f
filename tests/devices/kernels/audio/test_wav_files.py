"""Wave files survive a round trip, and Python's own module reads them."""

from __future__ import annotations

import io
import struct
import wave
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.devices.kernels.strings.each_string import strings
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, shapes

SAMPLES = hnp.arrays(np.int16, st.tuples(st.integers(0, 9), st.integers(1, 3)))


def decode(contents: bytes, **attrs: Any) -> tuple[Array, int]:
    """Samples and rate."""
    samples, rate = check_shapes("DecodeWav", strings([contents], ()), **attrs)
    return samples, int(rate)


def encode(audio: Array, rate: int = 16000) -> bytes:
    """The contents of a file."""
    return bytes(check_shapes("EncodeWav", audio, np.int32(rate)).item())


def chunk(name: bytes, body: bytes) -> bytes:
    """A part of a file."""
    return name + struct.pack("<I", len(body)) + body


def file(
    body: bytes = b"\1\0\2\0",
    before: bytes = b"",
    between: bytes = b"",
    bits: int = 16,
    code: int = 1,
    channels: int = 1,
) -> bytes:
    """A file with these samples, and with further parts around the format."""
    frame = channels * bits // 8
    head = struct.pack("<HHIIHH", code, channels, 8000, 8000 * frame, frame, bits)
    parts = b"WAVE" + before + chunk(b"fmt ", head) + between + chunk(b"data", body)
    return chunk(b"RIFF", parts)


@given(SAMPLES, st.sampled_from([8000, 44100]))
def test_decoding_undoes_encoding(samples: Array, rate: int) -> None:
    """Exactly, since a sample is a multiple of 1 / 32768."""
    audio = samples.astype(np.float32) / np.float32(32768)
    contents = encode(audio, rate)
    decoded, found = decode(contents)
    np.testing.assert_array_equal(decoded, audio)
    assert found == rate
    with wave.open(io.BytesIO(contents)) as reader:
        assert (reader.getnchannels(), reader.getframerate(), reader.getsampwidth()) == (samples.shape[1], rate, 2)
        assert reader.readframes(len(samples)) == samples.tobytes()


def test_samples_are_cut_and_rounded() -> None:
    """Halves away from zero; what is no number is silence. TensorFlow 2.21 gives these."""
    audio = np.array([[0, 0.5, -1, 1, 1.5, -1.5, 0.5 / 32768, 1.5 / 32768, -0.5 / 32768, np.nan]], np.float32).T
    samples = np.frombuffer(encode(audio)[44:], "<i2")
    assert samples.tolist() == [0, 16384, -32768, 32767, 32767, -32768, 1, 2, -1, 0]


def test_wanted_sizes_cut_and_fill() -> None:
    """The last channel is repeated, samples are zero."""
    audio = np.array([[0.25, 0.5], [-0.25, -0.5]], np.float32)
    contents = encode(audio)
    np.testing.assert_array_equal(decode(contents, desired_channels=1)[0], audio[:, :1])
    wide = decode(contents, desired_channels=3, desired_samples=3)[0]
    np.testing.assert_array_equal(wide, [[0.25, 0.5, 0.5], [-0.25, -0.5, -0.5], [0, 0, 0]])


def test_other_parts_are_skipped() -> None:
    """Some before the format, any behind it."""
    for contents in (file(before=chunk(b"JUNK", b"abcd")), file(between=chunk(b"LIST", b"abcd"))):
        assert decode(contents)[0].tolist() == [[1 / 32768], [2 / 32768]]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "Data too short when trying to read string"),
        (file()[:-2], "Data too short when trying to read string"),
        (b"RIFX" + file()[4:], "Header mismatch: Expected RIFF but found RIFX"),
        (file().replace(b"WAVE", b"WAVF"), "Header mismatch: Expected WAVE but found WAVF"),
        (file(before=chunk(b"LIST", b"")), "Unexpected field LIST"),
        (file(bits=8), "Can only read 16-bit WAV files, but received 8"),
        (file(code=3), "Bad audio format for WAV: Expected 1 (PCM), but got3"),
        (file(channels=0), "Bad number of channels for WAV: Expected at least 1, but got 0"),
        (file(between=chunk(b"data", b"")), "More than one data chunk found in WAV"),
        (file().replace(b"data", b"datx"), "No data chunk found in WAV"),
        (
            file().replace(struct.pack("<I", 16000), struct.pack("<I", 1)),
            "Bad bytes per second in WAV header: Expected 16000 but got 1 (sample_rate=8000, bytes_per_sample=2)",
        ),
        (
            file().replace(struct.pack("<I", 16), struct.pack("<I", 20)),
            "Bad format chunk size for WAV: Expected 16 or 18, but got20",
        ),
    ],
)
def test_other_files_are_refused(contents: bytes, message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError) as error:
        decode(contents)
    assert str(error.value) == message


def test_wrong_arguments_are_refused() -> None:
    """Ranks, rates and sizes."""
    with pytest.raises(InvalidArgumentError, match=r"audio must be 2-dimensional\[3\]"):
        encode(np.zeros(3, np.float32))
    with pytest.raises(InvalidArgumentError, match=r"sample_rate must be in \(0, 2\^32\), got: 0"):
        encode(np.zeros((3, 1), np.float32), 0)
    with pytest.raises(InvalidArgumentError, match=r"num_channels must be in \(0, 2\^16\), got: 0"):
        encode(np.zeros((3, 0), np.float32))
    with pytest.raises(InvalidArgumentError, match="desired_channels must be >= -1, got -2"):
        decode(file(), desired_channels=-2)
    with pytest.raises(InvalidArgumentError, match="samples must be non-negative, got -2"):
        shapes("DecodeWav", (), desired_samples=-2)
