"""Graphs with datasets of int64 scalars, for tests, beside the Python lists that they describe.

p = Pipeline()
dataset = p.take(p.map(p.range(9), "triple"), 4)        the variant tensor of a dataset of 0, 3, 6, 9
async with elements(p.iterated(dataset)) as pulled: ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.actors import open_session
from partita.actors.sessions.session import Session
from partita.errors import OutOfRangeError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType, Shape
from partita.graph.protos import FunctionDef, GraphDef
from tests.function_defs import func_attr, function_of

INT64 = DataType.INT64


def function(
    name: str, body: Callable[[GraphBuilder, Sequence[Tensor]], Tensor], num_arguments: int = 1
) -> FunctionDef:
    """A function of int64 scalars with one result."""
    b = GraphBuilder()
    arguments = [b.placeholder(f"x{k}", "int64", ()) for k in range(num_arguments)]
    result = body(b, arguments)
    return function_of(name, b.graph_def(), [f"x{k}:0" for k in range(num_arguments)], [result.name])


class Pipeline:
    """Adds datasets, and the functions that they name, to a graph."""

    def __init__(self) -> None:
        self.b = GraphBuilder()
        self.add_function("triple", lambda b, x: b.op("Mul", x[0], np.int64(3))[0])
        self.add_function("plus", lambda b, x: b.op("AddV2", x[0], x[1])[0], 2)
        self.add_function("is_even", lambda b, x: b.op("Equal", b.op("FloorMod", x[0], np.int64(2)), np.int64(0))[0])
        self.add_function("is_small", lambda b, x: b.op("Less", x[0], np.int64(20))[0])
        self.add_function("below", self._below)

    def add_function(self, name: str, body: Callable[[GraphBuilder, Sequence[Tensor]], Tensor], count: int = 1) -> None:
        """Makes a function of int64 scalars callable."""
        self.b.function(function(name, body, count))

    @staticmethod
    def _below(b: GraphBuilder, x: Sequence[Tensor]) -> Tensor:
        """The range of numbers below x modulo 4."""
        stop = b.op("FloorMod", x[0], np.int64(4))
        attrs = {"output_types": [INT64], "output_shapes": [()]}
        return b.op("RangeDataset", np.int64(0), stop, np.int64(1), attrs=attrs)[0]

    # The attrs are of many types.
    def op(
        self, op: str, *inputs: Any, shapes: Sequence[Shape] = ((),), types: Sequence[DataType] = (INT64,), **attrs: Any
    ) -> Tensor:
        """A dataset of elements of these types and shapes."""
        forms = {"output_types": list(types), "output_shapes": list(shapes)}
        return self.b.op(op, *inputs, attrs={**forms, **attrs})[0]

    def range(self, stop: int) -> Tensor:
        return self.op("RangeDataset", np.int64(0), np.int64(stop), np.int64(1))

    def mapped(self, op: str, dataset: Tensor, name: str, *inputs: Any, attr: str = "f", **attrs: Any) -> Tensor:
        """A dataset made with a function without captured values."""
        return self.op(op, dataset, [], *inputs, **{attr: func_attr(name), "Targuments": [], **attrs})

    def counted(self, op: str, dataset: Tensor, *counts: int) -> Tensor:
        """A dataset made with numbers."""
        return self.op(op, dataset, *map(np.int64, counts))

    def iterated(self, dataset: Tensor, shape: Shape = (), device: str = "") -> GraphDef:
        """The graph with an iterator: node `init` begins the dataset, `next` is the next element."""
        attrs = {"output_types": [INT64], "output_shapes": [shape]}
        named = {"shared_name": b"", "container": b""}
        handle = self.b.op("IteratorV2", name="iterator", device=device, attrs={**attrs, **named})[0]
        self.b.op("MakeIterator", dataset, handle, name="init", device=device)
        self.b.op("IteratorGetNext", handle, name="next", device=device, attrs=attrs)
        return self.b.graph_def()


async def drained(session: Session, limit: int = 1000) -> list[Any]:
    """All elements that are left, as Python values."""
    elements: list[Any] = []
    while len(elements) < limit:
        try:
            (value,) = await session.run("next")
        except OutOfRangeError:
            return elements
        elements.append(np.asarray(value).tolist())
    return elements


async def all_of(graph: GraphDef, limit: int = 1000) -> list[Any]:
    """All elements of the dataset of a graph."""
    async with open_session(graph, "cpu:1") as session:
        await session.run([], targets=["init"])
        return await drained(session, limit)
