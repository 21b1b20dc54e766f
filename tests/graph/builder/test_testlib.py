"""Nodes of the graph testing library: each computes what its op computes, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.actors.sessions.local_session import open_session
from partita.errors import InternalError, InvalidArgumentError
from partita.graph.builder import testlib
from partita.graph.dtypes import Array, DataType
from partita.graph.graph import Graph
from partita.graph.node import Node
from tests.strategies import cpu

X = np.array([[1.0, -2.0], [3.0, 8.0]], np.float32)
ROW = np.array([10.0, 20.0], np.float32)
IMAGE = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)


async def _run(graph: Graph, *nodes: Node | tuple[Node, int], targets: tuple[str, ...] = ()) -> list[Array]:
    graph.fix_source_and_sink_edges()
    pairs = [(node, 0) if isinstance(node, Node) else node for node in nodes]
    async with open_session(graph.to_graph_def(), seed=1) as session:
        return await session.run([f"{node.name}:{port}" for node, port in pairs], targets=targets)


Make = Callable[..., Node]
CASES: dict[str, tuple[Make, list[Any], Any]] = {  # Any: values that become constants, and what is expected
    "unary": (lambda g, x: testlib.unary(g, "Neg", x), [X], -X),
    "binary": (lambda g, x, y: testlib.binary(g, "Mul", x, y), [X, ROW], X * ROW),
    "multi": (lambda g, x, y: testlib.multi(g, "AddN", [x, y, x]), [X, X], 3 * X),
    "identity": (testlib.identity, [X], X),
    "add": (testlib.add, [X, ROW], X + ROW),
    "less": (testlib.less, [X, ROW], X < ROW),
    "cast": (lambda g, x: testlib.cast(g, x, DataType.INT32), [X], X.astype(np.int32)),
    "reduce": (lambda g, x, a: testlib.reduce(g, "Sum", x, a, keep_dims=True), [X, 1], X.sum(1, keepdims=True)),
    "matmul": (lambda g, x, y: testlib.matmul(g, x, y, transpose_b=True), [X, X], X @ X.T),
    "batch_matmul": (lambda g, x, y: testlib.batch_matmul(g, x, y, adj_x=True), [X[None], X[None]], (X.T @ X)[None]),
    "relu": (testlib.relu, [X], np.maximum(X, 0)),
    "relu6": (testlib.relu6, [X], np.clip(X, 0, 6)),
    "bias_add": (testlib.bias_add, [X, ROW], X + ROW),
    "conv2d": (testlib.conv2d, [IMAGE, np.full((1, 1, 1, 1), 2, np.float32)], 2 * IMAGE),
    "reverse": (testlib.reverse, [X, [0]], X[::-1]),
    "concat": (lambda g, a, x, y: testlib.concat(g, a, [x, y]), [0, X, X], np.concatenate([X, X])),
    "concat_v2": (lambda g, x, y, a: testlib.concat_v2(g, [x, y], a), [X, X, 1], np.concatenate([X, X], 1)),
    "select": (testlib.select, [X > 0, X, -X], np.abs(X)),
    "gather": (testlib.gather, [X, [1, 0, 1], 1], X[:, [1, 0, 1]]),
    "quantize": (testlib.quantize_to_uint8, [np.array([-1, 1, 5], np.float32)], np.array([0, 255, 255], np.uint8)),
    "delay": (lambda g, x: testlib.delay(g, x, 10), [X], X),
    "host_constant": (lambda g, x: testlib.add(g, x, testlib.host_constant(g, ROW)), [X], X + ROW),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_node_computes_what_its_op_computes(name: str) -> None:
    """From constants."""
    make, values, expected = CASES[name]
    graph = Graph()
    node = make(graph, *[testlib.constant(graph, value) for value in values])
    (actual,) = await _run(graph, node)
    np.testing.assert_array_equal(actual, expected)
    assert actual.dtype == np.asarray(expected).dtype


def test_names_count_up() -> None:
    """All prefixes share the graph's counter; a constant may have a name of its own."""
    graph = Graph()
    a = testlib.constant(graph, 1.0)
    b = testlib.constant(graph, 2.0, "b")
    c = testlib.add(graph, a, (b, 0))
    assert [a.name, b.name, c.name] == ["n/_0", "b", "n/_1"]
    assert [edge.src.name for edge in c.input_edges()] == ["n/_0", "b"]


async def test_a_variable_is_assigned_before_it_is_read() -> None:
    """Through its reference."""
    graph = Graph()
    v = testlib.var(graph, DataType.FLOAT, (2, 2), "v")
    assigned = testlib.assign(graph, v, testlib.constant(graph, X))
    np.testing.assert_array_equal((await _run(graph, testlib.identity(graph, assigned)))[0], X)


async def test_random_numbers_have_the_shape_asked_for() -> None:
    """And are in the range of their distribution."""
    graph = Graph()
    shape = testlib.constant(graph, [50, 2])
    alpha = testlib.constant(graph, [3.0, 4.0, 5.0])
    for make in (testlib.random_uniform, testlib.random_gaussian, testlib.truncated_normal):
        (drawn,) = await _run(graph, make(graph, shape, DataType.FLOAT))
        assert drawn.shape == (50, 2)
        assert np.abs(drawn).max() < 6
    for per_parameter in (testlib.random_gamma, testlib.random_poisson):
        (drawn,) = await _run(graph, per_parameter(graph, shape, alpha))
        assert drawn.shape == (50, 2, 3)
        assert (drawn >= 0).all()


async def test_a_switch_and_a_merge_make_a_conditional() -> None:
    """The Merge's index output is the side that was alive."""
    graph = Graph()
    chosen = testlib.switch(graph, testlib.constant(graph, 4.0), testlib.constant(graph, np.bool_(True)))
    merged = testlib.merge(graph, testlib.unary(graph, "Neg", (chosen, 0)), testlib.unary(graph, "Sqrt", (chosen, 1)))
    value, index = await _run(graph, merged, (merged, 1))
    assert [value.item(), index.item()] == [2.0, 1]
    with pytest.raises(InvalidArgumentError):
        testlib.merge(graph, chosen)


async def test_a_loop_counts_to_its_limit() -> None:
    """Its Merge names the NextIteration before that is made."""
    graph = Graph()
    start = testlib.enter(graph, testlib.constant(graph, 0.0), "loop")
    merged = testlib.merge(graph, start, "next")
    limit = testlib.constant(graph, 5.0)
    graph.add_control_edge(merged, limit)
    cond = testlib.loop_cond(graph, testlib.less(graph, merged, limit))
    turn = testlib.switch(graph, merged, cond)
    one = testlib.constant(graph, 1.0)
    body = testlib.identity(graph, (turn, 1))
    graph.add_control_edge(body, one)
    testlib.next_(graph, "next", testlib.add(graph, body, one))
    assert await _run(graph, testlib.exit_(graph, (turn, 0))) == [5.0]


def test_transfers_name_their_route() -> None:
    """As in partitioning; a receive returns what the send of that name was given."""
    graph = Graph()
    sent = testlib.send(graph, testlib.constant(graph, 7.0), "t", cpu(0), 1, cpu(1))
    received = testlib.recv(graph, "t", DataType.FLOAT, cpu(0), 1, cpu(1))
    assert [sent.attr(name) for name in ("tensor_name", "send_device_incarnation")] == [b"t", 1]
    assert received.attr("recv_device") == cpu(1).encode()
    assert received.output_types == (DataType.FLOAT,)


def test_a_session_tensor_is_read_by_its_handle() -> None:
    """A string, of the type that is asked for."""
    graph = Graph()
    read = testlib.get_session_tensor(graph, testlib.constant(graph, b"handle"))
    assert (read.input_types, read.output_types) == ((DataType.STRING,), (DataType.FLOAT,))


async def test_nodes_that_fail_do() -> None:
    """With the given message."""
    graph = Graph()
    with pytest.raises(InternalError, match="on purpose"):
        await _run(graph, testlib.error(graph, testlib.constant(graph, 1.0), "on purpose"))
    wrong = testlib.invalid_ref_type(graph, DataType.FLOAT, DataType.INT32)
    with pytest.raises(InternalError, match="int32_ref does not match declared output type float_ref"):
        await _run(graph, targets=(wrong.name,))


async def test_a_no_op_waits() -> None:
    """For all of its control inputs."""
    graph = Graph()
    first, second = testlib.constant(graph, 1.0), testlib.constant(graph, 2.0)
    waits = testlib.no_op(graph, [first, second])
    assert [edge.src for edge in waits.in_edges()] == [first, second]
    assert await _run(graph, targets=(waits.name,)) == []
