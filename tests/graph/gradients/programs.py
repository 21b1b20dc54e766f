"""Small programs with loops and conditionals, nested in any way, as graphs with frames and as plain Python.

Flows in: a drawn program. Flows out: a GraphDef of it; its value at any point, complex ones included. Always holds: a
program is a polynomial of its inputs, so that the imaginary part of its value at x + ih, over h, is its derivative to
the last bits (Squire and Trapp 1998): no difference is taken.

A program has the same few variables everywhere: every statement reads two and writes one; a loop hands all of them
from iteration to iteration; a branch is taken in every second iteration, or, outside of loops, as a fed bool says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array, DataType

NUM_VARIABLES = 3
Values: TypeAlias = "list[Any]"  # tensors of a graph, or numbers


@dataclass(frozen=True)
class Step:
    """`variables[target] = op(left, right)`; operands from NUM_VARIABLES on are the inputs of the program."""

    op: str
    target: int
    left: int
    right: int


@dataclass(frozen=True)
class While:
    """Runs `body` that many times."""

    times: int
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class If:
    """Runs `then` in iterations with an even number, `otherwise` in the others."""

    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


Statement: TypeAlias = "Step | While | If"
_operands = st.integers(0, 2 * NUM_VARIABLES - 1)
_steps = st.builds(
    Step, st.sampled_from(["AddV2", "Sub", "Mul"]), st.integers(0, NUM_VARIABLES - 1), _operands, _operands
)


def _blocks(inner: st.SearchStrategy[Statement]) -> st.SearchStrategy[Statement]:
    lists = st.lists(inner, max_size=3).map(tuple)
    return st.builds(While, st.integers(0, 3), lists) | st.builds(If, lists, lists)


programs = st.lists(st.recursive(_steps, _blocks, max_leaves=8), min_size=1, max_size=4).map(tuple)

# As plain Python

_HALF = 0.5  # the factor of every result, which keeps values small


def value(program: Sequence[Statement], inputs: Sequence[Array], even: bool) -> Array:
    """The sum of the variables after the program, which begins with the inputs."""
    return total(run(program, list(inputs), inputs, even))


def total(variables: Values) -> Array:
    """The sum of the variables."""
    result: Array = variables[0] + variables[1] + variables[2]
    return result


def derivatives(of: Callable[[Sequence[Array]], Array], inputs: Sequence[Array], step: float = 1e-30) -> list[Array]:
    """The derivatives of a polynomial of each element, by each input, by the complex step."""
    moved = [[x + 1j * step * (k == other) for other, x in enumerate(inputs)] for k in range(len(inputs))]
    return [of(at).imag / step for at in moved]


def run(program: Sequence[Statement], variables: Values, inputs: Sequence[Array], even: bool) -> Values:
    """The variables after the program, which begins with `variables`."""
    for statement in program:
        if isinstance(statement, Step):
            operands = [*variables, *inputs]
            variables[statement.target] = _HALF * _NUMPY[statement.op](
                operands[statement.left], operands[statement.right]
            )
        elif isinstance(statement, If):
            variables = run(statement.then if even else statement.otherwise, variables, inputs, even)
        else:
            for iteration in range(statement.times):
                variables = run(statement.body, variables, inputs, iteration % 2 == 0)
    return variables


_NUMPY: dict[str, Callable[[Any, Any], Any]] = {"AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply}

# As a graph


class Scope:
    """A place for nodes: `bring` makes an outer tensor readable inside, `constant` makes a number."""

    def __init__(self, builder: GraphBuilder, even: Tensor) -> None:
        self.builder = builder
        self.even = even

    def bring(self, tensor: Tensor) -> Tensor:
        """The tensor inside for a tensor of the root frame."""
        return tensor

    def constant(self, number: Any) -> Tensor:
        """A number."""
        return self.builder.constant(number)


class Frame(Scope):
    """The body of a loop, from its pivot on."""

    def __init__(self, around: Scope, name: str, pivot: Tensor, even: Tensor) -> None:
        super().__init__(around.builder, even)
        self.around, self.name, self.pivot = around, name, pivot

    def bring(self, tensor: Tensor) -> Tensor:
        """Through a constant Enter."""
        return self.builder.op("Enter", self.around.bring(tensor), frame_name=self.name, is_constant=True)[0]

    def constant(self, number: Any) -> Tensor:
        """Made in every iteration."""
        return self.builder.constant(number, control=[self.pivot])


class Branch(Scope):
    """One side of a conditional."""

    def __init__(self, around: Scope, side: int) -> None:
        self.around, self.side = around, side
        self.builder = around.builder
        self.even = self.switched(around.even)

    def switched(self, tensor: Tensor) -> Tensor:
        """The tensor in the branch for one of the surrounding scope."""
        return self.builder.op("Switch", tensor, self.around.even)[self.side]

    def bring(self, tensor: Tensor) -> Tensor:
        """Through a Switch."""
        return self.switched(self.around.bring(tensor))

    def constant(self, number: Any) -> Tensor:
        """Made where the branch is taken."""
        return self.builder.constant(number, control=[self.builder.identity(self.even)])


def graph(program: Sequence[Statement], shape: Sequence[int]) -> GraphBuilder:
    """The program as a graph: placeholders x0, x1, x2 of float64, and "even"; variables v0, v1, v2, their sum y."""
    builder = GraphBuilder()
    inputs = [builder.placeholder(f"x{number}", DataType.DOUBLE, shape) for number in range(NUM_VARIABLES)]
    scope = Scope(builder, builder.placeholder("even", DataType.BOOL, ()))
    variables = _build(program, list(inputs), inputs, scope)
    for number, variable in enumerate(variables):
        builder.identity(variable, name=f"v{number}")
    builder.op("AddN", variables, name="y")
    return builder


def _build(program: Sequence[Statement], variables: Values, inputs: Sequence[Tensor], scope: Scope) -> Values:
    builder = scope.builder
    for statement in program:
        if isinstance(statement, Step):
            left, right = (
                variables[operand] if operand < NUM_VARIABLES else scope.bring(inputs[operand - NUM_VARIABLES])
                for operand in (statement.left, statement.right)
            )
            result = builder.op(statement.op, left, right)
            variables[statement.target] = builder.op("Mul", result, scope.constant(np.float64(_HALF)))[0]
        elif isinstance(statement, If):
            variables = _build_if(statement, variables, inputs, scope)
        else:
            variables = _build_while(statement, variables, inputs, scope)
    return variables


def _build_if(statement: If, variables: Values, inputs: Sequence[Tensor], scope: Scope) -> Values:
    results = []
    for side, body in ((0, statement.otherwise), (1, statement.then)):
        branch = Branch(scope, side)
        results.append(_build(body, [branch.switched(variable) for variable in variables], inputs, branch))
    return [scope.builder.op("Merge", list(pair))[0] for pair in zip(*results, strict=True)]


def _build_while(statement: While, variables: Values, inputs: Sequence[Tensor], scope: Scope) -> Values:
    builder = scope.builder
    name = builder.unique_name("loop")
    initial = [*variables, scope.constant(np.int32(0))]
    merges = [
        builder.op("Merge", [builder.op("Enter", tensor, frame_name=name)[0], builder.later(tensor.dtype)])
        for tensor in initial
    ]
    limit = builder.constant(np.int32(statement.times), control=[merges[-1]])
    goes_on = builder.op("LoopCond", builder.op("Less", merges[-1][0], limit))
    switches = [builder.op("Switch", merge[0], goes_on) for merge in merges]
    *inside, number = [builder.identity(switch[1]) for switch in switches]
    zero, once, twice = (builder.constant(np.int32(value), control=[number]) for value in (0, 1, 2))
    even = builder.op("Equal", builder.op("FloorMod", number, twice), zero)[0]
    results = _build(statement.body, inside, inputs, Frame(scope, name, number, even))
    for merge, following in zip(merges, [*results, number + once], strict=True):
        builder.close_loop(merge, builder.op("NextIteration", following))
    return [builder.op("Exit", switch[0])[0] for switch in switches[:-1]]
