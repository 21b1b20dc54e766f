"""Random nests of loops, conditionals and calls, as functions that compute with a float32 scalar and a variable.

A function takes a value and the handle of a variable and returns a value; what it does to the variable depends on the
value, so that there is one order. Functions are called from several places, by roots on several devices. Some nodes
fail for some values: `CheckNumerics` of a logarithm. A program without variables may be drawn, as calls that pass
handles stay calls where there are several devices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.protos import AttrValue, FunctionDef, GraphDef, NameAttrList
from tests.function_defs import LOWER, function_of
from tests.strategies import cpu

DEEPEST = 2
MOST_ITERATIONS = 3
SHARED = 0.3  # of the functions are those of another node
UNARY = ("Neg", "Tanh", "Abs", "Identity")


@dataclass(frozen=True)
class NestProgram:
    """A graph with functions, whose conditionals and loops are lowered or not, its targets, and a request.

    `drawn_from` are the arguments of `nest_program` that give it.
    """

    drawn_from: tuple[int, int, int, bool, bool]
    called: GraphDef = field(repr=False)
    lowered: GraphDef = field(repr=False)
    init: str
    feeds: dict[str, Any]
    fetches: tuple[str, ...]


@dataclass
class _Body:
    """A graph under construction, the value so far, and the handle of the variable if there is one."""

    builder: GraphBuilder
    value: Tensor
    handle: Tensor | None
    depth: int

    def op(self, op: str, *inputs: Any, **keywords: Any) -> Tensor:
        result: Tensor = self.builder.op(op, *inputs, **keywords)[0]
        return result

    @property
    def handles(self) -> list[Tensor]:
        return [] if self.handle is None else [self.handle]


class _Nest:
    """Writes the program of a seed; `lower` is an attr of all conditionals and loops."""

    def __init__(self, seed: int, *, has_variable: bool, is_random: bool, lower: bool) -> None:
        self.random = Random(seed)
        self.has_variable = has_variable
        self.is_random = is_random
        self.lower = lower
        self.functions: list[FunctionDef] = []
        self.alike: dict[str, list[str]] = {}

    def function(self, kind: str, depth: int, *, most: int = 3) -> str:
        """A function of a value, and for a "body" or a "condition" of a count before it; perhaps an earlier one."""
        alike = self.alike.setdefault(f"{kind} {depth}", [])
        if alike and self.random.random() < SHARED:
            return self.random.choice(alike)
        b = GraphBuilder()
        counts = [b.placeholder("k", "float32", ())] if kind != "function" else []
        x = b.placeholder("x", "float32", ())
        handle = b.placeholder("h", "resource", ()) if self.has_variable else None
        body = _Body(b, x, handle, depth)
        arguments = [tensor.name for tensor in (*counts, x, *body.handles)]
        if kind == "condition":
            limit = b.constant(float(self.random.randint(0, MOST_ITERATIONS)))
            results = [body.op("Less", counts[0], limit)]
        else:
            for _ in range(self.random.randint(1, most)):
                self.statement(body)
            results = [*(b.op("AddV2", count, b.constant(1.0))[0] for count in counts), body.value]
            results += body.handles if kind == "body" else []
        name = f"{kind}{len(self.functions)}"
        function = function_of(name, b.graph_def(), arguments, [tensor.name for tensor in results])
        function.signature.is_stateful = True
        self.functions.append(function)
        alike.append(name)
        return name

    def statement(self, body: _Body) -> None:
        """A node or two that change the value."""
        choices = [self.unary, self.unary, self.binary, self.failing]
        choices += [self.touch] if body.handle is not None else []
        choices += [self.draw] if self.is_random else []
        if body.depth < DEEPEST:
            choices += [self.loop, self.loop, self.conditional, self.call, self.case]
        self.random.choice(choices)(body)

    def unary(self, body: _Body) -> None:
        body.value = body.op(self.random.choice(UNARY), body.value)

    def binary(self, body: _Body) -> None:
        op = self.random.choice(["Sub", "Mul", "Maximum"])
        body.value = body.op(op, body.value, body.builder.constant(self.random.choice([-0.5, 0.25, 1.5])))

    def failing(self, body: _Body) -> None:
        """Fails for values below -1."""
        shifted = body.op("AddV2", body.value, body.builder.constant(1.0))
        body.value = body.op("CheckNumerics", body.op("Log", shifted), message="below")

    def draw(self, body: _Body) -> None:
        seed = self.random.randint(1, 9)  # one that may be drawn again: it is the node that has the generator
        drawn = body.op("RandomUniform", body.builder.constant([], "int32"), dtype="float32", seed=seed)
        body.value = body.op("AddV2", body.value, drawn)

    def touch(self, body: _Body) -> None:
        """Adds the value to the variable and goes on with half of what is in it then."""
        added = body.builder.op("AssignAddVariableOp", body.handle, body.value, dtype="float32")
        read = body.op("ReadVariableOp", body.handle, dtype="float32", control=[added])
        body.value = body.op("Mul", read, body.builder.constant(0.5))

    def loop(self, body: _Body) -> None:
        handles = body.handles
        attrs = {
            "T": ["float32"] * 2 + ["resource"] * len(handles),
            "cond": self.named(body, self.function("condition", body.depth + 1)),
            "body": self.named(body, self.function("body", body.depth + 1)),
            LOWER: AttrValue(b=self.lower),
        }
        outputs = body.builder.op("While", [body.builder.constant(0.0), body.value, *handles], attrs=attrs)
        body.value = outputs[1]

    def conditional(self, body: _Body) -> None:
        below = body.op("Less", body.value, body.builder.constant(self.random.choice([-0.5, 0.0, 0.5])))
        branches = [self.named(body, self.function("function", body.depth + 1)) for _ in range(2)]
        self.choice(body, "If", below, {"then_branch": branches[0], "else_branch": branches[1]})

    def case(self, body: _Body) -> None:
        index = body.op("Cast", body.value, SrcT="float32", DstT="int32")
        names = [self.function("function", body.depth + 1) for _ in range(self.random.randint(1, 3))]
        self.choice(body, "Case", index, {"branches": [self.named(body, name) for name in names]})

    def choice(self, body: _Body, op: str, chooses: Tensor, branches: dict[str, Any]) -> None:
        attrs = self.types(body) | branches | {LOWER: AttrValue(b=self.lower)}
        body.value = body.op(op, chooses, [body.value, *body.handles], attrs=attrs)

    def call(self, body: _Body) -> None:
        name = self.named(body, self.function("function", body.depth + 1))
        if self.random.random() < 0.3:
            body.value = body.op(name.name, body.value, *body.handles)
        else:
            attrs = self.types(body) | {"f": name}
            body.value = body.op("StatefulPartitionedCall", [body.value, *body.handles], attrs=attrs)

    def types(self, body: _Body) -> dict[str, Any]:
        return {"Tin": ["float32"] + ["resource"] * len(body.handles), "Tout": ["float32"]}

    def named(self, body: _Body, name: str) -> NameAttrList:
        """The name of a function, which the graph gets."""
        known = {function.signature.name for function in body.builder.graph_def().library.function}
        for function in self.functions:
            if function.signature.name not in known:
                body.builder.function(function)
        return NameAttrList(name=name)

    def write(self, num_roots: int, devices: int) -> tuple[GraphDef, str, tuple[str, ...]]:
        """The graph, the node that initialises the variables, and the fetches: a value of each root."""
        b = GraphBuilder()
        stored, fetches = [], []
        for number in range(num_roots):
            device = cpu(number % devices)
            with b.device(device):
                handle = None
                if self.has_variable:
                    name = f"v{number}"
                    handle = b.op("VarHandleOp", name=name, dtype="float32", shape=(), shared_name=name.encode())[0]
                    stored.append(b.op("AssignVariableOp", handle, b.constant(0.5), dtype="float32"))
                root = _Body(b, b.placeholder(f"x{number}", "float32", ()), handle, 0)
                self.loop(root)
                self.statement(root)
                fetches.append(b.identity(root.value, name=f"y{number}").name)
        init = b.group(*stored, name="init", device=cpu(0)).name
        return b.graph_def(), init, tuple(fetches)


def nest_program(seed: int, num_roots: int, devices: int, *, has_variable: bool, is_random: bool) -> NestProgram:
    """The program of a seed."""
    graphs = []
    for lower in (False, True):
        nest = _Nest(seed, has_variable=has_variable, is_random=is_random, lower=lower)
        graphs.append(nest.write(num_roots, devices))
    (called, init, fetches), (lowered, *_) = graphs
    random = Random(seed)
    feeds = {f"x{number}:0": np.float32(random.uniform(-2, 2)) for number in range(num_roots)}
    drawn_from = seed, num_roots, devices, has_variable, is_random
    return NestProgram(drawn_from, called, lowered, init, feeds, fetches)


@st.composite
def nest_programs(draw: st.DrawFn, *, is_random: bool = False) -> NestProgram:
    """Programs of one or two roots on one or two devices; of one if it `is_random`, since roots share generators."""
    seed, devices = draw(st.integers(0, 2**32)), draw(st.integers(1, 2))
    roots = 1 if is_random else draw(st.integers(1, 2))
    return nest_program(seed, roots, devices, has_variable=draw(st.booleans()), is_random=is_random)
