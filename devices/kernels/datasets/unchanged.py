"""Kernels of datasets that have the elements of their inputs: what they say concerns how TensorFlow computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Factory, Kernel, kernel
from .dataset import Dataset, ElementSpec
from .transformation import Unchanged, count_of, transforming


@kernel(
    "ModelDataset",
    "FinalizeDataset",
    "NonSerializableDataset",
    "ExperimentalNonSerializableDataset",
    "ThreadPoolDataset",
    "ExperimentalThreadPoolDataset",
    "LatencyStatsDataset",
    "ExperimentalLatencyStatsDataset",
    "BytesProducedStatsDataset",
    "ExperimentalBytesProducedStatsDataset",
)
def same_elements(node: Construction) -> Kernel:
    """The same elements: the op only says how TensorFlow should compute them, or what it should measure."""
    return transforming(node, lambda form, source, *_others: Unchanged(form, source))


def _checking(check: Callable[[Array], object]) -> Factory:
    """A kernel that only checks the inputs beside the dataset, whose elements it leaves as they are."""

    def kernel_of(node: Construction) -> Kernel:
        def make(form: ElementSpec, source: Dataset, *others: Array) -> Dataset:
            for value in others:
                check(value)
            return Unchanged(form, source)

        return transforming(node, make)

    return kernel_of


def _check_threads(value: Array) -> None:
    """InvalidArgumentError unless the number is not negative as TensorFlow takes it, with 32 bits."""
    require(int(np.int64(count_of(value)).astype(np.int32)) >= 0, "`num_threads` must be >= 0")


def _check_names(value: Array) -> None:
    require(np.ndim(value) == 1, f"optimizations must be a vector, not of shape {shape_text(np.shape(value))}")


def _check_name(value: Array) -> None:
    require(np.ndim(value) == 0, "rewrite_name must be a scalar")


def _check_parallelism(value: Array) -> None:
    require(count_of(value) >= 0, "`max_intra_op_parallelism` must be >= 0")


kernel("MaxIntraOpParallelismDataset", "ExperimentalMaxIntraOpParallelismDataset")(_checking(_check_parallelism))
kernel("PrivateThreadPoolDataset", "ExperimentalPrivateThreadPoolDataset")(_checking(_check_threads))
kernel("OptimizeDataset", "OptimizeDatasetV2")(_checking(_check_names))
kernel("RewriteDataset")(_checking(_check_name))


@dataclass(frozen=True, slots=True, eq=False)
class _WithOptions(Unchanged):
    serialised: bytes

    def options(self) -> bytes:
        return self.serialised


@kernel("OptionsDataset")
def options(node: Construction) -> Kernel:
    """The same elements; only GetOptions reads the options."""
    serialised: bytes = node.attrs["serialized_options"]
    return transforming(node, lambda form, source: _WithOptions(form, source, serialised))
