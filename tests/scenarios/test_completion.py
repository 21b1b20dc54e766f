"""What a shell offers at Tab, asked as click's own scripts for shells ask."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.shell_completion import BashComplete

from partita.devices.catalog import device_names, link_names
from partita.graph.ops.registry import op_names
from partita.scenarios.cli import cli
from partita.scenarios.stories.catalog import STORIES
from partita.scenarios.workloads.registry import find_workload, workload_names

NAMES = {
    "scenario": set(STORIES),
    "devices": {*device_names(), *link_names()},
    "workload": set(workload_names()),
    "ops": set(op_names()),
    "plan": {"gpt", "llama", "moe"},
}


def offered(line: str) -> list[str]:
    """What completes the last word of a line."""
    *words, last = line.split(" ")
    completer = BashComplete(cli, {}, "partita", "_PARTITA_COMPLETE")
    return [item.value for item in completer.get_completions(words, last)]


@pytest.mark.parametrize("command", NAMES)
def test_names_are_offered(command: str) -> None:
    """All of them, and those that begin as the word does."""
    assert set(offered(f"{command} ")) == NAMES[command]
    first = min(NAMES[command])
    assert set(offered(f"{command} {first[:2]}")) == {name for name in NAMES[command] if name.startswith(first[:2])}


def test_commands_and_flags_are_offered() -> None:
    """Of the program and of a command."""
    assert set(offered("")) == set(cli.commands)
    assert {"--cluster", "--costs"} <= set(offered("simulate --c"))


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("show g.pb --stage p", {"placed", "pruned", "partitioned", "plan"}),
        ("run g.pb --passes inline,co", {"inline,common", "inline,converters"}),
        ("run g.pb --passes fold,", {"fold,inline", "fold,common", "fold,dead", "fold,identities", "fold,converters"}),
        ("simulate g.pb --costs m", {"measured:"}),
        ("plan llama --gpus A100-P", {"A100-PCIe:", "A100-PCIe-40GB:"}),
        ("calibrate ops.csv --device H200", {"H200-SXM"}),
        ("workload --set ", set()),
    ],
)
def test_values_of_flags_are_offered(line: str, some: set[str]) -> None:
    """Choices, lists with commas, sources of costs, models of devices."""
    assert set(offered(line)) == some


def test_settings_of_the_workload_are_offered() -> None:
    """Those of the one that is named."""
    settings = {f"{name}=" for name in find_workload("transformer").settings()}
    assert set(offered("workload transformer --set ")) == settings
    assert offered("workload transformer --set laye") == ["layers="]


@pytest.mark.parametrize(("shell", "words"), [("bash", "complete -o"), ("zsh", "#compdef"), ("fish", "partita")])
def test_the_program_prints_the_script_of_a_shell(shell: str, words: str) -> None:
    """That `docs/cli.md` tells to load; and answers what the script asks."""
    asked = {"_PARTITA_COMPLETE": "bash_complete", "COMP_WORDS": "partita inspect gr", "COMP_CWORD": "2"}
    script, answer = (
        subprocess.run(
            [sys.executable, "-m", "partita"], env={**os.environ, **given}, capture_output=True, text=True, check=False
        )
        for given in ({"_PARTITA_COMPLETE": f"{shell}_source"}, asked)
    )
    assert words in script.stdout, script.stderr
    assert answer.stdout == "file,gr\n"
