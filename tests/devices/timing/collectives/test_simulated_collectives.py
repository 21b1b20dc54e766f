"""Collectives in simulated steps: when they begin and end, what they share, who they are, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.actors import open_session
from partita.devices import Cluster, collective_time, cut, local_cluster, parse_cluster
from partita.devices.timing import Timeline, TimelineEvent, simulate
from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.structured import while_loop
from partita.scenarios import limits
from tests.function_defs import function_of

V1 = {"merge_op": b"Add", "final_op": b"Id", "group_key": 1, "instance_key": 1}
CLUSTERS = {
    "8 GPUs with curves": local_cluster("gpu:8"),
    "8 GPUs on PCIe": parse_cluster('[[device]]\nspec = "A100-PCIe"\ncount = 8\n'),
    "8 GPUs of a cube mesh": parse_cluster('[[host]]\nmodel = "DGX-1-V100"\n'),
    "2 cube meshes": parse_cluster('[[host]]\nmodel = "DGX-1-P100"\ntasks = 2\n'),
    "4 CPUs of one process": local_cluster("cpu:4"),
    "3 hosts of 4 GPUs": parse_cluster('[[device]]\njob = "w"\ntasks = 3\nspec = "A100-80GB"\ncount = 4\n'),
    "5 tasks": parse_cluster('[[device]]\njob = "w"\ntasks = 5\nspec = "generic-cpu"\n'),
}
KINDS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "permute"]


def member(b: GraphBuilder, kind: str, x: Any, rank: int, size: int, key: int = 1, instance: int = 1) -> Tensor:
    """The member of a rank; of a broadcast rank 0 sends."""
    seat: Any = (size, key, instance, [])
    own: dict[str, Any] = {"merge_op": b"Add", "final_op": b"Id"}
    name = f"{kind}_{key}_{instance}_{rank}"
    match kind:
        case "all_reduce":
            return b.op("CollectiveReduceV2", x, *seat, **own, name=name)[0]
        case "all_gather":
            return b.op("CollectiveGatherV2", x, *seat, name=name)[0]
        case "reduce_scatter":
            return b.op("CollectiveReduceScatterV2", x, *seat, **own, name=name)[0]
        case "all_to_all":
            return b.op("CollectiveAllToAllV2", x, *seat, name=name)[0]
        case "permute":
            return b.op("Partita>CollectivePermute", x, *seat, shift=1 - 2 * (key % 2), name=name)[0]
    if rank == 0:
        return b.op("CollectiveBcastSendV2", x, *seat[:3], name=name)[0]
    return b.op("CollectiveBcastRecvV2", *seat[:3], b.op("Shape", x)[0], T=np.float32, name=name)[0]


def timeline_of(b: GraphBuilder, cluster: Cluster, fetches: Sequence[Any], feeds: Mapping[str, Any]) -> Timeline:
    """The simulated step."""
    return simulate(cut(b, cluster, feeds=list(feeds), fetches=fetches), cluster, feeds=feeds)


def collectives(timeline: Timeline) -> dict[str, TimelineEvent]:
    """Events by the name of the node."""
    return {event.node: event for event in timeline.events if event.kind == "collective"}


@given(st.sampled_from(list(CLUSTERS)), st.sampled_from(KINDS), st.integers(0, 1 << 20), st.data())
def test_alone_a_collective_takes_its_time(name: str, kind: str, rows: int, data: st.DataObject) -> None:
    """Any kind, size and group, on any cluster: exactly `collective_time`, after the last member is ready."""
    cluster = CLUSTERS[name]
    ranks = data.draw(st.lists(st.sampled_from(cluster.names), min_size=2, unique=True))
    b, feeds, outputs = GraphBuilder(), {}, []
    for rank, device in enumerate(ranks):
        with b.device(device):
            x = b.op("Placeholder", name=f"x{rank}", dtype=np.float32)
            ready = b.op("Neg", x[0], name=f"ready{rank}")
            outputs.append(member(b, kind, ready[0], rank, len(ranks)))
        shape = (len(ranks), rows) if kind == "all_to_all" else (rows * len(ranks),)
        feeds[f"x{rank}"] = shape
    timeline = timeline_of(b, cluster, outputs, feeds)
    size = 4 * rows * len(ranks) * (len(ranks) if kind == "all_gather" else 1)
    cost = collective_time(kind, ranks, size, cluster)
    events = collectives(timeline)
    assert len(events) == len(ranks)
    ready_ns = max(
        timeline.find(f"ready{rank}").end_ns for rank in range(len(ranks)) if kind != "broadcast" or not rank
    )
    for event in events.values():
        assert event.duration_ns == cost.time_ns
        assert (event.low_ns, event.high_ns) == (cost.low_ns, cost.high_ns)
        assert event.start_ns >= ready_ns
        assert event.bytes == size
        assert event.provenance.startswith(f"{kind} of {len(ranks)} ")


def two_rings(cluster: Cluster, groups: Sequence[Sequence[str]], elements: int = 1 << 20) -> Timeline:
    """An all-reduce in each group, all ready at the same time."""
    b, feeds, outputs = GraphBuilder(), {}, []
    for key, group in enumerate(groups, 1):
        for rank, device in enumerate(group):
            with b.device(device):
                x = b.op("Placeholder", name=f"x{key}_{rank}", dtype=np.float32)
                outputs.append(member(b, "all_reduce", x[0], rank, len(group), key))
            feeds[f"x{key}_{rank}"] = (elements,)
    return timeline_of(b, cluster, outputs, feeds)


def test_disjoint_links_are_undisturbed() -> None:
    """Two groups without a common link take as long as one alone."""
    cluster = CLUSTERS["8 GPUs with curves"]
    alone = collective_time("all_reduce", cluster.names[1:5], 4 << 20, cluster).time_ns
    gpus = [name for name in cluster.names if "GPU" in name]
    events = collectives(two_rings(cluster, [gpus[:4], gpus[4:]]))
    assert {event.duration_ns for event in events.values()} == {alone}


@pytest.mark.parametrize("name", ["8 GPUs with curves", "8 GPUs on PCIe", "5 tasks", "3 hosts of 4 GPUs"])
def test_two_on_the_same_links_take_as_long_as_one_after_the_other_less_a_latency(name: str) -> None:
    """Both groups of the same devices end together."""
    cluster = CLUSTERS[name]
    ranks = [device for device in cluster.names if "GPU" in device or name == "5 tasks"]
    alone, empty = (collective_time("all_reduce", ranks, size, cluster).time_ns for size in (4 << 20, 0))
    durations = {event.duration_ns for event in collectives(two_rings(cluster, [ranks, ranks])).values()}
    assert len(durations) == 1
    assert abs(durations.pop() - (2 * alone - empty)) <= 3  # a phase ends on a whole nanosecond


def test_one_group_has_one_stream() -> None:
    """Two instances of one group follow each other, in the order in which they became complete."""
    cluster, b, feeds, outputs = CLUSTERS["8 GPUs with curves"], GraphBuilder(), {}, []
    for rank in range(4):
        with b.device(f"/gpu:{rank}"):
            x = b.op("Placeholder", name=f"x{rank}", dtype=np.float32)
            outputs += [member(b, "all_reduce", x[0], rank, 4, 1, instance) for instance in (1, 2)]
        feeds[f"x{rank}"] = (1 << 18,)
    timeline = timeline_of(b, cluster, outputs, feeds)
    events = collectives(timeline)
    first, second = events["all_reduce_1_1_0"], events["all_reduce_1_2_0"]
    assert first.end_ns == second.start_ns
    assert timeline.columns[second.cause].node.startswith("all_reduce_1_1")
    assert first.stream == second.stream == "communication:1"
    assert timeline.busy_ns(first.device, first.stream) == first.duration_ns + second.duration_ns


def test_a_transfer_beside_a_collective_gets_its_share() -> None:
    """A transfer over a full link of the ring takes half of it: both are max-min fair."""
    cluster = CLUSTERS["5 tasks"]
    ranks, elements = cluster.names, 1 << 24
    b, outputs = GraphBuilder(), []
    with b.device(ranks[0]):
        sent = b.op("Fill", [elements * 4], np.float32(1))
    with b.device(ranks[1]):
        outputs.append(b.op("Neg", sent[0], name="got"))
    for rank, device in enumerate(ranks):
        with b.device(device):
            outputs.append(b.op("Neg", member(b, "all_reduce", b.op("Fill", [elements], np.float32(1)), rank, 5)))
    targets = [output.name for output in outputs]
    timeline = simulate(cut(b, cluster, targets=targets), cluster)
    alone, empty = (collective_time("all_reduce", ranks, size, cluster).time_ns for size in (elements * 4, 0))
    (copy,) = (e for e in timeline.events if e.kind == "copy" and e.end_ns - e.start_ns > 1000)
    ring = collectives(timeline)["all_reduce_1_1_0"]
    bandwidth = min(link.bandwidth_bytes_per_s for link in cluster.topology.route(ranks[0], ranks[1]).links)
    latency = cluster.topology.route(ranks[0], ranks[1]).latency_ns
    works = {"ring": alone - empty, "copy": elements * 16 * 10**9 // bandwidth}
    begins = {"ring": ring.start_ns + empty, "copy": copy.start_ns + latency}
    ends = {"ring": ring.end_ns, "copy": copy.end_ns + latency}
    first, second = sorted(begins, key=begins.__getitem__)
    left = works[first] - (begins[second] - begins[first])
    assert left > 0
    expected = begins[second] + 2 * min(left, works[second]), begins[second] + left + works[second]
    assert sorted(ends.values()) == pytest.approx(expected, abs=3)


def test_links_carry_the_true_bytes() -> None:
    """2 (n - 1) / n of the buffer leaves each GPU, at the rate that the library reaches."""
    cluster = CLUSTERS["8 GPUs with curves"]
    gpus = [name for name in cluster.names if "GPU" in name]
    timeline = two_rings(cluster, [gpus])
    for link in cluster.topology.route(gpus[0], gpus[1]).links:
        carried = sum((end - start) * load for start, end, load in timeline.link_loads(link)) / 1e9
        assert carried == pytest.approx(2 * 7 / 8 * (4 << 20), rel=1e-6)


@pytest.mark.parametrize("elements", [1 << 10, 1 << 26])
def test_communication_is_hidden_behind_computing(elements: int) -> None:
    """A collective beside a kernel that does not need it: the step ends with the longer of the two."""
    cluster, b, outputs = CLUSTERS["8 GPUs with curves"], GraphBuilder(), []
    for rank in range(8):
        with b.device(f"/gpu:{rank}"):
            x, large = (b.op("Placeholder", name=f"{n}{rank}", dtype=np.float32) for n in "xy")
            outputs += [member(b, "all_reduce", x[0], rank, 8), b.op("MatMul", large[0], large[0], name=f"m{rank}")[0]]
    feeds: dict[str, Any] = {f"x{rank}": (elements,) for rank in range(8)}
    feeds |= {f"y{rank}": (4096, 4096) for rank in range(8)}
    targets = [output.name.partition(":")[0] for output in outputs]
    timeline = simulate(cut(b, cluster, feeds=list(feeds), targets=targets), cluster, feeds=feeds)
    device = timeline.find("m0").device
    kernel, ring = timeline.find("m0"), collectives(timeline)["all_reduce_1_1_0"]
    exposed, hidden = timeline.communication(device)
    assert exposed + hidden == ring.duration_ns
    both = max(0, min(kernel.end_ns, ring.end_ns) - max(kernel.start_ns, ring.start_ns))
    assert hidden == both
    assert timeline.makespan_ns == max(*(e.end_ns for e in timeline.events if e.node[:1] == "m"), ring.end_ns)


def test_reports_name_the_group() -> None:
    """What limits a step is a collective of so many over a model of links."""
    cluster = CLUSTERS["3 hosts of 4 GPUs"]
    gpus = [name for name in cluster.names if "GPU" in name]
    causes = dict(limits(two_rings(cluster, [gpus]), cluster))
    assert "all_reduce of 12 gpus over 25 Gb Ethernet" in causes


def test_keys_come_from_a_group_assignment_a_call_or_a_communicator() -> None:
    """Whatever gives them as constants."""
    cluster, b, feeds, outputs = local_cluster("cpu:2"), GraphBuilder(), {}, []
    inner = GraphBuilder()
    value, key = inner.placeholder("value", "float32", (1000,)), inner.placeholder("key", "int32", ())
    total = inner.op("CollectiveReduceV2", value, 2, 3, key, [], merge_op=b"Add", final_op=b"Id")[0]
    b.function(function_of("exchange", inner.graph_def(), ["value:0", "key:0"], [total.name]))
    for rank in range(2):
        with b.device(f"/cpu:{rank}"):
            x = b.placeholder(f"x{rank}", "float32", (500,))
            size, group = b.op("CollectiveAssignGroupV2", [[0, 1]], rank, 40)
            y = b.op("CollectiveGatherV2", x, size, group, 9, [])[0]
            for instance in (1, 2):
                y = b.op("exchange", y, instance)[0]
            communicator = b.op("CollectiveInitializeCommunicator", 7, rank, 2)[0]
            for _ in range(2):
                y = b.op("CollectiveReduceV3", y, communicator, np.zeros((0, 0), np.int32), reduction=b"Add")[0]
            outputs.append(y)
        feeds[f"x{rank}"] = (500,)
    for inline in (True, False):
        partitions = cut(b, cluster, feeds=list(feeds), fetches=outputs, inline=inline)
        events = [e for e in simulate(partitions, cluster, feeds=feeds).events if e.kind == "collective"]
        ops = [event.op for event in events[::2]]
        assert ops == ["CollectiveGatherV2", *2 * ["CollectiveReduceV2"], *2 * ["CollectiveReduceV3"]]
        groups = {event.stream.partition(":")[2] for event in events}
        assert groups == {"40", "3", "7 of communicators"}


def looped(rounds: Any, sizes: tuple[int, int] = (2, 2)) -> GraphBuilder:
    """A loop on each of two GPUs, the members of whose iterations meet."""
    b = GraphBuilder()
    for rank, size in enumerate(sizes):
        with b.device(f"/gpu:{rank}"):
            x = b.op("Fill", [1000], np.float32(rank + 1))[0]

            def body(i: Tensor, value: Tensor, size: int = size) -> tuple[Tensor, Tensor]:
                own: dict[str, Any] = {"group_size": size, "subdiv_offsets": [0], **V1}
                return i + 1, b.op("CollectiveReduce", value * np.float32(2), **own)[0]

            y = while_loop(b, lambda i, _: b.op("Less", i, rounds)[0], body, [b.constant(0), x], name=f"w{rank}")[1]
            b.identity(y, name=f"y{rank}")
    return b


async def test_members_in_loops_meet_by_iteration_and_a_session_has_the_same_timeline() -> None:
    """Each of three iterations has its collective; the virtual session agrees with the simulation to the last event."""
    b = looped(3)
    expected = simulate(cut(b, "gpu:2", fetches=["y0", "y1"]), "gpu:2")
    events = [e for e in expected.events if e.kind == "collective"]
    assert sorted(e.iteration for e in events) == [f"w{k}/while_context:{i}" for k in range(2) for i in range(3)]
    async with open_session(b.graph_def(), "gpu:2", clock="virtual") as session:
        for _ in range(2):
            values = await session.run(["y0", "y1"])
            assert values[0][0] == values[1][0] == 3 * 2 * 4 * 4
            assert session.timeline().events == expected.events
            assert session.timeline().peak_bytes == expected.peak_bytes
            assert session.timeline().dependency_bound_ns == expected.dependency_bound_ns


@given(st.sampled_from(list(CLUSTERS)), st.sampled_from(KINDS), st.integers(1, 1000), st.data())
async def test_a_virtual_session_agrees(name: str, kind: str, rows: int, data: st.DataObject) -> None:
    """Any kind and group: values, and the events that the simulation predicts."""
    cluster = CLUSTERS[name]
    ranks = data.draw(st.lists(st.sampled_from(cluster.names), min_size=1, max_size=4, unique=True))
    if kind == "broadcast" and len(ranks) == 1:
        ranks = list(cluster.names[:2])
    b, feeds, outputs = GraphBuilder(), {}, []
    shape = (len(ranks), rows) if kind == "all_to_all" else (rows * len(ranks),)
    for rank, device in enumerate(ranks):
        with b.device(device):
            x = b.placeholder(f"x{rank}", "float32", shape)
            outputs.append(member(b, kind, b.op("Neg", x)[0], rank, len(ranks)).name)
        feeds[f"x{rank}"] = np.ones(shape, np.float32)
    expected = timeline_of(b, cluster, outputs, dict.fromkeys(feeds, shape))
    async with open_session(b.graph_def(), cluster, clock="virtual") as session:
        await session.run(outputs, feeds)
        assert session.timeline().events == expected.events
        assert session.timeline().peak_bytes == expected.peak_bytes


def test_a_key_that_nobody_knows_is_named() -> None:
    """A fed instance key: the clock cannot tell who meets whom."""
    b = GraphBuilder()
    key = b.placeholder("key", "int32", ())
    y = b.op("CollectiveReduceV2", [1.0], 2, 1, key, [], merge_op=b"Add", final_op=b"Id", name="r")[0]
    with pytest.raises(
        InvalidArgumentError, match=r"has to know instance_key before the run, but '_arg_key_0_0'.*gives it"
    ):
        timeline_of(b, local_cluster("cpu:2"), [y], {"key": ()})


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ([(0, 2, 1)], r"group 1, instance 1: 1 of 2 members never come; 'all_reduce_1_1_0' waits"),
        ([(0, 2, 1), (0, 2, 1)], "a device comes twice in one step"),
        ([(0, 2, 1), (1, 3, 1)], "give each collective an instance_key of its own, and its members one group_size"),
    ],
)
def test_bad_groups_are_refused(members: list[tuple[int, int, int]], text: str) -> None:
    """Members that never come, a device twice, sizes that differ: (device, group size, instance)."""
    b, outputs = GraphBuilder(), []
    for device, size, instance in members:
        with b.device(f"/cpu:{device}"):
            x = b.op("Fill", [1000], np.float32(device))[0]
            outputs.append(member(b, "all_reduce", x, device, size, 1, instance))
    with pytest.raises(InvalidArgumentError, match=text):
        timeline_of(b, local_cluster("cpu:2"), outputs, {})


def test_a_group_of_one_takes_no_time() -> None:
    """It exchanges nothing."""
    b = GraphBuilder()
    y = b.op("Neg", member(b, "all_reduce", b.op("Fill", [1000], np.float32(1))[0], 0, 1))[0]
    (event,) = collectives(timeline_of(b, local_cluster("cpu:1"), [y], {})).values()
    assert (event.duration_ns, event.provenance) == (0, "all_reduce of 1 cpu")


def test_what_nobody_knows_the_exchange_of_is_refused() -> None:
    """A collective of another runtime."""
    b = GraphBuilder()
    x = b.op("Fill", [8, 8], np.float32(1))[0]
    y = b.op("DTensorAllGather", x, input_layout=b"", output_layout=b"")[0]
    with pytest.raises(UnimplementedError, match="does not know what the members of this collective exchange"):
        timeline_of(b, local_cluster("cpu:1"), [y], {})


@pytest.mark.parametrize("share", [20, 50])
def test_a_collective_takes_its_share_of_the_units(share: int) -> None:
    """Kernels beside it are slower by it, those in the queue as well as the one that runs; afterwards they are not."""
    tables = '[[device]]\ncount = 2\nspec = { kind = "GPU", memory = "8 GB", memory_bandwidth = "1 TB/s", '
    tables += 'launch_overhead = "100 ns", peak_flops = { fp32 = "10 TFLOP/s" }, peer_link = "NVLink3"SHARE }\n'

    def step(text: str) -> Timeline:
        b, targets = GraphBuilder(), []
        for rank in range(2):
            with b.device(f"/gpu:{rank}"):
                x = b.op("Fill", [1 << 22], np.float32(1), name=f"x{rank}")[0]
                targets.append(b.op("Neg", member(b, "all_reduce", x, rank, 2), name=f"last{rank}")[0].name)
                for k in range(12):
                    x = b.op("Neg", x, name=f"n{k}_{rank}")[0]
                targets.append(x.name)
        cluster = parse_cluster(tables.replace("SHARE", text))
        return simulate(cut(b, cluster, targets=[name.partition(":")[0] for name in targets]), cluster)

    plain, shared = step(""), step(f', communication_share = "{share} %"')
    ring = collectives(shared)["all_reduce_1_1_0"]
    assert ring.duration_ns == collectives(plain)["all_reduce_1_1_0"].duration_ns
    kernels = [shared.find(f"n{k}_0") for k in range(12)] + [shared.find("last0")]
    assert kernels[0].end_ns < ring.end_ns < kernels[11].start_ns
    full = plain.find("n0_0").duration_ns
    for before, kernel in zip([shared.find("x0"), *kernels], kernels, strict=False):
        beside = max(0, min(kernel.end_ns, ring.end_ns) - max(kernel.start_ns, ring.start_ns))
        work = beside * (100 - share) / 100 + (kernel.duration_ns - beside)
        assert work == pytest.approx(full, abs=2)
        assert kernel.start_ns == before.end_ns or kernel is kernels[-1]


@pytest.mark.parametrize(("size", "shift"), [(4, 2), (5, 3), (3, 0)])
def test_a_permutation_beyond_the_neighbours_is_refused(size: int, shift: int) -> None:
    """Its ways are not those of a ring; among two, or by 1 from either side, it is one."""
    b, outputs = GraphBuilder(), []
    for rank in range(size):
        with b.device(f"/cpu:{rank}"):
            x = b.op("Fill", [1000], np.float32(rank))[0]
            outputs.append(b.op("Partita>CollectivePermute", x, size, 1, 1, [], shift=shift)[0])
    message = f"permutations among {size} members by 1 and by -1, not by {shift}"
    with pytest.raises(UnimplementedError, match=message):
        timeline_of(b, local_cluster(f"cpu:{size}"), outputs, {})


def test_the_flows_of_a_permutation_go_to_the_neighbours() -> None:
    """Each of twelve ranks sends its buffer once, over the network where the next rank is on another host."""
    cluster, b, outputs = CLUSTERS["3 hosts of 4 GPUs"], GraphBuilder(), []
    gpus = [name for name in cluster.names if "GPU" in name]
    for rank, device in enumerate(gpus):
        with b.device(device):
            x = b.op("Fill", [1 << 20], np.float32(rank))[0]
            outputs.append(b.op("Size", member(b, "permute", x, rank, len(gpus)))[0].node)
    timeline = simulate(cut(b, cluster, targets=outputs), cluster)
    carried = [
        [sum((end - start) * load for start, end, load in timeline.link_loads(link)) / 1e9 for link in route.links]
        for route in (cluster.topology.route(gpus[a], gpus[a + 1]) for a in (0, 3))
    ]
    for of_links in carried:
        assert of_links == pytest.approx([4 << 20] * len(of_links), rel=1e-4)  # of whole ns
