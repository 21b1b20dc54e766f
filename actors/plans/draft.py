"""A partition half way to a plan: the role of each node, which values share a slot, which nodes need an instruction.

Of y = -x + 1, where x is fed, the draft is:

    node          0 one      1 _arg_x    2 neg      3 y        4 _retval_y
    role          CONST      ARG         COMPUTE    COMPUTE    RETVAL
    emits         no         no          yes        yes        no
    outputs       1          2           3          4

A node that `emits` gets one instruction. Every other value is in its slot before it is read: arguments, constants and
messages are put there, and the output of an Identity is the value of its input (its `source`).

Most values are outputs of nodes. After them are numbered, for those nodes that need one:

- a deadness flag: a value that is dead iff the node is. It is for the nodes that wait for this one by a control edge.
- what a fetch has read, where a `_Retval` reads a variable
- what a receive gets from its message, where the receive itself may be dead
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...graph.arrays import Flags, Numbers, positions
from ...graph.dtypes import REF_OFFSET
from .columns import OrderedGraph, RaggedRows
from .deadness import may_be_dead
from .known import Known, known_nodes
from .numbering import NodeNumber, ValueNumber
from .roles import Role, role_flags, roles_of

if TYPE_CHECKING:
    from .binding import Binder

_ALWAYS_EMITS = (Role.COMPUTE, Role.SEND, Role.SWITCH, Role.SWITCH_N, Role.MERGE, Role.DEFERRED, Role.LAUNCH)
_DIES_WITH_ITS_OUTPUT = (Role.COMPUTE, Role.ALIAS, Role.CONST, Role.MERGE, Role.DEFERRED, Role.ARRIVAL)


@dataclass(frozen=True, eq=False, kw_only=True)
class Draft:
    """One level of a partition.

    `is_reference` says by output whether its type is that of a reference; None if no type is. With `every_node` each
    node emits, as traces want it. Nodes in `known` have the role of constants.
    """

    columns: OrderedGraph
    roles: list[Role]
    may_be_dead: Flags
    is_reference: Flags | None
    receives_may_be_references: bool
    every_node: bool
    known: Known

    @cached_property
    def codes(self) -> Numbers:
        """`roles` as an array."""
        return np.array(self.roles, np.int64)

    def nodes(self, *roles: Role) -> Numbers:
        """The nodes of any of these roles, in ascending order."""
        return positions(self.has_role(*roles))

    def has_role(self, *roles: Role) -> Flags:
        """By node: whether it has any of these roles."""
        return role_flags(*roles)[self.codes]

    @cached_property
    def first(self) -> list[ValueNumber]:
        """`columns.first_value` as a list."""
        first: list[ValueNumber] = self.columns.first_value.tolist()
        return first

    @cached_property
    def aliased(self) -> Flags:
        """By node: whether it needs no instruction because its output shares the slot of its input, dead or alive."""
        columns = self.columns
        aliased: Flags = self.has_role(Role.ALIAS)
        # An Identity that may die by a control edge has to look for it.
        aliased[columns.control.dst[self._may_die_by_control]] = False
        if self.every_node:
            aliased[:] = False
        elif self.is_reference is not None:  # nor does one that turns a reference into a tensor only pass it on
            nodes = positions(aliased)
            outputs = columns.first_value[nodes]
            aliased[nodes] = self.is_reference[self.first_input(nodes)] == self.is_reference[outputs]
        return aliased

    @cached_property
    def emits(self) -> Flags:
        """By node: whether it needs an instruction."""
        emits: Flags = self.has_role(*_ALWAYS_EMITS) | (self.has_role(Role.ALIAS) & ~self.aliased)
        emits |= self.may_be_dead & self.has_role(Role.CONST, Role.NOTHING, Role.RECV)
        if self.every_node:
            emits |= self.has_role(Role.CONST, Role.NOTHING, Role.TRIGGER)
        if self.is_reference is not None:
            results = self.nodes(Role.RETVAL)
            emits[results] = self.is_reference[self.first_input(results)]
        return emits

    @cached_property
    def may_refer(self) -> Flags | None:
        """By output: whether there may be a variable in its slot; None where no value refers to one.

        Nodes that pass a tensor on pass a variable on, whatever their type says. The node that computes with it reads
        it, as if the two shared their memory.
        """
        if self.is_reference is None:
            return None
        may_refer = self.is_reference.copy()
        if self.receives_may_be_references:
            may_refer[self.columns.first_value[self.nodes(Role.RECV)]] = True
        # `for n in identities: may_refer[output(n)] = may_refer[input(n)]`, all at once: a round for each further
        # identity in the longest row of them, which is short, instead of a turn for every identity.
        nodes = self.nodes(Role.ALIAS)
        outputs, inputs = self.columns.first_value[nodes], self.first_input(nodes)
        while not np.array_equal(may_refer[outputs], passed := may_refer[inputs]):
            may_refer[outputs] = passed
        return may_refer

    @cached_property
    def source(self) -> Numbers:
        """By value: the value whose slot it shares, which is itself except behind identities."""
        source = np.arange(self.num_values)
        nodes = positions(self.aliased)
        source[self.columns.first_value[nodes]] = self.first_input(nodes)
        # `while source[v] != v: v = source[v]` for every value: each round doubles the steps that it takes.
        while True:
            further = source[source]
            if np.array_equal(further, source):
                return source
            source = further

    @property
    def num_values(self) -> int:
        """One more than the largest number of a value."""
        return self.columns.num_values + len(self.own_value) + len(self._receives_apart)

    @cached_property
    def inputs(self) -> RaggedRows:
        """By node: the values that it reads, by port, identities seen through."""
        plain = self.columns.inputs
        return RaggedRows(plain.starts, self.source[self.columns.data_value].tolist()) if self.aliased.any() else plain

    def first_input(self, nodes: Numbers) -> Numbers:
        """The value on input 0 of each of `nodes`, identities not seen through."""
        return self.columns.data_value[np.searchsorted(self.columns.data.dst, nodes)]

    @cached_property
    def own_value(self) -> dict[NodeNumber, ValueNumber]:
        """Values beyond the outputs, by node: a deadness flag, or what a fetch has read; in ascending order."""
        src = self.columns.control.src
        flagged = {n for n in set(src[self._may_die_by_control].tolist()) if not self._output_is_flag(n)}
        read = self.nodes(Role.RETVAL)
        nodes = sorted(flagged.union(read[self.emits[read]].tolist()))
        return {node: ValueNumber(number) for number, node in enumerate(nodes, self.columns.num_values)}

    @cached_property
    def arrival(self) -> Numbers:
        """By node: the value that a receive gets from its message; 0 for other nodes."""
        receives, apart = self.nodes(Role.RECV), self._receives_apart
        arrival = np.zeros(self.columns.num_nodes, np.int64)
        arrival[receives] = self.columns.first_value[receives]
        arrival[apart] = np.arange(self.num_values - len(apart), self.num_values)
        return arrival

    @cached_property
    def watched(self) -> dict[NodeNumber, list[ValueNumber]]:
        """The deadness flags that a node has to look at, of the nodes that it waits for by control edges."""
        watched: dict[NodeNumber, list[ValueNumber]] = {}
        edges = positions(self._may_die_by_control)
        control = self.columns.control
        for source, node in zip(control.src[edges].tolist(), control.dst[edges].tolist(), strict=True):
            watched.setdefault(node, []).append(self.deadness_flag(source))
        return watched

    def deadness_flag(self, node: NodeNumber) -> ValueNumber:
        """The value that is dead iff a node is, for a node that may be dead and that others wait for."""
        if self._output_is_flag(node):
            return ValueNumber(int(self.source[self.first[node]]))
        return self.own_value[node]

    def result(self, node: NodeNumber) -> ValueNumber:
        """The value that a `_Retval` returns."""
        return self.own_value[node] if self.emits[node] else ValueNumber(self.inputs[node][0])

    @cached_property
    def _may_die_by_control(self) -> Flags:
        """By control edge: whether its destination is dead in the steps in which its source is, and there are any."""
        src = self.columns.control.src
        flags: Flags = self.may_be_dead[src] & (self.codes[src] != Role.SEND)
        return flags

    def _output_is_flag(self, node: NodeNumber) -> bool:
        """Whether output 0 of a node is dead iff the node is."""
        return self.first[node] < self.first[node + 1] and self.roles[node] in _DIES_WITH_ITS_OUTPUT

    @cached_property
    def _receives_apart(self) -> Numbers:
        """The receives that may be dead: an instruction takes the value from where the message put it."""
        receives = self.nodes(Role.RECV)
        return receives[self.emits[receives]]


def draft_of(
    columns: OrderedGraph,
    binder: Binder,
    *,
    dead_sources: Collection[Role] = (),
    receives_may_be_references: bool = False,
    every_node: bool = False,
) -> Draft:
    """The draft of a level; `dead_sources` as in `may_be_dead`, `binder` has the kernels of its device."""
    role_of_kind = roles_of(columns.kinds)
    roles = list(map(role_of_kind.__getitem__, columns.kind.tolist()))
    refers = receives_may_be_references or any(t > REF_OFFSET for p in columns.kinds for t in p.output_types)
    dead = may_be_dead(columns, roles, dead_sources)
    known = {} if every_node else known_nodes(columns, roles, dead, binder)
    for node in known:
        roles[node] = Role.CONST
    return Draft(
        columns=columns,
        roles=roles,
        may_be_dead=dead,
        is_reference=_is_reference(columns) if refers else None,
        receives_may_be_references=receives_may_be_references,
        every_node=every_node,
        known=known,
    )


def _is_reference(columns: OrderedGraph) -> Flags:
    """By output: whether its type is that of a reference."""
    of_outputs: Sequence[bool] = [t > REF_OFFSET for p in columns.properties for t in p.output_types]
    return np.array([False, *of_outputs], bool)  # numbers of outputs start at 1
