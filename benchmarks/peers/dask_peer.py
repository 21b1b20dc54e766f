"""dask: its synchronous scheduler on a chain of tasks, each of which adds the value before and the fed numpy scalar."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from operator import add
from typing import Any

import numpy as np

from benchmarks.peers.serving import Seconds, serve, timed

dask: Any = import_module("dask")  # by name, as type checkers may have no dask to look into

_started: list[Any] = []


def start(nodes: int) -> None:
    """Builds the chain and runs it once."""
    graph: dict[str, Any] = {"x": np.float32(0.5)}  # values and tasks
    last = "x"
    for index in range(nodes):
        graph[f"n{index}"] = (add, last, "x")
        last = f"n{index}"
    _started[:] = [partial(dask.get, graph, last)]
    _started[0]()


def steps(count: int) -> Seconds:
    """Time of some steps."""
    return timed(_started[0], count)


if __name__ == "__main__":
    serve({"start": start, "steps": steps})
