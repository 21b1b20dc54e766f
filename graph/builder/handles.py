"""The handles that builders return: operations and their output tensors, with arithmetic operators.

A handle holds a name and types and no reference to the graph, so it stays valid when the graph changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from ...errors import OutOfRangeError
from ..dtypes import DataType

# Anything that can become a tensor; its type is checked when the node is made.
Input: TypeAlias = Any


class Maker(Protocol):
    """Anything that makes nodes, such as a `GraphBuilder`."""

    def op(self, op: str, *inputs: Input) -> Operation:
        """Adds a node that reads `inputs`."""


class _Arithmetic:
    """Operators of tensors, and of operations, which stand for their first output."""

    __slots__ = ()
    builder: Maker

    def _binary(self, op: str, left: Input, right: Input) -> Tensor:
        return self.builder.op(op, left, right)[0]

    def __add__(self, other: Input) -> Tensor:
        return self._binary("AddV2", self, other)

    def __radd__(self, other: Input) -> Tensor:
        return self._binary("AddV2", other, self)

    def __sub__(self, other: Input) -> Tensor:
        return self._binary("Sub", self, other)

    def __rsub__(self, other: Input) -> Tensor:
        return self._binary("Sub", other, self)

    def __mul__(self, other: Input) -> Tensor:
        return self._binary("Mul", self, other)

    def __rmul__(self, other: Input) -> Tensor:
        return self._binary("Mul", other, self)

    def __truediv__(self, other: Input) -> Tensor:
        return self._binary("RealDiv", self, other)

    def __rtruediv__(self, other: Input) -> Tensor:
        return self._binary("RealDiv", other, self)

    def __matmul__(self, other: Input) -> Tensor:
        return self._binary("MatMul", self, other)

    def __neg__(self) -> Tensor:
        return self.builder.op("Neg", self)[0]


@dataclass(slots=True, eq=False)  # treated as frozen; `frozen=True` would double the cost of adding a node
class Tensor(_Arithmetic):
    """Output `port` of the node called `node`, of type `dtype`."""

    builder: Maker
    node: str
    port: int
    dtype: DataType

    @property
    def name(self) -> str:
        """The name to feed or fetch it by, "node:port"."""
        return f"{self.node}:{self.port}"

    @property
    def input_text(self) -> str:
        """How a NodeDef writes it as an input."""
        return self.name if self.port else self.node

    def __repr__(self) -> str:
        return f"<Tensor {self.name} {self.dtype.name.lower()}>"


@dataclass(slots=True, eq=False)  # treated as frozen; `frozen=True` would double the cost of adding a node
class Operation(_Arithmetic):
    """A node: as an input it stands for its first output; `op[i]` is output i, and it unpacks into its outputs."""

    builder: Maker
    name: str
    op: str
    output_types: tuple[DataType, ...]

    def __len__(self) -> int:
        return len(self.output_types)

    def __getitem__(self, port: int) -> Tensor:
        if not 0 <= port < len(self.output_types):
            raise OutOfRangeError(
                f"Node {self.name!r} (type: {self.op!r}, num of outputs: {len(self)}) does not have output {port}",
                node=self.name,
            )
        return Tensor(self.builder, self.name, port, self.output_types[port])

    def __iter__(self) -> Iterator[Tensor]:
        return (self[port] for port in range(len(self)))

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Operation {self.name} {self.op}>"
