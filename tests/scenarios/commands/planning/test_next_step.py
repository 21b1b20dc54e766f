"""The next command is one that a shell takes and that builds the same split."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from partita.scenarios import Split
from partita.scenarios.commands.planning.flags import PlanFlags
from partita.scenarios.commands.planning.next_step import next_command
from partita.scenarios.models.sizes import read_model
from tests.scenarios.models.families import LLAMA3_8B

SPLIT = Split(tp=2, pp=2, dp=16, microbatches=16, interleave=2, sequence_parallel=True, zero=1, precision="bfloat16")


def words(flags: PlanFlags) -> list[str]:
    """The command as a shell has it."""
    return shlex.split("\n".join(next_command(flags, LLAMA3_8B, SPLIT, 4096)))


def value(command: list[str], flag: str) -> str:
    """What follows a flag."""
    return command[command.index(flag) + 1]


def test_a_file_and_machines_are_those_of_the_flags() -> None:
    """Also where a name has blanks; lines fit a terminal."""
    flags = PlanFlags("llama", config=Path("my models/8b.json"), cluster=Path("rack.toml"))
    command = words(flags)
    assert command[:3] == ["partita", "workload", "llama"]
    assert (value(command, "--config"), value(command, "--cluster")) == ("my models/8b.json", "rack.toml")
    assert Split.parse(value(command, "--split")) == SPLIT
    assert value(command, "--set") == "sequence_length=4096"
    assert command[-1] == "--simulate"
    assert max(map(len, next_command(flags, LLAMA3_8B, SPLIT, 4096))) <= 100


def test_sizes_are_given_as_a_list() -> None:
    """As `partita workload` reads them."""
    command = words(PlanFlags("llama", gpus="H100-SXM:64", sizes={"layers": 32}))
    assert read_model(type(LLAMA3_8B), value(command, "--config")) == LLAMA3_8B
    assert value(command, "--gpus") == "H100-SXM:64"


@pytest.mark.parametrize(
    ("flags", "setting"),
    [
        (PlanFlags("moe", gpus="x", imbalance=1.5), "imbalance=1.5"),
        (PlanFlags("gpt", gpus="x", unfused_attention=True), "fused=no"),
    ],
)
def test_settings_of_the_step_are_kept(flags: PlanFlags, setting: str) -> None:
    """Those that a workload has too."""
    assert setting in words(flags)
