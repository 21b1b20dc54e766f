"""`partita workload` of a family of models: flags, a graph that is written, a step that is timed, and wrong words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.graph import load_graph_def
from tests.scenarios.command_line import CommandLine, assert_one_clear_line
from tests.scenarios.models.families import published, written

SMALL = ("--set", "fused=no", "--set", "sequence_length=8")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The folder of a small GPT, whose file asks for dropout."""
    return written(tmp_path, published()["gpt2"].config)


def test_a_step_is_written_with_what_to_run(partita: CommandLine, config: Path) -> None:
    """Nodes, feeds, and the names to fetch and run; the notes say what the model does without."""
    out = config / "step.pb"
    flags = ("gpt", "--config", config, "--split", "tp=2,microbatches=2", *SMALL, "--out", out)
    document = json.loads(partita.done("workload", *flags, "--json"))
    assert document["nodes"] == len(load_graph_def(out).node)
    assert document["placeholders"] == ["tokens", "labels", "rank_1/tokens", "rank_1/labels"]
    assert {"train", "rank_1/train"} <= set(document["targets"])
    assert document["initialise"] == ["initialise", "rank_1/initialise"]
    assert [text.partition("=")[0] for text in document["warnings"]] == ["attn_pdrop", "embd_pdrop", "resid_pdrop"]
    told = partita.done("workload", *flags).splitlines()
    assert told[2] == f"targets: {', '.join(document['targets'])}"
    assert told[3] == "initialise: initialise, rank_1/initialise"
    assert told[4].startswith("note: attn_pdrop=0.1: dropout is not there")


def test_a_step_is_timed(partita: CommandLine, config: Path) -> None:
    """On the devices of the flags, or on GPUs of one machine; unused ones and what is left out are said."""
    flags = ("workload", "gpt", "--config", config / "config.json", "--split", "microbatches=2", *SMALL, "--simulate")
    told = partita.done(*flags)
    assert "\n16 tokens a step, " in told
    assert "note: resid_pdrop=0.1" in told
    document = json.loads(partita.done(*flags, "--devices", "cpu:1,gpu:2", "--json"))
    assert document["tokens_per_s"] == pytest.approx(16 / document["makespan_ns"] * 1e9)
    assert "1 devices of the cluster's 2 are used; the others do nothing" in document["warnings"][3]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ("workload 'gpt' needs --config FILE",)),
        (("--config", "CONFIG"), ("workload 'gpt' needs --split",)),
        (("--config", "none.json", "--split", "tp=2"), ("none.json", "No such file")),
        (("--config", "CONFIG", "--split", "tp=3"), ("tp=3 does not divide heads=4; give tp=2 or 4",)),
        (("--config", "CONFIG", "--split", "tpp=3"), ("has no field 'tpp'; did you mean 'tp'",)),
        (("--config", "CONFIG", "--split", "dp=4", "--devices", "gpu:2"), ("the cluster has 2; dp=2 needs 2",)),
        (("--config", "CONFIG", "--set", "split=tp=2"), ("--set split: it has a flag of its own; write --split",)),
        (("--config", "CONFIG", "--split", "tp=2", "--inference", "both"), ("'both' is not one of",)),
        (("--config", "CONFIG", "--split", "tp=2", "--context", "0"), ("--context",)),
        (("--config", "CONFIG", "--split", "tp=2", "--context", "8"), ('give inference="prefill" or "decode" too',)),
        (("--config", "CONFIG", "--split", "tp=2", "--inference", "decode"), ("decoding needs context",)),
    ],
)
def test_wrong_words_are_one_line(
    partita: CommandLine, config: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """And name what would work."""
    given = [str(config) if word == "CONFIG" else word for word in arguments]
    assert_one_clear_line(partita("workload", "gpt", *given, "--simulate"), 2, *words)


def test_inference_is_written_and_timed(partita: CommandLine, config: Path) -> None:
    """A prefill fills the context; a decode has a token of each sequence, and says what it assumes of the cache."""
    split, out = "tp=2,microbatch=3", config / "step.pb"
    flags = ("workload", "gpt", "--config", config, "--split", split, "--context", "8")
    document = json.loads(partita.done(*flags, "--inference", "decode", "--out", out, "--json"))
    assert document["placeholders"] == ["tokens", "rank_1/tokens"]
    assert {"cached", "rank_1/cached"} <= set(document["targets"])
    told = partita.done(*flags, "--inference", "decode", "--simulate")
    assert "\n3 tokens a step, " in told
    assert "the cache is full: a token reads all 8 rows of it" in " ".join(told.split())
    assert "\n24 tokens a step, " in partita.done(*flags, "--inference", "prefill", "--simulate")


def test_experts_are_as_busy_as_is_said(partita: CommandLine, tmp_path: Path) -> None:
    """What is assumed of the router is a note; a dense model has none."""
    flags = ("--config", written(tmp_path, published()["mixtral"].config), "--split", "ep=2,dp=2", *SMALL)
    told = partita.done("workload", "moe", *flags, "--set", "imbalance=1.5", "--simulate")
    assert "those of the busiest rank 1.5 times as many" in " ".join(told.split())
    dense = ("--config", written(tmp_path, published()["gpt2"].config), "--split", "tp=2", "--set", "imbalance=1.5")
    assert_one_clear_line(partita("workload", "gpt", *dense, "--simulate"), 2, "GptModel has no experts; leave it out")


def test_a_file_of_another_family_is_refused(partita: CommandLine, config: Path) -> None:
    result = partita("workload", "llama", "--config", config, "--split", "tp=2", "--simulate")
    assert_one_clear_line(result, 2, "model_type='gpt2' is not of this family; known are llama, qwen2, mistral")
