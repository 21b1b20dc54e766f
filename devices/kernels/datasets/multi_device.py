"""Iterators whose elements are dealt out to several devices: element n goes to shard n modulo their number.

A shard that asks for its next element pulls those of the others before it, which are kept for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from ....graph.dtypes import Array
from ....graph.ops.datasets.handle_text import from_text, to_text
from ...state import ResourceHandle, handle_array, handle_of
from ..carried import carrying
from ..checks import require, single_of, text_of
from ..handles import handle_for
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel
from .dataset import Dataset, Element, ElementSpec, dataset_of
from .iterator_ops import carried_or_named, check_form
from .pulling import IteratorResource

MULTI_DEVICE_TYPE = "N10tensorflow4data12_GLOBAL__N_119MultiDeviceIteratorE"  # the class's name in TensorFlow


class MultiDeviceIterator:
    """`incarnation` counts the datasets that it has been given."""

    def __init__(self, form: ElementSpec, num_shards: int) -> None:
        self.form = form
        self.incarnation = 0
        self._num_shards = num_shards
        self._source = IteratorResource(form)
        self._buffers: list[deque[Element]] = []
        self._next = 0

    def initialise(self, dataset: Dataset) -> int:
        """Begins the sequence of a dataset; returns the incarnation."""
        self._source = IteratorResource(self.form)
        self._source.initialise(dataset.iterator())
        self._buffers = [deque() for _ in range(self._num_shards)]
        self._next = 0
        self.incarnation += 1
        return self.incarnation

    def pull(self, call: Call, shard: int, take: Callable[[Element | None], None]) -> None:
        """Gives `take` the next element of a shard, or None at the end."""
        if not self._buffers:
            raise FailedPreconditionError("MultiDeviceIterator has not been initialized; run its init op first")
        require(0 <= shard < self._num_shards, f"shard_num must be in [0, {self._num_shards}), but is {shard}")
        own, buffers, source = self._buffers[shard], self._buffers, self._source

        def dealt(element: Element | None) -> None:
            if element is not None:
                buffers[self._next].append(element)
                self._next = (self._next + 1) % self._num_shards
            if own:
                take(own.popleft())
            elif element is None:
                take(None)
            else:
                source.pull(call, dealt)

        if own:
            take(own.popleft())
        else:
            source.pull(call, dealt)


def _made(node: Construction) -> MultiDeviceIterator:
    return MultiDeviceIterator(ElementSpec.of(node), len(node.attrs["devices"]))


@kernel("MultiDeviceIterator")
def multi_device_iterator(node: Construction) -> Kernel:
    """The handle of an iterator, which is made on first use."""
    handle, state = handle_for(node, MULTI_DEVICE_TYPE), node.state
    value = handle_array(handle)

    def put_out() -> Array:
        state.resource(handle.key, lambda: _made(node))
        return value

    return put_out


@kernel("AnonymousMultiDeviceIterator", "AnonymousMultiDeviceIteratorV3")
def anonymous_multi_device_iterator(node: Construction) -> Kernel:
    """A new iterator; the first version has another output by which to delete it."""
    num_outputs = len(node.output_types)

    def make() -> Any:
        value = carrying(_made(node))
        return (value, value) if num_outputs == 2 else value

    return make


def _found(node: Construction) -> Callable[[Array], MultiDeviceIterator]:
    return carried_or_named(node, MultiDeviceIterator, MULTI_DEVICE_TYPE, "a multi-device iterator")


@kernel("MultiDeviceIteratorInit")
def initialise(node: Construction) -> Kernel:
    """Begins the sequence of a dataset; gives the incarnation that pulls must name."""
    find = _found(node)

    def run(dataset: Array, handle: Array, _max_buffer_size: Array) -> Any:
        iterator, described = find(handle), dataset_of(dataset)
        check_form(iterator.form, described.form)
        return np.int64(iterator.initialise(described))

    return run


@deferred_kernel("MultiDeviceIteratorGetNextFromShard")
def get_next_from_shard(node: Construction) -> Start:
    """The next element of a shard; OutOfRangeError at the end."""
    find = _found(node)

    def start(call: Call, handle: Array, shard: Array, incarnation: Array) -> None:
        iterator = find(handle)
        number = single_of(incarnation, "incarnation_id")
        if number != iterator.incarnation:
            raise InvalidArgumentError(f"Invalid incarnation id. Provided: {number}; Expected: {iterator.incarnation}")

        def take(element: Element | None) -> None:
            if element is None:
                call.fail(OutOfRangeError("End of sequence"))
            else:
                call.done(*element)

        iterator.pull(call, single_of(shard, "shard_num"), take)

    return start


@kernel("MultiDeviceIteratorToStringHandle")
def to_string(node: Construction) -> Kernel:
    """The handle of an iterator as a string."""
    find = _found(node)

    def convert(handle: Array) -> Array:
        find(handle)
        named = handle_of(handle)
        return np.array(to_text(named.device, named.container, named.name, named.type_name), object)

    return convert


@kernel("MultiDeviceIteratorFromStringHandle")
def from_string(node: Construction) -> Kernel:
    """The handle that a string has been made of."""
    find = _found(node)

    def convert(text: Array) -> Array:
        handle = handle_array(ResourceHandle(*from_text(text_of(text, "string_handle"))))
        find(handle)
        return handle

    return convert


@kernel("DeleteMultiDeviceIterator")
def delete(node: Construction) -> Kernel:
    """Forgets an iterator; an anonymous one goes with its tensors."""
    find, state = _found(node), node.state

    def run(handle: Array, *_iterators_and_deleter: Array) -> None:
        find(handle)
        carried = handle.item()
        if isinstance(carried, ResourceHandle):
            del state.resources[carried.key]

    return run
