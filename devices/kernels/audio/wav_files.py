"""Kernels of wave files: RIFF containers of 16-bit PCM samples.

    RIFF size WAVE | fmt  16 format channels rate bytes/s bytes/frame bits | data size samples

Samples are little-endian, the channels of one moment beside each other. As numbers they are divided by 32768.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel, simple
from ..strings.each_string import strings

_PCM, _BITS, _FULL = 1, 16, 32768
_BEFORE_FORMAT = (b"JUNK", b"bext", b"iXML", b"qlty", b"mext", b"levl", b"link", b"axml")
_LARGEST = 2**31 - 1


@dataclass(slots=True)
class _Reader:
    """Bytes and the position of the next one; InvalidArgumentError behind the end."""

    data: bytes
    position: int = 0

    def take(self, size: int) -> bytes:
        start, self.position = self.position, self.position + size
        require(self.position <= len(self.data), "Data too short when trying to read string")
        return self.data[start : self.position]

    def numbers(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def expect(self, text: bytes) -> None:
        found = self.take(len(text))
        require(found == text, f"Header mismatch: Expected {_shown(text)} but found {_shown(found)}")


def _shown(text: bytes) -> str:
    return text.decode(errors="replace")


def _read_format(reader: _Reader) -> tuple[int, int]:
    """The number of channels and the sample rate in Hz."""
    name = reader.take(4)
    while name in _BEFORE_FORMAT:
        reader.take(reader.numbers("<I")[0])
        name = reader.take(4)
    require(name == b"fmt ", f"Unexpected field {_shown(name)}")
    (size,) = reader.numbers("<I")
    require(size in (16, 18), f"Bad format chunk size for WAV: Expected 16 or 18, but got{size}")
    code, channels, rate, bytes_per_s, bytes_per_frame, bits = reader.numbers("<HHIIHH")
    reader.take(size - 16)
    require(code == _PCM, f"Bad audio format for WAV: Expected 1 (PCM), but got{code}")
    require(channels > 0, "Bad number of channels for WAV: Expected at least 1, but got 0")
    require(bits == _BITS, f"Can only read 16-bit WAV files, but received {bits}")
    frame = 2 * channels
    require(bytes_per_frame == frame, f"Bad bytes per sample in WAV header: Expected {frame} but got {bytes_per_frame}")
    if bytes_per_s != frame * rate:
        raise InvalidArgumentError(
            f"Bad bytes per second in WAV header: Expected {frame * rate} but got {bytes_per_s} "
            f"(sample_rate={rate}, bytes_per_sample={frame})"
        )
    return channels, rate


def read_wav(contents: bytes) -> tuple[Array, int]:
    """Samples [samples, channels] as int16, and the sample rate in Hz; InvalidArgumentError for other formats."""
    reader = _Reader(contents)
    reader.expect(b"RIFF")
    reader.take(4)
    reader.expect(b"WAVE")
    channels, rate = _read_format(reader)
    samples: Array | None = None
    while reader.position < len(contents):
        name = reader.take(4)
        (size,) = reader.numbers("<I")
        if name == b"data":
            require(samples is None, "More than one data chunk found in WAV")
            frames = size // (2 * channels)
            samples = np.frombuffer(reader.take(2 * frames * channels), "<i2").reshape(frames, channels)
        else:
            if size > _LARGEST:
                raise InvalidArgumentError(
                    f"WAV data chunk '{_shown(name)}' is too large: {size} bytes, but the limit is {_LARGEST}"
                )
            reader.position += size
    if samples is None:
        raise InvalidArgumentError("No data chunk found in WAV")
    return samples, rate


@kernel("DecodeWav")
def decode_wav(node: Construction) -> Kernel:
    """Samples in [-1, 1) and the rate; wanted channels that the file lacks repeat its last one, samples are zero."""
    wanted = node.attrs["desired_samples"], node.attrs["desired_channels"]
    for what, size in zip(("samples", "channels"), wanted, strict=True):
        require(size >= -1, f"desired_{what} must be >= -1, got {size}")

    def run(contents: Array) -> tuple[Array, np.int32]:
        shape = np.shape(contents)
        require(not shape, f"contents must be scalar, got shape {shape_text(shape)}")
        samples, rate = read_wav(np.asarray(contents).item())
        rows, columns = (has if want < 0 else want for want, has in zip(wanted, samples.shape, strict=True))
        result = np.zeros((rows, columns), np.float32)
        part = samples[:rows, np.minimum(np.arange(columns), samples.shape[1] - 1)]
        np.divide(part, np.float32(_FULL), out=result[: len(part)])
        return result, np.int32(rate)

    return run


def encode_wav(audio: Array, sample_rate: Array) -> Array:
    """A wave file; samples outside of [-1, 1] are cut, halves are rounded away from zero."""
    shape = np.shape(sample_rate)
    require(audio.ndim == 2, f"audio must be 2-dimensional{shape_text(audio.shape)}")
    require(not shape, f"Input sample_rate should be a scalar tensor, got {shape_text(shape)} instead.")
    channels, rate = audio.shape[1], int(sample_rate)
    require(rate > 0, f"sample_rate must be in (0, 2^32), got: {rate % 2**64}")
    require(0 < channels < 2**16, f"num_channels must be in (0, 2^16), got: {channels}")
    scaled = np.clip(np.nan_to_num(audio * np.float32(_FULL), nan=0.0), -_FULL, _FULL - 1)
    body = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype("<i2").tobytes()
    frame = 2 * channels
    head = struct.pack("<4sI4s4sI", b"RIFF", 36 + len(body), b"WAVE", b"fmt ", 16)
    head += struct.pack("<HHIIHH", _PCM, channels, rate, rate * frame % 2**32, frame % 2**16, _BITS)
    return strings([head + struct.pack("<4sI", b"data", len(body)) + body], ())


simple("EncodeWav", encode_wav)
