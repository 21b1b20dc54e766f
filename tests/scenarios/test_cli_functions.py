"""Graphs with functions on the command line: run, simulated, partitioned and inspected."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from partita.graph import load_graph_def
from partita.graph.builder import GraphBuilder
from partita.graph.protos import AttrValue, FunctionDef
from tests.actors.call_chains import chain, frames_left
from tests.conformance.corpus import COMMITTED
from tests.function_defs import LOWER, func_attr, function_of
from tests.scenarios.command_line import CommandLine, assert_one_clear_line

KERAS = COMMITTED / "saved_model" / "keras_mlp"


def unary(name: str, op: str) -> FunctionDef:
    """A function of one float on the second device."""
    b = GraphBuilder()
    b.op(op, b.placeholder("x", "float32"), name="y", device="/device:CPU:1")
    return function_of(name, b.graph_def(), ["x:0"], ["y:0"])


@pytest.fixture
def conditional(tmp_path: Path) -> Path:
    """A graph that negates or squares `x`, as `taken` says."""
    b = GraphBuilder()
    b.function(unary("T", "Neg"))
    b.function(unary("F", "Square"))
    taken, x = b.placeholder("taken", "bool", ()), b.placeholder("x", "float32", (3,))
    branches = {"then_branch": func_attr("T"), "else_branch": func_attr("F"), LOWER: AttrValue(b=True)}
    c = b.op("StatelessIf", taken, [x], name="c", Tout=["float32"], attrs=branches)
    b.op("Identity", c[0], name="out")
    path = tmp_path / "conditional.pb"
    path.write_bytes(b.graph_def().SerializeToString())
    return path


@pytest.fixture
def feeds(tmp_path: Path) -> list[str]:
    """Flags that feed the graph."""
    np.save(tmp_path / "taken.npy", np.array(False))
    np.save(tmp_path / "x.npy", np.array([1, 2, 3], np.float32))
    return ["--feed", f"taken={tmp_path / 'taken.npy'}", "--feed", f"x={tmp_path / 'x.npy'}", "--devices", "cpu:2"]


def test_run_fetches_the_ends_of_the_graph_as_written(
    partita: CommandLine, conditional: Path, feeds: list[str]
) -> None:
    """Nodes that lowering adds are not default fetches: they may be in the branch that is not taken."""
    text = partita.done("run", conditional, *feeds)
    assert "1 values fetched" in text or "1 value fetched" in text
    assert "out  float [3] 1, 4, 9" in text


def test_partition_and_simulate_see_the_lowered_graph(
    partita: CommandLine, conditional: Path, feeds: list[str], tmp_path: Path
) -> None:
    """Branches go to their devices, and their time is counted."""
    partita.done("partition", conditional, "--devices", "cpu:2", "--out", tmp_path / "parts")
    assert {path.name for path in (tmp_path / "parts").iterdir()} == {"cpu0.pb", "cpu1.pb"}
    assert "cpu:1" in partita.done("simulate", conditional, *feeds)


def test_inspect_tells_what_runs(partita: CommandLine, conditional: Path) -> None:
    """Nodes are counted in the file; missing kernels are those of the lowered nodes."""
    text = partita.done("inspect", conditional)
    assert "4 nodes" in text
    assert "2 functions" in text
    assert "ops without kernel: none" in text
    assert "fetched by default: out" in text


@pytest.fixture
def x(tmp_path: Path) -> list[str]:
    """Flags that feed the input of the Keras model."""
    np.save(tmp_path / "rows.npy", np.ones((2, 6), np.float32))
    return ["--feed", f"x={tmp_path / 'rows.npy'}"]


def test_inlined_calls_have_values_and_times(partita: CommandLine, x: list[str], tmp_path: Path) -> None:
    """The same values and times as called, from run and from simulate, and partitions without a call."""
    outs, times = {}, list[str]()
    for name, flags in (("called", ("--no-inline",)), ("inlined", ()), ("asked", ("--inline",))):
        text = partita.done("run", KERAS / "model", *x, *flags, "--out", tmp_path / f"{name}.npz")
        with np.load(tmp_path / f"{name}.npz") as out:
            outs[name] = out["y"]
        shown = text, partita.done("simulate", KERAS / "model", *x, *flags)
        times += [line for lines in shown for line in lines.splitlines() if "step time" in line]
    np.testing.assert_array_equal(outs["called"], outs["inlined"])
    np.testing.assert_array_equal(outs["called"], outs["asked"])
    assert len(set(times)) == 1
    assert "none" not in times[0]
    for flags, calls in (("--no-inline",), True), ((), False), (("--inline",), False):
        partita.done("partition", KERAS / "model", *x, *flags, "--out", tmp_path / "parts")
        part = load_graph_def(tmp_path / "parts" / "cpu0.pb")
        assert any(node.op == "StatefulPartitionedCall" for node in part.node) is calls


def test_flags_go_together(partita: CommandLine, tmp_path: Path) -> None:
    """Calls inlined, a device that does not exist, a shape that only a flag says: one time, for people and programs."""
    b = GraphBuilder()
    b.function(unary("N", "Neg"))
    call = b.op("N", b.placeholder("x", "float32", (None,)), device="/device:GPU:3")
    b.op("Square", call, name="y", device="/device:GPU:3")
    (tmp_path / "g.pb").write_bytes(b.SerializeToString())
    np.save(tmp_path / "x.npy", np.array([1, 2, 3], np.float32))
    flags = ("--fetch", "y", "--devices", "cpu:2", "--soft-placement", "--json")
    fed = (tmp_path / "g.pb", "--feed", f"x={tmp_path / 'x.npy'}", *flags)
    ran = json.loads(partita.done("run", *fed))
    assert ran["fetches"][0]["value"] == [1, 4, 9]
    assert ran["why_not_simulated"] is None
    shaped = json.loads(partita.done("simulate", tmp_path / "g.pb", "--shape", "x=3", *flags))
    assert shaped == json.loads(partita.done("simulate", *fed)) == ran["simulated"]
    cut = json.loads(partita.done("partition", *fed, "--out", tmp_path / "parts"))["partitions"]
    nodes = [node for part in cut for node in load_graph_def(part["file"]).node]
    assert {"Neg", "Square"} <= {node.op for node in nodes}
    assert "N" not in {node.op for node in nodes}
    called = json.loads(partita.done("run", *fed, "--no-inline"))
    assert called["fetches"] == ran["fetches"]
    assert called["simulated"]["makespan_ns"] == ran["simulated"]["makespan_ns"]
    for command in (["run"], ["simulate"], ["partition", "--out", tmp_path / "parts"]):
        hard = partita(*command, *fed[:3], "--fetch", "y", "--devices", "cpu:2")
        assert_one_clear_line(hard, 2, 'Add --devices "cpu:2,gpu:4"', "--soft-placement")


def test_a_run_of_a_loop_prints_its_values(partita: CommandLine, tmp_path: Path) -> None:
    """Over two devices, with the time of as many iterations as it had; a simulation alone cannot know how many."""
    case = COMMITTED / "control_flow" / "while_vars_s0"
    with np.load(case / "feeds.npz") as feeds:
        np.save(tmp_path / "x.npy", feeds["s0_i0"])
    request = (case / "graph.pb", "--feed", f"x={tmp_path / 'x.npy'}", "--fetch", "o")
    text = partita.done("run", *request)
    assert "  o  float" in text
    assert "simulated step time: none" not in text
    assert "simulated step time" in text
    assert_one_clear_line(partita("simulate", *request), 2, "--trips loop/while_context=N")


def test_calls_may_be_nested_deeper_than_python_nests_its_own(partita: CommandLine, tmp_path: Path) -> None:
    """A long chain of functions is inspected, cut and run."""
    depth, path = 350, tmp_path / "chain.pb"
    np.save(tmp_path / "x.npy", np.float32(0))
    feed = ("--feed", f"x={tmp_path / 'x.npy'}")
    for count in (2, depth):
        path.write_bytes(chain(count).SerializeToString())
        with frames_left(300 if count == depth else 900):
            partita.done("inspect", path)
            partita.done("partition", path, "--out", tmp_path / f"parts{count}")
            assert f"y  float [] {count}" in partita.done("run", path, *feed)


def test_kept_calls_take_longer_on_a_gpu(partita: CommandLine, tmp_path: Path) -> None:
    """In an inlined chain of small kernels launches overlap with kernels; every command inlines unless told not to."""
    b = GraphBuilder()
    b.function(unary("N", "Neg"))
    with b.device("/device:GPU:0"):
        chain = b.placeholder("x", "float32", (3,))
        for _ in range(8):
            chain = b.op("N", chain)[0]
        b.op("Neg", chain, name="y")
    (tmp_path / "g.pb").write_bytes(b.SerializeToString())
    np.save(tmp_path / "x.npy", np.array([1, 2, 3], np.float32))
    request = (tmp_path / "g.pb", "--feed", f"x={tmp_path / 'x.npy'}", "--fetch", "y", "--json")
    times = {}
    for flags in (), ("--inline",), ("--no-inline",):
        ran = json.loads(partita.done("run", *request, *flags))
        assert ran["simulated"] == json.loads(partita.done("simulate", *request, *flags))
        times[flags] = ran["simulated"]["makespan_ns"]
    assert times[()] == times["--inline",] < times["--no-inline",]


def test_choices_name_the_same_loops_inlined_or_not(partita: CommandLine, tmp_path: Path) -> None:
    """A loop of a function, by `call/frame`, and a shape inside it, by `call/inner`."""
    inner, b = GraphBuilder(), GraphBuilder()
    for name, op, other in (("Twice", "Mul", 2.0), ("Below", "Less", 100.0)):
        body = GraphBuilder()
        body.op(op, body.placeholder("x", "float32"), other, name="y")
        b.function(function_of(name, body.graph_def(), ["x:0"], ["y:0"]))
    start = inner.placeholder("start", "float32", ())
    lowered = {"cond": func_attr("Below"), "body": func_attr("Twice"), "_lower_using_switch_merge": True}
    inner.op("While", [start], name="loop", T=["float32"], attrs=lowered)
    b.function(function_of("F", inner.graph_def(), ["start:0"], ["loop:0"]))
    b.op("PartitionedCall", [b.placeholder("x", "float32", ())], name="call", Tout=["float32"], f=func_attr("F"))
    (tmp_path / "g.pb").write_bytes(b.SerializeToString())
    request = ("simulate", tmp_path / "g.pb", "--feed", "x", "--fetch", "call", "--json")
    for flags in (), ("--no-inline",):
        assert_one_clear_line(partita(*request[:-1], *flags), 2, "--trips call/loop")
        said = json.loads(partita.done(*request, *flags, "--trips", "call/loop=5"))
        assert {op["op"]: op["runs"] for op in said["ops"]}["Mul"] == 5


def test_a_for_takes_its_trips_by_its_name_as_the_help_says(partita: CommandLine, tmp_path: Path) -> None:
    """Its limit is fed, so that the count does not follow from the graph."""
    turn, b = GraphBuilder(), GraphBuilder()
    turn.placeholder("i", "int32", ())
    turn.op("Neg", turn.placeholder("x", "float32", ()), name="y")
    b.function(function_of("Turn", turn.graph_def(), ["i:0", "x:0"], ["y:0"]))
    bounds = [b.constant(0), b.placeholder("limit", "int32", ()), b.constant(1)]
    attrs = {"T": ["float32"], "body": func_attr("Turn")}
    b.op("For", *bounds, [b.placeholder("x", "float32", ())], name="loop", attrs=attrs)
    (tmp_path / "g.pb").write_bytes(b.SerializeToString())
    request = ("simulate", tmp_path / "g.pb", "--feed", "limit", "--feed", "x", "--fetch", "loop")
    assert_one_clear_line(partita(*request), 2, "--trips loop=N")
    said = json.loads(partita.done(*request, "--json", "--trips", "loop=7"))
    assert {op["op"]: op["runs"] for op in said["ops"]}["Neg"] == 7
    assert "by the node of a While or For" in " ".join(partita.done("simulate", "--help").split())
