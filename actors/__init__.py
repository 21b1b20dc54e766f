"""Who runs a graph: one actor per device, meeting only at the rendezvous, behind the sessions that users open.

async with open_session(graph_def, "cpu:4") as session:
    (loss,) = await session.run("loss:0", {"x:0": batch})

with BlockingSession(graph_def, "cpu:4") as session:        scripts and notebooks
    (loss,) = session.run("loss:0", {"x:0": batch})
"""

from __future__ import annotations

from ..graph import RunMetadata, RunOptions
from .blocking import BlockingSession
from .session import Session, open_session

__all__ = ["BlockingSession", "RunMetadata", "RunOptions", "Session", "open_session"]
