"""The longest way from a node to the end of the step: by hand, and against the longest chain that the clock plays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, reject, strategies as st

from partita.devices import collective_time, cut, local_cluster, simulate
from partita.devices.timing.hardware.log import KINDS
from partita.errors import InvalidArgumentError
from partita.graph import GraphBuilder
from partita.graph.structured import while_loop
from tests.devices.timing.collectives.test_simulated_collectives import member
from tests.devices.timing.programs import SIZE, Loop, Op, Program, Sequence, Writer, programs
from tests.devices.timing.steps import StepBuilder, cluster
from tests.function_defs import function_of
from tests.laws.test_law4_timelines import CLUSTER, DEVICES, cases_on_devices
from tests.strategies import GraphCase

from .scripts import played_at_once, remaining_of, ways_of

CPUS = [name for name in DEVICES if "CPU" in name]


def test_a_chain_over_two_devices_by_hand() -> None:
    """A Neg of 10 elements takes 80 ns, its transfer 40."""
    step = StepBuilder()
    x = step.feed("x", (10, 1))
    step.op("c", "Neg", [step.op("b", "Neg", [step.op("a", "Neg", [x])], device=1)], device=1)
    step.op("alone", "Neg", [x])
    ways = ways_of(step.parts(), cluster(2))
    assert {name: ways[name] for name in ("x", "a", "b", "c", "alone")} == {
        "x": 280,
        "a": 280,
        "b": 160,
        "c": 80,
        "alone": 80,
    }


def test_a_member_counts_with_what_follows_the_others() -> None:
    """Only on the second CPU something follows the collective: the first one's kernel counts with it too."""
    hardware, b = local_cluster("cpu:2"), GraphBuilder()
    for rank in range(2):
        with b.device(f"/cpu:{rank}"):
            x = b.op("Neg", b.placeholder(f"x{rank}", "float32", (1000, 1000)), name=f"kernel{rank}")[0]
            y = member(b, "all_reduce", x, rank, 2)
    with b.device("/cpu:1"):
        b.op("Neg", y, name="after")
    parts = cut(b, hardware, feeds=["x0", "x1"], targets=["after", "all_reduce_1_1_0"])
    ways = ways_of(parts, hardware)
    exchange = collective_time("all_reduce", hardware.names, 4_000_000, hardware).time_ns
    assert ways["all_reduce_1_1_0"] == ways["all_reduce_1_1_1"] == exchange + ways["after"]
    assert ways["kernel0"] == ways["kernel1"] == exchange + 2 * ways["after"]


def test_collectives_of_called_functions_have_the_devices_of_all_calls() -> None:
    """Each CPU calls a function with its member: the time is that of a group of two."""
    hardware, b = local_cluster("cpu:2"), GraphBuilder()
    inner = GraphBuilder()
    result = member(inner, "all_reduce", inner.placeholder("x", "float32", (1000,)), 0, 2)
    b.function(function_of("exchange", inner.graph_def(), ["x:0"], [result.name]))
    for rank in range(2):
        with b.device(f"/cpu:{rank}"):
            b.op("exchange", b.placeholder(f"x{rank}", "float32", (1000,)), name=f"call{rank}")
    parts = cut(b, hardware, feeds=["x0", "x1"], targets=["call0", "call1"], inline=False)
    ways = ways_of(parts, hardware)
    exchange = collective_time("all_reduce", hardware.names, 4000, hardware).time_ns
    assert ways["call0"] == ways["call1"] == exchange > 0


@pytest.mark.parametrize("kind", ["While", "For"])
@pytest.mark.parametrize("count", [0, 1, 3, 10])
def test_a_called_loop_counts_with_all_its_iterations(kind: str, count: int) -> None:
    """As the clock plays its longest chain: iterations, conditions, the last one, and what is before and after."""
    body = Sequence((Op("Neg"), Op("Neg")))
    program = Sequence((Op("Neg"), Loop(count, body, kind), Op("Neg")))
    parts, feeds = cut(Writer().graph_def(program), "cpu:1", feeds=["x"], fetches=["y"]), {"x:0": (SIZE, SIZE)}
    _, ways = remaining_of(parts, "cpu:1", feeds)
    assert ways.length_ns == simulate(parts, "cpu:1", feeds=feeds).dependency_bound_ns


@pytest.mark.parametrize("count", [0, 1, 10])
def test_a_loop_of_control_flow_counts_with_all_its_iterations(count: int) -> None:
    """One after the other: each its condition and its kernel, then the last condition and what follows."""
    b = GraphBuilder()

    def body(i: Any, value: Any) -> tuple[Any, Any]:
        return b.op("Add", i, 1.0, name="next")[0], b.op("Neg", value, name="kernel")[0]

    x, limit = b.placeholder("x", "float32", (1000, 1000)), np.float32(count)
    y = while_loop(b, lambda i, _: b.op("Less", i, limit)[0], body, [b.constant(np.float32(0)), x], name="loop")[1]
    b.op("Neg", y, name="after")
    parts = cut(b, "cpu:1", feeds=["x"], targets=["after"])
    _, ways = remaining_of(parts, "cpu:1")
    (turn, condition), after = (ways.turn_ns[1], ways.exit_ns[0, 1]), ways_of(parts, "cpu:1")["after"]
    assert ways.length_ns == count * turn + condition
    assert after < condition <= turn + after
    assert simulate(parts, "cpu:1").dependency_bound_ns <= ways.length_ns


def test_a_constant_that_enters_a_loop_counts_with_all_of_it() -> None:
    """What every iteration reads is as urgent as what the first one changes."""
    b = GraphBuilder()
    x, slope = (b.op("Neg", b.placeholder(name, "float32", (100, 100)), name=f"{name}0")[0] for name in ("x", "slope"))

    def body(i: Any, value: Any) -> tuple[Any, Any]:
        return i + 1, b.op("MatMul", value, slope, name="kernel")[0]

    y = while_loop(b, lambda i, _: b.op("Less", i, 10)[0], body, [b.constant(0), x], name="loop")[1]
    b.op("Neg", y, name="after")
    ways = ways_of(cut(b, "cpu:1", feeds=["x", "slope"], targets=["after"]), "cpu:1")
    (kernel,) = [way for name, way in ways.items() if name.endswith("kernel")]
    assert ways["x0"] == ways["slope0"] > 10 * kernel > 0


@given(cases_on_devices(20))
def test_the_longest_way_is_the_dependency_bound(placed: tuple[GraphCase, dict[str, str]]) -> None:
    """On CPUs, where nothing is launched: of graphs without loops, conditionals and calls."""
    case, placement = placed
    assume(all(node.op != "Switch" for node in case.graph_def.node))
    on_cpus = {name: device.replace("GPU", "CPU") for name, device in placement.items()}
    parts = cut(case.on(on_cpus), CLUSTER, feeds=list(case.feeds), fetches=case.fetches, targets=case.targets)
    feeds = {name: value.shape for name, value in case.feeds.items()}
    try:
        bound = simulate(parts, CLUSTER, feeds=feeds).dependency_bound_ns
    except InvalidArgumentError:  # nothing in the request takes time
        reject()
    _, remaining = remaining_of(parts, CLUSTER, feeds)
    assert remaining.length_ns == bound


@given(programs(), st.lists(st.sampled_from(CPUS), min_size=1, max_size=4))
def test_no_program_is_longer_than_its_longest_way(program: Program, devices: list[str]) -> None:
    """With loops, conditionals and calls: iterations may overlap, and the shorter branch may run."""
    graph_def = Writer().graph_def(Sequence((Op("Neg"), program)))
    for number, node in enumerate(graph_def.node):
        node.device = devices[number % len(devices)]
    parts, feeds = cut(graph_def, CLUSTER, feeds=["x"], fetches=["y"]), {"x:0": (SIZE, SIZE)}
    bound = simulate(parts, CLUSTER, feeds=feeds).dependency_bound_ns
    _, remaining = remaining_of(parts, CLUSTER, feeds)
    assert remaining.length_ns >= bound


@given(st.integers(1, 6), st.integers(0, 1 << 20))
def test_the_longest_way_with_collectives_is_the_dependency_bound(members: int, elements: int) -> None:
    """All members meet, then something follows on one of them."""
    hardware, b = local_cluster(f"cpu:{members}"), GraphBuilder()
    for rank in range(members):
        with b.device(f"/cpu:{rank}"):
            x = b.placeholder(f"x{rank}", "float32", (elements + 1,))
            for _ in range(rank + 1):
                x = b.op("Neg", x)[0]
            b.op("Mul", member(b, "all_reduce", x, rank, members), np.float32(2), name=f"y{rank}")
    parts = cut(b, hardware, feeds=[f"x{k}" for k in range(members)], targets=[f"y{k}" for k in range(members)])
    _, remaining = remaining_of(parts, hardware)
    assert remaining.length_ns == simulate(parts, hardware).dependency_bound_ns


def assert_more_urgent_before(program: Program, devices: list[str]) -> None:
    """What lets a node start that takes time is more urgent than it, by its own time."""
    graph_def = Writer().graph_def(Sequence((Op("Neg"), program)))
    for number, node in enumerate(graph_def.node):
        node.device = devices[number % len(devices)]
    script, _ = remaining_of(cut(graph_def, CLUSTER, feeds=["x"], fetches=["y"]), CLUSTER, {"x:0": (SIZE, SIZE)})
    player = played_at_once(script, CLUSTER)
    log, priorities = player.log, player.shared.priorities
    took_ns = [end - start for start, end in zip(log.start_ns, log.end_ns, strict=True)]
    for entry in range(len(log)):
        own, before = priorities[log.entries[entry] // KINDS], log.causes[entry]
        if not took_ns[entry]:
            continue
        while before >= 0:
            if log.entries[before] // KINDS != log.entries[entry] // KINDS:  # else it is the copy of a receive
                assert priorities[log.entries[before] // KINDS] >= own + took_ns[before]
            if took_ns[before]:
                break
            before = log.causes[before]  # what is free passes the urgency on


@given(programs(), st.lists(st.sampled_from(CPUS), min_size=1, max_size=4))
def test_what_comes_before_is_more_urgent(program: Program, devices: list[str]) -> None:
    """Where nothing has to wait for a device: over all borders of calls, branches and iterations."""
    assert_more_urgent_before(program, devices)


@pytest.mark.parametrize("kind", ["v1", "While", "For"])
def test_what_comes_before_is_more_urgent_in_many_iterations(kind: str) -> None:
    """The bodies of later iterations are planned once for all."""
    assert_more_urgent_before(Loop(9, Sequence((Op("Neg"), Op("Neg"))), kind), CPUS[:2])


@pytest.mark.parametrize("kind", ["v1", "While", "For"])
def test_what_comes_before_is_more_urgent_in_loops_in_loops(kind: str) -> None:
    """The inner loop is a node of the outer one's iteration."""
    assert_more_urgent_before(Loop(4, Sequence((Op("Neg"), Loop(5, Op("Neg"), kind), Op("Neg"))), kind), CPUS[:2])
