"""What a session tells of itself.

Flows out: numbers, taken at one moment. Always holds: a step that has begun is counted, however it ends.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionStatistics:
    """What a session has done so far."""

    steps: int
    """steps begun; their numbers count from 1"""
    steps_running: int
    """steps begun and not ended"""
    requests: int
    """signatures that have been partitioned and compiled"""
    is_closed: bool
