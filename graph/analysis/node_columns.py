"""Nodes and their data inputs as columns, for code that follows tensors from producers to consumers.

node       0 x   1 a = Neg(x)   2 b = Mul(a, a)
inputs of node n: output input_output[i] of node input_src[i], for i from input_start[n] to input_start[n + 1]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Flags, Numbers
from ..columns import Ids
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass


@dataclass(eq=False, repr=False)
class NodeColumns:
    """By node: `names`; `kind_of`, an index into `kinds`; `sender`, the send of a receive, -1 of all others.

    By kind: `ops` and `classes`.
    """

    names: list[str]
    kinds: list[NodeProperties]
    kind_of: Ids
    input_start: Numbers
    input_src: Ids
    input_output: Ids
    sender: Ids

    def __post_init__(self) -> None:
        self.ops = [kind.op for kind in self.kinds]
        self.classes = [kind.op_def.record.node_class for kind in self.kinds]

    def __len__(self) -> int:
        return len(self.names)

    def op(self, n: int) -> str:
        """Name of the op of a node."""
        return self.ops[int(self.kind_of[n])]

    def node_class(self, n: int) -> NodeClass:
        """Class of the op of a node."""
        return self.classes[int(self.kind_of[n])]

    def properties_of(self, n: int) -> NodeProperties:
        """All properties of a node, except that a transfer of a cut has no attr but its type."""
        return self.kinds[int(self.kind_of[n])]

    def inputs_of(self, n: int) -> list[tuple[int, int]]:
        """One (node, output) per data input."""
        begin, end = self.input_start[n], self.input_start[n + 1]
        return list(zip(self.input_src[begin:end].tolist(), self.input_output[begin:end].tolist(), strict=True))

    def of_class(self, *classes: NodeClass) -> Flags:
        """By node whether its op is of one of the classes."""
        return np.array([c in classes for c in self.classes], np.bool_)[self.kind_of]
