"""A training loop uses constant memory: once caches have settled, many steps leave next to nothing.

The training graph of the stories over three devices, with reference and with resource variables. Counted are the
objects of the garbage collector and, because it does not track arrays, the allocated blocks, in rounds of steps. What
is kept per step grows in every round; caches of the interpreter and of the process fill for some rounds, differently
each time, so the quietest round counts. The limits of time are so high that nothing is learnt from times.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.devices import local_cluster
from partita.scenarios import training_step
from partita.scenarios.workloads import training
from tests.runs import counted_garbage

REPLICAS, ROWS = 2, 4
STEPS, ROUNDS = 100, 12
MOST = STEPS // 10  # objects or blocks: of one leak in ten steps
UNHURRIED: dict[str, Any] = {"budget_s": 60, "thread_limit_s": 60}


async def least_change(kind: training.VariableKind) -> tuple[int, int]:
    """By how many objects and blocks a round of steps changes the process, in the round that changes it least.

    Stops at the first round that is quiet enough. What is freed counts as well: it would hide what is kept.
    """
    graph_def = training_step(kind, [f"/device:GPU:{k}" for k in range(REPLICAS)], ROWS)
    feeds = {"x": np.ones((ROWS, training.FEATURES), np.float32), "labels": np.zeros(ROWS, np.int32)}
    least = sys.maxsize, sys.maxsize
    async with open_session(graph_def, local_cluster(f"cpu:1,gpu:{REPLICAS}"), **UNHURRIED) as session:
        await session.run([], targets="initialise")
        before = counts()
        for _ in range(ROUNDS):
            for _ in range(STEPS):
                await session.run("loss", feeds, targets="train")
            after = counts()
            least = min(least, (abs(after[0] - before[0]), abs(after[1] - before[1])), key=max)
            if max(least) < MOST:
                break
            before = after
    return least


def counts() -> tuple[int, int]:
    """Objects that the collector tracks, and allocated blocks."""
    gc.collect()
    return len(gc.get_objects()), sys.getallocatedblocks()


@pytest.mark.parametrize("kind", ["reference", "resource"])
async def test_steps_leave_nothing_behind(kind: training.VariableKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """With feeds, fetches, transfers and both kinds of variables."""
    monkeypatch.setattr(training, "FEATURES", 8)
    monkeypatch.setattr(training, "HIDDEN", 8)
    assert max(await least_change(kind)) < MOST


@pytest.mark.parametrize("kind", ["reference", "resource"])
async def test_steps_leave_nothing_to_the_garbage_collector(kind: training.VariableKind) -> None:
    """No reference cycle keeps the tensors of a step until the next collection."""
    graph_def = training_step(kind, [f"/device:GPU:{k}" for k in range(REPLICAS)], ROWS)
    feeds = {"x": np.ones((ROWS, training.FEATURES), np.float32), "labels": np.zeros(ROWS, np.int32)}
    async with open_session(graph_def, local_cluster(f"cpu:1,gpu:{REPLICAS}")) as session:
        await session.run([], targets="initialise")
        await session.run("loss", feeds, targets="train")
        with counted_garbage() as left:
            for _ in range(3):
                await session.run("loss", feeds, targets="train")
    assert left == [0]
