"""The side of a peer: reads requests from stdin and answers on stdout; what libraries print goes to stderr."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from time import perf_counter, process_time
from typing import Any

Seconds = tuple[float, float]


def serve(actions: Mapping[str, Callable[..., Any]]) -> None:  # actions take and give any JSON
    """Answers requests until stdin ends: one answer each, a traceback for one that failed."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = {"result": actions[request["action"]](**request["arguments"])}
            except Exception:  # noqa: BLE001 - every error is sent to the other side
                answer = {"error": traceback.format_exc()}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def timed(call: Callable[[], object], times: int = 1) -> Seconds:
    """Wall and CPU seconds of some calls."""
    wall, cpu = perf_counter(), process_time()
    for _ in range(times):
        call()
    return perf_counter() - wall, process_time() - cpu
