"""The walk back from ys to xs: reached nodes, sums, missing gradients, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.actors import BlockingSession
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array
from partita.graph.gradients import gradients
from partita.graph.graph import Graph
from tests.graph.gradients.numeric import check, example, normal

X = np.array([1.0, 2.0, 3.0])


def run(graph: Graph, fetches: list[str | None], **feeds: Array) -> list[Array]:
    """Values of all names that are not None."""
    with BlockingSession(graph.to_graph_def()) as session:
        values = session.run([name for name in fetches if name], {f"{k}:0": v for k, v in feeds.items()})
    return list(values)


def small() -> GraphBuilder:
    """x and y, s = x y, t = s + x, split = two halves of t."""
    b = GraphBuilder()
    x, y = b.placeholder("x", "float64", (3,)), b.placeholder("y", "float64", ())
    s = b.op("Mul", x, y, name="s")
    b.op("AddV2", s, x, name="t")
    b.op("Unpack", "t:0", num=3, name="split")
    return b


def test_ys_are_summed_and_may_share_nodes() -> None:
    """The gradient is that of the sum of ys; one may lead to another, and one may be given twice."""
    graph = small().graph()
    names = gradients(graph, ["s:0", "t:0", "t:0"], ["x:0", "y:0"])
    dx, dy = run(graph, names, x=X, y=np.array(5.0))
    np.testing.assert_allclose(dx, [17.0] * 3)  # 5 + 6 + 6
    np.testing.assert_allclose(dy, 3 * X.sum())


def test_xs_may_be_intermediate_and_be_given_twice() -> None:
    """An x before an intermediate x gets a gradient too."""
    graph = small().graph()
    names = gradients(graph, ["t:0"], ["s:0", "x:0", "s:0", "t:0"])
    ds, dx, again, dt = run(graph, names, x=X, y=np.array(5.0))
    for got, expected in ((ds, 1.0), (dx, 6.0), (again, 1.0), (dt, 1.0)):
        np.testing.assert_allclose(got, [expected] * 3)


def test_outputs_that_nothing_uses_get_zeros() -> None:
    """Of three outputs one leads to y."""
    graph = small().graph()
    (dx,) = run(graph, gradients(graph, ["split:1"], ["x:0"]), x=X, y=np.array(5.0))
    np.testing.assert_allclose(dx, [0.0, 6.0, 0.0])


def test_gradients_begin_with_what_is_given() -> None:
    """`grad_ys` weigh the ys; None means ones."""
    b = small()
    b.constant(np.array([1.0, 10.0, 100.0]), name="weights")
    graph = b.graph()
    (dx,) = run(graph, gradients(graph, ["t:0", "s:0"], ["x:0"], ["weights:0", None]), x=X, y=np.array(5.0))
    np.testing.assert_allclose(dx, np.array([6.0, 60.0, 600.0]) + 5)


def test_nothing_flows_through_what_is_stopped() -> None:
    """By `stop_gradients`, by StopGradient, by integers; an unconnected x has no gradient."""
    b = small()
    b.op("StopGradient", "s:0", name="stopped")
    b.op("Cast", b.op("Cast", "x:0", DstT="int32"), DstT="float64", name="rounded")
    b.placeholder("alone", "float64")
    graph = b.graph()
    names = gradients(graph, ["t:0"], ["x:0", "y:0"], stop_gradients=["s:0"])
    assert names[1] is None
    np.testing.assert_allclose(run(graph, names, x=X, y=np.array(5.0))[0], [1.0] * 3)
    for y in ("stopped:0", "rounded:0"):
        assert gradients(graph, [y], ["x:0", "alone:0"]) == [None, None]


def test_variables_and_handles_stand_for_their_values() -> None:
    """References, handles, and rows looked up through them."""
    b = GraphBuilder()
    handle = b.op("VarHandleOp", name="v", dtype="float64", shape=(3, 2), shared_name="v")
    old = b.variable("old", "float64", (3, 2))
    start = b.constant(np.arange(6.0).reshape(3, 2))
    b.group(b.op("AssignVariableOp", handle, start), b.op("Assign", old, start), name="init")
    rows = b.op("ResourceGather", handle, b.constant([2, 0, 2]), dtype="float64")
    picked = b.op("ResourceGatherNd", handle, b.constant([[1, 1]]), dtype="float64")
    whole = b.op("Square", b.op("ReadVariableOp", handle, dtype="float64"))
    read = b.op("Square", b.op("Identity", old))
    found_rows = b.op("Gather", old, b.constant([1]))
    ys = [tensor.name for tensor in (rows[0], picked[0], whole[0], read[0], found_rows[0])]
    graph = b.graph()
    names = gradients(graph, ys, ["v:0", "old:0"])
    with BlockingSession(graph.to_graph_def()) as session:
        session.run([], {}, targets=["init"])
        of_handle, of_reference = session.run([name for name in names if name])
    value = np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(of_handle, 2 * value + np.array([[1.0, 1.0], [0.0, 1.0], [2.0, 2.0]]))
    np.testing.assert_allclose(of_reference, 2 * value + np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]))


def test_new_nodes_are_where_the_old_ones_are() -> None:
    """On the requested device of the forward node."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32")
    b.op("Sin", b.op("Exp", x, name="e", device="/cpu:1"), name="s", device="/cpu:2")
    graph = b.graph()
    before = graph.num_node_ids
    gradients(graph, ["s:0"], ["x:0"])
    devices = {node.name.split("_grad")[0]: node.requested_device for node in graph.op_nodes() if node.id >= before}
    assert {name: devices[name] for name in ("gradients/s", "gradients/e")} == {
        "gradients/s": "/cpu:2",
        "gradients/e": "/cpu:1",
    }


async def test_pass_through_ops() -> None:
    """Identities of all kinds, and optionals."""
    passes = example(
        lambda b, x: b.op(
            "CheckNumericsV2",
            b.op("CheckNumerics", b.op("IdentityN", [x, x])[1], message="x"),
            message="x",
        ),
        normal(3),
    )
    await passes.check()

    def optional(b: GraphBuilder, x: object) -> object:
        held = b.op("OptionalFromValue", [x])
        return b.op("OptionalGetValue", held, output_types=["float64"], output_shapes=[(3,)])

    await check(optional, normal(3))


ADDED = st.lists(st.tuples(st.sampled_from(["Mul", "AddV2", "Sub", "Maximum"]), st.integers(0, 5), st.integers(0, 5)))


@given(ADDED, st.booleans())
async def test_any_graph_of_binary_ops(steps: list[tuple[str, int, int]], open_shapes: bool) -> None:
    """Values that are used once, often or never, of shapes that broadcast."""

    def build(b: GraphBuilder, *xs: object) -> object:
        values = list(xs)
        for op, left, right in steps:
            values.append(b.op(op, values[-1 - left % len(values)], values[-1 - right % len(values)])[0])
        return b.op("AddN", [b.op("Sum", b.op("Tanh", v), b.op("Range", 0, b.op("Rank", v), 1))[0] for v in values])

    await check(
        build, normal(2, 3), normal(3, seed=4), normal(2, 1, seed=5), open_shapes=open_shapes, rtol=1e-3, atol=1e-5
    )


def with_other_types() -> GraphBuilder:
    """`small` with ys that have no gradient: `whole` and `is` of s, `top` of t, with numbers beside it."""
    b = small()
    b.op("Cast", "s:0", DstT="int32", name="whole")
    b.op("Greater", "s:0", "y:0", name="is")
    b.op("Cast", "s:0", DstT="float8_e5m2", name="tiny")
    b.op("TopKV2", "t:0", 2, name="top")
    b.op("IdentityN", ["t:0", "whole:0"], name="pair")
    b.constant(np.array([1, 2], np.int32), name="n")
    return b


@given(st.data())
def test_ys_that_nothing_flows_back_from_spoil_nothing(data: st.DataObject) -> None:
    """With integers, bools and small floats among the ys, the gradients are those of the other ys alone."""
    live = data.draw(st.lists(st.sampled_from(["s:0", "t:0", "split:1", "top:0"]), max_size=3))
    inert = data.draw(st.lists(st.sampled_from(["whole:0", "is:0", "tiny:0"]), min_size=1, max_size=3))
    ys = data.draw(st.permutations([*live, *inert]))
    alone, among = with_other_types().graph(), with_other_types().graph()
    expected: list[str | None] = gradients(alone, live, ["x:0", "y:0", "n:0"]) if live else [None, None, None]
    names = gradients(among, ys, ["x:0", "y:0", "n:0"])
    assert [name is None for name in names] == [name is None for name in expected]
    if live:
        feeds = {"x": X, "y": np.array(5.0)}
        for got, wanted in zip(run(among, names, **feeds), run(alone, expected, **feeds), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_a_y_of_integers_is_its_own_gradient() -> None:
    """As in TensorFlow an x that is a y gets the initial gradient: ones, as often as it was named, or `grad_ys`."""
    b = with_other_types()
    b.constant(np.array([5, 6], np.int32), name="given")
    graph = b.graph()
    names = gradients(graph, ["n:0", "n:0"], ["n:0"]) + gradients(graph, ["n:0"], ["n:0"], ["given:0"])
    names += gradients(graph, ["is:0", "whole:0"], ["is:0", "whole:0", "x:0"])
    assert names[-1] is None
    values = run(graph, names, x=X, y=np.array(5.0))
    assert [value.tolist() for value in values] == [[2, 2], [5, 6], [True] * 3, [1, 1, 1]]


@pytest.mark.parametrize("y", ["top:1", "pair:1"])
def test_a_node_with_numbers_beside_a_y_of_integers_gets_zeros(y: str) -> None:
    """TopKV2 by its indices, IdentityN by an integer: zeros and not None, as in TensorFlow."""
    graph = with_other_types().graph()
    (dx,) = run(graph, gradients(graph, [y], ["x:0"]), x=X, y=np.array(5.0))
    assert dx.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("ys", "xs", "grad_ys", "error", "says"),
    [
        (["nowhere:0"], ["x:0"], None, NotFoundError, "nowhere"),
        (["t:0"], ["nowhere:0"], None, NotFoundError, "nowhere"),
        (["t:1"], ["x:0"], None, InvalidArgumentError, "no output 1"),
        (["text:0"], ["x:0"], None, InvalidArgumentError, "type string is neither that of numbers nor bool"),
        (["handle:0"], ["handle:0"], None, InvalidArgumentError, "type resource"),
        (["whole:0"], ["x:0"], ["x:0"], InvalidArgumentError, "type double, y 'whole:0' of int32"),
        (["is:0"], ["x:0"], ["is:0"], InvalidArgumentError, "'is:0' is of type bool and takes no grad_ys"),
        (["t:0"], ["x:0"], [None, None], InvalidArgumentError, "1 ys but 2"),
        (["t:0"], ["x:0"], ["whole:0"], InvalidArgumentError, "int32"),
        (["t:0"], ["x:0"], ["y:0"], InvalidArgumentError, "shape"),
        (["complex:0"], ["x:0"], None, InvalidArgumentError, "give grad_ys"),
        (["lu:0"], ["x:0"], None, NotFoundError, "Lu"),
        (["prevented:0"], ["x:0"], None, NotFoundError, "not here"),
    ],
)
def test_what_is_refused(
    ys: list[str], xs: list[str], grad_ys: list[str | None] | None, error: type[Exception], says: str
) -> None:
    """Unknown names, strings, `grad_ys` that do not fit, ops without gradient on the way."""
    b = small()
    b.op("AsString", "x:0", name="text")
    b.op("VarHandleOp", dtype="float32", shape=(), name="handle")
    b.op("Greater", "x:0", "y:0", name="is")
    b.op("Cast", "x:0", DstT="int32", name="whole")
    b.op("Cast", "x:0", DstT="complex128", name="complex")
    b.op("Lu", b.op("Diag", "x:0"), name="lu")
    b.op("PreventGradient", "x:0", message="not here", name="prevented")
    with pytest.raises(error, match=says):
        gradients(b.graph(), ys, xs, grad_ys)


def test_an_op_without_gradient_that_is_not_on_the_way_does_no_harm() -> None:
    """Rules run only for nodes that lead from x to y."""
    b = small()
    b.op("Lu", b.op("Diag", "x:0"), name="lu")
    assert gradients(b.graph(), ["t:0"], ["x:0"])[0] is not None
