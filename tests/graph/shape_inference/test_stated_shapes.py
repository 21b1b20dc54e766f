"""Queues, barriers, accumulators, arrays and the program itself state shapes, and what reads from them has these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.graph import DataType, Graph, GraphBuilder
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.attrs import encode
from partita.graph.shape_inference.infer import Shapes, infer_joined, infer_shapes

FLOAT, INT64 = DataType.FLOAT, DataType.INT64
TWO: dict[str, Any] = {"component_types": [FLOAT, INT64]}  # Any: attr values of several types


def in_step(graph: Graph, name: str) -> Shapes:
    """The shapes of a node in a step. Without one nothing more is known than TensorFlow's import knows."""
    assert all(shape in (None, (None,)) for shape in infer_shapes(graph)[name])
    return infer_joined(JoinedGraph({"": graph})).by_name()[name]


@pytest.mark.parametrize("kind", ["FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue"])
@pytest.mark.parametrize("version", ["", "V2"])
def test_a_queue_states_the_shapes_of_its_elements(kind: str, version: str) -> None:
    """Of one element, of a stated number of them, and of at most so many."""
    b = GraphBuilder()
    queue = b.op(f"{kind}{version}", shapes=[(2, 3), ()], **TWO)
    count = b.constant(np.int32(5))
    b.op(f"QueueDequeue{version}", queue, name="one", **TWO)
    b.op(f"QueueDequeueMany{version}", queue, count, name="many", **TWO)
    b.op(f"QueueDequeueUpTo{version}", queue, count, name="some", **TWO)
    open_count = b.placeholder("n", "int32", ())
    b.op(f"QueueDequeueMany{version}", queue, open_count, name="any", **TWO)
    graph = b.graph()
    assert in_step(graph, "one") == ((2, 3), ())
    assert in_step(graph, "many") == ((5, 2, 3), (5,))
    assert in_step(graph, "some") == in_step(graph, "any") == ((None, 2, 3), (None,))


def test_a_queue_may_state_nothing() -> None:
    """Then shapes stay unknown; a size that it leaves open does too."""
    b = GraphBuilder()
    b.op("QueueDequeueV2", b.op("FIFOQueueV2", **TWO), name="none", **TWO)
    b.op("QueueDequeueV2", b.op("PaddingFIFOQueueV2", shapes=[(None, 3), ()], **TWO), name="part", **TWO)
    graph = b.graph()
    assert in_step(graph, "none") == (None, None)
    assert in_step(graph, "part") == ((None, 3), ())


def test_elements_of_a_priority_queue_begin_with_their_priority() -> None:
    """A scalar that the queue does not state."""
    b = GraphBuilder()
    queue = b.op("PriorityQueueV2", shapes=[(4,)], component_types=[FLOAT])
    b.op("QueueDequeueV2", queue, name="one", component_types=[INT64, FLOAT])
    b.op("QueueDequeueManyV2", queue, b.constant(np.int32(3)), name="many", component_types=[INT64, FLOAT])
    graph = b.graph()
    assert in_step(graph, "one") == ((), (4,))
    assert in_step(graph, "many") == ((3,), (3, 4))


def test_a_handle_passes_through_identities() -> None:
    """Of resources and of references."""
    b = GraphBuilder()
    queue = b.identity(b.op("FIFOQueueV2", shapes=[(2,)], component_types=[FLOAT]))
    b.op("QueueDequeueV2", queue, name="new", component_types=[FLOAT])
    old = b.op("RefIdentity", b.op("FIFOQueue", shapes=[(2,)], component_types=[FLOAT]))
    b.op("QueueDequeue", old, name="old", component_types=[FLOAT])
    graph = b.graph()
    assert in_step(graph, "new") == in_step(graph, "old") == ((2,),)


def test_a_barrier_states_the_shapes_of_its_values() -> None:
    """It gives indices, keys and values, fewer than asked for only where small batches are allowed."""
    b = GraphBuilder()
    barrier, count = b.op("Barrier", shapes=[(2, 3)], component_types=[FLOAT]), b.constant(np.int32(4))
    b.op("BarrierTakeMany", barrier, count, name="all", component_types=[FLOAT])
    b.op("BarrierTakeMany", barrier, count, name="few", component_types=[FLOAT], allow_small_batch=True)
    graph = b.graph()
    assert in_step(graph, "all") == ((4,), (4,), (4, 2, 3))
    assert in_step(graph, "few") == ((None,), (None,), (None, 2, 3))


def test_accumulators_and_arrays_state_a_shape() -> None:
    """An average has that of the accumulator, an element that of the array, whether or not all elements are equal."""
    b = GraphBuilder()
    sums = b.op("ConditionalAccumulator", dtype=FLOAT, shape=(7,))
    b.op("AccumulatorTakeGradient", sums, b.constant(np.int32(1)), name="mean", dtype=FLOAT)
    array = b.op("TensorArrayV3", b.constant(np.int32(9)), dtype=FLOAT, element_shape=(3, 2))
    b.op("TensorArrayReadV3", array[0], b.constant(np.int32(0)), array[1], name="element", dtype=FLOAT)
    graph = b.graph()
    assert in_step(graph, "mean") == ((7,),)
    assert in_step(graph, "element") == ((3, 2),)


def test_a_step_believes_what_the_program_wrote() -> None:
    """`_output_shapes` completes shapes of one step, where it does not contradict the rule of the op."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None, 3))
    b.op("Neg", x, name="y")
    b.op("Neg", x, name="z")
    graph = b.graph()
    for name, written in (("x", [(5, None)]), ("z", [(5, 4)])):
        node = graph.find_node(name)
        assert node is not None
        node.add_attr("_output_shapes", encode(written, "list(shape)"))
    step = infer_joined(JoinedGraph({"": graph})).by_name()
    assert step["x"] == step["y"] == step["z"] == ((5, 3),)
    assert infer_shapes(graph)["y"] == ((None, 3),)


def test_what_a_normalisation_reserves_is_a_scalar() -> None:
    """In a step; no rule says so of every step."""
    b = GraphBuilder()
    scale = [np.ones(3, np.float32)] * 4
    b.op("FusedBatchNormV3", np.ones((2, 4, 4, 3), np.float32), *scale, name="y", U=FLOAT)
    graph = b.graph()
    assert infer_joined(JoinedGraph({"": graph})).by_name()["y"] == ((2, 4, 4, 3), *[(3,)] * 4, ())
    assert infer_shapes(graph)["y"][5] is None


def test_what_is_taken_out_of_a_staging_area_is_as_large_as_what_is_put_in() -> None:
    """By the name of the area, though Unstage comes first; other areas share nothing."""
    b = GraphBuilder()
    names: dict[str, Any] = {"dtypes": [FLOAT, FLOAT], "shared_name": "area"}  # Any: attr values of several types
    taken = b.op("Unstage", name="taken", **names)
    b.op("Neg", taken[0], name="y")
    with b.control_dependencies(taken):
        b.op("Stage", [b.placeholder("x", "float32", (5, 2)), b.constant(1.0)], **names)
    b.op("Unstage", name="other", dtypes=[FLOAT], shared_name="elsewhere")
    graph = b.graph()
    assert in_step(graph, "taken") == ((5, 2), ())
    assert in_step(graph, "y") == ((5, 2),)
    assert in_step(graph, "other") == (None,)


def test_a_value_that_is_known_has_a_known_shape() -> None:
    """How many axes a gradient is summed over depends on the sizes that are broadcast."""
    b = GraphBuilder()
    sizes = b.constant(np.array([3, 4], np.int32)), b.constant(np.array([4], np.int32))
    b.op("BroadcastGradientArgs", *sizes, name="axes")
    assert in_step(b.graph(), "axes") == ((0,), (1,))


def test_a_table_gives_a_value_for_every_key() -> None:
    """A scalar, unless the table is one of tensors."""
    b = GraphBuilder()
    table = b.op("HashTableV2", key_dtype=DataType.STRING, value_dtype=INT64)
    keys, default = b.placeholder("keys", "string", (5,)), b.placeholder("default", "int64", ())
    b.op("LookupTableFindV2", table, keys, default, name="found")
    assert in_step(b.graph(), "found") == ((5,),)


@pytest.mark.parametrize(
    ("op", "attrs", "key", "found"),
    [
        ("HashTableV2", {}, None, None),
        ("MutableHashTableV2", {}, None, (4, 2)),
        ("MutableHashTableOfTensorsV2", {"value_shape": (7, None)}, None, (4, 2, 7, None)),
        ("MutableDenseHashTableV2", {"value_shape": (7,)}, (), (4, 2, 7)),
        ("MutableDenseHashTableV2", {"value_shape": (7,)}, (2,), (4, 7)),
    ],
)
def test_an_import_looks_through_handles_of_tables_that_change(
    op: str, attrs: dict[str, Any], key: tuple[int, ...] | None, found: tuple[int, ...] | None
) -> None:
    """Keys of dense tables may be vectors. TensorFlow 2.21 gives these shapes."""
    b = GraphBuilder()
    markers = () if key is None else (b.placeholder("empty", "int64", key), b.placeholder("deleted", "int64", key))
    types: dict[str, Any] = {} if markers else {"key_dtype": INT64}
    table = b.op(op, *markers, value_dtype=INT64, **types, **attrs)
    keys, default = b.placeholder("keys", "int64", (4, 2)), b.placeholder("default", "int64")
    b.op("LookupTableFindV2", table, keys, default, name="found")
    assert infer_shapes(b.graph())["found"] == (found,)
    if key:
        b.op("LookupTableFindV2", table, b.placeholder("scalar", "int64", ()), default, name="wrong")
        with pytest.raises(InvalidArgumentError, match=r"Expected keys to have suffix \[2\] but saw shape: \[\]"):
            infer_shapes(b.graph())


@pytest.mark.parametrize(
    ("part", "shape"), [("10 20 0,5:-", (5, 20)), ("", None), ("10 0,5", (5,)), ("10 20 -:-", (10, 20))]
)
def test_a_restored_part_has_the_shape_of_its_slice(part: str, shape: tuple[int, ...] | None) -> None:
    """Through identities, too; of a whole tensor only the file knows the shape."""
    b = GraphBuilder()
    parts = b.op("Identity", b.constant([part], "string"))
    b.op("RestoreV2", b.constant("file", "string"), b.constant(["x"], "string"), parts, dtypes=["float32"], name="r")
    assert infer_shapes(b.graph())["r"] == (shape,)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "uint64", "int32"])
def test_a_range_of_constants_of_any_type_has_a_known_length(dtype: str) -> None:
    """Also where they are cast or passed on."""
    b = GraphBuilder()
    start = b.op("Cast", b.op("Identity", b.constant(1)), DstT=dtype)
    b.op("Range", start, b.constant(20, dtype), b.constant(3, dtype), name="r")
    assert infer_shapes(b.graph())["r"] == ((7,),)
