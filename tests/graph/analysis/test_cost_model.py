"""Cost models: what is recorded comes back as totals and estimates, models add up, and unknown is not zero."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import InternalError, InvalidArgumentError
from partita.graph.analysis.cost_model import MIN_TIME_US, UNKNOWN, CostModel, min_tensor_memory
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.graph import Graph
from partita.graph.node import Node
from partita.graph.protos import NodeExecStats, StepStats


def _graph() -> tuple[Graph, Node, Node, Node]:
    """A constant c, read twice by s, a Split with two outputs, and n reads one of them."""
    b = GraphBuilder()
    c = b.constant([1.0, 2.0], name="c")
    split = b.op("Split", b.constant(0, "int32", name="axis"), c, num_split=2, name="s")
    b.op("Neg", split[1], name="n", control=[c])
    graph = b.graph()
    c_node, s_node, n_node = (graph.find_node(name) for name in "csn")
    assert c_node is not None
    assert s_node is not None
    assert n_node is not None
    return graph, c_node, s_node, n_node


def _local(graph: Graph) -> CostModel:
    model = CostModel(is_global=False)
    for node in graph.nodes():
        model.set_num_outputs(node, node.num_outputs)
    return model


def test_what_nobody_told_reads_as_the_default() -> None:
    """A node that the model lacks has sizes of 0; outputs that were never measured have UNKNOWN."""
    _, _, s, _ = _graph()
    model = CostModel(is_global=False)
    assert (model.total_count(s), model.total_time(s), model.total_bytes(s, 0)) == (0, 0, 0)
    assert (model.time_estimate(s), model.size_estimate(s, 0)) == (MIN_TIME_US, 0)
    assert (model.max_memory_size(s, 0), model.max_memory_shape(s, 0)) == (0, None)
    assert (model.max_execution_time(s), model.temp_memory_size(s), model.persistent_memory_size(s)) == (0, 0, 0)
    model.set_num_outputs(s, 2)
    assert (model.total_bytes(s, 0), model.max_memory_size(s, 1), model.total_bytes(s, 2)) == (UNKNOWN, UNKNOWN, 0)
    assert (model.allocation_id(s, 0), model.max_memory_type(s, 0)) == (UNKNOWN, DataType.INVALID)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1))
def test_estimates_are_totals_over_counts(runs: list[tuple[int, int, int]]) -> None:
    """Rounded down, and a time is never below a microsecond."""
    graph, _, s, _ = _graph()
    model = _local(graph)
    for count, time, size in runs:
        model.record_count(s, count)
        model.record_time(s, time)
        model.record_size(s, 1, size)
    counts, times, sizes = (sum(column) for column in zip(*runs, strict=True))
    assert (model.total_count(s), model.total_time(s), model.total_bytes(s, 1)) == (counts, times, sizes)
    assert model.time_estimate(s) == max(MIN_TIME_US, times // counts)
    assert model.size_estimate(s, 1) == sizes // counts
    assert model.total_bytes(s, 0) == UNKNOWN


def test_infrequent_nodes_have_no_estimates() -> None:
    """Below half of the median count; a node just at it has no time either, but a size."""
    graph, c, s, n = _graph()
    model = _local(graph)
    for node, count in ((c, 2), (s, 4), (n, 5)):
        model.record_count(node, count)
        model.record_time(node, 100 * count)
        model.record_size(node, 0, 8 * count)
    model.suppress_infrequent()
    assert model.min_count == 2
    assert [model.time_estimate(node) for node in (c, s, n)] == [MIN_TIME_US, 100, 100]
    assert [model.size_estimate(node, 0) for node in (c, s, n)] == [8, 8, 8]
    model.min_count = 3
    assert model.size_estimate(c, 0) == 0


def test_suppressing_without_counts() -> None:
    """If no node ran, one run is too few. If no node is known, nothing changes."""
    graph, *_ = _graph()
    model, empty = _local(graph), CostModel(is_global=False)
    model.suppress_infrequent()
    empty.suppress_infrequent()
    assert (model.min_count, empty.min_count) == (1, 0)


def test_the_largest_output_is_remembered() -> None:
    """With its shape and type; an output that the node does not have is ignored."""
    graph, _, s, _ = _graph()
    model = _local(graph)
    model.record_max_memory_size(s, 1, 8, (2,), DataType.FLOAT)
    model.record_max_memory_size(s, 1, 8, (1, 2), DataType.FLOAT)
    assert (model.max_memory_size(s, 1), model.max_memory_shape(s, 1)) == (8, (2,))
    model.record_max_memory_size(s, 1, UNKNOWN, (3, 4), DataType.DOUBLE)
    assert (model.max_memory_size(s, 1), model.max_memory_type(s, 1)) == (96, DataType.DOUBLE)
    model.record_max_memory_size(s, 2, 8, (2,), DataType.FLOAT)
    assert model.max_memory_size(s, 2) == 0


def test_least_memory_of_a_tensor() -> None:
    """Empty dimensions count as one, an unknown one as -1."""
    assert min_tensor_memory(None, DataType.FLOAT) == UNKNOWN
    assert min_tensor_memory((), DataType.FLOAT) == 4
    assert min_tensor_memory((3, 0, 2), DataType.DOUBLE) == 48
    assert min_tensor_memory((None, 2), DataType.FLOAT) == -8


def test_allocations_and_execution_times() -> None:
    """The longest time counts; memory statistics replace each other; persistent allocations are remembered."""
    graph, _, s, _ = _graph()
    model = _local(graph)
    for time in (5, 9, 7):
        model.record_max_execution_time(s, time)
    model.record_memory_stats(s, 10, 20, [3, 0, -1])
    model.record_memory_stats(s, 1, 2)
    model.record_allocation_id(s, 1, 3)
    assert (model.max_execution_time(s), model.temp_memory_size(s), model.persistent_memory_size(s)) == (9, 1, 2)
    assert [model.is_persistent_tensor(s, number) for number in (3, 0, -1, 4)] == [True, False, False, False]
    assert (model.allocation_id(s, 0), model.allocation_id(s, 1)) == (UNKNOWN, 3)


def test_first_guesses() -> None:
    """One byte per output and one per consumer; one microsecond for nodes that compute; no runs."""
    graph, c, s, n = _graph()
    model = CostModel(is_global=False)
    model.init_from_graph(graph)
    assert [model.total_bytes(c, 0), model.total_bytes(s, 0), model.total_bytes(s, 1)] == [2, 1, 2]
    assert [model.total_time(node) for node in (c, s, n)] == [0, 1, 1]
    assert model.total_count(s) == 0


def test_local_models_add_up_in_a_global_one() -> None:
    """By cost id, which a copy of a graph keeps; an output that was never measured adds nothing."""
    graph, _, s, _ = _graph()
    local, merged = _local(graph), CostModel(is_global=True)
    local.record_count(s, 3)
    local.record_time(s, 30)
    local.record_size(s, 1, 37)
    merged.merge_from_local(graph, local)
    merged.merge_from_local(graph, local)
    assert (merged.total_count(s), merged.total_time(s)) == (6, 60)
    assert (merged.total_bytes(s, 0), merged.total_bytes(s, 1)) == (UNKNOWN, 74)
    other = CostModel(is_global=True)
    other.merge_from_global(merged)
    other.merge_from_global(merged)
    assert (other.total_count(s), other.total_bytes(s, 1)) == (12, 148)
    with pytest.raises(InternalError):
        merged.merge_from_local(graph, other)
    with pytest.raises(InternalError):
        local.merge_from_global(other)


def test_statistics_of_steps_add_up() -> None:
    """One run more for each node that is in the statistics and in the caller's ids."""
    graph, _, s, _ = _graph()
    stats = NodeExecStats(node_name="s", op_start_rel_micros=10, op_end_rel_micros=25)
    stats.output.add(slot=1).tensor_description.allocation_description.requested_bytes = 10
    step = StepStats()
    step.dev_stats.add(node_stats=[stats, NodeExecStats(node_name="stranger")])
    model = CostModel(is_global=True)
    model.merge_from_stats({node.name: node.cost_id for node in graph.nodes()}, step)
    assert (model.total_count(s), model.total_time(s), model.total_bytes(s, 1)) == (1, 15, 10)
    model.merge_from_stats({"s": s.cost_id}, step)
    assert (model.total_count(s), model.total_time(s), model.total_bytes(s, 1)) == (2, 30, 20)


def test_a_node_keeps_its_number_of_outputs() -> None:
    """Another number is an error, and so are records of nodes and outputs that the model lacks."""
    graph, _, s, n = _graph()
    model = _local(graph)
    with pytest.raises(InternalError):
        model.set_num_outputs(s, 3)
    with pytest.raises(InternalError):
        model.record_size(s, 2, 1)
    with pytest.raises(InternalError):
        CostModel(is_global=False).record_count(n, 1)


@pytest.mark.parametrize(
    ("size", "latency_ms", "gigabits_per_s", "us"),
    [(1_000_000, 1.0, 1.0, 9000), (0, 0.5, 10.0, 500), (1000, 0.0, 8.0, 1), (1999, 0.0, 8.0, 1), (125, 0.0015, 1.0, 2)],
)
def test_the_time_of_a_copy_is_latency_and_bytes(size: int, latency_ms: float, gigabits_per_s: float, us: int) -> None:
    """An eighth of a gigabit is 125 bytes in a microsecond; parts of microseconds are dropped once, from the sum."""
    assert CostModel.copy_time_estimate(size, latency_ms, gigabits_per_s) == us


@given(st.integers(0, 2**40), st.floats(0, 100), st.floats(0.1, 1000))
def test_a_copy_of_more_bytes_over_a_slower_network_takes_no_less(size: int, latency_ms: float, rate: float) -> None:
    time = CostModel.copy_time_estimate(size, latency_ms, rate)
    assert CostModel.copy_time_estimate(size + 1000, latency_ms, rate) >= time
    assert CostModel.copy_time_estimate(size, latency_ms, rate / 2) >= time
    assert CostModel.copy_time_estimate(size, latency_ms + 1, rate) in (time + 1000, time + 999, time + 1001)


def test_a_network_has_a_rate() -> None:
    for rate in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidArgumentError, match="a network has a rate above 0"):
            CostModel.copy_time_estimate(1, 0, rate)


def test_an_operation_takes_a_nanosecond() -> None:
    assert [CostModel.computation_time_estimate(ops) for ops in (0, 999, 1000, 123_456, -1)] == [0, 0, 1, 123, 0]
