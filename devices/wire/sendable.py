"""Which values can travel between processes, and how large they are.

array, scalar, dead tensor (None), bytes, handle       travel
variant of a list, an optional, a ragged tensor ...    travels if what is in it does
iterator, dataset, tensor array, stack ...             objects of one process: `unsendable` says what kind
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from ..state import ResourceHandle, Variable
from .carried_values import FORMS
from .element_types import NUMBERS, SCALARS
from .memory_order import stored_bytes
from .sections import MAX_DEPTH, NotSent

# By the name of a class, which stands here as text so that a word in an error imports no family of kernels.
_KINDS: Final = {
    "TensorArray": "a tensor array",
    "Stack": "a stack",
    "Dataset": "a dataset",
    "IteratorResource": "an iterator",
    "MultiDeviceIterator": "an iterator",
    "MemoryCache": "the cache of a dataset",
    "SeedGenerator": "a generator of seeds",
    "Table": "a table without a name",
    "Lock": "the lock of a mutex",
    "Communicator": "a communicator",
}
_ATOMS: Final = (np.generic, bytes, ResourceHandle, NotSent)


def unsendable(value: object) -> str | None:
    """What a value is, or what in it is, that cannot leave its process ("an iterator"); None if it can travel.

    A variable travels as its value, so that it can unless this holds something.
    """
    if type(value) in SCALARS:
        return None
    return _TravelCheck().reason(value.value if isinstance(value, Variable) else value, 0)


class _TravelCheck:
    """Looks for what cannot travel, in the order in which values are encoded: each object once."""

    def __init__(self) -> None:
        self._passed: set[int] = set()

    def reason(self, value: object, depth: int) -> str | None:
        """What cannot travel in a value that is inside `depth` others."""
        if isinstance(value, np.ndarray):
            if value.dtype != object:
                return None if value.dtype in NUMBERS else f"an array of the numpy type {value.dtype}"
            return self._first(value, value.reshape(-1).tolist(), depth)
        form = FORMS.get(type(value))
        if form is not None:
            return self._first(value, form.apart(value)[1], depth)
        if isinstance(value, np.generic) and not isinstance(value, bytes):
            return None if value.dtype in NUMBERS else f"a scalar of the numpy type {value.dtype}"
        # The name of a tensor array is text that carries the array, see `kernels/carried.py`.
        thing = getattr(value, "thing", None) if isinstance(value, bytes) else value
        return None if thing is None or isinstance(thing, _ATOMS) else _kind(thing)

    def _first(self, value: object, items: Sequence[object], depth: int) -> str | None:
        """The first reason of the items of a value."""
        if id(value) in self._passed or set(map(type, items)) <= {bytes, ResourceHandle}:
            return None
        if depth >= MAX_DEPTH:
            return f"a value with values inside each other more than {MAX_DEPTH} deep"
        for item in items:
            reason = self.reason(item, depth + 1)
            if reason is not None:
                return reason
        self._passed.add(id(value))
        return None


def _kind(thing: object) -> str:
    names = (cls.__name__ for cls in type(thing).__mro__)
    known = (_KINDS[name] for name in names if name in _KINDS)
    return next(known, f"an object of class {type(thing).__name__}")


def size_of(value: object) -> int:
    """The bytes of the elements of a value as it travels: strings and plain bytes count theirs, each array once.

    The same for what arrives, so that both ends count alike. What takes some bytes whatever its size (its kind, its
    shape) is not counted; nothing is for a dead tensor, for a handle and for what cannot travel.
    """
    if type(value) in SCALARS:
        return int(value.nbytes)  # type: ignore[attr-defined]  # a numpy scalar
    return _size(value.value if isinstance(value, Variable) else value, set())


def _size(value: Any, counted: set[int]) -> int:  # Any: a value of any kind
    if isinstance(value, np.ndarray):
        if value.dtype != object:
            return _once(value, counted) * stored_bytes(value)
        return _once(value, counted) and _sum(value.reshape(-1).tolist(), counted)
    form = FORMS.get(type(value))
    if form is not None:
        return _once(value, counted) and _sum(form.apart(value)[1], counted)
    if isinstance(value, bytes):
        return len(value)
    return value.nbytes if isinstance(value, np.generic) else 0


def _sum(items: Iterable[object], counted: set[int]) -> int:
    return sum([len(item) if type(item) is bytes else _size(item, counted) for item in items])


def _once(value: object, counted: set[int]) -> bool:
    """Whether a value is counted for the first time."""
    if id(value) in counted:
        return False
    counted.add(id(value))
    return True
