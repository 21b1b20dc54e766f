"""Kernels that describe tensors for TensorBoard: serialised summaries, as `graph/ops/files/summaries.py` makes them."""

from __future__ import annotations

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.files.summaries import (
    histogram_summary,
    merged_summaries,
    node_tensor_summary,
    scalar_summary,
    tensor_summary,
)
from ..checks import require
from ..registry import Construction, Kernel, kernel, simple
from .histogram import histogram_of


def _scalars(tags: Array, values: Array) -> Array:
    tags, values = np.asarray(tags), np.asarray(values)
    if tags.shape != values.shape:
        single = f" (tag '{tags.item().decode(errors='replace')}')" if tags.size == 1 else ""
        shapes = f"{shape_text(tags.shape)} != {shape_text(values.shape)}"
        require(False, f"tags and values are not the same shape: {shapes}{single}")
    numbers = values.reshape(-1).astype(np.float32).tolist()
    return np.array(scalar_summary(tags.reshape(-1).tolist(), numbers), object)


simple("ScalarSummary", _scalars)


@kernel("HistogramSummary")
def histogram(node: Construction) -> Kernel:
    """One histogram of all values."""
    name = node.name

    def summarise(tag: Array, values: Array) -> Array:
        require(np.ndim(tag) == 0, "tags must be scalar")
        counted = histogram_of(np.asarray(values), name, "Infinity in Histogram")
        return np.array(histogram_summary(np.asarray(tag).item(), counted), object)

    return summarise


def _merged(*inputs: Array) -> Array:
    data = [summary for value in inputs for summary in np.asarray(value).reshape(-1).tolist()]
    return np.array(merged_summaries(data), object)


simple("MergeSummary", _merged)


@kernel("TensorSummary")
def tensor_by_node(node: Construction) -> Kernel:
    """A whole tensor under the name of the node."""
    name, dtype = node.name, node.input_types[0]
    return lambda tensor: np.array(node_tensor_summary(name, np.asarray(tensor), dtype), object)


@kernel("TensorSummaryV2")
def tensor_by_tag(node: Construction) -> Kernel:
    """A whole tensor under a tag, with metadata for a plugin of TensorBoard."""
    dtype = node.input_types[1]

    def summarise(tag: Array, tensor: Array, metadata: Array) -> Array:
        require(np.ndim(tag) == 0, "tag must be scalar")
        require(np.ndim(metadata) == 0, "serialized_summary_metadata must be scalar")
        name, data = np.asarray(tag).item(), np.asarray(metadata).item()
        return np.array(tensor_summary(name, np.asarray(tensor), dtype, data), object)

    return summarise
