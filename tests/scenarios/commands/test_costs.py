"""The flags that say where the times of ops come from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from partita.graph import DataType
from partita.graph.protos import NodeExecStats, StepStats
from tests.scenarios.command_line import CPU, CommandLine, GraphFile, assert_one_clear_line


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """y = x * x of float32, 256 by 256."""
    graph = GraphFile()
    graph.add("x", "Placeholder", dtype=DataType.FLOAT, shape=(256, 256))
    graph.add("y", "MatMul", ["x", "x"], T=DataType.FLOAT)
    return graph.write(tmp_path)


def test_text_and_json_say_how_sure_and_from_where(partita: CommandLine, product: Path) -> None:
    """The interval encloses the makespan; the sources that spoke are counted."""
    text = partita.done("simulate", product, "--costs", "roofline")
    assert re.search(r"\(assumed, not calibrated\)\n80 % of steps: .* us to .* us; op times: roofline 1\n", text)
    document = json.loads(partita.done("simulate", product, "--costs", "roofline", "--json"))
    assert document["low_ns"] <= document["makespan_ns"] <= document["high_ns"]
    assert document["sources"] == {"roofline": 1}


def test_a_trace_gives_times(partita: CommandLine, product: Path, tmp_path: Path) -> None:
    """What it has is measured, and the report no longer says that nothing is."""
    stats = StepStats()
    device = stats.dev_stats.add(device=f"{CPU}0")
    device.node_stats.append(NodeExecStats(node_name="y", timeline_label="y = MatMul(x, x)", op_end_rel_nanos=123_000))
    trace = tmp_path / "trace.pb"
    trace.write_bytes(stats.SerializeToString())
    words = "simulate", product, "--costs", f"measured:{trace}"
    document = json.loads(partita.done(*words, "--json"))
    assert (document["makespan_ns"], document["sources"]) == (123_000, {"measured": 1})
    assert document["times"] == "op times from measurements"
    assert "not calibrated" not in partita.done(*words)


def test_tf32_can_be_switched_off(partita: CommandLine, product: Path) -> None:
    """Then a product takes longer on a GPU that has it."""
    words = "simulate", product, "--costs", "roofline", "--json", "--devices", "gpu:1"
    times = [json.loads(partita.done(*words, *more))["makespan_ns"] for more in ((), ("--no-tf32",))]
    assert times[0] < times[1]


def test_wrong_flags_and_files(partita: CommandLine, product: Path, tmp_path: Path) -> None:
    """One line each that says what to write."""
    assert_one_clear_line(partita("simulate", product, "--costs", "guess"), 2, "--costs 'guess'", "measured:FILE")
    assert_one_clear_line(partita("run", product, "--costs", "measured:"), 2, "measured:trace.pb")
    missing = tmp_path / "none.pb"
    assert_one_clear_line(partita("simulate", product, "--costs", f"measured:{missing}"), 2, "--costs", "none.pb")
    calibration = "--calibration", product
    assert_one_clear_line(partita("simulate", product, "--costs", "roofline", *calibration), 2, "--calibration")
    assert_one_clear_line(partita("simulate", product, *calibration), 2, "--calibration")
