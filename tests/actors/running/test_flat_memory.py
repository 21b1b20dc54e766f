"""A training loop uses constant memory: many steps leave no more than few.

The training graph of the stories over three devices, with reference and with resource variables. Counted are the
objects of the garbage collector and, because it does not track arrays, the allocated blocks. The limits are so high
that nothing is learnt from times, which would be counted too.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.collector import collector_paused
from partita.devices import local_cluster
from partita.scenarios import training_step
from partita.scenarios.workloads import training

REPLICAS, ROWS = 2, 4
WARM_UP, STEPS = 150, 150
MOST_OBJECTS = STEPS // 2  # a leak of one object a step is twice as many; other tests of the process still fill caches
MOST_BLOCKS = STEPS  # an array is two blocks
UNHURRIED: dict[str, Any] = {"budget_s": 60, "thread_limit_s": 60}


async def growth(kind: training.Kind) -> tuple[int, int]:
    """By how many objects and blocks STEPS steps grow the process after warming up."""
    graph_def = training_step(kind, [f"/device:GPU:{k}" for k in range(REPLICAS)], ROWS)
    feeds = {"x": np.ones((ROWS, training.FEATURES), np.float32), "labels": np.zeros(ROWS, np.int32)}
    async with open_session(graph_def, local_cluster(f"cpu:1,gpu:{REPLICAS}"), **UNHURRIED) as session:
        await session.run([], targets="initialise")
        counts = []
        for count in (WARM_UP, STEPS):
            for _ in range(count):
                await session.run("loss", feeds, targets="train")
            gc.collect()
            counts.append((len(gc.get_objects()), sys.getallocatedblocks()))
    return counts[1][0] - counts[0][0], counts[1][1] - counts[0][1]


@pytest.mark.parametrize("kind", ["reference", "resource"])
async def test_steps_leave_nothing_behind(kind: training.Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """With feeds, fetches, transfers and both kinds of variables."""
    monkeypatch.setattr(training, "FEATURES", 8)
    monkeypatch.setattr(training, "HIDDEN", 8)
    objects, blocks = await growth(kind)
    assert objects < MOST_OBJECTS
    assert blocks < MOST_BLOCKS


@pytest.mark.parametrize("kind", ["reference", "resource"])
async def test_steps_leave_nothing_to_the_garbage_collector(kind: training.Kind) -> None:
    """No reference cycle keeps the tensors of a step until the next collection."""
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
