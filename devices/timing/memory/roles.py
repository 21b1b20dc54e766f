"""What the nodes of a training step are for, found by the way of values alone: names and attrs say nothing here.

Weights are numbered in the order in which the step first computes with them. For two layers y = f(x w1), z = g(y w2):

    node             depends on weights up to    leads to gradients up to
    y                1                           2        forward: it leads to those of all that it depends on
    z, d_z           2                           2        the end: both belong to the last weight
    d_w2             2                           its own: a root of `update_chains`
    d_y = d_z w2'    2                           1        backward: it does not lead to d_w2 any more
    d_w1             2                           its own
    y again          1                           1        forward: recomputed

So a node is of the forward pass, or of its recomputation, if it leads to gradients of the last weight that it depends
on. The end, from the last product to the gradient of its result, is neither: what it holds is a temporary.

A variable is *trained* if a gradient by which it is changed depends on it, or on a weight that is used later. Variables
that are changed by the same gradients, or by which a trained one is changed, are the optimizer's. So are masters:
trained variables that the network sees through a cast to a narrower type only. Other variables that a step changes by
more than initial values (caches, moving averages) are state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from ....graph.arrays import Flags, Numbers
from ....graph.ops.record import NodeClass, Updates
from .passed_on import PassedOn, is_exchange
from .step_flow import StepFlow
from .tensors import Tensors
from .update_chains import NEVER_USED, Chains, WeightUpdate


class Roles:
    """Sets of nodes and outputs of a `StepFlow`."""

    def __init__(self, flow: StepFlow, tensors: Tensors) -> None:
        self.flow = flow
        self.passed_on = PassedOn(flow)
        self._tensors = tensors
        self._read_variables()
        self.updates = _updates(flow, tensors)
        self.changed = {v for update in self.updates for v in (update.variable, *update.slots)}
        self._find_chains()
        self._find_trained()
        self._find_passes()
        self.weights = self._weights()
        """by output that is a weight, or its copy in another type, whether it came by an exchange"""
        self.masters = {v for v in self.trained if self._is_master(v)}
        self.optimizer = self._optimizer() | self.masters
        self.state = self._state()

    def _read_variables(self) -> None:
        """By output that is a variable, or a value that was read of it, the nodes of the variables."""
        tensors, flow = self._tensors, self.flow
        self.variable_of: dict[int, set[int]] = defaultdict(set)
        variables = np.flatnonzero(tensors.is_variable & (tensors.shares == np.arange(len(tensors.shares))))
        this, that = tensors.variable_reads
        outputs = np.concatenate([variables, this])
        owners = np.concatenate([variables, tensors.shares[that]])
        owners = flow.node_of_row[tensors.node[owners]]
        self._values: dict[int, list[int]] = defaultdict(list)
        for output, variable in dict.fromkeys(zip(flow.of_first(outputs).tolist(), owners.tolist(), strict=True)):
            self.variable_of[output].add(variable)
            self._values[variable].append(output)

    def _find_chains(self) -> None:
        """The chains of all updates; a tensor that leads to gradients of other variables is in none."""
        self.chains = Chains(self.passed_on, self.updates, self.variable_of)
        leads = self._leading_to_roots()
        signals = {
            output
            for output in self.chains.sources
            if output not in self.variable_of
            and any(reader in leads and not self._continues(reader) for reader in self.flow.readers(output))
        }
        if signals:
            self.chains = Chains(self.passed_on, self.updates, self.variable_of, signals)
            leads = self._leading_to_roots()
        self.leads = leads
        """nodes that lead to roots"""

    def _continues(self, node: int) -> bool:
        """Whether a chain goes through a node."""
        return any(output in self.chains.sources for output in self.flow.outputs(node))

    def _leading_to_roots(self) -> set[int]:
        return self.flow.leading_to(self._root_nodes(), frozenset())

    def _root_nodes(self) -> set[int]:
        return {self.flow.node(root) for root in self.chains.roots}

    def _find_trained(self) -> None:
        """The trained variables, with the places in the order of their first uses."""
        flow = self.flow
        first = {v: use for v in self.changed if (use := self._first_use(v)) is not None}
        depends = flow.forward([first.get(node, NEVER_USED) for node in range(flow.count)])
        _, latest = self.chains.down({root: depends[flow.node(root)] for root in self.chains.roots})
        self.trained = {v: use for v, use in first.items() if latest.get(v, NEVER_USED) >= use}

    def _first_use(self, variable: int) -> int | None:
        """The first node that computes with a variable what leads to a gradient."""
        uses = (node for _, node in self._uses(variable))
        return min(uses, default=None)

    def _uses(self, variable: int) -> Iterator[tuple[int, int]]:
        """The nodes on the way to gradients that compute with a variable, behind the copies that they read."""
        flow, seen = self.flow, set(self.flow.outputs(variable))
        waiting = list(seen)
        while waiting:
            output = waiting.pop()
            for reader in self.leads.intersection(flow.readers(output)):
                copies = [out for out in flow.outputs(reader) if self._copies(out)]
                if not copies:
                    yield output, reader
                own = {out for out in copies if not seen.isdisjoint(self._origins(out))} - seen
                seen |= own
                waiting += own

    def _copies(self, output: int) -> bool:
        """Whether an output is the value of a variable, or of one tensor in another type, in a bucket, or moved."""
        if output in self.variable_of:
            return True
        kind, passed = self.flow.kinds[self.flow.node(output)], self.passed_on(output)
        if not passed.sources:
            return False
        record = kind.op_def.record
        moves = record.is_transfer or is_exchange(kind) or bool(passed.buckets)
        is_joined = record.linear_inputs < 0 and not record.in_place
        return moves or is_joined or (len(passed.sources) == 1 and (record.in_place or record.is_additive))

    def _origins(self, output: int) -> Iterable[int]:
        """The outputs of which a copy has the elements; of the value of a variable the variable."""
        if output in self.variable_of:
            return self.flow.sources(self.flow.node(output))
        return self.passed_on(output).sources

    def _find_passes(self) -> None:
        """Which nodes are of the forward pass, and which are of the backward pass."""
        flow, trained = self.flow, self.trained
        self.served = self.chains.up(trained)
        """by output of a chain the last trained variable that it changes"""
        depends = flow.forward([trained.get(node, NEVER_USED) for node in range(flow.count)])
        start = [NEVER_USED] * flow.count
        self.roots = {root for root in self.chains.roots if root in self.served}
        for root in self.roots:
            node = flow.node(root)
            start[node] = max(start[node], self.served[root])
        makes_gradients = {flow.node(root) for root in self.roots}
        leads, ahead = flow.backward(start), flow.backward(list(depends))
        is_forward, is_backward = [False] * flow.count, [False] * flow.count
        for node in range(flow.count):
            if node in makes_gradients or 0 <= leads[node] < depends[node]:
                is_backward[node] = True
            elif leads[node] >= 0:
                is_forward[node] = depends[node] < ahead[node]
        self.gradients = self.chains.behind(self.roots)
        """outputs that are gradients, or sums of some, on their way to updates"""
        for output in self.gradients:
            is_backward[flow.node(output)] = True
        self.is_forward: Flags = np.array(is_forward, np.bool_)
        self.is_backward: Flags = np.array(is_backward, np.bool_)

    def _weights(self) -> dict[int, bool]:
        """Values of trained variables, or without one of all that a step only reads, and their copies."""
        flow, found = self.flow, dict[int, bool]()
        variables = self.trained or self._values.keys() - self.changed
        waiting = list(dict.fromkeys(out for variable in variables for out in self._values[variable]))
        found.update(dict.fromkeys(waiting, False))
        while waiting:
            for node in flow.readers(waiting.pop()):
                if self.trained and node not in self.leads:
                    continue
                for output in flow.outputs(node):
                    before, buckets = self.passed_on(output)
                    if output in found or not before or not all(source in found for source in before):
                        continue
                    is_moved = is_exchange(flow.kinds[node])
                    moved = is_moved or any(found.get(source, False) for source in (*before, *buckets))
                    if moved or self._copies(output):
                        found[output] = moved
                        waiting.append(output)
        return found

    def _is_master(self, variable: int) -> bool:
        """Whether all that computes with the value of a variable computes with a narrower copy of it."""
        width = max(map(self.flow.width, self._values[variable]))
        return all(self.flow.width(read) < width for read, _ in self._uses(variable))

    def _optimizer(self) -> set[int]:
        """Variables by which trained ones are changed, and those that are changed by the same gradients."""
        _, by_gradients = self.chains.down(dict.fromkeys(self.roots, 0))
        ends = [update.node for update in self.updates if update.variable in by_gradients]
        leading = self.flow.leading_to(ends, {self.flow.node(root) for root in self.roots})
        slots = {v for update in self.updates if update.variable in by_gradients for v in update.slots}
        beside = {v for v in self.changed if v in leading or v in by_gradients}
        return (beside | slots) - self.trained.keys()

    def _state(self) -> set[int]:
        """Other variables that are changed by what depends on inputs or variables; initial values do not."""
        flow, start = self.flow, [NEVER_USED] * self.flow.count
        for node, kind in enumerate(flow.kinds):
            record = kind.op_def.record
            if record.is_placeholder or record.is_recv or record.node_class is NodeClass.ARG:
                start[node] = 1
        for variables in self.variable_of.values():
            for variable in variables:
                start[variable] = 1
        depends = flow.forward(start)
        values = {u.variable: u.values for u in self.updates if any(depends[flow.node(v)] > 0 for v in u.values)}
        return values.keys() - self.trained.keys() - self.optimizer

    @cached_property
    def inputs_of_exchanges(self) -> Flags:
        """By node whether it sends its inputs to other devices."""
        kinds = self.flow.kinds
        return np.array([is_exchange(kind) or kind.op_def.record.is_transfer for kind in kinds], np.bool_)


def _updates(flow: StepFlow, tensors: Tensors) -> list[WeightUpdate]:
    """The updates of a step; an update in a function that is called for several variables is one for each."""
    graph = flow.graph
    is_update = np.array([kind.op_def.record.updates is not None for kind in graph.kinds], np.bool_)[graph.kind_of]
    return list(dict.fromkeys(_update(flow, tensors, n) for n in np.flatnonzero(is_update).tolist()))


def _update(flow: StepFlow, tensors: Tensors, row: int) -> WeightUpdate:
    graph = flow.graph
    record = graph.properties_of(row).op_def.record
    inputs = [int(tensors.first[source]) + output for source, output in graph.inputs_of(row)]
    handles = np.array([out for out in inputs if tensors.is_variable[tensors.shares[out]]], np.int64)
    owners: list[int] = flow.node_of_row[tensors.node[tensors.shares[handles]]].tolist()
    values = _values(flow, tensors, inputs, handles.tolist(), record.rows_input, record.updates is Updates.GRADIENT)
    node = int(flow.node_of_row[row])
    return WeightUpdate(node, owners[0] if owners else node, tuple(flow.of_first(values).tolist()), tuple(owners[1:]))


def _values(
    flow: StepFlow, tensors: Tensors, inputs: Sequence[int], handles: Iterable[int], rows: int, by_gradient: bool
) -> Numbers:
    """The inputs by which a variable is changed: rows, or what is as large as the variable; rates are not."""
    own = set(handles)
    if rows >= 0:
        return np.array([inputs[rows]], np.int64)
    values = np.array([output for output in inputs if output not in own], np.int64)
    if by_gradient and own:
        like = tensors.size_bytes[values] == tensors.size_bytes[tensors.shares[inputs[0]]]
        values = values[like] if like.any() else values
    return values
