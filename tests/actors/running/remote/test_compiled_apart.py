"""Processes compile functions apart, in any order, and yet alike."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.actors.running.function_programs import function_program

CHECKOUT = Path(__file__).parents[4]
NUM_PROGRAMS = 4
PROGRAM = "tests.actors.running.remote.compiled_apart"


def printed(graphs: Path, own: str, order: str, hash_seed: int) -> str:
    """What a process that is started for it prints."""
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", PROGRAM, str(graphs), "ABAB", own, order]
    return subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("own", ["A", "B"])
def test_neither_the_order_nor_the_hashes_of_a_process_matter(own: str, tmp_path: Path) -> None:
    """Names, keys, sizes, and what others have to do are the same, for all functions of some programs."""
    for seed in range(NUM_PROGRAMS):
        program = function_program(seed, 4, 3, conflicting=True)
        (tmp_path / f"{seed}.pb").write_bytes(program.graph_def.SerializeToString())
    first = printed(tmp_path, own, "forwards", 0)
    assert first == printed(tmp_path, own, "backwards", 1)
    assert first.count("Share(process=") > 10
