"""`partita plan --inference`: replicas and batches of a served model, as a table and a document, and wrong words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.command_line import CommandLine, assert_one_clear_line
from tests.scenarios.commands.planning.plans import SMALL

SERVED = (*SMALL[:-2], "--inference", "--prompt", 256, "--output", 64)
ON = ("--gpus", "H100-SXM:2")
KEYS = (
    *("rank", "tp", "pp", "ep", "batch", "prefill_ms", "prefill_ms_low", "prefill_ms_high", "decode_ms"),
    *("decode_ms_low", "decode_ms_high", "tokens_per_s", "kv_cache_gib", "allocated_gib", "memory_limit_gib"),
    "usd_per_million_tokens",
)


def document(partita: CommandLine, *flags: object) -> dict[str, Any]:  # Any: JSON
    """What a call with --json prints."""
    printed: dict[str, Any] = json.loads(partita.done("plan", *SERVED, *flags, "--json"))
    return printed


def test_the_document_has_the_keys_that_are_promised(partita: CommandLine) -> None:
    """The most tokens per second first."""
    printed = document(partita, *ON, "--batch", "1,4", "--top", 3)
    assert (printed["version"], printed["mode"]) == (1, "inference")
    assert (printed["model"]["prompt"], printed["model"]["output"]) == (256, 64)
    plans = printed["plans"]
    assert [set(plan) for plan in plans] == [set(KEYS)] * 3
    assert {plan["batch"] for plan in plans} <= {1, 4}
    assert sorted((plan["tokens_per_s"] for plan in plans), reverse=True) == [plan["tokens_per_s"] for plan in plans]
    assert all(plan["decode_ms_low"] <= plan["decode_ms"] <= plan["decode_ms_high"] for plan in plans)
    assert all(plan["usd_per_million_tokens"] is None for plan in plans)


def test_axes_are_fixed_and_tokens_are_in_time(partita: CommandLine) -> None:
    """No plan is slower than asked, and those that are count as impossible."""
    free = document(partita, *ON, "--batch", 4, "--split", "tp=1+2,pp=1")["plans"]
    assert {(plan["tp"], plan["pp"]) for plan in free} == {(1, 1), (2, 1)}
    between = sum(plan["decode_ms"] for plan in free) / 2
    fast = document(partita, *ON, "--batch", 4, "--split", "tp=1+2,pp=1", "--tpot-ms", between)
    assert [plan["decode_ms"] <= between for plan in fast["plans"]] == [True]
    assert sum(fast["impossible"].values()) == 1


def test_prices_are_those_of_the_cluster(partita: CommandLine, tmp_path: Path) -> None:
    """A million tokens cost what the machines cost while they make them."""
    path = tmp_path / "priced.toml"
    path.write_text('[[device]]\nspec = "A100-80GB"\ncount = 2\nprice = "1.80 $/h"\n')
    plan = document(partita, "--cluster", path, "--batch", 4, "--top", 1)["plans"][0]
    assert plan["usd_per_million_tokens"] == pytest.approx(3.6 / 3600 / plan["tokens_per_s"] * 1e6, rel=1e-6)
    told = partita.done("plan", *SERVED, "--cluster", path, "--batch", 4)
    assert "$/M tokens" in told
    assert f"a million tokens cost ${plan['usd_per_million_tokens']:,.3f}" in told


def test_the_text_explains_the_first_plan(partita: CommandLine) -> None:
    """Its replicas, the first token and the next ones, and what was searched."""
    plan = document(partita, *ON, "--batch", "1,8")["plans"][0]
    lines = partita.done("plan", *SERVED, *ON, "--batch", "1,8").splitlines()
    assert lines[0].endswith("served by 2 H100-SXM in one machine, 256 tokens of a prompt and 64 of an answer")
    assert lines[1].split()[:2] == ["#", "tp"]
    assert any(f"comes after {plan['prefill_ms']:,.1f} ms, each further one" in line for line in lines)
    assert any(line.startswith("searched ") for line in lines)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((*ON, "--split", "dp=2"), ("--split", "no field 'dp'")),
        ((*ON, "--split", "precision=fp7"), ("precision", "fp7")),
        ((*ON, "--batch", "1,x"), ("--batch '1,x'", "'x' is no positive whole number")),
        ((*ON, "--tpot-ms", "0.001"), ("no configuration is as fast",)),
        ((*ON, "--split", "tp=3"), ("tp",)),
        ((*ON, "--tokens", "1B"), ("--tokens is for training",)),
    ],
)
def test_wrong_words_are_one_line(partita: CommandLine, flags: tuple[object, ...], words: tuple[str, ...]) -> None:
    """With what would work."""
    assert_one_clear_line(partita("plan", *SERVED, *flags), 2, *words)


def test_prompt_and_output_are_needed(partita: CommandLine) -> None:
    """The flag is named."""
    assert_one_clear_line(partita("plan", *SMALL[:-2], "--inference", *ON), 2, "--prompt is missing")
