"""Transfers of simulated steps: who shares which links, what limits them, slow devices and degraded links."""

from __future__ import annotations

import numpy as np
import pytest

from partita.devices import cut, parse_cluster
from partita.devices.timing import Timeline, TimelineEvent, simulate
from partita.graph import GraphBuilder
from partita.scenarios import limits

MACHINES = '[[device]]\njob = "worker"\ntasks = 2\nspec = "A100-80GB"\n'
TASK = "/job:worker/replica:0/task:"
KB, GB = 250, 250_000_000  # elements of float32


def sent(tables: str, *transfers: tuple[str, str, int], dtype: str = "float32") -> Timeline:
    """A step on two machines in which devices send a0, a1 ..., given as (from, to, number of elements)."""
    cluster, b = parse_cluster(MACHINES + tables), GraphBuilder()
    for i, (src, dst, _) in enumerate(transfers):
        x = b.op("Placeholder", name=f"x{i}", dtype=dtype)
        a = b.op("Neg", x, name=f"a{i}", device=cluster.find(src).name)
        b.op("Neg", a, name=f"y{i}", device=cluster.find(dst).name)
    feeds = {f"x{i}": (size,) for i, (_, _, size) in enumerate(transfers)}
    targets = [f"y{i}" for i in range(len(transfers))]
    return simulate(cut(b, cluster, feeds=list(feeds), targets=targets), cluster, feeds=feeds)


def copies(timeline: Timeline) -> list[TimelineEvent]:
    """The copies of a0, a1 ..., in this order."""
    tensors = (event for event in timeline.events if event.kind == "copy" and "_a" in event.node[-4:])
    return sorted(tensors, key=lambda event: event.node[-1])


def took(timeline: Timeline, transfer: int) -> int:
    """Nanoseconds from the send of a tensor to its arrival."""
    ends = {event.kind: event for event in timeline.events if event.node.startswith(f"a{transfer}/")}
    return ends["recv"].end_ns - ends["send"].start_ns


def delay(large: tuple[str, str, int], small: tuple[str, str, int]) -> int:
    """How much longer a small transfer takes if a large one is under way."""
    return took(sent("", large, small), 1) - took(sent("", small), 0)


def test_a_small_message_shares_a_port_with_a_large_one() -> None:
    """1 GB and 1 kB leave one port: the small one is delayed by less than a microsecond."""
    assert 0 < delay(("cpu:0", "task 1 cpu:0", GB), ("cpu:0", "task 1 cpu:0", KB)) < 1000


def test_a_message_within_a_machine_does_not_wait_for_the_network() -> None:
    """1 GB leaves a GPU over 25 Gb Ethernet, 4 kB go to the GPU's own host: PCIe has room for both."""
    assert 0 <= delay(("gpu:0", "task 1 cpu:0", GB), ("gpu:0", "cpu:0", 4 * KB)) < 1000


@pytest.mark.parametrize("target", ["gpu:0", "cpu:1"])
def test_the_host_memory_of_a_task_is_shared(target: str) -> None:
    """An int32 tensor from a CPU to the host memory of a GPU of its task, or to another CPU: nothing is copied."""
    two = '[[device]]\njob = "worker"\ntask = 0\nspec = "generic-cpu"\ncount = 2\n'
    timeline = sent(two, ("cpu:0", target, KB), dtype="int32")
    assert not [event for event in timeline.events if event.kind == "copy"]
    assert took(timeline, 0) == 0


def test_limits_name_the_link_that_was_full() -> None:
    """From GPU to GPU of another machine it is the network, not PCIe, which comes first; or a spine that many share."""
    cluster = parse_cluster(MACHINES)
    timeline = sent("", ("gpu:0", "task 1 gpu:0", GB))
    assert limits(timeline, cluster)[0][0] == "transfers over 25 Gb Ethernet"
    (copy,) = copies(timeline)
    assert copy.provenance == f"{TASK}0 -> network (25 Gb Ethernet)"
    first = copy.start_ns + 24_000
    assert timeline.link_loads(copy.provenance) == [(first, first + 320_000_000, 3.125e9)]
    assert timeline.link_loads("nobody's") == []
    spine = (
        '[[switch]]\nkind = "leaf"\nsize = 1\noversubscription = 1\n[[switch]]\nkind = "spine"\nbandwidth = "1 GB/s"'
    )
    both = sent(spine, ("gpu:0", "task 1 gpu:0", GB), ("task 1 gpu:0", "gpu:0", GB))
    assert {event.provenance for event in copies(both)} == {"spine -> spine (spine)"}
    assert limits(both, parse_cluster(MACHINES + spine))[0][0] == "transfers over spine"


def at_once(tables: str, src: str, *targets: str) -> list[TimelineEvent]:
    """The copies of the parts of a tensor of 1 GB, which one op has ready at the same time, to devices."""
    cluster, b = parse_cluster(MACHINES + tables), GraphBuilder()
    b.op("Placeholder", name="x", dtype="float32")
    axis = b.op("Const", name="axis", value=np.int32(0), dtype="int32")
    parts = b.op("Split", axis, "x", name="a", num_split=len(targets), device=cluster.find(src).name)
    for i, target in enumerate(targets):
        b.op("Neg", parts[i], name=f"y{i}", device=cluster.find(target).name)
    names = [f"y{i}" for i in range(len(targets))]
    feeds = {"x": (GB // len(targets) * len(targets),)}
    timeline = simulate(cut(b, cluster, feeds=["x"], targets=names), cluster, feeds=feeds)
    return [event for event in timeline.events if event.kind == "copy" and event.node.endswith("_a")]


def test_a_shared_link_limits_more_than_a_slower_one() -> None:
    """Three copies leave over one port of 25 GB/s: a third each, less than the 10 GB/s at the other end."""
    devices = "".join(f'[[device]]\njob = "worker"\ntask = {task}\nspec = "generic-cpu"\n' for task in (2, 3))
    ports = "".join(
        f'[[nic]]\nhosts = ["{TASK}{task}"]\nbandwidth = "{rate} GB/s"\nlatency = "0 ns"\n'
        for task, rate in enumerate((25, 10, 10, 10))
    )
    shared = at_once(devices + ports, "cpu:0", *(f"task {task} cpu:0" for task in (1, 2, 3)))
    assert [event.provenance.partition(" (")[0] for event in shared] == [f"{TASK}0 -> network"] * 3
    alone = at_once(devices + ports, "cpu:0", "task 1 cpu:0")
    assert [event.provenance.partition(" (")[0] for event in alone] == [f"network -> {TASK}1"]


def test_copy_engines_are_held_for_the_time_on_pcie() -> None:
    """A GPU has two: a third copy waits until the first is off PCIe, not until it has arrived."""
    first, second, third = at_once("", "gpu:0", "task 1 cpu:0", "task 1 gpu:0", "cpu:0")
    assert first.start_ns == second.start_ns
    assert third.start_ns == first.start_ns + -(-(4 * (GB // 3)) // 31)
    assert third.start_ns < first.end_ns


def test_a_slow_device() -> None:
    """An op that runs into a window is slow for the part inside it; without windows nothing changes."""
    parts_of = ("cpu:0", "task 1 cpu:0", GB)
    plain = sent("", parts_of).find("y0")
    begin, took = plain.start_ns, plain.duration_ns
    window = '[[slow]]\ndevice = "task 1 cpu:0"\nfactor = {}\nfrom = "{} ns"\nto = "{} ns"\n'
    slow = sent(window.format(2, begin + 1000, begin + 3000), parts_of).find("y0")
    assert (slow.start_ns, slow.duration_ns) == (begin, took + 1000)
    assert sent(window.format(1, 0, 10**9), parts_of).find("y0") == plain
    other = window.replace("task 1 cpu:0", "gpu:0")
    assert sent(other.format(3, 0, 10**9), parts_of).find("y0") == plain


def test_a_degraded_link() -> None:
    """Twice as slow for ever: the bytes take twice as long, the latency does not."""
    transfer = "gpu:0", "task 1 gpu:0", GB
    plain, slow = sent("", transfer), sent('[[degrade]]\nlink = "25 Gb Ethernet"\nfactor = 2\n', transfer)
    assert took(slow, 0) - took(plain, 0) == 320_000_000


def test_what_no_table_states_is_assumed() -> None:
    """Ports of machines and switches, once tensors may cross between machines; what tables state is not listed."""
    far, near = ("gpu:0", "task 1 gpu:0", KB), ("gpu:0", "cpu:0", KB)
    machines = [(f"{TASK}{task}", "nic", "25 Gb Ethernet") for task in (0, 1)]
    assert list(sent("", near).assumed) == []
    assert list(sent("", far).assumed) == [*machines, ("network", "switch", "none that could be full")]
    nic = '[[nic]]\nlink = "200 Gb InfiniBand"\n'
    leaf = '[[switch]]\nkind = "leaf"\nsize = 1\noversubscription = 1\n'
    assert list(sent(nic + leaf, far).assumed) == []
    assert list(sent(leaf + f'[[nic]]\nhosts = ["{TASK}1"]\nlink = "200 Gb InfiniBand"\n', far).assumed) == machines[:1]


def test_tensors_of_one_shape_have_the_bytes_of_their_types() -> None:
    """One receive of each type in one step: none gets the size of another."""
    b = GraphBuilder()
    sizes = {"float32": 4, "float16": 2, "float64": 8, "int8": 1}
    for name in sizes:
        x = b.op("Fill", [1000], np.ones((), name), name=f"x_{name}", device="/cpu:0")
        b.op("Neg", x, name=f"y_{name}", device="/cpu:1")
    cluster = parse_cluster('[[device]]\njob = "w"\ntasks = 2\nspec = "generic-cpu"\nhost = "one"\n')
    names = cluster.names
    graph_def = b.graph_def()
    for node in graph_def.node:
        if node.device:
            node.device = names[0] if node.name.startswith("x_") else names[1]
    timeline = simulate(cut(graph_def, cluster, targets=[f"y_{name}" for name in sizes]), cluster)
    moved = {event.node.partition("x_")[2]: event.bytes for event in timeline.events if event.kind == "copy"}
    assert moved == {name: 1000 * size for name, size in sizes.items()}
