"""`partita simulate`: virtual time without a run."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from tests.scenarios.command_line import CPU, CommandLine, GraphFile, assert_one_clear_line
from tests.strategies import GraphCase, placed_cases


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(placed=placed_cases())
def test_what_is_said_is_consistent(
    placed: tuple[GraphCase, dict[str, str]], partita: CommandLine, tmp_path: Path
) -> None:
    """Shares lie between 0 and 1, no device is busier than the step is long, the critical path ends the step."""
    case, placement = placed
    (tmp_path / "drawn.pb").write_bytes(case.on(placement).SerializeToString())
    feeds = [word for name in case.feeds for word in ("--feed", name)]
    fetches = [word for name in case.fetches for word in ("--fetch", name)]
    result = partita("simulate", tmp_path / "drawn.pb", *feeds, *fetches, "--devices", "cpu:4", "--json")
    if result.code == 1:
        assert_one_clear_line(result, 1, "0 ns")
        return
    found = json.loads(result.out)
    assert found["makespan_ns"] >= found["dependency_bound_ns"] > 0
    assert [device["device"] for device in found["devices"]][:4] == [f"{CPU}{k}" for k in range(4)]
    for device in found["devices"]:
        assert 0 <= device["busy_ns"] <= found["makespan_ns"]
        assert device["busy_fraction"] == device["busy_ns"] / found["makespan_ns"]
    assert found["critical_path"][-1]["end_ns"] == found["makespan_ns"]


def test_no_kernel_is_needed(partita: CommandLine, tmp_path: Path) -> None:
    """An op that cannot run still takes its time."""
    graph = GraphFile()
    graph.add("x", "Placeholder", dtype=1, shape=(64, 64))
    graph.add("y", "MatMul", ["x", "x"], T=1)
    graph.add("z", "MatrixExponential", ["y"], T=1)
    path = graph.write(tmp_path)
    assert partita("run", path).code != 0
    assert json.loads(partita.done("simulate", path, "--json"))["makespan_ns"] > 0


def test_text(partita: CommandLine, graph: Path, x: str, tmp_path: Path) -> None:
    """Makespan, busy share, peak memory and a bar per device; a trace on demand."""
    trace = tmp_path / "trace.json"
    text = partita.done("simulate", graph, "--feed", x, "--devices", "cpu:2", "--trace", trace)
    expected = ["simulated step time", "busy", "peak memory", f"{CPU}0", f"{CPU}1", "makespan", "|"]
    assert [word for word in expected if word not in text] == []
    assert json.loads(trace.read_text())["traceEvents"]
    assert_one_clear_line(partita("simulate", graph, "--trace", tmp_path), 2, "--trace")


def test_faster_hardware_is_faster(partita: CommandLine, tmp_path: Path) -> None:
    """The cluster file is what is simulated: the same graph on a device of twice every rate takes half the time."""
    graph = GraphFile()
    graph.add("x", "Placeholder", dtype=1, shape=(256, 256))
    graph.add("y", "MatMul", ["x", "x"], T=1)
    path = graph.write(tmp_path)
    times = []
    for rate in (1, 2):
        speed = f'memory_bandwidth = "{rate} GB/s", peak_flops = {{ fp32 = "{rate} GFLOP/s" }}'
        spec = f'spec = {{ kind = "CPU", memory = "1 GiB", launch_overhead = "0 ns", {speed} }}'
        (tmp_path / "c.toml").write_text(f"[[device]]\n{spec}\n")
        found = partita.done("simulate", path, "--cluster", tmp_path / "c.toml", "--json")
        times.append(json.loads(found)["makespan_ns"])
    assert times[0] == 2 * times[1]
