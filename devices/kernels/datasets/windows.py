"""Windows: datasets of neighbouring elements of another dataset, as its elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....errors import PartitaError
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .dataset import Dataset, Element, ElementSpec, Iterator, PullSteps, carrying_dataset
from .sources import ElementsDataset
from .transformation import Transformed, count_of, flag_of, transforming


class _WindowIterator(Iterator):
    """Windows of `size` elements, `stride` apart; the next window begins `shift` elements later.

    An error takes the place of an element: every window that it is in raises it.
    """

    __slots__ = ("_buffer", "_dataset", "_has_ended", "_skip", "_source")

    def __init__(self, dataset: _Window) -> None:
        self._dataset = dataset
        self._source = dataset.source.iterator()
        self._buffer: list[Element | PartitaError] = []
        self._skip = 0
        self._has_ended = False

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        size, shift, stride = self._dataset.size, self._dataset.shift, self._dataset.stride
        span = (size - 1) * stride + 1
        while not self._has_ended and len(self._buffer) < span:
            element: Element | PartitaError | None
            try:
                element = yield from self._source.next()
            except PartitaError as error:
                element = error
            if element is None:
                self._has_ended = True
            elif self._skip:
                self._skip -= 1
            else:
                self._buffer.append(element)
            yield None
        if not self._buffer or (self._dataset.drops and len(self._buffer) < span):
            return None
        window = self._buffer[:span:stride]
        self._skip = max(shift - len(self._buffer), 0)
        del self._buffer[:shift]
        return self._dataset.as_element([_without_error(element) for element in window])


def _without_error(element: Element | PartitaError) -> Element:
    if isinstance(element, PartitaError):
        raise element
    return element


@dataclass(frozen=True, slots=True, eq=False)
class _Window(Transformed):
    size: int
    shift: int
    stride: int
    drops: bool

    def iterator(self) -> Iterator:
        return _WindowIterator(self)

    def cardinality(self) -> int:
        known = self.source.cardinality()
        if known < 0:
            return known
        if self.drops:
            rest = known - (self.size - 1) * self.stride - 1
            return 0 if rest < 0 else rest // self.shift + 1
        return (known + self.shift - 1) // self.shift

    def as_element(self, window: Sequence[Element]) -> Element:
        """For each component a dataset of its values."""
        types, shapes = self.source.form.types, self.source.form.shapes
        columns = enumerate(zip(*window, strict=True))
        return tuple(
            carrying_dataset(ElementsDataset(ElementSpec((types[k],), (shapes[k],)), [(value,) for value in column]))
            for k, column in columns
        )


@kernel("WindowDataset")
def window(node: Construction) -> Kernel:
    """Datasets of neighbouring elements."""

    def make(form: ElementSpec, source: Dataset, size: Array, shift: Array, stride: Array, drops: Array) -> Dataset:
        require(count_of(size) > 0, "Window size must be greater than zero.")
        require(count_of(shift) > 0, "Window shift must be greater than zero.")
        require(count_of(stride) > 0, "Window stride must be greater than zero.")
        return _Window(form, source, count_of(size), count_of(shift), count_of(stride), flag_of(drops))

    return transforming(node, make)
