"""What a simulated step takes, checked by hand: calls, loops, branches, sizes, links, launches and shared memory.

Times are those of a generic CPU, whose product of two 1024 x 1024 matrices takes 13.4 ms, unless a cluster says more.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from partita.devices import Cluster, cut, local_cluster, parse_cluster, simulate
from partita.devices.timing import Flow, Timeline, TimelineEvent, finish_times
from partita.errors import InvalidArgumentError
from partita.graph import GraphBuilder, cond, while_loop
from partita.graph.builder.handles import Tensor
from partita.scenarios import limits
from tests.function_defs import calling, func_attr, function_of

SIDE = 1024
PRODUCT_FLOPS = 2 * SIDE**3
PRODUCT_MS = 13.42
MIB = 4 * SIDE**2
"""bytes of such a matrix"""


def milliseconds(timeline: Timeline) -> float:
    return timeline.makespan_ns / 1e6


def copies(timeline: Timeline) -> list[TimelineEvent]:
    return [event for event in timeline.events if event.kind == "copy"]


def two_products() -> GraphBuilder:
    """Calls a function of two products, one after the other."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (SIDE, SIDE))
    b.op("MatMul", b.op("MatMul", x, x), x, name="y")
    return calling("PartitionedCall", function_of("f", b.graph_def(), ["x"], ["y"]), f=func_attr("f"))


@pytest.mark.parametrize("inline", [False, True], ids=["called", "inlined"])
def test_a_call_takes_what_its_body_takes(inline: bool) -> None:
    """Two products, 26.8 ms and 4.3 Gflop."""
    timeline = simulate(
        cut(two_products(), "cpu:1", feeds="x0", fetches="c", inline=inline), "cpu:1", feeds={"x0": (SIDE, SIDE)}
    )
    assert timeline.flops == 2 * PRODUCT_FLOPS
    assert milliseconds(timeline) == pytest.approx(2 * PRODUCT_MS, rel=1e-2)


def powers(count: int) -> tuple[GraphBuilder, Tensor]:
    """x multiplied with itself so many times, in a loop with constant limits."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (SIDE, SIDE))
    y = while_loop(b, lambda i, y: b.op("Less", i, count), lambda i, y: [i + 1, b.op("MatMul", y, x)], [0, x])[1]
    return b, b.identity(y, name="y")


def test_a_counted_loop_takes_what_its_iterations_take() -> None:
    """Ten products, 134 ms."""
    b, y = powers(10)
    timeline = simulate(cut(b, "cpu:1", feeds="x", fetches=y), "cpu:1")
    assert timeline.flops == pytest.approx(10 * PRODUCT_FLOPS, rel=1e-6)
    assert milliseconds(timeline) == pytest.approx(10 * PRODUCT_MS, rel=1e-2)


def test_one_branch_of_a_conditional_runs() -> None:
    """Which one is asked for by its flag where the predicate is not known."""
    b = GraphBuilder()
    x, p = b.placeholder("x", "float32", (SIDE, SIDE)), b.placeholder("p", "bool", ())
    y = cond(b, p, lambda: b.op("MatMul", x, x), lambda: b.op("MatMul", b.op("MatMul", x, x), x))[0]
    parts = cut(b, "cpu:1", feeds=["x", "p"], fetches=b.identity(y, name="y"))
    with pytest.raises(InvalidArgumentError, match="2 branches 'p' takes; simulate with --branch p=K"):
        simulate(parts, "cpu:1")
    times = [milliseconds(simulate(parts, "cpu:1", branches={"p": k})) for k in (0, 1)]
    assert times == [pytest.approx(2 * PRODUCT_MS, rel=1e-2), pytest.approx(PRODUCT_MS, rel=1e-2)]


def test_a_dequeued_tensor_has_the_shape_of_its_queue() -> None:
    """1024 x 1024, so its product counts in full."""
    b = GraphBuilder()
    queue = b.op("FIFOQueueV2", component_types=["float32"], shapes=[(SIDE, SIDE)], name="q")[0]
    x = b.op("QueueDequeueV2", queue, component_types=["float32"], name="x")[0]
    b.op("MatMul", x, x, name="y")
    assert simulate(cut(b, "cpu:1", fetches="y"), "cpu:1").find("y").flops == PRODUCT_FLOPS


def test_an_unknown_rank_is_an_error() -> None:
    """Nothing is assumed unless asked for."""
    b = GraphBuilder()
    b.op("Neg", b.placeholder("x", "float32", None), name="y")
    parts = cut(b, "cpu:1", feeds="x", fetches="y")
    with pytest.raises(InvalidArgumentError, match=r"'x'.*--shape x="):
        simulate(parts, "cpu:1")
    assert simulate(parts, "cpu:1", assumed_size=1).makespan_ns > 0


def test_the_reserved_output_of_a_normalisation_is_a_scalar() -> None:
    """Output 5 of FusedBatchNormV3, whether its gradient reads it or nobody does."""
    b = GraphBuilder()
    x, scale = b.placeholder("x", "float32", (8, 32, 32, 16)), b.placeholder("s", "float32", (16,))
    norm = b.op("FusedBatchNormV3", x, scale, scale, scale, scale, name="norm", is_training=True, epsilon=1e-3)
    b.op("Shape", norm[5], name="read")
    for fetch in ("read", "norm"):
        timeline = simulate(cut(b, "cpu:1", feeds=["x", "s"], fetches=fetch), "cpu:1")
        peak = timeline.memory(timeline.devices[0], "device")
        assert all(tensor.bytes <= 4 for tensor in peak.tensors if (tensor.node, tensor.output) == ("norm", 5))
        assert peak.peak_bytes < 3 * 4 * 8 * 32 * 32 * 16


NICS = """
[[device]]
job = "worker"
tasks = 3
spec = "generic-cpu"

[[link]]
between = "hosts"
bandwidth = "25 Gb/s"
latency = "2 us"
"""


def arrivals(sizes: Sequence[tuple[str, int]], cluster: Cluster) -> tuple[dict[str, int], Timeline]:
    """When float tensors of so many elements arrive from the first host at a device, by device."""
    b = GraphBuilder()
    for k, (device, size) in enumerate(sizes):
        x = b.placeholder(f"x{k}", "float32", (size,), device=cluster.names[0])
        b.op("Shape", x, name=f"there{k}", device=device)
    names = [f"x{k}" for k in range(len(sizes))], [f"there{k}" for k in range(len(sizes))]
    timeline = simulate(cut(b, cluster, feeds=names[0], targets=names[1]), cluster)
    ends = {timeline.find(f"there{k}").device: timeline.find(f"there{k}").start_ns for k in range(len(sizes))}
    return ends, timeline


def test_a_small_transfer_does_not_wait_for_a_large_one() -> None:
    """1 kB leaves the NIC of 1 GB a microsecond late at most."""
    cluster = parse_cluster(NICS)
    large, small = (cluster.names[1], 250_000_000), (cluster.names[2], 250)
    alone = arrivals([small], cluster)[0][small[0]]
    together, timeline = arrivals([large, small], cluster)
    assert together[small[0]] - alone < 1000
    assert timeline.makespan_ns > 300e6


def test_a_transfer_to_the_own_host_does_not_wait_for_the_network() -> None:
    """4 kB to a GPU of the same host, while 1 GB leaves over 25 GbE."""
    cluster = parse_cluster(NICS + '\n[[device]]\njob = "worker"\ntask = 0\nspec = "A100-80GB"\n')
    gpu = next(name for name in cluster.names if "GPU" in name)
    alone = arrivals([(gpu, 1000)], cluster)[0][gpu]
    other = next(name for name in cluster.names if "task:1" in name)
    together, timeline = arrivals([(other, 250_000_000), (gpu, 1000)], cluster)
    assert together[gpu] - alone < 1000
    assert "PCIe" not in limits(timeline, cluster)[0][0]


def test_what_limits_a_step_is_the_full_link() -> None:
    """A copy from GPU to GPU over a slow network is limited by the NIC, not by the PCIe link that it begins on."""
    cluster = parse_cluster(NICS.replace("generic-cpu", "A100-80GB"))
    gpus = [name for name in cluster.names if "GPU" in name]
    b = GraphBuilder()
    x = b.op("Fill", [25_000_000], 1.0, name="x", device=gpus[0])
    b.op("Neg", x, name="y", device=gpus[1])
    timeline = simulate(cut(b, cluster, targets="y"), cluster)
    what, _ = limits(timeline, cluster)[0]
    assert "PCIe" not in what


@pytest.mark.parametrize(
    ("dtype", "devices", "op"), [("int32", "cpu:1,gpu:1", "Fill"), ("float32", "cpu:2", "Neg")], ids=["gpu", "cpu"]
)
def test_host_memory_of_one_task_is_shared(dtype: str, devices: str, op: str) -> None:
    """Sizes that a GPU's kernel reads in host memory, and a tensor from CPU:0 to CPU:1: no copy, one buffer."""
    b, cluster = GraphBuilder(), local_cluster(devices)
    x = b.placeholder("x", dtype, (1,) if op == "Fill" else (SIDE, SIDE), device="/device:CPU:0")
    far = cluster.names[1]
    b.op(op, *([x, 1.0] if op == "Fill" else [x]), name="y", device=far)
    timeline = simulate(cut(b, cluster, feeds="x", targets="y"), cluster, shapes={"y": ((4,),)} if op == "Fill" else {})
    assert copies(timeline) == []
    assert timeline.transferred_bytes == 0


def test_a_star_takes_what_max_min_fairness_says() -> None:
    """Three transfers of different sizes leave one NIC at once; each also has a NIC of its own to arrive at."""
    cluster = parse_cluster(NICS.replace("tasks = 3", "tasks = 4"))
    sizes = [2_500_000, 5_000_000, 12_500_000]
    ends, _ = arrivals(list(zip(cluster.names[1:], sizes, strict=True)), cluster)
    rate = 25e9 / 8
    links = {"out": rate, **dict.fromkeys(ends, rate)}
    expected = finish_times(links, [Flow(["out", name], 4 * n, 0.0, 2e-6) for name, n in zip(ends, sizes, strict=True)])
    assert [ends[name] / 1e9 for name in ends] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("elements", "is_longer"), [(1000, False), (5_000_000, True)])
def test_launches_overlap_with_kernels(elements: int, is_longer: bool) -> None:
    """n kernels of k ns end at l + n*k if k >= l, else n*l + k."""
    b, cluster, n = GraphBuilder(), local_cluster("cpu:1,gpu:1"), 20
    with b.device("/device:GPU:0"):
        x = b.op("Fill", [elements], 1.0, name="x")
        for k in range(n):
            x = b.op("Tanh", x, name=f"y{k}")
    timeline = simulate(cut(b, cluster, targets=x), cluster)
    launch = cluster.find("gpu:0").spec.launch_overhead_ns
    first, last = timeline.find("y0"), timeline.find(f"y{n - 1}")
    took = last.duration_ns
    assert (took >= launch) is is_longer
    if is_longer:
        assert last.end_ns - first.start_ns == n * took
    else:
        launches = [event for event in timeline.events if event.kind == "launch" and event.op == "Tanh"]
        assert last.end_ns == launches[0].start_ns + n * launch + took
