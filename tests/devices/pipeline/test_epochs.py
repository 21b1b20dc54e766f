"""Cutting with scheduled receives: the triggers are TensorFlow's, no value changes, and whatever times are given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import BlockingSession, open_session
from partita.devices import cut, local_cluster, simulate
from partita.devices.pipeline import Pipeline, Pruned
from partita.devices.pipeline.epochs import RecvEpochs, start_times_of
from partita.devices.timing import Timeline, start_times
from partita.errors import InvalidArgumentError
from partita.graph import ConfigProto, NodeDef, RunOptions, add_control_edges, graph_def_to_graph
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array, DataType, numpy_dtype
from partita.graph.partition.options import PartitionOptions
from partita.graph.partition.split import partition
from partita.graph.tensor_id import parse_tensor_name
from partita.scenarios.workloads.resnet50 import resnet50
from tests.actors.programs import Program, programs
from tests.actors.sessions.deployments import Deployment
from tests.conformance.corpus import Case, cases
from tests.large_graphs import counted_loop
from tests.runs import assert_same_values, values
from tests.strategies import GraphCase, cpu, placed_cases

GPUS = [f"/device:GPU:{k}" for k in range(4)]
PIPELINE = local_cluster("cpu:1,gpu:4")


@contextmanager
def cutting(epochs: RecvEpochs) -> Iterator[None]:
    """Local sessions cut with scheduled receives, which they never do by themselves."""
    plain = Pruned.cut
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pruned, "cut", lambda pruned: plain(pruned, epochs))
        yield


def step(recv_epochs: RecvEpochs = False) -> Timeline:
    """The shipped pipeline over four GPUs."""
    graph_def = resnet50(GPUS, 224, 64, 8)
    parts = cut(graph_def, PIPELINE, feeds=["images"], fetches=["logits"], recv_epochs=recv_epochs)
    return simulate(parts, PIPELINE, feeds={"images": (64, 224, 224, 3)})


def test_a_pipeline_needs_less_memory_and_no_more_time() -> None:
    """With guessed start times, and with those of a timeline; triggers are free and the feeds keep their shapes."""
    plain = step()
    for scheduled in (step(True), step(start_times(plain))):
        assert scheduled.makespan_ns <= plain.makespan_ns
        assert scheduled.peak_memory_bytes(PIPELINE.names[1]) < 0.83 * plain.peak_memory_bytes(PIPELINE.names[1])
        triggers = [event for event in scheduled.events if event.op == "ControlTrigger"]
        assert triggers
        assert not any(event.duration_ns for event in triggers)


@given(placed_cases())
def test_parts_are_those_of_the_partitioner(placed: tuple[GraphCase, dict[str, str]]) -> None:
    """`cut` adds nothing to what `partition` and `add_control_edges` make of the same start times."""
    case, placement = placed
    pipeline = Pipeline(local_cluster("cpu:4"))
    pruned = pipeline.read(case.on(placement)).lower().place().prune(list(case.feeds), case.fetches, case.targets)
    times = start_times_of(pruned.graph, True)
    how = PartitionOptions(need_to_record_start_times=True, scheduling_for_recvs=True, start_times=times)
    expected = add_control_edges(partition(pruned.graph, how), how)
    parts = cut(
        case.on(placement),
        "cpu:4",
        feeds=list(case.feeds),
        fetches=case.fetches,
        targets=case.targets,
        recv_epochs=True,
    )
    assert {name: part.to_graph_def() for name, part in parts.items()} == {
        name: graph_def_to_graph(part, allow_internal_names=True, expect_device=True).to_graph_def()
        for name, part in expected.items()
    }


@given(placed_cases(), st.booleans(), st.randoms(use_true_random=False))
async def test_no_value_changes(placed: tuple[GraphCase, dict[str, str]], is_guessed: bool, random: Random) -> None:
    """Not even with start times that are drawn by chance, in no relation to the edges."""
    case, placement = placed
    graph_def = case.on(placement)
    expected = await values(graph_def, case)
    with cutting(is_guessed or {node.name: random.randrange(10_000) for node in graph_def.node}):
        assert_same_values(await values(graph_def, case), expected)


@settings(max_examples=25)
@given(programs(), st.booleans(), st.randoms(use_true_random=False))
async def test_no_value_of_a_loop_changes(case: Program, is_guessed: bool, random: Random) -> None:
    """Loops and conditionals over four devices; dead fetches stay errors."""
    times = {node.name: random.randrange(10_000) for node in case.graph_def.node}
    expected = await outcomes(Deployment.LOCAL, case)
    with cutting(is_guessed or times):
        assert await outcomes(Deployment.LOCAL, case) == expected


@settings(max_examples=10)
@given(programs())
async def test_no_value_of_a_loop_over_tasks_changes(case: Program) -> None:
    """Workers schedule receives when the session asks for it, by the guess of the master."""
    scheduling = ConfigProto()
    scheduling.graph_options.enable_recv_scheduling = True
    expected = await outcomes(Deployment.LOCAL, case)
    assert await outcomes(Deployment.TWO_TASKS, case, config=scheduling) == expected


async def outcomes(deployment: Deployment, case: Program, **settings: ConfigProto) -> list[object]:
    """Every fetch of a program as nested lists; None if it fails."""
    fetched: list[object] = []
    async with deployment.open(case.graph_def, 4, **settings) as session:
        for name in case.fetches:
            try:
                fetched += [value.tolist() for value in await session.run([name], case.feeds)]
            except InvalidArgumentError:
                fetched.append(None)
    return fetched


CANNOT_RUN = {
    *("all_preset_no_record", "preset_1"),  # made of a cut with other placeholders
    *("shapes_gpu_n200_path", "shapes_gpu_n80_path", "rand_shapes_n1000_s109", "rand_shapes_n40_s101"),
    *("concat_axis_0", "concat_axis_1", "slices", "strings", "var_fifo_queue_g2", "var_ps_momentum_ref_d3_mix"),
    *("cf_while_resource_update_mix", "model_dp_train_d4_ref_g4", "model_train_cnn_adam_model_d4_g4"),
}
"""cases that need other values than ones, or variables that another request sets"""
RUNNABLE = [case for family in ("epochs", "gpu_partition") for case in cases(family) if case.name not in CANNOT_RUN]


@pytest.mark.parametrize("case", RUNNABLE, ids=lambda case: case.path)
async def test_no_value_of_the_corpus_changes(case: Case) -> None:
    """TensorFlow's graphs over CPUs and GPUs, with feeds made up here: these families have none."""
    expected = await values_of(case)
    with cutting(True):
        assert_same_values(await values_of(case), expected)


async def values_of(case: Case) -> list[Array]:
    """What the first step of a case fetches."""
    graph_def, step = case.graph_def(), case.steps()[0]
    counts: Counter[str] = Counter()
    for kind, index in re.findall(r"device:(\w+):(\d+)", " ".join(node.device for node in graph_def.node)):
        counts[kind] = max(counts[kind], int(index) + 1)
    devices = ",".join(f"{kind.lower()}:{count}" for kind, count in counts.items())
    nodes = {node.name: node for node in graph_def.node}
    feeds = {name: made_up(nodes[parse_tensor_name(name).node]) for name in step.feeds}
    async with open_session(graph_def, devices) as session:
        return await session.run(step.fetches, feeds, step.targets)


def made_up(placeholder: NodeDef) -> Array:
    """Ones for a placeholder, in two rows where their number is unknown."""
    sizes = [2 if dim.size < 0 else dim.size for dim in placeholder.attr["shape"].shape.dim]
    dtype = DataType(placeholder.attr["dtype" if "dtype" in placeholder.attr else "T"].type)
    return np.full(sizes, b"1" if dtype is DataType.STRING else 1, numpy_dtype(dtype))


def ladder() -> GraphBuilder:
    """x -> a -> b -> y, b on the second CPU."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    for name, device in (("a", "CPU:0"), ("b", "CPU:1"), ("y", "CPU:0")):
        x = b.op("Neg", x, name=name, device=f"/device:{device}")[0]
    return b


@pytest.mark.parametrize(
    ("given_times", "expected"),
    [
        pytest.param({"x": 5, "b": 40}, [5, 5, 40, 40], id="what has no time starts with its producers"),
        pytest.param({"b": 40, "y": 30, "a": 7}, [0, 7, 40, 40], id="no node starts before its producers"),
        pytest.param({"y": np.int64(3), "x/_0": 9}, [0, 0, 0, 3], id="other nodes do not matter"),
    ],
)
def test_given_times_are_made_those_of_the_graph(given_times: dict[str, int], expected: list[int]) -> None:
    """Every node has a time, and no time contradicts an edge."""
    graph = graph_def_to_graph(ladder().graph_def())
    assert [start_times_of(graph, given_times)[name] for name in ("x", "a", "b", "y")] == expected


def test_the_guess_waits_for_both_branches() -> None:
    """What follows a Merge comes after the long branch too, which would wait for it on the second device otherwise."""
    b = GraphBuilder()
    x, chosen = b.placeholder("x", "float32", ()), b.placeholder("chosen", "bool", ())
    short, long = b.op("Switch", x, chosen)
    for _ in range(60):
        long = b.op("Neg", long, device=cpu(0))[0]
    merged = b.op("Merge", [short, b.op("Neg", long, device=cpu(1))], device=cpu(0))[0]
    y = b.op("Neg", merged, name="y", device=cpu(1))
    with cutting(True), BlockingSession(b.graph_def(), "cpu:2") as session:
        assert session.run(y, {x: 3.0, chosen: True}, options=RunOptions(timeout_in_ms=10_000)) == [3]


def test_all_of_a_loop_starts_with_the_last_of_it() -> None:
    """What follows a loop waits for the counter of the last iteration but one, along the back edge."""
    graph = graph_def_to_graph(counted_loop(3))
    counter = next(node.name for node in graph.op_nodes() if node.op == "AddV2")
    times = start_times_of(graph, {counter: 100})
    assert (times["x"], times[counter], times["sum"]) == (0, 100, 100)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        1,
        "all",
        ["x"],
        {},
        {"nobody": 1},
        {"x": -1},
        {"x": 1.5},
        {"x": True},
        {"x": "soon"},
        {"x": 2**63},
        {3: 1},
    ],
    ids=repr,
)
def test_other_values_are_refused(wrong: object) -> None:
    """One error that says what to give."""
    with pytest.raises(InvalidArgumentError, match=r"^recv_epochs: .*give True"):
        cut(ladder(), "cpu:2", feeds="x", fetches="y", recv_epochs=wrong)  # type: ignore[arg-type]  # on purpose
