"""Settings that a local session honours, compared with what TensorFlow 2.21 does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from partita.actors import BlockingSession, RunMetadata, RunOptions, open_session
from partita.actors.sessions.options.config_checks import check_config
from partita.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
)
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import ConfigProto, GraphDef, NameAttrList
from tests.function_defs import calling, function_of
from tests.runs import HARD_PLACEMENT, assert_same_values
from tests.strategies import GraphCase, cpu, placed_cases

FEED = {"x": [[1.0, 2.0, 3.0]]}
SQUARES = [[1.0, 4.0, 9.0]]


def square(device: str = cpu(1)) -> GraphDef:
    """x on the first CPU, y = x * x on `device`."""
    b = GraphBuilder()
    b.op("Square", b.placeholder("x", "float32", (None, 3), device=cpu(0)), name="y", device=device)
    return b.graph_def()


def graph_options(**fields: Any) -> ConfigProto:
    """A config with some fields of its graph options set."""
    config = ConfigProto()
    for name, value in fields.items():
        setattr(config.graph_options, name, value)
    return config


async def test_a_session_keeps_the_settings_it_was_opened_with() -> None:
    config = ConfigProto()
    async with open_session(square(), "cpu:2", config=config) as session:
        config.experimental.disable_output_partition_graphs = True
        options = RunOptions(output_partition_graphs=True)
        assert (await session.run("y", FEED, options=options))[0].tolist() == SQUARES


# Devices


@pytest.mark.parametrize(
    ("devices", "counts", "expected"),
    [
        ("cpu:4", {}, ["CPU:0", "CPU:1", "CPU:2", "CPU:3"]),
        ("cpu:4", {"CPU": 2}, ["CPU:0", "CPU:1"]),
        ("cpu:2", {"CPU": 8}, ["CPU:0", "CPU:1"]),
        ("cpu:1,gpu:2", {"GPU": 0}, ["CPU:0"]),
        ("cpu:1,gpu:2", {"GPU": 1}, ["CPU:0", "GPU:0"]),
        ("cpu:1,gpu:2", {"GPU": -1, "cpu": 0, "TPU": 4}, ["CPU:0", "GPU:0", "GPU:1"]),
    ],
)
def test_device_count_caps_a_kind(devices: str, counts: dict[str, int], expected: list[str]) -> None:
    b = GraphBuilder()
    b.op("NoOp", name="nothing")
    with BlockingSession(b.graph_def(), devices, config=ConfigProto(device_count=counts)) as session:
        assert [name[-5:] for name in session.devices] == expected


@pytest.mark.parametrize("count", [0, -1])
def test_without_a_cpu_there_is_no_session(count: int) -> None:
    with pytest.raises(NotFoundError, match=r"^No CPU devices are available in this process"):
        BlockingSession(square(), "cpu:2", config=ConfigProto(device_count={"CPU": count}))


def test_a_node_on_a_hidden_device_is_placed_softly_or_refused() -> None:
    config = ConfigProto(device_count={"CPU": 1}, allow_soft_placement=False)
    with pytest.raises(InvalidArgumentError, match="Cannot assign a device for operation y"):
        BlockingSession(square(), "cpu:2", config=config)
    config.allow_soft_placement = True
    with BlockingSession(square(), "cpu:2", config=config) as session:
        assert session.run("y", FEED)[0].tolist() == SQUARES


@pytest.mark.parametrize("filters", [["/job:foo"], ["/job:localhost/task:0/cpu:0"], ["/job:foo/gpu:1", "/job:bar"]])
def test_filters_leave_the_devices_of_the_client_alone(filters: list[str]) -> None:
    with BlockingSession(square(), "cpu:2", config=ConfigProto(device_filters=filters)) as session:
        assert len(session.devices) == 2
        assert session.run("y", FEED)[0].tolist() == SQUARES


def test_a_filter_that_is_no_device_name_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^Invalid device filter: bad filter"):
        BlockingSession(square(), "cpu:2", config=ConfigProto(device_filters=["/job:a", "bad filter"]))


# infer_shapes


def test_infer_shapes_writes_shapes_into_the_graph_def_and_nowhere_else() -> None:
    def shapes(graph_def: GraphDef) -> dict[str, Any]:
        written = {node.name: node.attr["_output_shapes"].list.shape for node in graph_def.node if node.attr}
        return {
            name: [[dim.size for dim in shape.dim] for shape in by_output]
            for name, by_output in written.items()
            if by_output
        }

    asks = RunOptions(output_partition_graphs=True)
    for infer_shapes in (False, True):
        metadata = RunMetadata()
        with BlockingSession(square(), "cpu:2", config=graph_options(infer_shapes=infer_shapes)) as session:
            assert shapes(session.graph_def) == ({"x": [[-1, 3]], "y": [[-1, 3]]} if infer_shapes else {})
            b = GraphBuilder()
            b.constant([1.0, 2.0], name="two")
            session.extend(b.graph_def())
            assert shapes(session.graph_def).get("two") == ([[2]] if infer_shapes else None)
            assert session.run("y", FEED, options=asks, metadata=metadata)[0].tolist() == SQUARES
        assert not any(shapes(part) for part in metadata.partition_graphs)


# build_cost_model


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize(
    ("every", "after", "expected"),
    [
        (1, 0, [1, 1, 1, 1, 1, 1]),
        (2, 0, [0, 1, 0, 1, 0, 1]),
        (2, 1, [0, 0, 1, 0, 1, 0]),
        (3, 2, [0, 0, 0, 0, 1, 0]),
        (1, 2, [0, 0, 1, 1, 1, 1]),
        (0, 3, [0, 0, 0, 0, 0, 0]),
        (-1, 0, [0, 0, 0, 0, 0, 0]),
    ],
)
def test_cost_graphs_come_every_so_many_steps(every: int, after: int, expected: list[int], trace: bool) -> None:
    """A step that is traced for a cost model has statistics too."""
    options = RunOptions(trace_level=RunOptions.SOFTWARE_TRACE) if trace else None
    config = graph_options(build_cost_model=every, build_cost_model_after=after)
    with BlockingSession(square(), "cpu:2", config=config) as session:
        costs, stats = [], []
        for _ in expected:
            metadata = RunMetadata()
            assert session.run("y", FEED, options=options, metadata=metadata)[0].tolist() == SQUARES
            costs.append(int(bool(metadata.cost_graph.node)))
            stats.append(int(bool(metadata.step_stats.dev_stats)))
    assert costs == expected
    assert stats == ([1] * 6 if trace else expected)


async def test_steps_are_counted_by_request_whatever_its_order_and_by_callables_too() -> None:
    b = GraphBuilder()
    b.op("Neg", b.op("Square", b.placeholder("x", "float32"), name="y"), name="z")

    num_nodes: list[int] = []
    async with open_session(b.graph_def(), config=graph_options(build_cost_model=2)) as session:
        call = await session.make_callable("x", ["y", "z"])
        for fetches in (["y", "z"], ["z", "y"], ["y", "z"], ["z"], ["z"], ["z"]):
            metadata = RunMetadata()
            await session.run(fetches, {"x": 1.0}, metadata=metadata)
            num_nodes.append(len(metadata.cost_graph.node))
        metadata = RunMetadata()
        await call(1.0, metadata=metadata)
        num_nodes.append(len(metadata.cost_graph.node))
    assert [bool(count) for count in num_nodes] == [False, True, False, False, True, False, True]


def test_a_cost_graph_has_all_nodes_of_all_partitions() -> None:
    metadata = RunMetadata()
    with BlockingSession(square(), "cpu:2", config=graph_options(build_cost_model=1)) as session:
        session.run("y", FEED, metadata=metadata)
    names = sorted(node.name for node in metadata.cost_graph.node)
    parts = ["_SINK", "_SOURCE", "_arg_x_0_0/_1", "y", "y/_2"], ["_SINK", "_SOURCE", "_arg_x_0_0", "_arg_x_0_0/_0"]
    assert names == sorted([*parts[0], *parts[1], "y/_3", "_retval_y_0_0"])
    ids = [node.id for node in metadata.cost_graph.node]
    assert sorted(ids) == list(range(11))


def test_a_cost_graph_has_the_sizes_and_shapes_of_what_was_computed() -> None:
    """A view is in the memory of its input; what was received was not computed here."""
    b = GraphBuilder()
    y = b.op("Square", b.placeholder("x", "float32", (None, 3), device=cpu(0)), name="y", device=cpu(1))
    b.op("Reshape", y, b.constant([3], device=cpu(1)), name="flat", device=cpu(1))
    b.op("Neg", "flat", name="z", device=cpu(1))
    metadata = RunMetadata()
    with BlockingSession(b.graph_def(), "cpu:2", config=graph_options(build_cost_model=1)) as session:
        session.run("z", FEED, metadata=metadata)
    nodes = {node.name: node for node in metadata.cost_graph.node}
    outputs = {name: nodes[name].output_info[0] for name in ("y", "flat", "z", "_arg_x_0_0/_1")}
    shapes = {name: [dim.size for dim in output.shape.dim] for name, output in outputs.items()}
    assert shapes == {"y": [1, 3], "flat": [3], "z": [3], "_arg_x_0_0/_1": []}
    assert [outputs[name].size for name in ("y", "flat", "z", "_arg_x_0_0/_1")] == [12, 12, 12, -1]
    assert [outputs[name].alias_input_port for name in ("y", "flat", "z")] == [-1, 0, -1]
    assert {output.dtype for name, output in outputs.items() if name != "_arg_x_0_0/_1"} == {1}


async def test_a_device_that_restarts_costs_the_models_and_not_the_count() -> None:
    async with open_session(square(), "cpu:2", config=graph_options(build_cost_model=2)) as session:
        await session.run("y", FEED)
        session.restart_device(cpu(1))
        metadata = RunMetadata()
        await session.run("y", FEED, metadata=metadata)
        assert metadata.cost_graph.node


# place_pruned_graph


def with_a_misfit() -> GraphDef:
    """`bad` and `with_bad` are on a GPU that does not exist; `y` and a counter are on the second CPU."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None, 3), device=cpu(0))
    bad = b.op("Square", x, name="bad", device="/device:GPU:7")
    b.op("Neg", bad, name="with_bad", attrs={"_class": [b"loc:@bad"]})
    b.op("Square", x, name="y", device=cpu(1))
    count = b.variable("count", "float32", (), device=cpu(1))
    b.op("Assign", count, np.float32(0), name="reset")
    b.op("AssignAdd", count, np.float32(1), name="add")
    return b.graph_def()


def test_nodes_that_a_request_does_not_need_are_not_placed() -> None:
    config = ConfigProto(allow_soft_placement=False)
    with pytest.raises(InvalidArgumentError, match="Cannot assign a device for operation bad"):
        BlockingSession(with_a_misfit(), "cpu:2", config=config)
    config.graph_options.place_pruned_graph = True
    metadata = RunMetadata()
    with BlockingSession(with_a_misfit(), "cpu:2", config=config) as session:
        options = RunOptions(output_partition_graphs=True)
        assert session.run("y", FEED, options=options, metadata=metadata)[0].tolist() == SQUARES
        for fetch in ("bad", "with_bad"):
            with pytest.raises(InvalidArgumentError, match=f"Cannot assign a device for operation (bad|{fetch})"):
                session.run(fetch, FEED)
        assert session.run("y", {**FEED, "bad": SQUARES})[0].tolist() == SQUARES
        session.run([], targets="reset")
        assert [float(session.run("add")[0]) for _ in range(3)] == [1, 2, 3]
        assert float(session.run("count")[0]) == 3
        assert session.run("y", FEED)[0].tolist() == SQUARES
        handle = session.partial_run_setup("y", "x")
        assert session.partial_run(handle, "y", FEED)[0].tolist() == SQUARES
        b = GraphBuilder()
        b.op("Neg", b.constant(np.float32(2)), name="more")
        session.extend(b.graph_def())
        assert session.run("more")[0] == -2
        assert float(session.run("add")[0]) == 4
    devices = {node.name: node.device for part in metadata.partition_graphs for node in part.node}
    assert {"_arg_x_0_0": cpu(0), "y": cpu(1), "_retval_y_0_0": cpu(0)}.items() <= devices.items()


@given(placed_cases())
async def test_placing_pruned_graphs_changes_no_value(placed: tuple[GraphCase, dict[str, str]]) -> None:
    case, placement = placed
    request = case.fetches, case.feeds, case.targets

    async def values(config: ConfigProto) -> list[Any]:
        async with open_session(case.on(placement), "cpu:4", config=config) as session:
            await session.run(*request)
            return await session.run(*request)

    expected = await values(HARD_PLACEMENT)
    config = graph_options(place_pruned_graph=True)
    assert_same_values(await values(config), expected)


def test_a_stateful_node_stays_where_a_request_has_placed_it_first() -> None:
    """The second request alone would place the variable on the other CPU."""
    b = GraphBuilder()
    variable = b.variable("v", "float32", ())
    b.op("Assign", variable, np.float32(5), name="set")
    b.op("Identity", variable, name="elsewhere", device=cpu(1))

    def place_of_v(session: BlockingSession, **request: Any) -> str:
        metadata = RunMetadata()
        session.run(**request, options=RunOptions(output_partition_graphs=True), metadata=metadata)
        return next(node.device for part in metadata.partition_graphs for node in part.node if node.name == "v")

    with BlockingSession(b.graph_def(), "cpu:2", config=graph_options(place_pruned_graph=True)) as session:
        first = place_of_v(session, fetches=[], targets="set")
        assert place_of_v(session, fetches="elsewhere") == first
        assert session.run("elsewhere")[0] == 5


# Time limits


@pytest.mark.parametrize(("session_ms", "step_ms"), [(20, 0), (0, 20), (60_000, 20), (-5, 20), (20, -5)])
def test_a_step_has_the_time_that_it_or_else_the_session_is_given(session_ms: int, step_ms: int) -> None:
    b = GraphBuilder()
    queue = b.op("FIFOQueueV2", name="q", component_types=["float32"])
    b.op("QueueDequeueV2", queue, name="take", component_types=["float32"])
    b.op("Neg", b.constant(np.float32(2)), name="n")
    config = ConfigProto(operation_timeout_in_ms=session_ms)
    with BlockingSession(b.graph_def(), config=config) as session:
        options = RunOptions(timeout_in_ms=step_ms) if step_ms else None
        with pytest.raises(DeadlineExceededError, match="timeout_in_ms = 20"):
            session.run("take", options=options)
        assert session.run("n", options=RunOptions(timeout_in_ms=60_000))[0] == -2


# experimental


def test_session_metadata_is_reported() -> None:
    config = ConfigProto()
    config.experimental.session_metadata.name = "m"
    config.experimental.session_metadata.version = 3
    metadata = RunMetadata()
    with BlockingSession(square(), "cpu:2", config=config) as session:
        session.run("y", FEED, metadata=metadata)
    assert (metadata.session_metadata.name, metadata.session_metadata.version) == ("m", 3)
    config.experimental.session_metadata.version = -3
    with pytest.raises(InvalidArgumentError, match="Session version shouldn't be negative"):
        BlockingSession(square(), "cpu:2", config=config)


def test_partition_graphs_can_be_forbidden() -> None:
    config = ConfigProto()
    config.experimental.disable_output_partition_graphs = True
    with BlockingSession(square(), "cpu:2", config=config) as session:
        with pytest.raises(InvalidArgumentError, match="not supported when disable_output_partition_graphs is true"):
            session.run("y", FEED, options=RunOptions(output_partition_graphs=True))
        assert session.run("y", FEED)[0].tolist() == SQUARES


@pytest.mark.parametrize("name", ["", "DEFAULT", "SINGLE_THREADED_EXECUTOR", "nope"])
def test_executors_are_those_of_tensorflow(name: str) -> None:
    config = ConfigProto()
    config.experimental.executor_type = name
    if name != "nope":
        check_config(config, {"CPU"})
    else:
        with pytest.raises(NotFoundError, match="No executor factory registered for the given executor type: nope"):
            check_config(config, {"CPU"})


def test_conditionals_of_functions_stay_single_nodes_if_asked_for() -> None:
    """Values are the same; the partition graphs differ."""
    b = GraphBuilder()
    b.op("Neg", b.placeholder("x", "float32"), name="y")
    negate = function_of("negate", b.graph_def(), ["x"], ["y"])
    b = calling(
        *("If", negate),
        first=[DataType.BOOL],
        then_branch=NameAttrList(name="negate"),
        else_branch=NameAttrList(name="negate"),
        _lower_using_switch_merge=True,
    )
    for stays in (False, True):
        config, metadata = ConfigProto(), RunMetadata()
        config.experimental.disable_functional_ops_lowering = stays
        options = RunOptions(output_partition_graphs=True)
        with BlockingSession(b.graph_def(), config=config) as session:
            assert session.run("c", {"x0": True, "x1": 2.0}, options=options, metadata=metadata) == [-2]
        ops = {node.op for part in metadata.partition_graphs for node in part.node}
        assert ("If" in ops, "Switch" in ops) == (stays, not stays)
