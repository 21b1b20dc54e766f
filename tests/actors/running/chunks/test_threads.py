"""Slow kernels run in worker threads: same values, other devices go on, no thread is left."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import trio

from partita.actors import Session, open_session
from partita.errors import CancelledError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.ops.registry import lookup_op
from partita.graph.protos import GraphDef
from tests.actors.gates import ALWAYS, Gate, check_cancelled_in_a_thread
from tests.strategies import cpu

TWO = np.ones(2, np.float32)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def fork(devices: int) -> GraphDef:
    """Two chains of two: a0 -> a1 on CPU:0, b0 -> b1 on the last device; y is the sum."""
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", device=cpu(0))
    ends = []
    for name, device in (("a", cpu(0)), ("b", cpu(devices - 1))):
        first = builder.op("Neg", x, name=f"{name}0", device=device)
        ends.append(builder.op("Neg", first, name=f"{name}1", device=device))
    builder.op("AddV2", *ends, name="y", device=cpu(0))
    return builder.graph_def()


async def warm(session: Session) -> None:
    """Runs until all kernels are known to be slow; their chunks are halved first."""
    for _ in range(8):
        (got,) = await session.run("y", {"x": TWO})
        assert got.tolist() == [2, 2]


@pytest.mark.parametrize("devices", [1, 2])
async def test_slow_kernels_leave_the_thread_of_the_loop_and_values_stay_the_same(gate: Gate, devices: int) -> None:
    async with open_session(fork(devices), f"cpu:{devices}", **ALWAYS) as session:
        await warm(session)
        gate.threads.clear()
        await warm(session)
        assert gate.threads
        assert threading.get_ident() not in gate.threads


@pytest.mark.parametrize("devices", [1, 2])
async def test_fast_kernels_stay_in_the_thread_of_the_loop(gate: Gate, devices: int) -> None:
    async with open_session(fork(devices), f"cpu:{devices}", budget_s=60, thread_limit_s=60) as session:
        await warm(session)
        assert gate.threads == {threading.get_ident()}


@pytest.mark.parametrize("devices", [1, 2])
async def test_kernels_that_wait_for_files_are_in_threads_from_the_first_step_on(
    gate: Gate, devices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    neg = lookup_op("Neg")
    monkeypatch.setattr(neg, "record", replace(neg.record, waits_for_files=True))
    async with open_session(fork(devices), f"cpu:{devices}", thread_limit_s=0) as session:
        (got,) = await session.run("y", {"x": TWO})
        assert got.tolist() == [2, 2]
        assert gate.threads
        assert threading.get_ident() not in gate.threads


@pytest.mark.parametrize("devices", [1, 2])
async def test_the_loop_goes_on_while_a_kernel_is_in_a_thread(gate: Gate, devices: int) -> None:
    async with open_session(fork(devices), f"cpu:{devices}", **ALWAYS) as session, trio.open_nursery() as nursery:
        await warm(session)
        entered = gate.close()
        nursery.start_soon(session.run, "y", {"x": TWO})
        await entered.wait()  # only a loop that goes on gets here
        gate.opened.set()
    assert gate.opened.is_set()


@pytest.mark.parametrize("devices", [1, 2])
async def test_a_step_cancelled_in_a_thread_ends_after_the_thread(gate: Gate, devices: int) -> None:
    async with open_session(fork(devices), f"cpu:{devices}", **ALWAYS) as session:
        await warm(session)
        await check_cancelled_in_a_thread(gate, session, lambda: session.run("y", {"x": TWO}))
        await warm(session)


@pytest.mark.parametrize("devices", [1, 2])
async def test_an_error_in_a_thread_fails_the_step_and_no_other(gate: Gate, devices: int) -> None:
    async with open_session(fork(devices), f"cpu:{devices}", **ALWAYS) as session:
        await warm(session)
        gate.fails = True
        with pytest.raises(InvalidArgumentError, match="as asked") as caught:
            await session.run("y", {"x": TWO})
        assert caught.value.op == "Neg"
        assert caught.value.node in {"a0", "b0"}
        gate.fails = False
        await warm(session)


@pytest.mark.parametrize("devices", [1, 2])
async def test_a_session_closed_under_a_thread_fails_the_step_after_it(gate: Gate, devices: int) -> None:
    async with open_session(fork(devices), f"cpu:{devices}", **ALWAYS) as session:
        await warm(session)
        entered = gate.close()

        async def step() -> None:
            with pytest.raises(CancelledError, match=r"^Session has been closed"):
                await session.run("y", {"x": TWO})

        async with trio.open_nursery() as nursery:
            nursery.start_soon(step)
            await entered.wait()
            session.close()
            gate.opened.set()
    assert gate.threads
