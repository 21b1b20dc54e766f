"""`partita explain`: where the times of nodes come from, for the flags of a simulated step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.graph import GraphBuilder
from partita.graph.protos import NodeExecStats, StepStats
from tests.function_defs import func_attr, function_of
from tests.scenarios.command_line import CPU, CommandLine, assert_one_clear_line


def write(folder: Path, rows: int | None) -> Path:
    """y = relu(x * x) on a GPU, a call of F beside it, and a node that nobody needs."""
    inner, b = GraphBuilder(), GraphBuilder()
    inner.op("Neg", inner.placeholder("a", "float32"), name="inside")
    b.function(function_of("F", inner.graph_def(), ["a:0"], ["inside:0"]))
    x = b.placeholder("x", "float32", (rows, 256))
    with b.device("/device:GPU:0"):
        h = b.op("MatMul", x, x, name="product", transpose_b=True)
        b.op("Reshape", b.op("Relu", h, name="relu"), [-1], name="flat")
    b.op("PartitionedCall", [x], name="call", Tout=["float32"], attrs={"f": func_attr("F")})
    b.op("Neg", x, name="unused")
    path = folder / "model.pb"
    path.write_bytes(b.graph_def().SerializeToString())
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """With a size that the graph does not tell."""
    return write(tmp_path, None)


SHAPE = "--feed", "x", "--shape", "x=64,256", "--fetch", "flat", "--fetch", "call"


def test_text_and_json_agree_with_the_step(partita: CommandLine, model: Path) -> None:
    """Time, device and shapes are those of `simulate`; the text has a block for each node, with short names."""
    words = model, "product", "relu", "flat", *SHAPE, "--costs", "roofline"
    text = partita.done("explain", *words)
    assert text.startswith("product, gpu:0: MatMul on A100-80GB: ")
    blocks = text.rstrip("\n").split("\n\n")
    assert [block.split(",")[0] for block in blocks] == ["product", "relu", "flat"]
    for part in ("formula", "inputs", "numbers", "interval", "datasheet roofline", "--no-tf32"):
        assert part in blocks[0]
    assert blocks[2].splitlines()[0] == "flat, gpu:0: Reshape on A100-80GB: 0 ns, free"
    nodes = json.loads(partita.done("explain", *words, "--json"))["nodes"]
    simulated = json.loads(partita.done("simulate", model, *SHAPE, "--costs", "roofline", "--json"))
    times = {total["op"]: total["time_ns"] for total in simulated["ops"]}
    assert [node["time_ns"] for node in nodes] == [times["MatMul"], times["Relu"], 0]
    assert nodes[0]["device"].endswith("GPU:0")
    assert nodes[0]["low_ns"] <= nodes[0]["time_ns"] <= nodes[0]["high_ns"]
    assert nodes[0]["null_model"]["time_ns"] < nodes[0]["time_ns"]
    assert (nodes[2]["null_model"], nodes[2]["numbers"]) == (None, [])


def test_flags_of_costs_count(partita: CommandLine, tmp_path: Path) -> None:
    """Precision, TensorFlow's estimator, and times of a trace, with what speaks where it has none."""
    words = "explain", write(tmp_path, 64), "product", *SHAPE
    assert "full precision" in partita.done(*words, "--no-tf32", "--costs", "roofline")
    assert "grappler\n" in partita.done(*words, "--costs", "grappler")
    stats = StepStats()
    device = stats.dev_stats.add(device=f"{CPU.removesuffix('CPU:')}GPU:0")
    label = "product = MatMul(x, x)"
    device.node_stats.append(NodeExecStats(node_name="product", timeline_label=label, op_end_rel_nanos=123_000))
    trace = tmp_path / "trace.pb"
    trace.write_bytes(stats.SerializeToString())
    text = partita.done(*words, "relu", "--costs", f"measured:{trace}")
    assert "product, gpu:0: MatMul on A100-80GB: 123.000 us, measured" in text
    assert "MeasuredSource had no time of this op" in text.split("\n\n")[1]


def test_inlined_nodes_are_of_the_step(partita: CommandLine, model: Path) -> None:
    """What a call does is explained, and with --no-inline refused with a hint."""
    words = "explain", model, "call/inside", *SHAPE
    assert_one_clear_line(partita(*words, "--no-inline"), 2, "'call/inside'", "'F'", "without --no-inline")
    for flags in (), ("--inline",):
        assert "call/inside, gpu:0: Neg on A100-80GB" in partita.done(*words, *flags)


def test_nodes_that_cannot_be_explained(partita: CommandLine, model: Path) -> None:
    """One line each that says why, and what to do."""
    for node, words in {
        "produkt": ["no node 'produkt'", "did you mean 'product'"],
        "unused": ["'unused' is not in the step", "partita show"],
        "x": ["'x' is fed"],
        "call": ["a call takes the time of its body", "without --no-inline"],
    }.items():
        assert_one_clear_line(partita("explain", model, node, *SHAPE, "--no-inline"), 2, *words)
    assert_one_clear_line(partita("explain", model, "product", "--feed", "x"), 2, "--shape x=2,256")
    assert_one_clear_line(partita("explain", model, "product", *SHAPE, "--trace-times"), 2, "--costs measured:FILE")
    assert_one_clear_line(partita("explain", model, "product", *SHAPE, "--costs", "guess"), 2, "--costs 'guess'")
    assert partita("explain", model).code == 2
