"""Steps in several orders, against times computed by hand: which kernel and which collective comes first.

A Neg of n elements takes 8 n ns (it reads and writes 4 n bytes, at a byte a nanosecond), its transfer 4 n ns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.devices import Cluster, cut, local_cluster, simulate
from partita.devices.timing import Timeline
from partita.errors import InvalidArgumentError
from partita.graph import Graph, GraphBuilder
from tests.devices.timing.collectives.test_simulated_collectives import collectives, member
from tests.devices.timing.steps import StepBuilder, cluster
from tests.devices.timing.test_launches import Constant, hardware, on_gpu
from tests.function_defs import function_of


def spans(timeline: Timeline) -> dict[str, tuple[int, int]]:
    """Start and end of what takes time on devices."""
    return {e.node: (e.start_ns, e.end_ns) for e in timeline.events if e.kind == "compute" and e.duration_ns}


def waited_for() -> dict[str, Graph]:
    """`a` and `b` of one device, each 80 ns; another device waits for `b`: 40 ns of transfer and 80 ns of `c`."""
    step = StepBuilder()
    x = step.feed("x", (10, 1))
    step.op("a", "Neg", [x])
    step.op("c", "Neg", [step.op("b", "Neg", [x])], device=1)
    return step.parts()


def contended() -> dict[str, Graph]:
    """After `b` come three nodes side by side on one device, after `a` two in a row on another one.

    The way from `a` is the longer one, 80 + 40 + 2 * 80 ns against 80 + 40 + 80, as nobody counts that the three of `b`
    have one device.
    """
    step = StepBuilder()
    x = step.feed("x", (10, 1))
    b, a = step.op("b", "Neg", [x]), step.op("a", "Neg", [x])
    for k in range(3):
        step.op(f"c{k}", "Neg", [b], device=1)
    step.op("d1", "Neg", [step.op("d0", "Neg", [a], device=2)], device=2)
    return step.parts()


def test_the_critical_path_wins_where_others_wait() -> None:
    """What another device waits for goes first: 200 ns in place of 280."""
    usual, ordered = (simulate(waited_for(), cluster(2), order=order) for order in ("ready", "critical-path"))
    assert spans(usual) == {"a": (0, 80), "b": (80, 160), "c": (200, 280)}
    assert spans(ordered) == {"b": (0, 80), "a": (80, 160), "c": (120, 200)}
    assert simulate(waited_for(), cluster(2), order={"b": 1}).events == ordered.events


def test_the_critical_path_loses_where_a_device_is_short() -> None:
    """An anomaly: the longest way first makes 440 ns of 360, which the other order takes."""
    usual, ordered = (simulate(contended(), cluster(3), order=order) for order in ("ready", "critical-path"))
    assert spans(usual)["b"] == (0, 80)
    assert spans(usual)["c2"] == (280, 360)
    assert spans(usual)["d1"] == (280, 360)
    assert spans(ordered)["a"] == (0, 80)
    assert spans(ordered)["d1"] == (200, 280)
    assert spans(ordered)["c2"] == (360, 440)
    assert (usual.makespan_ns, ordered.makespan_ns) == (360, 440)


def test_a_row_that_waits_is_overtaken() -> None:
    """What becomes ready later, with a higher priority, is next; what runs is not interrupted."""
    step = StepBuilder()
    x = step.feed("x", (10, 1))
    for name in ("a", "b", "c"):
        step.op(name, "Neg", [x])
    step.op("late", "Neg", [step.op("far", "Neg", [step.feed("y", (5, 1), 1)], device=1)])
    usual = spans(simulate(step.parts(), cluster(2)))
    ordered = simulate(step.parts(), cluster(2), order={"late": 2, "c": 1})
    assert usual == {"a": (0, 80), "b": (80, 160), "c": (160, 240), "far": (0, 40), "late": (240, 280)}
    assert spans(ordered) == {"c": (0, 80), "late": (80, 120), "a": (120, 200), "b": (200, 280), "far": (0, 40)}
    event = ordered.find("late")
    assert ordered.columns[event.cause].node == "c"  # it had to wait for what ran


@pytest.mark.parametrize("launch_ns", [0, 10])
def test_kernels_are_launched_by_priority(launch_ns: int) -> None:
    """The host thread of a GPU launches the highest first; the stream keeps the order of launches."""
    step = StepBuilder()
    x = step.const("x", 1.0)
    names = [step.op(f"n{k}", "Neg", [x]) for k in range(4)]
    on_gpu(step, "x", *names)
    timeline = simulate(
        step.parts(), hardware(launch_ns), cost_source=Constant(100), order={name: k for k, name in enumerate(names)}
    )
    starts = [launch_ns + 100 * (3 - k) for k in range(4)]
    assert spans(timeline) == {name: (start, start + 100) for name, start in zip(names, starts, strict=True)}


# Collectives


def exchanges(after: int = 0) -> GraphBuilder:
    """Three all-reduces of one group of two CPUs, ready together; the last is followed by so many products."""
    b = GraphBuilder()
    for rank in range(2):
        with b.device(f"/cpu:{rank}"):
            x = b.placeholder(f"x{rank}", "float32", (1000, 1000))
            for instance in (1, 2, 3):
                y = member(b, "all_reduce", x, rank, 2, 1, instance)
            for _ in range(after):
                y = b.op("MatMul", y, y)[0]
            b.identity(y, name=f"y{rank}")
    return b


def exchanged(b: GraphBuilder, order: Any) -> Timeline:
    """The step of `exchanges`."""
    names = [f"all_reduce_1_{instance}_{rank}" for instance in (1, 2, 3) for rank in range(2)]
    parts = cut(b, "cpu:2", feeds=["x0", "x1"], fetches=["y0", "y1"], targets=names)
    return simulate(parts, "cpu:2", order=order)


def instances(timeline: Timeline) -> list[str]:
    """The numbers of the instances on the first member, in the order in which they run."""
    events = sorted(collectives(timeline).values(), key=lambda event: event.start_ns)
    return [event.node.split("_")[-2] for event in events if event.node.endswith("_0")]


def test_the_collective_with_the_longest_way_is_first() -> None:
    """By the critical path that before the products; alone the first by number."""
    assert instances(exchanged(exchanges(2), "ready")) == ["1", "2", "3"]
    assert instances(exchanged(exchanges(2), "critical-path")) == ["3", "1", "2"]
    assert instances(exchanged(exchanges(), "critical-path")) == ["1", "2", "3"]


def test_collectives_begin_by_the_priority_that_their_members_share() -> None:
    """Equal ones in the order in which they were complete."""
    order = {f"all_reduce_1_{instance}_{rank}": priority for instance, priority in ((2, 3), (3, 3)) for rank in (0, 1)}
    timeline = exchanged(exchanges(), order)
    assert instances(timeline) == ["2", "3", "1"]
    usual = exchanged(exchanges(), "ready")
    assert timeline.makespan_ns == usual.makespan_ns


def test_members_may_have_other_numbers_in_the_same_order() -> None:
    """The order counts, not the priorities themselves."""
    order = {f"all_reduce_1_{instance}_{rank}": (rank + 1) * instance for instance in (1, 2, 3) for rank in (0, 1)}
    assert instances(exchanged(exchanges(), order)) == ["3", "2", "1"]


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ({"all_reduce_1_2_0": 1}, r"'all_reduce_1_2_0' \(1\) of .*CPU:0 comes before .* have the same priority, 0"),
        (
            {"all_reduce_1_2_0": 1, "all_reduce_1_1_1": 1, "all_reduce_1_3_0": 2, "all_reduce_1_3_1": 2},
            r"'all_reduce_1_2_0' \(1\) of .*CPU:0 comes before 'all_reduce_1_1_0' \(0\), "
            r"'all_reduce_1_1_1' \(1\) of .*CPU:1 comes before 'all_reduce_1_2_1' \(0\)",
        ),
    ],
)
def test_an_order_that_members_do_not_share_is_refused(order: dict[str, int], said: str) -> None:
    """The error names the group, and both members with what they were given."""
    with pytest.raises(InvalidArgumentError, match=said) as error:
        exchanged(exchanges(), order)
    assert "order: the members of group 1 differ" in str(error.value)


def counted(second: str = "CollectiveReduceV3") -> GraphBuilder:
    """Two collectives of a communicator, which counts them as they begin, each after a kernel of the device."""
    b = GraphBuilder()
    for rank in range(2):
        with b.device(f"/cpu:{rank}"):
            x = b.placeholder(f"x{rank}", "float32", (1000,))
            communicator = b.op("CollectiveInitializeCommunicator", 7, rank, 2)[0]
            for name, op in (("first", "CollectiveReduceV3"), ("second", second)):
                y = b.op("Neg", x, name=f"{name}_kernel{rank}")[0]
                attrs = {"reduction": b"Add"} if op == "CollectiveReduceV3" else {}
                b.op(op, y, communicator, np.zeros((0, 0), np.int32), name=f"{name}{rank}", attrs=attrs)
    return b


def test_what_a_communicator_counts_may_not_change_partners() -> None:
    """Kernels that come in another order on one device would join other collectives: refused, naming both."""
    targets = [f"{name}{rank}" for name in ("first", "second") for rank in range(2)]
    parts = cut(counted(), "cpu:2", feeds=["x0", "x1"], targets=targets)
    with pytest.raises(InvalidArgumentError, match=r"'second0' of .* with 'first1' of .* with 'second1'"):
        simulate(parts, "cpu:2", order={"second_kernel0": 1})
    both = {"second_kernel0": 1, "second_kernel1": 1}
    assert simulate(parts, "cpu:2", order=both).makespan_ns == simulate(parts, "cpu:2").makespan_ns
    assert simulate(parts, "cpu:2", order="critical-path").makespan_ns == simulate(parts, "cpu:2").makespan_ns


def test_what_a_communicator_counts_may_not_meet_another_kind() -> None:
    """The error says that the order is the reason."""
    targets = [f"{name}{rank}" for name in ("first", "second") for rank in range(2)]
    parts = cut(counted("CollectiveAllToAllV3"), "cpu:2", feeds=["x0", "x1"], targets=targets)
    simulate(parts, "cpu:2")
    with pytest.raises(InvalidArgumentError, match=r'order: the step goes on by "ready", but .* meets one of'):
        simulate(parts, "cpu:2", order={"second_kernel0": 1})


# Calls


def called() -> tuple[dict[str, Graph], Cluster]:
    """Two calls of one function with two kernels on one device; the result of `one` is squared afterwards."""
    inner = GraphBuilder()
    x = inner.placeholder("x", "float32", (1000, 1000))
    once = inner.op("Neg", x, name="once")[0]
    twice = inner.op("Neg", once, name="twice")[0]
    b = GraphBuilder()
    b.function(function_of("negated", inner.graph_def(), ["x:0"], [twice.name]))
    y = b.placeholder("y", "float32", (1000, 1000))
    one = b.op("negated", y, name="one")[0]
    b.op("negated", y, name="two")
    b.op("MatMul", one, one, name="square")
    hardware = local_cluster("cpu:1")
    return cut(b, hardware, feeds=["y"], targets=["two", "square"], inline=False), hardware


def nodes(order: Any) -> list[str]:
    """The kernels of `called`, in order."""
    parts, hardware = called()
    timeline = simulate(parts, hardware, order=order)
    return [e.node for e in timeline.events if e.kind == "compute" and e.duration_ns]


def test_kernels_in_calls_have_the_priority_of_the_call() -> None:
    """Unless they are named themselves."""
    assert nodes("ready") == ["two/once", "one/once", "two/twice", "one/twice", "square"]
    assert nodes({"one": 1}) == ["one/once", "one/twice", "two/once", "square", "two/twice"]
    assert nodes({"one": 1, "one/twice": -1}) == ["one/once", "two/once", "two/twice", "one/twice", "square"]


def test_the_way_from_a_call_goes_on_after_it() -> None:
    """By the critical path the call before the product comes first."""
    assert nodes("critical-path") == ["one/once", "one/twice", "square", "two/once", "two/twice"]


# Errors


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("critical", "order 'critical': there is none of that name; did you mean 'critical-path'?"),
        ({"bb": 1}, "order: no node of the step has the name 'bb'; did you mean 'b'?"),
        ({"b/inner": 1}, "order: no node of the step has the name 'b/inner'"),
        ({"b": True}, "order: the priority True of 'b' is no finite number"),
        ({"b": float("inf")}, "order: the priority inf of 'b' is no finite number"),
        ({"b": "1"}, "order: the priority '1' of 'b' is no finite number"),
        ({1: 1}, "order: the name 1 is not a text"),
        (["b"], "give 'ready' or 'critical-path', or a mapping from names of nodes to priorities"),
    ],
)
def test_what_is_no_order_is_refused(order: Any, said: str) -> None:
    """One error that says what may be given."""
    with pytest.raises(InvalidArgumentError) as error:
        simulate(waited_for(), cluster(2), order=order)
    assert said in str(error.value)


def test_a_name_inside_a_call_is_suggested() -> None:
    """Names of called functions have the path of calls."""
    parts, hardware = called()
    with pytest.raises(InvalidArgumentError, match=r"'one/onec'; did you mean 'one/once'\?"):
        simulate(parts, hardware, order={"one/onec": 1})


def test_numbers_of_numpy_are_priorities() -> None:
    """Whole or not."""
    order: Any = {"b": np.int64(1), "a": np.float32(0.5)}
    assert spans(simulate(waited_for(), cluster(2), order=order))["b"] == (0, 80)
