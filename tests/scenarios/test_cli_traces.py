"""Traces of real steps on the command line: `run` simulates with its own, `simulate` with one from a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.structured import cond, while_loop
from tests.scenarios.command_line import CommandLine, assert_one_clear_line

DATA = Path(__file__).parent.parent / "devices" / "timing" / "tracing" / "data"


@pytest.mark.parametrize("steps", [1, 3])
def test_a_run_simulates_with_the_shapes_that_it_has_seen(partita: CommandLine, tmp_path: Path, steps: int) -> None:
    """Three of the values are different, which only the run tells; the last of several steps does."""
    b = GraphBuilder()
    unique = b.op("Unique", b.placeholder("x", "float32", (None,)))
    b.op("Neg", unique[0], name="y")
    (tmp_path / "g.pb").write_bytes(b.SerializeToString())
    np.save(tmp_path / "x.npy", np.array([7, 8, 7, 9, 9], np.float32))
    request = (tmp_path / "g.pb", "--feed", f"x={tmp_path / 'x.npy'}", "--fetch", "y", "--json")
    ran = json.loads(partita.done("run", *request, "--steps", steps))
    assert ran["fetches"][0]["value"] == [-7, -8, -9]
    assert {op["op"]: op["flops"] for op in ran["simulated"]["ops"]}["Neg"] == 3
    assert partita("simulate", *request).code == 2


def test_a_loop_that_has_just_counted_ten_is_simulated_with_ten(partita: CommandLine, tmp_path: Path) -> None:
    """It doubles 1 until that is at least 1,000: no constant tells how often, nor which branch comes then."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    (doubled,) = while_loop(b, lambda v: b.op("Less", v, 1000.0)[0], lambda v: b.op("AddV2", v, v)[0], [x], name="w")
    is_small = b.op("Less", doubled, 5.0)[0]
    (chosen,) = cond(b, is_small, lambda: b.op("Exp", doubled)[0], lambda: b.op("Neg", doubled)[0], name="c")
    b.identity(chosen, name="y")
    (tmp_path / "g.pb").write_bytes(b.SerializeToString())
    np.save(tmp_path / "x.npy", np.float32(1))
    request = (tmp_path / "g.pb", "--feed", f"x={tmp_path / 'x.npy'}", "--fetch", "y", "--json")
    ran = json.loads(partita.done("run", *request))
    runs = {op["op"]: op["runs"] for op in ran["simulated"]["ops"]}
    assert ran["fetches"][0]["value"] == -1024
    assert (runs["AddV2"], runs["Less"], "Neg" in runs, "Exp" in runs) == (10, 12, True, False)


def test_a_trace_from_a_file_tells_what_flags_would(partita: CommandLine) -> None:
    """One that TensorFlow wrote; with --trace-times the product takes the time that it took there."""
    request = (DATA / "function.graph.pb", "--fetch", "y", "--json")
    traced = json.loads(partita.done("simulate", *request, "--trace-in", DATA / "function.trace.pb"))
    shaped = json.loads(partita.done("simulate", *request, "--shape", "x=2,3"))
    assert (traced["makespan_ns"], traced["flops"]) == (shaped["makespan_ns"], shaped["flops"])
    timed = partita.done("simulate", *request, "--trace-in", DATA / "function.trace.pb", "--trace-times")
    assert json.loads(timed)["flops"] == traced["flops"]
    assert json.loads(timed)["makespan_ns"] != traced["makespan_ns"]


def test_bad_traces_are_one_clear_line(partita: CommandLine, tmp_path: Path) -> None:
    graph = DATA / "function.graph.pb"
    request = ("simulate", graph, "--fetch", "y")
    assert_one_clear_line(partita(*request, "--trace-times"), 2, "--trace-times", "--trace-in FILE")
    assert_one_clear_line(partita(*request, "--trace-in", tmp_path / "no.pb"), 2, "--trace-in", "no.pb")
    (tmp_path / "empty.pb").write_bytes(b"")
    assert_one_clear_line(partita(*request, "--trace-in", tmp_path / "empty.pb"), 2, "--trace-in", "has no records")
    other = DATA / "nested.trace.pb"
    assert_one_clear_line(partita(*request, "--trace-in", other, "--shape", "x=9,3"), 2, "of another graph")
