"""Shape functions of summaries, which are one string each, of their writers, and of tensors that lie in files."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, no_outputs, scalar, shape_fn
from ...dtypes import Shape

shape_fn(
    "AudioSummary",
    "AudioSummaryV2",
    "HistogramSummary",
    "ImageSummary",
    "MergeSummary",
    "ScalarSummary",
    "SummaryWriter",
    "TensorSummary",
    "TensorSummaryV2",
)(scalar)
shape_fn(
    "CloseSummaryWriter",
    "CreateSummaryFileWriter",
    "FlushSummaryWriter",
    "ImportEvent",
    "WriteGraphSummary",
    "WriteHistogramSummary",
    "WriteRawProtoSummary",
    "WriteScalarSummary",
    "WriteSummary",
)(no_outputs)


@shape_fn("ImmutableConst")
def immutable_const(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the attr declares."""
    return (c.attrs["shape"],)
