"""Encodes messages as bytes, which a connection writes as one frame.

Items are appended to the sections of the batch (`sections.py`). The scalars of one type are a list until the end, when
one call of C joins them: 1,000 scalars are sorted by type and joined in a tenth of a millisecond. Large arrays are
referred to until then, and the largest are not copied at all.

What cannot travel becomes an error item in its place; its message is that of the step that needed the value.
"""

from __future__ import annotations

import json
from array import array as packed
from collections import defaultdict
from collections.abc import Sequence
from itertools import compress
from typing import Any, cast

import numpy as np

from ...errors import FailedPreconditionError, UnimplementedError
from ...graph.dtypes import Array
from ..state import ResourceHandle, Variable
from .carried_values import FORMS
from .element_types import NUMBERS, SCALARS
from .memory_order import is_in_usual_order, memory_order
from .sections import (
    AGAIN,
    ALIGNMENT,
    ARRAY,
    BYTES,
    ERROR,
    FIRST_CARRIED,
    HANDLE,
    IN_PLACE,
    NOTHING,
    OBJECTS,
    PREAMBLE_BYTES,
    RANK,
    READ_ONLY,
    STRIDED,
    STRINGS,
    NotSent,
    WireMessage,
    preamble,
)
from .sendable import unsendable

_CARRIED_KINDS = {kind: FIRST_CARRIED + place for place, kind in enumerate(FORMS)}
_LONG = 1 << 19  # bytes of a batch
_LARGE = 1 << 14  # bytes: smaller arrays are copied at once, which takes less time than a view of them


def encode(messages: Sequence[WireMessage]) -> list[bytes | memoryview]:
    """The messages as bytes, of which `decode` makes messages: pieces, to be sent one after the other.

    Long arrays are pieces themselves, without a copy; nobody may change them before they are sent. Never raises for a
    tensor: one that cannot travel arrives as a `NotSent`. A header with other values than JSON has is a TypeError or
    ValueError of `json`. An array that is there twice, as one object, travels once.
    """
    batch = _Batch()
    for message in messages:
        batch.add(message.tensors)
    return batch.pieces([[message.header, len(message.tensors)] for message in messages])


class _Batch:
    """The sections in the making; `_numbered` has the items that may come again, which it also keeps alive."""

    def __init__(self) -> None:
        self._kinds = bytearray()
        self._numbers: list[int] = []
        self._scalars: defaultdict[int, list[Any]] = defaultdict(list)  # Any: numpy scalars of one class
        self._blobs: list[Any] = []  # Any: bytes and arrays of bytes
        self._handles: dict[ResourceHandle, int] = {}
        self._errors: list[tuple[str, str]] = []
        self._numbered: dict[int, tuple[int, object]] = {}

    def add(self, tensors: Sequence[Any]) -> None:  # Any: tensors of any type
        """Appends tensors; scalars alone, of which there may be thousands, without a loop of Python."""
        kinds = list(map(SCALARS.get, map(type, tensors)))
        if None in kinds:
            for kind, tensor in zip(kinds, tensors, strict=True):
                if kind is None:
                    self._add_other(tensor)
                else:
                    self._kinds.append(kind)
                    self._scalars[kind].append(tensor)
            return
        scalar_kinds = cast(list[int], kinds)
        self._kinds.extend(scalar_kinds)
        for kind in set(scalar_kinds):
            self._scalars[kind] += compress(tensors, map(kind.__eq__, scalar_kinds))

    def _add_other(self, value: Any) -> None:
        """Appends a tensor that is no scalar, or an error item instead."""
        if isinstance(value, Variable):
            if value.value is None:
                self._add_uninitialised(value)
            else:
                self.add([value.value])
        elif type(value) is np.ndarray and value.dtype in NUMBERS:
            self._add_array(value)
        elif (reason := unsendable(value)) is None:
            self._add_sendable(value)
        else:
            message = f"{reason} cannot go to another process; put the devices that use it on one worker"
            self._add_error(UnimplementedError.code, message)

    def _add_uninitialised(self, variable: Variable) -> None:
        try:
            variable.read()
        except FailedPreconditionError as error:
            self._add_error(error.code, error.message)

    def _add_error(self, code: str, message: str) -> None:
        self._kinds.append(ERROR)
        self._numbers.append(len(self._errors))
        self._errors.append((code, message))

    def _add_sendable(self, value: Any) -> None:
        """Appends a value of which nothing is unsendable."""
        if value is None:
            self._kinds.append(NOTHING)
        elif isinstance(value, np.ndarray):
            self._add_objects(value) if value.dtype == object else self._add_array(value)
        elif type(value) in _CARRIED_KINDS:
            self._add_carried(value)
        elif isinstance(value, ResourceHandle):
            self._kinds.append(HANDLE)
            self._numbers.append(self._handles.setdefault(value, len(self._handles)))
        elif isinstance(value, bytes):
            self._kinds.append(BYTES)
            self._numbers.append(len(value))
            self._blobs.append(value)
        elif isinstance(value, NotSent):
            self._add_error(value.code, value.message)
        else:
            kind = NUMBERS[value.dtype]
            self._kinds.append(kind)
            self._scalars[kind].append(value)

    def _is_again(self, value: object) -> bool:
        """Whether a value is in the batch already; then it is named by its number."""
        number = self._numbered.get(id(value))
        if number is None:
            return False
        self._kinds.append(AGAIN)
        self._numbers.append(number[0])
        return True

    def _number(self, value: object) -> None:
        """Numbers an item when all of it is there, as the decoder does."""
        self._numbered[id(value)] = len(self._numbered), value

    def _add_array(self, array: Array) -> None:
        if self._is_again(array):
            return
        first = NUMBERS[array.dtype] + array.ndim * RANK + (0 if array.flags.writeable else READ_ONLY)
        self._kinds.append(ARRAY)
        self._number(array)
        if not is_in_usual_order(array):
            terms, elements = memory_order(array)
            self._numbers += (first + STRIDED, *array.shape, *terms)
            self._blobs.append(elements.tobytes())
            return
        self._numbers += (first, *array.shape)
        self._blobs.append(array.tobytes() if array.nbytes < _LARGE else array.reshape(-1).view(np.uint8))

    def _add_objects(self, array: Array) -> None:
        """Appends an array of strings, or of other objects."""
        if self._is_again(array):
            return
        elements: list[Any] = array.reshape(-1).tolist()
        are_strings = set(map(type, elements)) <= {bytes}
        self._kinds.append(STRINGS if are_strings else OBJECTS)
        self._numbers += (array.ndim * RANK + (0 if array.flags.writeable else READ_ONLY), *array.shape)
        if are_strings:
            self._numbers += map(len, elements)
            self._blobs += elements
        else:
            self._add_items(elements)
        self._number(array)

    def _add_carried(self, value: object) -> None:
        if self._is_again(value):
            return
        numbers, items = FORMS[type(value)].apart(value)
        self._kinds.append(_CARRIED_KINDS[type(value)])
        self._numbers += (len(numbers), len(items), *numbers)
        self._add_items(items)
        self._number(value)

    def _add_items(self, items: Sequence[Any]) -> None:
        for item in items:
            self._add_sendable(item)

    def pieces(self, messages: list[list[Any]]) -> list[bytes | memoryview]:  # Any: headers, with numbers of tensors
        """All sections, with these headers."""
        handles = [(each.device, each.container, each.name, each.type_name) for each in self._handles]
        texts = json.dumps({"messages": messages, "handles": handles, "errors": self._errors}, separators=(",", ":"))
        scalars = b"".join([b"".join(column) for _, column in sorted(self._scalars.items())])
        numbers = packed("q", self._numbers).tobytes()
        blobs = self._blobs
        num_bytes = sum(map(len, blobs))
        if num_bytes >= IN_PLACE:
            texts += " " * (-(PREAMBLE_BYTES + len(texts) + len(self._kinds) + len(numbers) + len(scalars)) % ALIGNMENT)
        sizes = (len(texts), len(self._kinds), len(numbers), len(scalars), num_bytes)
        return _pieces([preamble(sizes), texts.encode(), self._kinds, numbers, scalars, *blobs])


def _pieces(parts: Sequence[Any]) -> list[bytes | memoryview]:  # Any: bytes and arrays of bytes
    """The parts in as few pieces as leave long arrays where they are."""
    pieces: list[bytes | memoryview] = []
    short: list[Any] = []
    for part in parts:
        if len(part) < IN_PLACE:
            short.append(part)
            continue
        pieces += [_join(short), memoryview(part)]
        short = []
    return [*pieces, _join(short)]


def _join(parts: Sequence[Any]) -> bytes | memoryview:  # Any: bytes and arrays of bytes
    """The parts in one piece: long ones in memory of numpy, which asks the system for large pages, 5 times as fast."""
    size = sum(map(len, parts))
    if size < _LONG:
        return b"".join(parts)
    joined, start = np.empty(size, np.uint8), 0
    for part in parts:
        joined[start : start + len(part)] = part if isinstance(part, np.ndarray) else np.frombuffer(part, np.uint8)
        start += len(part)
    return joined.data
