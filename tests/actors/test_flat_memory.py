"""A training loop holds flat memory: what many steps leave is what few leave.

Flows in: the training graph of the stories over three devices, with reference and with resource variables. Counted are
the objects that the garbage collector knows and, since it does not know arrays, the bytes that Python allocated.
"""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from partita.actors import open_session
from partita.devices import local_cluster
from partita.graph.collector import collector_paused
from partita.scenarios.workloads import training

REPLICAS, ROWS = 2, 4
WARM_UP, STEPS = 150, 150
MOST_OBJECTS = STEPS // 2  # a leak of one object a step is twice as many; other tests of the process still fill caches
MOST_BYTES = 100 * STEPS  # the smallest array takes 112 bytes; free lists and thread pools may still fill up


async def growth(kind: training.Kind) -> tuple[int, int]:
    """By how many objects and bytes a process grows in STEPS steps, once it has warmed up."""
    graph_def = training.build(kind, [f"/device:GPU:{k}" for k in range(REPLICAS)], ROWS)
    feeds = {"x": np.ones((ROWS, training.FEATURES), np.float32), "labels": np.zeros(ROWS, np.int32)}
    async with open_session(graph_def, local_cluster(f"cpu:1,gpu:{REPLICAS}")) as session:
        await session.run([], targets="initialise")
        tracemalloc.start()
        try:
            found = []
            for count in (WARM_UP, STEPS):
                for _ in range(count):
                    await session.run("loss", feeds, targets="train")
                gc.collect()
                found.append((len(gc.get_objects()), tracemalloc.get_traced_memory()[0]))
        finally:
            tracemalloc.stop()
    return found[1][0] - found[0][0], found[1][1] - found[0][1]


@pytest.mark.parametrize("kind", ["reference", "resource"])
async def test_steps_leave_nothing_behind(kind: training.Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of both kinds, feeds, fetches and transfers between devices: each step drops all that it made."""
    monkeypatch.setattr(training, "FEATURES", 8)
    monkeypatch.setattr(training, "HIDDEN", 8)
    objects, size = await growth(kind)
    assert objects < MOST_OBJECTS
    assert size < MOST_BYTES


@pytest.mark.parametrize("kind", ["reference", "resource"])
async def test_steps_leave_nothing_to_the_garbage_collector(kind: training.Kind) -> None:
    """No reference cycle holds the tensors of a step, or a loop would grow by gigabytes between collections."""
    graph_def = training.build(kind, [f"/device:GPU:{k}" for k in range(REPLICAS)], ROWS)
    feeds = {"x": np.ones((ROWS, training.FEATURES), np.float32), "labels": np.zeros(ROWS, np.int32)}
    async with open_session(graph_def, local_cluster(f"cpu:1,gpu:{REPLICAS}")) as session:
        await session.run([], targets="initialise")
        await session.run("loss", feeds, targets="train")
        gc.collect()
        with collector_paused():
            for _ in range(3):
                await session.run("loss", feeds, targets="train")
            assert gc.collect() == 0
