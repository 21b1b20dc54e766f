"""A step that does not fit in memory: said first, in the JSON document, and by the exit code of `simulate`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from partita.graph import GraphBuilder
from tests.scenarios.command_line import CommandLine

CLUSTER = """
[[device]]
kind = "GPU"
spec = {{ kind = "GPU", memory = "{memory}", memory_bandwidth = "1 GB/s", peak_flops = {{ fp32 = "1 GFLOP/s" }} }}
"""


@pytest.fixture
def request_flags(tmp_path: Path) -> tuple[object, ...]:
    """exp(x) of 4 KiB on a GPU."""
    b = GraphBuilder()
    b.op("Exp", b.placeholder("x", "float32", (1024,)), name="y", device="/device:GPU:0")
    (tmp_path / "g.pb").write_bytes(b.SerializeToString())
    np.save(tmp_path / "x.npy", np.zeros(1024, np.float32))
    for name, memory in (("small", "2 KiB"), ("large", "1 MiB")):
        text = '[[device]]\nspec = "generic-cpu"\n' + CLUSTER.format(memory=memory).replace(
            'kind = "GPU"\nspec', "spec", 1
        )
        (tmp_path / f"{name}.toml").write_text(text)
    return (tmp_path / "g.pb", "--feed", f"x={tmp_path / 'x.npy'}", "--fetch", "y")


@pytest.mark.parametrize(("size", "fits"), [("small", False), ("large", True)])
def test_a_step_that_does_not_fit_says_so_first(
    size: str, fits: bool, partita: CommandLine, request_flags: tuple[object, ...], tmp_path: Path
) -> None:
    """In words and in JSON, on `simulate` with exit code 4 and on `run` with 0; all files are written."""
    words = (*request_flags, "--cluster", tmp_path / f"{size}.toml", "--trace")
    simulated = partita("simulate", *words, tmp_path / "simulated.json")
    ran = partita("run", *words, tmp_path / "ran.json")
    assert (simulated.code, ran.code, simulated.err, ran.err) == (0 if fits else 4, 0, "", "")
    headlines = [
        result.out[result.out.index("does not fit") :] for result in (simulated, ran) if "not fit" in result.out
    ]
    assert len(headlines) == (0 if fits else 2)
    if not fits:
        assert simulated.out.startswith("does not fit in memory: gpu:0 needs ")
        for text in headlines:
            assert "of device memory and has 2.00 KiB" in text.splitlines()[0]
            assert text.splitlines()[1].startswith("simulated step time: ")
    documents = [partita(command, *words[:-1], "--json") for command in ("simulate", "run")]
    assert [document.code for document in documents] == [0 if fits else 4, 0]
    first, second = json.loads(documents[0].out), json.loads(documents[1].out)["simulated"]
    assert first == second
    assert first["fits"] is fits is all(memory["fits"] for memory in first["memory"])
    assert (tmp_path / "simulated.json").read_bytes() == (tmp_path / "ran.json").read_bytes()
