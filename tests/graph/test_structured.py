"""Loops and conditionals: the nodes are those that TensorFlow's `while_loop` and `cond` make, and they run.

`data/structured.txt` holds the nodes (name, op, inputs) that TensorFlow 2.21 makes of the programs below, with control
flow v1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.actors.sessions.local_session import open_session
from partita.errors import InvalidArgumentError
from partita.graph.builder.builder import GraphBuilder
from partita.graph.builder.extension import Extension
from partita.graph.builder.handles import Input, Tensor
from partita.graph.graph import Graph
from partita.graph.structured import cond, while_loop
from tests.strategies import cpu


async def _run(b: GraphBuilder, fetches: list[Tensor], feeds: Mapping[str, Any], devices: int = 1) -> list[Any]:
    async with open_session(b.graph_def(), f"cpu:{devices}") as session:
        return [a.tolist() for a in await session.run([t.name for t in fetches], feeds)]


def _add(b: GraphBuilder, left: Input, right: Input, name: str = "add") -> Tensor:
    return b.op("AddV2", left, right, name=name)[0]


def _loop(b: GraphBuilder, x: Tensor) -> list[Tensor]:
    k = b.constant(3.0, name="k")
    return while_loop(
        b,
        lambda i, a: b.op("Less", i, 10),
        lambda i, a: (_add(b, i, 1, "Add"), _add(b, b.op("Mul", a, x), k, "Add")),
        [b.constant(0, name="i0"), x],
        parallel_iterations=4,
    )


def _conditional(b: GraphBuilder, x: Tensor) -> list[Tensor]:
    p = b.op("Less", x, 3.0, name="p")
    return cond(b, p, lambda: (_add(b, x, 1.0, "Add"), x), lambda: (b.op("Mul", x, x), 5.0))


def _conditional_in_loop(b: GraphBuilder, x: Tensor) -> list[Tensor]:
    def body(i: Tensor, a: Tensor) -> list[Tensor]:
        (chosen,) = cond(b, b.op("Less", a, 5.0), lambda: _add(b, a, x), lambda: b.op("Mul", a, 2.0, name="mul"))
        return [_add(b, i, 1), chosen]

    return while_loop(b, lambda i, a: b.op("Less", i, 3), body, [b.constant(0, name="i0"), x])


def _loop_in_loop(b: GraphBuilder, x: Tensor) -> list[Tensor]:
    def body(i: Tensor, a: Tensor) -> list[Tensor]:
        _, inner = while_loop(b, lambda j, c: b.op("Less", j, 2), lambda j, c: (_add(b, j, 1), _add(b, c, x)), [0, a])
        return [_add(b, i, 1), inner]

    return while_loop(b, lambda i, a: b.op("Less", i, 3), body, [b.constant(0, name="i0"), x])


def _python(name: str, x: float) -> list[float]:
    """The results of a program in plain Python."""
    if name == "a_conditional":
        return [x + 1, x] if x < 3 else [x * x, 5]
    a = x
    for _ in range(10 if name == "a_loop" else 3):
        if name == "a_loop":
            a = a * x + 3
        elif name == "a_loop_in_a_loop":
            a += 2 * x
        else:
            a = a + x if a < 5 else a * 2
    return [10 if name == "a_loop" else 3, a]


PROGRAMS: dict[str, Callable[[GraphBuilder, Tensor], list[Tensor]]] = {
    "a_loop": _loop,
    "a_conditional": _conditional,
    "a_conditional_in_a_loop": _conditional_in_loop,
    "a_loop_in_a_loop": _loop_in_loop,
}


def _made(name: str) -> tuple[GraphBuilder, list[Tensor]]:
    b = GraphBuilder()
    return b, PROGRAMS[name](b, b.placeholder("x", "float32", ()))


def _tensorflow(name: str) -> set[str]:
    text = (Path(__file__).parent / "data" / "structured.txt").read_text()
    programs = dict(block.split("\n", 1) for block in text.removeprefix("# ").split("\n# "))
    return set(programs[name].strip().split("\n"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_nodes_are_those_that_tensorflow_makes(name: str) -> None:
    """Names, ops and inputs; only the order of making differs."""
    nodes = _made(name)[0].graph_def().node
    assert {" ".join([node.name, node.op, *node.input]) for node in nodes} == _tensorflow(name)


@pytest.mark.parametrize("name", PROGRAMS)
async def test_programs_run(name: str) -> None:
    """And compute what Python computes."""
    b, fetches = _made(name)
    for x in (0.0, 1.0, 2.5, 4.0):
        assert await _run(b, fetches, {"x": x}) == pytest.approx(_python(name, x))


def test_frames_and_iterations_are_told() -> None:
    """In the attrs of Enters, constant ones too."""
    b, _ = _made("a_loop")
    enters = [node for node in b.graph().op_nodes() if node.op == "Enter"]
    assert {node.attr("frame_name") for node in enters} == {b"while/while_context"}
    assert {node.attr("parallel_iterations") for node in enters} == {4}
    assert [node.attr("is_constant") for node in enters] == [False, False, True, True]


@given(st.integers(0, 5), st.integers(0, 3), st.integers(1, 3), st.data())
async def test_loops_over_devices_count(outer: int, inner: int, devices: int, data: st.DataObject) -> None:
    """Nested loops whose nodes are anywhere add up as they would in Python."""
    b = GraphBuilder()
    x = b.placeholder("x", "int32", (), device=cpu(0))

    def somewhere(op: str, *inputs: Input) -> Tensor:
        return b.op(op, *inputs, device=cpu(data.draw(st.integers(0, devices - 1))))[0]

    def body(i: Tensor, s: Tensor) -> list[Tensor]:
        within = while_loop(
            b,
            lambda j, t: somewhere("Less", j, inner),
            lambda j, t: [somewhere("AddV2", j, 1), somewhere("AddV2", t, somewhere("Mul", x, i))],
            [0, s],
        )
        return [somewhere("AddV2", i, 1), within[1]]

    with b.device(cpu(0)):
        results = while_loop(b, lambda i, s: somewhere("Less", i, outer), body, [0, x])
    assert await _run(b, results, {"x": 3}, devices) == [outer, 3 + inner * sum(3 * i for i in range(outer))]


async def test_only_the_branch_that_is_taken_runs() -> None:
    """The other branch may contain nodes that fail."""
    b = GraphBuilder()
    p = b.placeholder("p", "bool", ())
    x = b.constant(2.0, name="x")
    (y,) = cond(b, p, lambda: b.op("Sqrt", x), lambda: b.op("Error", x, message="taken"))
    assert await _run(b, [y], {"p": True}) == [pytest.approx(2**0.5)]
    with pytest.raises(Exception, match="taken"):
        await _run(b, [y], {"p": False})


async def test_nodes_without_inputs_of_their_own_run_in_every_iteration() -> None:
    """A node that waits for outside nodes only, or reads loop constants only, waits for the pivot."""
    b = GraphBuilder()
    x, gate = b.constant(2.0, name="x"), b.op("NoOp", name="gate")

    def body(i: Tensor) -> Tensor:
        with b.control_dependencies(gate):
            doubled = b.op("Mul", x, x, name="same")
            b.op("NoOp", name="nothing")
        return _add(b, i, doubled)

    (result,) = while_loop(b, lambda i: b.op("Less", i, 7.0), body, [0.0])
    nodes = {node.name: list(node.input) for node in b.graph_def().node}
    assert nodes["while/same"] == ["while/same/Enter", "while/same/Enter", "^while/Identity"]
    assert nodes["while/nothing"] == ["^while/Identity"]
    assert await _run(b, [result], {}) == [8.0]


def test_mistakes_are_told() -> None:
    """Values that do not match the loop variables or the other branch, and a builder of an existing graph."""
    b = GraphBuilder()
    p, x = b.placeholder("p", "bool", ()), b.placeholder("x", "float32", ())
    with pytest.raises(InvalidArgumentError, match="1 variables, its body gives 2"):
        while_loop(b, lambda i: p, lambda i: (i, i), [x])
    with pytest.raises(InvalidArgumentError, match="its loop variable of float"):
        while_loop(b, lambda i: p, lambda i: b.constant(1, "int32"), [x])
    with pytest.raises(InvalidArgumentError, match="the branches give different types"):
        cond(b, p, lambda: x, lambda: (x, x))
    with pytest.raises(InvalidArgumentError, match="before there is a graph"):
        while_loop(Extension(Graph()), lambda i: i, lambda i: i, [np.bool_(True)])  # type: ignore[arg-type]  # as meant
