"""Weights of a model, as constants or as variables, with the same numbers on every machine.

A parameter depends only on its name and shape. It is on the device that is current in the builder.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Protocol
from zlib import crc32

import numpy as np

from ...graph.builder.builder import GraphBuilder
from ...graph.builder.handles import Operation, Tensor
from ...graph.dtypes import Array, DataType


def uniform(name: str, shape: Sequence[int]) -> Array:
    """float32 numbers in [-1, 1), the same on every machine: raw PCG64 bits, a stream that numpy keeps."""
    bits = np.random.PCG64(crc32(name.encode())).random_raw(prod(shape)) >> np.uint64(40)
    return (bits.astype(np.float32) / np.float32(2**23) - np.float32(1)).reshape(shape)


class Parameters(Protocol):
    """Makes the parameters of layers."""

    def uniform(self, name: str, shape: Sequence[int], scale: float) -> Tensor:
        """A float32 parameter, uniform between -scale and scale."""
        ...

    def full(self, name: str, shape: Sequence[int], value: float) -> Tensor:
        """A float32 parameter whose elements all start with `value`."""
        ...


class Constants:
    """Parameters as Const nodes: a frozen model."""

    def __init__(self, b: GraphBuilder) -> None:
        self._b = b

    def uniform(self, name: str, shape: Sequence[int], scale: float) -> Tensor:
        """As in `Parameters`; the numbers are in the graph."""
        return self._b.constant(uniform(name, shape) * np.float32(scale), name=name)

    def full(self, name: str, shape: Sequence[int], value: float) -> Tensor:
        """As in `Parameters`."""
        return self._b.constant(np.full(shape, value, np.float32), name=name)


class Variables:
    """Parameters as resource variables; a first step must run the target that `initialiser` makes.

    The numbers come from TensorFlow's stateless random ops, so the graph of a large model is small. Using a name again,
    as the next micro-batch does, gives the same variable.
    """

    def __init__(self, b: GraphBuilder) -> None:
        self._b = b
        self._assignments: list[Operation] = []
        self._reads: dict[str, Tensor] = {}

    def uniform(self, name: str, shape: Sequence[int], scale: float) -> Tensor:
        """As in `Parameters`."""
        if name in self._reads:
            return self._reads[name]
        seed = [crc32(name.encode()) & 0x7FFFFFFF, prod(shape)]
        drawn = self._b.op("StatelessRandomUniform", list(shape), seed, name=f"{name}/drawn", dtype=DataType.FLOAT)
        return self._variable(name, shape, (drawn * 2.0 - 1.0) * scale)

    def full(self, name: str, shape: Sequence[int], value: float) -> Tensor:
        """As in `Parameters`."""
        if name in self._reads:
            return self._reads[name]
        return self._variable(name, shape, self._b.op("Fill", list(shape), value, name=f"{name}/filled")[0])

    def initialiser(self, name: str = "initialise") -> Operation:
        """Adds a node that initialises all parameters made so far."""
        return self._b.group(*self._assignments, name=name, device="/device:CPU:0")

    def _variable(self, name: str, shape: Sequence[int], value: Tensor) -> Tensor:
        handle = self._b.op("VarHandleOp", name=name, dtype=DataType.FLOAT, shape=shape, attrs={"shared_name": name})
        self._assignments.append(self._b.op("AssignVariableOp", handle, value, name=f"{name}/assign"))
        self._reads[name] = self._b.op("ReadVariableOp", handle, name=f"{name}/read", dtype=DataType.FLOAT)[0]
        return self._reads[name]
