"""Peak memory of small graphs, counted by hand.

Tensors are float32 matrices of 10 x 10, one *unit* of 400 bytes, unless a test says otherwise. A unit that appears from
nothing is a Fill, whose two constants (12 bytes) are there for the whole step. An op that computes into a buffer of its
own is a MatMul; a Neg or an Add computes in place where it may. Ops of one device run one after the other, in the order
in which they are written down here.
"""

from __future__ import annotations

import pytest

from partita.devices import local_cluster
from partita.devices.spec import DeviceSpec
from partita.devices.timing import OpCost, RooflineSource, Timeline, simulate
from partita.devices.timing.memory import tensors
from partita.devices.timing.memory.kinds import MemoryKind, memory_kind
from partita.errors import InvalidArgumentError
from partita.graph import DataType
from partita.graph.dtypes import Dims
from partita.graph.ops.properties import NodeProperties

from ..steps import StepBuilder, cluster, cpu, placed_parts

UNIT = 400
FILL = 12  # bytes of the constants behind all Fills of a step
HANDLE = {"dtype": DataType.FLOAT}


class Step(StepBuilder):
    """Writes the graphs of this file."""

    def made(self, *names: str) -> Step:
        """Adds Fills of one unit each."""
        if self.graph.find_node("dims") is None:
            self.const("dims", [10, 10])
            self.const("zero", 0.0)
        for name in names:
            self.op(name, "Fill", ["dims", "zero"])
        return self

    def fed(self, *names: str, shape: tuple[int, ...] = (10, 10)) -> Step:
        """Adds placeholders."""
        for name in names:
            self.feed(name, shape)
        return self

    def then(self, name: str, op: str, *inputs: str, **attrs: object) -> Step:
        """Adds an op."""
        self.op(name, op, inputs, 0, **attrs)
        return self

    def variable(self, *names: str, shared_name: bytes = b"", device: int = 0) -> Step:
        """Adds handles of variables of one unit."""
        for name in names:
            attrs = {"dtype": DataType.FLOAT, "shape": (10, 10), "shared_name": shared_name}
            self._add(name, "VarHandleOp", attrs, [], device)
        return self

    def read(self, name: str, handle: str, *after: str) -> Step:
        """Adds a read of a variable that waits for other nodes."""
        self._add(name, "ReadVariableOp", HANDLE, [handle], 0)
        self.after(name, *after)
        return self

    def assign(self, name: str, handle: str, value: str, *after: str) -> Step:
        """Adds an assignment that waits for other nodes."""
        self._add(name, "AssignVariableOp", HANDLE, [handle, value], 0)
        self.after(name, *after)
        return self

    def peak(self, device: int = 0) -> int:
        """Peak bytes of a CPU."""
        return self.timeline().memory(cpu(device)).peak_bytes


def held(timeline: Timeline, device: int = 0) -> list[str]:
    """What fills the memory of a CPU at its peak, except for constants of Fills."""
    return [tensor.node for tensor in timeline.memory(cpu(device)).tensors if tensor.bytes > FILL]


def test_elementwise_ops_compute_in_place() -> None:
    """a; b and then c are written into its buffer: 1."""
    assert Step().made("a").then("b", "Neg", "a").then("c", "Neg", "b").peak() == FILL + UNIT


def test_other_ops_need_a_buffer() -> None:
    """a and b, then b and c: 2; d is written into c, and e reads b, d and writes a third one: 3."""
    step = Step().made("a").then("b", "MatMul", "a", "a").then("c", "MatMul", "b", "b")
    assert step.peak() == FILL + 2 * UNIT
    step.then("d", "Neg", "c").then("e", "MatMul", "b", "d")
    assert step.peak() == FILL + 3 * UNIT


def test_a_fed_tensor_is_not_written_into() -> None:
    """x, and a beside it, also when it is read through a view: 2."""
    assert Step().fed("x").then("a", "Neg", "x").peak() == 2 * UNIT
    assert Step().fed("x").then("view", "Identity", "x").then("a", "Neg", "view").peak() == 2 * UNIT


def test_a_constant_is_not_written_into() -> None:
    """c for the whole step, and a, into which b is written: 2."""
    step = Step()
    step.const("c", [[1.0] * 10] * 10)
    assert step.then("a", "Neg", "c").then("b", "Neg", "a").peak() == 2 * UNIT


@pytest.mark.parametrize("op", ["Variable", "VariableV2"])
def test_a_reference_to_a_variable_is_the_variable(op: str) -> None:
    """v and a; the assignment returns v, so b needs a buffer when a is free: 2. Without b: 2."""
    step = Step().made("a")
    step._add("v", op, {"dtype": DataType.FLOAT, "shape": (10, 10)}, [], 0)
    step.then("assign", "Assign", "v", "a")
    assert step.peak() == FILL + 2 * UNIT
    assert step.then("b", "Neg", "assign").peak() == FILL + 2 * UNIT


def test_an_optimizer_returns_its_variable() -> None:
    """v and the gradient a (and the rate: 400 + 4 bytes); then v and the square of the updated v: 2."""
    step = Step().made("a")
    step._add("v", "VariableV2", {"dtype": DataType.FLOAT, "shape": (10, 10)}, [], 0)
    step.const("rate", 0.5)
    step.then("apply", "ApplyGradientDescent", "v", "rate", "a").then("square", "MatMul", "apply", "apply")
    assert step.peak() == FILL + 4 + 2 * UNIT


def test_what_another_op_needs_later_is_not_written_into() -> None:
    """b runs before c and gets a buffer; c is the last to read a and is written into it: 2."""
    step = Step().made("a").then("b", "Neg", "a").then("c", "Neg", "a")
    assert step.peak() == FILL + 2 * UNIT
    assert held(step.timeline()) == ["a", "b"]


def test_the_last_reader_writes_whoever_read_before() -> None:
    """a and its square b; c is written into a after that, d into b: 2."""
    step = Step().made("a").then("b", "MatMul", "a", "a").then("c", "Neg", "a").then("d", "Add", "b", "c")
    assert step.peak() == FILL + 2 * UNIT


def test_of_two_inputs_one_is_written_into() -> None:
    """sum is in a, and in b if a is needed later; end is then written into a: 2 both times."""
    step = Step().made("a", "b").then("sum", "Add", "a", "b")
    assert step.peak() == FILL + 2 * UNIT
    assert step.then("end", "Add", "a", "sum").peak() == FILL + 2 * UNIT


def test_only_an_input_of_equal_size_is_written_into() -> None:
    """row (40 bytes) + a is written into a: 1. row + column has a buffer of its own: 1 beside 80 bytes."""
    step = Step().made("a").fed("row", shape=(10,)).then("sum", "Add", "row", "a")
    assert step.peak() == FILL + 40 + UNIT
    step = Step().fed("row", shape=(10,)).fed("column", shape=(10, 1)).then("sum", "Add", "row", "column")
    assert step.peak() == 80 + UNIT


@pytest.mark.parametrize(("to", "count"), [(DataType.FLOAT, 1), (DataType.INT32, 2), (DataType.DOUBLE, 3)])
def test_only_an_input_of_equal_type_is_written_into(to: DataType, count: int) -> None:
    """a becomes a float in place: 1; an int32 beside it: 2; a double, which is twice as large: 3."""
    step = Step().made("a").then("b", "Cast", "a", SrcT=DataType.FLOAT, DstT=to)
    assert step.peak() == FILL + count * UNIT


def test_views_have_no_buffer() -> None:
    """a, which its views show until the product has ended, and the product: 2."""
    step = Step().made("a").then("v", "Identity", "a").then("w", "StopGradient", "v").then("p", "MatMul", "v", "w")
    assert step.peak() == FILL + 2 * UNIT


def test_an_op_writes_through_a_view_that_nobody_else_needs() -> None:
    """b is written into a, seen through v: 1. If v is read later, b has a buffer: 2, and 3 with what reads both."""
    step = Step().made("a").then("v", "Identity", "a").then("b", "Neg", "v")
    assert step.peak() == FILL + UNIT
    step = Step().made("a").then("v", "Identity", "a").then("b", "Neg", "a").then("c", "MatMul", "v", "b")
    assert step.peak() == FILL + 3 * UNIT


def test_a_fetched_tensor_is_not_written_into() -> None:
    """The caller gets a: b has a buffer of its own: 2."""
    step = Step().made("a").then("fetch", "_Retval", "a", index=0).then("b", "Neg", "a")
    assert step.peak() == FILL + 2 * UNIT


def test_an_output_that_nobody_reads_is_there_while_its_op_runs() -> None:
    """Two fed units, 10 losses of 4 bytes, and a gradient of one unit that nobody reads: 3 and 40 bytes."""
    step = Step().fed("x", "y").then("loss", "SoftmaxCrossEntropyWithLogits", "x", "y")
    assert step.peak() == 3 * UNIT + 40


def test_handles_of_one_name_are_one_variable() -> None:
    """u and v are one, w another: 2, and the sum of both: 3. On another device the same name is another variable."""
    step = Step().variable("u", "v", shared_name=b"weights").variable("w")
    for name in "uvw":
        step.read(f"{name}_read", name)
    step.then("sum", "Add", "u_read", "w_read")
    assert step.peak() == 3 * UNIT
    step.variable("elsewhere", shared_name=b"weights", device=1)
    assert [step.peak(0), step.peak(1)] == [3 * UNIT, UNIT]


def test_the_name_of_a_node_stands_in_for_a_shared_name() -> None:
    """w is the shared name of v and the name of w: 1, beside the negative of it: 2."""
    step = Step().variable("v", shared_name=b"w").variable("w").read("v_read", "v").read("w_read", "w")
    assert step.then("n", "Neg", "v_read").peak() == 2 * UNIT


def test_a_variable_is_as_large_as_what_is_read_from_it() -> None:
    """The handle leaves its size open, the read is known to be a unit: 1, and its negative: 2."""
    step = Step()
    step._add("v", "VarHandleOp", {"dtype": DataType.FLOAT, "shape": None}, [], 0)
    step.read("r", "v").then("n", "Neg", "r")
    assert simulate(step.parts(), cluster(1), shapes={"r": ((10, 10),)}).memory(cpu(0)).peak_bytes == 2 * UNIT


def test_an_initialised_variable_is_its_value() -> None:
    """a becomes v, which is read and squared: 2. A constant becomes v: 1, and its square: 2."""
    step = Step().made("a").variable("v").assign("init", "v", "a").read("r", "v", "init")
    assert step.then("square", "MatMul", "r", "r").peak() == FILL + 2 * UNIT
    step = Step().variable("v")
    step.const("c", [[1.0] * 10] * 10)
    step.assign("init", "v", "c").read("r", "v", "init").then("square", "MatMul", "r", "r")
    assert step.peak() == 2 * UNIT


def test_an_assigned_value_replaces_what_was_there() -> None:
    """v and a; sum is written into a and becomes v, the old content goes; v and its square: 2."""
    step = Step().made("a").variable("v").read("old", "v").then("sum", "Add", "old", "a")
    step.assign("update", "v", "sum").read("new", "v", "update").then("square", "MatMul", "new", "new")
    timeline = step.timeline()
    assert timeline.memory(cpu(0)).peak_bytes == FILL + 2 * UNIT
    assert held(timeline) == ["a", "v"]


def test_what_was_read_before_an_assignment_stays() -> None:
    """v and a; a becomes v; the product of the old content and the new one needs both: 3."""
    step = Step().made("a").variable("v").read("old", "v").assign("update", "v", "a", "old").read("new", "v", "update")
    assert step.then("product", "MatMul", "old", "new").peak() == FILL + 3 * UNIT


def test_the_old_content_of_a_variable_stays_until_the_assignment() -> None:
    """v, the negative of it and its square, which becomes v: 3, although v was read for the last time before."""
    step = Step().variable("v").read("old", "v").then("n", "Neg", "old").then("square", "MatMul", "n", "n")
    assert step.assign("update", "v", "square").peak() == 3 * UNIT


def test_the_content_of_a_variable_is_not_written_into() -> None:
    """a becomes v and stays to the end of the step; b, computed from a, has a buffer of its own: 2."""
    step = Step().made("a").variable("v").assign("init", "v", "a").then("b", "Neg", "a")
    assert step.peak() == FILL + 2 * UNIT


def test_an_assigned_value_lives_until_the_next_one() -> None:
    """a and b become v one after the other; then a is free: 2, also while b is squared."""
    step = Step().made("a", "b").variable("v").assign("first", "v", "a").assign("second", "v", "b", "first")
    assert step.read("r", "v", "second").then("square", "MatMul", "r", "r").peak() == FILL + 2 * UNIT


def test_a_queue_keeps_what_it_is_given() -> None:
    """a goes into a queue, so b has a buffer of its own: 2."""
    step = Step().made("a")
    step._add("queue", "FIFOQueueV2", {"component_types": [DataType.FLOAT]}, [], 0)
    step._add("put", "QueueEnqueueV2", {"Tcomponents": [DataType.FLOAT]}, ["queue", "a"], 0)
    step.then("b", "Neg", "a").after("b", "put")
    assert step.peak() == FILL + 2 * UNIT


@pytest.mark.parametrize("taken", [False, True])
def test_a_merge_has_the_buffer_of_the_side_that_is_taken(taken: bool) -> None:
    """a goes through one side, whose op writes into it; so does the op behind the Merge: 1, and a byte for the side."""
    step = Step().made("a")
    step.const("side", taken)
    step.then("switch", "Switch", "a", "side").then("no", "Neg", "switch:0").then("yes", "Neg", "switch:1")
    step.then("merge", "Merge", "no", "yes", N=2).then("end", "Neg", "merge")
    assert step.peak() == FILL + 1 + UNIT


def test_devices_of_one_process_share_a_buffer() -> None:
    """CPU:1 reads what CPU:0 has made, and writes its sum into it, as the first input: 1 stays with CPU:0. CPU:1 has b,
    and then the square of the sum: 1.
    """
    step = Step().made("a")
    step._add("b", "Fill", {"T": DataType.FLOAT}, ["dims", "zero"], 1)
    step.op("sum", "Add", ["a", "b"], 1)
    step.op("square", "MatMul", ["sum", "sum"], 1)
    timeline = step.timeline(local_cluster("cpu:2"))
    assert [timeline.memory(cpu(i)).peak_bytes for i in (0, 1)] == [FILL + UNIT, UNIT]


def test_an_op_on_the_host_does_not_write_into_the_memory_of_a_gpu() -> None:
    """On a GPU integers are added on its host: x and the integers are 2 on the GPU, the sum is 1 on the host."""
    step = Step().fed("x").then("integers", "Cast", "x", SrcT=DataType.FLOAT, DstT=DataType.INT32)
    step.op("sum", "Add", ["integers", "integers"], T=DataType.INT32)
    gpu = "/job:localhost/replica:0/task:0/device:GPU:0"
    for node in step.graph.op_nodes():
        node.assigned_device = gpu
    timeline = simulate({gpu: step.graph}, local_cluster("gpu"))
    assert [timeline.memory(gpu, place).peak_bytes for place in ("device", "host")] == [2 * UNIT, UNIT]


class Instant(RooflineSource):
    """Costs of the roofline, except that a Neg takes no time."""

    def cost(
        self, properties: NodeProperties, inputs: tuple[Dims, ...], outputs: tuple[Dims, ...], spec: DeviceSpec
    ) -> OpCost:
        """0 ns for a Neg."""
        cost = super().cost(properties, inputs, outputs, spec)
        return cost._replace(time_ns=0) if properties.op == "Neg" else cost


def test_one_of_two_ops_of_one_instant_writes() -> None:
    """b and c take no time: c is written into a, b has a buffer, and their product another: 3."""
    step = Step().made("a").then("b", "Neg", "a").then("c", "Neg", "a").then("d", "MatMul", "b", "c")
    timeline = simulate(step.parts(), cluster(1), cost_source=Instant())
    assert timeline.memory(cpu(0)).peak_bytes == FILL + 3 * UNIT


def test_a_copied_tensor_has_a_buffer_on_both_sides() -> None:
    """On 0: a until the copy has arrived: 1. On 1: the copy, into which b is written: 1."""
    step = Step().made("a")
    step.op("b", "Neg", ["a"], 1)
    assert [step.peak(0), step.peak(1)] == [FILL + UNIT, UNIT]


def test_a_peak_says_when_and_with_what() -> None:
    """x and a are 2 units from the start on; the row, 40 bytes, comes last. The memory has 10 ** 12 bytes."""
    step = Step().fed("x").fed("row", shape=(10,)).then("a", "Neg", "x").then("b", "Add", "row", "a")
    peak = step.timeline().memory(cpu(0))
    assert peak[:3] == (2 * UNIT + 40, 10**12, 0)
    assert [tensor[:4] for tensor in peak.tensors] == [("x", 0, UNIT, ""), ("a", 0, UNIT, ""), ("row", 0, 40, "")]
    assert peak.fits


def test_memories_without_a_tensor_are_empty() -> None:
    """A CPU that does nothing, and the host memory of a GPU; what the cluster does not have is an error."""
    step = Step().fed("x").then("a", "Neg", "x")
    timeline = simulate(step.parts(), local_cluster("cpu:2,gpu"))
    assert timeline.memory(cpu(1)) == (0, 16 * 2**30, 0, ())
    gpu = "/job:localhost/replica:0/task:0/device:GPU:0"
    assert timeline.memory(gpu, "host") == (0, 256 * 2**30, 0, ())
    with pytest.raises(InvalidArgumentError, match="CPU:5' has no 'device' memory"):
        timeline.memory(cpu(5))
    with pytest.raises(InvalidArgumentError, match="CPU:1' has no 'host' memory"):
        timeline.memory(cpu(1), "host")


def test_a_peak_that_does_not_fit_says_so() -> None:
    """The step is simulated nevertheless, with a warning."""
    step = Step().fed("x", shape=(2**20, 2**12)).then("a", "Neg", "x")
    timeline = simulate(step.parts(), local_cluster("cpu"))
    assert not timeline.memory(cpu(0)).fits
    assert timeline.warnings == (f"{cpu(0)} needs 32.00 GiB of device memory and has 16.00 GiB",)


@pytest.mark.parametrize("devices", [1, 4])
def test_equal_devices_share_the_facts_of_nodes(devices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of four ranks that do the same is worked out from as many facts as that of one."""
    asked: list[str] = []

    def counted(properties: NodeProperties, device_type: str) -> MemoryKind:
        asked.append(properties.op)
        return memory_kind(properties, device_type)

    monkeypatch.setattr(tensors, "memory_kind", counted)
    step = StepBuilder()
    for rank in range(devices):
        step.op(f"y{rank}", "MatMul", [step.feed(f"x{rank}", (10, 10), rank)] * 2, rank)
    graph_def = step.graph.to_graph_def()  # nodes of one kind share their properties when they are read
    for node in graph_def.node:
        node.device = cpu(int(node.name[1:]))
    timeline = simulate(placed_parts(graph_def), cluster(devices))
    assert sorted(asked) == ["MatMul", "Placeholder"]
    assert [timeline.memory(cpu(rank)).peak_bytes for rank in range(devices)] == [2 * UNIT] * devices
