"""Ops on iterators: making them, giving them a dataset, pulling elements.

An iterator is a resource of its device and outlives steps. An anonymous one lives as long as the tensors that carry it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ....errors import InvalidArgumentError, OutOfRangeError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, dtype_name
from ....graph.ops.datasets.handle_text import from_text, to_text
from ...state import ResourceHandle, handle_array, handle_of
from ..carried import carrying
from ..checks import text_of
from ..handles import handle_for, resource_of
from ..lists.optional import Optional
from ..lists.tensor_array import compatible
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel
from .dataset import CapturedFunction, Element, ElementSpec, dataset_of
from .pulling import IteratorResource, compute

T = TypeVar("T")

ITERATOR_TYPE = "N10tensorflow4data16IteratorResourceE"  # TensorFlow's name for the class, used in messages


@kernel("Iterator", "IteratorV2")
def iterator(node: Construction) -> Kernel:
    """The handle of an iterator, which is made on first use."""
    form, handle, state = ElementSpec.of(node), handle_for(node, ITERATOR_TYPE), node.state
    value = handle_array(handle)

    def put_out() -> Array:
        resource = state.resource(handle.key, lambda: IteratorResource(form))
        check_form(form, resource.form)
        return value

    return put_out


@kernel("AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3")
def anonymous_iterator(node: Construction) -> Kernel:
    """A new iterator; the second version has another output by which to delete it."""
    form, num_outputs = ElementSpec.of(node), len(node.output_types)

    def make() -> Any:
        value = carrying(IteratorResource(form))
        return (value, value) if num_outputs == 2 else value

    return make


@deferred_kernel("OneShotIterator")
def one_shot_iterator(node: Construction) -> Start:
    """The handle of an iterator; its first run calls the function that makes the dataset."""
    form, handle, state = ElementSpec.of(node), handle_for(node, ITERATOR_TYPE), node.state
    value, factory = handle_array(handle), CapturedFunction(node.function("dataset_factory"), ())

    def start(call: Call) -> None:
        resource: IteratorResource = state.resource(handle.key, lambda: IteratorResource(form))

        def begin(results: Element) -> None:
            if not resource.is_initialised:
                dataset = dataset_of(results[0])
                check_form(resource.form, dataset.form)
                resource.initialise(dataset.iterator())
            call.done(value)

        if resource.is_initialised:
            call.done(value)
        else:
            compute(call, factory(), begin)

    return start


def check_form(expected: ElementSpec, actual: ElementSpec) -> None:
    """InvalidArgumentError unless types are equal and shapes compatible."""
    if len(expected.types) != len(actual.types):
        raise InvalidArgumentError(
            f"Number of components does not match: expected {len(expected.types)} types but got {len(actual.types)}."
        )
    for index, (want, have) in enumerate(zip(expected.types, actual.types, strict=True)):
        if want != have:
            raise InvalidArgumentError(
                f"Data type mismatch at component {index}: expected {dtype_name(want)} but got {dtype_name(have)}."
            )
    for index, (size, other) in enumerate(zip(expected.shapes, actual.shapes, strict=False)):
        if not compatible(size, other):
            raise InvalidArgumentError(
                f"Incompatible shapes at component {index}: expected {shape_text(size)} but got {shape_text(other)}."
            )


def carried_or_named(node: Construction, kind: type[T], type_name: str, what: str) -> Callable[[Array], T]:
    """A function from a handle to its object: the one that it carries, or that the device has under its name."""
    named = resource_of(node, kind, type_name, what)

    def find(value: Array) -> T:
        carried = value.item()
        return carried if isinstance(carried, kind) else named(value)

    return find


def iterator_of(node: Construction) -> Callable[[Array], IteratorResource]:
    """A function from a handle to its iterator."""
    return carried_or_named(node, IteratorResource, ITERATOR_TYPE, "an iterator")


@kernel("MakeIterator")
def make_iterator(node: Construction) -> Kernel:
    """Begins the sequence of a dataset."""
    find = iterator_of(node)

    def make(dataset: Array, handle: Array) -> None:
        resource, described = find(handle), dataset_of(dataset)
        check_form(resource.form, described.form)
        resource.initialise(described.iterator())

    return make


@deferred_kernel("IteratorGetNext", "IteratorGetNextSync")
def get_next(node: Construction) -> Start:
    """The next element; OutOfRangeError at the end."""
    find, check = iterator_of(node), _checked(ElementSpec.of(node))

    def start(call: Call, handle: Array) -> None:
        find(handle).pull(call, lambda element: _end(call, element, check))

    return start


def _end(call: Call, element: Element | None, check: Callable[[Element], None]) -> None:
    if element is None:
        call.fail(OutOfRangeError("End of sequence"))
        return
    try:
        check(element)
    except InvalidArgumentError as error:
        call.fail(error)
    else:
        call.done(*element)


def _checked(form: ElementSpec) -> Callable[[Element], None]:
    """Checks that an element has the shapes that a node promises."""

    def check(element: Element) -> None:
        for index, (promised, component) in enumerate(zip(form.shapes, element, strict=False)):
            if not compatible(promised, component.shape):
                raise InvalidArgumentError(
                    f"Incompatible shapes at component {index}: expected {shape_text(promised)} "
                    f"but got {shape_text(component.shape)}."
                )

    return check


@deferred_kernel("IteratorGetNextAsOptional")
def get_next_as_optional(node: Construction) -> Start:
    """The next element as an optional, which is empty at the end."""
    find, types = iterator_of(node), tuple(node.attrs["output_types"])

    def start(call: Call, handle: Array) -> None:
        def take(element: Element | None) -> None:
            call.done(carrying(Optional() if element is None else Optional(element, types)))

        find(handle).pull(call, take)

    return start


@kernel("DeleteIterator")
def delete_iterator(node: Construction) -> Kernel:
    """Forgets an iterator; an anonymous one goes with its tensors."""
    find, state = iterator_of(node), node.state

    def delete(handle: Array, _deleter: Array) -> None:
        find(handle)
        carried = handle.item()
        if isinstance(carried, ResourceHandle):
            del state.resources[carried.key]

    return delete


@kernel("IteratorToStringHandle")
def to_string(node: Construction) -> Kernel:
    """The handle of an iterator as a string."""
    find = iterator_of(node)

    def convert(handle: Array) -> Array:
        find(handle)
        named = handle_of(handle)
        return np.array(to_text(named.device, named.container, named.name, named.type_name), object)

    return convert


@kernel("IteratorFromStringHandle", "IteratorFromStringHandleV2")
def from_string(node: Construction) -> Kernel:
    """The handle that a string has been made of; its elements must be of the declared form."""
    find, form = iterator_of(node), ElementSpec.of(node)

    def convert(text: Array) -> Array:
        handle = handle_array(ResourceHandle(*from_text(text_of(text, "string_handle"))))
        actual = find(handle).form
        if form.types:
            check_form(form, actual)
        return handle

    return convert
