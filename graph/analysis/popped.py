"""What a pop takes out: the tensor that a push of another loop has put in, if no other op changes the stack or list.

The gradient of a loop pops in every iteration what the loop has pushed in one, the last first. A list goes from loop to
loop as a variable; the lists of a loop in a loop are elements of another list, which is popped in turn:

    while_v1    f_acc = StackV2;  StackPush(f_acc, a) in a loop;  b = StackPop(f_acc) in another         b was a
    while_v2    l = Merge(Enter(empty), Next(PushBack(l, a)));  m = Merge(Enter(Exit(l)), Next(PopBack(m):0))
                b = PopBack(m):1                                                                         b was a
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from ..dtypes import DataType, base_type
from ..edge_ends import Output
from ..ops.holders import PUTTING, written_inputs
from ..ops.record import Holding, NodeClass
from .joined import JoinedGraph

_PASSING = (NodeClass.IDENTITY, NodeClass.ENTER, NodeClass.EXIT, NodeClass.NEXT_ITERATION, NodeClass.SWITCH)
_PUSHING = (Holding.PUTS, Holding.PUSHES)


class Push(NamedTuple):
    """A node that puts an element in, and the output that the element is."""

    node: int
    element: Output


class Pops:
    """The pushes of all pops of one graph."""

    def __init__(self, graph: JoinedGraph) -> None:
        self.graph = graph
        self._by_holder: dict[Output, list[int]] | None = None
        self._pushes: dict[int, Push | None] = {}

    def push_of(self, pop: int) -> Push | None:
        """The node that puts in what a node takes out; None if that is no pop, or if it cannot be told."""
        if pop not in self._pushes:
            self._pushes[pop] = None  # a list that depends on itself is of no push
            if self.graph.properties[pop].op_def.record.holding is Holding.TAKES_LAST:
                self._pushes[pop] = self._push_to_list(pop) if _has_list(self.graph, pop) else self._push_to_stack(pop)
        return self._pushes[pop]

    def _push_to_stack(self, pop: int) -> Push | None:
        """What pushes to a stack on which there are only one push and one pop."""
        users = self._users()[self._source(self.graph.inputs_of(pop)[0])]
        pushes = [n for n in users if self._holding(n) in _PUSHING]
        return self._push(pushes[0]) if len(users) == 2 and len(pushes) == 1 else None

    def _users(self) -> dict[Output, list[int]]:
        """By stack the ops that change it, or could."""
        if self._by_holder is None:
            self._by_holder = defaultdict(list)
            for n in range(len(self.graph)):
                if self._holding(n) not in (None, Holding.CLEARS) and not _has_list(self.graph, n):
                    for handle in self.graph.inputs_of(n)[:1]:
                        self._by_holder[self._source(handle)].append(n)
        return self._by_holder

    def _source(self, output: Output) -> Output:
        """The output that a handle comes from."""
        following: Output | None = output
        while following is not None:
            output, following = following, self._before(following)
        return output

    def _before(self, output: Output) -> Output | None:
        """What a node passes on as that output; None if it makes it."""
        graph, (n, port) = self.graph, output
        if graph.sender[n] >= 0:
            return graph.inputs_of(int(graph.sender[n]))[0]
        record = graph.properties[n].op_def.record
        if graph.node_class(n) in _PASSING or record.passes_on:
            return graph.inputs_of(n)[0]
        return graph.inputs_of(n)[port] if record.regroups else None

    # Lists

    def _push_to_list(self, pop: int) -> Push | None:
        """The pop must be the only op that changes its list in its loop, and a push the only one in the loop before."""
        popped = False
        for changes in filter(None, self._changes_of(self.graph.inputs_of(pop)[0])):
            if len(changes) > 1 or (changes[0] == pop) == popped:
                return None
            if popped:
                return self._push(changes[0]) if self._holding(changes[0]) in _PUSHING else None
            popped = True
        return None

    def _changes_of(self, output: Output) -> Iterator[list[int]]:
        """The ops by which an iteration changes a list, for each loop that has made it, from the last to the first."""
        while True:
            n, port = self._source(output)
            if self.graph.node_class(n) is NodeClass.MERGE:
                backs = [source for source in self.graph.inputs_of(n) if self.graph.is_back_edge(source[0], n)]
                starts = [source for source in self.graph.inputs_of(n) if source not in backs]
                changes = self._changes(backs[0], n) if len(backs) == len(starts) == 1 else None
                if changes is None:
                    return
                yield changes
                output = starts[0]
            elif self._holding(n) is Holding.TAKES_LAST and port == len(self.graph.properties[n].output_types) - 1:
                push = self.push_of(n)
                if push is None:
                    return
                output = push.element
            else:
                return

    def _changes(self, output: Output, merge: int) -> list[int] | None:
        """The ops by which the list that a Merge gives becomes an output; None if it does not."""
        changes: list[int] = []
        while True:
            n, port = self._source(output)
            if n == merge:
                return changes
            is_list = port == 0 and _has_list(self.graph, n)
            if not is_list or self._holding(n) not in (*PUTTING, Holding.TAKES_LAST):
                return None
            changes.append(n)
            output = self.graph.inputs_of(n)[0]

    def _holding(self, n: int) -> Holding | None:
        return self.graph.properties[n].op_def.record.holding

    def _push(self, n: int) -> Push:
        return Push(n, self.graph.inputs_of(n)[written_inputs(self.graph.properties[n])[0]])


def _has_list(graph: JoinedGraph, n: int) -> bool:
    """Whether a node gets a list and gives one."""
    properties = graph.properties[n]
    firsts = properties.input_types[:1], properties.output_types[:1]
    return all(types and base_type(types[0]) is DataType.VARIANT for types in firsts)
