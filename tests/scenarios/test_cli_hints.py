"""The error for an unknown name suggests the nearest, the one for a missing device the flag to add."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from tests.scenarios.command_line import CommandLine, GraphFile, assert_one_clear_line

MODEL = Path(__file__).parents[1] / "conformance/data/saved_model/keras_mlp/model"


def test_names_of_a_request(partita: CommandLine, graph: Path, x: str, tmp_path: Path) -> None:
    """Feeds, fetches and targets, on every command that takes them."""
    file = x.partition("=")[2]
    for command in (["run"], ["simulate"], ["partition", "--out", tmp_path / "parts"]):
        start = [*command, graph, "--devices", "cpu:2"]
        meant = "did you mean 'xw'?"
        assert_one_clear_line(partita(*start, "--feed", x, "--fetch", "xww"), 2, "xww", meant)
        assert_one_clear_line(partita(*start, "--feed", x, "--target", "xww"), 2, "xww", meant)
        assert_one_clear_line(partita(*start, "--feed", f"X={file}"), 2, "'X'", "did you mean 'x'?")


def test_names_of_a_model(partita: CommandLine) -> None:
    """Its signatures."""
    result = partita("run", MODEL, "--signature", "serving_defalt")
    assert_one_clear_line(result, 2, "'serving_defalt'", "did you mean 'serving_default'?")


def test_names_of_the_program(partita: CommandLine) -> None:
    """Commands, options, stories, models of a cluster file."""
    assert_one_clear_line(partita("simulat"), 2, "'simulat'", "did you mean 'simulate'?")
    assert_one_clear_line(partita("zzz"), 2, "'zzz'", "run", "simulate", "devices")
    assert_one_clear_line(partita("run", "g.pb", "--fetc", "y"), 2, "--fetc", "--fetch")
    assert_one_clear_line(partita("scenario", "all_to_two"), 2, "did you mean 'all_to_one'?")


def test_the_models_of_a_cluster_file(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """Devices and links of the catalog."""
    (tmp_path / "c.toml").write_text("[[device]]\nspec = 'A100-80'\n")
    result = partita("simulate", graph, "--feed", "x", "--cluster", tmp_path / "c.toml")
    assert_one_clear_line(result, 2, "'A100-80'", "did you mean 'A100-80GB'?")


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """A graph that requests GPU 1 and CPU 2."""
    b = GraphBuilder()
    a = b.op("Neg", b.constant(np.ones(3, np.float32)), device="/device:CPU:2")
    b.op("Neg", a, name="y", device="/device:GPU:1")
    (tmp_path / "far.pb").write_bytes(b.SerializeToString())
    return tmp_path / "far.pb"


def test_a_missing_device_comes_with_the_option_to_add(partita: CommandLine, far: Path, tmp_path: Path) -> None:
    """The suggested list has all requested devices; with it, or with soft placement, the command succeeds."""
    for command in (["run"], ["simulate"], ["partition", "--out", tmp_path / "parts"]):
        failed = partita(*command, far, "--devices", "gpu:1")
        assert_one_clear_line(failed, 2, "available devices", 'Add --devices "cpu:3,gpu:2"', "--soft-placement")
        partita.done(*command, far, "--devices", "cpu:3,gpu:2")
        partita.done(*command, far, "--devices", "gpu:1", "--soft-placement")


def test_a_device_missing_in_a_cluster_file(partita: CommandLine, far: Path, tmp_path: Path) -> None:
    """The file is named."""
    (tmp_path / "small.toml").write_text("[[device]]\nspec = 'generic-cpu'\ncount = 3\n")
    failed = partita("simulate", far, "--cluster", tmp_path / "small.toml")
    assert_one_clear_line(failed, 2, "Add a device for it to", "small.toml")


def test_a_device_of_another_task(partita: CommandLine, tmp_path: Path) -> None:
    """No list of devices of one machine would help, so the hint is a cluster file."""
    graph = GraphFile()
    graph.add("y", "NoOp", device="/job:worker/replica:0/task:3/device:CPU:0")
    failed = partita("run", graph.write(tmp_path), "--devices", "cpu:1")
    assert_one_clear_line(failed, 2, "/job:worker", "--cluster FILE.toml")


def test_the_nodes_of_a_cycle_are_named(partita: CommandLine, tmp_path: Path) -> None:
    """In their order."""
    graph = GraphFile()
    for name, source in (("a", "c"), ("b", "a"), ("c", "b")):
        graph.add(name, "Neg", [source], T=1)
    path = graph.write(tmp_path)
    for command in ("run", "simulate", "inspect"):
        assert_one_clear_line(partita(command, path), 2, "3 nodes in a cycle: a -> b -> c -> a")


def test_counts_beyond_any_machine(partita: CommandLine, graph: Path) -> None:
    """Refused by name, whichever command."""
    for command in ("run", "simulate"):
        failed = partita(command, graph, "--feed", "x", "--devices", "cpu:1,gpu:1000000")
        assert_one_clear_line(failed, 2, "--devices", "'gpu:1000000' asks for 1,000,000 devices")


def test_arrays_of_objects_are_refused_with_what_to_save(partita: CommandLine, tmp_path: Path) -> None:
    """They would have to be unpickled; numpy's arrays of text and of bytes are accepted."""
    b = GraphBuilder()
    b.identity(b.placeholder("s", "string", (2,)), name="y")
    (tmp_path / "g.pb").write_bytes(b.SerializeToString())
    text = np.array(["grün", "b"])
    np.savez(tmp_path / "objects.npz", s=text.astype(object))
    np.save(tmp_path / "objects.npy", text.astype(object))
    for flags in (["--feeds", tmp_path / "objects.npz"], ["--feed", f"s={tmp_path / 'objects.npy'}"]):
        failed = partita("run", tmp_path / "g.pb", *flags)
        assert_one_clear_line(failed, 2, "objects.np", "Python objects", "astype('U')", "astype('S')")
    for array in (text, np.char.encode(text)):
        np.savez(tmp_path / "text.npz", s=array)
        np.save(tmp_path / "text.npy", array)
        for flags in (["--feeds", tmp_path / "text.npz"], ["--feed", f"s={tmp_path / 'text.npy'}"]):
            assert "y  string [2] 'gr\\xc3\\xbcn', 'b'" in partita.done("run", tmp_path / "g.pb", *flags)
