"""Cost models of graphs: fed from a step's statistics, written as CostGraphDef."""

from __future__ import annotations

import pytest

from partita.errors import InvalidArgumentError
from partita.graph.analysis.cost_graph import CostModels
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.graph import Graph
from partita.graph.protos import CostGraphDef, NodeExecStats, StepStats, TensorShapeProto

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def _graph() -> Graph:
    b = GraphBuilder()
    c = b.constant([1.0, 2.0], name="c")
    b.op("Neg", c, name="n", control=[b.op("NoOp", name="z"), b.op("NoOp", name="a")])
    return b.graph()


def _stats(name: str, end_us: int, *, size: int = 8, allocation: int = 0) -> NodeExecStats:
    stats = NodeExecStats(node_name=name, op_start_rel_micros=1, op_end_rel_micros=end_us)
    description = stats.output.add(slot=0).tensor_description
    description.shape.CopyFrom(TensorShapeProto(dim=[TensorShapeProto.Dim(size=2)]))
    description.allocation_description.allocated_bytes = size
    description.allocation_description.allocation_id = allocation
    return stats


def _written(models: CostModels, graph: Graph) -> dict[str, CostGraphDef.Node]:
    cost_graph = CostGraphDef()
    models.add_to_cost_graph(graph, cost_graph)
    return {node.name: node for node in cost_graph.node}


def test_a_graph_has_one_model_until_it_is_forgotten() -> None:
    """Adding a graph without a model to a message is an InvalidArgumentError."""
    models, graph = CostModels(), _graph()
    with pytest.raises(InvalidArgumentError, match="The cost model graph doesn't exist"):
        models.add_to_cost_graph(graph, CostGraphDef())
    assert models.find_or_create(graph) is models.find_or_create(graph)
    assert models.remove(graph)
    assert not models.remove(graph)


def test_a_step_tells_sizes_times_and_allocations() -> None:
    """The end of a node counts as its time; an output in the allocation of an input aliases it."""
    models, graph = CostModels(), _graph()
    step = StepStats()
    step.dev_stats.add(device=CPU, node_stats=[_stats("c", 3, allocation=7), _stats("n", 9, allocation=7)])
    step.dev_stats.add(device="/job:elsewhere", node_stats=[_stats("n", 90)])
    models.learn(step, {CPU: graph})
    assert models.find_or_create(graph).update_times == 1
    node = _written(models, graph)["n"]
    assert (node.compute_cost, node.output_info[0].alias_input_port, node.output_info[0].size) == (9, 0, 8)
    assert (int(node.output_info[0].dtype), node.output_info[0].shape.dim[0].size) == (int(DataType.FLOAT), 2)


def test_what_the_hardware_says_goes_before_what_the_executor_saw() -> None:
    """All kernels of a node are added up."""
    models, graph = CostModels(), _graph()
    step = StepStats()
    step.dev_stats.add(device=CPU, node_stats=[_stats("n", 9)])
    kernels = [NodeExecStats(node_name=f"n:kernel{i}", op_end_rel_micros=20) for i in range(2)]
    step.dev_stats.add(device=f"{CPU}/stream:all", node_stats=kernels)
    models.learn(step, {CPU: graph})
    assert _written(models, graph)["n"].compute_cost == 40


def test_every_node_is_written_with_its_inputs() -> None:
    """Source and sink too; control inputs by id; outputs never measured have no size and alias the first input."""
    models, graph = CostModels(), _graph()
    models.find_or_create(graph)
    nodes = _written(models, graph)
    assert [node.id for node in nodes.values()] == list(range(graph.num_node_ids))
    n = nodes["n"]
    assert [(i.preceding_node, i.preceding_port) for i in n.input_info] == [(nodes["c"].id, 0)]
    assert list(n.control_input) == sorted([nodes["a"].id, nodes["z"].id])
    assert (n.output_info[0].size, n.output_info[0].alias_input_port) == (-1, 0)
    assert n.output_info[0].shape.unknown_rank


def test_a_persistent_output_takes_no_memory_of_the_step() -> None:
    """Unless it is an input's memory anyway."""
    models, graph = CostModels(), _graph()
    step = StepStats()
    constant = _stats("c", 3, allocation=7)
    constant.memory_stats.persistent_memory_size = 8
    constant.memory_stats.persistent_tensor_alloc_ids.append(7)
    step.dev_stats.add(device=CPU, node_stats=[constant])
    models.learn(step, {CPU: graph})
    c = _written(models, graph)["c"]
    assert (c.output_info[0].size, c.persistent_memory_size) == (0, 8)


def test_ids_of_several_graphs_are_unique() -> None:
    """The ids of the second graph continue those of the first."""
    models, cost_graph = CostModels(), CostGraphDef()
    for graph in (_graph(), _graph()):
        models.find_or_create(graph)
        models.add_to_cost_graph(graph, cost_graph)
    assert [node.id for node in cost_graph.node] == list(range(len(cost_graph.node)))
