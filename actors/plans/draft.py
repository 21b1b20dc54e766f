"""A partition half way to a plan: what each node is, what may be dead, which values share a slot, what needs doing.

Flows in: columns, roles. Flows out: a `Draft`, read by the slot allocator and by the assembler. Always holds: a node
that `emits` gets exactly one instruction; a value that no instruction makes is in its slot before it is read.

Besides the outputs of nodes there are two more kinds of values, numbered after them where tensors may be dead or
variables are passed by reference: the token of a node (dead iff the node is; of a fetch: what it read), and what
arrives for a receive that may itself be dead.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...graph.arrays import Flags, Numbers
from ...graph.dtypes import REF_OFFSET
from .columns import Columns, Rows
from .liveness import Mortality, mortality
from .roles import Role, roles_of

_ALWAYS_EMITS = (Role.COMPUTE, Role.SEND, Role.SWITCH, Role.SWITCH_N, Role.MERGE, Role.DEFERRED, Role.LAUNCH)
_DIES_WITH_ITS_OUTPUT = (Role.COMPUTE, Role.ALIAS, Role.CONST, Role.MERGE, Role.DEFERRED, Role.ARRIVAL)


@dataclass
class Draft:
    """See the module.

    `source[v]` is the value whose slot `v` shares: itself, except behind identities. `is_reference[v]` says whether its
    type is that of a reference, `may_refer[v]` whether there may be a variable in its slot: what passes a tensor on
    passes the variable on, which is read by the node that computes with it, as if the two shared their memory.
    """

    columns: Columns
    roles: list[Role]
    mortal: Mortality | None
    is_reference: Flags | None
    receives_may_be_references: bool = False
    every_node: bool = False
    may_refer: Flags | None = field(init=False)
    aliased: Flags = field(init=False)
    source: Numbers = field(init=False)
    emits: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.codes = np.array(self.roles, np.int64)
        count = self.columns.num_nodes
        self.may_die: Flags = np.frombuffer(self.mortal.nodes, bool) if self.mortal else np.zeros(count, bool)
        self.may_refer = self._may_refer()
        self.aliased = self._aliased()
        self.source = self._sources()
        self.emits = self._emits()

    @property
    def num_values(self) -> int:
        """Outputs, tokens and arrivals together, the unused number 0 included."""
        extra = self.mortal is not None or self.is_reference is not None
        return self.columns.num_values + (2 * self.columns.num_nodes if extra else 0)

    @cached_property
    def arrivals(self) -> Numbers:
        """Per node the value that what is received for it is stored in: an output, or one of its own if it emits."""
        count = self.columns.num_nodes
        apart = self.columns.num_values + count + np.arange(count)
        arrivals: Numbers = np.where(self.emits, apart, self.columns.first_value[:-1])
        return arrivals

    def witness(self, node: int) -> int:
        """A value that is dead iff `node`, which may be, is dead."""
        has_outputs = self.first[node] < self.first[node + 1]
        if has_outputs and self.roles[node] in _DIES_WITH_ITS_OUTPUT:
            return int(self.source[self.first[node]])
        return self.columns.num_values + node

    def result(self, node: int) -> int:
        """The value that a fetch node hands out."""
        return self.columns.num_values + node if self.emits[node] else self.inputs[node][0]

    @cached_property
    def first(self) -> list[int]:
        """`columns.first_value` as a list."""
        first: list[int] = self.columns.first_value.tolist()
        return first

    @cached_property
    def inputs(self) -> Rows:
        """Per node: the values it reads, by port, identities seen through."""
        plain = self.columns.inputs
        return Rows(plain.starts, self.source[self.columns.data_value].tolist()) if self.aliased.any() else plain

    @cached_property
    def watched(self) -> dict[int, list[int]]:
        """Per node with control inputs that may be dead: their witnesses."""
        found: dict[int, list[int]] = {}
        if self.mortal is None:
            return found
        columns = self.columns
        for source, node in zip(columns.control.src.tolist(), columns.control.dst.tolist(), strict=True):
            if self.may_die[source] and self.roles[source] is not Role.SEND:
                found.setdefault(node, []).append(self.witness(source))
        return found

    @cached_property
    def tokens(self) -> set[int]:
        """The tokens that somebody reads."""
        return {v for witnesses in self.watched.values() for v in witnesses if v >= self.columns.num_values}

    def first_input(self, nodes: Numbers) -> Numbers:
        """The value on input 0 of each of `nodes`, identities not seen through."""
        return self.columns.data_value[np.searchsorted(self.columns.data.dst, nodes)]

    def _aliased(self) -> Flags:
        """Which nodes need nothing but that their output shares the slot of their input, dead or alive."""
        aliased: Flags = self.codes == Role.ALIAS
        if self.mortal is not None:
            columns = self.columns
            by_control = self.may_die[columns.control.src] & (self.codes[columns.control.src] != Role.SEND)
            aliased[columns.control.dst[by_control]] = False
        if self.every_node:
            aliased[:] = False
        elif self.is_reference is not None:
            nodes = np.flatnonzero(aliased)
            outputs = self.columns.first_value[nodes]
            aliased[nodes] = self.is_reference[self.first_input(nodes)] == self.is_reference[outputs]
        return aliased

    def _may_refer(self) -> Flags | None:
        """See the class; None where no value refers to a variable."""
        if self.is_reference is None:
            return None
        found = self.is_reference.copy()
        if self.receives_may_be_references:
            found[self.columns.first_value[np.flatnonzero(self.codes == Role.RECV)]] = True
        nodes = np.flatnonzero(self.codes == Role.ALIAS)
        outputs, inputs = self.columns.first_value[nodes], self.first_input(nodes)
        while not np.array_equal(found[outputs], passed := found[inputs]):
            found[outputs] = passed
        return found

    def _sources(self) -> Numbers:
        source = np.arange(self.num_values)
        nodes = np.flatnonzero(self.aliased)
        source[self.columns.first_value[nodes]] = self.first_input(nodes)
        while True:
            further = source[source]
            if np.array_equal(further, source):
                return source
            source = further

    def _emits(self) -> Flags:
        codes = self.codes
        emits: Flags = np.isin(codes, _ALWAYS_EMITS) | ((codes == Role.ALIAS) & ~self.aliased)
        emits |= self.may_die & np.isin(codes, (Role.CONST, Role.NOTHING, Role.RECV))
        if self.every_node:
            emits |= np.isin(codes, (Role.CONST, Role.NOTHING, Role.TRIGGER))
        if self.is_reference is not None:
            results = np.flatnonzero(codes == Role.RETVAL)
            emits[results] = self.is_reference[self.first_input(results)]
        return emits


def draft_of(
    columns: Columns,
    brings_death: Collection[Role] = (),
    *,
    receives_may_be_references: bool = False,
    every_node: bool = False,
) -> Draft:
    """The draft of a level; `brings_death` as in `mortality`."""
    role_of_kind = roles_of(columns.kinds)
    roles = list(map(role_of_kind.__getitem__, columns.kind.tolist()))
    is_reference = None
    if receives_may_be_references or any(t > REF_OFFSET for p in columns.kinds for t in p.output_types):
        flags = [False] + [t > REF_OFFSET for p in columns.properties for t in p.output_types]
        is_reference = np.array(flags, bool)
    mortal = mortality(columns, roles, brings_death)
    return Draft(columns, roles, mortal, is_reference, receives_may_be_references, every_node)
