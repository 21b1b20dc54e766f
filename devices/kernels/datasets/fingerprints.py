"""Fingerprints of datasets: those with different descriptions have different ones, within one session.

A description is a tree: classes, forms, numbers, tensors, names of functions and captured values. Bodies of functions
are not looked at, since a session has one body for each name. Of anything else, a generator for one, the class counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from pathlib import PurePath
from types import FunctionType
from typing import Any

import numpy as np

from ....graph.dtypes import Array
from ..functions import NamedFunction
from .dataset import Dataset


def fingerprint(dataset: Dataset) -> str:
    """A number of 64 bits, in decimal digits."""
    digest = blake2b(digest_size=8)
    _add(dataset, digest.update, set())
    return str(int.from_bytes(digest.digest(), "little"))


# The parts of a description are of any type.
def _add(value: Any, update: Callable[[bytes], object], above: set[int]) -> None:
    """Adds a value and what it has; a value inside of itself counts by its class."""
    update(b"%s(" % type(value).__qualname__.encode())
    if isinstance(value, np.ndarray | np.generic):
        _add_tensor(np.asarray(value), update)
    elif isinstance(value, str | bytes | int | float | PurePath) or value is None:
        update(repr(value).encode())
    elif id(value) not in above:
        for part in _parts(value):
            _add(part, update, above | {id(value)})
    update(b")")


def _add_tensor(tensor: Array, update: Callable[[bytes], object]) -> None:
    update(f"{tensor.dtype} {tensor.shape} ".encode())
    if tensor.dtype != object:
        update(tensor.tobytes())
        return
    for element in tensor.reshape(-1).tolist():
        update(repr(element).encode() if isinstance(element, bytes) else type(element).__qualname__.encode())


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return [part for item in value.items() for part in item]
    if isinstance(value, tuple | list):
        return value
    if isinstance(value, FunctionType):
        return [value.__qualname__, *(cell.cell_contents for cell in value.__closure__ or ())]
    if isinstance(value, NamedFunction):
        return [value.function.name, str(value.function)]
    return [getattr(value, each.name) for each in fields(value)] if is_dataclass(value) else []
