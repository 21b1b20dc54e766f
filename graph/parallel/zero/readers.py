"""Who computes with parameters, in the forward and in the backward pass.

    w/read = ReadVariableOp(w)       a value of w
    half = Cast(w/read)              depends on parameters alone: computed again for the backward pass
    y = MatMul(x, half)              a user in the forward pass
    d_x = MatMul(d_y, half)          a user in the backward pass, to be linked to a cast of its own
"""

from __future__ import annotations

from collections.abc import Collection

from ...edge_ends import Output
from ...ops.record import NodeClass
from ..value_flow import is_handle
from .region import ShardRegion
from .variables import ShardedVariable

_PURE = frozenset({NodeClass.OTHER, NodeClass.IDENTITY})
"""classes of nodes that may be computed twice"""


class ParameterReaders:
    """The readers of all parameters of shards.

    `values` are tensors that are values of parameters, `read_nodes` the nodes that make these of handles and references;
    `owners` are the nodes that depend on parameters alone, and these nodes, with the variables behind them; `links` are
    the edges by which others read them: output, reader, port. `users` has by (variable, is backward) the readers that
    are no owners.
    """

    def __init__(self, region: ShardRegion, *, forward: set[int], dependent: Collection[int]) -> None:
        """`forward` are the nodes that the loss depends on, `dependent` those that depend on the batch."""
        self._region = region
        self._forward = forward
        self._dependent = dependent
        self.values: dict[Output, ShardedVariable] = {}
        self.read_nodes: dict[int, ShardedVariable] = {}
        self.owners: dict[int, set[int]] = {}
        self.links: list[tuple[Output, int, int]] = []
        self.users: dict[tuple[int, bool], set[int]] = {}
        for variable in region.variables.values():
            if variable.is_parameter:
                self._find_values(variable)
        self._find_owners()
        for node in self.owners:
            self._find_links(node)

    def is_backward(self, node: int) -> bool:
        """Whether a node that gradients depend on is no part of the forward pass."""
        return node not in self._forward

    def _find_values(self, variable: ShardedVariable) -> None:
        for node in variable.read_nodes:
            if node not in self._region.before:
                continue
            if self._region.read_of((node, 0)) is variable:
                self.read_nodes[node] = variable
                self.values[node, 0] = variable
            else:
                self.values[variable.node, 0] = variable

    def _find_owners(self) -> None:
        """Adds what depends on parameters alone, in topological order."""
        for (node, _), variable in self.values.items():
            self.owners.setdefault(node, set()).add(variable.node)
        for node in self._region.flow.order:
            if node not in self.owners and self._is_repeatable(node):
                sources = self._region.flow.sources[node]
                variables = set[int]().union(*(self.owners.get(source, ()) for source, _ in sources))
                if variables:
                    self.owners[node] = variables

    def _is_repeatable(self, node: int) -> bool:
        """Whether a node of the forward pass can be computed again for the backward pass."""
        if node not in self._forward or node in self._dependent:
            return False
        record = self._region.kind(node).op_def.record
        return record.state is None and record.node_class in _PURE and record.calls is None

    def _find_links(self, node: int) -> None:
        region = self._region
        for output, reader, port in region.outputs_read(node):
            is_other = reader not in region.before or reader in self.read_nodes
            if is_other or is_handle(region.kind(reader).input_types[port]):
                continue
            self.links.append(((node, output), reader, port))
            if reader not in self.owners or self.is_backward(reader):
                for variable in self.owners[node]:
                    self.users.setdefault((variable, self.is_backward(reader)), set()).add(reader)
