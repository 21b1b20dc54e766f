"""Training steps on the command line: `partita rewrite`, and the same flags on the commands that take a graph."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from partita.graph import load_graph_def
from tests.scenarios.command_line import CommandLine, assert_one_clear_line
from tests.scenarios.commands.training_files import batch, losses, training_graph, training_model

STEP_FLAGS = ("--batch", "x,target", "--loss", "loss")
RECOMPUTE = ("--loss", "loss", "--recompute", "full", "--segments", "2")


@pytest.fixture
def model(tmp_path: Path) -> tuple[object, ...]:
    """A SavedModel with a training signature, and values of its inputs."""
    return training_model(tmp_path), "--signature", "train", "--feeds", batch(tmp_path)


SHAPES = ("--shape", "x=4096,6", "--shape", "target=4096,6")
PIPELINE = ("--pipeline", "2", "--microbatches", "2")
PARALLEL = {
    "recomputed": "--recompute full --segments 2",
    "products kept": "--recompute products",
    "replicated": "--replicate 2",
    "four replicas": "--replicate 4 --devices cpu:5",
    "parameter server": "--replicate 2 --parameters cpu:0 --devices cpu:2",
    "small buckets": "--replicate 2 --bucket-bytes 100",
    "recomputed by replicas": "--replicate 2 --recompute full --segments layer1,layer2",
    "on GPUs": "--replicate 2 --devices cpu:1,gpu:2",
    "ZeRO 1": "--replicate 2 --zero 1",
    "ZeRO 2 in groups": "--replicate 4 --zero 2 --zero-group 2",
    "ZeRO 3 of units": "--replicate 2 --zero 3 --units layer0,layer1,layer2,layer3 --recompute full",
    "pipeline": "--pipeline 2 --microbatches 4 --schedule gpipe",
    "interleaved": "--pipeline 2 --microbatches 4 --schedule interleaved --interleave 2",
    "all": "--pipeline 2 --microbatches 2 --replicate 2 --zero 1 --recompute full",
}


@pytest.mark.parametrize("how", PARALLEL)
def test_a_signature_trains_alike(how: str, partita: CommandLine, model: tuple[object, ...]) -> None:
    """Losses after one step and after three are those of one device, up to the rounding of sums."""
    flags = PARALLEL[how].split()
    assert losses(partita, *model, *STEP_FLAGS, *flags) == pytest.approx(losses(partita, *model), rel=1e-5)


def test_outputs_of_the_whole_batch(partita: CommandLine, tmp_path: Path, model: tuple[object, ...]) -> None:
    """Rows of `--concat` come together in their order; other outputs are those of replica 0."""

    def error(*flags: object) -> np.ndarray:
        partita.done("run", *model, *flags, "--out", tmp_path / "out.npz")
        with np.load(tmp_path / "out.npz") as out:
            value: np.ndarray = out["error"]
            return value

    replicated = (*STEP_FLAGS, "--replicate", "2")
    assert error(*replicated, "--concat", "error") == pytest.approx(error(), rel=1e-5)
    assert error(*replicated) == pytest.approx(error()[:4], rel=1e-5)


def test_time_communication_and_memory_are_printed(partita: CommandLine, model: tuple[object, ...]) -> None:
    """One command says how long a step takes on 8 GPUs, what it waits for, and how much memory each needs."""
    flags = (*model, *STEP_FLAGS, "--replicate", "8", "--devices", "gpu:8")
    peaks = []
    for zero in range(4):
        document = json.loads(partita.done("simulate", *flags, "--zero", zero, "--json"))
        gpus = [device for device in document["devices"] if "GPU" in device["device"]]
        assert len(gpus) == 8
        assert all(gpu["exposed_communication_ns"] > 0 for gpu in gpus)
        peaks.append(max(gpu["peak_memory_bytes"] for gpu in gpus))
    assert peaks[3] < peaks[0]
    assert "exposed comm." in partita.done("simulate", *flags)


def test_devices_are_numbered_by_replica(partita: CommandLine, tmp_path: Path) -> None:
    """Replica 1 of two stages has GPUs 2 and 3; without flags there are as many CPUs as needed."""
    step, out = training_graph(tmp_path), tmp_path / "out.pb"
    words = ("rewrite", step, *STEP_FLAGS[:1], "x,target", *STEP_FLAGS[2:], *PIPELINE, "--replicate", 2, "--out", out)
    assert "nodes on cpu:0, cpu:1, cpu:2, cpu:3\n" in partita.done(*words)
    assert "nodes on cpu:0, gpu:0, gpu:1, gpu:2, gpu:3\n" in partita.done(*words, "--devices", "cpu:1,gpu:6")
    named = [node for node in load_graph_def(out).node if node.name.startswith("replica_1/")]
    assert {node.device[-5:] for node in named} <= {"GPU:2", "GPU:3", "CPU:0"}


def test_what_is_written_is_what_other_commands_take(partita: CommandLine, tmp_path: Path) -> None:
    """A graph that `rewrite` wrote runs and is printed as the one that the flags make."""
    step, out = training_graph(tmp_path), tmp_path / "out.pb"
    request = ("--feed", "x", "--feed", "target", "--fetch", "loss", "--target", "train")
    assert partita.done("rewrite", step, *RECOMPUTE, "--out", out).startswith(f"{out}: ")
    for command in (["show"], ["show", "--stage", "raw"], ["simulate", "--json", *SHAPES]):
        name, *flags = command
        assert partita.done(name, out, *request, *flags) == partita.done(name, step, *request, *flags, *RECOMPUTE)
    assert any(node.name.endswith("/again") for node in load_graph_def(out).node)
    partita.done("partition", step, *request, *RECOMPUTE, "--out", tmp_path / "parts")
    assert b"/again" in (tmp_path / "parts" / "cpu0.pb").read_bytes()
    assert "again" in partita.done("explain", out, "layer0/MatMul/again", *request, *SHAPES)


def test_names_of_the_signature_are_printed(partita: CommandLine, tmp_path: Path, model: tuple[object, ...]) -> None:
    """What to feed and to fetch in the written graph, which has no signatures."""
    out = tmp_path / "out.pb"
    words = ["rewrite", *model[:3], *RECOMPUTE, "--out", out]
    document = json.loads(partita.done(*words, "--json"))
    assert {"name": "x", "tensor": "train_x:0"} in document["feeds"]
    assert document["fetches"] == [{"name": "error", "tensor": "called:0"}, {"name": "loss", "tensor": "called:1"}]
    assert "feed target as train_target:0, x as train_x:0\nfetch error as called:0" in partita.done(*words)


def test_memory_is_seen_to_fall(partita: CommandLine, tmp_path: Path) -> None:
    """`simulate` says by how much; `products` keeps more than `full`."""
    step = training_graph(tmp_path)
    request = ("--fetch", "loss", "--target", "train", *SHAPES, "--json")

    def peak(*flags: object) -> int:
        (device,) = json.loads(partita.done("simulate", step, *request, *flags))["devices"]
        return int(device["peak_memory_bytes"])

    assert peak(*RECOMPUTE) < peak()
    assert peak("--loss", "loss", "--recompute", "layer1/BiasAdd", "--segments", "layer0,layer1,layer2") <= peak()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--recompute full", "--recompute: --loss must be given too"),
        ("--replicate 2 --loss loss", "--replicate: --batch must be given too"),
        ("--pipeline 2 --loss loss", "--pipeline: --batch and --microbatches must be given too"),
        ("--loss loss", "--loss: it does nothing without --replicate or --pipeline or --recompute"),
        ("--zero 1 --loss loss --recompute full", "--zero: it does nothing without --replicate"),
        ("--segments 3", "--segments: it does nothing without --recompute"),
        (
            "--recompute full --loss los",
            "'los' is neither an output of the signature nor a tensor of the graph; did you",
        ),
        ("--recompute full --loss loss --segments layer9", "segment 'layer9'"),
        ("--recompute full --loss loss --segments layer0,,layer1", "--segments 'layer0,,layer1': an empty name"),
        ("--recompute everything --loss loss", "policy 'everything'"),
        ("--replicate 0 --batch x --loss loss", "--replicate"),
        ("--zero 4", "--zero"),
        ("--reduction median", "--reduction"),
        ("--replicate 4 --batch x,target --loss loss --devices cpu:1,gpu:2", "--replicate 4 needs 4 devices, and"),
        ("--replicate 4 --pipeline 2 --microbatches 2 --batch x --loss loss --devices cpu:3", "needs 8 devices"),
        ("--replicate 2 --zero-group 2 --batch x,target --loss loss", "--zero-group: nothing is shared"),
    ],
)
def test_what_is_wrong_is_one_line(flags: str, words: str, partita: CommandLine, model: tuple[object, ...]) -> None:
    """The flag and what to do, with the code of wrong usage."""
    assert_one_clear_line(partita("run", *model, *flags.split()), 2, words)


def test_a_rewrite_has_something_to_do(partita: CommandLine, tmp_path: Path) -> None:
    """Without a pass, or with an output that would overwrite the graph, it is refused."""
    step = training_graph(tmp_path)
    assert_one_clear_line(partita("rewrite", step, "--out", tmp_path / "o.pb"), 2, "--replicate N", "--recompute full")
    assert_one_clear_line(partita("rewrite", step, *RECOMPUTE, "--out", step), 2, "--out", "GRAPH")
