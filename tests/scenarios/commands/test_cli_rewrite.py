"""Training steps on the command line: `partita rewrite`, and the same flags on the commands that take a graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.graph import load_graph_def
from tests.scenarios.command_line import CommandLine, assert_one_clear_line
from tests.scenarios.commands.training_files import batch, losses, training_graph, training_model

RECOMPUTE = ("--loss", "loss", "--recompute", "full", "--segments", "2")


@pytest.fixture
def model(tmp_path: Path) -> tuple[object, ...]:
    """A SavedModel with a training signature, and values of its inputs."""
    return training_model(tmp_path), "--signature", "train", "--feeds", batch(tmp_path)


def test_a_signature_trains_alike(partita: CommandLine, model: tuple[object, ...]) -> None:
    """Losses after one step and after three, printed to six digits, are those of one device."""
    plain = losses(partita, *model)
    assert losses(partita, *model, *RECOMPUTE) == plain


def test_what_is_written_is_what_other_commands_take(partita: CommandLine, tmp_path: Path) -> None:
    """A graph that `rewrite` wrote runs and is printed as the one that the flags make."""
    step, out = training_graph(tmp_path), tmp_path / "out.pb"
    request = ("--feed", "x", "--feed", "target", "--fetch", "loss", "--target", "train")
    assert partita.done("rewrite", step, *RECOMPUTE, "--out", out).startswith(f"{out}: ")
    for command in (["show"], ["show", "--stage", "raw"], ["simulate", "--json"]):
        name, *flags = command
        assert partita.done(name, out, *request, *flags) == partita.done(name, step, *request, *flags, *RECOMPUTE)
    assert any(node.name.endswith("/again") for node in load_graph_def(out).node)
    partita.done("partition", step, *request, *RECOMPUTE, "--out", tmp_path / "parts")
    assert b"/again" in (tmp_path / "parts" / "cpu0.pb").read_bytes()
    assert "again" in partita.done("explain", out, "layer0/MatMul/again", *request)


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
    request = ("--feed", "x", "--feed", "target", "--fetch", "loss", "--target", "train", "--json")

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
