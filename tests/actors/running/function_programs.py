"""Random programs of functions, whose nodes request devices at random.

The root has a few variables on different devices; their handles are passed into functions and returned by some. Control
edges fix the order of all accesses to variables, so every way of running a program gives the same values, which are
float32 scalars. Conditionals and loops are lowered or not. A node that TensorFlow runs on one device as a whole gets
one variable at most.

A node may call the function of an earlier one of its kind, from any body and any device, so that calls of one
function meet in one step.

With `conflicting` a node may request another device than that of a handle it reads, or be colocated with a node
elsewhere. That needs soft placement, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.protos import AttrValue, FunctionDef, GraphDef, NameAttrList
from tests.actors.running.function_statements import Scope, Statements
from tests.function_defs import LOWER, function_of
from tests.strategies import cpu

DEEPEST = 2
MOST_ITERATIONS = 3
SHARED = 0.4  # of the nodes that call, call a function of another node


@dataclass(frozen=True)
class FunctionProgram:
    """A graph with functions, the target that initialises its variables, and a request."""

    graph_def: GraphDef
    init: str
    feeds: dict[str, Any]
    fetches: tuple[str, ...]

    def on_one_device(self) -> GraphDef:
        """The same graph without requested devices."""
        copy = GraphDef()
        copy.CopyFrom(self.graph_def)
        for node in [*copy.node, *(node for function in copy.library.function for node in function.node_def)]:
            node.device = ""
        return copy


class _Writer(Statements):
    def __init__(self, random: Random, devices: int, *, conflicting: bool) -> None:
        super().__init__(random, devices, conflicting=conflicting)
        self.functions: list[FunctionDef] = []
        self.alike: dict[object, list[str]] = {}  # functions by what tells whether another node can call them
        self.compound: list[Callable[[Scope], None]] = [
            self.call,
            self.call,
            self.call_giving_a_handle,
            self.function_as_op,
            self.conditional,
            self.case,
            self.loop,
            self.counted,
            self.map,
            self.gradient,
        ]

    def block(self, scope: Scope, most: int) -> None:
        """Adds a few statements to a scope."""
        for _ in range(self.random.randint(1, most)):
            deep = scope.depth < DEEPEST and self.random.random() < 0.5
            self.random.choice(self.compound if deep else self.statements)(scope)

    def function(
        self,
        depth: int,
        num_values: int,
        num_handles: int,
        finish: Callable[[Scope], Sequence[Tensor]],
        *,
        most: int = 3,
        kind: object = "of one result",
        counts: bool = False,
    ) -> str:
        """A function of this many floats and handles; `finish` returns its results once it has a body.

        With `counts` an int32 comes before. It may be an earlier function: those of one `kind` have results alike.
        """
        alike = self.alike.setdefault((kind, num_values, num_handles, counts), [])
        if alike and self.random.random() < SHARED:
            return self.random.choice(alike)
        builder = GraphBuilder()
        numbers = [builder.placeholder("i", "int32", ())] if counts else []
        values = [builder.placeholder(f"x{k}", "float32", ()) for k in range(num_values)]
        handles = [builder.placeholder(f"h{k}", "resource", ()) for k in range(num_handles)]
        scope = Scope(builder, depth, list(values), list(handles))
        scope.values += [self.op(scope, "Cast", number, SrcT="int32", DstT="float32")[0] for number in numbers]
        self.block(scope, most)
        results = finish(scope)
        name = f"f{len(self.functions)}"
        arguments = [tensor.name for tensor in (*numbers, *values, *handles)]
        control = [node.name for node in scope.control]
        function = function_of(name, builder.graph_def(), arguments, [tensor.name for tensor in results], control)
        function.signature.is_stateful = True
        self.functions.append(function)
        alike.append(name)
        return name

    def result(self, scope: Scope) -> Tensor:
        """A value that depends on all accesses to variables."""
        return self.op(scope, "Identity", self.value(scope), control=scope.control)[0]

    def use(self, scope: Scope) -> None:
        """Adds calls of all functions."""
        for function in self.functions:
            if function.signature.name not in scope.known:
                scope.known.add(function.signature.name)
                scope.builder.function(function)

    def make(self, scope: Scope, op: str, *inputs: Any, handles: Sequence[Tensor], **keywords: Any) -> Operation:
        """A node that calls functions; one of them may access the handles."""
        self.use(scope)
        return (self.touches if handles else self.op)(scope, op, *inputs, **keywords)

    def call(self, scope: Scope) -> None:
        """A call over several devices."""
        values, handles = self.some(scope, 2), self.some_handles(scope, 2)
        results = self.random.randint(1, 2)
        name = self.function(
            scope.depth + 1,
            len(values),
            len(handles),
            lambda body: [self.result(body) for _ in range(results)],
            kind=results,
        )
        outputs = self.make(
            scope,
            "StatefulPartitionedCall",
            [*values, *handles],
            handles=handles,
            follows=False,
            attrs=_types(values, handles, results) | {"f": NameAttrList(name=name)},
        )
        scope.values += [outputs[k] for k in range(results)]

    def call_giving_a_handle(self, scope: Scope) -> None:
        """A call that returns one of its handles, and a value."""
        if not scope.handles:
            return
        values, handles = self.some(scope, 1), [self.random.choice(scope.handles) for _ in range(2)]

        def finish(body: Scope) -> list[Tensor]:
            return [self.result(body), self.op(body, "Identity", self.random.choice(body.handles), follows=True)[0]]

        name = self.function(scope.depth + 1, len(values), len(handles), finish, kind="a handle")
        attrs = _types(values, handles, 1) | {"f": NameAttrList(name=name)}
        attrs["Tout"] = ["float32", "resource"]
        outputs = self.make(scope, "StatefulPartitionedCall", [*values, *handles], handles=handles, attrs=attrs)
        scope.values.append(outputs[0])
        scope.handles.append(outputs[1])

    def function_as_op(self, scope: Scope) -> None:
        values, handles = self.some(scope, 2), self.some_handles(scope, 1)
        name = self.function(scope.depth + 1, len(values), len(handles), lambda body: [self.result(body)])
        scope.values.append(self.make(scope, name, *values, *handles, handles=handles)[0])

    def choose(self, scope: Scope, op: str, chosen: Tensor, num_branches: int) -> None:
        """A conditional of any kind."""
        lower = self.random.random() < 0.6
        values, handles = self.some(scope, 2), self.some_handles(scope, 2 if lower else 1)
        names = [
            self.function(scope.depth + 1, len(values), len(handles), lambda body: [self.result(body)])
            for _ in range(num_branches)
        ]
        branches = [NameAttrList(name=name) for name in names]
        named = {"branches": branches} if op == "Case" else {"then_branch": branches[0], "else_branch": branches[1]}
        attrs = _types(values, handles, 1) | named | {LOWER: AttrValue(b=lower)}
        scope.values.append(self.make(scope, op, chosen, [*values, *handles], handles=handles, attrs=attrs)[0])

    def conditional(self, scope: Scope) -> None:
        self.choose(scope, "If", self.op(scope, "Less", self.value(scope), self.number(scope, 0.5))[0], 2)

    def case(self, scope: Scope) -> None:
        index = self.op(scope, "Cast", self.value(scope), SrcT="float32", DstT="int32")[0]
        self.choose(scope, "Case", index, self.random.randint(1, 3))

    def loop(self, scope: Scope) -> None:
        """A counter, a few values, a few handles; ends after some iterations."""
        lower = self.random.random() < 0.6
        values, handles = self.some(scope, 2), self.some_handles(scope, 2 if lower else 1)
        limit = float(self.random.randint(0, MOST_ITERATIONS))
        inputs = [self.number(scope, 0.0), *values, *handles]

        def condition(body: Scope) -> list[Tensor]:
            less = self.op(body, "Less", body.values[0], self.number(body, limit))[0]
            return [self.op(body, "Identity", less, control=body.control)[0]]

        def step(body: Scope) -> list[Tensor]:
            count = self.op(body, "AddV2", body.values[0], self.number(body, 1.0))[0]
            following = [self.result(body) for _ in values]
            control = body.control
            passed_on = [
                self.op(body, "Identity", handle, control=control, follows=True)[0]
                for handle in body.handles[: len(handles)]
            ]
            return [count, *following, *passed_on]

        deep, sizes = scope.depth + 1, (1 + len(values), len(handles))
        attrs = {
            "T": ["float32"] * sizes[0] + ["resource"] * sizes[1],
            "cond": NameAttrList(name=self.function(DEEPEST, *sizes, condition, most=1, kind="condition")),
            "body": NameAttrList(name=self.function(deep, *sizes, step, kind="body")),
            LOWER: AttrValue(b=lower),
        }
        outputs = self.make(scope, "While", inputs, handles=handles, attrs=attrs)
        scope.values += [outputs[k] for k in range(sizes[0])]

    def counted(self, scope: Scope) -> None:
        """A For, up or down, over none or a few numbers, with a few values and at most a handle."""
        values, handles = self.some(scope, 2), self.some_handles(scope, 1)
        delta = self.random.choice([-2, -1, 1, 3])
        limit = self.random.randint(0, MOST_ITERATIONS) * delta
        bounds = [self.op(scope, "Const", dtype="int32", value=np.int32(value))[0] for value in (0, limit, delta)]

        def step(body: Scope) -> list[Tensor]:
            following = [self.result(body) for _ in values]
            same = [
                self.op(body, "Identity", handle, control=body.control, follows=True)[0]
                for handle in body.handles[: len(handles)]
            ]
            return [*following, *same]

        name = self.function(scope.depth + 1, len(values), len(handles), step, counts=True)
        types = ["float32"] * len(values) + ["resource"] * len(handles)
        attrs = {"T": types, "body": NameAttrList(name=name)}
        outputs = self.make(scope, "For", *bounds, [*values, *handles], handles=handles, attrs=attrs)
        scope.values += [outputs[k] for k in range(len(values))]

    def map(self, scope: Scope) -> None:
        """A function mapped over three values with another captured; the sum of its results."""
        rows = self.op(scope, "Pack", [self.value(scope) for _ in range(3)], axis=0)[0]
        name = self.function(scope.depth + 1, 2, 0, lambda body: [self.result(body)])
        attrs = {
            "Targuments": ["float32"],
            "Tcaptured": ["float32"],
            "output_types": ["float32"],
            "output_shapes": [()],
            "f": NameAttrList(name=name),
        }
        outputs = self.make(scope, "MapDefun", [rows], [self.value(scope)], handles=(), attrs=attrs)
        axis = self.op(scope, "Const", dtype="int32", value=np.int32(0))[0]
        scope.values.append(self.op(scope, "Sum", outputs[0], axis)[0])

    def gradient(self, scope: Scope) -> None:
        """The gradient of a function of two values without variables."""
        builder = GraphBuilder()
        x, y = (builder.placeholder(name, "float32", ()) for name in ("x", "y"))
        body = Scope(builder, DEEPEST, [x, self.op(Scope(builder, 0, [], []), "Mul", x, y)[0]], [])
        for _ in range(self.random.randint(0, 3)):
            self.random.choice([self.unary, self.binary])(body)
        name = f"f{len(self.functions)}"
        self.functions.append(function_of(name, builder.graph_def(), [x.name, y.name], [body.values[-1].name]))
        inputs = [self.value(scope) for _ in range(3)]
        attrs = {"Tin": ["float32"] * 3, "Tout": ["float32"] * 2, "f": NameAttrList(name=name)}
        outputs = self.make(scope, "SymbolicGradient", inputs, handles=(), attrs=attrs)
        scope.values += [outputs[0], outputs[1]]


def _types(values: Sequence[Tensor], handles: Sequence[Tensor], results: int) -> dict[str, Any]:
    return {"Tin": ["float32"] * len(values) + ["resource"] * len(handles), "Tout": ["float32"] * results}


def function_program(seed: int, devices: int, size: int, *, conflicting: bool) -> FunctionProgram:
    """The program of a seed: up to `size` statements in its root and two that call functions, on `devices` CPUs."""
    random = Random(seed)
    writer = _Writer(random, devices, conflicting=conflicting)
    builder = GraphBuilder()
    values = [builder.placeholder(name, "float32", (), device=cpu(0)) for name in ("x", "y")]
    handles = [
        builder.op(
            "VarHandleOp",
            name=f"v{k}",
            dtype="float32",
            shape=(),
            shared_name=f"v{k}".encode(),
            device=cpu(random.randrange(devices)),
        )[0]
        for k in range(random.randint(0, 3))
    ]
    stored = [
        builder.op("AssignVariableOp", handle, builder.constant(np.float32(k)), dtype="float32", device="")
        for k, handle in enumerate(handles)
    ]
    init = builder.group(*stored, name="init", device=cpu(0)).name
    scope = Scope(builder, 0, list(values), list(handles))
    for _ in range(random.randint(0, size)):
        random.choice([*writer.statements, *writer.compound])(scope)
    random.choice(writer.compound)(scope)
    writer.call(scope)
    for handle in handles:
        scope.values.append(writer.touches(scope, "ReadVariableOp", handle, dtype="float32")[0])
    candidates = scope.values[2:]
    fetches = dict.fromkeys(
        tensor.name for tensor in [*random.sample(candidates, min(4, len(candidates))), candidates[-1]]
    )
    feeds = {tensor.name: np.float32(random.randint(-3, 3)) for tensor in values}
    return FunctionProgram(builder.graph_def(), init, feeds, tuple(fetches))


@st.composite
def function_programs(draw: st.DrawFn, devices: int = 4, size: int = 3, *, conflicting: bool) -> FunctionProgram:
    """Programs over one to `devices` CPUs with at least one call."""
    seed, count, statements = draw(st.integers(0, 2**32)), draw(st.integers(1, devices)), draw(st.integers(0, size))
    return function_program(seed, count, statements, conflicting=conflicting)
