"""Gradients of loops: a second loop that runs through the iterations of the first one backwards.

    forward     x ---> [ iteration 1 ] ---> [ iteration 2 ] ---> ... ---> [ iteration n ] ---> y
                             |  push              |  push                       |  push           count n
                             v                    v                             v
    backward   dx <--- [ gradient of 1 ] <- [ gradient of 2 ] <- ... <--- [ gradient of n ] <--- dy

    n  -> Enter -> Merge -> Greater 0 -> LoopCond               counts down
    dy -> Enter -> Merge -> Switch:1 -> gradient of the body -> NextIteration        one per variable
                            Switch:0 -> Exit = dx
    0  -> Enter -> Merge -> Switch:1 -> + gradient in this iteration -> NextIteration    one per invariant: the sum

The gradient of the body is a walk of `backward.py` over the nodes of the frame, from the variables of the next
iteration to those of this one; inner loops are nodes of that walk and are differentiated in the same way. Forward
values come from where they cost least: invariants enter the second loop as they entered the first, constants are added
again, all others are popped from stacks (`history.py`, `frame.py`). A value that is alive in one branch of a
conditional only is pushed and popped in that branch only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import UnimplementedError
from ..dtypes import DataType
from .frame import BackwardFrame, LoopVariable
from .history import History

if TYPE_CHECKING:
    from ..analysis.gradient_rules import Gradients
    from ..builder.handles import Tensor
    from .backward import Backward
    from .loops import DifferentiatedLoop, EnteredValue


def undo_loop(outer: Backward, loop: DifferentiatedLoop) -> Gradients:
    """The gradients of the inputs of a loop, in the order of its variables.

    Raises UnimplementedError for the gradient of a resource that changes between iterations.
    """
    last_grads = [_given(outer, variable) for variable in loop.variables]
    ends = [variable.inside[0] for variable, grad in zip(loop.variables, last_grads, strict=True) if grad is not None]
    if not ends:
        return last_grads
    active = outer.forward.leading_to(loop, ends)
    return _BackwardLoop(outer, loop, active).undo(last_grads)


def _given(outer: Backward, variable: EnteredValue) -> Tensor | None:
    """The gradient of the last value of a variable."""
    exit_grads = [outer.dense(outer.total((node, 0))) for node in variable.exits if node not in outer.forward.stop]
    parts = [tensor for tensor in exit_grads if tensor is not None]
    if len(parts) > 1:
        return outer.extension.op("AddN", parts)[0]
    return parts[0] if parts else None


class _BackwardLoop:
    """The gradient of one loop; `active` are the nodes in it that have gradients."""

    def __init__(self, outer: Backward, loop: DifferentiatedLoop, active: set[int]) -> None:
        self.forward = outer.forward
        self.g = outer.extension
        self.loop = loop
        self.active = active
        self.history = History(self.forward, loop)
        self.frame = BackwardFrame(self.forward, self.history)
        self.body = outer.inside(loop)

    def undo(self, last_grads: list[Tensor | None]) -> Gradients:
        """The gradients of the loop's inputs; `last_grads` has those of the last values of its variables."""
        pairs = list(zip(self.loop.variables, last_grads, strict=True))
        grad_variables = {
            variable.enter: self.frame.loop_variable(self._or_zeros(variable, tensor))
            for variable, tensor in pairs
            if variable.following is not None and variable.inside[0] in self.active
        }
        with self.g.within(self.frame):
            self.body.begin(
                (variable.following, grad_variables[variable.enter].inside[0])
                for variable in self.loop.variables
                if variable.following is not None and variable.enter in grad_variables
            )
            self.body.run()
        into: list[Tensor | None] = []
        for variable, tensor in pairs:
            if variable.enter in grad_variables:
                into.append(self._closed(variable, grad_variables[variable.enter]))
            else:
                into.append(self._summed(variable, tensor))
        return into

    def _closed(self, variable: EnteredValue, grad_variable: LoopVariable) -> Tensor:
        """Closes the loop of a variable's gradient."""
        with self.g.within(self.frame):
            following = self.body.dense(self.body.total(variable.inside))
            if following is None:
                following = self.g.op("ZerosLike", self.forward.tensor(variable.inside))[0]
            grad_variable.close(following)
        return grad_variable.last

    def _summed(self, variable: EnteredValue, initial: Tensor | None) -> Tensor | None:
        """Sums the gradients of an invariant over all iterations."""
        with self.g.within(self.frame):
            addend = self.body.dense(self.body.total(variable.inside))
        if addend is None or variable.inside[0] not in self.active:
            return initial
        if initial is None:
            initial = self._zeros(variable, addend.dtype)
        grad_variable = self.frame.loop_variable(initial)
        with self.g.within(self.frame):
            grad_variable.close(self.g.op("AddN", [grad_variable.inside[0], addend])[0])
        return grad_variable.last

    def _or_zeros(self, variable: EnteredValue, last_grad: Tensor | None) -> Tensor:
        """The gradient of the last value of a variable, zeros if there is none."""
        last = self.forward.tensor(variable.inside)
        if last.dtype is DataType.RESOURCE:
            raise UnimplementedError(
                "the gradient of a resource that changes from iteration to iteration",
                node=last.node,
                frame=self.loop.name,
            )
        if last_grad is not None:
            return last_grad
        if variable.exits:
            last = self.forward.tensor((variable.exits[0], 0))
        else:
            last = self.history.exit(variable.inside)
        return self.g.op("ZerosLike", last)[0]

    def _zeros(self, variable: EnteredValue, dtype: DataType) -> Tensor:
        """Zeros of the shape of an invariant, or of the contents of a resource."""
        value = self.forward.tensor(self.forward.edges.sources(variable.enter)[0])
        if value.dtype is not DataType.RESOURCE:
            return self.g.op("ZerosLike", value)[0]
        return self.g.op("Fill", self.g.op("VariableShape", value), self.g.constant(0, dtype))[0]
