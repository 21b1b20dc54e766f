"""Gradients of loops: a loop that goes back through the iterations of another.

Flows in: a loop between xs and ys, what flows back into what it gives. Flows out: a second loop, and what flows back
into what the first one read. Always holds: the second goes around as often as the first did, last iteration first, and
finds in each the values that the forward iteration had.

    forward     x ---> [ iteration 1 ] ---> [ iteration 2 ] ---> ... ---> [ iteration n ] ---> y
                             |  push              |  push                       |  push           count n
                             v                    v                             v
    backward   dx <--- [ gradient of 1 ] <- [ gradient of 2 ] <- ... <--- [ gradient of n ] <--- dy

    n  -> Enter -> Merge -> Greater 0 -> LoopCond               counts down
    dy -> Enter -> Merge -> Switch:1 -> gradient of the body -> NextIteration        one per variable
                            Switch:0 -> Exit = dx
    0  -> Enter -> Merge -> Switch:1 -> + gradient in this iteration -> NextIteration    one per invariant: the sum

The gradient of the body is the walk of `backward.py` over the nodes of the frame, from what the next iteration finds
to what this one found; loops inside are nodes of that walk and are undone in the same way. It asks for forward values
where it needs them: invariants enter the second loop as they entered the first, constants are made anew, all others
come from stacks (`history.py`, `frame.py`). What is live in one branch of a conditional only is pushed
and popped only there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import UnimplementedError
from ..dtypes import DataType
from .frame import BackwardFrame, Turning
from .history import History

if TYPE_CHECKING:
    from ..analysis.gradient_rules import Gradients
    from ..builder.handles import Tensor
    from .backward import Backward
    from .loops import Loop, Variable


def undo_loop(outer: Backward, loop: Loop) -> Gradients:
    """What flows back into what a loop reads, by its variables.

    Raises UnimplementedError when something flows back into a resource that changes from iteration to iteration.
    """
    given = [_given(outer, variable) for variable in loop.variables]
    ends = [variable.inside[0] for variable, tensor in zip(loop.variables, given, strict=True) if tensor is not None]
    if not ends:
        return given
    active = outer.forward.leading_to(loop, ends)
    return _BackwardLoop(outer, loop, active).undo(given)


def _given(outer: Backward, variable: Variable) -> Tensor | None:
    """What flows back into the last value of a variable."""
    found = [outer.dense(outer.total((node, 0))) for node in variable.exits if node not in outer.forward.stop]
    parts = [tensor for tensor in found if tensor is not None]
    if len(parts) > 1:
        return outer.extension.op("AddN", parts)[0]
    return parts[0] if parts else None


class _BackwardLoop:
    """One loop being undone; `active` are the nodes in it that gradients flow back through."""

    def __init__(self, outer: Backward, loop: Loop, active: set[int]) -> None:
        self.forward = outer.forward
        self.g = outer.extension
        self.loop = loop
        self.active = active
        self.history = History(self.forward, loop)
        self.frame = BackwardFrame(self.forward, self.history)
        self.body = outer.inside(loop)

    def undo(self, given: list[Tensor | None]) -> Gradients:
        """What flows back into what the loop reads, when `given` flows back into the last values of its variables."""
        pairs = list(zip(self.loop.variables, given, strict=True))
        turning = {
            variable.enter: self.frame.turning(self._or_zeros(variable, tensor))
            for variable, tensor in pairs
            if variable.following is not None and variable.inside[0] in self.active
        }
        with self.g.within(self.frame):
            self.body.begin(
                (variable.following, turning[variable.enter].inside[0])
                for variable in self.loop.variables
                if variable.following is not None and variable.enter in turning
            )
            self.body.run()
        into: list[Tensor | None] = []
        for variable, tensor in pairs:
            if variable.enter in turning:
                into.append(self._gone_on(variable, turning[variable.enter]))
            else:
                into.append(self._summed(variable, tensor))
        return into

    def _gone_on(self, variable: Variable, turning: Turning) -> Tensor:
        """Closes the loop of a variable's gradient."""
        with self.g.within(self.frame):
            found = self.body.dense(self.body.total(variable.inside))
            if found is None:
                found = self.g.op("ZerosLike", self.forward.tensor(variable.inside))[0]
            turning.go_on(found)
        return turning.last

    def _summed(self, variable: Variable, given: Tensor | None) -> Tensor | None:
        """Adds up what flows back into an invariant in all iterations."""
        with self.g.within(self.frame):
            found = self.body.dense(self.body.total(variable.inside))
        if found is None or variable.inside[0] not in self.active:
            return given
        if given is None:
            given = self._zeros(variable, found.dtype)
        turning = self.frame.turning(given)
        with self.g.within(self.frame):
            turning.go_on(self.g.op("AddN", [turning.inside[0], found])[0])
        return turning.last

    def _or_zeros(self, variable: Variable, given: Tensor | None) -> Tensor:
        """What flows back into the last value of a variable, zeros if nothing does."""
        last = self.forward.tensor(variable.inside)
        if last.dtype is DataType.RESOURCE:
            raise UnimplementedError(
                "the gradient of a resource that changes from iteration to iteration",
                node=last.node,
                frame=self.loop.name,
            )
        if given is not None:
            return given
        if variable.exits:
            last = self.forward.tensor((variable.exits[0], 0))
        else:
            last = self.history.exit(variable.inside)
        return self.g.op("ZerosLike", last)[0]

    def _zeros(self, variable: Variable, dtype: DataType) -> Tensor:
        """Zeros of the shape of an invariant; of a resource, of what it holds."""
        value = self.forward.tensor(self.forward.edges.sources(variable.enter)[0])
        if value.dtype is not DataType.RESOURCE:
            return self.g.op("ZerosLike", value)[0]
        return self.g.op("Fill", self.g.op("VariableShape", value), self.g.constant(0, dtype))[0]
