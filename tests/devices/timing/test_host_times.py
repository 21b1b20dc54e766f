"""Ops that pass a reference take a fixed time of the host, on both clocks, and those that join or split copy."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from partita.actors import open_session
from partita.devices import Timeline, cut, explain, local_cluster, simulate
from partita.devices.kernels.host_times import PASS_NS, QUEUE_NS
from partita.graph import GraphBuilder, Tensor

SIZES = (1, 1 << 18)
Build = Callable[[GraphBuilder, Tensor, list[int]], list[Tensor]]


def lists(b: GraphBuilder, x: Tensor, shape: list[int]) -> list[Tensor]:
    """A push and a pop, an item set and read, and the stack."""
    empty = b.op("EmptyTensorList", shape, 4, element_dtype="float32")[0]
    pushed = b.op("TensorListPushBack", empty, x, name="push")[0]
    kept = b.op("TensorListSetItem", pushed, 0, x, name="set")[0]
    got = b.op("TensorListGetItem", kept, 0, shape, element_dtype="float32", name="get")[0]
    popped = b.op("TensorListPopBack", pushed, shape, element_dtype="float32", name="pop")[1]
    stacked = b.op("TensorListStack", kept, shape, element_dtype="float32", num_elements=1, name="copied")[0]
    return [got, popped, stacked]


def arrays(b: GraphBuilder, x: Tensor, shape: list[int]) -> list[Tensor]:
    """A write and a read of an array, and the gather."""
    array = b.op("TensorArrayV3", 2, dtype="float32", element_shape=shape, clear_after_read=False, name="array")
    handle, flow = array[0], array[1]
    flow = b.op("TensorArrayWriteV3", handle, 0, x, flow, name="write")[0]
    read = b.op("TensorArrayReadV3", handle, 0, flow, dtype="float32", name="read")[0]
    return [read, b.op("TensorArrayGatherV3", handle, [0], flow, dtype="float32", name="copied")[0]]


def stacks(b: GraphBuilder, x: Tensor, shape: list[int]) -> list[Tensor]:
    """A push and a pop of a stack."""
    handle = b.op("StackV2", 4, elem_type="float32", name="stack")[0]
    pushed = b.op("StackPushV2", handle, x, name="push")[0]
    with b.control_dependencies([pushed]):
        return [b.op("StackPopV2", handle, elem_type="float32", name="pop")[0]]


PROGRAMS: dict[str, tuple[Build, list[str]]] = {
    "lists": (lists, ["push", "set", "get", "pop"]),
    "arrays": (arrays, ["write", "read"]),
    "stacks": (stacks, ["push", "pop"]),
}


def step(build: Build, size: int) -> tuple[GraphBuilder, list[str]]:
    """A graph on a GPU, fed with x, and what to fetch."""
    b = GraphBuilder()
    with b.device("/device:GPU:0"):
        fetches = build(b, b.op("Tanh", b.placeholder("x", "float32", (size,)), name="kernel")[0], [size])
    return b, [fetch.name for fetch in fetches]


def check(timeline: Timeline, nodes: list[str], size: int) -> None:
    """References cost their time alone, copies their bytes."""
    events = {event.node: event for event in timeline.events if event.kind != "launch"}
    launched = {event.node for event in timeline.events if event.kind == "launch"}
    assert "kernel" in launched
    for node in nodes:
        event = events[node]
        assert (event.duration_ns, event.bytes, event.flops) == (PASS_NS, 0, 0)
        assert event.stream == "host"
        assert node not in launched
    if "copied" in events:
        assert events["copied"].bytes >= 2 * 4 * size
        assert "copied" in launched


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("size", SIZES)
async def test_references_cost_the_host_a_fixed_time(program: str, size: int) -> None:
    """On a GPU nothing is launched for them and no bytes move, whatever their size; both clocks say the same."""
    build, nodes = PROGRAMS[program]
    b, fetches = step(build, size)
    hardware = local_cluster("cpu:1,gpu:1")
    shapes = {"pop": ((size,),)} if program == "stacks" else None
    simulated = simulate(cut(b, hardware, feeds="x", fetches=fetches), hardware, shapes=shapes)
    check(simulated, nodes, size)
    async with open_session(b, hardware, clock="virtual") as session:
        await session.run(fetches, {"x": [0.5] * size})
        check(session.timeline(), nodes, size)
        assert session.timeline().makespan_ns == simulated.makespan_ns


def test_queues_pass_elements_and_copy_batches() -> None:
    """An enqueue takes its time beside what it waits; an enqueue of many moves each element."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (4, 1000))
    queue = b.op("FIFOQueueV2", component_types=["float32"], shapes=[[4, 1000]], name="queue")[0]
    rows = b.op("FIFOQueueV2", component_types=["float32"], shapes=[[1000]], name="rows")[0]
    b.op("QueueEnqueueV2", queue, [x], name="one")
    b.op("QueueEnqueueManyV2", rows, [x], name="many")
    timeline = simulate(cut(b, "cpu:1", feeds="x", targets=["one", "many"]), "cpu:1")
    one, many = timeline.find("one"), timeline.find("many")
    assert (one.duration_ns, one.bytes, one.flops) == (QUEUE_NS, 0, 0)
    assert (many.bytes, many.flops) == (2 * 16_000, 0)


def test_explanations_say_fixed_and_guessed() -> None:
    """The provenance and a sentence tell a stated time from a default."""
    b = GraphBuilder()
    text = b.placeholder("text", "string", (3,))
    b.op("StringLower", text, name="guess")
    b.op("EmptyTensorList", [3], 4, element_dtype="float32", name="list")
    parts = cut(b, "cpu:1", feeds="text", targets=["guess", "list"])
    guess, made = explain(parts, "cpu:1", ["guess", "list"])
    assert guess.cost.provenance == "guessed"
    assert "nothing states what the op costs: an operation per element written, all tensors moved once" in guess.assumed
    assert made.cost.provenance == "assumed"
    assert made.formula.startswith("a fixed time of the host")
    assert simulate(parts, "cpu:1").warnings[-1].endswith("no cost is stated or shapes do not fit it: 1 x StringLower")
