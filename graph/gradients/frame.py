"""The frame of a loop that undoes another: counts down, and recalls what the forward iterations had.

Flows in: the history of a loop, tensors of its body. Flows out: what these were in the iteration that is being undone,
as tensors of the backward body. Always holds: whatever is added to the frame finds forward values here, each popped
once an iteration and only where it was pushed; what iteration i pops is popped before anything of iteration i - 1.

    count -> Enter -> Merge -> Switch:1 -> pivot - - > StackPopV2(stack)          - - control edge
                        ^ \\-> Greater 0 -> LoopCond          :
                        +- NextIteration <- - 1 < - trigger < -
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..builder.handles import Operation, Tensor
from ..dtypes import DataType

if TYPE_CHECKING:
    from ..analysis.data_edges import Output
    from ..builder.handles import Input
    from .forward import ForwardGraph
    from .history import History
    from .liveness import Outcome

_FIRST = "frame"  # the first Enter, whose name is that of the frame


class Turning:
    """A value that goes around in the frame: an iteration finds `inside`, the last one leaves `last`."""

    def __init__(self, frame: BackwardFrame, merge: Operation) -> None:
        """The Merge waits for `go_on` to close the loop."""
        self.frame = frame
        self.merge = merge
        g = frame.g
        switch = g.op("Switch", merge[0], frame.goes_on)
        self.inside = g.op("Identity", switch[1])
        self.last = g.op("Exit", switch[0])[0]

    def go_on(self, following: Tensor) -> None:
        """Says what the next iteration finds."""
        self.frame.g.close_loop(self.merge, self.frame.g.op("NextIteration", following))


class BackwardFrame:
    """A `Place` of an extension."""

    def __init__(self, forward: ForwardGraph, history: History) -> None:
        """Opens the frame; the extension is around it, where the count and the stacks are to be had."""
        self.forward = forward
        self.history = history
        self.loop = history.loop
        self.g = g = forward.extension
        self.name = g.unique_name(_FIRST)
        self._around = g.place
        self._known: dict[Output, Tensor] = {}
        self._shapes: dict[tuple[Output, DataType], Tensor] = {}
        self._switches: dict[Output, Operation] = {}
        merge = self._head(history.count, _FIRST)
        zero = g.constant(0, DataType.INT32, name="zero", control=[merge])
        self.goes_on = g.op("LoopCond", g.op("Greater", merge[0], zero))
        counter = Turning(self, merge)
        self.pivot = counter.inside
        self.trigger = g.op("ControlTrigger", control=[self.pivot])
        one = g.constant(1, DataType.INT32, name="one", control=[self.pivot])
        counter.go_on(g.op("Sub", self.pivot, one, control=[self.trigger])[0])

    def turning(self, initial: Tensor) -> Turning:
        """A value that goes around from `initial`, which is around the frame."""
        return Turning(self, self._head(initial))

    def _head(self, initial: Tensor, name: str = "Enter") -> Operation:
        return self.g.op("Merge", [self._enter(initial, name), self.g.later(initial.dtype)])

    def _enter(self, tensor: Tensor, name: str = "Enter", is_constant: bool = False) -> Tensor:
        attrs = {
            "frame_name": self.name,
            "is_constant": is_constant,
            "parallel_iterations": self.loop.parallel_iterations,
        }
        with self.g.within(self._around):
            return self.g.op("Enter", tensor, name=name, attrs=attrs)[0]

    def adapted(
        self, op: str, inputs: tuple[Input, ...], attrs: dict[str, Any]
    ) -> tuple[str, tuple[Input, ...], dict[str, Any]]:
        """An op on values of the forward body, as one on what is recalled of them; of some, the shape will do."""
        if op == "Shape" and isinstance(inputs[0], Tensor):
            shape = self._shape(inputs[0], attrs.get("out_type", DataType.INT32))
            if shape is not None:
                return "Identity", (shape,), {}
        if op == "ZerosLike" and isinstance(inputs[0], Tensor):
            shape = self._shape(inputs[0], DataType.INT32)
            if shape is not None:
                return "Fill", (shape, self.g.constant(0, inputs[0].dtype)), {}
        return op, tuple(map(self._inside, inputs)), attrs

    def _inside(self, value: Input) -> Input:
        if isinstance(value, (list, tuple)):
            return [self._inside(item) for item in value]
        tensor = value[0] if isinstance(value, Operation) else value
        return self.recalled(tensor) if isinstance(tensor, Tensor) else tensor

    def recalled(self, tensor: Tensor) -> Tensor:
        """What a tensor of the forward body was in this iteration; any other tensor itself."""
        output = self._of_body(tensor)
        if output is None:
            return tensor
        if output not in self._known:
            with self.g.within(self, self.forward.device(output)):
                self._known[output] = self._again(output) or self._popped(output)
        return self._known[output]

    def _of_body(self, tensor: Tensor) -> Output | None:
        if not tensor.node:
            return None
        output = self.forward.output(tensor)
        if self.forward.loops.home.get(output[0]) is not self.loop:
            return None
        return self.forward.loops.origin(self.loop, output)

    def _again(self, output: Output) -> Tensor | None:
        """A value that is the same in every iteration; None for others."""
        outside = self.loop.invariants.get(output)
        if outside is not None:
            return self._enter(self.forward.tensor(outside), is_constant=True)
        constant = self.forward.constant(output)
        return None if constant is None else self.g.constant(*constant)

    def _popped(self, output: Output) -> Tensor:
        tensor = self.forward.tensor(output)
        stack = self._enter(self.history.stack(tensor), is_constant=True)
        branches = [
            self._branch(outcome)
            for outcome in self.forward.liveness.of(output)
            if outcome.predicate[0] != self.loop.condition
        ]
        pop = self.g.op("StackPopV2", stack, elem_type=tensor.dtype, control=[self.pivot, *branches])
        self.g.order(pop, self.trigger)
        return pop[0]

    def _branch(self, outcome: Outcome) -> Operation:
        """What is live in one branch of a conditional."""
        switch = self._switches.get(outcome.predicate)
        if switch is None:
            chosen = self.recalled(self.forward.tensor(outcome.predicate))
            if chosen.dtype is DataType.BOOL:
                switch = self.g.op("Switch", chosen, chosen)
            else:
                switch = self.g.op("_SwitchN", chosen, chosen, num_outs=outcome.ways)
            self._switches[outcome.predicate] = switch
        return self.g.op("Identity", switch[outcome.port])

    def _shape(self, tensor: Tensor, out_type: DataType) -> Tensor | None:
        """The shape of a numeric tensor of the forward body; None where the tensor itself is to be had as easily."""
        output = self._of_body(tensor)
        if output is None or output in self._known or tensor.dtype in (DataType.RESOURCE, DataType.VARIANT):
            return None
        if output in self.loop.invariants or self.forward.constant(output):
            return None
        key = output, out_type
        if key not in self._shapes:
            self._shapes[key] = self.history.shape(self.forward.tensor(output), out_type)
        return self.recalled(self._shapes[key])
