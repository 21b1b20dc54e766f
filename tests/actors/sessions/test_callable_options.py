"""Callables from CallableOptions: connected tensors, and feeds and fetches on devices, are as in TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import BlockingSession, CallableOptions, RunMetadata, RunOptions, open_session
from partita.errors import InvalidArgumentError, NotFoundError, OutOfRangeError, PartitaError, UnimplementedError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import ConfigProto, GraphDef
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.runs import HARD_PLACEMENT, assert_same_values
from tests.strategies import GraphCase, cpu, placed_cases

CPU_0, CPU_1, CPU_2 = (f"/job:localhost/replica:0/task:0/device:CPU:{k}" for k in range(3))
NO_SYNC = "CallableOptions.fetch_skip_sync = false is not yet implemented."
CYCLE = "Requested Tensor connection between nodes"


def options(**fields: Any) -> CallableOptions:
    """CallableOptions, with `connect` for pairs of connected tensors."""
    connect = fields.pop("connect", ())
    message = CallableOptions(**fields)
    for source, target in connect:
        message.tensor_connection.add(from_tensor=source, to_tensor=target)
    return message


def program() -> GraphDef:
    """p = (a + b) * (a - b), q = p * p, w = -q on CPU 1."""
    b = GraphBuilder()
    x, y = (b.placeholder(name, "float32", device=cpu(0)) for name in "ab")
    i = b.placeholder("i", "int32", device=cpu(0))
    total, difference = (b.op(op, x, y, name=name, device=cpu(0)) for op, name in (("AddV2", "s"), ("Sub", "d")))
    p = b.op("Mul", total, difference, name="p", device=cpu(0))
    q = b.op("Square", p, name="q", device=cpu(0))
    b.op("Neg", q, name="w", device=cpu(1))
    b.op("NoOp", name="n", device=cpu(0))
    b.op("Identity", i, name="i2", device=cpu(0))
    b.op("VariableV2", name="v", shape=(), dtype="float32", device=cpu(0))
    b.op("Assign", "v", x, name="assigned", device=cpu(0))
    return b.graph_def()


@on_every_deployment
@pytest.mark.parametrize(
    ("fields", "fetched"),
    [
        ({"fetch": ["q"], "connect": [("s", "d")]}, 625.0),
        ({"fetch": ["q"], "connect": [("s", "d"), ("a", "d:0")]}, 625.0),
        ({"fetch": ["p"], "connect": [("s", "d"), ("d", "s")]}, 1.0),
        ({"fetch": ["w"], "connect": [("d", "q")]}, 1.0),
        ({"fetch": ["d:0"], "connect": [("s", "d")]}, -1.0),
    ],
)
async def test_a_connected_tensor_replaces_another(deployment: Deployment, fields: Any, fetched: float) -> None:
    """TensorFlow 2.21 gives these values for a = 2, b = 3."""
    async with deployment.open(program(), 2) as session:
        call = await session.make_callable_from_options(options(feed=["a", "b"], **fields))
        assert await call(2.0, 3.0) == [fetched]


@on_every_deployment
@settings(max_examples=15)
@given(placed_cases(), st.data())
async def test_a_connection_of_a_tensor_to_itself_by_way_of_a_feed_changes_nothing(
    deployment: Deployment, placed: tuple[GraphCase, dict[str, str]], data: st.DataObject
) -> None:
    """Whatever reads a fed tensor may read a constant of the same value instead, connected to it."""
    case, placement = placed
    graph = case.on(placement)
    if not case.feeds:
        return
    name = data.draw(st.sampled_from(sorted(case.feeds)))
    value = np.asarray(case.feeds[name])
    constant = GraphBuilder()
    constant.op("Const", value=value, dtype=value.dtype.name, name="stand-in", device=cpu(1))
    graph.node.extend(constant.graph_def().node)
    others = {other: fed for other, fed in case.feeds.items() if other != name}
    connected = options(
        feed=list(others), fetch=list(case.fetches), target=list(case.targets), connect=[("stand-in", name)]
    )
    async with deployment.open(graph, 4, config=HARD_PLACEMENT) as session:
        whole = await session.run(case.fetches, case.feeds, case.targets)
        call = await session.make_callable_from_options(connected)
        assert_same_values(await call(*others.values()), whole)


@on_every_deployment
@pytest.mark.parametrize(
    ("kind", "text", "fields"),
    [
        (InvalidArgumentError, 'Requested tensor connection from unknown node: "d".', {"connect": [("nope", "d")]}),
        (
            InvalidArgumentError,
            'Requested tensor connection from unknown edge: "d" (actual number of outputs = 1).',
            {"connect": [("s:1", "d")]},
        ),
        (InvalidArgumentError, "Attempt to add output -1 of a not in range [0, 1)", {"connect": [("^a", "d")]}),
        (NotFoundError, "FeedInputs: unable to find feed output nope", {"connect": [("s", "nope")]}),
        (InvalidArgumentError, "FeedInputs: d:1 should have output index < 1", {"connect": [("s", "d:1")]}),
        (InvalidArgumentError, f'{CYCLE} "d" and "p" would create a cycle.', {"connect": [("p", "d")]}),
        (InvalidArgumentError, f'{CYCLE} "s" and "s" would create a cycle.', {"connect": [("s", "s")]}),
        (InvalidArgumentError, 'Endpoint "d" fed more than once.', {"connect": [("s", "d"), ("a", "d")]}),
        (
            InvalidArgumentError,
            "Input 0 of node q was passed int32 from _identity_p_0:0 incompatible with expected float.",
            {"connect": [("i", "p")]},
        ),
        (
            InvalidArgumentError,
            "Input 0 of node assigned was passed float from _identity_v_0:0 incompatible with expected float_ref.",
            {"connect": [("a", "v")], "fetch": ["assigned"]},
        ),
        (OutOfRangeError, "Node 'n' (type: 'NoOp', num of outputs: 0) does not have output 0", {"fetch": ["n"]}),
    ],
)
async def test_connections_that_make_no_sense_are_refused(
    deployment: Deployment, kind: type[PartitaError], text: str, fields: Any
) -> None:
    """TensorFlow 2.21 has these errors."""
    async with deployment.open(program(), 2) as session:
        with pytest.raises(kind) as refused:
            await session.make_callable_from_options(options(**{"feed": ["a", "b"], "fetch": ["q"]} | fields))
        assert str(refused.value).startswith(text)


async def test_a_fetched_or_fed_tensor_is_connected_to_no_other() -> None:
    """The comparison is of spellings, in a session over several tasks of full names."""
    async with open_session(program(), "cpu:2") as session:
        make = session.make_callable_from_options
        with pytest.raises(InvalidArgumentError, match=r"^d is both fed and fetched\."):
            await make(options(feed=["a", "b"], fetch=["d", "q"], connect=[("s", "d")]))
        with pytest.raises(InvalidArgumentError, match=r'^Endpoint "b" fed more than once\.'):
            await make(options(feed=["a", "b"], fetch=["q"], connect=[("a", "b")]))


async def test_feeds_and_fetches_are_on_the_devices_that_the_options_say() -> None:
    """TensorFlow 2.21 has the same nodes in the same partitions, for the spelling of `feed` alone."""
    message = options(
        feed=["a", "b"],
        fetch=["w"],
        connect=[("d", "q")],
        feed_devices={"a": CPU_1.replace("device:CPU", "cpu"), "b:0": CPU_1, "nobody": CPU_1},
        fetch_devices={"w": CPU_2},
        fetch_skip_sync=True,
        run_options=RunOptions(output_partition_graphs=True),
    )
    async with open_session(program(), "cpu:3") as session:
        call = await session.make_callable_from_options(message)
        metadata = RunMetadata()
        assert await call(2.0, 3.0, metadata=metadata) == [1.0]
        on = {node.name: node.device for graph in metadata.partition_graphs for node in graph.node}
        assert [on[name] for name in ("_arg_a_0_0", "_arg_b_0_1", "_identity_q_0", "_retval_w_0_0")] == [
            *(CPU_1, CPU_0, CPU_0, CPU_2)
        ]


@pytest.mark.parametrize(
    ("kind", "text", "fields"),
    [
        (
            InvalidArgumentError,
            f"Device '{CPU_0[:-1]}7' specified for tensor 'a' in CallableOptions does not exist",
            {"feed_devices": {"a": CPU_0[:-1] + "7"}},
        ),
        (
            InvalidArgumentError,
            "Device '/cpu:0' specified for tensor 'a' in CallableOptions does not exist",
            {"feed_devices": {"a": "/cpu:0"}, "fetch_devices": {"s": CPU_0}},
        ),
        (
            InvalidArgumentError,
            "Invalid device name ('xyz') provided for the tensor 'a' in CallableOptions",
            {"feed_devices": {"a": "xyz"}},
        ),
        (UnimplementedError, NO_SYNC, {"fetch_devices": {"s": CPU_0[:-1] + "7"}}),
        (UnimplementedError, NO_SYNC, {"fetch_devices": {"nobody": CPU_0}, "feed": ["nobody"]}),
        (
            InvalidArgumentError,
            "Device '' specified for tensor 's' in CallableOptions does not exist",
            {"fetch_devices": {"s": ""}, "fetch_skip_sync": True},
        ),
    ],
)
async def test_devices_that_do_not_exist_are_refused(kind: type[PartitaError], text: str, fields: Any) -> None:
    """TensorFlow 2.21 has these errors, in this order."""
    async with open_session(program(), "cpu:3") as session:
        with pytest.raises(kind) as refused:
            await session.make_callable_from_options(options(**{"feed": ["a", "b"], "fetch": ["s"]} | fields))
        assert str(refused.value).startswith(text)


async def test_strings_and_int32_are_not_fed_to_the_memory_of_a_gpu() -> None:
    gpu = "/job:localhost/replica:0/task:0/device:GPU:0"
    config = ConfigProto(allow_soft_placement=True)
    async with open_session(program(), "cpu:2,gpu:1", config=config) as session:
        with pytest.raises(UnimplementedError) as refused:
            await session.make_callable_from_options(options(feed=["i"], fetch=["i2"], feed_devices={"i": gpu}))
        assert str(refused.value).startswith(
            f"Cannot feed or fetch tensor 'i:0' from device {gpu} as feeding/fetching from GPU devices is not yet "
            "supported for int32 tensors"
        )
        fed = options(
            feed=["a", "b"], fetch=["s"], feed_devices={"a": gpu}, fetch_devices={"s": gpu}, fetch_skip_sync=True
        )
        call = await session.make_callable_from_options(fed)
        assert await call(2.0, 3.0) == [5.0]


async def test_a_session_over_several_tasks_feeds_and_fetches_at_its_client_alone() -> None:
    async with Deployment.TWO_TASKS.open(program(), 2) as session:
        with pytest.raises(UnimplementedError, match="is not yet supported when using a remote session"):
            await session.make_callable_from_options(options(feed=["a"], fetch=["s"], feed_devices={"a": "nonsense"}))


def test_a_callable_without_event_loop_fills_in_metadata() -> None:
    message = options(feed=["a", "b"], fetch=["s"], run_options=RunOptions(trace_level=RunOptions.FULL_TRACE))
    with BlockingSession(program(), "cpu:2") as session:
        call = session.make_callable_from_options(message)
        metadata = RunMetadata()
        assert call(2.0, 3.0, metadata=metadata) == [5.0]
        assert "s" in [node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats]
        assert call.handle == 0
