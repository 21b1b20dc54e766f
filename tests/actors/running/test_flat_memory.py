"""A training loop holds flat memory: what many steps leave is what few leave.

Flows in: the training graph of the stories over three devices, with reference and with resource variables. Counted are
the objects that the garbage collector knows and, since it does not know arrays, the blocks that Python allocated. No
kernel is too slow for these sessions: what they learn from how long something took would be counted too.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.devices import local_cluster
from partita.graph.collector import collector_paused
from partita.scenarios import training_step
from partita.scenarios.workloads import training

REPLICAS, ROWS = 2, 4
WARM_UP, STEPS = 150, 150
MOST_OBJECTS = STEPS // 2  # a leak of one object a step is twice as many; other tests of the process still fill caches
MOST_BLOCKS = STEPS  # an array is two blocks
UNHURRIED: dict[str, Any] = {"budget_s": 60, "thread_limit_s": 60}


async def growth(kind: training.Kind) -> tuple[int, int]:
    """By how many objects and blocks a process grows in STEPS steps, once it has warmed up."""
    graph_def = training_step(kind, [f"/device:GPU:{k}" for k in range(REPLICAS)], ROWS)
    feeds = {"x": np.ones((ROWS, training.FEATURES), np.float32), "labels": np.zeros(ROWS, np.int32)}
    async with open_session(graph_def, local_cluster(f"cpu:1,gpu:{REPLICAS}"), **UNHURRIED) as session:
        await session.run([], targets="initialise")
        found = []
        for count in (WARM_UP, STEPS):
            for _ in range(count):
                await session.run("loss", feeds, targets="train")
            gc.collect()
            found.append((len(gc.get_objects()), sys.getallocatedblocks()))
    return found[1][0] - found[0][0], found[1][1] - found[0][1]


@pytest.mark.parametrize("kind", ["reference", "resource"])
async def test_steps_leave_nothing_behind(kind: training.Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of both kinds, feeds, fetches and transfers between devices: each step drops all that it made."""
    monkeypatch.setattr(training, "FEATURES", 8)
    monkeypatch.setattr(training, "HIDDEN", 8)
    objects, blocks = await growth(kind)
    assert objects < MOST_OBJECTS
    assert blocks < MOST_BLOCKS


@pytest.mark.parametrize("kind", ["reference", "resource"])
async def test_steps_leave_nothing_to_the_garbage_collector(kind: training.Kind) -> None:
    """No reference cycle holds the tensors of a step, or a loop would grow by gigabytes between collections."""
    graph_def = training_step(kind, [f"/device:GPU:{k}" for k in range(REPLICAS)], ROWS)
    feeds = {"x": np.ones((ROWS, training.FEATURES), np.float32), "labels": np.zeros(ROWS, np.int32)}
    async with open_session(graph_def, local_cluster(f"cpu:1,gpu:{REPLICAS}")) as session:
        await session.run([], targets="initialise")
        await session.run("loss", feeds, targets="train")
        gc.collect()
        with collector_paused():
            for _ in range(3):
                await session.run("loss", feeds, targets="train")
            assert gc.collect() == 0
