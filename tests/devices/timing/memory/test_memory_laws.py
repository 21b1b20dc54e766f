"""Laws of memory on drawn graphs: as a walk over the nodes counts, growing with sizes, enough for each op."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from hypothesis import given, strategies as st

from partita.devices import Cluster, local_cluster
from partita.devices.timing import Timeline

from ..steps import StepBuilder, cluster, cpu

ARITY = {"Neg": 1, "Add": 2, "MatMul": 2, "Identity": 1}
IN_PLACE = ("Neg", "Add")
FIXED = ("Placeholder", "Const")


class Op(NamedTuple):
    """A node of a drawn graph."""

    name: str
    op: str
    inputs: tuple[str, ...]
    device: int


class Drawn(NamedTuple):
    """A drawn graph, whose nodes stand behind their inputs."""

    ops: tuple[Op, ...]

    def step(self, side: int = 4) -> StepBuilder:
        """The graph, over square matrices."""
        step = StepBuilder()
        for name, op, inputs, device in self.ops:
            if op == "Placeholder":
                step.feed(name, (side, side), device)
            elif op == "Const":
                step.const(name, [[1.0] * side] * side, device)
            else:
                step.op(name, op, inputs, device)
        return step


@st.composite
def graphs(draw: st.DrawFn, devices: int = 1, ops: tuple[str, ...] = tuple(ARITY)) -> Drawn:
    """Up to twelve ops behind a fed tensor and a constant."""
    nodes = [Op("x", "Placeholder", (), 0), Op("c", "Const", (), 0)]
    for i, op in enumerate(draw(st.lists(st.sampled_from(ops), min_size=2, max_size=12))):
        inputs = tuple(draw(st.sampled_from(nodes[-5:])).name for _ in range(ARITY[op]))
        nodes.append(Op(f"n{i}", op, inputs, draw(st.integers(0, devices - 1))))
    nodes.append(Op("last", "Neg", ("x",), 0))  # so that something takes time
    return Drawn(tuple(nodes))


def roots_of(drawn: Drawn) -> dict[str, str]:
    """Of every node the one whose tensor it shows."""
    roots: dict[str, str] = {}
    for node in drawn.ops:
        roots[node.name] = roots[node.inputs[0]] if node.op == "Identity" else node.name
    return roots


def counted(drawn: Drawn, timeline: Timeline, unit: int) -> dict[int, int]:
    """The peak of every device, by a walk over the nodes that keeps who reads and who has written what."""
    roots, spans = roots_of(drawn), {op.name: timeline.find(op.name) for op in drawn.ops}
    by_name = {op.name: op for op in drawn.ops}
    readers = defaultdict(set)
    for node in drawn.ops:
        for source in node.inputs:
            readers[roots[source]].add(node.name)
    buffer: dict[str, str] = {}
    for node in sorted(drawn.ops, key=lambda op: spans[op.name].start_ns):
        buffer[node.name] = node.name
        for source in map(roots.__getitem__, node.inputs if node.op in IN_PLACE else ()):
            others = readers[source] - {node.name}
            ended = all(spans[other].end_ns <= spans[node.name].start_ns for other in others)
            if ended and by_name[source].op not in FIXED:
                buffer[node.name] = buffer[source]
                break
    lives: dict[str, tuple[int, int]] = {}
    for name, root in roots.items():
        if name == root:
            end = max(spans[reader].end_ns for reader in {name} | readers[name])
            first, last = lives.get(buffer[name], (spans[buffer[name]].start_ns, 0))
            lives[buffer[name]] = first, timeline.makespan_ns if by_name[name].op == "Const" else max(last, end)
    peaks: dict[int, int] = {}
    for device in {op.device for op in drawn.ops}:
        mine = [lives[name] for name in lives if by_name[name].device == device]
        peaks[device] = unit * max((sum(a <= start < b for a, b in mine) for start, _ in mine), default=0)
    return peaks


def check_counts(drawn: Drawn, hardware: Cluster) -> None:
    """Simulates and compares."""
    timeline = drawn.step().timeline(hardware)
    for device, peak_bytes in counted(drawn, timeline, 64).items():
        memory = timeline.memory(cpu(device))
        assert memory.peak_bytes == peak_bytes
        assert sum(tensor.bytes for tensor in memory.tensors) == peak_bytes


@given(graphs())
def test_peaks_are_those_that_a_walk_counts(drawn: Drawn) -> None:
    """On one device."""
    check_counts(drawn, cluster(1))


@given(graphs(devices=3))
def test_devices_of_one_process_share_buffers(drawn: Drawn) -> None:
    """On three CPUs of one task, which hand tensors over, and may overwrite what another one made."""
    check_counts(drawn, local_cluster("cpu:3"))


@given(graphs(ops=("Neg", "Add", "Identity")))
def test_peaks_grow_with_sizes(drawn: Drawn) -> None:
    """Four times the bytes, and so four times the time, give four times the peak at four times its instant."""
    small, large = (drawn.step(side).timeline(cluster(1)).memory(cpu(0)) for side in (4, 8))
    assert large[:3] == (4 * small.peak_bytes, small.limit_bytes, 4 * small.at_ns)
    assert [t[:2] for t in large.tensors] == [t[:2] for t in small.tensors]


@given(graphs())
def test_a_peak_is_at_least_what_each_op_needs(drawn: Drawn) -> None:
    """All that an op reads, and what a product writes, is in memory while the op runs."""
    roots, peak_bytes = roots_of(drawn), drawn.step().timeline(cluster(1)).memory(cpu(0)).peak_bytes
    for node in drawn.ops:
        assert peak_bytes >= 64 * (len({roots[source] for source in node.inputs}) + (node.op == "MatMul"))
