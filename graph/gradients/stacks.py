"""Turns the stacks between a loop and its gradient into lists, so that the gradient can be differentiated again.

The gradient of a loop pops what the loop has pushed (`history.py`). No edge says so, which is why nothing can be
differentiated across a stack. A list does the same as a variable of both loops:

    StackV2 -> Enter -> StackPushV2(value)          EmptyTensorList -> [ TensorListPushBack(value) ] -> list
       `-----> Enter -> StackPopV2 -> value         list -> [ TensorListPopBack ] -> value

A loop in a loop has a new stack in each iteration, and its handle is pushed on a stack of the outer loop. That becomes
a list of lists. What is pushed and popped in one branch of a conditional is, in the other, passed on unchanged.

The values are the same; first derivatives keep their stacks, which cost less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...errors import UnimplementedError
from ..builder.extension import Extension
from ..builder.handles import Operation, Tensor
from ..columns import CONTROL_SLOT
from ..dtypes import DataType
from ..edge_ends import Output
from ..graph import Graph
from .forward import DIFFERENTIABLE, ForwardGraph
from .liveness import BranchOutcome
from .loops import DifferentiatedLoop

_STACK = "StackV2"
_PUSH = "StackPushV2"
_POP = "StackPopV2"


@dataclass(slots=True)
class _Stack:
    """A stack with the one node that pushes and the one that pops, and the Enters that bring its handle to them.

    `carrier` is the stack of the outer loop on which the handle is pushed, if any; `carried` the stack whose handles
    are pushed on this one.
    """

    node: int
    push: int
    pop: int
    enters: tuple[int, int]
    carrier: _Stack | None = None
    carried: _Stack | None = None
    pushed: Tensor | None = None
    """all pushed values, where the loop has ended"""
    popped: Tensor | None = None
    """the value in an iteration of the second loop"""
    inside: list[Tensor] = field(default_factory=list)
    """the list in an iteration of the loop that pushes, and of the one that pops"""


def stacks_to_lists(forward: ForwardGraph, ys: Sequence[Output]) -> bool:
    """Replaces all stacks of differentiable values in a graph, if a gradient of `ys` would pass one of them.

    Returns whether there was one; what `forward` knows of the graph is out of date then. Raises UnimplementedError for
    stacks that are used in another way than gradients of loops use them.
    """
    between = forward.between(ys)
    if not any(forward.graph.node_properties(node).op_def.name == _POP for node in between):
        return False
    _Conversion(forward).run()
    return True


class _Conversion:
    """The replacement of all stacks of one graph."""

    def __init__(self, forward: ForwardGraph) -> None:
        self.forward = forward
        self.graph: Graph = forward.graph
        self.edges = forward.edges
        self.g: Extension = forward.extension

    def run(self) -> None:
        """Makes the lists, inner loops first, then what reads them, outer loops first."""
        stacks = list(self._stacks())
        for stack in stacks:
            self._collect(stack)
        for stack in stacks:
            self._distribute(stack)
        self.g.flush()
        for stack in stacks:
            self._replace(stack)

    # What there is

    def _stacks(self) -> Iterator[_Stack]:
        """The stacks of differentiable values, and of handles of such stacks."""
        for node in list(self.graph.node_ids()):
            if self._op(node) == _STACK:
                dtype = self.graph.node_properties(node).attrs["elem_type"]
                if dtype in DIFFERENTIABLE and dtype is not DataType.RESOURCE:
                    yield from self._with_carriers(node)

    def _with_carriers(self, node: int) -> list[_Stack]:
        """A stack, and the stacks that carry its handle from loop to loop, from the inside out."""
        chain: list[_Stack] = []
        handle: int | None = node
        while handle is not None:
            (push,) = self._only(handle, _PUSH)
            stack = _Stack(handle, push[0], -1, (push[1], -1), carried=chain[-1] if chain else None)
            if chain:
                chain[-1].carrier = stack
            chain.append(stack)
            handle = self._carrier(handle)
        source = node
        for stack in reversed(chain):
            source = stack.node if stack.carrier is None else stack.carrier.pop
            (pop,) = self._only(source, _POP)
            stack.pop, stack.enters = pop[0], (stack.enters[0], pop[1])
        return chain

    def _only(self, source: int, op: str) -> list[tuple[int, int]]:
        """The node with that op, and the Enter before it, to which a handle leads; UnimplementedError unless one."""
        users = [
            (user, enter)
            for enter, _ in self.edges.readers(source)
            if self._op(enter) == "Enter"
            for user, _ in self.edges.readers(enter)
            if self._op(user) == op
        ]
        if len(users) != 1:
            raise UnimplementedError(
                f"the gradient of the gradient of a loop whose stack has {len(users)} {op} nodes",
                node=self.graph.node_name(source),
            )
        return users

    def _carrier(self, handle: int) -> int | None:
        """The stack on which a handle is pushed as a value, or None."""
        for reader, _ in self.edges.readers(handle):
            if self._op(reader) == _PUSH and self.edges.sources(reader)[1][0] == handle:
                return self.edges.sources(self.edges.sources(reader)[0][0])[0][0]
        return None

    def _op(self, node: int) -> str:
        return self.graph.node_properties(node).op_def.name

    # What is added

    def _collect(self, stack: _Stack) -> None:
        """Adds the list to the loop that pushes."""
        source = self.edges.sources(stack.push)[1]
        value = self.forward.tensor(source) if stack.carried is None else stack.carried.pushed
        assert value is not None  # stacks come from the inside out
        loop = self.forward.loops.innermost[stack.push]
        self.g.move_to(self.graph.requested_device(stack.node), "gradients/list")
        any_shape = self.forward.tensor(self.edges.sources(stack.node)[0])  # -1, a size without limit too
        empty = self.g.op("EmptyTensorList", any_shape, any_shape, element_dtype=value.dtype)[0]
        variable = _StackVariable(self.g, empty, loop, self.forward)
        outcomes = self._outcomes(self.forward.liveness.of(source), loop)
        stack.inside.append(variable.inside)
        variable.close(self._pushed(variable.inside, value, outcomes))
        stack.pushed = variable.last()

    def _pushed(self, tensors: Tensor, value: Tensor, outcomes: Sequence[BranchOutcome]) -> Tensor:
        if not outcomes:
            return self.g.op("TensorListPushBack", tensors, value)[0]
        branches = self._branches(tensors, outcomes[0])
        port = outcomes[0].port
        branches[port] = self._pushed(branches[port], value, outcomes[1:])
        return self.g.op("Merge", branches)[0]

    def _distribute(self, stack: _Stack) -> None:
        """Adds the list to the loop that pops; a list that a list of the outer loop has is popped there first."""
        carrier = stack.carrier
        if carrier is not None and carrier.popped is None:
            self._distribute(carrier)
        if stack.popped is not None:
            return
        tensors = stack.pushed if carrier is None else carrier.popped
        assert tensors is not None
        loop = self.forward.loops.innermost[stack.pop]
        self.g.move_to(self.graph.requested_device(stack.pop), "gradients/list")
        variable = _StackVariable(self.g, tensors, loop, self.forward)
        dtype = self.graph.node_properties(stack.pop).output_types[0]
        outcomes = self._outcomes(self.forward.liveness.of((stack.pop, 0)), loop)
        rest, stack.popped = self._pop(
            variable.inside, DataType.VARIANT if stack.carried is not None else dtype, outcomes
        )
        stack.inside.append(variable.inside)
        variable.close(rest)

    def _pop(self, tensors: Tensor, dtype: DataType, outcomes: Sequence[BranchOutcome]) -> tuple[Tensor, Tensor]:
        """The remaining list, alive in both branches, and the last element."""
        if not outcomes:
            any_shape = self.g.constant(-1, DataType.INT32, control=[tensors])
            rest, last = self.g.op("TensorListPopBack", tensors, any_shape, element_dtype=dtype)
            return rest, last
        branches = self._branches(tensors, outcomes[0])
        port = outcomes[0].port
        branches[port], last = self._pop(branches[port], dtype, outcomes[1:])
        return self.g.op("Merge", branches)[0], last

    def _branches(self, tensors: Tensor, outcome: BranchOutcome) -> list[Tensor]:
        """The list in each branch of a conditional, from an Identity, at which control edges may start."""
        predicate = self.forward.tensor(outcome.predicate)
        if predicate.dtype is DataType.BOOL:
            switch = self.g.op("Switch", tensors, predicate)
        else:
            switch = self.g.op("_SwitchN", tensors, predicate, num_outs=outcome.ways)
        return [self.g.op("Identity", switch[port])[0] for port in range(outcome.ways)]

    def _outcomes(self, condition: Sequence[BranchOutcome], loop: DifferentiatedLoop) -> list[BranchOutcome]:
        """The conditionals inside of a loop under which a value is alive."""
        return [outcome for outcome in condition if outcome.predicate[0] != loop.condition]

    # What is removed

    def _replace(self, stack: _Stack) -> None:
        """Lets all readers of popped values read them from the list, and removes the stack."""
        assert stack.popped is not None
        graph = self.graph
        source = graph.node(self.g.id_of(stack.popped.node))
        for edge in graph.node(stack.pop).out_edges():
            if not edge.is_control:
                graph.update_edge(source, stack.popped.port, edge.dst, edge.dst_input)
        for node, tensors in zip((stack.push, stack.pop), stack.inside, strict=True):
            self._keep_waiting(node, tensors)
        for node in (stack.push, stack.pop, *stack.enters, stack.node):
            graph.remove_node(graph.node(node))

    def _keep_waiting(self, node: int, tensors: Tensor) -> None:
        """Lets what waits for a node wait for the list, so that it stays in its frame."""
        graph = self.graph
        alive = graph.node(self.g.id_of(tensors.node))
        for edge in graph.node(node).out_edges():
            if edge.is_control and edge.dst.is_op:
                graph.add_edge(alive, CONTROL_SLOT, edge.dst, CONTROL_SLOT)


class _StackVariable:
    """A new variable of a loop that exists: `inside` is its value in an iteration."""

    def __init__(self, g: Extension, initial: Tensor, loop: DifferentiatedLoop, forward: ForwardGraph) -> None:
        self._g = g
        goes_on = forward.tensor((loop.condition, 0))
        enter = g.op("Enter", initial, frame_name=loop.name, parallel_iterations=loop.parallel_iterations)[0]
        self._merge: Operation = g.op("Merge", [enter, g.later(initial.dtype)])
        self._switch = g.op("Switch", self._merge[0], goes_on)
        self.inside = g.op("Identity", self._switch[1])[0]

    def close(self, following: Tensor) -> None:
        """Sets the value of the next iteration."""
        self._g.close_loop(self._merge, self._g.op("NextIteration", following))

    def last(self) -> Tensor:
        """The value when the loop has ended."""
        return self._g.op("Exit", self._switch[0])[0]
