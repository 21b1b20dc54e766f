"""simpy, used the plain way: a process for each node of a step, a resource for each device and link.

The step is planned already: a file has, by node, the resource that it occupies, its nanoseconds there, the latency
after them, and the nodes that it waits for. The events of the step are tuples.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.peers.serving import Seconds, serve, timed

simpy: Any = import_module("simpy")  # by name, as type checkers may have no simpy to look into

Plan = tuple[list[int], list[int], list[int], list[list[int]]]


@cache
def _plan(file: str) -> Plan:
    """Resource (-1: none), occupied ns, latency ns, and nodes waited for, by node."""
    with np.load(file) as columns:
        starts, sources = columns["starts"].tolist(), columns["sources"].tolist()
        waits_for = [sources[a:b] for a, b in pairwise(starts)]
        return columns["resource"].tolist(), columns["occupied_ns"].tolist(), columns["latency_ns"].tolist(), waits_for


def _play(plan: Plan) -> list[tuple[int, int, int, int]]:
    """Events (node, resource, start, end) in the order of their ends."""
    resource_of, occupied_ns, latency_ns, waits_for = plan
    env = simpy.Environment()
    resources = [simpy.Resource(env) for _ in range(max(resource_of) + 1)]
    done = [env.event() for _ in resource_of]
    events = []

    def node(n: int) -> Iterator[Any]:
        if waits_for[n]:
            yield env.all_of([done[source] for source in waits_for[n]])
        start = env.now
        if resource_of[n] >= 0:
            with resources[resource_of[n]].request() as request:
                yield request
                start = env.now
                yield env.timeout(occupied_ns[n])
        if latency_ns[n]:
            yield env.timeout(latency_ns[n])
        events.append((n, resource_of[n], start, env.now))
        done[n].succeed()

    for n in range(len(resource_of)):
        env.process(node(n))
    env.run()
    return events


def play(file: str) -> Seconds:
    """Time of one simulated step."""
    plan = _plan(file)
    return timed(lambda: _play(plan))


def check(file: str) -> None:
    """AssertionError when a node of the step never runs."""
    plan = _plan(file)
    assert len(_play(plan)) == len(plan[0])


if __name__ == "__main__":
    serve({"play": play, "check": check})
