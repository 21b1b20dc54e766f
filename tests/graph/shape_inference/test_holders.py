"""What is taken out of a stack, an array, a queue or a list has the shapes that are put in, in one step.

An import knows what is stated, and nothing of what is put in, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.graph import DataType, GraphBuilder
from partita.graph.analysis.dims import common_shape
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Shape
from partita.graph.shape_inference.infer import Shapes, infer_joined, infer_shapes

FLOAT, INT64 = DataType.FLOAT, DataType.INT64
Sizes = Sequence[Shape]


def in_step(b: GraphBuilder, name: str = "y") -> Shapes:
    """The shapes of a node in a step, in which the nodes that put in may come after those that take out."""
    return infer_joined(JoinedGraph({"": b.graph()})).by_name()[name]


def fed(b: GraphBuilder, shape: Shape) -> Tensor:
    return b.placeholder("x", "float32", shape)


def stack(b: GraphBuilder, put: Sizes) -> None:
    handle = b.op("StackV2", b.constant(np.int32(-1)), elem_type=FLOAT)
    for shape in put:
        b.op("StackPushV2", handle, fed(b, shape))
    b.op("StackPopV2", b.identity(handle), elem_type=FLOAT, name="y")


def array(b: GraphBuilder, put: Sizes) -> None:
    made = b.op("TensorArrayV3", b.constant(np.int32(9)), dtype=FLOAT)
    for index, shape in enumerate(put):
        b.op("TensorArrayWriteV3", made[0], b.constant(np.int32(index)), fed(b, shape), made[1])
    b.op("TensorArrayReadV3", made[0], b.constant(np.int32(0)), made[1], dtype=FLOAT, name="y")


def array_of_rows(b: GraphBuilder, put: Sizes) -> None:
    made = b.op("TensorArrayV3", b.constant(np.int32(9)), dtype=FLOAT)
    for shape in put:
        rows = fed(b, None if shape is None else (2, *shape))
        b.op("TensorArrayScatterV3", made[0], b.constant(np.arange(2, dtype=np.int32)), rows, made[1])
    b.op("TensorArrayReadV3", made[0], b.constant(np.int32(0)), made[1], dtype=FLOAT, name="y")


def queue(b: GraphBuilder, put: Sizes) -> None:
    handle = b.op("FIFOQueueV2", component_types=[FLOAT])
    b.op("QueueDequeueV2", handle, component_types=[FLOAT], name="y")
    for shape in put:
        b.op("QueueEnqueueV2", handle, [fed(b, shape)])


def queue_of_rows(b: GraphBuilder, put: Sizes) -> None:
    handle = b.op("FIFOQueueV2", component_types=[FLOAT])
    b.op("QueueDequeueV2", handle, component_types=[FLOAT], name="y")
    for shape in put:
        b.op("QueueEnqueueManyV2", handle, [fed(b, None if shape is None else (2, *shape))])


HOLDERS: dict[str, Callable[[GraphBuilder, Sizes], None]] = {
    "stack": stack,
    "array": array,
    "rows of an array": array_of_rows,
    "queue": queue,
    "rows of a queue": queue_of_rows,
}
SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize(
    ("put", "taken"),
    [
        ([(2, 3)], (2, 3)),
        ([()], ()),
        ([(2, 3), (2, 3)], (2, 3)),
        ([(2, 3), (5, 3)], (None, 3)),
        ([(2, 3), (2,)], None),
        ([(None, 3)], (None, 3)),
        ([], None),
    ],
)
def test_what_is_taken_out_has_the_common_shape_of_what_is_put_in(holder: str, put: list[Shape], taken: Shape) -> None:
    """Sizes that differ are unknown, and so is everything without a rank; an import knows nothing."""
    b = GraphBuilder()
    HOLDERS[holder](b, put)
    assert in_step(b) == (taken,)
    assert infer_shapes(b.graph())["y"] == (None,)


@given(st.sampled_from(sorted(HOLDERS)), st.lists(SHAPES, min_size=1, max_size=4))
def test_the_order_of_what_is_put_in_does_not_matter(holder: str, put: list[Shape]) -> None:
    """Nor how often it is."""
    results = []
    for puts in (put, put[::-1], put * 2):
        b = GraphBuilder()
        HOLDERS[holder](b, puts)
        results.append(in_step(b))
    assert results == [(common_shape(put),)] * 3


@given(st.lists(SHAPES, min_size=1, max_size=4))
def test_the_last_of_a_list_has_the_common_shape_of_its_elements(put: list[Shape]) -> None:
    """Which one is the last is not followed, nor for the lists that are left."""
    b = GraphBuilder()
    types: dict[str, Any] = {"element_dtype": FLOAT}  # Any: attr values of several types
    tensors = b.op("EmptyTensorList", np.int32(-1), np.int32(-1), **types)[0]
    for shape in put:
        tensors = b.op("TensorListPushBack", tensors, fed(b, shape), **types)[0]
    for name in ("y", "z"):
        tensors = b.op("TensorListPopBack", tensors, np.int32(-1), name=name, **types)[0]
    assert in_step(b) == in_step(b, "z") == ((), common_shape(put))
    assert infer_shapes(b.graph())["y"] == ((), None)


def test_the_last_of_a_list_is_as_large_as_the_reader_asks() -> None:
    """And as the list states, which an import knows, too."""
    for stated, asked in (([-1, 3], [4, -1]), ([4, 3], [-1, -1]), ([-1, -1], [4, 3])):
        b = GraphBuilder()
        types: dict[str, Any] = {"element_dtype": FLOAT}  # Any: attr values of several types
        tensors = b.op("EmptyTensorList", np.array(stated, np.int32), np.int32(-1), **types)[0]
        tensors = b.op("TensorListPushBack", tensors, fed(b, None), **types)[0]
        b.op("TensorListPopBack", tensors, np.array(asked, np.int32), name="y", **types)
        assert in_step(b) == infer_shapes(b.graph())["y"] == ((), (4, 3))


def test_components_of_a_queue_are_told_apart() -> None:
    """Also where several elements are taken, as many as are asked for or at most so many."""
    b = GraphBuilder()
    types: dict[str, Any] = {"component_types": [FLOAT, INT64]}  # Any: attr values of several types
    handle, count = b.op("PaddingFIFOQueueV2", shapes=[(None, 3), ()], **types), b.constant(np.int32(7))
    b.op("QueueDequeueV2", handle, name="one", **types)
    b.op("QueueDequeueManyV2", handle, count, name="many", **types)
    b.op("QueueDequeueUpToV2", handle, count, name="some", **types)
    for size in (2, 2):
        b.op("QueueEnqueueV2", handle, [fed(b, (size, None)), b.placeholder("n", "int64")])
    assert in_step(b, "one") == ((2, 3), ())
    assert in_step(b, "many") == ((7, 2, 3), (7,))
    assert in_step(b, "some") == ((None, 2, 3), (None,))


def test_what_is_put_from_one_holder_into_another_keeps_its_shape() -> None:
    """A queue of what was on a stack of what was in an array, taken out before it is put in."""
    b = GraphBuilder()
    handle = b.op("FIFOQueueV2", component_types=[FLOAT])
    b.op("QueueDequeueV2", handle, component_types=[FLOAT], name="y")
    pile = b.op("StackV2", b.constant(np.int32(-1)), elem_type=FLOAT)
    b.op("QueueEnqueueV2", handle, [b.op("StackPopV2", pile, elem_type=FLOAT)])
    made = b.op("TensorArrayV3", b.constant(np.int32(1)), dtype=FLOAT)
    zero = b.constant(np.int32(0))
    b.op("StackPushV2", pile, b.op("TensorArrayReadV3", made[0], zero, made[1], dtype=FLOAT))
    b.op("TensorArrayWriteV3", made[0], zero, fed(b, (6, 1)), made[1])
    assert in_step(b) == ((6, 1),)


def test_holders_do_not_share() -> None:
    """Each handle has what is put in through it."""
    b = GraphBuilder()
    for name, shape in (("y", (1, 2)), ("z", (3,))):
        handle = b.op("StackV2", b.constant(np.int32(-1)), elem_type=FLOAT)
        b.op("StackPopV2", handle, elem_type=FLOAT, name=name)
        b.op("StackPushV2", handle, fed(b, shape))
    assert (in_step(b, "y"), in_step(b, "z")) == (((1, 2),), ((3,),))
