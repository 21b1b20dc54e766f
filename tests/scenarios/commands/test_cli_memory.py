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
        assert simulated.out.startswith("simulated step time: ")
        for text in headlines:
            first, second = text.splitlines()[:2]
            assert first == "does not fit: gpu:0 needs 4.00 KiB of 2.00 KiB"
            assert second.startswith("does not fit in memory: gpu:0 needs 4.00 KiB of device memory and has 2.00 KiB; ")
            assert second.endswith("; the largest tensors are '_arg_x_0_0/_1' (communication, 4.00 KiB)")
    documents = [partita(command, *words[:-1], "--json") for command in ("simulate", "run")]
    assert [document.code for document in documents] == [0 if fits else 4, 0]
    first, second = json.loads(documents[0].out), json.loads(documents[1].out)["simulated"]
    assert first == second
    assert first["fits"] is fits is all(memory["fits"] for memory in first["memory"])
    assert (tmp_path / "simulated.json").read_bytes() == (tmp_path / "ran.json").read_bytes()


def test_a_report_says_what_fills_the_fullest_memory(
    partita: CommandLine, request_flags: tuple[object, ...], tmp_path: Path
) -> None:
    """In words, and in JSON with sums that are the peak: x has come from the host, and y is written into it."""
    words = "simulate", *request_flags, "--cluster", tmp_path / "large.toml"
    assert "memory of gpu:0 at its peak: communication 4.00 KiB\n" in partita.done(*words)
    for memory in json.loads(partita.done(*words, "--json"))["memory"]:
        assert sum(memory["by_category"].values()) == memory["peak_bytes"]


def test_a_step_of_a_split_that_does_not_fit_has_advice(partita: CommandLine, tmp_path: Path) -> None:
    """The first lines say what does not fit, and what of the split to change; a step of inference has none."""
    sizes = {"model_type": "gpt2", "n_layer": 4, "n_embd": 1024, "n_head": 16, "vocab_size": 1024, "n_positions": 1024}
    (tmp_path / "c.json").write_text(json.dumps(sizes))
    words = "workload", "gpt", "--config", tmp_path / "c.json", "--devices", "gpu:1", "--simulate", "--split"
    simulated = partita(*words, "microbatch=1024,precision=bfloat16")
    assert simulated.code == 4
    first, second, third = simulated.out.splitlines()[:3]
    assert ": does not fit: gpu:0 needs 139.00 GiB of 80.00 GiB" in first
    assert second.startswith("does not fit in memory: gpu:0 needs ")
    assert third.startswith("the smallest change that fits: ")
    assert third.endswith(" by the closed form)")
    inference = partita(*words, "microbatch=65536,precision=bfloat16", "--inference", "prefill")
    assert inference.code == 4
    assert "the smallest change" not in inference.out
