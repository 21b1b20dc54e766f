"""Datasets, which are descriptions, and their iterators, which have positions.

A dataset never changes; a variant tensor carries it. `iterator` makes a new iterator at the first element. The next
element is computed in steps, by a generator, because functions of the graph may have to be called for it. It yields
what must happen before it can go on, and returns the element, or None at the end:

    def next(self):                                   an iterator over f(x) for every x of `source`
        element = yield from self.source.next()
        if element is None:
            return None                               the end of the sequence
        return (yield from self.f(*element))          yields `Invocation(f, element)`, gets the results

    yield Invocation(f, arguments)    calls a function; the generator gets its results, or its error is thrown into it
    yield None                        a pause: an iterator that may pull many elements for one yields between them

Iterators keep their state in attributes, so that one whose `next` has raised an error can go on with the next element.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, DataType, Shape
from ..carried import carrying
from ..registry import Construction

if TYPE_CHECKING:
    from ..functions import NamedFunction

INFINITE, UNKNOWN = -1, -2
"""cardinalities that are no count"""

Element = tuple[Array, ...]
Result = TypeVar("Result")


class Invocation(NamedTuple):
    """A function to be called, with all its arguments."""

    function: CapturedFunction
    arguments: Sequence[Any]  # tensors of any type


# What is sent into the generator are the results of a function, tensors of any type.
PullSteps: TypeAlias = Generator[Invocation | None, Any, Result]
"""a computation that yields the functions it needs, and pauses"""


@dataclass(frozen=True, slots=True, eq=False)
class CapturedFunction:
    """A function and the values that are passed to it behind its own arguments."""

    function: NamedFunction
    captured: tuple[Any, ...]

    def __call__(self, *arguments: Array) -> PullSteps[Element]:
        """Calls the function; returns its results."""
        results = yield Invocation(self, (*arguments, *self.captured))
        return tuple(map(np.asarray, results))


class Iterator(ABC):
    """A position in a dataset."""

    __slots__ = ()

    @abstractmethod
    def next(self) -> PullSteps[Element | None]:
        """The next element, or None at the end, from then on again and again."""


class Source(Iterator):
    """An iterator that needs no function and no other iterator."""

    __slots__ = ()

    @abstractmethod
    def take(self) -> Element | None:
        """The next element, or None at the end."""

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        yield from ()
        return self.take()


@dataclass(frozen=True, slots=True)
class ElementSpec:
    """Types and shapes of the components of all elements; the shapes may leave sizes open."""

    types: tuple[DataType, ...]
    shapes: tuple[Shape, ...]

    @classmethod
    def of(cls, node: Construction) -> ElementSpec:
        """The form that the attrs of a node declare."""
        types = node.attrs["output_types" if "output_types" in node.attrs else "Toutput_types"]
        return cls(tuple(types), tuple(node.attrs["output_shapes"]))


@dataclass(frozen=True, slots=True, eq=False)
class Dataset(ABC):
    """A sequence of elements."""

    form: ElementSpec

    @abstractmethod
    def iterator(self) -> Iterator:
        """A new iterator, before the first element."""

    @abstractmethod
    def cardinality(self) -> int:
        """The number of elements, INFINITE or UNKNOWN."""

    def options(self) -> bytes:
        """The serialised options that were given last, "" without any."""
        return b""


def dataset_of(value: Any) -> Dataset:
    """The dataset that a variant tensor carries; InvalidArgumentError if it carries none."""
    dataset = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if not isinstance(dataset, Dataset):
        raise InvalidArgumentError("Tensor must be a Dataset object.")
    return dataset


def carrying_dataset(dataset: Dataset) -> Array:
    """The variant tensor of a dataset."""
    return carrying(dataset)
