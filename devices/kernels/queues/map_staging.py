"""Staging areas by key, in which steps leave tensors for later ones that know the key: MapStage, OrderedMapStage.

An entry has one field per type of the attr `dtypes` of MapStage. It may be put in, and taken out, in several parts:

    nothing --some fields--> incomplete --the last field--> complete --all fields are taken--> nothing
       `------------------------all fields---------------------^
Only complete entries can be taken from, and only they count towards the capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ....errors import InternalError, InvalidArgumentError, ResourceExhaustedError
from ....graph.dtypes import Array, DataType, dtype_name, from_numpy
from ...state import DEFAULT_CONTAINER, ResourceKey
from ..checks import require
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel
from .staging import num_bytes
from .waiting import Lines, When

_KINDS = ("Map", "OrderedMap")

Fields = list[Array | None]


class StagingLimits(NamedTuple):
    """How many complete entries, and bytes in all, may be in an area; 0 means any number."""

    entries: int
    num_bytes: int


class MapArea:
    """A staging area; in an ordered one the smallest key is the next."""

    def __init__(self, limits: StagingLimits, *, ordered: bool) -> None:
        self.limits = limits
        self.ordered = ordered
        self.complete: dict[int, Fields] = {}
        self.incomplete: dict[int, Fields] = {}
        self.lines = Lines(1, unordered=0)
        self._num_bytes = 0

    def put(self, key: int, count: int, places: Sequence[int], values: Sequence[Array]) -> bool:
        """Adds fields to the entry of a key, which has `count`; False, and nothing changed, while there is no room."""
        fields = list(self.incomplete.get(key, [None] * count))
        for place, value in zip(places, values, strict=True):
            _check_place(key, fields, place)
            if fields[place] is not None:
                raise InvalidArgumentError(
                    f"The tensor for index '{place}' for key '{key}' was already initialized '{len(fields)}'."
                )
            fields[place] = value
        completes, size = all(field is not None for field in fields), num_bytes(values)
        if self.limits.num_bytes and self._num_bytes + size > self.limits.num_bytes:
            return False
        if completes and self.limits.entries and len(self.complete) >= self.limits.entries:
            return False
        self.incomplete.pop(key, None)
        if not completes:
            self.incomplete[key] = fields
        elif key in self.complete:
            return True  # the entry that is there stays, as in TensorFlow
        else:
            self.complete[key] = fields
        self._num_bytes += size
        return True

    def read(self, key: int, places: Sequence[int]) -> list[Array] | None:
        """Fields of a complete entry, which stays; None while there is none."""
        entry = self.complete.get(key)
        return None if entry is None else [_field(key, entry, place) for place in places]

    def take(self, key: int, places: Sequence[int]) -> list[Array] | None:
        """As `read`, but the fields are removed, and the entry with its last field."""
        values = self.read(key, places)
        if values is not None:
            entry = self.complete[key]
            for place in places:
                entry[place] = None
            if all(field is None for field in entry):
                del self.complete[key]
            self._num_bytes -= num_bytes(values)
        return values

    def next_key(self) -> int | None:
        """The smallest key of an ordered area, the first that was complete of another; None if there is none."""
        if not self.complete:
            return None
        return min(self.complete) if self.ordered else next(iter(self.complete))

    def clear(self) -> None:
        """Removes all entries."""
        self.complete.clear()
        self.incomplete.clear()
        self._num_bytes = 0
        self.lines.advance()


def _check_place(key: int, entry: Fields, place: int) -> None:
    if not 0 <= place < len(entry):
        raise InvalidArgumentError(f"Index '{place}' for key '{key}' was out of bounds '{len(entry)}'.")


def _field(key: int, entry: Fields, place: int) -> Array:
    _check_place(key, entry, place)
    value = entry[place]
    if value is None:
        raise InvalidArgumentError(f"Tensor at index '{place}' for key '{key}' has already been removed.")
    return value


def _area_of(node: Construction) -> Callable[[], MapArea]:
    """The area of a node's shared name, or else of its own name, made on first use."""
    attrs, state, ordered = node.attrs, node.state, node.op.startswith("Ordered")
    container, name = attrs["container"].decode() or DEFAULT_CONTAINER, attrs["shared_name"].decode() or node.name
    key: ResourceKey = (container, "OrderedStagingMap" if ordered else "StagingMap", name)
    limits = StagingLimits(int(attrs["capacity"]), int(attrs["memory_limit"]))

    def area() -> MapArea:
        shared: MapArea = state.resource(key, lambda: MapArea(limits, ordered=ordered))
        return shared

    return area


def _key(key: Array) -> int:
    require(np.ndim(key) == 0, "key must be an int64 scalar")
    return int(key)


def _places(indices: Array) -> list[int]:
    """The numbers of fields; InvalidArgumentError unless there are some and they ascend."""
    places: list[int] = np.reshape(indices, -1).tolist()
    require(bool(places), "Indices are empty")
    require(all(a < b for a, b in pairwise(places)), "Indices are not strictly ordered")
    return places


@deferred_kernel(*(f"{kind}Stage" for kind in _KINDS))
def map_stage(node: Construction) -> Start:
    """Puts fields into the entry of a key, as soon as there is room."""
    area_of, count = _area_of(node), len(node.attrs["dtypes"])

    def start(call: Call, key: Array, indices: Array, *values: Array) -> None:
        area, number, places, fields = area_of(), _key(key), _places(indices), tuple(map(np.asarray, values))
        require(len(places) == len(fields), f"there are {len(places)} indices for {len(fields)} values")
        size, limit = num_bytes(fields), area.limits.num_bytes
        if limit and size > limit:
            raise ResourceExhaustedError(
                f"Attempted to insert tensors with combined size of '{size}' bytes into Staging Area with a memory "
                f"limit of '{limit}'."
            )
        area.lines.join(0, When(call, lambda: () if area.put(number, count, places, fields) else None))

    return start


def _typed(node: Construction, first: int = 0) -> Callable[[list[Array] | None], list[Array] | None]:
    """A function that passes fields on; InternalError unless they have the types of the outputs from `first` on."""
    declared = node.output_types[first:]

    def checked(values: list[Array] | None) -> list[Array] | None:
        for place, (value, dtype) in enumerate(zip(values or (), declared, strict=False), first):
            if not _is(value, dtype):
                raise InternalError(
                    f"Output {place} of type {dtype_name(from_numpy(value))} does not match declared output type "
                    f"{dtype_name(dtype)} for node {{{{node {node.name}}}}}"
                )
        return values

    return checked


def _is(value: Array, dtype: DataType) -> bool:
    return value.dtype == object or from_numpy(value) == dtype


@deferred_kernel(*(f"{kind}{what}" for kind in _KINDS for what in ("Unstage", "Peek")))
def map_unstage(node: Construction) -> Start:
    """Takes, or reads, fields of the complete entry of a key, as soon as there is one."""
    area_of, checked, takes = _area_of(node), _typed(node), node.op.endswith("Unstage")
    count = len(node.output_types)

    def start(call: Call, key: Array, indices: Array) -> None:
        area, number, places = area_of(), _key(key), _places(indices)
        require(len(places) == count, f"there are {len(places)} indices for {count} outputs")
        act = area.take if takes else area.read
        area.lines.join(0, When(call, lambda: checked(act(number, places))))

    return start


@deferred_kernel(*(f"{kind}UnstageNoKey" for kind in _KINDS))
def map_unstage_no_key(node: Construction) -> Start:
    """The key of the next complete entry, as soon as there is one, and fields that are taken from it."""
    area_of, checked, count = _area_of(node), _typed(node, 1), len(node.output_types) - 1

    def start(call: Call, indices: Array) -> None:
        area, places = area_of(), _places(indices)
        require(len(places) == count, f"there are {len(places)} indices for {count} values")

        def take() -> Sequence[object] | None:
            key = area.next_key()
            return None if key is None else (np.int64(key), *(checked(area.take(key, places)) or ()))

        area.lines.join(0, When(call, take))

    return start


@kernel(*(f"{kind}{what}" for kind in _KINDS for what in ("Size", "IncompleteSize")))
def map_size(node: Construction) -> Kernel:
    """The number of complete, or of incomplete, entries."""
    area_of = _area_of(node)
    if node.op.endswith("IncompleteSize"):
        return lambda: np.int32(len(area_of().incomplete))
    return lambda: np.int32(len(area_of().complete))


@deferred_kernel(*(f"{kind}Clear" for kind in _KINDS))
def map_clear(node: Construction) -> Start:
    """Empties the area."""
    area_of = _area_of(node)

    def start(call: Call) -> None:
        area_of().clear()
        call.done()

    return start
