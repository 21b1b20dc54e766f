"""Decodes messages: reads items from the sections of a batch, and copies what they hold into memory of their own.

An array that is nearly the whole batch is not copied: it has the memory of the batch. To copy 16 MB into memory that is
new to the process takes as long as to receive them.

The bytes may come from anybody. A count or a length is compared with what is there before anything of that size is
made, so the memory taken is at most a small multiple of that of the message. Whatever is wrong is a DataLossError.

    kinds 80 64 0    numbers 4 2, 1 -1 1 2, 65537 2    a list: its 4 numbers (float32, no limit, [2]) and 2 items:
                                                       an array [2] of float32, and nothing
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from math import prod
from typing import Any, Final

import numpy as np

from ...errors import shown
from ...graph.dtypes import Array, Dims
from ..state import ResourceHandle
from .carried_values import FORMS
from .element_types import BOOL, DTYPES, has_wrong_bools
from .memory_order import in_order, travelling
from .sections import (
    AGAIN,
    ARRAY,
    BYTES,
    ERROR,
    FIRST_CARRIED,
    HANDLE,
    IN_PLACE,
    MAX_DEPTH,
    MAX_RANK,
    NOTHING,
    OBJECTS,
    RANK,
    READ_ONLY,
    STRIDED,
    STRINGS,
    NotSent,
    Sections,
    WireMessage,
    damaged,
    split,
)

_FORMS = list(FORMS.values())
_MOST_SIZE = (2**63 - 1) // 16  # elements, of up to 16 bytes
_NO_FLAG = RANK - 2 * STRIDED  # the bits between the flags and the rank
_LARGE = 1 << 13  # bytes, from which on `_copy` is faster
_NUMBER = np.dtype(np.int64)


def decode(data: bytes | memoryview) -> list[WireMessage]:
    """The messages that were encoded; tensors have memory of their own, or that of `data`, which is theirs then.

    InvalidArgumentError for bytes that are no messages or of another format, DataLossError for damaged ones.
    """
    sections = split(memoryview(data).cast("B"))
    texts = _Texts(sections.texts)
    items = _Items(sections, texts, len(data))
    decoded = [WireMessage(header, items.take(count)) for header, count in texts.messages]
    items.check_end()
    return decoded


class _Texts:
    """The JSON section: headers with numbers of tensors, handles, errors."""

    def __init__(self, section: memoryview) -> None:
        try:
            content = json.loads(bytes(section))
        except (ValueError, RecursionError) as error:
            raise damaged(f"its texts are no JSON ({error})") from None
        if not isinstance(content, dict) or content.keys() != {"messages", "handles", "errors"}:
            raise damaged(f"its texts have other parts than messages, handles and errors: {shown(content)}")
        self.messages = [self._message(entry) for entry in self._list(content["messages"])]
        self.handles = [ResourceHandle(*self._texts(entry, 4)) for entry in self._list(content["handles"])]
        self.errors = [NotSent(*self._texts(entry, 2)) for entry in self._list(content["errors"])]

    def _list(self, content: object) -> list[Any]:
        if not isinstance(content, list):
            raise damaged(f"a part of its texts is no list: {shown(content)}")
        return content

    def _message(self, entry: object) -> tuple[dict[str, Any], int]:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], dict):
            raise damaged(f"no header and number of tensors: {shown(entry)}")
        if type(entry[1]) is not int or entry[1] < 0:
            raise damaged(f"no number of tensors: {shown(entry[1])}")
        return entry[0], entry[1]

    def _texts(self, entry: object, count: int) -> list[str]:
        if not isinstance(entry, list) or len(entry) != count or not all(isinstance(text, str) for text in entry):
            raise damaged(f"no list of {count} texts: {shown(entry)}")
        return entry


class _NumberColumn:
    """The numbers, taken one after the other."""

    def __init__(self, section: memoryview) -> None:
        if len(section) % _NUMBER.itemsize:
            raise damaged(f"its numbers have {len(section)} bytes")
        self._numbers: list[int] = np.frombuffer(section, _NUMBER).tolist() if len(section) else []
        self._next = 0

    def take(self, count: int) -> list[int]:
        """The next numbers."""
        begin, end = self._next, self._next + count
        if not begin <= end <= len(self._numbers):
            raise damaged(f"it has {len(self._numbers)} numbers, and {count} are wanted after {begin}")
        self._next = end
        return self._numbers[begin:end]

    def one(self) -> int:
        """The next number."""
        place = self._next
        if place == len(self._numbers):
            raise damaged(f"it has {place} numbers, and one more is wanted")
        self._next = place + 1
        return self._numbers[place]

    @property
    def left(self) -> int:
        """How many were not taken."""
        return len(self._numbers) - self._next


class _Items:
    """Reads items, those inside others too; `_numbered` are those that may come again."""

    def __init__(self, sections: Sections, texts: _Texts, size: int) -> None:
        """`size` are the bytes of the batch."""
        self._most = max(IN_PLACE, size * 7 // 8)
        self._kinds, self._next_kind = bytes(sections.kinds), 0
        self._numbers = _NumberColumn(sections.numbers)
        self._columns = _columns(self._kinds, sections.scalars)
        self._blobs, self._next_blob = sections.blobs, 0
        self._texts = texts
        self._numbered: list[Any] = []

    def take(self, count: int, depth: int = 0) -> list[Any]:
        """The next items, which are inside `depth` others."""
        begin, end = self._next_kind, self._next_kind + count
        if not begin <= end <= len(self._kinds):
            raise damaged(f"it has {len(self._kinds)} items, and {count} are wanted after {begin}")
        columns, kinds = self._columns, self._kinds[begin:end]
        if columns.keys() >= set(kinds):  # as for thousands of scalars
            self._next_kind = end
            return list(map(next, map(columns.__getitem__, kinds)))
        items = []
        for _ in range(count):
            if self._next_kind == len(self._kinds):
                raise damaged(f"it has {len(self._kinds)} items, and more are wanted")
            kind = self._kinds[self._next_kind]
            self._next_kind += 1
            column = columns.get(kind)
            items.append(self._other(kind, depth) if column is None else next(column))
        return items

    def _other(self, kind: int, depth: int) -> Any:
        """An item that is no scalar."""
        read = _READERS.get(kind)
        if read is not None:
            return read(self, depth)
        if not 0 <= kind - FIRST_CARRIED < len(_FORMS):
            raise damaged(f"there is no item of kind {kind}")
        return self._carried(kind - FIRST_CARRIED, depth)

    def check_end(self) -> None:
        """DataLossError if something was not read."""
        left = len(self._kinds) - self._next_kind, self._numbers.left, len(self._blobs) - self._next_blob
        if any(left):
            raise damaged("{} items, {} numbers and {} bytes of it belong to no tensor".format(*left))

    def nothing(self, _: int) -> None:
        """A dead tensor, or an element that is not set."""

    def bytes_(self, _: int) -> bytes:
        """Plain bytes."""
        return bytes(self._blob(self._numbers.one()))

    def handle(self, _: int) -> ResourceHandle:
        """A resource handle."""
        return self._texts.handles[self._place(len(self._texts.handles), "resource handle")]

    def error(self, _: int) -> NotSent:
        """What stands for a value that could not be sent."""
        return self._texts.errors[self._place(len(self._texts.errors), "error")]

    def again(self, _: int) -> Any:
        """The same object as an item before."""
        return self._numbered[self._place(len(self._numbered), "earlier item")]

    def _place(self, count: int, what: str) -> int:
        """The next number, which is a place among `count`."""
        place = self._numbers.one()
        if not 0 <= place < count:
            raise damaged(f"it has no {what} of number {place}")
        return place

    def _blob(self, size: int) -> memoryview:
        """The next bytes of the blobs."""
        begin, end = self._next_blob, self._next_blob + size
        if not begin <= end <= len(self._blobs):
            raise damaged(f"it has {len(self._blobs)} bytes of elements, and {size} are wanted after {begin}")
        self._next_blob = end
        return self._blobs[begin:end]

    def _shape(self, first: int) -> Dims:
        """The shape behind the first number of an array."""
        rank = first // RANK
        if not 0 <= rank <= MAX_RANK or first & _NO_FLAG:
            raise damaged(f"an array begins with the number {first}")
        shape = tuple(self._numbers.take(rank))
        # Sizes other than 0 may not overflow either: numpy makes no such arrays.
        if rank and (min(shape) < 0 or prod(shape if 0 not in shape else [size or 1 for size in shape]) > _MOST_SIZE):
            raise damaged(f"an array has the shape {list(shape)}")
        return shape

    def array(self, _: int) -> Array:
        """An array of numbers."""
        first = self._numbers.one()
        number = first % 256
        dtype = DTYPES.get(number)
        if dtype is None:
            raise damaged(f"there is no element type {number}")
        shape = self._shape(first)
        terms = self._numbers.take(len(shape)) if first & STRIDED else None
        sizes = shape if terms is None else travelling(shape, terms)
        size = prod(sizes) * dtype.itemsize
        view: Array = np.ndarray(sizes, dtype, self._blob(size))
        if number == BOOL and has_wrong_bools(view):
            raise damaged("a Boolean is neither 0 nor 1")
        if terms is not None:
            array = in_order(view, shape, terms)
        elif size >= self._most and view.flags.aligned and view.flags.writeable:
            array = view
        else:
            array = view.copy() if size < _LARGE else _copy(view)
        return self._finished(array, first)

    def _finished(self, array: Array, first: int) -> Array:
        if first & READ_ONLY:
            array.flags.writeable = False
        self._numbered.append(array)
        return array

    def strings(self, _: int) -> Array:
        """An array of strings."""
        first = self._numbers.one()
        shape = self._shape(first)
        lengths = self._numbers.take(prod(shape))
        return self._finished(_object_array([bytes(self._blob(length)) for length in lengths], shape), first)

    def objects(self, depth: int) -> Array:
        """An array of objects, which are inside one more value."""
        first = self._numbers.one()
        shape = self._shape(first)
        return self._finished(_object_array(self._inside(prod(shape), depth), shape), first)

    def _carried(self, form: int, depth: int) -> object:
        num_numbers, num_items = self._numbers.take(2)
        numbers = self._numbers.take(num_numbers)
        value = _FORMS[form].together(numbers, self._inside(num_items, depth))
        self._numbered.append(value)
        return value

    def _inside(self, count: int, depth: int) -> list[Any]:
        """The items of a value that is itself inside `depth` others."""
        if depth >= MAX_DEPTH and count:
            raise damaged(f"values are inside each other more than {MAX_DEPTH} deep")
        return self.take(count, depth + 1)


# Functions and not methods of an object, which would refer to itself and keep what it has read until it is collected.
_READERS: Final[dict[int, Callable[[_Items, int], Any]]] = {
    NOTHING: _Items.nothing,
    ARRAY: _Items.array,
    STRINGS: _Items.strings,
    OBJECTS: _Items.objects,
    BYTES: _Items.bytes_,
    HANDLE: _Items.handle,
    ERROR: _Items.error,
    AGAIN: _Items.again,
}


def _copy(array: Array) -> Array:
    """A copy of a C-contiguous array, byte by byte: numpy copies elements one by one where they are not aligned."""
    copied = np.empty(array.shape, array.dtype)
    copied.reshape(-1).view(np.uint8)[...] = array.reshape(-1).view(np.uint8)
    return copied


def _object_array(elements: list[Any], shape: Dims) -> Array:
    """Without a look into the elements, some of which are sequences."""
    return np.fromiter(elements, object, len(elements)).reshape(shape)


def _columns(kinds: bytes, section: memoryview) -> dict[int, Iterator[Any]]:
    """By kind of numpy scalars those of the batch, in order."""
    columns: dict[int, Iterator[Any]] = {}
    begin = 0
    for kind in sorted(DTYPES.keys() & set(kinds)):
        count, dtype = kinds.count(kind), DTYPES[kind]
        end = begin + count * dtype.itemsize
        if end > len(section):
            raise damaged(f"it has {len(section)} bytes of scalars, and {end} are wanted")
        scalars: Array = np.ndarray(count, dtype, section[begin:end])
        if kind == BOOL and has_wrong_bools(scalars):
            raise damaged("a Boolean is neither 0 nor 1")
        columns[kind] = iter(list(scalars))
        begin = end
    if begin != len(section):
        raise damaged(f"{len(section) - begin} bytes of scalars belong to no tensor")
    return columns
