"""What datasets made of one other dataset share, and their kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ....graph.dtypes import Array
from ..checks import scalar_of
from ..registry import Construction, Kernel
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
