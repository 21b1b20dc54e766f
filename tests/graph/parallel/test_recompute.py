"""Recomputation: values stay bit-equal, memory falls, and what cannot be is refused by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.devices import cut, simulate
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph import Graph, GraphBuilder, recompute
from partita.graph.ops.record import families, record_of
from partita.graph.parallel.training_step import TrainingStep, training_step
from partita.graph.passes.optimising.cse import merge_common_subexpressions
from tests.goldens import assert_text
from tests.graph.parallel.small_steps import Optimizer, SmallStep, VariablesAre, encoder, perceptron
from tests.runs import assert_same_values

ACTIVATIONS = ["", "Relu", "Tanh", "Sigmoid", "Softplus", "Exp", "dropout"]


def scopes(graph: Graph) -> list[str]:
    """The scopes of the layers of a step."""
    tops = {name.partition("/")[0] for name in graph.names() if name is not None and name.startswith("layer")}
    return sorted(tops)


def added(graph: Graph, **options: object) -> set[str]:
    """The names of the nodes that recomputation adds."""
    result = recompute(graph, loss="loss", **options)  # type: ignore[arg-type]  # each test gives its own
    return {node.name for node in result.op_nodes()} - {node.name for node in graph.op_nodes()}


def peak_bytes(graph: Graph) -> int:
    """The peak memory of a simulated step on one CPU."""
    parts = cut(graph, "cpu:1", feeds=["x", "target"], fetches=["loss"], targets=["train"])
    timeline = simulate(parts, "cpu:1")
    return timeline.peak_memory_bytes(timeline.devices[0])


@st.composite
def steps(draw: st.DrawFn) -> SmallStep:
    """A perceptron or an encoder of 2 to 5 layers."""
    variables: VariablesAre = draw(st.sampled_from(["references", "resources"]))
    optimizer: Optimizer = draw(st.sampled_from(["sgd", "adam"]))
    if draw(st.booleans()):
        return encoder(draw(st.integers(2, 3)), variables=variables, optimizer=optimizer)
    activations = draw(st.lists(st.sampled_from(ACTIVATIONS), min_size=2, max_size=5))
    return perceptron(activations, variables=variables, optimizer=optimizer)


@settings(max_examples=15)
@given(steps(), st.data())
async def test_values_stay_bit_equal(step: SmallStep, data: st.DataObject) -> None:
    """Losses of five steps and the parameters after them, for any segments and any policy."""
    names = [node.name for node in step.graph.op_nodes() if node.num_outputs]
    segments: Sequence[str] | int = data.draw(
        st.integers(2, 4) | st.lists(st.sampled_from(scopes(step.graph)), min_size=1, unique=True)
    )
    policy = data.draw(st.sampled_from(["full", "products"]) | st.lists(st.sampled_from(names), max_size=3))
    before = str(step.graph)
    try:
        result = recompute(step.graph, loss="loss", segments=segments, policy=policy, whole=data.draw(st.booleans()))
    except InvalidArgumentError:
        assert isinstance(segments, int) or "dropout" not in before  # fewer activations than segments
        return
    assert str(step.graph) == before
    assert_same_values(await step.trained(result), await step.trained(step.graph))


def test_what_is_added_is_held_back_by_the_gradient() -> None:
    """The middle layer runs again when its gradient is there; only the new nodes and their readers differ."""
    step = perceptron(["Tanh", "Softplus", "Tanh"])
    result = recompute(step.graph, loss="loss", segments=["layer1"])
    before = set(str(step.graph).splitlines())
    changed = [line.partition(" {")[0] for line in str(result).splitlines()[1:] if line not in before]
    assert_text(
        "\n".join(changed).replace("gradients/", "g/"),
        """
        layer1/MatMul/again: float = MatMul(layer0/Tanh, layer1/w/read, ^g/layer2/MatMul_grad/MatMul)
        layer1/BiasAdd/again: float = BiasAdd(layer1/MatMul/again, layer1/bias/read)
        g/layer1/Softplus_grad/SoftplusGrad: float = SoftplusGrad(g/layer2/MatMul_grad/MatMul, layer1/BiasAdd/again)
        """,
    )


def test_the_policy_says_what_is_kept() -> None:
    """Nothing, the outputs of products, or named tensors; nothing is repeated that no gradient then needs."""
    graph = perceptron(["Sigmoid", "Sigmoid", "Relu"]).graph
    assert added(graph, segments=["layer0"]) == set()  # its output is all that gradients read
    graph = encoder(2).graph
    full = added(graph, segments=["layer0"])
    products = added(graph, segments=["layer0"], policy="products")
    assert products < full
    assert full - products == {name for name in full if "MatMul" in name}
    assert "layer0/Softmax/again" in products
    assert "layer0/Softmax/again" not in added(graph, segments=["layer0"], policy=["layer0/Softmax:0"])


def test_whole_segments_run_to_their_ends() -> None:
    """Also what makes the output of a segment, which no gradient reads."""
    graph = encoder(2).graph
    needed, whole = added(graph, segments=["layer0"]), added(graph, segments=["layer0"], whole=True)
    assert needed < whole
    outputs = {
        edge.src.name
        for node in graph.op_nodes()
        if node.name.startswith("layer1/")
        for edge in node.in_edges()
        if edge.src.name.startswith("layer0/")
    }
    assert outputs
    assert {f"{name}/again" for name in outputs} <= whole


def test_what_must_not_run_twice_is_kept() -> None:
    """Random numbers, and reads of variables of either kind."""
    for variables in ("references", "resources"):
        graph = perceptron(["Exp", "dropout", "Tanh", "dropout", "Exp"], variables=variables).graph
        names = added(graph, segments=2) | added(graph, segments=["layer1"])
        assert [name for name in names if "drawn" in name or "read" in name] == []
        assert any("Cast" in name or "BiasAdd" in name for name in names)


@pytest.mark.parametrize(("segments", "share"), [(4, 0.5), ([f"layer{k}" for k in range(12)], 0.75)])
def test_memory_falls_on_a_deep_perceptron(segments: int | list[str], share: float) -> None:
    """By the memory of the simulated step; several layers a segment are better than one, whose output is kept."""
    graph = perceptron([activation for _ in range(6) for activation in ("Softplus", "Exp")], width=8, rows=2048).graph
    assert peak_bytes(recompute(graph, loss="loss", segments=segments)) < share * peak_bytes(graph)


def test_memory_falls_on_an_encoder() -> None:
    """Less is kept by "full" than by "products", which keeps less than the plain step."""
    graph = encoder(8, width=16, rows=256).graph
    layers = scopes(graph)
    full, products = (
        peak_bytes(recompute(graph, loss="loss", segments=layers, policy=p)) for p in ("full", "products")
    )
    assert full < products < peak_bytes(graph)
    assert full < 0.35 * peak_bytes(graph)


def test_equal_nodes_are_not_merged_again() -> None:
    """The attr of the new nodes makes them differ from those of the forward pass."""
    result = recompute(encoder(2).graph, loss="loss", segments=2)
    merged = merge_common_subexpressions(result)
    again = {node.name for node in result.op_nodes() if node.name.endswith("/again")}
    assert again <= {node.name for node in merged.op_nodes()}


def test_a_graph_can_be_changed_twice() -> None:
    """Names of a second change do not collide with those of the first."""
    graph = encoder(3).graph
    once = recompute(graph, loss="loss", segments=["layer0"])
    twice = recompute(once, loss="loss", segments=["layer0", "layer1"], policy="products")
    names = [node.name for node in twice.op_nodes()]
    assert len(names) == len(set(names))


def test_metrics_and_statistics_read_the_first_result() -> None:
    """What reads no gradient, and leads to none, is no part of the backward pass."""
    b = GraphBuilder()
    b.replace(encoder(2).graph)
    b.op("Mean", b.op("Exp", "layer0/Sigmoid"), np.array([0, 1], np.int32), name="metric")
    graph = b.graph()
    result = recompute(graph, loss="loss", segments=["layer0"])
    metric = result.find_node("Exp")
    assert metric is not None
    assert metric.input_edge(0).src.name == "layer0/Sigmoid"


def test_what_is_wrong_is_named() -> None:
    """The loss, scopes, numbers, the policy, and a graph without gradients."""
    graph = encoder(2).graph

    def refused(error: type[Exception], match: str, **options: object) -> None:
        with pytest.raises(error, match=match):
            recompute(graph, **{"loss": "loss", "segments": 2, **options})  # type: ignore[arg-type]  # wrong on purpose

    refused(NotFoundError, "loss 'lost'.*did you mean 'loss'", loss="lost")
    refused(NotFoundError, "loss 'loss:3'.*1 output", loss="loss:3")
    refused(NotFoundError, "segment 'layer9'.*did you mean 'layer", segments=["layer9"])
    refused(InvalidArgumentError, "none of its .* is in the forward pass", segments=["gradients"])
    refused(InvalidArgumentError, "overlap", segments=["layer0", "layer0"])
    refused(InvalidArgumentError, "segment 'loss' computes the loss itself", segments=["loss"])
    refused(InvalidArgumentError, "segments=1: give at least 2", segments=1)
    refused(InvalidArgumentError, "segments=999: .* at most", segments=999)
    refused(InvalidArgumentError, "no name scope", segments=[])
    refused(InvalidArgumentError, "segments 'layer0': give a list", segments="layer0")
    refused(InvalidArgumentError, "policy 'most'", policy="most")
    refused(NotFoundError, "policy 'layer0/Softmaxx'", policy=["layer0/Softmaxx"])
    b = GraphBuilder()
    b.op("Sum", b.op("Exp", b.op("Neg", b.placeholder("x", "float32", (3,)))), 0, name="loss")
    graph = b.graph()
    refused(InvalidArgumentError, "no gradient of 'loss' reads", segments=["Exp"])


def test_products_are_a_fact_of_ops() -> None:
    """Every op that multiplies matrices or convolves has it, and takes long."""
    ops = [op for some in families().values() for op in some if record_of(op).is_product]
    assert {"MatMul", "BatchMatMulV2", "Einsum", "Conv2D", "DepthwiseConv2dNative"} <= set(ops)
    assert all(record_of(op).takes_long for op in ops)


@pytest.mark.parametrize("step", [perceptron(["Softplus"] * 4, is_open=True), encoder(3)], ids=["open", "fixed"])
def test_gradients_stay_what_replicas_reduce(step: SmallStep) -> None:
    """The parts of a training step are found again: the same gradients enter the updates."""
    plain, again = (
        training_step(graph, batch=["x", "target"], loss="loss")
        for graph in (step.graph, recompute(step.graph, loss="loss", segments=2))
    )
    assert _named(again) == _named(plain)
    assert len(again.backward) > len(plain.backward)


def _named(step: TrainingStep) -> list[str]:
    return sorted(step.graph.node_name(node) for node, _ in step.gradients)
