r"""The frame of a backward loop: it counts iterations down and restores the values of the forward iterations.

Rules that add nodes to the frame may use tensors of the forward body; they are replaced by values popped from stacks,
once per iteration, and only in the branch in which they were pushed. All pops of iteration i come before those of
iteration i - 1.

    count -> Enter -> Merge -> Switch:1 -> pivot - - > StackPopV2(stack)          - - control edge
                        ^ \\-> Greater 0 -> LoopCond          :
                        +- NextIteration <- - 1 < - trigger < -
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..builder.handles import Operation, Tensor
from ..dtypes import DataType

if TYPE_CHECKING:
    from ..builder.handles import Input
    from ..edge_ends import Output
    from .forward import ForwardGraph
    from .history import History
    from .liveness import BranchOutcome

_FIRST = "frame"  # name of the first Enter, and so of the frame


class LoopVariable:
    """A loop variable of the frame: `inside` is its value in an iteration, `last` its final value."""

    def __init__(self, frame: BackwardFrame, merge: Operation) -> None:
        """The Merge waits for `close` to close the loop."""
        self.frame = frame
        self.merge = merge
        g = frame.g
        switch = g.op("Switch", merge[0], frame.goes_on)
        self.inside = g.op("Identity", switch[1])
        self.last = g.op("Exit", switch[0])[0]

    def close(self, following: Tensor) -> None:
        """Sets the value of the next iteration."""
        self.frame.g.close_loop(self.merge, self.frame.g.op("NextIteration", following))


class BackwardFrame:
    """The frame, as a `Place` of an extension."""

    def __init__(self, forward: ForwardGraph, history: History) -> None:
        """Opens the frame; the extension is still outside, where count and stacks are."""
        self.forward = forward
        self.history = history
        self.loop = history.loop
        self.g = g = forward.extension
        self.name = g.unique_name(_FIRST)
        self._around = g.place
        self._known: dict[Output, Tensor] = {}
        self._shapes: dict[tuple[Output, DataType], Tensor] = {}
        self._switches: dict[Output, Operation] = {}
        merge = self._head(history.count, self.name.rpartition("/")[2])  # the names of frames are those of nodes
        zero = g.constant(0, DataType.INT32, name="zero", control=[merge])
        self.goes_on = g.op("LoopCond", g.op("Greater", merge[0], zero))
        counter = LoopVariable(self, merge)
        self.pivot = counter.inside
        self.trigger = g.op("ControlTrigger", control=[self.pivot])
        one = g.constant(1, DataType.INT32, name="one", control=[self.pivot])
        counter.close(g.op("Sub", self.pivot, one, control=[self.trigger])[0])

    def loop_variable(self, initial: Tensor) -> LoopVariable:
        """A loop variable that begins with `initial`, a tensor outside of the frame."""
        return LoopVariable(self, self._head(initial))

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
        """The op on restored values in place of forward tensors; for Shape and ZerosLike restored shapes are enough."""
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
        return self.restored(tensor) if isinstance(tensor, Tensor) else tensor

    def restored(self, tensor: Tensor) -> Tensor:
        """The value of a forward tensor in this iteration; other tensors are returned unchanged."""
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
        if self.forward.loops.innermost.get(output[0]) is not self.loop:
            return None
        return self.forward.loops.origin(self.loop, output)

    def _again(self, output: Output) -> Tensor | None:
        """The tensor in this frame for a value that is the same in every iteration; None for other values."""
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

    def _branch(self, outcome: BranchOutcome) -> Operation:
        """The pivot of one branch of a conditional."""
        switch = self._switches.get(outcome.predicate)
        if switch is None:
            chosen = self.restored(self.forward.tensor(outcome.predicate))
            if chosen.dtype is DataType.BOOL:
                switch = self.g.op("Switch", chosen, chosen)
            else:
                switch = self.g.op("_SwitchN", chosen, chosen, num_outs=outcome.ways)
            self._switches[outcome.predicate] = switch
        return self.g.op("Identity", switch[outcome.port])

    def _shape(self, tensor: Tensor, out_type: DataType) -> Tensor | None:
        """The shape of a numeric tensor of the forward body; None if the tensor itself costs no stack."""
        output = self._of_body(tensor)
        if output is None or output in self._known or tensor.dtype in (DataType.RESOURCE, DataType.VARIANT):
            return None
        if output in self.loop.invariants or self.forward.constant(output):
            return None
        key = output, out_type
        if key not in self._shapes:
            self._shapes[key] = self.history.shape(self.forward.tensor(output), out_type)
        return self.restored(self._shapes[key])
