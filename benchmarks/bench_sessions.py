"""The rows "sessions/...": how long several sessions, or many steps of one, hold the event loop that they share.

"hold" is the longest wait of a task that passes one checkpoint after the other; its CPU figure is that of the loop's
own thread. "ping" is how late a task wakes that sleeps for 5 ms, as the answer of a web service would be whose other
requests each open a session: the median and the longest. "growth" is that of the memory of the process, without any
call of the collector.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from statistics import median
from time import perf_counter

import numpy as np
import trio

from partita.actors import open_session
from partita.errors import PartitaError
from partita.graph.builder import GraphBuilder

from .bench import Bench
from .bench_loops import loop
from .busy import busy_cores
from .holding import Beats, held
from .memory import resident_bytes
from .rows import Case, Figure, Measured, limit
from .running import Ours
from .workloads import Workload, drawn

_LEARNING = 3  # steps before those that are measured
_NAP_S = 0.005
_MATRIX = 1024

Task = Callable[[], Awaitable[object]]


async def _together(tasks: list[Task]) -> None:
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)


async def _loops(bench: Bench, sessions: int, devices: int) -> Measured:
    """Sessions whose steps are loops, all of them warm."""
    workload = loop(bench.sizes.iterations * (20 if devices == 1 else 1), devices=devices)

    async def hold(beats: Beats) -> None:
        learnt, go_on = 0, trio.Event()

        async def one() -> None:
            nonlocal learnt
            async with open_session(workload.data, f"cpu:{devices}") as session:
                ours = Ours(session, workload)
                for _ in range(_LEARNING):
                    await ours.step()
                learnt += 1
                if learnt == sessions:
                    beats.longest()
                    go_on.set()
                await go_on.wait()
                await ours.step()

        await _together([one] * sessions)

    return await held(bench, hold)


async def _steps_of_one(bench: Bench, *, count: int) -> Measured:
    """Many steps of one session at once, over 8 devices."""
    workload = drawn(bench.sizes.program_nodes, (), devices=8)

    async def hold(beats: Beats) -> None:
        async with open_session(workload.data, "cpu:8") as session:
            ours = Ours(session, workload)
            for _ in range(_LEARNING):
                await ours.step()
            beats.longest()
            await _together([ours.step] * count)
            longest = beats.longest()
        beats.longest()  # to close has a row of its own
        beats.add(longest)

    return await held(bench, hold)


async def _steps_of_many(bench: Bench, *, sessions: int, steps: int) -> Measured:
    """Sessions that open, learn and run, each over 4 devices."""
    workload = drawn(bench.sizes.program_nodes // 5, (), devices=4)

    async def one() -> None:
        async with open_session(workload.data, "cpu:4") as session:
            ours = Ours(session, workload)
            for _ in range(steps):
                await ours.step()

    return await held(bench, lambda _: _together([one] * sessions))


async def _opening(bench: Bench) -> Measured:
    """Opening and first step of a large graph over 8 devices."""
    workload = drawn(bench.sizes.graph_nodes, (), devices=8)

    async def hold(beats: Beats) -> None:
        async with open_session(workload.data, "cpu:8") as session:
            await Ours(session, workload).step()
            longest = beats.longest()
        beats.longest()  # to close has a row of its own
        beats.add(longest)

    return await held(bench, hold)


async def _closing(bench: Bench) -> Measured:
    """The end of a session with a prepared graph over 8 devices, whose plans are freed."""
    workload = drawn(bench.sizes.program_nodes, (), devices=8)

    async def hold(beats: Beats) -> None:
        async with open_session(workload.data, "cpu:8") as session:
            await Ours(session, workload).step()
            beats.longest()

    return await held(bench, hold)


async def _first_steps(bench: Bench, *, size: int) -> Measured:
    """The first two steps of a session with 20 large products."""
    size //= bench.sizes.width_divisor
    b = GraphBuilder()
    x = y = b.placeholder("x", "float32", (size, size))
    for _ in range(20):
        y = b.op("MatMul", y, x)[0]
    b.op("Sum", y, [0, 1], name="sum")
    feeds = {"x": np.full((size, size), 1 / size, np.float32)}

    async def hold(beats: Beats) -> None:
        async with open_session(b.graph_def(), "cpu:1") as session:
            beats.longest()
            for _ in range(2):
                await session.run("sum", feeds)

    return await held(bench, hold)


async def _ping(bench: Bench, *, longest: bool, busy: bool) -> Measured:
    """How late a task wakes while 4 large and 12 small requests each open a session and run 5 steps."""
    nodes = bench.sizes.program_nodes
    requests = [drawn(2 * nodes, (), devices=2)] * 4 + [drawn(nodes // 50, (), devices=1)] * 12
    late_s: list[float] = []

    async def request(workload: Workload) -> None:
        async with open_session(workload.data, f"cpu:{workload.devices}") as session:
            ours = Ours(session, workload)
            for _ in range(5):
                await ours.step()

    async def ping() -> None:
        while True:
            slept = perf_counter()
            await trio.sleep(_NAP_S)
            late_s.append(perf_counter() - slept - _NAP_S)

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ping)
            await _together([partial(request, workload) for workload in requests])
            nursery.cancel_scope.cancel()

    if busy:
        with busy_cores():
            await serve()
    else:
        await serve()
    return Measured(Figure(max(late_s) if longest else median(late_s)))


async def _growth_of_failing(bench: Bench) -> Measured:
    """Memory after 400 steps over two devices that fail with 4.8 MB each."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None,), device="/device:CPU:0")
    b.op("CheckNumerics", x * 2.0, message="as asked", name="checked", device="/device:CPU:1")
    async with open_session(b.graph_def(), "cpu:2") as session:
        before = 0
        for number in range(min(400, bench.sizes.steps)):
            try:
                await session.run("checked", {"x": np.full(1_200_000, np.inf, np.float32)})
            except PartitaError:
                before = before if number > _LEARNING else resident_bytes()
        return Measured(Figure(max(resident_bytes() - before, 0)))


async def _growth_of_opened(bench: Bench) -> Measured:
    """Memory after 1,000 sessions were opened, one after the other."""
    b = GraphBuilder()
    b.op("Relu", b.placeholder("x", "float32", (None,)) * 3.0, name="y")
    data = b.graph_def()
    before = 0
    for number in range(min(1_000, bench.sizes.steps)):
        async with open_session(data, "cpu:2") as session:
            await session.run("y", {"x": [1.0]})
        before = before if number > 20 else resident_bytes()
    return Measured(Figure(max(resident_bytes() - before, 0)))


_HOLD = limit(0.010, 0.006)
CASES = [
    *(
        Case(
            f"sessions/hold, {sessions} in loops on {devices}",
            "",
            _HOLD,
            partial(_loops, sessions=sessions, devices=devices),
        )
        for devices in (1, 2)
        for sessions in (1, 4, 16)
    ),
    Case("sessions/hold, 50 steps of one at once", "", _HOLD, partial(_steps_of_one, count=50)),
    Case("sessions/hold, 50 steps of each of 16", "", _HOLD, partial(_steps_of_many, sessions=16, steps=50)),
    Case("sessions/hold, opening a large one, first step", "", _HOLD, _opening),
    Case("sessions/hold, closing", "", _HOLD, _closing),
    *(
        Case(f"sessions/hold, first steps, products of {size}", "", _HOLD, partial(_first_steps, size=size))
        for size in (_MATRIX, 2 * _MATRIX)
    ),
    Case("sessions/ping, median", "", limit(0.015, 0.0075), partial(_ping, longest=False, busy=False)),
    Case("sessions/ping, longest", "", limit(0.060, 0.030), partial(_ping, longest=True, busy=False)),
    Case("sessions/ping, median, busy cores", "", limit(0.030, 0.015), partial(_ping, longest=False, busy=True)),
    Case("sessions/ping, longest, busy cores", "", limit(0.150, 0.075), partial(_ping, longest=True, busy=True)),
    Case("sessions/growth, failing steps", "", limit(15 * 2**20, 5 * 2**20), _growth_of_failing, unit="B"),
    Case("sessions/growth, opened sessions", "", limit(15 * 2**20, 5 * 2**20), _growth_of_opened, unit="B"),
]
