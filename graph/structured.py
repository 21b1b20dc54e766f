"""Loops and conditionals on a `GraphBuilder`, made of Switch, Merge, Enter, Exit and NextIteration.

    i, total = while_loop(b, lambda i, s: b.op("Less", i, 10), lambda i, s: (i + 1, s + x), [0, 0.0])
    (y,) = cond(b, p, lambda: [x + 1.0], lambda: [x * 2.0])

Node names are those of TensorFlow's `while_loop` and `cond`. A tensor from outside enters a loop or branch once,
through a constant Enter or a Switch per surrounding loop or branch. A node without inputs gets a control edge from the
pivot, so that it runs in the loop's frame, or only when its branch is taken.

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

OpInputs = list[Tensor | list[Tensor]]
_PARALLEL_ITERATIONS = 10


class _Inside:
    """The inside of a loop or branch: the nodes made in it, and the tensors that entered it, by their names outside."""

    def __init__(self, builder: GraphBuilder, pivot: Operation | None) -> None:
        self.builder = builder
        self.outer = builder.context if isinstance(builder.context, _Inside) else None
        self.pivot = pivot
        self.nodes: set[str] = set()
        self.brought: dict[str, Tensor] = {}

    def add(self, node: str) -> None:
        """Registers a node here and in the surrounding loops and branches."""
        self.nodes.add(node)
        if self.outer is not None:
            self.outer.add(node)

    def admitted(self, node: str, inputs: OpInputs, control: Sequence[str]) -> tuple[OpInputs, Sequence[str]]:
        """The inputs as tensors of the inside; a node with no input from here also waits for the pivot."""
        admitted_inputs: OpInputs = [
            [self.inside(item, node) for item in value] if isinstance(value, list) else self.inside(value, node)
            for value in inputs
        ]
        return admitted_inputs, self.waits_for(admitted_inputs, control)

    def waits_for(self, inputs: OpInputs, control: Sequence[str]) -> Sequence[str]:
        """The control inputs that a node with these inputs gets."""
        is_held = bool(inputs) or any(name in self.nodes for name in control)
        return control if is_held or self.pivot is None else [*control, self.pivot.name]

    def inside(self, tensor: Tensor, reader: str) -> Tensor:
        """The tensor inside that stands for `tensor`; the node it enters through is named after its first `reader`."""
        if not tensor.node or tensor.node in self.nodes:
            return tensor
        if tensor.name not in self.brought:
            source = tensor if self.outer is None else self.outer.inside(tensor, reader)
            with self.builder.part_of(None):
                entered = self.brought[tensor.name] = self.bring(source, reader)
            self.add(entered.node)
        return self.brought[tensor.name]

    def bring(self, tensor: Tensor, reader: str) -> Tensor:
        """Makes the node through which a tensor of the surroundings enters."""
        raise NotImplementedError


class _LoopInside(_Inside):
    """The inside of a loop: tensors enter as constants of its frame."""

    def __init__(self, builder: GraphBuilder, frame_name: str, parallel_iterations: int) -> None:
        super().__init__(builder, None)
        self.frame_name = frame_name
        self.parallel_iterations = parallel_iterations

    def enter(self, tensor: Tensor, name: str, *, is_constant: bool) -> Tensor:
        """An Enter of the loop's frame."""
        attrs = {"frame_name": self.frame_name, "parallel_iterations": self.parallel_iterations}
        return self.builder.op("Enter", tensor, name=name, attrs={**attrs, "is_constant": is_constant})[0]

    def bring(self, tensor: Tensor, reader: str) -> Tensor:
        """An Enter with `is_constant`, whose value is the same in every iteration."""
        return self.enter(tensor, self.builder.in_scope(f"{reader}/Enter"), is_constant=True)

    def waits_for(self, inputs: OpInputs, control: Sequence[str]) -> Sequence[str]:
        """Drops control inputs from outside the loop; adds the pivot if no input changes between iterations."""
        held = [name for name in control if name in self.nodes]
        constants = {tensor.node for tensor in self.brought.values()}
        flat = [item for value in inputs for item in (value if isinstance(value, list) else [value])]
        is_held = held or any(item.node not in constants for item in flat)
        return held if is_held or self.pivot is None else [self.pivot.name]


class _BranchInside(_Inside):
    """The inside of a branch: tensors enter through Switch nodes, and are dead unless the branch is taken."""

    def __init__(self, builder: GraphBuilder, pivot: Operation, predicate: Tensor, side: int) -> None:
        super().__init__(builder, pivot)
        self.predicate = predicate
        self.side = side

    def bring(self, tensor: Tensor, reader: str) -> Tensor:
        """The output of a Switch that is alive when this branch is taken."""
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
    """Repeats `body` while `condition` is true; returns the final values of the loop variables.

    Both functions get one tensor per variable; `body` returns one value per variable, of the same type. Tensors from
    outside are the same in every iteration. `parallel_iterations` limits how many iterations run at a time. Raises
    InvalidArgumentError when `body` returns too few or too many values, or values of other types.
    """
    _check_builder(b)
    with b.scope(name) as scope:
        loop = _LoopInside(b, f"{scope}/while_context", parallel_iterations)
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


def _close(b: GraphBuilder, merges: Sequence[Operation], next_values: Input | Sequence[Input]) -> None:
    """Connects the values that the body returned to the Merges of the loop."""
    values = _as_list(next_values)
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


def _as_list(values: Input | Sequence[Input]) -> list[Input]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def cond(
    b: GraphBuilder,
    pred: Input,
    true_fn: Callable[[], Input | Sequence[Input]],
    false_fn: Callable[[], Input | Sequence[Input]],
    *,
    name: str = "cond",
) -> list[Tensor]:
    """The values of one of two functions; `pred` chooses it when the step runs, and only that branch runs.

    Both functions return equally many values of the same types; these may be tensors from outside. Raises
    InvalidArgumentError otherwise.
    """
    _check_builder(b)
    with b.scope(name) as scope:
        predicate = b.tensor(pred)
        switch = b.op("Switch", predicate, predicate, name="Switch")
        pivots = [b.op("Identity", switch[side], name=f"switch_{'ft'[side]}") for side in (1, 0)]
        pred_id = b.identity(predicate, name="pred_id")
        if_true = _branch(b, _BranchInside(b, pivots[0], pred_id, 1), true_fn, scope)
        if_false = _branch(
            b, _BranchInside(b, pivots[1], pred_id, 0), false_fn, scope, [tensor.dtype for tensor in if_true]
        )
        types = [[dtype_name(base_type(tensor.dtype)) for tensor in side] for side in (if_true, if_false)]
        if types[0] != types[1]:
            raise InvalidArgumentError(
                f"the branches give different types: {', '.join(types[0])} if true, {', '.join(types[1])} if false"
            )
        return [b.op("Merge", list(pair), name="Merge")[0] for pair in zip(if_false, if_true, strict=True)]


def _branch(
    b: GraphBuilder,
    branch: _BranchInside,
    function: Callable[[], Input | Sequence[Input]],
    scope: str,
    dtypes: Sequence[DataType] = (),
) -> list[Tensor]:
    """The tensors that `function` returns, as tensors of the branch; numbers become constants of `dtypes`, if given."""
    with b.part_of(branch):
        values = _as_list(function())
        wanted = [*map(base_type, dtypes), *[None] * len(values)]
        return [branch.inside(b.tensor(value, dtype), scope) for value, dtype in zip(values, wanted, strict=False)]
