"""What datasets made of one other dataset share, and the kernels of those that have all its elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require, scalar_of
from ..registry import Construction, Factory, Kernel, kernel
from .dataset import CapturedFunction, Dataset, ElementSpec, Iterator, carrying_dataset, dataset_of


@dataclass(frozen=True, slots=True, eq=False)
class Transformed(Dataset):
    """A dataset made of another one; with as many elements, unless a subclass says otherwise."""

    source: Dataset

    def cardinality(self) -> int:
        return self.source.cardinality()

    def options(self) -> bytes:
        return self.source.options()


@dataclass(frozen=True, slots=True, eq=False)
class Unchanged(Transformed):
    """The elements of the other dataset: for ops that only say how TensorFlow should compute them."""

    def iterator(self) -> Iterator:
        return self.source.iterator()


def transforming(node: Construction, make: Callable[..., Dataset]) -> Kernel:
    """The kernel of a node that makes a dataset of its first input: `make(form, source, *other inputs)`."""
    form = ElementSpec.of(node)
    return lambda source, *others: carrying_dataset(make(form, dataset_of(source), *others))


def mapping(node: Construction, make: Callable[..., Dataset], attr: str = "f", types: str = "Targuments") -> Kernel:
    """As `transforming`, for a node with a function: `make(form, source, function, *inputs behind its captures)`."""
    form, function, num_captured = ElementSpec.of(node), node.function(attr), len(node.attrs[types])

    def run(source: Array, *others: Any) -> Array:
        captured = CapturedFunction(function, others[:num_captured])
        return carrying_dataset(make(form, dataset_of(source), captured, *others[num_captured:]))

    return run


def count_of(value: Array) -> int:
    """A scalar input as an int; InvalidArgumentError for another rank."""
    return scalar_of(value, "a number that describes a dataset")


def flag_of(value: Array) -> bool:
    """A scalar input as a bool; InvalidArgumentError for another rank."""
    return bool(scalar_of(value, "a flag that describes a dataset"))


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
