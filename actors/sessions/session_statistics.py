"""Counts that `Session.statistics` returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionStatistics:
    """What a session has done since it was opened."""

    steps: int
    """steps begun, including those that failed; they are numbered from 1"""
    steps_running: int
    """steps begun and not ended"""
    requests: int
    """signatures that are partitioned and compiled"""
    request_hits: int
    """steps whose request had run before and was not forgotten since"""
    requests_forgotten: int
    """requests that had to make room for others"""
    is_closed: bool
    members_waiting: int
    """members of collectives that wait for others now, in all steps"""
    bytes_waiting: int
    """the sum of the sizes of the tensors that these bring"""
    most_members_waiting: int
    """the most members that have waited at one time"""
    most_bytes_waiting: int
    """the most bytes that members have held at one time"""
