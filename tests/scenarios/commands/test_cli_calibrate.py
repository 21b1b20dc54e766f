"""`partita calibrate`: what it prints, what it writes, and errors."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from partita.devices import cut, load_calibration, local_cluster, simulate
from partita.devices.timing.export.run_metadata import write_run_metadata
from partita.graph.builder import GraphBuilder
from tests.scenarios.command_line import CommandLine, assert_one_clear_line

DATE = ("--date", "2026-01-01")


@pytest.fixture
def ops(tmp_path: Path) -> Path:
    """Timings by a formula: 4 us + operations at 600 TFLOP/s; 3 us + bytes at 2 TB/s."""
    sizes = (256, 1024, 4096)
    lines = [
        "op,shapes,dtype,latency_ms",
        *(
            f"MatMul,{m}x{k};{k}x{n},bfloat16,{0.004 + 2 * m * n * k / 600e12 * 1e3:.6f}"
            for m, n, k in product(sizes, sizes, sizes)
        ),
        *(
            f"AddV2,{rows}x1024;{rows}x1024,float32,{0.003 + 3 * rows * 4096 / 2e12 * 1e3:.6f}"
            for rows in (1, 4, 16, 64, 256, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
        ),
    ]
    path = tmp_path / "ops.csv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_a_file_is_written_that_holds_the_fits(partita: CommandLine, ops: Path, tmp_path: Path) -> None:
    """The file is a catalog entry whose fits can be read; twice the same bytes; errors beside the datasheet's."""
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    printed = partita.done("calibrate", ops, "--device", "h100_sxm", "--write", first, *DATE)
    report = json.loads(partita.done("calibrate", ops, "--device", "H100-SXM", "--write", second, *DATE, "--json"))
    assert first.read_bytes() == second.read_bytes()
    assert "39 rows used, 0 refused" in printed
    fits = load_calibration(first).device("H100-SXM")
    assert fits is not None
    assert fits.products is not None
    by_name = {part["name"]: part for part in report["fits"]}
    for part in by_name.values():
        assert part["cross_validated_mape_percent"] < part["datasheet_mape_percent"]
    constant = {n["name"]: n for n in by_name["memory_bound"]["numbers"]}["constant_ns"]
    assert constant["low"] <= constant["value"] <= constant["high"]
    assert constant["value"] == pytest.approx(3000, rel=0.02)


def test_wrong_calls_are_one_clear_line(partita: CommandLine, ops: Path, tmp_path: Path) -> None:
    """Unknown devices, wrong files, wrong dates and outputs over inputs are refused before anything is written."""
    output = tmp_path / "out.toml"
    few = tmp_path / "few.csv"
    few.write_text("\n".join(ops.read_text("utf-8").splitlines()[:5]), "utf-8")

    def refused(source: Path, device: str, target: Path, *words: str) -> None:
        result = partita("calibrate", source, "--device", device, "--write", target, *DATE)
        assert_one_clear_line(result, 2, *words)

    refused(ops, "H100", output, "the catalog has no device 'H100'")
    refused(tmp_path / "none.csv", "H100-SXM", output, "none.csv", "cannot be read")
    refused(few, "H100-SXM", output, "4 rows of products are too few")
    refused(ops, "H100-SXM", ops, "--write", "give another file")
    result = partita("calibrate", ops, "--device", "H100-SXM", "--write", output, "--date", "today")
    assert_one_clear_line(result, 2, "'today'", "YYYY-MM-DD")
    assert not output.exists()


def test_a_device_of_a_cluster_file(partita: CommandLine, ops: Path, tmp_path: Path) -> None:
    """An inline spec is calibrated by its name; its numbers have the file as their source."""
    cluster, output = tmp_path / "rig.toml", tmp_path / "out.toml"
    cluster.write_text(
        '[[device]]\nspec = { name = "mine", kind = "GPU", memory = "80 GB", memory_bandwidth = "3350 GB/s", '
        'sm_count = 132, l2 = "50 MiB", peak_flops = { fp32 = "67 TFLOP/s", bf16 = "989 TFLOP/s" } }\n',
        "utf-8",
    )
    partita.done("calibrate", ops, "--device", "mine", "--cluster", cluster, "--write", output, *DATE)
    fits = load_calibration(output).device("mine")
    assert fits is not None
    assert fits.spec.sm_count == 132
    assert "rig.toml" in output.read_text("utf-8")
    result = partita("calibrate", ops, "--device", "other", "--cluster", cluster, "--write", output, *DATE)
    assert_one_clear_line(result, 2, "rig.toml", "'other'")


def test_a_trace_of_a_step_needs_its_graph(partita: CommandLine, tmp_path: Path) -> None:
    """Products of 27 sizes in one step; without the graph the error says how to give it."""
    b, sizes = GraphBuilder(), (256, 1024, 4096)
    for m, n, k in product(sizes, sizes, sizes):
        factors = [
            b.placeholder(f"{name}_{m}_{n}_{k}", "bfloat16", shape) for name, shape in (("a", (m, k)), ("b", (k, n)))
        ]
        b.op("MatMul", *factors, name=f"y_{m}_{n}_{k}", device="/device:GPU:0")
    graph, trace, output = (tmp_path / name for name in ("graph.pb", "trace.pb", "out.toml"))
    graph.write_bytes(b.graph_def().SerializeToString())
    cluster = local_cluster("cpu:1,gpu:1", gpu="H100-SXM")
    fetches = [node.name + ":0" for node in b.graph_def().node if node.op == "MatMul"]
    feeds = [node.name + ":0" for node in b.graph_def().node if node.op == "Placeholder"]
    write_run_metadata(simulate(cut(b.graph_def(), cluster, feeds=feeds, fetches=fetches), cluster), trace)
    call = ("calibrate", trace, "--device", "H100-SXM", "--write", output, *DATE)
    assert_one_clear_line(partita(*call), 2, "trace.pb", "--graph FILE")
    assert "27 rows used, 0 refused" in partita.done(*call, "--graph", graph)
