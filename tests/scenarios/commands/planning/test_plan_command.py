"""`partita plan`: a table, an explanation and a document of the same plans, and one clear line for wrong words."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from partita.devices import machines_of
from partita.scenarios import LlamaModel, Split
from partita.scenarios.planners import search
from partita.scenarios.planners.estimates import MEMORY_CATEGORIES, TIME_CATEGORIES
from tests.scenarios.command_line import CommandLine, assert_one_clear_line
from tests.scenarios.commands.planning.plans import FEW, SMALL
from tests.scenarios.models.families import published, written

ON = ("--gpus", "H100-SXM:16", "--global-batch", "64")
PLAN_KEYS = (
    *("rank", "dp", "tp", "pp", "cp", "cp_kind", "ep", "microbatch", "microbatches", "interleave", "schedule"),
    *("sequence_parallel", "zero", "zero_group", "recompute", "overlap", "precision", "step_ms", "step_ms_low"),
    *("step_ms_high", "simulated_step_ms", "tokens_per_s", "mfu", "time_by_category_ms", "bubble_fraction"),
    *("exposed_comm_ms", "allocated_gib", "allocated_gib_low", "allocated_gib_high", "reserved_gib"),
    *("memory_limit_gib", "memory_by_category_gib", "usd_per_step", "joules_per_step", "usd_per_run", "days"),
    "goodput",
)
PRICED = """
[[host]]
model = "DGX-A100"
job = "worker"
tasks = 4
price = "2.00 $/h"
power = "400 W"
mtbf = "50000 h"
"""


def document(partita: CommandLine, *flags: object) -> dict[str, Any]:  # Any: JSON
    """What a call with --json prints."""
    printed: dict[str, Any] = json.loads(partita.done("plan", *SMALL, *FEW, *flags, "--json"))
    return printed


def test_the_document_has_the_keys_that_are_promised(partita: CommandLine) -> None:
    """In their order; null where a price is missing and nothing was simulated."""
    printed = document(partita, *ON, "--top", 3)
    assert list(printed) == [
        *("version", "mode", "model", "cluster", "configurations", "impossible", "assumptions", "plans")
    ]
    assert (printed["version"], printed["mode"], printed["cluster"]) == (1, "training", "16 H100-SXM in 2 machines")
    assert printed["model"]["layers"] == 4
    assert (printed["model"]["sequence_length"], printed["model"]["global_batch"]) == (1024, 64)
    assert [tuple(plan) for plan in printed["plans"]] == [PLAN_KEYS] * 3
    for plan in printed["plans"]:
        assert set(plan["time_by_category_ms"]) == set(TIME_CATEGORIES)
        assert sum(plan["time_by_category_ms"].values()) == pytest.approx(plan["step_ms"])
        assert set(plan["memory_by_category_gib"]) == set(MEMORY_CATEGORIES)
        assert sum(plan["memory_by_category_gib"].values()) == pytest.approx(plan["reserved_gib"])
        assert plan["step_ms_low"] <= plan["step_ms"] <= plan["step_ms_high"]
        assert [plan[key] for key in ("simulated_step_ms", "usd_per_step", "usd_per_run", "days")] == [None] * 4
    assert [plan["rank"] for plan in printed["plans"]] == [1, 2, 3]
    assert sorted(plan["step_ms"] for plan in printed["plans"]) == [plan["step_ms"] for plan in printed["plans"]]


def test_plans_are_those_of_search(partita: CommandLine) -> None:
    """With the settings of the flags."""
    flags = (*ON, "--split", "tp=2,zero=1+2", "--top", 5, "--gradient-bytes", 2, "--dropout")
    printed = document(partita, *flags)
    found = search(
        LlamaModel(4, 1024, 8, 4096, 32000),
        machines_of("H100-SXM:16"),
        global_batch=64,
        sequence_length=1024,
        search="tp,pp,zero",
        split="tp=2,zero=1+2",
        top=5,
        gradient_bytes=2,
        dropout=True,
    )
    assert [plan["step_ms"] for plan in printed["plans"]] == [plan.step_ms for plan in found.plans]
    assert {(plan["tp"], plan["zero"]) for plan in printed["plans"]} <= {(2, 1), (2, 2)}
    assert printed["configurations"] == found.configurations


def test_the_text_says_what_the_document_says(partita: CommandLine) -> None:
    """Table, explanation, what was searched, and the next command."""
    printed, lines = document(partita, *ON), partita.done("plan", *SMALL, *FEW, *ON).splitlines()
    first = printed["plans"][0]
    assert lines[0] == (
        "llama of 0.13 billion parameters on 16 H100-SXM in 2 machines, 64 sequences of 1,024 tokens a step"
    )
    assert lines[1].split()[:4] == ["#", "tp", "pp", "dp"]
    rows = [line.split() for line in lines[2 : 2 + len(printed["plans"])]]
    assert [row[:4] for row in rows] == [
        [str(plan[key]) for key in ("rank", "tp", "pp", "dp")] for plan in printed["plans"]
    ]
    assert f"where the time goes: {first['step_ms']:,.1f} ms" in lines
    assert any(line.startswith(f"searched {printed['configurations']:,} configurations") for line in lines)
    for reason, count in printed["impossible"].items():
        assert [count_and_reason(line) for line in lines].count((count, reason)) == 1
    assert [f"  {text}" for text in printed["assumptions"] if f"  {text}" not in lines] == []
    command = printed_command(lines)
    assert Split.parse(command[command.index("--split") + 1]).devices == 16


def printed_command(lines: list[str]) -> list[str]:
    """The words of the command that ends a text, as a shell reads lines that a backslash joins."""
    return shlex.split("\n".join(lines[lines.index("build and simulate plan 1") + 1 :]).replace("\\\n", ""))


def count_and_reason(line: str) -> tuple[int, str] | None:
    """Of "  6,108  does not fit" the two parts."""
    count, _, reason = line.strip().partition("  ")
    return (int(count.replace(",", "")), reason) if count.replace(",", "").isdecimal() else None


def test_the_next_command_builds_the_plan(partita: CommandLine) -> None:
    """As it is printed; its time is that of the graph."""
    lines = partita.done("plan", *SMALL, *FEW, *ON, "--split", "tp=2,pp=2").splitlines()
    command = printed_command(lines)
    assert command[0] == "partita"
    assert json.loads(partita.done(*command[1:], "--json"))["tokens_per_s"] > 0


def test_the_first_plans_are_simulated(partita: CommandLine) -> None:
    """As many as asked; the text has both times with their difference."""
    flags = ("--gpus", "H100-SXM:8", "--global-batch", 16, "--split", "tp=2,pp=1", "--top", 2, "--simulate", 1)
    simulated = [plan["simulated_step_ms"] for plan in document(partita, *flags)["plans"]]
    assert [time is not None for time in simulated] == [True, False]
    told = partita.done("plan", *SMALL, *FEW, *flags)
    assert f"plan 1 simulated: {simulated[0]:,.1f} ms; the closed form says " in told


@pytest.fixture
def priced(tmp_path: Path) -> Path:
    """Four machines with prices."""
    path = tmp_path / "priced.toml"
    path.write_text(PRICED)
    return path


def test_numbers_of_gpus_are_compared(partita: CommandLine, priced: Path) -> None:
    """Each with its best plan, days and dollars; more GPUs take less time and cost more."""
    flags = ("--cluster", priced, "--global-batch", 64, "--gpu-counts", "32,8,12,16", "--tokens", "1B")
    counts = document(partita, *flags, "--storage", "10 GB/s")["gpu_counts"]
    assert [it["gpus"] for it in counts] == [8, 12, 16, 32]
    assert [it["plan"] is None for it in counts] == [False, True, False, False]
    assert counts[1]["reason"].startswith("hosts have 4 and 8 A100-80GB")
    plans = [it["plan"] for it in counts if it["plan"]]
    assert all(0 < plan["goodput"] <= 1 and plan["usd_per_run"] > 0 for plan in plans)
    assert sorted((plan["days"] for plan in plans), reverse=True) == [plan["days"] for plan in plans]
    on_front = {it["gpus"] for it in counts if it["on_front"]}
    assert 32 in on_front
    told = partita.done("plan", *SMALL, *FEW, *flags).splitlines()
    start = told.index("the best plan by number of GPUs")
    assert [line.split()[0] for line in told[start + 2 : start + 5]] == ["8", "16", "32"]
    assert any(line.startswith("12 GPUs: ") for line in told[start:])


def test_faster_links_are_planned_with(partita: CommandLine) -> None:
    """The same plan and the best one then, which is at least as fast; and what each rate is worth."""
    flags = (*ON, "--split", "tp=8,pp=1")
    slow = document(partita, *flags)
    what_if = document(partita, *flags, "--what-if", "link.bandwidth=2x", "--what-if", "peak=1.5x")["what_if"]
    assert what_if["factors"] == {"products": 1.5, "memory": 1.0, "inside": 2.0, "ports": 2.0, "launches": 1.0}
    assert what_if["best"]["step_ms"] <= what_if["step_ms"] < slow["plans"][0]["step_ms"]
    assert set(what_if["saved_percent"]) == set(what_if["factors"])
    told = partita.done("plan", *SMALL, *FEW, *flags, "--what-if", "link.bandwidth=2x")
    assert "\nwith link.bandwidth=2x: links inside a machine 2 times, ports between machines 2 times\n" in told
    assert "\n  the same plan  " in told


def test_a_config_is_read(partita: CommandLine, tmp_path: Path) -> None:
    """And what the model does without is said by the next command."""
    config = written(tmp_path, published()["gpt2"].config)
    flags = ("gpt", "--config", config, "--gpus", "A100-80GB:1", "--global-batch", 4, *FEW, "--json")
    printed = json.loads(partita.done("plan", *flags))
    assert printed["model"]["family"] == "gpt"
    assert printed["cluster"] == "1 A100-80GB in one machine"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--global-batch", 8), ("no machines are given", '--gpus "H100-SXM:64"')),
        ((*ON, "--cluster", "x.toml"), ("--cluster and --gpus exclude each other",)),
        (("--gpus", "H100-SXM:16"), ("--global-batch is missing",)),
        (("--gpus", "H100-SXM:12", "--global-batch", 8), ("H100-SXM:12", "give H100-SXM:8 or H100-SXM:16")),
        (("--gpus", "H101-SXM:8", "--global-batch", 8), ("did you mean 'H100-SXM'",)),
        ((*ON, "--config", "config.json"), ("--config and --layers exclude each other",)),
        ((*ON, "--experts", 8), ("--experts: a llama has no such size",)),
        ((*ON, "--imbalance", 2), ("--imbalance 2: llama has no experts",)),
        ((*ON, "--search", "tq"), ("there is no axis 'tq'",)),
        ((*ON, "--split", "tp=3"), ("tp=3 does not divide", "2 or 4")),
        ((*ON, "--split", "tpp=3"), ("no field 'tpp'; did you mean 'tp'",)),
        ((*ON, "--tokens", "many"), ("--tokens 'many'", "300B")),
        ((*ON, "--tokens", "-3"), ("--tokens '-3'",)),
        ((*ON, "--storage", "100"), ("--storage: '100' is no bandwidth",)),
        ((*ON, "--gpu-counts", "8,x"), ("--gpu-counts '8,x'", "'x' is no positive whole number")),
        ((*ON, "--gpu-counts", "0"), ("'0' is no positive whole number",)),
        ((*ON, "--gpu-counts", "12"), ("--gpu-counts: 12 GPUs",)),
        ((*ON, "--what-if", "bandwidth=2x"), ("--what-if", "is no rate of these machines")),
        ((*ON, "--prompt", 8), ("--prompt is for serving; add --inference",)),
        ((*ON, "--inference"), ("--global-batch is for training",)),
        (("--gpus", "H100-SXM:8", "--inference"), ("--seq is for training",)),
        ((*ON, "--calibration", "none.toml"), ("--calibration", "none.toml")),
        (("--cluster", "none.toml", "--global-batch", 8), ("--cluster", "none.toml")),
    ],
)
def test_wrong_words_are_one_line(partita: CommandLine, flags: tuple[object, ...], words: tuple[str, ...]) -> None:
    """With what would work, before anything is printed."""
    assert_one_clear_line(partita("plan", *SMALL, *flags), 2, *words)


def test_gpus_of_two_models_are_refused(partita: CommandLine, tmp_path: Path) -> None:
    """Both are named."""
    path = tmp_path / "mixed.toml"
    path.write_text('[[device]]\nspec = "A100-80GB"\n[[device]]\nspec = "H100-SXM"\ntask = 1\n')
    assert_one_clear_line(
        partita("plan", *SMALL, "--cluster", path, "--global-batch", 8),
        2,
        "A100-80GB and H100-SXM",
        "plan for each alone",
    )


def test_what_nobody_measured_is_said(partita: CommandLine, tmp_path: Path) -> None:
    """A GPU of a file has no fits: its times are planned nonetheless."""
    path = tmp_path / "own.toml"
    spec = '{ kind = "GPU", memory = "80 GiB", memory_bandwidth = "1 TB/s", peak_flops = { PEAKS } }'
    spec = spec.replace("PEAKS", 'fp32 = "30 TFLOP/s", bf16 = "100 TFLOP/s"')
    path.write_text(f"[[device]]\nspec = {spec}\ncount = 2\n")
    said = document(partita, "--cluster", path, "--global-batch", 8)["assumptions"]
    assert any(text.startswith("no kernel of inline was measured") for text in said)
    assert any(text.startswith("no collective of inline in one machine was measured") for text in said)


def test_a_model_that_fits_nowhere(partita: CommandLine) -> None:
    """The smallest memory found, and what would make it fit."""
    large = ("llama", "--layers", 80, "--hidden", 8192, "--heads", 64, "--intermediate", 28672, "--vocabulary", 128256)
    result = partita("plan", *large, "--gpus", "H100-SXM:8", "--global-batch", 8, "--seq", 4096)
    assert_one_clear_line(result, 2, "fits nowhere on 8 H100-SXM", "reserves", "GPUs", "which fits")
