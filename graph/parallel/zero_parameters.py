"""Stage 3: parameters are shards, and whole only while a unit is computed.

    unit      forward                          backward
    a         gather a0, forward of a          gather a1, backward of a
    b         gather b0, forward of b          gather b1, backward of b

    prefetch 0:  a0 | a | b0 | b | b1 | b' | a1 | a'     a gather waits until the unit before it was computed
    prefetch 1:  a0, b0 | a ...                          it runs while the unit before it is computed

Gathers are in the order in which a topological order of the step first needs them. The tensors of a gather have no other
readers than its pass, so they are freed when the last of these has run. Nodes that depend on parameters alone, such as a
cast to half precision, are computed again for the backward pass, which would otherwise keep what they gave in the forward
pass.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..builder.handles import Tensor
from ..edge_ends import Output
from ..ops.record import NodeClass
from .value_flow import is_handle
from .zero_collectives import ShardCollectives
from .zero_edits import Edits
from .zero_region import ShardedVariable, ShardRegion
from .zero_state import StateShards
from .zero_units import buckets


@dataclass(eq=False, slots=True)
class UnitGather:
    """The gather of a unit for one pass: its collectives, one per element type, and who computes with what it gives."""

    variables: Sequence[ShardedVariable]
    wholes: dict[int, Tensor] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    users: set[int] = field(default_factory=set)


class ParameterGathers:
    """The gathers of one step."""

    def __init__(
        self,
        region: ShardRegion,
        edits: Edits,
        collectives: ShardCollectives,
        state: StateShards,
        *,
        forward: set[int],
        dependent: Collection[int],
    ) -> None:
        """`forward` are the nodes that the loss depends on, `dependent` those that depend on the batch."""
        self._region = region
        self._edits = edits
        self._collectives = collectives
        self._state = state
        self._forward = forward
        self._dependent = dependent
        self._values: dict[int, Tensor] = {}
        self._read: dict[Output, ShardedVariable] = {}
        self._again: dict[Output, Tensor] = {}
        self._gathers: dict[int, tuple[UnitGather, UnitGather]] = {}

    def value(self, variable: ShardedVariable) -> Tensor:
        """The shard that a variable has at the begin of the step."""
        if variable.node not in self._values:
            name = f"zero/{variable.name}/value"
            self._values[variable.node] = self._state.read(self._state.handles[variable.node], variable, name)
        return self._values[variable.node]

    def add(self, units: Mapping[str, Sequence[ShardedVariable]], prefetch: int) -> None:
        """Adds a gather per unit and pass, and connects what reads parameters."""
        gathers = []
        for unit, variables in units.items():
            both = self._gather(unit, "forward", variables), self._gather(unit, "backward", variables)
            self._gathers.update((variable.node, both) for variable in variables)
            gathers += both
        for variable in self._gathers:
            self._replace_reads(self._region.variables[variable])
        self._connect_readers()
        position = self._region.flow.position
        used = sorted((g for g in gathers if g.users), key=lambda g: min(map(position.__getitem__, g.users)))
        for earlier, later in zip(used, used[1 + prefetch :], strict=False):
            self._hold_back(earlier, later)

    def _gather(self, unit: str, which: str, variables: Sequence[ShardedVariable]) -> UnitGather:
        gather = UnitGather(variables)
        name = f"zero/{unit or 'others'}/{which}"
        for some in buckets(sorted(variables, key=lambda v: v.dtype), lambda v: v.dtype, lambda _: 0, 1):
            cuts = [self._collectives.cut(variable.shape) for variable in some]
            shards = [self.value(variable) for variable in some]
            wholes, node = self._collectives.gather(shards, cuts, self._edits.make.unique_name(name))
            gather.wholes.update({v.node: whole for v, whole in zip(some, wholes, strict=True)})
            gather.nodes.append(node)
            for update in {update for variable in some for update in variable.updates}:
                self._edits.wait(node, self._region.graph.node_name(update))
        return gather

    # Readers

    def _replace_reads(self, variable: ShardedVariable) -> None:
        """Reads of the forward and the backward pass give what was gathered, under their names."""
        forward, backward = self._gathers[variable.node]
        for node in variable.read_nodes:
            if node not in self._region.before:
                continue
            whole = (forward if node in self._forward else backward).wholes[variable.node]
            if self._region.read_of((node, 0)) is variable:
                self._edits.become(node, "Identity", whole, T=variable.dtype)
                self._read[node, 0] = variable
            else:
                self._read[variable.node, 0] = variable

    def _connect_readers(self) -> None:
        """Connects the readers of parameters, and of what depends on parameters alone, to the gather of their pass."""
        owners: dict[int, set[int]] = {}
        for (node, _), variable in self._read.items():
            owners.setdefault(node, set()).add(variable.node)
        for node in self._region.flow.order:
            if node not in owners and self._is_repeated(node):
                found = set[int]().union(*(owners.get(source, ()) for source, _ in self._region.flow.sources[node]))
                if found:
                    owners[node] = found
        for node, variables in owners.items():
            self._connect(node, variables, owners)

    def _connect(self, node: int, variables: set[int], owners: Mapping[int, set[int]]) -> None:
        region = self._region
        for output, reader, port in region.outputs_read(node):
            if reader not in region.before or reader in region.variables or is_handle(region.kind(reader).input_types[port]):
                continue
            is_backward = reader not in self._forward
            if is_backward:
                self._edits.connect(self._repeated((node, output)), reader, port)
            elif node in region.variables and (reader, 0) not in self._read:
                self._edits.connect(self._gathers[node][0].wholes[node], reader, port)
            if reader not in owners:
                for variable in variables:
                    self._gathers[variable][is_backward].users.add(reader)

    def _is_repeated(self, node: int) -> bool:
        """Whether a node of the forward pass is computed again for the backward pass, if it reads parameters."""
        if node not in self._forward or node in self._dependent:
            return False
        kind = self._region.kind(node)
        record = kind.op_def.record
        return record.state is None and record.node_class in _PURE and record.calls is None

    def _repeated(self, output: Output) -> Tensor:
        """What an output is in the backward pass."""
        if output in self._read:
            variable = self._read[output].node
            return self._gathers[variable][1].wholes[variable]
        node, port = output
        if not self._is_repeated(node):
            return self._edits.tensor(output)
        if output not in self._again:
            inputs = [self._repeated(source) for source in self._region.flow.sources[node]]
            name = f"zero/{self._region.graph.node_name(node)}/again"
            self._again.update({(node, k): t for k, t in enumerate(self._edits.again(node, inputs, name))})
        return self._again[output]

    # Order

    def _hold_back(self, earlier: UnitGather, later: UnitGather) -> None:
        """Lets a gather wait until an earlier one was used, as far as that is before it is needed."""
        position, graph = self._region.flow.position, self._region.graph
        first = min(map(position.__getitem__, later.users))
        for user in sorted(earlier.users):
            if position[user] < first and user not in self._region.conditional:
                for node in later.nodes:
                    self._edits.wait(graph.node_name(user), node)


_PURE = frozenset({NodeClass.OTHER, NodeClass.IDENTITY})
"""classes of nodes that may be computed twice"""
