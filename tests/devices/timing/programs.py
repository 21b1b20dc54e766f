"""Generated programs with calls, conditionals and counted loops, and the same programs written out by hand.

A program is a tree: an op, a sequence, a call, a conditional or a loop, each of which turns one 8 x 8 matrix into
another. `ways` says how each part becomes nodes:

    call     a function that is called, or its nodes
    branch   If, Case or Switch and Merge; or the nodes of the branch that is taken
    loop     While, or Enter, Merge, Switch, NextIteration and Exit; or its iterations one after the other, with the
             counter's comparisons and additions
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from partita.graph import GraphDef
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.protos import FunctionDef
from partita.graph.structured import cond, while_loop
from tests.function_defs import func_attr, function_of, library_of

SIZE = 8


@dataclass(frozen=True)
class Op:
    """One op on the matrix."""

    op: str


@dataclass(frozen=True)
class Sequence:
    """Parts one after the other."""

    parts: tuple[Program, ...]


@dataclass(frozen=True)
class Call:
    """A call of a function."""

    body: Program
    op: str


@dataclass(frozen=True)
class Branch:
    """One of two parts."""

    taken: int
    parts: tuple[Program, Program]
    way: str


@dataclass(frozen=True)
class Loop:
    """A part that is repeated."""

    count: int
    body: Program
    way: str


Program = Op | Sequence | Call | Branch | Loop


def programs() -> st.SearchStrategy[Program]:
    """Small programs, nested a few levels deep."""
    return st.recursive(
        st.sampled_from(["Neg", "MatMul", "AddV2"]).map(Op),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(tuple).map(Sequence),
            st.builds(Call, inner, st.sampled_from(["PartitionedCall", "StatefulPartitionedCall", "direct"])),
            st.builds(Branch, st.integers(0, 1), st.tuples(inner, inner), st.sampled_from(["If", "Case", "v1"])),
            st.builds(Loop, st.integers(0, 3), inner, st.sampled_from(["While", "For", "v1"])),
        ),
        max_leaves=5,
    )


@dataclass
class Writer:
    """Writes programs as graphs; `functions` collects those that they need."""

    by_hand: bool = False
    functions: list[FunctionDef] = field(default_factory=list)

    def graph_def(self, program: Program) -> GraphDef:
        """The graph of `y`, the program applied to `x`."""
        b = GraphBuilder()
        x = b.placeholder("x", "float32", (SIZE, SIZE))
        b.identity(self.write(b, program, x), name="y")
        graph_def = b.graph_def()
        graph_def.library.CopyFrom(library_of(*self.functions))
        return graph_def

    def write(self, b: GraphBuilder, program: Program, x: Tensor) -> Tensor:
        """The nodes of a program."""
        match program:
            case Op("Neg"):
                return b.op("Neg", x)[0]
            case Op(op):
                return b.op(op, x, x)[0]
            case Sequence(parts):
                for part in parts:
                    x = self.write(b, part, x)
                return x
            case Call(body, op):
                return self.write(b, body, x) if self.by_hand else self._call(b, body, op, x)
            case Branch(taken, parts, way):
                return self.write(b, parts[taken], x) if self.by_hand else self._branch(b, taken, parts, way, x)
            case Loop(count, body, way):
                return self._unrolled(b, count, body, way, x) if self.by_hand else self._loop(b, count, body, way, x)

    def function(self, write: Callable[[GraphBuilder, Tensor], Tensor]) -> str:
        """Adds the function of a matrix; returns its name."""
        b = GraphBuilder()
        x = b.placeholder("x", "float32", (SIZE, SIZE))
        result = b.identity(write(b, x))
        name = f"f{len(self.functions)}"
        self.functions.append(function_of(name, b.graph_def(), ["x:0"], [result.name]))
        return name

    def _call(self, b: GraphBuilder, body: Program, op: str, x: Tensor) -> Tensor:
        name = self.function(lambda inner, value: self.write(inner, body, value))
        if op == "direct":
            op = "PartitionedCall"
        attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": func_attr(name)}
        return b.op(op, [x], attrs=attrs)[0]

    def _branch(self, b: GraphBuilder, taken: int, parts: tuple[Program, Program], way: str, x: Tensor) -> Tensor:
        if way == "v1":
            chosen = b.constant(np.bool_(taken))
            (y,) = cond(b, chosen, lambda: self.write(b, parts[1], x), lambda: self.write(b, parts[0], x))
            return y
        names = [self.function(lambda inner, value, part=part: self.write(inner, part, value)) for part in parts]  # type: ignore[misc]  # bound early
        types = {"Tin": ["float32"], "Tout": ["float32"]}
        if way == "If":
            branches = {"then_branch": func_attr(names[1]), "else_branch": func_attr(names[0])}
            return b.op("If", b.constant(np.bool_(taken)), [x], attrs={**types, **branches})[0]
        listed = [func_attr(name).func for name in names]
        return b.op("Case", b.constant(taken), [x], attrs={**types, "branches": listed})[0]

    def _loop(self, b: GraphBuilder, count: int, body: Program, way: str, x: Tensor) -> Tensor:
        if way == "v1":
            return while_loop(
                b, lambda i, _: b.op("Less", i, count), lambda i, value: (i + 1, self.write(b, body, value)), [0, x]
            )[1]
        if way == "For":
            return self._for(b, count, body, x)
        inner = GraphBuilder()
        i, value = inner.placeholder("i", "int32", ()), inner.placeholder("value", "float32", (SIZE, SIZE))
        following, result = inner.op("AddV2", i, 1)[0], inner.identity(self.write(inner, body, value))
        name = f"f{len(self.functions)}"
        self.functions.append(
            function_of(f"{name}_body", inner.graph_def(), ["i:0", "value:0"], [following.name, result.name])
        )
        inner = GraphBuilder()
        i, value = inner.placeholder("i", "int32", ()), inner.placeholder("value", "float32", (SIZE, SIZE))
        goes_on = inner.op("Less", i, count)[0]
        self.functions.append(function_of(f"{name}_cond", inner.graph_def(), ["i:0", "value:0"], [goes_on.name]))
        attrs = {"cond": func_attr(f"{name}_cond"), "body": func_attr(f"{name}_body")}
        return b.op("While", [b.constant(0), x], attrs={"T": ["int32", "float32"], **attrs})[1]

    def _for(self, b: GraphBuilder, count: int, body: Program, x: Tensor) -> Tensor:
        """By threes down from a number, so that the last turn passes the limit."""
        inner = GraphBuilder()
        inner.placeholder("i", "int32", ())
        result = inner.identity(self.write(inner, body, inner.placeholder("value", "float32", (SIZE, SIZE))))
        name = f"f{len(self.functions)}_for"
        self.functions.append(function_of(name, inner.graph_def(), ["i:0", "value:0"], [result.name]))
        bounds = [b.constant(bound) for bound in (3 * count - 1 if count else 0, 0, -3)]
        return b.op("For", *bounds, [x], attrs={"T": ["float32"], "body": func_attr(name)})[0]

    def _unrolled(self, b: GraphBuilder, count: int, body: Program, way: str, x: Tensor) -> Tensor:
        """The iterations, with the counter's ops; these are kept by control edges into what the loop leaves.

        The counter of a For takes no ops.
        """
        if way == "For":
            for _ in range(count):
                x = self.write(b, body, x)
            return x
        i = b.constant(0)
        kept = [b.op("Less", i, count)[0]]
        for _ in range(count):
            i = b.op("AddV2", i, 1)[0]
            x = self.write(b, body, x)
            kept.append(b.op("Less", i, count)[0])
        return b.op("Identity", x, control=kept)[0]
