"""Who uses no worker processes pays nothing for them: none of their modules are loaded."""

from __future__ import annotations

import sys

from partita.actors import BlockingSession
from partita.graph.builder import GraphBuilder
from tests.fresh import fresh_process


def loaded_by_a_run() -> list[str]:
    """Modules of dask, and ours for it, after a step of a session in one process."""
    builder = GraphBuilder()
    builder.op("Neg", builder.constant(1.0), name="y")
    with BlockingSession(builder.graph_def(), "cpu:2") as session:
        session.run("y")
    ours = "partita.actors.sessions.processes"
    return sorted(name for name in sys.modules if name.startswith((ours, "dask", "distributed")))


def test_a_session_in_one_process_loads_nothing_of_them() -> None:
    """In a fresh process."""
    assert fresh_process(loaded_by_a_run) == []
