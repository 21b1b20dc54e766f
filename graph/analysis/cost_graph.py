"""Cost models of the graphs of a session: kept by graph, updated from step statistics, written as CostGraphDef.

A graph has one local model, which begins with the guesses of `init_from_graph`. In a CostGraphDef of several graphs the
node ids of each continue after those of the one before, so they are unique.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...errors import InvalidArgumentError
from ..graph import Graph
from ..node import Node
from ..protos import CostGraphDef, NodeExecStats, StepStats
from ..tensor import recorded_shape, shape_to_proto
from .cost_model import UNKNOWN, CostModel

_HARDWARE = "/stream:all"  # ends the name of a device whose statistics are those of the hardware itself


class CostModels:
    """The models of the graphs of a session."""

    def __init__(self) -> None:
        self._models: dict[Graph, CostModel] = {}

    def find_or_create(self, graph: Graph) -> CostModel:
        model = self._models.get(graph)
        if model is None:
            model = self._models[graph] = CostModel(is_global=False)
            model.init_from_graph(graph)
        return model

    def remove(self, graph: Graph) -> bool:
        """Removes the model of a graph; returns whether there was one."""
        return self._models.pop(graph, None) is not None

    def add_to_cost_graph(self, graph: Graph, message: CostGraphDef) -> None:
        """Appends the nodes of a graph to a message; InvalidArgumentError for a graph without a model."""
        model = self._models.get(graph)
        if model is None:
            raise InvalidArgumentError("The cost model graph doesn't exist.")
        write_cost_graph(model, graph, message)

    def add_all(self, graphs: Iterable[Graph], message: CostGraphDef) -> None:
        """Appends the nodes of several graphs, with or without models."""
        for graph in graphs:
            self.find_or_create(graph)
            self.add_to_cost_graph(graph, message)

    def learn(self, stats: StepStats, graphs: Mapping[str, Graph]) -> None:
        """Adds the statistics of a step to the models of the graphs of its devices (by full device name).

        Times measured by the hardware take precedence over those that the executor measured.
        """
        hardware = _hardware_times(stats)
        for device in stats.dev_stats:
            graph = graphs.get(device.device)
            if graph is None:
                continue
            model = self.find_or_create(graph)
            model.update_times += 1
            for node_stats in device.node_stats:
                node = graph.find_node(node_stats.node_name)
                if node is not None:
                    _learn_node(model, node, node_stats, hardware.get(device.device, {}))


def _hardware_times(stats: StepStats) -> dict[str, dict[str, int]]:
    """Device -> node -> microseconds on the hardware, summed over all kernels that a node launched."""
    times_of: dict[str, dict[str, int]] = {}
    for device in stats.dev_stats:
        if device.device.endswith(_HARDWARE):
            times = times_of.setdefault(device.device.removesuffix(_HARDWARE), {})
            for node in device.node_stats:
                name = node.node_name.partition(":")[0]
                times[name] = times.get(name, 0) + node.op_end_rel_micros
    return times_of


def _learn_node(model: CostModel, node: Node, stats: NodeExecStats, hardware: Mapping[str, int]) -> None:
    for output in stats.output:
        description = output.tensor_description
        if output.slot < node.num_outputs:
            size, shape = description.allocation_description.allocated_bytes, recorded_shape(description.shape)
            model.record_max_memory_size(node, output.slot, size, shape, node.output_types[output.slot])
            number = description.allocation_description.allocation_id
            model.record_allocation_id(node, output.slot, number)
    memory = stats.memory_stats
    persistent = memory.persistent_tensor_alloc_ids
    model.record_memory_stats(node, memory.temp_memory_size, memory.persistent_memory_size, persistent)
    model.record_max_execution_time(node, hardware.get(node.name, stats.op_end_rel_micros))


def write_cost_graph(model: CostModel, graph: Graph, cost_graph: CostGraphDef) -> None:
    """Appends all nodes of a graph, source and sink too, with their costs in a model."""
    first = max((node.id for node in cost_graph.node), default=-1) + 1
    for node in graph.nodes():
        message = cost_graph.node.add(name=node.name, device=node.assigned_device, id=first + model.id(node))
        inputs = sorted((edge for edge in node.in_edges() if not edge.is_control), key=lambda edge: edge.dst_input)
        for edge in inputs:
            message.input_info.add(preceding_node=first + model.id(edge.src), preceding_port=edge.src_output)
        producers = [model.allocation_id(edge.src, edge.src_output) for edge in inputs]
        for slot in range(node.num_outputs):
            _write_output(model, node, slot, producers, message)
        controls = sorted(first + model.id(edge.src) for edge in node.in_edges() if edge.is_control)
        message.control_input.extend(controls)
        message.temporary_memory_size = model.temp_memory_size(node)
        message.persistent_memory_size = model.persistent_memory_size(node)
        message.compute_cost = model.max_execution_time(node)
        message.is_final = node.is_send


def _write_output(model: CostModel, node: Node, slot: int, producers: list[int], message: CostGraphDef.Node) -> None:
    """An output aliases the first input in the same allocation; untracked tensors count as sharing one allocation."""
    number = model.allocation_id(node, slot)
    alias = producers.index(number) if number in producers else UNKNOWN
    is_kept = alias < 0 and model.is_persistent_tensor(node, number)
    message.output_info.add(
        alias_input_port=alias,
        dtype=int(model.max_memory_type(node, slot)),
        shape=shape_to_proto(model.max_memory_shape(node, slot)),
        size=0 if is_kept else model.max_memory_size(node, slot),
    )
