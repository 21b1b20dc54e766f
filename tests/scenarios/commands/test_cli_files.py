"""Every option that names a file to read: one that is missing, a folder, or of another kind is exit code 2."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from partita.graph.protos import DeviceStepStats, NodeExecStats, StepStats
from partita.scenarios.cli import cli
from partita.scenarios.options import FILE
from tests.scenarios.command_line import CommandLine, assert_one_clear_line

OWN_WAYS = {"--feed": "x={}", "--costs": "measured:{}"}
"""options whose value has a file in it: how it is written"""
NEEDED = {
    "explain": ("y",),
    "partition": ("--out", "parts"),
    "calibrate": ("--device", "L4", "--write", "new.toml"),
    "rewrite": ("--recompute", "full", "--loss", "y", "--out", "new.pb"),
}
TRACE = Path(__file__).parents[2] / "devices" / "timing" / "tracing" / "data" / "loop.trace.pb"
FOLDERS = {("validate", "--fit"), ("validate", "--test")}


def readers() -> list[tuple[str, str]]:
    """(command, option or argument) of everything that names a file to read."""
    named = []
    for command, definition in cli.commands.items():
        for parameter in definition.params:
            flag = parameter.opts[0] if isinstance(parameter, click.Option) else "GRAPH"
            if parameter.type is FILE or flag in OWN_WAYS:
                named.append((command, flag))
    return named


def call(command: str, flag: str, file: Path, graph: Path, x: str) -> tuple[object, ...]:
    """A call that would succeed with a good file."""
    given: tuple[object, ...] = () if flag == "GRAPH" else (flag, OWN_WAYS.get(flag, "{}").format(file))
    if command == "validate":
        return (*given, *(("--cross-validate", "2") if flag == "--fit" else ("--fit", graph.parent)))
    if command == "report":
        return (file if flag == "GRAPH" else TRACE, *given, "--out", "page.html")
    if command == "sweep":
        return (file, *given)
    if command == "workload":
        return (*(("gpt", "--split", "tp=1") if flag == "--config" else ("reduction",)), "--simulate", *given)
    if command == "plan":
        sizes = ("--layers", 2, "--hidden", 64, "--heads", 2, "--intermediate", 128, "--vocabulary", 64)
        model: tuple[object, ...] = () if flag == "--config" else sizes
        machines = () if flag == "--cluster" else ("--gpus", "H100-SXM:8")
        return ("llama", *model, *machines, "--global-batch", 8, "--seq", 128, *given)
    if command in ("inspect", "calibrate"):
        if flag == "--graph":  # it is read for a trace
            graph = graph.with_name("trace.pb")
            record = NodeExecStats(node_name="y", timeline_label="y = Neg(x)", op_end_rel_nanos=1000)
            device = DeviceStepStats(device="/job:localhost/replica:0/task:0/device:GPU:0", node_stats=[record])
            graph.write_bytes(StepStats(dev_stats=[device]).SerializeToString())
        return (file if flag == "GRAPH" else graph, *given, *NEEDED.get(command, ()))
    needed = NEEDED.get(command, ())
    devices = () if flag == "--cluster" else ("--devices", "cpu:2")
    fed = () if flag in ("--feed", "--feeds") or command == "rewrite" else ("--feed", x)
    return (file if flag == "GRAPH" else graph, *needed, *fed, *devices, *given)


@pytest.mark.parametrize("kind", ["missing", "folder", "noise"])
@pytest.mark.parametrize(("command", "flag"), readers())
def test_a_file_that_cannot_be_used_is_named(
    command: str,
    flag: str,
    kind: str,
    partita: CommandLine,
    graph: Path,
    x: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By `run` too, before anything runs: a step without a time is not a way to say it."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "unusable"
    if kind == "folder":
        file.mkdir()
    elif kind == "noise":
        file.write_bytes(b"\xff\xfe no such thing \x00")
    assert_one_clear_line(partita(command, *call(command, flag, file, graph, x)), 2, "unusable")


def test_all_of_them_are_looked_at() -> None:
    """The sweep has the options that are known today, and others when they come."""
    flags = {flag for _, flag in readers()}
    known = {
        "GRAPH",
        "--feed",
        "--feeds",
        "--cluster",
        "--config",
        "--costs",
        "--calibration",
        "--trace-in",
        "--fit",
        "--test",
        "--graph",
    }
    assert known <= flags
    assert len(readers()) >= 30


@pytest.mark.parametrize("flag", ["--feeds", "--feed", "--costs", "--calibration", "--cluster", "GRAPH"])
def test_no_output_overwrites_what_is_read(
    flag: str, partita: CommandLine, graph: Path, x: str, tmp_path: Path
) -> None:
    """`run --out` and `--trace` refuse every file that another flag reads."""
    file = graph if flag == "GRAPH" else tmp_path / "read.pb"
    for output in ("--out", "--trace"):
        words = call("run", flag, file, graph, x)
        assert_one_clear_line(partita("run", *words, output, file), 2, output, flag, "give another file")
