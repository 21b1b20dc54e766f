"""`partita simulate`: virtual time without a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings

from tests.conformance.corpus import COMMITTED
from tests.scenarios.command_line import CPU, CommandLine, GraphFile, assert_one_clear_line
from tests.strategies import GraphCase, placed_cases


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(placed=placed_cases())
def test_what_is_said_is_consistent(
    placed: tuple[GraphCase, dict[str, str]], partita: CommandLine, tmp_path: Path
) -> None:
    """Shares are between 0 and 1, no device is busy for longer than the step, the critical path ends the step."""
    case, placement = placed
    (tmp_path / "drawn.pb").write_bytes(case.on(placement).SerializeToString())
    shapes = {name: ",".join(map(str, value.shape)) for name, value in case.feeds.items()}
    feeds = [word for name in shapes for word in ("--feed", name, "--shape", f"{name}={shapes[name]}")]
    fetches = [word for name in case.fetches for word in ("--fetch", name)]
    fetches += [word for name in case.targets for word in ("--target", name)]
    words = ["simulate", tmp_path / "drawn.pb", *feeds, *fetches, "--devices", "cpu:4", "--json"]
    result = partita(*words)
    if result.code == 2:  # the error lists the branches that must be given
        branches = re.findall(r"--branch (\S+)=K", result.err)
        result = partita(*words, *(word for name in branches for word in ("--branch", f"{name}=1")))
    if result.code == 1:
        assert_one_clear_line(result, 1, "0 ns")
        return
    assert result.code == 0, result.err
    document = json.loads(result.out)
    assert document["makespan_ns"] >= document["dependency_bound_ns"] > 0
    assert [device["device"] for device in document["devices"]][:4] == [f"{CPU}{k}" for k in range(4)]
    for device in document["devices"]:
        assert 0 <= device["busy_ns"] <= document["makespan_ns"]
        assert device["busy_fraction"] == device["busy_ns"] / document["makespan_ns"]
    assert document["critical_path"][-1]["end_ns"] == document["makespan_ns"]


def test_no_kernel_is_needed(partita: CommandLine, tmp_path: Path) -> None:
    """An op without a kernel takes time; nobody but the user knows the shape of what it computes."""
    graph = GraphFile()
    graph.add("x", "Placeholder", dtype=1, shape=(64, 64))
    graph.add("y", "MatMul", ["x", "x"], T=1)
    graph.add("z", "MakeUnique", ["y"])
    path = graph.write(tmp_path)
    assert partita("run", path).code != 0
    assert_one_clear_line(partita("simulate", path), 2, "'z'", "MakeUnique", "--shape z=2,3")
    assert json.loads(partita.done("simulate", path, "--shape", "z=64,64", "--json"))["makespan_ns"] > 0


def test_text(partita: CommandLine, graph: Path, x: str, tmp_path: Path) -> None:
    """Makespan, busy share, peak memory and a bar per device; a trace on demand."""
    trace = tmp_path / "trace.json"
    text = partita.done("simulate", graph, "--feed", x, "--devices", "cpu:2", "--trace", trace)
    expected = ["simulated step time", "busy", "peak memory", "cpu:0", "cpu:1", "generic-cpu", "makespan", "|"]
    expected += ["assumed, not calibrated"]
    assert [word for word in expected if word not in text] == []
    assert json.loads(trace.read_text())["traceEvents"]
    assert_one_clear_line(partita("simulate", graph, "--feed", x, "--trace", tmp_path), 2, "--trace")


def test_the_suffix_of_a_trace_is_its_format(partita: CommandLine, graph: Path, x: str, tmp_path: Path) -> None:
    """A table for .csv; a suffix without exporter is refused before anything runs."""
    partita.done("simulate", graph, "--feed", x, "--trace", tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().startswith("device,stream,node,op,kind,start_ns")
    for command in ("simulate", "run"):
        refused = partita(command, graph, "--feed", x, "--trace", tmp_path / "t.svg")
        assert_one_clear_line(refused, 2, "--trace", "'.svg'", ".json (Chrome trace)")


def test_faster_hardware_is_faster(partita: CommandLine, tmp_path: Path) -> None:
    """The cluster file counts: the same graph on a device with twice every rate takes half the time."""
    graph = GraphFile()
    graph.add("x", "Placeholder", dtype=1, shape=(256, 256))
    graph.add("y", "MatMul", ["x", "x"], T=1)
    path = graph.write(tmp_path)
    times = []
    for rate in (1, 2):
        speed = f'memory_bandwidth = "{rate} GB/s", peak_flops = {{ fp32 = "{rate} GFLOP/s" }}'
        spec = f'spec = {{ kind = "CPU", memory = "1 GiB", launch_overhead = "0 ns", {speed} }}'
        (tmp_path / "c.toml").write_text(f"[[device]]\n{spec}\n")
        printed = partita.done("simulate", path, "--cluster", tmp_path / "c.toml", "--json")
        times.append(json.loads(printed)["makespan_ns"])
    assert times[0] == 2 * times[1]


def makespan(partita: CommandLine, *arguments: object) -> int:
    """Nanoseconds of the step."""
    makespan_ns: int = json.loads(partita.done("simulate", *arguments, "--json"))["makespan_ns"]
    return makespan_ns


def test_a_feed_without_a_value_has_the_shape_of_its_placeholder(partita: CommandLine, tmp_path: Path) -> None:
    """With and without --feed; other tensors have the shape that the graph knows; as if such a file were fed.

    --shape feeds only a placeholder: another node that is not fed runs.
    """
    graph = GraphFile()
    graph.add("x", "Placeholder", dtype=1, shape=(256, 512))
    graph.add("h", "Neg", ["x"], T=1)
    graph.add("y", "MatMul", ["h", "h"], T=1, transpose_b=True)
    path = graph.write(tmp_path)
    for name in ("x", "h"):
        np.save(tmp_path / f"{name}.npy", np.zeros((256, 512), np.float32))
        by_value = makespan(partita, path, "--feed", f"{name}={tmp_path / name}.npy")
        shape = ("--shape", f"{name}=256,512")
        assert by_value == makespan(partita, path, "--feed", name) == makespan(partita, path, "--feed", name, *shape)
        assert makespan(partita, path) == makespan(partita, path, *shape)
    assert makespan(partita, path) == makespan(partita, path, "--feed", "x") > makespan(partita, path, "--feed", "h")


def test_a_shape_that_is_not_known_has_to_be_given(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """The error names tensor and flag, for a placeholder, fed or not, and for any other tensor."""
    devices = ("--devices", "cpu:2")
    for flags, name in (((), "x"), (("--feed", "x"), "x"), (("--feed", "xw"), "xw")):
        example = f"--shape {name}=2,{3 if name == 'x' else 2}"
        assert_one_clear_line(partita("simulate", graph, *flags, *devices), 2, repr(name), f"such as {example}")
    rows = {n: makespan(partita, graph, "--shape", f"x={n},3", *devices) for n in (2, 20_000)}
    assert rows[2] < rows[20_000]
    assert makespan(partita, graph, "--feed", "x:0", "--shape", "x= 2, 3", *devices) == rows[2]
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    assert makespan(partita, graph, "--feed", f"x={tmp_path / 'x.npy'}", "--shape", "x=2,3", *devices) == rows[2]


def test_a_scalar_has_no_sizes(partita: CommandLine, tmp_path: Path) -> None:
    """--shape NAME= feeds a scalar to a placeholder of any shape."""
    graph = GraphFile()
    graph.add("s", "Placeholder", dtype=1, shape=None)
    graph.add("y", "Neg", ["s"], T=1)
    path = graph.write(tmp_path)
    assert_one_clear_line(partita("simulate", path), 2, "'s'", "such as --shape s=2,3")
    assert makespan(partita, path, "--shape", "s=") > 0


def test_wrong_shapes_are_refused(partita: CommandLine, graph: Path, x: str) -> None:
    """Malformed, contradicting the graph or a file, given twice, or for an unknown tensor."""
    for flags, words in (
        (("x",), ("--shape 'x'", "--shape x=2,3")),
        (("=2,3",), ("--shape '=2,3'",)),
        (("x=2;3",), ("whole numbers with commas between",)),
        (("x=-2,3",), ("--shape 'x=-2,3'",)),
        (("x=2,?",), ("--shape 'x=2,?'",)),
        (("x=2.0,3",), ("--shape 'x=2.0,3'",)),
        (("x=2,,3",), ("--shape 'x=2,,3'",)),
        (("x=2,4",), ("'x'", "[2,4]", "[?,3]")),
        (("x=",), ("'x'", "[]", "[?,3]")),
        (("x=2,3", "x:0=4,3"), ("'x:0'", "[4,3] here and [2,3] in another --shape")),
        (("nope=2",), ("no node 'nope'", "placeholders are x")),
        (("y:7=2",), ("'y'", "1 outputs")),
    ):
        arguments = [word for text in flags for word in ("--shape", text)]
        assert_one_clear_line(partita("simulate", graph, *arguments), 2, *words)
    assert_one_clear_line(
        partita("simulate", graph, "--feed", x, "--shape", "x=5,3"), 2, "[5,3] here and [2,3] in its file"
    )
    computed = partita("simulate", graph, "--shape", "x=2,3", "--shape", "xw=5,7")
    assert_one_clear_line(computed, 2, "(5, 7)", "xw", "the graph computes (2, 2)")
    fed = partita("simulate", graph, "--feed", "xw", "--shape", "xw=5,7")
    assert_one_clear_line(fed, 2, "(5, 7)", "xw", "(None, 2)")
    result = partita("simulate", graph, "--shape", "x=9223372036854775807,3", "--devices", "cpu:2")
    assert_one_clear_line(result, 2, "more elements than can be counted")


def test_what_is_assumed_is_listed(partita: CommandLine, graph: Path) -> None:
    """Sizes, and numbers of hardware that a cluster file leaves out; the number is a whole one."""
    said = json.loads(partita.done("simulate", graph, "--assume-size", 7, "--devices", "cpu:2", "--json"))
    assert {"node": "x", "what": "shape of output 0", "value": [7, 3]} in said["assumed"]
    assert json.loads(partita.done("simulate", graph, "--shape", "x=7,3", "--json"))["assumed"] == []
    for wrong in ("-1", "two", "1.5"):
        assert_one_clear_line(partita("simulate", graph, "--assume-size", wrong), 2, "--assume-size", wrong)


def test_a_model_without_numbers_is_assumed(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """By full name of the device."""
    spec = 'kind = "CPU", memory = "1 GiB", memory_bandwidth = "1 GB/s", peak_flops = { fp32 = "1 GFLOP/s" }'
    (tmp_path / "c.toml").write_text(f"[[device]]\ncount = 2\nspec = {{ {spec} }}\n")
    flags = ("--shape", "x=2,3", "--cluster", tmp_path / "c.toml", "--json")
    said = json.loads(partita.done("simulate", graph, *flags))
    assert {"node": f"{CPU}0", "what": "launch_overhead", "value": "300 ns"} in said["assumed"]


def test_shapes_of_a_saved_model_go_by_the_names_of_its_inputs(partita: CommandLine) -> None:
    """As for --feed; names of the graph are accepted too."""
    model = (COMMITTED / "saved_model" / "keras_mlp" / "model",)
    assert_one_clear_line(partita("simulate", *model), 2, "--shape serving_default_x=2,6")
    assert_one_clear_line(partita("simulate", *model, "--feed", "x"), 2, "--shape serving_default_x=2,6")
    times = [makespan(partita, *model, "--shape", f"{name}=64,6") for name in ("x", "serving_default_x")]
    assert times[0] == times[1]


def test_the_order_of_kernels(partita: CommandLine, tmp_path: Path) -> None:
    """By the critical path, or by a priority, what another device waits for goes first; the report names the order."""
    graph = GraphFile()
    graph.add("x", "Placeholder", dtype=1, shape=(1000, 1000))
    for name, source, device in (("a", "x", 0), ("b", "x", 0), ("c", "b", 1)):
        graph.add(name, "MatMul", [source, source], device=f"/cpu:{device}", T=1)
    words = (graph.write(tmp_path), "--devices", "cpu:2")
    usual = makespan(partita, *words)
    assert makespan(partita, *words, "--order", "ready") == usual
    assert makespan(partita, *words, "--priority", "c=1") == usual
    fast = makespan(partita, *words, "--order", "critical-path")
    assert fast == makespan(partita, *words, "--priority", "b=0.5", "--priority", "a=-1") < usual
    assert "order: critical-path" in partita.done("simulate", *words, "--order", "critical-path")
    assert "order: b=1" in partita.done("simulate", *words, "--priority", "b=1")
    assert "order:" not in partita.done("simulate", *words)


def test_what_is_no_order_is_refused(partita: CommandLine, graph: Path, x: str) -> None:
    """Unknown orders and nodes, numbers that are none, and both flags together."""
    for flags, *said in (
        (("--order", "fast"), "--order", "'ready'", "'critical-path'"),
        (("--priority", "xx=1"), "'xx'", "known are w, xw"),
        (("--priority", "x"), "--priority 'x' is not NODE=NUMBER"),
        (("--priority", "x=high"), "--priority 'x=high'", "finite number"),
        (("--priority", "x=nan"), "--priority 'x=nan'", "finite number"),
        (("--priority", "x=1", "--priority", "x=2"), "'x' is given twice"),
        (("--order", "ready", "--priority", "x=1"), "--order and --priority exclude each other"),
    ):
        assert_one_clear_line(partita("simulate", graph, "--feed", x, *flags), 2, *said)
