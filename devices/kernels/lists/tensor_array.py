"""Tensor arrays: tensors of one element type by index, each written once; in a gradient array writes are added.

The states of an element; `!` is an error:

    EMPTY --write--> WRITTEN --write--> !   (in a gradient array: WRITTEN, with the sum)
      |                 `--read--> READ --write--> !
      `--read--> READ, as zeros, if the shape is known         READ --read--> ! if reads clear, else READ
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.analysis.shape_functions import merge
from ....graph.dtypes import Array, DataType, Shape, dtype_name, numpy_dtype
from ..arrays.slicing import empty_of

_NO_SUMS = (DataType.STRING, DataType.BOOL, DataType.RESOURCE, DataType.VARIANT)


def compatible(a: Shape, b: Shape) -> bool:
    """Whether one tensor can have both shapes."""
    if a == b:
        return True
    try:
        merge(a, b)
    except InvalidArgumentError:
        return False
    return True


def is_complete(shape: Shape) -> bool:
    """Whether rank and all sizes are known."""
    return shape is not None and None not in shape


def zeros_of(shape: Shape, dtype: DataType) -> Array:
    """Zeros (empty strings) of a shape without unknown sizes."""
    return empty_of(tuple(size for size in shape or () if size is not None), numpy_dtype(dtype))


@dataclass(slots=True)
class ArrayElement:
    """One element of an array: its value while it has one, and its shape, which may be known earlier and later."""

    value: Array | None = None
    shape: Shape = None
    read: bool = False
    cleared: bool = False


@dataclass(slots=True)
class TensorArray:
    """`sums` marks a gradient array, in which writes to one index are added."""

    name: str
    dtype: DataType
    element_shape: Shape
    places: list[ArrayElement]
    dynamic: bool = False
    clears: bool = True
    identical: bool = False
    sums: bool = False
    closed: bool = False
    gradients: dict[bytes, TensorArray] = field(default_factory=dict)

    def check(self, dtype: DataType, verb: str) -> None:
        """InvalidArgumentError unless the array is open and of that element type."""
        if dtype != self.dtype:
            raise InvalidArgumentError(
                f"TensorArray dtype is {dtype_name(self.dtype)} but Op {verb} dtype {dtype_name(dtype)}."
            )
        self.check_open()

    def check_open(self) -> None:
        """InvalidArgumentError once the array is closed."""
        if self.closed:
            raise InvalidArgumentError(f"TensorArray {self.name} has already been closed.")

    def grow(self, size: int) -> None:
        """Makes room for `size` elements."""
        self.places += [ArrayElement() for _ in range(size - len(self.places))]

    def write(self, index: int, value: Array) -> None:
        """Puts `value` at `index`; in a gradient array adds it to the value there."""
        if index < 0 or (index >= len(self.places) and not self.dynamic):
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Tried to write to index {index} but array is not resizeable "
                f"and size is: {len(self.places)}"
            )
        if not compatible(self.element_shape, value.shape):
            self._refuse(
                index,
                f"because the value shape is {shape_text(value.shape)} which is incompatible with the TensorArray's "
                f"inferred element shape: {shape_text(self.element_shape)} (consider setting infer_shape=False).",
            )
        if index >= len(self.places):
            self.grow(index + 1)
        place = self.places[index]
        if place.read:
            self._refuse(index, "because it has already been read.")
        if self.sums:
            value = self._sum(index, place, value)
        elif place.value is not None:
            self._refuse(index, "because it has already been written to.")
        place.value, place.shape = value, value.shape
        if self.identical:
            self.element_shape = value.shape

    def _sum(self, index: int, place: ArrayElement, value: Array) -> Array:
        if place.shape is not None and place.shape != value.shape:
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Could not aggregate to TensorArray index {index} because the existing shape "
                f"is {shape_text(place.shape)} but the new input shape is {shape_text(value.shape)}."
            )
        if place.value is None:
            return value
        if self.dtype in _NO_SUMS:
            raise InvalidArgumentError(f"tensor_array::AddToTensor type not supported: {dtype_name(self.dtype)}")
        return np.asarray(place.value + value)

    def _refuse(self, index: int, why: str) -> None:
        raise InvalidArgumentError(f"TensorArray {self.name}: Could not write to TensorArray index {index} {why}")

    def read(self, index: int) -> Array:
        """The value at `index`; zeros for an index never written to, if its shape is known."""
        if not 0 <= index < len(self.places):
            raise InvalidArgumentError(f"Tried to read from index {index} but array size is: {len(self.places)}")
        place = self.places[index]
        if place.cleared:
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Could not read index {index} twice because it was cleared after a "
                "previous read (perhaps try setting clear_after_read = false?)."
            )
        value = self._zeros(index, place) if place.value is None else place.value
        place.value, place.shape, place.read, place.cleared = value, value.shape, True, self.clears
        if self.clears:
            place.value = None
        return value

    def _zeros(self, index: int, place: ArrayElement) -> Array:
        shape = place.shape if is_complete(place.shape) else self.element_shape
        if not is_complete(shape):
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Could not read from TensorArray index {index}.  "
                f"Furthermore, the element shape is not fully defined: {shape_text(shape)}.  "
                "It is possible you are working with a resizeable TensorArray and stop_gradients is not allowing "
                "the gradients to be written.  If you set the full element_shape property on the forward TensorArray, "
                "the proper all-zeros tensor will be returned instead of incurring this error."
            )
        return zeros_of(shape, self.dtype)

    def gradient(self, source: bytes, prepended: tuple[int, ...]) -> TensorArray:
        """The gradient array for `source`, made on first use with the size of this array, which can then not grow."""
        self.check_open()
        self.dynamic = False
        array = self.gradients.get(source)
        if array is None:
            places = [ArrayElement(shape=None if p.shape is None else prepended + p.shape) for p in self.places]
            element = None if self.element_shape is None else prepended + self.element_shape
            name = f"{self.name}@{source.decode()}"
            array = TensorArray(name, self.dtype, element, places, identical=self.identical, sums=True)
            self.gradients[source] = array
        return array
