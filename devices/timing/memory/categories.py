"""What the bytes of a step are: parameters, gradients, state of the optimizer, activations, communication, temporaries.

    parameters      variables that are trained, or only read, their copies in another type, and constants
    optimizer       moments and whatever else updates trained variables, with masters in a wider type
    gradients       what is on its way from the ops that make gradients to the updates; sums over micro-batches
    activations     made in the forward pass, or computed again, and read in the backward pass; caches
    communication   what exchanges and transfers write, or alone read
    temporaries     all others: also weights gathered for a while, gradients that are only added to others, and what
                    is between the last product and the gradient of its result

The first that holds counts, in this order, so that the bytes of all categories are those in use. `Roles` says what
nodes are for.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ....graph.analysis.node_columns import NodeColumns
from ....graph.arrays import Flags, Numbers
from ....graph.ops.record import NodeClass
from .buffers import Buffers
from .roles import Roles
from .step_flow import StepFlow
from .tensors import Tensors
from .times import Times

MEMORY_CATEGORIES = ("parameters", "gradients", "optimizer", "activations", "temporaries", "communication")
"""of the bytes that are allocated"""
_PARAMETERS, _GRADIENTS, _OPTIMIZER, _ACTIVATIONS, _TEMPORARIES, _COMMUNICATION = range(len(MEMORY_CATEGORIES))


def categories_of(
    graph: NodeColumns, tensors: Tensors, buffers: Buffers, times: Times, node_of_row: Numbers
) -> Numbers:
    """By output the number of its category; `node_of_row` has equal numbers for rows of one node of a function."""
    roles = Roles(StepFlow(graph, tensors, times, node_of_row), tensors)
    return _Categories(graph, tensors, buffers, times, roles).numbers()


class _Categories:
    def __init__(self, graph: NodeColumns, tensors: Tensors, buffers: Buffers, times: Times, roles: Roles) -> None:
        self.graph, self.tensors, self.buffers, self.roles = graph, tensors, buffers, roles
        node_of_row = roles.flow.node_of_row
        reads = tensors.reads
        counts = times.ran()[reads.that] & ~self._is_view()[reads.that]
        self.read, self.reader = buffers.shares[reads.this[counts]], reads.that[counts]
        self.reading = node_of_row[self.reader]
        self.node = node_of_row[tensors.node]
        self.first = roles.flow.of_first(np.arange(len(tensors.node)))

    def _is_view(self) -> Flags:
        records = [kind.op_def.record for kind in self.graph.kinds]
        return np.array([r.is_view and not r.is_transfer for r in records], np.bool_)[self.graph.kind_of]

    def numbers(self) -> Numbers:
        """The category of each output."""
        roles, tensors = self.roles, self.tensors
        found = np.full(len(tensors.node), _TEMPORARIES)
        found[self._exchanged()] = _COMMUNICATION
        found[roles.is_forward[self.node] & self._any_reader(roles.is_backward[self.reading])] = _ACTIVATIONS
        found[self._among(roles.weights)] = _PARAMETERS
        found[self._among(out for out, is_moved in roles.weights.items() if is_moved)] = _TEMPORARIES
        gradients = self._among(roles.gradients)
        found[gradients] = _GRADIENTS
        found[self._summands(gradients)] = _TEMPORARIES
        found[self.graph.of_class(NodeClass.CONSTANT)[tensors.node]] = _PARAMETERS
        of_variable = self._of_variables()
        found[tensors.is_variable] = of_variable[tensors.is_variable]
        _, handle, value = tensors.assignments
        content = self.buffers.shares[value]
        found[content] = of_variable[tensors.shares[handle]]
        return found

    def _among(self, outputs: Iterable[int]) -> Flags:
        """Which outputs are among some, or runs of their nodes."""
        wanted = np.zeros(len(self.first), np.bool_)
        wanted[np.fromiter(outputs, np.int64)] = True
        return wanted[self.first]

    def _of_variables(self) -> Numbers:
        """By output the category of the variable that it stands for."""
        roles = self.roles
        of_node = np.full(roles.flow.count, _PARAMETERS)
        of_node[list(roles.optimizer)] = _OPTIMIZER
        of_node[list(roles.state)] = _ACTIVATIONS
        return of_node[self.node[self.tensors.shares]]

    def _any_reader(self, fact: Flags) -> Flags:
        """By output whether a fact holds for a node that reads it or a view of it."""
        found = np.zeros(len(self.first), np.bool_)
        found[self.read[fact]] = True
        return found

    def _exchanged(self) -> Flags:
        """What was received, and what only exchanges read."""
        exchanges = self.roles.inputs_of_exchanges
        is_sent = exchanges[self.reading]
        return exchanges[self.node] | (self._any_reader(is_sent) & ~self._any_reader(~is_sent))

    def _summands(self, gradients: Flags) -> Flags:
        """Gradients that are only added to others, in a buffer that is not theirs, or cast for that."""
        tensors, buffer = self.tensors, self.buffers.buffer
        records = [kind.op_def.record for kind in self.graph.kinds]
        inputs = np.diff(self.graph.input_start)[self.reader]
        adds = np.array([r.is_additive for r in records], np.bool_)[self.graph.kind_of[self.reader]] & (inputs > 1)
        result = tensors.first[self.reader]
        has_result = result < np.append(tensors.first[1:], len(tensors.node))[self.reader]
        result = np.where(has_result, result, 0)
        elsewhere = has_result & (buffer[result] != buffer[self.read])
        is_summand = np.zeros(len(self.first), np.bool_)
        for _ in range(2):  # a sum, and the cast in front of it
            passes = (adds & gradients[result]) | is_summand[result]
            ends = has_result & passes & elsewhere
            is_summand = gradients & self._any_reader(ends) & ~self._any_reader(~ends)
        return is_summand
