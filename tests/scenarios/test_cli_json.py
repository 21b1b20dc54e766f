"""`--json`: one document on stdout and nothing else, whatever happens; its keys are those that docs/cli.md lists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.scenarios.cli import cli
from partita.scenarios.stories.catalog import STORIES
from tests.devices.calibration.validation.folders import folder as measurements, products
from tests.scenarios.command_line import CPU, CommandLine, GraphFile
from tests.scenarios.commands.planning.plans import FEW, SMALL
from tests.scenarios.commands.training_files import training_graph

ON = ("--gpus", "A100-80GB:2", "--global-batch", "8")
TRACE = Path(__file__).parents[1] / "devices" / "timing" / "tracing" / "data" / "loop.trace.pb"
DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def document(text: str) -> Any:
    """The only JSON document of a text, strictly."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def keys(value: Any) -> set[str]:
    """All keys of a document, except those that are names of ops, devices or tensors."""
    if isinstance(value, list):
        return set().union(*map(keys, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    by_name = {"streams", "sources", "peak_flops_per_s", "ops", "devices", "ops_without_kernel"}
    by_name |= {"impossible", "inputs", "terms", "system", "worst", "attrs", "facts", "device_types", "families"}
    inner = [keys(list(v.values()) if k in by_name and isinstance(v, dict) else v) for k, v in value.items()]
    return set(value).union(*inner)


def calls(folder: Path) -> dict[str, list[object]]:
    """A call of each command that succeeds."""
    graph = GraphBuilder()
    x = graph.placeholder("x", "float32", (2,), device="/device:CPU:0")
    graph.op("Mul", x, 2.0, name="y", device="/device:CPU:1")
    (folder / "g.pb").write_bytes(graph.SerializeToString())
    np.save(folder / "x.npy", np.array([1, np.nan], np.float32))
    measurements(folder / "measured", gemm_bf16=products(["a100_sxm"]))
    fed = ["--feed", f"x={folder / 'x.npy'}"]
    sweep = 'command = "simulate"\n[axes]\ndevices = ["cpu:2"]\n[results]\nmakespan_ns = "makespan_ns"\n'
    (folder / "sweep.toml").write_text(f"{sweep}[flags]\ngraph = {str(folder / 'g.pb')!r}\nfeed = {fed[1]!r}\n")
    return {
        "run": ["run", folder / "g.pb", *fed, "--out", folder / "out.npz"],
        "simulate": ["simulate", folder / "g.pb", *fed],
        "partition": ["partition", folder / "g.pb", *fed, "--out", folder / "parts"],
        "show": ["show", folder / "g.pb", *fed],
        "inspect": ["inspect", folder / "g.pb"],
        "scenario": ["scenario"],
        "workload": ["workload", "mlp", "--out", folder / "mlp.pb"],
        "devices": ["devices"],
        "ops": ["ops", "MatMul"],
        "explain": ["explain", folder / "g.pb", "y", *fed],
        "calibrate": [
            "calibrate",
            folder / "measured" / "gemm_bf16.csv",
            "--device",
            "A100-80GB",
            "--write",
            folder / "fit.toml",
        ],
        "rewrite": [
            "rewrite",
            training_graph(folder),
            "--loss",
            "loss",
            "--recompute",
            "full",
            "--out",
            folder / "o.pb",
        ],
        "plan": ["plan", *SMALL, *FEW, *ON, "--top", 2, "--what-if", "peak=2x", "--gpu-counts", "1,2"],
        "sweep": ["sweep", folder / "sweep.toml", "--executor", "serial"],
        "report": ["report", TRACE, "--compare", TRACE, "--out", folder / "r.html"],
        "validate": ["validate", "--fit", folder / "measured", "--cross-validate", "2"],
    }


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_a_command_prints_one_document(command: str, partita: CommandLine, tmp_path: Path) -> None:
    """Every key of it is documented, and a number with a unit says which."""
    printed = document(partita.done(*calls(tmp_path)[command], "--json"))
    undocumented = [key for key in keys(printed) if not re.search(rf"`{key}(\[\])?`", DOCS)]
    assert undocumented == []


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (["run", "missing.pb"], 2, "NOT_FOUND"),
        (["run", "missing.pb", "--devices", "gpu:1000000"], 2, "NOT_FOUND"),
        (["run", "--frobnicate"], 2, "INVALID_ARGUMENT"),
        (["rum"], 2, "INVALID_ARGUMENT"),
        (["simulate"], 2, "INVALID_ARGUMENT"),
        (["partition", "g.pb"], 2, "INVALID_ARGUMENT"),
        (["inspect", "missing.pb"], 2, "NOT_FOUND"),
        (["scenario", "nope"], 2, "INVALID_ARGUMENT"),
        (["devices", "nope"], 2, "INVALID_ARGUMENT"),
    ],
)
def test_an_error_is_a_document_too(arguments: list[str], code: int, status: str, partita: CommandLine) -> None:
    """With the exit code, the status code and the message of the line on stderr."""
    result = partita(*arguments, "--json")
    assert result.code == code
    error = document(result.out)["error"]
    assert (error["exit_code"], error["status"]) == (code, status)
    assert result.err == f"partita: error: {error['message']}\n"


def test_a_run_that_fails_prints_no_values(partita: CommandLine, tmp_path: Path) -> None:
    """Only the error, with the code of the run."""
    graph = GraphFile()
    graph.add("a", "Const", dtype=1, value=np.zeros((2, 3), np.float32))
    graph.add("b", "Const", dtype=1, value=np.zeros((4,), np.float32))
    graph.add("sum", "AddV2", ["a", "b"], T=1)
    result = partita("run", graph.write(tmp_path), "--json")
    assert result.code == document(result.out)["error"]["exit_code"] == 1


def test_values_of_a_run(partita: CommandLine, tmp_path: Path) -> None:
    """Small tensors in full, large ones by their range; numbers that JSON lacks are texts."""
    graph = GraphBuilder()
    values: dict[str, Any] = {
        "small": np.array([[1, np.nan], [np.inf, -np.inf]], np.float32),
        "large": np.arange(1000, dtype=np.int64),
        "words": np.array([b"gr\xc3\xbcn", b"\xff"], object),
        "flags": np.array([True, False]),
        "waves": np.array([1 + 2j], np.complex64),
        "empty": np.zeros((0, 3), np.float32),
        "huge": np.full(3, np.finfo(np.float64).max),
    }
    for name, value in values.items():
        graph.constant(value, name=name)
    (tmp_path / "g.pb").write_bytes(graph.SerializeToString())
    printed = document(partita.done("run", tmp_path / "g.pb", "--json"))
    by_name = {fetch["name"]: fetch for fetch in printed["fetches"]}
    assert by_name["small"]["value"] == [[1.0, "nan"], ["inf", "-inf"]]
    assert by_name["small"]["not_finite"] == 3
    assert (by_name["large"]["value"], by_name["large"]["max"], by_name["large"]["shape"]) == (None, 999.0, [1000])
    assert by_name["words"]["value"] == ["grün", "\\xff"]
    assert by_name["flags"]["value"] == [True, False]
    assert by_name["waves"]["value"] == [[1.0, 2.0]]
    assert by_name["empty"]["value"] == []
    assert by_name["huge"]["mean"] == "inf"
    assert printed["simulated"] is None
    assert printed["why_not_simulated"]


def test_names_are_full_and_models_are_said(partita: CommandLine, tmp_path: Path) -> None:
    """JSON has full device names; times are marked as assumed."""
    arguments = calls(tmp_path)
    run = document(partita.done(*arguments["run"], "--json"))["simulated"]
    alone = document(partita.done(*arguments["simulate"], "--json"))
    assert run == alone
    assert [(d["device"], d["model"]) for d in alone["devices"]] == [(f"{CPU}{k}", "generic-cpu") for k in (0, 1)]
    assert alone["times"] == "assumed, not calibrated"
    parts = document(partita.done(*arguments["partition"], "--json"))["partitions"]
    assert [part["device"] for part in parts] == [f"{CPU}0", f"{CPU}1"]
    assert all(Path(part["file"]).is_file() for part in parts)


def test_peaks_name_their_tensors(partita: CommandLine, tmp_path: Path) -> None:
    """Each memory in use, its limit, and tensors whose sizes add up to the peak."""
    graph = GraphBuilder()
    x = graph.placeholder("x", "float32", (10,), device="/device:CPU:0")
    graph.op("Mul", graph.op("Exp", x, device="/device:GPU:0"), 2.0, name="y", device="/device:GPU:0")
    (tmp_path / "g.pb").write_bytes(graph.SerializeToString())
    simulated = document(partita.done("simulate", tmp_path / "g.pb", "--fetch", "y", "--json"))
    places = {(memory["device"][-5:], memory["place"]): memory for memory in simulated["memory"]}
    assert set(places) >= {("CPU:0", "device"), ("GPU:0", "device")}
    on_gpu = places["GPU:0", "device"]
    assert on_gpu["peak_bytes"] == sum(tensor["bytes"] for tensor in on_gpu["tensors"]) > 0
    assert on_gpu["fits"] is (on_gpu["peak_bytes"] <= on_gpu["limit_bytes"])
    assert 0 <= on_gpu["at_ns"] <= simulated["makespan_ns"]
    by_device = {device["device"]: device["peak_memory_bytes"] for device in simulated["devices"]}
    assert all(by_device[m["device"]] == m["peak_bytes"] for m in simulated["memory"] if m["place"] == "device")


def test_stories(partita: CommandLine) -> None:
    """Listed with descriptions, or printed line by line."""
    listed = document(partita.done("scenario", "--json"))["scenarios"]
    assert {story["name"]: story["description"] for story in listed} == STORIES
    story = document(partita.done("scenario", "all_to_one", "--json"))
    assert "\n".join(story["lines"]) + "\n" == partita.done("scenario", "all_to_one")
