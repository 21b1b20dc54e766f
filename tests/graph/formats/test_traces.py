"""Traces in all their forms become runs; labels of this package and of TensorFlow are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.formats.trace_runs import iteration_text, runs_of
from partita.graph.formats.traces import step_stats_of
from partita.graph.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats

NAMES = st.from_regex(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*", fullmatch=True)


def stats_of(*records: NodeExecStats, device: str = "/device:CPU:0") -> StepStats:
    return StepStats(dev_stats=[DeviceStepStats(device=device, node_stats=records)])


def record(name: str, rest: str) -> NodeExecStats:
    return NodeExecStats(node_name=name, timeline_label=f"{name} = {rest}", op_end_rel_nanos=1500)


def test_every_form_of_a_trace_gives_the_same_records(tmp_path: Path) -> None:
    """A StepStats and a RunMetadata, as messages, as bytes and in a file."""
    stats = stats_of(record("a", "Neg"))
    whole = RunMetadata(step_stats=stats)
    for message in (stats, whole):
        path = tmp_path / "trace.pb"
        path.write_bytes(message.SerializeToString())
        for source in (message, message.SerializeToString(), path, str(path)):
            assert step_stats_of(source) == stats


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (b"\x00", "neither a StepStats nor a RunMetadata"),
        (RunMetadata(), "has no records; run the step with trace_level=FULL_TRACE"),
        (7, "int is neither a message, bytes, nor a path"),
    ],
)
def test_what_is_no_trace_is_refused(source: object, problem: str) -> None:
    with pytest.raises(InvalidArgumentError, match=problem):
        step_stats_of(source)  # type: ignore[arg-type]  # other types are refused too


@given(NAMES, st.lists(st.tuples(NAMES, st.integers(0, 10**6)), max_size=3), st.dictionaries(NAMES, st.integers(1, 99)))
def test_labels_are_read_back(name: str, iteration: list[tuple[str, int]], calls: dict[str, int]) -> None:
    """Iterations, and how often which function was called."""
    called = ", ".join(f"{function} x{count}" if count > 1 else function for function, count in calls.items())
    where = iteration_text(tuple(iteration))
    label = f"Op{f' calls {called}' if calls else ''}{f' @ {where}' if where else ''}"
    (run,) = runs_of(stats_of(record(name, label)))
    assert (run.node, run.op, run.iteration, run.calls) == (name, "Op", tuple(iteration), calls)


def test_labels_of_tensorflow_have_no_iteration() -> None:
    """Nor has anything that is no label of a node."""
    stats = stats_of(
        record("a", "Neg(x, ^y)"),
        NodeExecStats(node_name="b", timeline_label="[cpu 1.0MB] b = Add(x)"),
        record("c", "?"),
    )
    stats.dev_stats[0].node_stats.add(node_name="RecvTensor", timeline_label="[4B] edge_1_a from x to y")
    assert [(run.node, run.op, run.iteration) for run in runs_of(stats)] == [("a", "Neg", None), ("b", "Add", None)]


def test_times_of_the_hardware_take_precedence() -> None:
    """A node is as long as its kernels together; times in microseconds count where there is nothing finer."""
    stats = stats_of(record("a", "Neg"), NodeExecStats(node_name="b", timeline_label="b = Add", op_end_rel_micros=2))
    kernels = [NodeExecStats(node_name=f"a:kernel{k}", op_end_rel_nanos=40) for k in range(2)]
    stats.dev_stats.add(device="/device:GPU:0/stream:all", node_stats=kernels)
    assert {run.node: run.duration_ns for run in runs_of(stats)} == {"a": 80, "b": 2000}
