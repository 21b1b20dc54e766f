"""`partita plan --simulate` and `--gpu-counts` print and write the same, whatever runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.scenarios.executors.dask_cluster import DaskExecutor
from tests.scenarios.command_line import CommandLine, assert_one_clear_line

MODEL = ("plan", "gpt", "--layers", 2, "--hidden", 64, "--heads", 4, "--positions", 128, "--vocabulary", 256)
STEP = (*MODEL, "--gpus", "A100-80GB", "--global-batch", 8, "--search", "dp,tp", "--top", 3)
ASKED = (*STEP, "--simulate", 2, "--gpu-counts", "2,4")


def output(partita: CommandLine, folder: Path, *where: object) -> tuple[str, bytes]:
    """What is printed as JSON, and the page, which has the line that was called."""
    page = folder / "plan.html"
    return partita.done(*ASKED, *where, "--report", page, "--json"), page.read_bytes()


def test_executors_print_the_same(
    partita: CommandLine, tmp_path: Path, local_dask: DaskExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte: one after another, in processes, on a cluster; the page too, with its timelines."""
    pytest.importorskip("distributed", reason="distributed is not installed: pip install '.[dask]'")
    monkeypatch.setattr("partita.scenarios.planning.command_line", lambda: "the same line")
    serial = output(partita, tmp_path)
    assert output(partita, tmp_path, "--workers", 2) == serial
    assert output(partita, tmp_path, "--address", local_dask.client.scheduler.address) == serial


def test_a_number_of_gpus_without_a_plan_says_why(partita: CommandLine) -> None:
    """Its error comes from another process, with the same words."""
    words = (*STEP, "--gpu-counts", "3,4")
    assert partita.done(*words, "--executor", "processes") == partita.done(*words)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--executor", "processes"], ["--executor", "--simulate N or --gpu-counts"]),
        (["--workers", "2"], ["--workers", "nothing to run elsewhere"]),
        (["--simulate", "1", "--executor", "serial", "--workers", "2"], ["--workers", "--executor serial"]),
    ],
)
def test_flags_without_use_are_refused(partita: CommandLine, flags: list[str], words: list[str]) -> None:
    """Before anything is planned, or started."""
    assert_one_clear_line(partita(*STEP[:-6], "--gpus", "A100-80GB:2", "--global-batch", 8, *flags), 2, *words)
