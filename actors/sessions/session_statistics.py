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
