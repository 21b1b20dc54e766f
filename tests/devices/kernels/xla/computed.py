"""Runs a node whose attrs name functions of scalars, in a session.

await run_with("XlaReduce", x, 0.0, reducer=binary("AddV2"), dimensions_to_reduce=[0])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.actors import open_session
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array
from tests.function_defs import func_attr, function_of

Body = Callable[[GraphBuilder, Sequence[Tensor]], Sequence[Tensor]]


def binary(op: str, first: int = 0, second: int = 1) -> Body:
    """The function that is one operation of two of its arguments."""
    return lambda b, x: [b.op(op, x[first], x[second])[0]]


def slowly(body: Body) -> Body:
    """The same function, which cannot take arrays: its first argument goes through a reduction."""

    def slow(b: GraphBuilder, x: Sequence[Tensor]) -> Sequence[Tensor]:
        op = "Any" if x[0].dtype.name == "BOOL" else "Max"
        return body(b, [b.op(op, x[0], np.empty(0, np.int32))[0], *x[1:]])

    return slow


async def run_with(op: str, *inputs: Any, types: Sequence[str] | None = None, **attrs: Any) -> list[Array]:
    """The outputs of the node; callables among the attrs are bodies of functions.

    `types` are those of their arguments: by default twice the type of the first input.
    """
    b = GraphBuilder()
    first = inputs[0][0] if isinstance(inputs[0], list) else inputs[0]
    for name, body in attrs.items():
        if callable(body):
            inner = GraphBuilder()
            kinds = types or [np.asarray(first).dtype.name] * 2
            arguments = [inner.placeholder(f"x{k}", kind, ()) for k, kind in enumerate(kinds)]
            results = body(inner, arguments)
            feeds = [f"x{k}:0" for k in range(len(kinds))]
            b.function(function_of(name, inner.graph_def(), feeds, [result.name for result in results]))
            attrs[name] = func_attr(name)
    outputs = b.op(op, *inputs, attrs=attrs)
    async with open_session(b.graph_def(), "cpu:1") as session:
        return [np.asarray(value) for value in await session.run([output.name for output in outputs])]
