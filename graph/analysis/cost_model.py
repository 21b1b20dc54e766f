"""The cost of the nodes of a graph, as measured so far: number of runs, time, and memory.

A local model identifies nodes by their ids, a global one by their cost ids. A quantity that was never recorded reads as
the stated default; negative ids are ignored. Times are microseconds, sizes bytes.

    total = sum of what was recorded        estimate = total / count, at least 1 us for times

The size of an output is `UNKNOWN` while none was recorded, but 0 if the model does not have the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...errors import InternalError, InvalidArgumentError
from ..dtypes import DataType, Shape, item_size
from ..graph import Graph
from ..node import Node
from ..ops.record import NodeClass
from ..protos import StepStats

UNKNOWN = -1
MIN_TIME_US = 1
"""the estimate for nodes that ran too seldom, and the lower bound for others"""
_WORD = 1 << 64


@dataclass(slots=True)
class _CostedOutput:
    total_bytes: int = UNKNOWN
    max_bytes: int = UNKNOWN
    max_shape: Shape = None
    max_type: DataType = DataType.INVALID
    allocation_id: int = UNKNOWN


@dataclass(slots=True)
class _Costs:
    """The recorded costs of one node."""

    count: int = 0
    time_us: int = 0
    max_execution_us: int = 0
    temp_bytes: int = 0
    persistent_bytes: int = 0
    outputs: list[_CostedOutput] = field(default_factory=list)


_NOTHING = _Costs()
_NO_OUTPUT = _CostedOutput(total_bytes=0, max_bytes=0)


class CostModel:
    """The costs of the nodes of one graph (local), or of all graphs of a session (global)."""

    def __init__(self, *, is_global: bool) -> None:
        self.is_global = is_global
        self.min_count = 0
        """nodes that ran at most so often have no estimates yet"""
        self.update_times = 0
        self._nodes: dict[int, _Costs] = {}
        self._persistent: set[int] = set()
        self._persistent_on: dict[str, set[int]] = {}

    def id(self, node: Node) -> int:
        """The key of a node: its id, or in a global model its cost id."""
        return node.cost_id if self.is_global else node.id

    def _known(self, node: Node) -> _Costs:
        return self._nodes.get(self.id(node), _NOTHING)

    def _output(self, node: Node, slot: int) -> _CostedOutput:
        outputs = self._known(node).outputs
        return outputs[slot] if 0 <= slot < len(outputs) else _NO_OUTPUT

    def _ensured(self, number: int, num_outputs: int) -> _Costs:
        """The costs of a node, with room for its outputs; InternalError when it had more outputs before."""
        costs = self._nodes.setdefault(number, _Costs())
        if num_outputs and len(costs.outputs) > num_outputs:
            raise InternalError(f"node {number} had {len(costs.outputs)} outputs before and has {num_outputs} now")
        costs.outputs += [_CostedOutput() for _ in range(num_outputs - len(costs.outputs))]
        return costs

    def set_num_outputs(self, node: Node, num_outputs: int) -> None:
        """Adds a node with its number of outputs; InternalError for another number than before."""
        known = len(self._known(node).outputs)
        if known not in (0, num_outputs):
            raise InternalError(f"{node.name!r} had {known} outputs before and has {num_outputs} now", node=node.name)
        self._ensured(self.id(node), num_outputs)

    # How often, how large, how long

    def record_count(self, node: Node, count: int) -> None:
        """Adds runs of a node; InternalError if the model does not have it."""
        if self.id(node) not in self._nodes:
            raise InternalError(f"{node.name!r} is not known yet; tell how many outputs it has", node=node.name)
        self._nodes[self.id(node)].count += count

    def total_count(self, node: Node) -> int:
        """How often a node ran, 0 if the model does not have it."""
        return self._known(node).count

    def record_size(self, node: Node, slot: int, size: int) -> None:
        """Adds to the size of an output; InternalError if the model does not have it."""
        output = self._output(node, slot)
        if output is _NO_OUTPUT:
            raise InternalError(f"{node.name!r} has no output {slot} that is known", node=node.name)
        output.total_bytes = size if output.total_bytes < 0 else output.total_bytes + size

    def total_bytes(self, node: Node, slot: int) -> int:
        """Size of an output summed over all runs: UNKNOWN if never recorded, 0 if the model does not have it."""
        return self._output(node, slot).total_bytes

    def size_estimate(self, node: Node, slot: int) -> int:
        """Size of an output per run, 0 for a node that ran less often than `min_count`."""
        count = self.total_count(node)
        return 0 if count < self.min_count else _quotient(self.total_bytes(node, slot), max(1, count))

    def record_time(self, node: Node, time_us: int) -> None:
        """Adds to the time of a node; source and sink take none."""
        if node.is_op:
            self._ensured(self.id(node), node.num_outputs).time_us += time_us

    def total_time(self, node: Node) -> int:
        """Time of a node summed over all runs, 0 if the model does not have it."""
        return max(0, self._known(node).time_us)

    def time_estimate(self, node: Node) -> int:
        """Time of a node per run; the lower bound for a node that ran no more often than `min_count`."""
        count = self.total_count(node)
        return MIN_TIME_US if count <= self.min_count else max(MIN_TIME_US, self.total_time(node) // max(1, count))

    @staticmethod
    def copy_time_estimate(size: int, network_latency_ms: float, gigabits_per_s: float) -> int:
        """Microseconds that `size` bytes take over a network, rounded towards 0: the latency, then the bytes.

        Raises InvalidArgumentError unless the rate is above 0.
        """
        if not gigabits_per_s > 0:
            raise InvalidArgumentError(f"gigabits_per_s is {gigabits_per_s}; a network has a rate above 0")
        bytes_per_us = gigabits_per_s * 1000 / 8
        return int(size / bytes_per_us + network_latency_ms * 1000)

    @staticmethod
    def computation_time_estimate(num_ops: int) -> int:
        """Microseconds that `num_ops` operations take at one in a nanosecond, rounded towards 0."""
        return _quotient(num_ops, 1000)

    def suppress_infrequent(self) -> None:
        """From now on, nodes that ran less than half as often as the median of those that ran have no estimates."""
        counts = sorted(costs.count for costs in self._nodes.values() if costs.count > 0)
        if counts:
            self.min_count = counts[len(counts) // 2] // 2
        elif self._nodes:
            self.min_count = 1

    # Memory

    def record_max_memory_size(self, node: Node, slot: int, size: int, shape: Shape, dtype: DataType) -> None:
        """Stores size, shape and type of an output if it is larger than any before; a negative size is computed."""
        if not 0 <= slot < node.num_outputs:
            return
        output = self._ensured(self.id(node), node.num_outputs).outputs[slot]
        size = min_tensor_memory(shape, dtype) if size < 0 else size
        if size > output.max_bytes:
            output.max_bytes, output.max_shape, output.max_type = size, shape, dtype

    def max_memory_size(self, node: Node, slot: int) -> int:
        """Largest size of an output: UNKNOWN if never recorded, 0 if the model does not have it."""
        return self._output(node, slot).max_bytes

    def max_memory_shape(self, node: Node, slot: int) -> Shape:
        """Shape of an output when it was largest, None (unknown rank) if never recorded."""
        return self._output(node, slot).max_shape

    def max_memory_type(self, node: Node, slot: int) -> DataType:
        """Element type of an output when it was largest, INVALID if never recorded."""
        return self._output(node, slot).max_type

    def record_memory_stats(
        self, node: Node, temp_bytes: int, persistent_bytes: int, persistent_ids: Iterable[int] = ()
    ) -> None:
        """Replaces the memory figures of a node; ids of persistent allocations are above 0."""
        costs = self._ensured(self.id(node), node.num_outputs)
        costs.temp_bytes, costs.persistent_bytes = temp_bytes, persistent_bytes
        on_device = self._persistent_on.setdefault(node.assigned_device, set()) if node.assigned_device else set()
        for number in persistent_ids:
            if number > 0:
                self._persistent.add(number)
                on_device.add(number)

    def temp_memory_size(self, node: Node) -> int:
        """Scratch memory of a node, 0 if the model does not have it."""
        return self._known(node).temp_bytes

    def persistent_memory_size(self, node: Node) -> int:
        """Memory that a node keeps after its run, 0 if the model does not have it."""
        return self._known(node).persistent_bytes

    def record_max_execution_time(self, node: Node, time_us: int) -> None:
        """Stores the time of a run if it is the longest so far."""
        costs = self._ensured(self.id(node), node.num_outputs)
        costs.max_execution_us = max(costs.max_execution_us, time_us)

    def max_execution_time(self, node: Node) -> int:
        """The longest time of a run of a node, 0 if the model does not have it."""
        return self._known(node).max_execution_us

    def record_allocation_id(self, node: Node, slot: int, number: int) -> None:
        """Sets the allocation that an output is in; outputs with equal numbers share memory."""
        self._ensured(self.id(node), node.num_outputs).outputs[slot].allocation_id = number

    def allocation_id(self, node: Node, slot: int) -> int:
        """The allocation that an output is in, UNKNOWN if never recorded."""
        return self._output(node, slot).allocation_id

    def is_persistent_tensor(self, node: Node, number: int) -> bool:
        """Whether an allocation outlives the step."""
        return number in self._persistent or number in self._persistent_on.get(node.assigned_device, ())

    # Many facts at once

    def init_from_graph(self, graph: Graph) -> None:
        """First guesses: an output has one byte and one per consumer; nodes take 1 us, constants and variables none."""
        for node in graph.nodes():
            self.set_num_outputs(node, node.num_outputs)
            for slot in range(node.num_outputs):
                self.record_size(node, slot, 1)
            for edge in node.out_edges():
                if not edge.is_control:
                    self.record_size(node, edge.src_output, 1)
            is_there = node.node_class in (NodeClass.CONSTANT, NodeClass.VARIABLE)
            self.record_time(node, 0 if is_there else MIN_TIME_US)

    def merge_from_local(self, graph: Graph, local: CostModel) -> None:
        """Adds counts, times and sizes of a local model of `graph` to this global one; InternalError for others."""
        if local.is_global or not self.is_global:
            raise InternalError("a local model is merged into a global one; swap the two")
        for node in graph.nodes():
            costs = local._nodes.get(local.id(node))
            if costs is not None:
                self._add(self.id(node), costs)

    def merge_from_global(self, other: CostModel) -> None:
        """Adds counts, times and sizes of another global model to this one; InternalError for other kinds."""
        if not (self.is_global and other.is_global):
            raise InternalError("only two global models know nodes by the same numbers")
        for number, costs in other._nodes.items():
            self._add(number, costs)

    def _add(self, number: int, other: _Costs) -> None:
        costs = self._ensured(number, len(other.outputs))
        costs.count += other.count
        costs.time_us += other.time_us
        for output, added in zip(costs.outputs, other.outputs, strict=True):
            output.total_bytes = _sum(output.total_bytes, added.total_bytes)

    def merge_from_stats(self, cost_ids: Mapping[str, int], stats: StepStats) -> None:
        """Adds one run of every node that is both in the statistics of a step and in `cost_ids` (by node name)."""
        for device in stats.dev_stats:
            for node in device.node_stats:
                number = cost_ids.get(node.node_name, UNKNOWN)
                if number < 0:
                    continue
                costs = self._ensured(number, max(len(node.output), *(output.slot + 1 for output in node.output), 0))
                costs.count += 1
                costs.time_us += node.op_end_rel_micros - node.op_start_rel_micros
                for output in node.output:
                    size = output.tensor_description.allocation_description.requested_bytes
                    known = costs.outputs[output.slot]
                    known.total_bytes = _sum(known.total_bytes, size)


def _sum(known: int, added: int) -> int:
    """A sum in which either operand may be UNKNOWN."""
    return known if added < 0 else added if known < 0 else known + added


def _quotient(total: int, count: int) -> int:
    """Integer division as in C, towards 0: UNKNOWN over many runs is 0."""
    return total // count if total >= 0 else -(-total // count)


def min_tensor_memory(shape: Shape, dtype: DataType) -> int:
    """Least bytes of a tensor: elements times their size, a size of 0 counting as 1; UNKNOWN for an unknown rank.

    As in TensorFlow, an unknown size counts as 2**64 - 1 in 64-bit arithmetic, that is, as -1.
    """
    if shape is None:
        return UNKNOWN
    elements = 1
    for size in shape:
        elements = elements * (_WORD - 1 if size is None else max(size, 1)) % _WORD
    size = elements * item_size(dtype) % _WORD
    return size - _WORD if size >= _WORD >> 1 else size
