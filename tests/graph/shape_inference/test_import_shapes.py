"""An import refuses shapes that contradict an op, in the words of TensorFlow 2.21; a conversion accepts them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph import (
    Graph,
    GraphBuilder,
    GraphDef,
    ImportOptions,
    graph_def_to_graph,
    import_graph_def,
    infer_shapes,
)
from partita.graph.analysis import shape_functions
from partita.graph.analysis.shape_functions import ShapeContext
from partita.graph.attrs import encode
from partita.graph.ops import record, registry
from partita.graph.ops.registration import register_op
from partita.graph.ops.registry import PRODUCER
from partita.graph.protos import OpDef, TensorProto
from tests.strategies import GraphCase, graph_cases


def _refusal(graph_def: GraphDef, graph: Graph | None = None, options: ImportOptions | None = None) -> str:
    graph_def_to_graph(graph_def, add_default_attrs=True)
    into = Graph() if graph is None else graph
    before = str(into), into.num_edge_ids, into.versions
    with pytest.raises(InvalidArgumentError) as refused:
        import_graph_def(graph_def, into, options)
    assert (str(into), into.num_edge_ids, into.versions) == before
    return refused.value.message


def _imported(graph_def: GraphDef) -> Graph:
    graph = Graph()
    import_graph_def(graph_def, graph)
    return graph


def _of(b: GraphBuilder) -> GraphDef:
    return GraphDef.FromString(b.SerializeToString())


def test_a_contradiction_is_refused_with_the_node_as_tensorflow_writes_it() -> None:
    """The message has the node with its prefix, the shapes of its inputs, and nothing that was not asked for."""
    b = GraphBuilder()
    a = b.placeholder("a", "float32", (2,))
    b.op("MatMul", a, b.placeholder("b", "float32", (2, 2)), name="m")
    assert _refusal(_of(b), options=ImportOptions(prefix="import")) == (
        "Shape must be rank 2 but is rank 1 for '{{node import/m}} = MatMul[T=DT_FLOAT, grad_a=false, grad_b=false, "
        "transpose_a=false, transpose_b=false](import/a, import/b)' with input shapes: [2], [2,2]."
    )


def test_values_that_a_shape_function_asks_for_are_listed() -> None:
    """As computed tensors, or as partial shapes where they are read as a shape."""
    b = GraphBuilder()
    b.op("Sum", b.placeholder("a", "float32", (2, 3)), b.constant([4, 5], "int32", name="s"), name="r")
    assert _refusal(_of(b)) == (
        "Invalid reduction dimension 4 for input with 2 dimensions. for '{{node r}} = Sum[T=DT_FLOAT, Tidx=DT_INT32, "
        "keep_dims=false](a, s)' with input shapes: [2,3], [2] and with computed input tensors: input[1] = <4 5>."
    )
    b = GraphBuilder()
    sizes = b.op("Shape", b.placeholder("p", "float32", (None, 7)), name="sh")
    b.op("Reshape", b.placeholder("a", "float32", (2, 3)), sizes, name="r")
    assert _refusal(_of(b)).endswith(
        " for '{{node r}} = Reshape[T=DT_FLOAT, Tshape=DT_INT32](a, sh)' with input shapes: [2,3], [2] and with input "
        "tensors computed as partial shapes: input[1] = [?,7]."
    )


@pytest.mark.parametrize(("size", "text"), [(-1, "?"), (-5, "-5")])
def test_a_constant_needs_a_shape(size: int, text: str) -> None:
    """A negative size is refused before the value is looked at; a damaged value is not."""
    graph_def = GraphDef()
    node = graph_def.node.add(name="c", op="Const")
    node.attr["dtype"].CopyFrom(encode("float32", "type"))
    tensor = node.attr["value"].tensor
    tensor.dtype = encode("float32", "type").type
    tensor.tensor_shape.dim.add(size=size)
    assert _refusal(graph_def).startswith(f"Shape [{text}] is not fully defined for '{{{{node c}}}} = Const[")
    tensor.CopyFrom(TensorProto(dtype=tensor.dtype, tensor_content=b"ab"))
    import_graph_def(graph_def, Graph())


def test_a_negative_size_in_an_attr_is_refused() -> None:
    """Below -1, which means unknown."""
    b = GraphBuilder()
    b.placeholder("c", "float32", (2,))
    graph_def = _of(b)
    graph_def.node[0].attr["shape"].shape.dim[0].size = -5
    assert _refusal(graph_def).startswith(
        "Shape [-5] has dimensions with values below -1 (where -1 means unknown) for '{{node c}} = Placeholder["
    )


def test_shape_functions_see_the_version_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lower one of the graph and of what is imported; TensorFlow's tests have an op that accepts one only."""

    def check(c: ShapeContext) -> tuple[()]:
        if c.producer != PRODUCER:
            raise InvalidArgumentError("Wrong graph version for shape")
        return ()

    monkeypatch.setattr(registry, "_signatures", dict(registry._signatures))  # what is registered here is gone after it
    monkeypatch.setattr(record, "_records", dict(record._records))
    monkeypatch.setitem(shape_functions._FUNCTIONS, "ImportShapesOfOneVersion", check)
    register_op(OpDef(name="ImportShapesOfOneVersion"))
    graph_def = GraphDef()
    graph_def.node.add(name="A", op="ImportShapesOfOneVersion")
    graph_def.versions.producer = PRODUCER
    import_graph_def(graph_def, Graph())
    graph_def.versions.producer = PRODUCER - 1
    assert "Wrong graph version for shape" in _refusal(graph_def)
    graph = Graph()
    old = GraphDef()
    old.versions.producer = 20
    import_graph_def(old, graph)
    graph_def.versions.producer = PRODUCER
    assert "Wrong graph version for shape" in _refusal(graph_def, graph)


@pytest.mark.parametrize(("producer", "is_refused"), [(0, False), (20, False), (21, False), (22, True), (2474, True)])
def test_an_old_scalar_placeholder_has_any_shape(producer: int, is_refused: bool) -> None:
    """Until producer 21 the shape of a scalar stands for an unknown one."""
    b = GraphBuilder()
    a = b.placeholder("a", "float32", ())
    b.op("MatMul", a, a, name="m")
    graph_def = _of(b)
    graph_def.versions.producer = producer
    if is_refused:
        assert "for '{{node m}}" in _refusal(graph_def)
    else:
        assert _imported(graph_def).num_nodes == 4


def test_mapped_inputs_have_the_shapes_of_the_graph() -> None:
    """As far as the graph that was there tells them; what it contradicts itself is not reported again."""
    b = GraphBuilder()
    x = b.op("Neg", b.placeholder("x", "float32", (2,)), name="neg")
    b.op("MatMul", x, x, name="wrong")
    graph = graph_def_to_graph(_of(b))
    b = GraphBuilder()
    a = b.placeholder("A", "float32", (2, 2))
    b.op("MatMul", a, a, name="B")
    graph_def = _of(b)
    to_neg = ImportOptions(prefix="i", input_map={"A:0": "neg"})
    assert "for '{{node i/B}}" in _refusal(graph_def, graph, to_neg)
    import_graph_def(graph_def, graph, ImportOptions(prefix="i", input_map={"A:0": "wrong"}))
    unconnected = Graph()
    unconnected.add_node("neg", "Neg", {"T": "float32"})
    import_graph_def(graph_def, unconnected, to_neg)


def _loop(is_constant: bool) -> GraphDef:
    """A loop whose variable begins with shape (2,) and is multiplied as a matrix after the loop."""
    b = GraphBuilder()
    enter = b.op("Enter", b.placeholder("x", "float32", (2,)), name="e", frame_name="f", is_constant=is_constant)
    exit_ = b.op("Exit", enter, name="out")
    b.op("MatMul", exit_, exit_, name="m")
    return _of(b)


def test_loops_tell_shapes_of_constants_only() -> None:
    """The body may change the shape of a variable, and TensorFlow does not look."""
    import_graph_def(_loop(is_constant=False), Graph())
    assert "for '{{node m}}" in _refusal(_loop(is_constant=True))


def test_the_value_of_a_switch_is_not_followed() -> None:
    """One of its outputs is dead."""
    b = GraphBuilder()
    sizes = b.op("Switch", b.constant([1, 3], "int32"), b.placeholder("p", "bool", ()))
    b.op("Reshape", b.placeholder("a", "float32", (2, 3)), sizes[0])
    assert _imported(_of(b)).find_node("Reshape") is not None


@given(graph_cases(), st.booleans())
def test_what_infers_imports(case: GraphCase, with_shapes: bool) -> None:
    """A drawn graph imports, also with the inferred shapes written into it."""
    graph_def = case.on_one_device()
    graph = graph_def_to_graph(graph_def, add_default_attrs=True)
    shapes = infer_shapes(graph)
    if with_shapes:
        for node in graph_def.node:
            node.attr["_output_shapes"].CopyFrom(encode(shapes[node.name], "list(shape)"))
    imported = Graph()
    import_graph_def(graph_def, imported)
    assert str(imported) == str(graph)
    assert not any("_output_shapes" in node.attrs for node in imported.op_nodes())


def test_a_variable_keeps_its_shape() -> None:
    """Whatever is assigned must fit the shape behind the handle."""
    b = GraphBuilder()
    v = b.op("VarHandleOp", dtype="float32", shape=(2, 3), name="v")
    b.op("AssignVariableOp", v, b.placeholder("x", "float32", (3,)), dtype="float32", name="a")
    assert _refusal(_of(b)) == (
        "Shapes must be equal rank, but are 2 and 1 for '{{node a}} = AssignVariableOp[dtype=DT_FLOAT, "
        "validate_shape=false](v, x)' with input shapes: [], [3]."
    )


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("Conv2D", [(2, 2), (1, 1, 1, 1)], {"strides": [1], "padding": b"SAME"}, "Shape must be rank 4 but is rank 2"),
        (
            "MaxPool",
            [(2,)],
            {"ksize": [0] * 4, "strides": [1] * 4, "padding": b"SAME"},
            "Shape must be rank 4 but is rank 1",
        ),
        ("EnsureShape", [()], {"shape": (2, 3)}, "Shape must be rank 2 but is rank 0"),
        ("Unpack", [(3, 3)], {"num": 1}, "Dimension must be 1 but is 3"),
        (
            "Pack",
            [(2,), (1, 0)],
            {},
            "Shapes must be equal rank, but are 1 and 2\n\tFrom merging shape 0 with other shapes.",
        ),
    ],
)
def test_texts_are_tensorflows(op: str, inputs: list[tuple[int, ...]], attrs: dict[str, Any], message: str) -> None:
    """As TensorFlow 2.21 words them at import."""
    b = GraphBuilder()
    tensors = [b.placeholder(f"i{i}", "float32", shape) for i, shape in enumerate(inputs)]
    b.op(op, *([tensors] if op == "Pack" else tensors), name="n", **attrs)
    assert _refusal(_of(b)).startswith(f"{message} for '{{{{node n}}}} = {op}[")


def test_a_reshape_that_does_not_fit_is_refused() -> None:
    """By number of elements, or by what is known of it."""
    for sizes, message in {
        (4, 5): "Cannot reshape a tensor with 6 elements to shape [4,5] (20 elements)",
        (-1, 7): "Dimension size must be evenly divisible by 7 but is 6",
    }.items():
        b = GraphBuilder()
        b.op("Reshape", b.placeholder("a", "float32", (2, 3)), b.constant(sizes, "int32"), name="r")
        assert _refusal(_of(b)).startswith(f"{message} for '{{{{node r}}}}")


@pytest.mark.parametrize(("axis", "rank"), [(5, 6), (-3, 3)])
def test_values_are_joined_along_an_axis_that_they_have(axis: int, rank: int) -> None:
    """The message says which rank the axis needs."""
    b = GraphBuilder()
    b.op("ConcatV2", [b.placeholder("a", "float32", (2,))] * 2, b.constant(axis, "int32", name="axis"), name="c")
    assert _refusal(_of(b)).startswith(f"Shape must be at least rank {rank} but is rank 1 for '{{{{node c}}}}")


_Input = tuple[tuple[int | None, ...], str]
_INDICES, _ROWS = ((1,), "int32"), ((2, 3), "float32")
_REFUSED: list[tuple[str, list[_Input], dict[str, Any], str]] = [
    (
        "DynamicPartition",
        [_ROWS, ((4,), "int32")],
        {"num_partitions": 2},
        "Dimensions must be equal, but are 2 and 4",
    ),
    (
        "DynamicPartition",
        [((5,), "float32"), ((5, 2), "int32")],
        {"num_partitions": 2},
        "Shape must be at least rank 2 but is rank 1",
    ),
    (
        "GatherNd",
        [((5, 3), "float32"), ((None, 3), "int32")],
        {},
        "indices.shape[-1] must be <= params.rank, but saw indices shape: [?,3] and params shape: [5,3]",
    ),
    (
        "Select",
        [((3,), "bool"), _ROWS, _ROWS],
        {},
        "Dimension 0 in both shapes must be equal, but are 3 and 2. Shapes are [3] and [2].",
    ),
    ("Select", [((2,), "bool"), ((), "int8"), ((), "int8")], {}, "Shapes must be equal rank, but are 0 and 1"),
    (
        "Bitcast",
        [((2, 3), "uint8")],
        {"type": "float32"},
        "Cannot bitcast from 4 to 1 due to shape. 3 does not match 4",
    ),
    ("Tile", [((2,), "float32"), ((2,), "int32")], {}, "Shape must be rank 1 but is rank 2"),
    ("Slice", [_ROWS, _INDICES, _INDICES], {}, "Shape must be rank 1 but is rank 2"),
    (
        "Slice",
        [_ROWS, ((2,), "int32"), _INDICES],
        {},
        "Dimension 0 in both shapes must be equal, but are 2 and 1. Shapes are [2] and [1].",
    ),
    (
        "EnsureShape",
        [((4, 3), "float32")],
        {"shape": (2, None)},
        "Dimension 0 in both shapes must be equal, but are 2 and 4. Shapes are [2,?] and [4,3].",
    ),
]


@pytest.mark.parametrize(("op", "inputs", "attrs", "message"), _REFUSED)
def test_texts_about_several_types_are_tensorflows(
    op: str, inputs: list[_Input], attrs: dict[str, Any], message: str
) -> None:
    """In the order in which TensorFlow 2.21 compares."""
    b = GraphBuilder()
    b.op(op, *(b.placeholder(f"i{i}", dtype, shape) for i, (shape, dtype) in enumerate(inputs)), name="n", **attrs)
    assert _refusal(_of(b)).startswith(f"{message} for '{{{{node n}}}} = {op}[")


@pytest.mark.parametrize("op", ["If", "Case"])
def test_a_branch_promises_a_shape_for_each_output(op: str) -> None:
    """Another number of shapes is refused, as it is of loops."""
    b = GraphBuilder()
    choice = b.placeholder("c", "bool" if op == "If" else "int32", ())
    branches = {"then_branch": "f", "else_branch": "f"} if op == "If" else {"branches": ["f"]}
    b.op(
        op,
        choice,
        [b.placeholder("x", "float32", (2,))],
        name="n",
        Tout=["float32"],
        output_shapes=[(), ()],
        **branches,
    )
    assert _refusal(_of(b)).startswith("`output_shapes` must be the same length as num outputs (2 vs. 1 for")


@pytest.mark.parametrize("op", ["Sum", "Prod", "Mean", "Max", "Min", "All", "Any", "EuclideanNorm"])
@pytest.mark.parametrize(("producer", "is_refused"), [(0, False), (20, False), (21, True), (2474, True)])
def test_old_reductions_have_axes_of_any_rank(op: str, producer: int, *, is_refused: bool) -> None:
    """Until producer 20; beside placeholders this is the only rule of TensorFlow that depends on the producer."""
    b = GraphBuilder()
    dtype = "bool" if op in ("All", "Any") else "float32"
    b.op(op, b.placeholder("a", dtype, (2, 3, 4)), b.constant(np.array([[0], [2]], np.int32)), name="s")
    graph_def = _of(b)
    graph_def.versions.producer = producer
    if is_refused:
        assert "Shape must be at most rank 1 but is rank 2 for '{{node s}}" in _refusal(graph_def)
    else:
        assert _imported(graph_def).num_nodes == 5
