"""What the garbage collector has to do: nothing for failed steps, little for prepared ones; it goes on beside steps."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from partita.actors import Session, open_session
from partita.actors.plans.plan import Plan
from partita.errors import InvalidArgumentError, PartitaError
from partita.graph.builder import GraphBuilder
from partita.graph.checking import checking
from partita.graph.protos import GraphDef
from tests.actors.sessions.deployments import Deployment
from tests.large_graphs import many_nodes
from tests.strategies import cpu

INFINITE = partial(np.full, 1000, np.inf, np.float32)


@contextmanager
def collector_off() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def checked(devices: int) -> GraphDef:
    """x, doubled on the last device, must be finite on the first."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None,), device=cpu(0))
    y = b.op("AddV2", x, x, name="double", device=cpu(devices - 1))
    b.op("CheckNumerics", y, message="must be finite", name="z", device=cpu(0))
    return b.graph_def()


OPENED: dict[str, Callable[[], Any]] = {
    "one device": lambda: open_session(checked(1), "cpu:1"),
    "two devices": lambda: open_session(checked(2), "cpu:2"),
    "two devices, no budget": lambda: open_session(checked(2), "cpu:2", budget_s=0),
    "two devices, threads": lambda: open_session(checked(2), "cpu:2", budget_s=0, thread_limit_s=0),
    "two tasks": lambda: Deployment.TWO_TASKS.open(checked(2), 2),
    "virtual clock": lambda: open_session(checked(2), "cpu:2", clock="virtual"),
}


@pytest.mark.parametrize("opened", OPENED.values(), ids=OPENED)
async def test_a_failed_step_is_freed_without_a_collection(opened: Callable[[], Any]) -> None:
    """Neither the session nor the error, once it is dropped, keeps the feeds of a step that has failed."""
    async with opened() as session:
        for _ in range(3):  # until kernels are in threads, where they go there
            with pytest.raises(PartitaError):
                await session.run("z", {"x": INFINITE()})
        with collector_off():
            fed = INFINITE()
            gone = weakref.ref(fed)
            assert await failing_code(session, fed) == "INVALID_ARGUMENT"
            del fed
            await wait_all_tasks_blocked()  # actors drop the messages of the step when they reach them
            assert gone() is None


async def failing_code(session: Session, fed: Any) -> str:
    """The code of the error of a step. `pytest.raises` would keep the error."""
    try:
        await session.run("z", {"x": fed})
    except InvalidArgumentError as error:
        return error.code
    return "OK"


class Cycle:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.me = self


async def test_the_garbage_of_the_host_is_collected_beside_steps() -> None:
    """Steps over several devices do not put off what the collector would do."""
    async with open_session(checked(2), "cpu:2") as session:
        made = []
        for _ in range(3000):
            made.append(weakref.ref(Cycle()))
            await session.run("z", {"x": [1.0]})
        assert sum(cycle() is None for cycle in made) > 1000


def walked() -> int:
    """The objects that the collector walks, once it has forgotten what cannot be in a cycle."""
    gc.collect()
    return len(gc.get_objects())


async def kept_by_a_request(nodes: int, devices: int) -> int:
    """The objects that the collector walks for a prepared request, which has run."""
    async with open_session(many_nodes(nodes, devices=devices), f"cpu:{devices}") as session:
        before = walked()
        for _ in range(2):
            await session.run(f"scope{(nodes - 1) % 17}/n{nodes - 1}", {"x": 1.0})
        return walked() - before


@pytest.mark.parametrize(("devices", "per_node"), [(1, 1.2), (8, 3.5)])
async def test_a_prepared_request_is_few_objects_to_the_collector(devices: int, per_node: float) -> None:
    """One for each node and three for each segment; messages, of which eight devices have more than nodes, are none."""
    with checking(on=False):  # checkers make objects of nodes, which graphs keep
        await kept_by_a_request(100, devices)  # the first run of a process loads modules
        small = await kept_by_a_request(100, devices)
        assert 2900 * 0.3 < await kept_by_a_request(3000, devices) - small < 2900 * per_node


async def test_closing_a_session_frees_its_plans_in_turns() -> None:
    """Other tasks run in between: with no time budget, once for some hundred pieces of a plan."""
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async def used() -> None:
        nonlocal turns
        async with open_session(many_nodes(8000, devices=2), "cpu:2", budget_s=0) as session:
            await session.run(f"scope{7999 % 17}/n7999", {"x": 1.0})
            assert num_segments(strangers) > 2000
            nursery.start_soon(count_turns)
            await trio.lowlevel.checkpoint()
            turns = 0

    strangers = plans()  # what is left of other tests, and kept here
    async with trio.open_nursery() as nursery:
        await used()
        assert num_segments(strangers) == 0
        assert 15 < turns < 200
        nursery.cancel_scope.cancel()


def plans() -> list[Plan]:
    return [plan for plan in gc.get_objects() if type(plan) is Plan]


def num_segments(strangers: list[Plan]) -> int:
    """Of all plans but these."""
    known = set(map(id, strangers))
    return sum(len(plan.segments) for plan in plans() if id(plan) not in known)
