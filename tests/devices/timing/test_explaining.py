"""Explanations of the nodes of a step have the times that the step has, and errors name what has none."""

from __future__ import annotations

import re

import numpy as np
import pytest

from partita.devices import RooflineSource, collective_time, cut, explain, local_cluster, simulate
from partita.devices.timing.costs.first_known import FirstKnown
from partita.errors import InvalidArgumentError
from partita.graph import DataType, GraphBuilder
from tests.devices.timing.steps import StepBuilder, cluster, cpu
from tests.function_defs import func_attr, function_of


def two_devices() -> StepBuilder:
    """x (?x2) -> product on 0 -> neg on 1."""
    step = StepBuilder()
    step.op("product", "MatMul", [step.feed("x", (None, 2))] * 2)
    step.op("neg", "Neg", ["product"], 1)
    return step


def test_times_are_those_of_the_step() -> None:
    """With the shape of the feed, in the order asked, each on its device."""
    parts, hardware, feeds = two_devices().parts(), cluster(), {"x": (2, 2)}
    told = explain(parts, hardware, ["neg", "product"], feeds=feeds)
    timeline = simulate(parts, hardware, feeds=feeds)
    assert [(one.node, one.device) for one in told] == [("neg", cpu(1)), ("product", cpu(0))]
    assert [one.cost.time_ns for one in told] == [timeline.find(one.node).duration_ns for one in told] == [32, 48]
    assert told[1].text().startswith(f"product, {cpu(0)}: MatMul on test: 48 ns, roofline\n")


def test_a_node_in_host_memory_is_its_host_s() -> None:
    """What a GPU leaves to its host is explained with the numbers of the CPU."""
    b = GraphBuilder()
    with b.device("/device:GPU:0"):
        x = b.placeholder("x", "int32", (4,))
        b.op("AddV2", x, x, name="sum")
        b.op("Neg", b.placeholder("y", "float32", (4,)), name="neg")
    hardware = local_cluster("cpu:1,gpu:1")
    parts = cut(b, hardware, feeds=["x", "y"], targets=["sum", "neg"])
    timeline = simulate(parts, hardware)
    for one in explain(parts, hardware, ["sum", "neg"]):
        assert one.cost.time_ns == timeline.find(one.node).duration_ns


def test_nodes_without_a_cost_are_free() -> None:
    """A single name will do."""
    step = StepBuilder()
    step.op("y", "Reshape", [step.feed("x", (2, 2)), step.const("shape", [4])], Tshape=DataType.INT32)
    (told,) = explain(step.parts(), cluster(), "y")
    assert (told.cost.provenance, told.null_model, len(told.text().splitlines())) == ("free", None, 2)


def test_unknown_nodes_and_sizes() -> None:
    """The nearest name; a size that the time depends on, which may be assumed."""
    parts = two_devices().parts()
    with pytest.raises(InvalidArgumentError, match="no node 'produkt'; did you mean 'product'"):
        explain(parts, cluster(), "produkt")
    with pytest.raises(InvalidArgumentError, match="size of axis 0"):
        explain(parts, cluster(), "product")
    (told,) = explain(parts, cluster(), "product", assumed_size=2, cost_source=FirstKnown(RooflineSource()))
    assert told.cost.time_ns == 48


def test_nodes_whose_time_is_not_that_of_an_op() -> None:
    """Transfers, calls, and what cannot be timed."""
    parts = two_devices().parts()
    transfer = next(node.name for node in parts[cpu(1)].op_nodes() if node.is_recv)
    with pytest.raises(InvalidArgumentError, match="a transfer takes"):
        explain(parts, cluster(), transfer, feeds={"x": (2, 2)})
    inner, b = GraphBuilder(), GraphBuilder()
    inner.op("Neg", inner.placeholder("x", "float32"), name="y")
    b.function(function_of("F", inner.graph_def(), ["x:0"], ["y:0"]))
    x = b.placeholder("x", "float32", (3,))
    b.op("PartitionedCall", [x], name="call", Tout=["float32"], attrs={"f": func_attr("F")})
    group = {"group_size": 2, "group_key": 1, "instance_key": 1}
    b.op("CollectiveReduce", x, name="sum", merge_op="Add", final_op="Id", subdiv_offsets=[], attrs=group)
    called = cut(b, "cpu:1", feeds="x", targets=["call", "sum"])
    with pytest.raises(InvalidArgumentError, match=re.escape("cut(..., inline=True)")):
        explain(called, "cpu:1", "call")
    with pytest.raises(InvalidArgumentError, match="1 of its 2 members are nodes of the step"):
        explain(called, "cpu:1", "sum")


def test_a_collective_is_explained_by_all_of_its_members() -> None:
    """Size, latency and phases, for any of them."""
    b = GraphBuilder()
    group = {"group_size": 2, "group_key": 1, "instance_key": 1}
    for rank in range(2):
        with b.device(f"/gpu:{rank}"):
            x = b.op("Fill", [1 << 20], np.float32(1))[0]
            b.op(
                "CollectiveReduce", x, name=f"sum{rank}", merge_op="Add", final_op="Id", subdiv_offsets=[], attrs=group
            )
    (told,) = explain(cut(b, "gpu:2", targets=["sum0", "sum1"]), "gpu:2", "sum1")
    gpus = local_cluster("gpu:2")
    assert told.cost.time_ns == collective_time("all_reduce", ["gpu:0", "gpu:1"], 4 << 20, gpus).time_ns
    assert told.what == "CollectiveReduce, all_reduce of 2 gpus over NVLink3"
    assert told.inputs == {"size": "4.00 MiB"}
    assert list(told.terms) == ["latency", "phase 1"]
