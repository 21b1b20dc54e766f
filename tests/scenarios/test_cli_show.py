"""`partita show`: the text of every stage, the choice of device and nodes, and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.graph.builder import GraphBuilder
from tests.function_defs import func_attr, function_of
from tests.goldens import assert_text
from tests.scenarios.command_line import CPU, CommandLine, assert_one_clear_line

STAGES = ["raw", "lowered", "placed", "pruned", "partitioned", "optimised", "plan"]


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_printed_the_same_each_time(partita: CommandLine, graph: Path, stage: str) -> None:
    flags = ["--feed", "x", "--devices", "cpu:2", "--stage", stage]
    text = partita.done("show", graph, *flags)
    assert text == partita.done("show", graph, *flags)
    assert "MatMul" in text


def test_the_parts_are_shown_with_their_transfers(partita: CommandLine, graph: Path) -> None:
    """Without --stage the graph of each device is printed, with --device that of one."""
    text = partita.done("show", graph, "--feed", "x", "--devices", "cpu:2")
    assert [line.split(": ")[0] for line in text.splitlines() if line.startswith("/job")] == [f"{CPU}0", f"{CPU}1"]
    part = partita.done("show", graph, "--feed", "x", "--devices", "cpu:2", "--device", "cpu:1")
    assert part in f"{text}\n"
    assert "_Recv" in part
    assert part == partita.done("show", graph, "--feed", "x", "--devices", "cpu:2", "--device", f"{CPU}1")


def test_nodes_are_chosen_by_name_and_device(partita: CommandLine, graph: Path) -> None:
    text = partita.done("show", graph, "--stage", "raw", "--node", "y*").splitlines()
    assert len(text) == 2
    assert text[1].startswith("y: float = ")
    placed = partita.done("show", graph, "--stage", "placed", "--devices", "cpu:2", "--device", "cpu:1").splitlines()
    assert all(line.endswith("@CPU:1") for line in placed[1:])


def test_a_plan_names_the_functions_that_it_calls(partita: CommandLine, tmp_path: Path) -> None:
    """A short function is one instruction of its caller; a loop that is not lowered starts as a deferred node."""
    b = GraphBuilder()
    for name, op, other in (("Squared", "Mul", "x:0"), ("Below", "Less", 100.0)):
        body = GraphBuilder()
        body.op(op, body.placeholder("x", "float32"), other, name="y")
        b.function(function_of(name, body.graph_def(), ["x:0"], ["y:0"]))
    x = b.placeholder("x", "float32", ())
    call = b.op("PartitionedCall", [x], name="call", Tout=["float32"], f=func_attr("Squared"))
    b.op("While", [call[0]], name="loop", T=["float32"], cond=func_attr("Below"), body=func_attr("Squared"))
    path = tmp_path / "calls.pb"
    path.write_bytes(b.graph_def().SerializeToString())
    flags = "--feed", "x", "--fetch", "loop", "--devices", "cpu:1"
    text = partita.done("show", path, "--stage", "plan", *flags, "--no-inline")
    assert "PartitionedCall" not in partita.done("show", path, "--stage", "plan", *flags)
    assert_text(
        text,
        """
        plan of /job:localhost/replica:0/task:0/device:CPU:0
          slots 8
          argument 0 (float) -> s5
        segment 0, at once
          s7 = PartitionedCall(s5)    # call: calls Squared
          While(s7)    # loop: call 0
        segment 1, after call 0
        result 0 (float) = s6
        call 0, loop -> s6
          starts While, which calls Squared, Below
        """,
    )


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--stage", "raw", "--device", "cpu:0"], "the nodes of a raw graph have no device yet"),
        (["--stage", "plan", "--node", "x"], "a plan has instructions, not nodes"),
        (["--devices", "cpu:2", "--device", "gpu:0"], "there is no device 'gpu:0'; the cluster has cpu:0, cpu:1"),
        (["--fetch", "nothing"], "nothing"),
    ],
)
def test_what_cannot_be_shown(partita: CommandLine, graph: Path, flags: list[str], problem: str) -> None:
    assert_one_clear_line(partita("show", graph, *flags), 2, problem)
