"""`partita` on the folder of a SavedModel: variables are restored, and names are those of a signature."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.conformance.corpus import COMMITTED
from tests.scenarios.command_line import CommandLine, assert_one_clear_line

MODEL = COMMITTED / "saved_model" / "v1_ref_variables" / "model"
TAGGED = COMMITTED / "saved_model" / "v1_two_metagraphs" / "model"


def feed(folder: Path) -> str:
    """A value for the input x."""
    np.save(folder / "x.npy", np.ones((2, 3), np.float32))
    return f"x={folder / 'x.npy'}"


def test_the_usual_signature_runs(partita: CommandLine, tmp_path: Path) -> None:
    """Its outputs are fetched under their own names."""
    partita.done("run", MODEL, "--feed", feed(tmp_path), "--out", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as out:
        assert out.files == ["y"]
        assert np.isfinite(out["y"]).all()


def test_another_signature_keeps_state(partita: CommandLine) -> None:
    """From step to step, from the restored value on."""
    once = partita.done("run", MODEL, "--signature", "bump")
    thrice = partita.done("run", MODEL, "--signature", "bump", "--steps", 3)
    first, third = (float(text.split("c  float []")[1].split()[0]) for text in (once, thrice))
    assert third > first


def test_tags_choose_the_graph(partita: CommandLine, tmp_path: Path) -> None:
    """Several tags, separated by commas."""
    for tags in ("train", "serve,extra"):
        assert "y  float" in partita.done("run", TAGGED, "--tags", tags, "--feed", feed(tmp_path))


def test_its_signatures_are_listed(partita: CommandLine) -> None:
    """With types and shapes, for the graph with these tags."""
    text = partita.done("inspect", MODEL)
    assert "signature serving_default" in text
    assert "[?,3]" in text
    document = json.loads(partita.done("inspect", TAGGED, "--tags", "train", "--json"))
    (y,) = document["signatures"][0]["outputs"]
    assert (y["name"], y["dtype"]) == ("y", "float")
    assert "Could not find meta graph" in partita("inspect", MODEL, "--tags", "train").err


def test_simulating_needs_no_values(partita: CommandLine, tmp_path: Path) -> None:
    """Neither of variables nor of feeds with a known shape."""
    assert "step time" in partita.done("simulate", MODEL, "--feed", feed(tmp_path))


def test_what_is_wrong_is_said(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """Unknown signature, tags or model, and a signature or tags for a plain graph."""
    for arguments, text in [
        ((MODEL, "--signature", "nope"), "has no signature 'nope'; it has 'bump', 'serving_default'"),
        ((MODEL, "--tags", "train"), "Could not find meta graph def matching supplied tags"),
        ((tmp_path,), "Could not find SavedModel"),
        ((graph, "--signature", "x"), f"--signature: '{graph}' is not a SavedModel folder"),
        ((graph, "--tags", "serve"), f"--tags: '{graph}' is not a SavedModel folder"),
        ((MODEL,), "'x' (float [?,3]) is not fed"),
    ]:
        result = partita("run", *arguments)
        assert result.code == 2, result
        assert text in result.err
    assert_one_clear_line(partita("inspect", graph, "--tags", "serve"), 2, "--tags", "is not a SavedModel folder")
