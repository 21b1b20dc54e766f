"""Law of killed workers: a step ends with right values or says what is lost; then the session goes on.

`python -m tests.laws.worker_kills` kills more of them, and judges the times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.laws.worker_kills.kills import WorkerKill, strike

if TYPE_CHECKING:
    from distributed import LocalCluster

pytest.importorskip("distributed", reason="distributed is not installed: pip install '.[dask]'")

KILLS = {
    "in a step": WorkerKill(part=0.5),
    "in a step of a cluster session": WorkerKill(num_tasks=2, part=0.3, victim=0.9),
    "in four steps": WorkerKill(num_steps=4, part=0.7, victim=0.9),
    "in the first step": WorkerKill(is_prepared=False, part=0.2),
    "the only worker": WorkerKill(starts_worker=True, part=0.5),
}


@pytest.mark.parametrize("kill", KILLS.values(), ids=KILLS)
async def test_a_killed_worker_is_named_and_replaced(kill: WorkerKill, cluster: LocalCluster) -> None:
    """Workers that tests before have killed start again meanwhile; one that lives is enough."""
    report = await strike(kill, cluster.scheduler_address)
    assert report.right_s > 0
