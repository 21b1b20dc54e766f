"""Simulated steps against times computed by hand, and the assumptions for unknown values.

The hardware is that of `steps`: 1 operation, 1 byte of memory and 1 byte over a link per nanosecond, unless a test
changes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from partita.devices import Cluster, local_cluster
from partita.devices.catalog import device_spec, device_spec_from
from partita.devices.spec import DeviceSpec
from partita.devices.timing import OpCost, RooflineSource, Timeline, simulate, start_times
from partita.errors import InvalidArgumentError
from partita.graph import DataType, Graph, PartitionOptions, partition
from partita.graph.dtypes import Dims
from partita.graph.ops.properties import NodeProperties

from .steps import StepBuilder, cluster, cpu


def spans(timeline: Timeline, kinds: Sequence[str] = ("compute", "copy")) -> dict[str, tuple[int, int]]:
    """Start and end of everything that takes time."""
    return {e.node: (e.start_ns, e.end_ns) for e in timeline.events if e.kind in kinds and e.duration_ns}


def two_devices() -> StepBuilder:
    """x (2x2) -> a on 0 -> b on 1; x -> c on 0; b and c meet in d on 1."""
    step = StepBuilder()
    step.feed("x", (2, 2))
    step.op("a", "Neg", ["x"])
    step.op("c", "Neg", ["x"])
    step.op("b", "MatMul", ["a", "a"], 1)
    step.op("d", "Add", ["b", "c"], 1)
    return step


def test_two_devices_by_hand() -> None:
    """A Neg of 16 bytes moves 32, a 2x2 product 48 (and 16 operations), an Add 48; 16 bytes on the wire take 16 ns.

    They arrive 5 ns later.
    """
    timeline = two_devices().timeline(cluster(2, latency_ns=5, overhead_ns=1))
    assert spans(timeline) == {
        "a": (0, 33),
        "edge_3_a": (33, 49),
        "c": (33, 66),
        "edge_6_c": (66, 82),
        "b": (54, 103),
        "d": (103, 152),
    }
    assert timeline.makespan_ns == timeline.dependency_bound_ns == 152
    path = [(event.node, event.kind, event.duration_ns) for event in timeline.critical_path() if event.duration_ns]
    assert [took for _, _, took in path] == [33, 16, 5, 49, 49]
    assert [(path[1][:2]), path[2][1]] == [("edge_3_a", "copy"), "recv"]
    assert timeline.transferred_bytes == 32
    assert timeline.warnings == ()


def test_memory_by_hand() -> None:
    """On 0: x until c ends, a until its copy arrived, and c. On 1: b's input and b while c arrives; then b, c and d."""
    timeline = two_devices().timeline(cluster(2, latency_ns=5, overhead_ns=1))
    assert timeline.peak_memory_bytes(cpu(0)) == 3 * 16
    assert timeline.peak_memory_bytes(cpu(1)) == 3 * 16


def test_one_stream_does_one_thing_at_a_time() -> None:
    """Of nodes ready at the same instant the one with the lower id goes first."""
    step = StepBuilder()
    step.feed("x", (2, 2))
    for name in ("b", "a", "c"):
        step.op(name, "Neg", ["x"])
    assert spans(step.timeline()) == {"b": (0, 32), "a": (32, 64), "c": (64, 96)}


def test_first_ready_goes_first() -> None:
    """A node that has waited longer goes before a node with a lower id that became ready later."""
    step = StepBuilder()
    step.feed("x", (2, 2))
    step.feed("y", (2, 2), 1)
    step.op("late", "Neg", ["x"])
    step.op("busy", "Neg", ["x"])
    step.op("last", "Neg", ["late"])
    step.op("other", "Neg", ["x"])
    assert list(spans(step.timeline())) == ["late", "busy", "other", "last"]


def test_transfers_share_a_link() -> None:
    """Two tensors for the same device get half its rate each; one for another device has a link of its own."""
    step = StepBuilder()
    for name in ("x", "y", "z"):
        step.feed(name, (10, 10))
    step.op("a", "Neg", ["x"], 1)
    step.op("b", "Neg", ["y"], 1)
    step.op("c", "Neg", ["z"], 2)
    copies = spans(step.timeline(), ["copy"])
    assert sorted(copies.values()) == [(0, 400), (0, 800), (0, 800)]


def test_a_tensor_is_sent_to_a_device_once() -> None:
    """However many ops there read it."""
    step = StepBuilder()
    step.feed("x", (10, 10))
    for i in range(5):
        step.op(f"n{i}", "Neg", ["x"], 1)
    assert step.timeline().transferred_bytes == 400


def test_control_edges_order() -> None:
    """Between devices they cost a transfer of 0 bytes."""
    step = StepBuilder()
    step.feed("x", (2, 2))
    step.feed("y", (2, 2), 1)
    step.op("first", "Neg", ["x"])
    step.op("second", "Neg", ["y"], 1)
    step.after("second", "first")
    timeline = step.timeline(cluster(2, latency_ns=7))
    assert spans(timeline)["second"] == (32 + 7, 32 + 7 + 32)
    assert timeline.transferred_bytes == 0


def test_graph_defs_take_as_long_as_graphs() -> None:
    """Partitions may come from a file."""
    step = two_devices()
    messages = partition(step.graph, PartitionOptions())
    assert simulate(messages, cluster(2)).makespan_ns == step.timeline(cluster(2)).makespan_ns


def test_simulating_leaves_the_graphs_alone() -> None:
    """Byte for byte."""
    parts = two_devices().parts()
    before = [graph.to_graph_def().SerializeToString(deterministic=True) for graph in parts.values()]
    simulate(parts, cluster(2))
    assert [graph.to_graph_def().SerializeToString(deterministic=True) for graph in parts.values()] == before


def test_feeds_fill_in_sizes() -> None:
    """As shapes or as arrays; without them a size counts as what is assumed, and the timeline says so."""
    step = StepBuilder()
    step.feed("x", (None, 4))
    step.op("a", "Neg", ["x"])
    parts = step.parts()
    by_shape = simulate(parts, cluster(), feeds={"x": (3, 4)})
    by_value = simulate(parts, cluster(), feeds={"x:0": np.zeros((3, 4), np.float32)})
    assert by_shape.makespan_ns == by_value.makespan_ns == 96
    assumed = simulate(parts, cluster(), assumed_size=1)
    assert (assumed.makespan_ns, assumed.warnings) == (32, ("unknown sizes were taken as 1: 1 x Placeholder",))
    assert simulate(parts, cluster(), assumed_size=5).makespan_ns == 160
    fed = {"x": (3, 4), "gone": (3,)}
    assert simulate(parts, cluster(), feeds=fed).warnings[-1] == "feeds that no part of the step reads: gone"
    known = {"x": ((1, 4),), "a": ((7, 4),)}
    assert simulate(parts, cluster(), shapes=known).makespan_ns == 4 * 4 + 7 * 4 * 4


def condition(predicate: bool | None) -> StepBuilder:
    """x goes through Neg on the true side or through two on the false side; the merge feeds an Add."""
    step = StepBuilder()
    step.feed("x", (2, 2))
    if predicate is None:
        step.graph.add_node("p", "Placeholder", {"dtype": DataType.BOOL, "shape": ()}).assigned_device = cpu(0)
    else:
        step.const("p", predicate)
    step.op("switch", "Switch", ["x", "p"])
    step.op("no1", "Neg", ["switch:0"])
    step.op("no2", "Neg", ["no1"])
    step.op("yes", "Neg", ["switch:1"], 1)
    step.op("merge", "Merge", ["no2", "yes"], N=2)
    step.op("end", "Add", ["merge", "x"])
    return step


def test_a_known_condition_costs_one_side() -> None:
    """The other side has no compute, transfers or events."""
    true, false = condition(True).timeline(), condition(False).timeline()
    assert list(spans(true, ["compute"])) == ["yes", "end"]
    assert list(spans(false)) == ["no1", "no2", "end"]
    assert false.transferred_bytes == 0
    assert (true.warnings, false.warnings) == ((), ())


def test_an_unknown_condition_must_be_given() -> None:
    """The error says how; with the branch given only its nodes run."""
    step = condition(None)
    with pytest.raises(InvalidArgumentError, match=r"--branch p=K"):
        step.timeline()
    timeline = simulate(step.parts(), cluster(4), branches={"p": 1})
    assert list(spans(timeline)) == list(spans(condition(True).timeline()))


def test_a_loop_on_the_dead_side_costs_nothing() -> None:
    """The whole loop is dead: its Merge does not wait for its NextIteration."""
    step = condition(False)
    step.op("enter", "Enter", ["yes"], frame_name=b"loop")
    step.op("again", "Merge", ["enter", "enter"], N=2)
    step.op("body", "Neg", ["again"])
    step.op("next", "NextIteration", ["body"])
    merge, following = step.graph.find_node("again"), step.graph.find_node("next")
    assert merge is not None
    assert following is not None
    step.graph.update_edge(following, 0, merge, 1)
    for node in step.graph.op_nodes():
        node.assigned_device = cpu(0)
    timeline = simulate({cpu(0): step.graph}, cluster())
    assert list(spans(timeline)) == ["no1", "no2", "end"]
    assert timeline.warnings == ()


def test_shapes_that_fit_no_op_are_costed_all_the_same() -> None:
    """Assumed sizes may not fit an op: the event and a warning say that its cost is a guess."""
    step = StepBuilder()
    step.feed("x", None)
    step.op("a", "MatMul", ["x", "x"])
    timeline = simulate(step.parts(), cluster(), assumed_size=1)
    assert timeline.find("a").provenance == "guessed"
    assert (
        timeline.warnings[-1]
        == "guessed to cost one operation per output element, as no cost is stated or shapes do not fit it: 1 x MatMul"
    )


def test_start_times_feed_partitioning() -> None:
    """Start times of a simulation are accepted by receive scheduling."""
    step = two_devices()
    times = start_times(step.timeline(cluster(2, latency_ns=5000)))
    assert times["a"] == 0
    assert times["b"] == 5
    options = PartitionOptions(need_to_record_start_times=True, scheduling_for_recvs=True, start_times=times)
    recorded = {n.name: n.attr["_start_time"].i for part in partition(step.graph, options).values() for n in part.node}
    assert {name: recorded[name] for name in "abcdx"} == {name: times[name] for name in "abcdx"}
    assert all(start in (times["b"], times["d"]) for name, start in recorded.items() if name.endswith("_1"))


class Fixed:
    """A cost source for which every op takes 100 ns."""

    def cost(
        self, properties: NodeProperties, inputs: tuple[Dims, ...], outputs: tuple[Dims, ...], spec: DeviceSpec
    ) -> OpCost:
        """100 ns."""
        return OpCost(100, 1, 2, "measured")


def test_any_cost_source_will_do() -> None:
    """Its answers are the durations, and the events have its provenance."""
    timeline = simulate(two_devices().parts(), cluster(2), cost_source=Fixed())
    events = [e for e in timeline.events if e.op == "Neg"]
    assert {(e.duration_ns, e.flops, e.bytes, e.provenance) for e in events} == {(100, 1, 2, "measured")}


def test_more_memory_than_there_is_is_a_warning() -> None:
    """The step is simulated nevertheless."""
    step = StepBuilder()
    step.feed("x", (2**20, 2**12))
    step.op("a", "Neg", ["x"])
    timeline = simulate({cpu(0): step.graph}, local_cluster("cpu"))
    assert timeline.warnings == (f"{cpu(0)} needs 32.00 GiB of device memory and has 16.00 GiB",)


def test_a_datasheet_alone_is_no_faster_than_the_catalog() -> None:
    """A GPU with the A100's datasheet takes about as long as the catalog's A100; a warning lists the defaults."""
    rates = {family: f"{rate} FLOP/s" for family, rate in device_spec("A100-80GB").peak_flops_per_s.items()}
    table = {"kind": "GPU", "memory": "80 GB", "memory_bandwidth": "2039 GB/s", "peak_flops": rates}
    steps = []
    for gpu in (device_spec_from(table, "here"), device_spec("A100-80GB")):
        hardware, step = local_cluster("gpu", gpu=gpu), StepBuilder()
        x = step.feed("x", (1024, 1024))
        for k in range(8):
            x = step.op(f"y{k}", "MatMul" if k % 2 else "Neg", [x] * (1 + k % 2))
        for node in step.graph.op_nodes():
            node.assigned_device = hardware.names[1]
        steps.append(simulate(step.parts(), hardware, cost_source=RooflineSource()))
    table_step, catalog_step = steps
    assert catalog_step.makespan_ns <= table_step.makespan_ns <= 1.1 * catalog_step.makespan_ns
    assert catalog_step.warnings == ()
    assert table_step.warnings == (
        "assumed, as the cluster does not say: launch_overhead 5 us, matrix_efficiency 80 %, vector_efficiency 70 %, "
        f"memory_efficiency 80 % of {hardware.names[1]}",
    )


def test_variables_of_a_gpu() -> None:
    """A variable is in the GPU's memory for the whole step, although its handle is on the host."""
    hardware, graph = local_cluster("gpu"), Graph()
    handle = graph.add_node("v", "VarHandleOp", {"dtype": DataType.FLOAT, "shape": (256, 4)})
    read = graph.add_node("read", "ReadVariableOp", {"dtype": DataType.FLOAT})
    double = graph.add_node("double", "Neg", {"T": DataType.FLOAT})
    for src, dst in ((handle, read), (read, double)):
        graph.add_edge(src, 0, dst, 0)
    gpu = hardware.names[1]
    for node in graph.op_nodes():
        node.assigned_device = gpu
    timeline = simulate({gpu: graph}, hardware)
    assert timeline.peak_memory_bytes(gpu) == 4096 + 4096  # the variable, which a read does not copy, and its double


def test_transfers_between_gpus_and_hosts() -> None:
    """Tensors for a GPU cross its host link; integers for shapes stay on the host."""
    step = StepBuilder()
    step.feed("x", (1024, 1024))
    step.op("a", "Neg", ["x"])
    node = step.graph.find_node("a")
    assert node is not None
    hardware = local_cluster("gpu")
    node.assigned_device = hardware.names[1]
    timeline = step.timeline(hardware)
    (copy,) = [event for event in timeline.events if event.kind == "copy"]
    assert copy.stream.startswith("PCIe4 x16 to")
    assert copy.duration_ns == -(-4 * 2**20 * 10**9 // (31 * 10**9))
    (launch,) = [event for event in timeline.events if event.kind == "launch"]
    assert launch.start_ns == copy.end_ns + 2000  # once it has arrived
    assert timeline.find("a").start_ns == launch.end_ns == launch.start_ns + 5000


def test_errors_name_the_culprit() -> None:
    """An unknown device, partitions without their counterpart, shapes that conflict, a step of 0 ns."""
    parts = two_devices().parts()
    with pytest.raises(InvalidArgumentError, match="is no device of this cluster"):
        simulate(parts, cluster(1))
    with pytest.raises(InvalidArgumentError, match="nothing sends 'edge_"):
        simulate({cpu(1): parts[cpu(1)]}, cluster(2))
    step = StepBuilder()
    step.feed("x", (2, 3))
    step.op("a", "MatMul", ["x", "x"])
    with pytest.raises(InvalidArgumentError) as error:
        step.timeline()
    assert (error.value.node, error.value.op) == ("a", "MatMul")
    with pytest.raises(InvalidArgumentError, match="all 1 events are free"):
        simulate({cpu(0): _only_a_constant()}, cluster())
    with pytest.raises(InvalidArgumentError, match="0 nodes executed"):
        simulate({}, cluster())


def _only_a_constant() -> Graph:
    step = StepBuilder()
    step.const("c", 1.0)
    return step.graph


def test_a_cluster_is_not_used_up() -> None:
    """Simulating twice on the same objects gives equal events."""
    hardware: Cluster = cluster(2)
    parts = two_devices().parts()
    assert simulate(parts, hardware).events == simulate(parts, hardware).events
