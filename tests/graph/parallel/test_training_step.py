"""The parts of a training step: what is forward, what is an update, and which gradients are between."""

from __future__ import annotations

import numpy as np
import pytest

from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph import Graph, GraphBuilder, gradients
from partita.graph.builder.handles import Tensor
from partita.graph.parallel.training_step import TrainingStep, training_step
from tests.graph.parallel.training_models import MODELS, OPTIMIZERS, TrainingModel


def names(step: TrainingStep, nodes: object) -> list[str]:
    """The names of some nodes, or of the nodes of some tensors."""
    ids = [node if isinstance(node, int) else node[0] for node in nodes]  # type: ignore[attr-defined]  # any collection
    return [step.graph.node_name(node) for node in ids]


def step_of(graph: Graph) -> TrainingStep:
    """The parts of a step with batch "x" and "y"."""
    return training_step(graph, batch=["x", "y"], loss="loss")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_one_gradient_of_each_parameter(model: str, optimizer: str) -> None:
    """Whatever the optimizer, clipping, decay, scaling and averaging: gradients have the shapes of the parameters."""
    m = TrainingModel(model, optimizer, clips=True, decays=True, scales=True, averages=True)
    step = step_of(m.graph())
    shapes = m.shapes()
    parameters = names(step, step.parameters)
    assert sorted(step.shapes.of(g) or () for g in step.gradients) == sorted(shapes[name] for name in parameters)
    assert set(names(step, step.variables)) == set(m.names)
    assert not step.statistics
    assert not any(step.shapes.has_rows(g) for g in step.gradients)
    assert step.region.isdisjoint(step.forward)


def test_reference_variables_are_updated_as_resources_are() -> None:
    """The region of a step of TensorFlow 1: clipping and ApplyX, whose outputs are references."""
    step = step_of(TrainingModel(optimizer="adam", kind="reference", clips=True).graph())
    assert {step.graph.node_properties(node).op for node in step.updates} == {"ApplyAdam"}
    region = {step.graph.node_properties(node).op for node in step.region}
    assert region == {"L2Loss", "AddN", "Sqrt", "Reciprocal", "Minimum", "Mul", "ApplyAdam"}


def test_gradients_are_in_the_order_of_the_backward_pass() -> None:
    """The gradients of the last layer come first."""
    step = step_of(TrainingModel().graph())
    assert names(step, step.gradients)[0] == "gradients/out/out_grad/BiasAddGrad"
    assert names(step, step.gradients)[-1].startswith("gradients/MatMul_grad")


def test_partial_gradients_are_added_before_the_region() -> None:
    """A table that embeds and makes logits has one gradient: AddN of both parts is backward."""
    step = step_of(TrainingModel("transformer").graph())
    last = step.gradients[-1][0]
    assert step.graph.node_properties(last).op == "AddN"
    assert last not in step.region


def linear(b: GraphBuilder) -> tuple[Tensor, Tensor]:
    """A loss of "x" and "y" by a variable: its handle, and its gradient."""
    x, y = b.placeholder("x", "float32", (None, 4)), b.placeholder("y", "float32", (None, 3))
    w = b.op("VarHandleOp", name="w", dtype="float32", shape=(4, 3), attrs={"shared_name": "w"})[0]
    product = b.op("MatMul", x, b.op("ReadVariableOp", w, name="read", dtype="float32"), name="product")
    b.op("Mean", b.op("Square", b.op("Sub", product, y)), [0, 1], name="loss")
    (slope,) = gradients(b, ["loss"], ["read"])
    assert slope is not None
    return w, b.tensor(slope)


def test_moving_averages_and_metrics_are_statistics() -> None:
    """They depend on the batch, but on no gradient; what reads the loss alone has the value of the whole batch."""
    b = GraphBuilder()
    w, slope = linear(b)
    b.op("AssignSubVariableOp", w, slope * 0.1, name="step")
    for name in ("mean", "seen"):
        b.op("VarHandleOp", name=name, dtype="float32", shape=(3,), attrs={"shared_name": name})
    b.op("AssignVariableOp", "mean", b.op("Mean", "product", [0]), name="of_rows")
    b.op("AssignAddVariableOp", "seen", b.op("Fill", [3], b.tensor("loss") * 2.0), name="of_loss")
    step = step_of(b.graph())
    assert names(step, step.updates) == ["step"]
    assert names(step, step.statistics) == ["of_rows"]


def test_a_counter_of_finite_gradients_is_an_update() -> None:
    """The state of dynamic loss scaling follows from gradients, so all replicas must see the same ones."""
    b = GraphBuilder()
    w, slope = linear(b)
    b.op("VarHandleOp", name="good", dtype="float32", shape=(), attrs={"shared_name": "good"})
    finite = b.op("All", b.op("IsFinite", slope), [0, 1], name="finite")
    count = b.op("Cast", finite, DstT="float32")
    b.op("AssignAddVariableOp", "good", count, name="count")
    b.op("ResourceApplyGradientDescent", w, 0.1, slope * count, name="step")
    step = step_of(b.graph())
    assert set(names(step, step.updates)) == {"step", "count"}
    assert step.gradients == ((b.graph().find_id(slope.node), 0),)


def embedding(b: GraphBuilder) -> tuple[Tensor, Tensor, Tensor]:
    """A table, and the indices and rows of its gradient."""
    ids, y = b.placeholder("x", "int32", (None, 2)), b.placeholder("y", "float32", (None, 2, 3))
    table = b.op("VarHandleOp", name="table", dtype="float32", shape=(5, 3), attrs={"shared_name": "table"})[0]
    rows = b.op("ResourceGather", table, ids, dtype="float32", name="rows")[0]
    b.op("Mean", b.op("Square", rows - y), [0, 1, 2], name="loss")
    (slope,) = gradients(b, ["loss"], [rows])
    return table, b.op("Reshape", ids, [-1], name="ids")[0], b.op("Reshape", slope, [-1, 3], name="slopes")[0]


def test_indices_and_rows_are_joined() -> None:
    """A scatter reads both directly."""
    b = GraphBuilder()
    table, ids, slopes = embedding(b)
    b.op("ResourceScatterSub", table, ids, slopes * 0.1, name="step")
    step = step_of(b.graph())
    assert names(step, sorted(step.region)) == ["Mul", "step"]
    assert set(names(step, step.joined)) == {"ids", "slopes"} == set(names(step, step.gradients))


def test_rows_are_joined_before_equal_indices_are_summed() -> None:
    """Otherwise an optimizer would see an index several times; clipping by the norm of the rows sees all of them."""
    b = GraphBuilder()
    table, ids, slopes = embedding(b)
    clipped = b.op("Mul", slopes, b.op("Rsqrt", b.op("L2Loss", slopes, name="norm")), name="clipped")
    distinct, where = b.op("Unique", ids, name="distinct")
    size = b.op("StridedSlice", b.op("Shape", distinct), [0], [1], [1], shrink_axis_mask=1)
    total = b.op("UnsortedSegmentSum", clipped, where, size, name="summed")
    accumulator = b.op("VarHandleOp", name="sum", dtype="float32", shape=(5, 3), attrs={"shared_name": "sum"})
    b.op("ResourceSparseApplyAdagrad", table, accumulator, 0.1, total, distinct, name="step")
    step = step_of(b.graph())
    assert set(names(step, step.joined)) == {"ids", "slopes"} == set(names(step, step.gradients))
    assert {"norm", "clipped", "distinct", "summed", "step"} <= set(names(step, step.region))


def test_what_is_no_training_step_is_refused() -> None:
    """By the name that is wrong."""
    b = GraphBuilder()
    w, slope = linear(b)
    graph = b.graph()
    with pytest.raises(InvalidArgumentError, match="no variable is updated by a gradient of 'loss'"):
        step_of(graph)
    b.op("AssignSubVariableOp", w, slope, name="step")
    b.placeholder("z", "float32", (None,))
    graph = b.graph()
    with pytest.raises(InvalidArgumentError, match="'loss' does not depend on 'z'"):
        training_step(graph, batch=["z"], loss="loss")
    with pytest.raises(InvalidArgumentError, match="'read' is no placeholder"):
        training_step(graph, batch=["read"], loss="loss")
    with pytest.raises(NotFoundError, match="no tensor 'z2'"):
        training_step(graph, batch=["z2"], loss="loss")
    with pytest.raises(InvalidArgumentError, match="name at least one"):
        training_step(graph, batch=[], loss="loss")
    b.placeholder("s", "float32", ())
    with pytest.raises(InvalidArgumentError, match="'s' is a scalar"):
        training_step(b.graph(), batch=["x", "s"], loss="loss")


def test_the_batch_may_have_a_declared_size() -> None:
    """Sizes that the gradients fixed for it do not make the tensors of rows look like gradients."""
    step = step_of(TrainingModel(rows=4).graph())
    assert len(step.gradients) == len(step.parameters)
    assert not any(np.array_equal(step.shapes.of(g), (4,)) for g in step.gradients)
