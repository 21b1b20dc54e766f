"""Partition graphs equal TensorFlow's: names, inputs and attrs, where those are determined.

Each new step of a case is cut and compared with a session dump and with the raw output of Partition(), at L3, or at L2
where TensorFlow's names depend on hash order. Graphs over several tasks are cut twice; the master's shares are compared
too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from partita.graph import add_control_edges
from partita.graph.dtypes import DataType, base_type, parse_dtype
from partita.graph.graph import Graph
from partita.graph.node import Edge
from partita.graph.partition.options import PartitionOptions, name_counter
from partita.graph.partition.split import partition
from partita.graph.passes.client_graph import build_client_graph
from partita.graph.passes.client_request import ClientRequest
from partita.graph.protos import GraphDef
from partita.graph.tasks import partition_by_task, partition_within_task
from tests.conformance.compare import compare
from tests.conformance.corpus import Case, Step, cases

BY_DEVICE = ("elementary", "random", "models", "control_flow", "casts", "gpu_partition", "epochs", "collectives")
CASES = [case for family in BY_DEVICE for case in cases(family)]
OVER_TASKS = cases("tasks")
Parts = Mapping[str, GraphDef]


def options_of(case: Case) -> Mapping[str, Any]:  # Any: JSON
    """The options of the cut; empty for the default of a session."""
    options: Mapping[str, Any] = case.info.get("options", {})
    return options


def cast_rule(case: Case) -> Callable[[Edge], DataType] | None:
    """The rule by which the case narrows transferred tensors, as an argument of the partitioner."""
    rule = options_of(case).get("should_cast")
    if rule is None:
        return None
    narrowed = {parse_dtype(source): parse_dtype(target) for source, target in rule["data"].items()}
    control = DataType.FLOAT if rule["control"] is None else parse_dtype(rule["control"])

    def should_cast(edge: Edge) -> DataType:
        if edge.is_control:
            return control
        dtype = base_type(edge.src.output_types[edge.src_output])
        return narrowed.get(dtype, dtype)

    return should_cast


def how_to_cut(case: Case, counter: int, separator: str = "/_") -> PartitionOptions:
    """The options of the case's partitioning, with generated names numbered from `counter`."""
    options = options_of(case)
    incarnations: dict[str, int] = options.get("incarnations", {})
    return PartitionOptions(
        new_name=name_counter(counter, separator),
        get_incarnation=lambda device: incarnations.get(device, 1),
        should_cast=cast_rule(case),
        scheduling_for_recvs=options.get("scheduling_for_recvs", False),
        need_to_record_start_times=options.get("need_to_record_start_times", False),
        start_times=options.get("start_times", {}),
        start_time_of_loop_nodes=options.get("start_time_of_loop_nodes", 0),
    )


def client(case: Case, step: Step) -> Graph:
    """The graph that is cut for a step."""
    options = options_of(case)
    device = options.get("client_device", case.devices[0])
    request = ClientRequest(
        list(step.feeds),
        step.fetches,
        step.targets,
        device=device,
        by_rendezvous=not options.get("function_convention", True),
        incarnation=options.get("incarnations", {}).get(device, 1),
    )
    return build_client_graph(case.graph_def(), request)


def scheduled(parts: Parts, order: Sequence[str] | None, how: PartitionOptions) -> Parts:
    """`parts` with scheduled receives, if the case has them; names are numbered in the order of `parts`."""
    if order and how.scheduling_for_recvs:
        add_control_edges({device: parts[device] for device in order}, how)
    return parts


def cut(case: Case, step: Step) -> Parts:
    """Partita's partition graphs of a step, by device."""
    how = how_to_cut(case, step.name_counter_start or 0)
    return scheduled(partition(client(case, step), how), options_of(case).get("synch_device_order"), how)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_partitions_equal_tensorflow(case: Case) -> None:
    """For every new step of the case."""
    original = {node.name for node in case.graph_def().node}
    for step in (step for step in case.steps() if step.is_new):
        ours, known = cut(case, step), [parts for parts in (step.raw(), step.dump()) if parts]
        assert known
        for theirs in known:
            result = compare(theirs, ours, original)
            assert result.agrees(case.level), f"step {step.index}\n{result.report(case.level)}"


@pytest.mark.parametrize("case", OVER_TASKS, ids=lambda case: case.path)
def test_master_and_workers_cut_as_tensorflow(case: Case) -> None:
    """The shares of tasks, and their workers' partitions, equal those of a distributed session."""
    options = options_of(case)
    original = {node.name for node in case.graph_def().node}
    (step,) = case.steps()
    how = how_to_cut(case, 0, "_S")
    if not options.get("master_knows_incarnations", True):
        how = replace(how, get_incarnation=lambda _device: 0)
    shares = partition_by_task(client(case, step), how)
    files = case.info["master_partition_files"]
    result = compare({task: step.master(file) for task, file in files.items()}, shares, original)
    assert result.agrees(case.level), result.report(case.level)
    parts: dict[str, GraphDef] = {}
    for task, share in shares.items():
        worker = how_to_cut(case, 0, "_G")
        order = options.get("synch_device_order", {}).get(task)
        parts.update(scheduled(partition_within_task(share, task, worker), order, worker))
    result = compare(step.raw(), parts, original)
    assert result.agrees(case.level), result.report(case.level)


def test_no_case_is_left_out() -> None:
    """Every case with partitions of a whole graph is compared above, with loops too."""
    assert len(CASES) == sum(len(cases(family)) for family in BY_DEVICE) >= 80
    assert len(OVER_TASKS) >= 3
    assert sum(case.has_loop for case in CASES) >= 10
