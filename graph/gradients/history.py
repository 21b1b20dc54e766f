"""Saves the history of a loop for its gradient: the number of iterations, and values of every iteration on stacks.

    0 -> Enter -> Merge -> Switch:0 -> Exit = count
                    ^      Switch:1 -> pivot - - > StackPushV2(stack, value)   - - control edge
                    |                    |                :
                    +- NextIteration <- + 1 < - trigger < -

All pushes of iteration i come before those of iteration i + 1. The trigger is a ControlTrigger: it waits for the
pushes, also for dead ones in a branch that is not taken.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ..dtypes import DataType

if TYPE_CHECKING:
    from ..builder.handles import Operation, Tensor
    from ..edge_ends import Output
    from .forward import ForwardGraph
    from .liveness import BranchOutcomes
    from .loops import DifferentiatedLoop


class History:
    """The counter and the stacks of one loop."""

    def __init__(self, forward: ForwardGraph, loop: DifferentiatedLoop) -> None:
        """Adds the counter."""
        self.forward = forward
        self.loop = loop
        self.g = g = forward.extension
        self.device = forward.graph.requested_device(loop.condition)
        self.gates = self._gates()
        with self._outside(self.device):
            zero = g.constant(0, DataType.INT32, name="zero", control=self.gates)
            merge = g.op("Merge", [self.enter(zero), g.later(DataType.INT32)])
            goes_on = forward.tensor((loop.condition, 0))
            switch = g.op("Switch", merge[0], goes_on)
            self.pivot = g.op("Identity", switch[1], name="pivot")
            self.trigger = g.op("ControlTrigger", control=[self.pivot])
            one = g.constant(1, DataType.INT32, name="one", control=[self.pivot])
            following = g.op("AddV2", self.pivot, one, control=[self.trigger])
            g.close_loop(merge, g.op("NextIteration", following))
            self.count = self._around(g.op("Exit", switch[0], name="count"), self.device)

    def enter(self, tensor: Tensor, is_constant: bool = False) -> Tensor:
        """An Enter that brings a tensor from outside into the loop."""
        loop = self.loop
        return self.g.op(
            "Enter",
            tensor,
            frame_name=loop.name,
            is_constant=is_constant,
            parallel_iterations=loop.parallel_iterations,
        )[0]

    def stack(self, value: Tensor) -> Tensor:
        """A new stack, on which every iteration in which `value` is alive pushes it."""
        g = self.g
        device = self.forward.device(self.forward.output(value))
        with self._outside(device):
            limit = g.constant(-1, DataType.INT32, name="no_limit", control=self.gates)
            stack = g.op("StackV2", limit, elem_type=value.dtype)
            push = g.op("StackPushV2", self.enter(stack[0], is_constant=True), value, control=[self.pivot])
            g.order(push, self.trigger)
        return self._around(stack, device)

    def shape(self, value: Tensor, out_type: DataType) -> Tensor:
        """The shape of a value of the body, as a tensor of the body."""
        output = self.forward.output(value)
        device = self.forward.device(output)
        with self._outside(device):
            shape = self.g.op("Shape", value, out_type=out_type)
        self.forward.declare(shape, device, self.loop, self.forward.liveness.of(output))
        return shape[0]

    def exit(self, merge: Output) -> Tensor:
        """The final value of a loop variable that has no Exit in the graph."""
        g = self.g
        with self._outside(self.device):
            switch = g.op("Switch", self.forward.tensor(merge), self.forward.tensor((self.loop.condition, 0)))
            return self._around(g.op("Exit", switch[0]), self.device)

    def _outside(self, device: str) -> AbstractContextManager[None]:
        """A context for nodes whose inputs are in frames of the forward graph."""
        return self.g.within(None, device)

    def _gates(self) -> list[Operation]:
        """What new nodes outside the loop wait for, so that they are in its parent frame and dead if the loop is."""
        gate = self.forward.liveness.gate(self.loop)
        if self.loop.parent is None and not self._condition():
            return []
        with self._outside(self.device):
            return [self.g.op("Identity", self.forward.tensor(gate), name="gate")]

    def _condition(self) -> BranchOutcomes:
        return self.forward.liveness.of_loop(self.loop)

    def _around(self, operation: Operation, device: str) -> Tensor:
        self.forward.declare(operation, device, self.loop.parent, self._condition())
        return operation[0]
