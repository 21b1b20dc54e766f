"""Summaries of tensors in their serialised form, byte for byte as TensorFlow writes them.

scalar_summary([b"loss"], [0.5])    one value: tag "loss", simple_value 0.5
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from ....errors import InvalidArgumentError
from ...dtypes import Array, DataType
from ...protos import HistogramProto, Summary, SummaryMetadata
from ...tensor import numpy_to_tensor


class Histogram(NamedTuple):
    """How often values fall below ascending limits; `smallest` and `greatest` of no values are whatever came in."""

    smallest: float
    greatest: float
    number: float
    total: float
    total_of_squares: float
    limits: Sequence[float]
    counts: Sequence[float]


def scalar_summary(tags: Sequence[bytes], values: Sequence[float]) -> bytes:
    """One value per tag; InvalidArgumentError for a tag that is not UTF-8."""
    return _serialised(
        Summary.Value(tag=_text(tag), simple_value=value) for tag, value in zip(tags, values, strict=True)
    )


def histogram_summary(tag: bytes, histogram: Histogram) -> bytes:
    """One value with the histogram; InvalidArgumentError for a tag that is not UTF-8."""
    return _serialised([Summary.Value(tag=_text(tag), histo=_histogram_proto(histogram))])


def _histogram_proto(histogram: Histogram) -> HistogramProto:
    return HistogramProto(
        min=histogram.smallest,
        max=histogram.greatest,
        num=histogram.number,
        sum=histogram.total,
        sum_squares=histogram.total_of_squares,
        bucket_limit=histogram.limits,
        bucket=histogram.counts,
    )


def image_summary(tags: Sequence[bytes], shape: Sequence[int], files: Sequence[bytes]) -> bytes:
    """An encoded image per tag; all have the shape (height, width, channels)."""
    height, width, channels = shape
    return _serialised(
        Summary.Value(
            tag=_text(tag),
            image=Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file),
        )
        for tag, file in zip(tags, files, strict=True)
    )


def audio_summary(tags: Sequence[bytes], rate_hz: float, channels: int, frames: int, files: Sequence[bytes]) -> bytes:
    """A wave file per tag; all have this sample rate and these numbers of channels and frames."""
    sounds = (
        Summary.Audio(
            sample_rate=rate_hz,
            num_channels=channels,
            length_frames=frames,
            encoded_audio_string=file,
            content_type="audio/wav",
        )
        for file in files
    )
    return _serialised(Summary.Value(tag=_text(tag), audio=sound) for tag, sound in zip(tags, sounds, strict=True))


def node_tensor_summary(node: str, tensor: Array, dtype: DataType) -> bytes:
    """One value with a whole tensor, under the name of a node instead of a tag."""
    return _serialised([Summary.Value(node_name=node, tensor=numpy_to_tensor(tensor, dtype))])


def tensor_summary(tag: bytes, tensor: Array, dtype: DataType, metadata: bytes | None) -> bytes:
    """One value with a whole tensor and serialised SummaryMetadata, None for no metadata at all.

    InvalidArgumentError for a tag that is not UTF-8, and for metadata that cannot be parsed.
    """
    kept = None if metadata is None else _metadata(metadata)
    return _serialised([Summary.Value(tag=_text(tag), tensor=numpy_to_tensor(tensor, dtype), metadata=kept)])


def _metadata(data: bytes) -> SummaryMetadata:
    try:
        return SummaryMetadata.FromString(data)
    except DecodeError:
        raise InvalidArgumentError(f"summary metadata {data!r} is no serialised SummaryMetadata") from None


def merged_summaries(summaries: Sequence[bytes]) -> bytes:
    """All values of several summaries; InvalidArgumentError for damaged ones, and for a tag that occurs twice."""
    tags: set[str] = set()
    merged = Summary()
    for data in summaries:
        for value in _parsed(data).value:
            if value.tag in tags:
                raise InvalidArgumentError(f"Duplicate tag {value.tag} found in summary inputs ")
            tags |= {value.tag} - {""}  # values of TensorSummary have no tag
            merged.value.append(value)
    return merged.SerializeToString()


def _parsed(data: bytes) -> Summary:
    try:
        return Summary.FromString(data)
    except DecodeError:
        raise InvalidArgumentError("Could not parse one of the summary inputs") from None


def _text(tag: bytes) -> str:
    try:
        return tag.decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"the tag {tag!r} of a summary is not UTF-8") from None


def _serialised(values: Iterable[Summary.Value]) -> bytes:
    return Summary(value=values).SerializeToString()
