"""Launches of kernels by the host thread of a GPU, and the lanes of a CPU, against times computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.devices import Cluster, Device, DeviceSpec, OpCost, Timeline, simulate
from partita.devices.link import LinkSpec
from partita.devices.timing.costs.roofline import RooflineSource
from partita.devices.topology import LinkRules
from partita.graph import DataType
from partita.graph.dtypes import Dims
from partita.graph.ops.properties import NodeProperties

from .steps import GIGA, StepBuilder, cpu

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


def hardware(launch_ns: int, *, floor_ns: int = 0, lanes: int = 1) -> Cluster:
    """A CPU with lanes and a GPU, each with 1 operation and 1 byte a nanosecond; links with 1 byte a nanosecond."""
    host = DeviceSpec("host", "CPU", {"fp32": GIGA}, GIGA, 10**12, lanes=lanes)
    gpu = DeviceSpec("gpu", "GPU", {"fp32": GIGA}, GIGA, 10**12, launch_ns, kernel_floor_ns=floor_ns)
    wire = LinkSpec("wire", GIGA, 0)
    return Cluster([Device(host), Device(gpu)], LinkRules(loopback=wire, network=wire, hosts={"GPU": wire}))


class Constant:
    """Every op that takes time takes the same."""

    def __init__(self, time_ns: int) -> None:
        self.time_ns = time_ns

    def cost(
        self, properties: NodeProperties, inputs: tuple[Dims, ...], outputs: tuple[Dims, ...], spec: DeviceSpec
    ) -> OpCost:
        """The time, except for free ops."""
        usual = RooflineSource().cost(properties, inputs, outputs, spec)
        return usual if usual.provenance == "free" else usual._replace(time_ns=self.time_ns)


def on_gpu(step: StepBuilder, *names: str) -> None:
    """Moves nodes to the GPU."""
    for name in names:
        node = step.graph.find_node(name)
        assert node is not None
        node.assigned_device = GPU


def kernels(count: int, *, chain: bool) -> StepBuilder:
    """Kernels on the GPU, one after the other or independent of each other."""
    step = StepBuilder()
    last = step.const("x", 1.0)
    for k in range(count):
        name = step.op(f"n{k}", "Neg", [last])
        last = name if chain else last
    on_gpu(step, "x", *(f"n{k}" for k in range(count)))
    return step


def run(step: StepBuilder, cluster: Cluster, time_ns: int) -> Timeline:
    """The step, in which every op takes the same time."""
    return simulate(step.parts(), cluster, cost_source=Constant(time_ns))


@given(st.integers(1, 12), st.integers(0, 9), st.integers(1, 9), st.booleans())
def test_launches_overlap_with_kernels(n: int, launch_ns: int, kernel_ns: int, chain: bool) -> None:
    """n kernels of k ns end at l + n * k if k >= l, else at n * l + k, chain or not; launches are no part of totals."""
    timeline = run(kernels(n, chain=chain), hardware(launch_ns), kernel_ns)
    expected = launch_ns + n * kernel_ns if kernel_ns >= launch_ns else n * launch_ns + kernel_ns
    assert timeline.makespan_ns == expected
    assert sum(event.duration_ns for event in timeline.critical_path()) == expected
    assert timeline.busy_ns(GPU) == n * kernel_ns
    launches = [event for event in timeline.events if event.kind == "launch"]
    assert [event.stream for event in launches] == ["launch"] * (n if launch_ns else 0)
    assert sum(total.runs for total in timeline.totals_by_op() if total.op == "Neg") == n
    assert timeline.find("n0").kind == "compute"
    assert timeline.dependency_bound_ns == kernel_ns * (n if chain else 1)


def test_a_value_read_on_the_host_waits_for_its_kernel() -> None:
    """And so does a copy; a kernel behind the copy is launched when it has arrived."""
    step = kernels(2, chain=True)
    step.op("back", "Neg", ["n1"], 0)
    step.op("again", "Neg", ["back"])
    on_gpu(step, "again")
    timeline = run(step, hardware(5), 10)
    assert timeline.find("n1").end_ns == 25
    (out, into) = [event for event in timeline.events if event.kind == "copy"]
    assert (out.start_ns, out.end_ns) == (25, 29)
    assert (timeline.find("back").start_ns, timeline.find("back").end_ns) == (29, 39)
    assert (into.start_ns, into.end_ns) == (39, 43)
    assert timeline.find("again").start_ns == 48


def test_what_only_passes_on_keeps_its_place_in_the_stream() -> None:
    """An Identity between two kernels delays no launch, and ends when the kernel before it does."""
    step = kernels(1, chain=True)
    step.op("same", "Identity", ["n0"])
    step.op("next", "Neg", ["same"])
    on_gpu(step, "same", "next")
    timeline = run(step, hardware(5), 10)
    assert [timeline.find(name).end_ns for name in ("n0", "same", "next")] == [15, 15, 25]


def test_integers_on_the_host_of_a_gpu_are_not_launched() -> None:
    """They are computed on its host, at the rates of the task's CPU."""
    step = StepBuilder()
    step.const("n", [1, 2, 3])
    node = step.graph.add_node("twice", "AddV2", {"T": DataType.INT32})
    const = step.graph.find_node("n")
    assert const is not None
    for port in (0, 1):
        step.graph.add_edge(const, 0, node, port)
    on_gpu(step, "n", "twice")
    event = simulate(step.parts(), hardware(5)).find("twice")
    assert (event.device, event.stream, event.start_ns) == (GPU, "host", 0)


def test_the_floor_of_a_kernel_is_part_of_its_time() -> None:
    """The launch is not."""
    step = kernels(1, chain=True)
    with_floor, without = (simulate(step.parts(), hardware(5, floor_ns=floor)).find("n0") for floor in (7, 0))
    assert with_floor.duration_ns == without.duration_ns + 7
    assert with_floor.start_ns == without.start_ns == 5


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_lanes_share_the_rates_of_a_device(lanes: int) -> None:
    """Twelve independent ops take as long on any number of lanes; each op takes longer, on a stream of its own."""
    step = StepBuilder()
    step.feed("x", (3, 4))
    for k in range(12):
        step.op(f"n{k}", "Neg", ["x"])
    timeline = simulate(step.parts(), hardware(0, lanes=lanes))
    assert timeline.makespan_ns == 12 * 96
    assert timeline.find("n5").duration_ns == 96 * lanes
    names = ["compute", *(f"compute:{lane}" for lane in range(1, lanes))]
    assert timeline.streams(cpu(0)) == names
    assert [timeline.busy_ns(cpu(0), name) for name in names] == [12 * 96] * lanes
