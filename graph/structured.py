"""Loops and conditionals on a `GraphBuilder`, made of Switch, Merge, Enter, Exit and NextIteration.

    i, total = while_loop(b, lambda i, s: b.op("Less", i, 10), lambda i, s: (i + 1, s + x), [0, 0.0])
    (y,) = cond(b, p, lambda: [x + 1.0], lambda: [x * 2.0])

Flows in: functions that make nodes from tensors. Flows out: the nodes, under the names that TensorFlow's `while_loop`
and `cond` give them, and the tensors that come out. Always holds: a tensor from outside is brought in once per loop or
branch, by an Enter that is constant or by a Switch, through all loops and branches in between; a node without inputs
waits for the pivot, so that it runs in its frame, and only in the branch that is taken.

    loop:    Enter -> Merge -> Switch -> Identity -> body -> NextIteration -> Merge
                        `-> cond -> LoopCond -^ `-> Exit
    branch:  tensor -> Switch -> nodes of the branch -> Merge
                 predicate -^
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import InvalidArgumentError
from .builder.builder import GraphBuilder
from .builder.handles import Input, Operation, Tensor
from .dtypes import DataType, base_type, dtype_name

Arguments = list[Tensor | list[Tensor]]
_PARALLEL_ITERATIONS = 10


class _Inside:
    """The inside of a loop or branch: what was made there, and what was brought in, by its name outside."""

    def __init__(self, builder: GraphBuilder, pivot: Operation | None) -> None:
        self.builder = builder
        self.outer = builder.context if isinstance(builder.context, _Inside) else None
        self.pivot = pivot
        self.nodes: set[str] = set()
        self.brought: dict[str, Tensor] = {}

    def add(self, node: str) -> None:
        """A node in here is in whatever is around, too."""
        self.nodes.add(node)
        if self.outer is not None:
            self.outer.add(node)

    def admitted(self, node: str, inputs: Arguments, control: Sequence[str]) -> tuple[Arguments, Sequence[str]]:
        """Brings inputs in; adds the pivot to what has none from in here."""
        made: Arguments = [
            [self.inside(item, node) for item in value] if isinstance(value, list) else self.inside(value, node)
            for value in inputs
        ]
        return made, self.waits_for(made, control)

    def waits_for(self, inputs: Arguments, control: Sequence[str]) -> Sequence[str]:
        """What a node with these inputs waits for besides them."""
        is_held = bool(inputs) or any(name in self.nodes for name in control)
        return control if is_held or self.pivot is None else [*control, self.pivot.name]

    def inside(self, tensor: Tensor, reader: str) -> Tensor:
        """A tensor as it is in here; what brings it in is named after the node that reads it first."""
        if not tensor.node or tensor.node in self.nodes:
            return tensor
        if tensor.name not in self.brought:
            source = tensor if self.outer is None else self.outer.inside(tensor, reader)
            with self.builder.part_of(None):
                made = self.brought[tensor.name] = self.bring(source, reader)
            self.add(made.node)
        return self.brought[tensor.name]

    def bring(self, tensor: Tensor, reader: str) -> Tensor:
        """Makes the node that brings in a tensor of the surroundings."""
        raise NotImplementedError


class _Loop(_Inside):
    """The inside of a loop: tensors come in as constants of its frame."""

    def __init__(self, builder: GraphBuilder, frame_name: str, parallel_iterations: int) -> None:
        super().__init__(builder, None)
        self.frame_name = frame_name
        self.parallel_iterations = parallel_iterations

    def enter(self, tensor: Tensor, name: str, *, is_constant: bool) -> Tensor:
        """An Enter of the loop's frame."""
        attrs = {"frame_name": self.frame_name, "parallel_iterations": self.parallel_iterations}
        return self.builder.op("Enter", tensor, name=name, attrs={**attrs, "is_constant": is_constant})[0]

    def bring(self, tensor: Tensor, reader: str) -> Tensor:
        """An Enter that gives every iteration the same."""
        return self.enter(tensor, self.builder.in_scope(f"{reader}/Enter"), is_constant=True)

    def waits_for(self, inputs: Arguments, control: Sequence[str]) -> Sequence[str]:
        """No node outside; and the pivot, if all inputs are the same in every iteration."""
        held = [name for name in control if name in self.nodes]
        constants = {tensor.node for tensor in self.brought.values()}
        flat = [item for value in inputs for item in (value if isinstance(value, list) else [value])]
        is_held = held or any(item.node not in constants for item in flat)
        return held if is_held or self.pivot is None else [self.pivot.name]


class _Branch(_Inside):
    """The inside of a branch: tensors come in by Switches, alive only if the branch is taken."""

    def __init__(self, builder: GraphBuilder, pivot: Operation, predicate: Tensor, side: int) -> None:
        super().__init__(builder, pivot)
        self.predicate = predicate
        self.side = side

    def bring(self, tensor: Tensor, reader: str) -> Tensor:
        """The side of a Switch that is alive in the branch."""
        name = self.builder.in_scope(f"{reader}/Switch")
        return self.builder.op("Switch", tensor, self.predicate, name=name)[self.side]


def _check_builder(builder: GraphBuilder) -> None:
    if not isinstance(builder, GraphBuilder):
        raise InvalidArgumentError("loops and conditionals are written with a GraphBuilder, before there is a graph")


def while_loop(
    b: GraphBuilder,
    condition: Callable[..., Input],
    body: Callable[..., Input | Sequence[Input]],
    loop_vars: Sequence[Input],
    *,
    parallel_iterations: int = _PARALLEL_ITERATIONS,
    name: str = "while",
) -> list[Tensor]:
    """The loop variables when `condition` of them has become false; before that `body` gives their next values.

    Both functions get one tensor a variable; `body` gives one value a variable, of the same type. What they use from
    outside is the same in every iteration. `parallel_iterations` bounds how many iterations run at a time. Raises
    InvalidArgumentError for a body that gives too few or too many values, or values of other types.
    """
    _check_builder(b)
    with b.scope(name) as scope:
        loop = _Loop(b, f"{scope}/while_context", parallel_iterations)
        starts = [b.tensor(value) for value in loop_vars]
        enters = [loop.enter(start, "Enter", is_constant=False) for start in starts]
        for enter in enters:
            loop.add(enter.node)
        with b.part_of(loop):
            merges = [b.op("Merge", [enter, b.later(base_type(enter.dtype))], name="Merge") for enter in enters]
            loop.pivot = merges[0]
            goes_on = b.op("LoopCond", b.tensor(condition(*[merge[0] for merge in merges])), name="LoopCond")
            switches = [b.op("Switch", merge[0], goes_on, name="Switch") for merge in merges]
            turns = [b.op("Identity", switch[1], name="Identity") for switch in switches]
            loop.pivot = turns[0]
            _close(b, merges, body(*[turn[0] for turn in turns]))
        return [b.op("Exit", switch[0], name="Exit")[0] for switch in switches]


def _close(b: GraphBuilder, merges: Sequence[Operation], given: Input | Sequence[Input]) -> None:
    """Leads what the body of a loop gave back to its Merges."""
    values = _as_list(given)
    if len(values) != len(merges):
        raise InvalidArgumentError(f"the loop has {len(merges)} variables, its body gives {len(values)} values")
    for merge, value in zip(merges, values, strict=True):
        dtype = merge.output_types[0]
        tensor = b.tensor(value, dtype)
        if base_type(tensor.dtype) != dtype:
            raise InvalidArgumentError(
                f"{tensor.name!r} is of type {dtype_name(tensor.dtype)}, its loop variable of {dtype_name(dtype)}"
            )
        b.close_loop(merge, b.op("NextIteration", tensor, name="NextIteration"))


def _as_list(given: Input | Sequence[Input]) -> list[Input]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def cond(
    b: GraphBuilder,
    pred: Input,
    true_fn: Callable[[], Input | Sequence[Input]],
    false_fn: Callable[[], Input | Sequence[Input]],
    *,
    name: str = "cond",
) -> list[Tensor]:
    """What one of two functions gives, chosen by a predicate when the step runs; only that branch does run.

    Both give equally many values of the same types, tensors from outside among them if they like. Raises
    InvalidArgumentError otherwise.
    """
    _check_builder(b)
    with b.scope(name) as scope:
        predicate = b.tensor(pred)
        switch = b.op("Switch", predicate, predicate, name="Switch")
        pivots = [b.op("Identity", switch[side], name=f"switch_{'ft'[side]}") for side in (1, 0)]
        pred_id = b.identity(predicate, name="pred_id")
        if_true = _branch(b, _Branch(b, pivots[0], pred_id, 1), true_fn, scope)
        if_false = _branch(b, _Branch(b, pivots[1], pred_id, 0), false_fn, scope, [tensor.dtype for tensor in if_true])
        types = [[dtype_name(base_type(tensor.dtype)) for tensor in side] for side in (if_true, if_false)]
        if types[0] != types[1]:
            raise InvalidArgumentError(
                f"the branches give different types: {', '.join(types[0])} if true, {', '.join(types[1])} if false"
            )
        return [b.op("Merge", list(pair), name="Merge")[0] for pair in zip(if_false, if_true, strict=True)]


def _branch(
    b: GraphBuilder,
    branch: _Branch,
    function: Callable[[], Input | Sequence[Input]],
    scope: str,
    dtypes: Sequence[DataType] = (),
) -> list[Tensor]:
    """The tensors that a branch gives, in it; numbers become constants of the types given, if any."""
    with b.part_of(branch):
        values = _as_list(function())
        wanted = [*map(base_type, dtypes), *[None] * len(values)]
        return [branch.inside(b.tensor(value, dtype), scope) for value, dtype in zip(values, wanted, strict=False)]
