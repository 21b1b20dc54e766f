"""Shape functions of summaries, which are one string each, and of their writers."""

from __future__ import annotations

from ...analysis.shape_functions import no_outputs, scalar, shape_fn

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
