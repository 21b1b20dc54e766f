"""`partita run`: exact values, and a simulated step beside them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import trio
from hypothesis import HealthCheck, given, settings

from partita.actors import open_session
from partita.graph.dtypes import Array, DataType
from partita.scenarios.commands.feeds import write_values
from tests.runs import assert_same_values, values
from tests.scenarios.command_line import CommandLine, GraphFile
from tests.scenarios.conftest import X
from tests.strategies import GraphCase, placed_cases

Y = X @ np.arange(6, dtype=np.float32).reshape(3, 2) + 1
PER_TEST = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=10, suppress_health_check=PER_TEST)
@given(placed=placed_cases())
def test_values_are_those_of_a_session(
    placed: tuple[GraphCase, dict[str, str]], partita: CommandLine, tmp_path: Path
) -> None:
    """--out has the values that a session on the same devices fetches, to the bit."""
    case, placement = placed
    graph_def = case.on(placement)
    (tmp_path / "drawn.pb").write_bytes(graph_def.SerializeToString())
    write_values(tmp_path / "drawn.npz", case.feeds)
    flags = [flag for name in case.fetches for flag in ("--fetch", name)]
    flags += [flag for name in case.targets for flag in ("--target", name)]
    flags += ["--feeds", str(tmp_path / "drawn.npz")] if case.feeds else []
    flags += ["--out", str(tmp_path / "out.npz")] if case.fetches else []
    result = partita("run", tmp_path / "drawn.pb", *flags, "--devices", "cpu:4")
    assert result.code == 0, result.err
    if not case.fetches:
        assert "0 values fetched" in result.out
        return
    with np.load(tmp_path / "out.npz") as out:
        ours = [out[name] for name in case.fetches]
    assert_same_values(ours, trio.run(values, graph_def, case))


def test_prints_values_time_and_devices(partita: CommandLine, graph: Path, x: str) -> None:
    """One line per value, the simulated step time, a line per device."""
    text = partita.done("run", graph, "--feed", x, "--fetch", "y", "--fetch", "xw:0", "--devices", "cpu:2")
    shown = ", ".join(f"{value:.6g}" for value in Y.reshape(-1))
    assert f"y  float [2,2] {shown}\n" in text
    assert "xw:0  float [2,2]" in text
    assert "simulated step time: " in text
    assert [name for name in ("cpu:0", "cpu:1", "generic-cpu", "assumed, not calibrated") if name not in text] == []


def test_without_fetches_the_ends_are_fetched(partita: CommandLine, graph: Path, x: str, tmp_path: Path) -> None:
    """The whole graph runs, and outputs without consumers are fetched."""
    partita.done("run", graph, "--feed", x, "--devices", "cpu:2", "--out", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as out:
        assert out.files == ["y"]
        np.testing.assert_array_equal(out["y"], Y)


def test_any_tensor_can_be_fed(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """A feed cuts the graph; placeholders that are then not needed need no feed."""
    write_values(tmp_path / "xw.npz", {"xw:0": np.zeros((1, 2), np.float32)})
    text = partita.done("run", graph, "--feeds", tmp_path / "xw.npz", "--fetch", "y", "--devices", "cpu:2")
    assert "y  float [1,2] 1, 1\n" in text


def test_steps_share_a_session(partita: CommandLine, tmp_path: Path) -> None:
    """State is kept between steps, and the last step is printed: the second draw of a generator."""
    graph = GraphFile()
    graph.add("shape", "Const", dtype=DataType.INT32, value=np.array([4], np.int32))
    graph.add("draw", "RandomUniform", ["shape"], dtype=DataType.FLOAT, T=DataType.INT32, seed=3, seed2=5)
    text = partita.done("run", graph.write(tmp_path), "--steps", "2", "--out", tmp_path / "out.npz")

    async def session() -> list[Array]:
        async with open_session(graph.graph_def) as opened:
            await opened.run("draw")
            return await opened.run("draw")

    with np.load(tmp_path / "out.npz") as out:
        assert_same_values([out["draw"]], trio.run(session))
    assert "2 steps, 1 value fetched" in text


def test_targets_run_without_being_fetched(partita: CommandLine, graph: Path, x: str) -> None:
    """A request may have no fetches."""
    text = partita.done("run", graph, "--feed", x, "--target", "y", "--devices", "cpu:2")
    assert "1 step, 0 values fetched, 1 target run\n" in text
    assert "simulated step time: " in text


def test_trace_is_what_was_simulated(partita: CommandLine, graph: Path, x: str, tmp_path: Path) -> None:
    """The trace file holds the step whose time is printed, with an event of each node that takes time."""
    path = tmp_path / "trace.json"
    text = partita.done("run", graph, "--feed", x, "--devices", "cpu:2", "--trace", path)
    trace = json.loads(path.read_text())
    assert trace["otherData"]["makespan_ns"] > 0
    assert {"xw", "y"} <= {event["name"] for event in trace["traceEvents"]}
    simulated = json.loads(partita.done("simulate", graph, "--feed", x, "--devices", "cpu:2", "--json"))
    assert simulated["makespan_ns"] == trace["otherData"]["makespan_ns"]
    assert "simulated step time" in text


def test_a_run_of_constants_has_values_but_no_time(partita: CommandLine, tmp_path: Path) -> None:
    """A step of 0 ns has values but no simulation; --trace is then an error."""
    graph = GraphFile()
    graph.add("c", "Const", dtype=DataType.INT32, value=np.int32(7))
    path = graph.write(tmp_path)
    text = partita.done("run", path)
    assert "c  int32 [] 7\n" in text
    assert "simulated step time: none" in text
    assert partita("run", path, "--trace", tmp_path / "t.json").code == 1
    assert partita("simulate", path).code == 1


def test_nothing_to_write_is_an_error(partita: CommandLine, graph: Path, x: str, tmp_path: Path) -> None:
    """--out without a fetch is refused before anything runs, and so is a folder."""
    result = partita("run", graph, "--feed", x, "--target", "y", "--out", tmp_path / "out.npz")
    assert (result.code, "--out" in result.err) == (2, True)
    result = partita("run", graph, "--feed", x, "--fetch", "y", "--out", tmp_path)
    assert (result.code, "--out" in result.err) == (2, True)
