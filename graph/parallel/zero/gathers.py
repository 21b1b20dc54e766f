"""Stage 3: parameters are shards, and whole only while a unit is computed.

    unit      forward                          backward
    a         gather a0, forward of a          gather a1, backward of a
    b         gather b0, forward of b          gather b1, backward of b

    prefetch 0:  a0 | a | b0 | b | b1 | b' | a1 | a'     a gather waits until the unit before it was computed
    prefetch 1:  a0, b0 | a ...                          it runs while the unit before it is computed

Gathers are in the order in which a topological order of the step first needs them. The tensors of a gather have no
other readers than its pass, so they are freed when the last of these has run. Nodes that depend on parameters alone,
such as a cast to half precision, are computed again for the backward pass: else it would keep what they gave in the
forward pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...builder.handles import Tensor
from ...dtypes import DataType
from ...edge_ends import Output
from .collectives import ShardCollectives
from .edits import Edits
from .readers import ParameterReaders
from .region import ShardRegion
from .state import StateShards
from .variables import ShardedVariable


@dataclass(eq=False, slots=True)
class UnitGather:
    """The gather of a unit for one pass: its collectives, one per element type, and the first to need what it gives."""

    nodes: list[str]
    users: set[int]
    first: int


class ParameterGathers:
    """The gathers of one step."""

    def __init__(
        self,
        region: ShardRegion,
        edits: Edits,
        collectives: ShardCollectives,
        state: StateShards,
        readers: ParameterReaders,
    ) -> None:
        self._region = region
        self._edits = edits
        self._collectives = collectives
        self._state = state
        self._readers = readers
        self._values: dict[int, Tensor] = {}
        self._again: dict[Output, Tensor] = {}
        self._wholes: dict[tuple[int, bool], Tensor] = {}

    def value(self, variable: ShardedVariable) -> Tensor:
        """The shard that a variable has at the begin of the step."""
        if variable.node not in self._values:
            name = f"zero/{variable.name}/value"
            with self._edits.beside(variable.node):
                self._values[variable.node] = self._state.read(self._state.handles[variable.node], variable, name)
        return self._values[variable.node]

    def add(self, units: Mapping[str, Sequence[ShardedVariable]], prefetch: int) -> None:
        """Adds a gather per unit and pass, and connects what reads parameters."""
        passes = [(unit, is_backward) for unit in units for is_backward in (False, True)]
        used = {(unit, back): self._used(units[unit], is_backward=back) for unit, back in passes}
        needed = [which for which in passes if used[which]]
        needed.sort(key=lambda which: self._first(used[which], is_backward=which[1]))
        gathers = [self._gather(unit, used[unit, back], is_backward=back) for unit, back in needed]
        self._connect()
        for earlier, later in zip(gathers, gathers[1 + prefetch :], strict=False):
            self._hold_back(earlier, later)

    def _used(self, variables: Sequence[ShardedVariable], *, is_backward: bool) -> list[ShardedVariable]:
        """Those of some parameters that a pass reads."""
        return [v for v in variables if self._readers.users.get((v.node, is_backward))]

    def _users(self, variables: Sequence[ShardedVariable], *, is_backward: bool) -> set[int]:
        return set[int]().union(*(self._readers.users[v.node, is_backward] for v in variables))

    def _first(self, variables: Sequence[ShardedVariable], *, is_backward: bool) -> int:
        """When a pass first needs some parameters, as a place in the order of nodes."""
        return min(map(self._region.flow.position.__getitem__, self._users(variables, is_backward=is_backward)))

    def _gather(self, unit: str, variables: Sequence[ShardedVariable], *, is_backward: bool) -> UnitGather:
        gather = UnitGather(
            [], self._users(variables, is_backward=is_backward), self._first(variables, is_backward=is_backward)
        )
        name = f"zero/{unit or 'others'}/{'backward' if is_backward else 'forward'}"
        kinds: dict[tuple[DataType, str], list[ShardedVariable]] = {}
        for variable in variables:
            device = self._region.graph.requested_device(variable.node)
            kinds.setdefault((variable.dtype, device), []).append(variable)
        for some in kinds.values():
            cuts = [self._collectives.cut(variable.shape) for variable in some]
            shards = [self.value(variable) for variable in some]
            with self._edits.beside(some[0].node):
                wholes, node = self._collectives.gather(shards, cuts, self._edits.make.unique_name(name))
            self._wholes.update({(v.node, is_backward): whole for v, whole in zip(some, wholes, strict=True)})
            gather.nodes.append(node)
            for update in {update for variable in some for update in variable.updates}:
                self._edits.wait(node, self._region.graph.node_name(update))
        return gather

    def _connect(self) -> None:
        """Readers of the step get what was gathered for their pass; what waits for a read waits for that of shards."""
        for node, variable in self._readers.read_nodes.items():
            self._move_waits(node, self.value(variable).node)
        for output, reader, port in self._readers.links:
            if self._readers.is_backward(reader):
                self._edits.connect(self._repeated(output), reader, port)
            elif output in self._readers.values:
                self._edits.connect(self._wholes[self._readers.values[output].node, False], reader, port)

    def _move_waits(self, node: int, instead: str) -> None:
        """The nodes of the step that wait for one wait for another, so that the step does not need the first."""
        for edge in self._region.graph.node(node).out_edges():
            reader = edge.dst.id
            if edge.is_control and (reader in self._region.nodes or reader in self._region.before):
                self._edits.no_longer_wait(node, reader)
                self._edits.wait(instead, edge.dst.name)

    def _repeated(self, output: Output) -> Tensor:
        """What an output is in the backward pass."""
        node, _ = output
        variable = self._readers.values.get(output)
        if variable is not None:
            return self._wholes[variable.node, True]
        if node not in self._readers.owners:
            return self._edits.tensor(output)
        if output not in self._again:
            inputs = [self._repeated(source) for source in self._region.flow.sources[node]]
            name = f"zero/{self._region.graph.node_name(node)}/again"
            with self._edits.beside(node):
                again = self._edits.again(node, inputs, name)
            self._again.update({(node, k): t for k, t in enumerate(again)})
        return self._again[output]

    def _hold_back(self, earlier: UnitGather, later: UnitGather) -> None:
        """Lets a gather wait until an earlier one was used, as far as that is before it is needed."""
        position, graph = self._region.flow.position, self._region.graph
        for user in sorted(earlier.users):
            if position[user] < later.first and user not in self._region.conditional:
                for node in later.nodes:
                    self._edits.wait(graph.node_name(user), node)
