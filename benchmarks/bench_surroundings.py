"""Rows of others in other surroundings: in a process that has just begun, or beside a busy process for each core.

"sessions/longest gap" is the longest wall time between two wake-ups of a task, in all rows "sessions/hold".
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial

from . import bench_contended, bench_holds, bench_host, bench_sessions, bench_setup, bench_simulate
from .bench import Bench
from .busy import busy_cores
from .fresh import fresh
from .rows import Case, Figure, Measured, limit

FRESH, BUSY = "fresh process", "busy cores"
_HOLDS = [
    case
    for case in (*bench_holds.CASES, *bench_sessions.CASES, *bench_host.CASES)
    if case.key.startswith(("hold/", "sessions/hold"))
]
_AGAIN = {
    "hold/opening and first step": (FRESH, BUSY),
    "sessions/hold, 16 in loops on 2": (BUSY,),
    "sessions/hold, 50 steps of one at once": (BUSY,),
    "sessions/hold, opening a large one, first step": (FRESH, BUSY),
    "sessions/hold, first steps, products of 1024": (FRESH, BUSY),
    "sessions/hold, first steps, products of 2048": (FRESH, BUSY),
    "set-up/first run, 1,024 devices": (FRESH,),
    "contended/64 GPUs, warm": (BUSY,),
    "simulate/other shapes, warm": (BUSY,),
}


async def _again(bench: Bench, key: str, surroundings: str) -> Measured:
    """The row in a process of its own, which prints its figure."""
    with busy_cores() if surroundings == BUSY else nullcontext():
        ended = fresh("benchmarks.whole_row", key, json.dumps(asdict(bench.sizes)), surroundings)
    return Measured(Figure(*json.loads(ended.output)))


async def _longest_gap(bench: Bench) -> Measured:
    longest = 0.0
    for case in _HOLDS:
        if not case.key.startswith("sessions/"):
            continue
        measured = bench.measured.get(case.key) or await case.measure(bench)
        longest = max(longest, measured.ours.value)
    return Measured(Figure(longest))


def _cases_again() -> list[Case]:
    known = {
        case.key: case
        for case in (*_HOLDS, *bench_setup.CASES, *bench_contended.CASES, *bench_simulate.CASES)
        if case.key in _AGAIN
    }
    return [
        Case(f"{key}, {where}", "", known[key].promise, partial(_again, key=key, surroundings=where), known[key].unit)
        for key, surroundings in _AGAIN.items()
        for where in surroundings
    ]


CASES = [*_cases_again(), Case("sessions/longest gap", "", limit(0.025, 0.012), _longest_gap)]
