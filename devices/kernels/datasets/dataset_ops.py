"""Ops that take a dataset and give tensors: its reduction, its only element, its cardinality; and dataset variants."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array
from ...state import handle_array
from ..checks import require
from ..handles import handle_for
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel
from .dataset import CapturedFunction, Dataset, Element, PullSteps, dataset_of
from .pulling import compute


@deferred_kernel("ReduceDataset")
def reduce_dataset(node: Construction) -> Start:
    """The state after a function of the state and of each element, one after the other."""
    function, num_states = node.function("f"), len(node.attrs["Tstate"])

    def start(call: Call, dataset: Array, *others: Any) -> None:
        state = tuple(map(np.asarray, others[:num_states]))
        captured = CapturedFunction(function, others[num_states:])
        compute(call, _reduced(dataset_of(dataset), state, captured), lambda results: call.done(*results))

    return start


def _reduced(dataset: Dataset, state: Element, function: CapturedFunction) -> PullSteps[Element]:
    iterator = dataset.iterator()
    while (element := (yield from iterator.next())) is not None:
        state = yield from function(*state, *element)
        yield None
    return state


@deferred_kernel("DatasetToSingleElement")
def only_element(node: Construction) -> Start:
    """The only element; InvalidArgumentError if there is none or another one."""

    def start(call: Call, dataset: Array) -> None:
        compute(call, _only(dataset_of(dataset)), lambda element: call.done(*element))

    return start


def _only(dataset: Dataset) -> PullSteps[Element]:
    iterator = dataset.iterator()
    element = yield from iterator.next()
    if element is None:
        raise InvalidArgumentError("Dataset was empty.")
    if (yield from iterator.next()) is not None:
        raise InvalidArgumentError("Dataset had more than one element.")
    return element


@kernel("DatasetCardinality", "ExperimentalDatasetCardinality")
def cardinality(node: Construction) -> Kernel:
    """The number of elements; -1 for no end, -2 where only counting would tell."""
    return lambda dataset: np.int64(dataset_of(dataset).cardinality())


@kernel("WrapDatasetVariant", "UnwrapDatasetVariant")
def same_variant(node: Construction) -> Kernel:
    """The dataset itself: TensorFlow wraps those that it moves to a GPU."""
    return lambda dataset: dataset


@kernel("GetOptions")
def get_options(node: Construction) -> Kernel:
    """The serialised options that the last OptionsDataset gave, "" without one."""
    return lambda dataset: np.array(dataset_of(dataset).options(), object)


@kernel("ThreadPoolHandle", "ExperimentalThreadPoolHandle")
def thread_pool_handle(node: Construction) -> Kernel:
    """A handle without threads behind it: datasets compute no element before it is asked for."""
    handle = handle_array(handle_for(node, "ThreadPoolResource"))

    def made() -> Array:
        require(node.attrs["num_threads"] >= 0, "`num_threads` must be >= 0")
        return handle

    return made
