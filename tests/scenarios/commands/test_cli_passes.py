"""`--passes`: the graph that is printed and timed is the one that runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from tests.function_defs import function_of
from tests.scenarios.command_line import CommandLine, assert_one_clear_line


@pytest.fixture
def folding(tmp_path: Path) -> Path:
    """Two products of constants of 256 x 256, a call, and a fed number."""
    b = GraphBuilder()
    large = b.op("Fill", [256, 256], 0.5)
    product = b.op("MatMul", b.op("MatMul", large, large), large, name="product")
    b.op("AddV2", product, b.placeholder("x", "float32", ()), name="y")
    (tmp_path / "g.pb").write_bytes(b.SerializeToString())
    np.save(tmp_path / "x.npy", np.float32(1))
    return tmp_path / "g.pb"


def test_the_printed_time_is_that_of_the_graph_that_ran(partita: CommandLine, folding: Path) -> None:
    """`run` and `simulate` agree for any passes; constants are folded only where the passes say so."""
    request = (folding, "--feed", f"x={folding.parent / 'x.npy'}", "--fetch", "y")
    makespans = {}
    for passes in ("", "inline", "fold"):
        flags = (*request, "--passes", passes)
        ran = json.loads(partita.done("run", *flags, "--json"))
        assert ran["simulated"] == json.loads(partita.done("simulate", *flags, "--json"))
        text = partita.done("show", *flags, "--stage", "optimised")
        assert ("MatMul" in text) is (passes != "fold")
        assert "MatMul" in partita.done("show", *flags)
        makespans[passes] = ran["simulated"]["makespan_ns"]
    assert makespans["fold"] < makespans["inline"] == makespans[""]


def test_inline_flags_and_the_list_are_one(partita: CommandLine, tmp_path: Path) -> None:
    """`--inline` adds the pass in front, `--no-inline` takes it out; by default it is there alone."""
    body, b = GraphBuilder(), GraphBuilder()
    body.op("Neg", body.placeholder("x", "float32"), name="y")
    b.function(function_of("N", body.graph_def(), ["x:0"], ["y:0"]))
    b.op("N", b.op("Identity", b.placeholder("x", "float32", ())), name="z")
    (tmp_path / "g.pb").write_bytes(b.SerializeToString())

    def shown(*flags: str) -> str:
        return partita.done("show", tmp_path / "g.pb", "--feed", "x", "--stage", "optimised", *flags)

    assert shown() == shown("--inline") == shown("--passes", "inline") != shown("--no-inline")
    assert shown("--no-inline") == shown("--passes", "")
    assert shown("--passes", "fold", "--inline") == shown("--passes", "inline,fold")
    assert shown("--passes", "inline,fold", "--no-inline") == shown("--passes", "fold")
    assert len(shown("--passes", "inline,dead,identities").splitlines()) < len(shown().splitlines())


@pytest.mark.parametrize(("passes", "words"), [("none", "no pass 'none'"), ("fold,fold", "'fold' is given twice")])
@pytest.mark.parametrize("command", ["run", "simulate", "show", "partition", "explain"])
def test_a_wrong_pass_is_named(partita: CommandLine, folding: Path, command: str, passes: str, words: str) -> None:
    """In every command that has the flag."""
    more = {"partition": ("--out", folding.parent / "parts"), "explain": ("y",)}.get(command, ())
    feed = ("--feed", f"x={folding.parent / 'x.npy'}")
    assert_one_clear_line(partita(command, folding, *more, *feed, "--passes", passes), 2, words)
