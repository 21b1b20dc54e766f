"""The ops of TensorFlow's tests: Error, InvalidRefType and Delay."""

from __future__ import annotations

import pytest
import trio

from partita.actors import open_session
from partita.errors import CancelledError, DeadlineExceededError, InternalError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import RunOptions
from tests.hangs import JumpingClock, all_waiting

LONG_US = 10**9


async def test_error_fails_with_its_message() -> None:
    """With code INTERNAL and the name of the node."""
    b = GraphBuilder()
    b.op("Error", b.constant(1.0), name="e", message="as I was told")
    async with open_session(b.graph_def()) as session:
        with pytest.raises(InternalError, match="as I was told") as caught:
            await session.run("e")
        assert caught.value.node == "e"


async def test_a_reference_of_another_type_than_declared_is_refused() -> None:
    """With the message of TensorFlow's executor."""
    b = GraphBuilder()
    b.op("InvalidRefType", name="r", TIn=DataType.FLOAT, TOut=DataType.DOUBLE)
    async with open_session(b.graph_def()) as session:
        with pytest.raises(InternalError, match="of type double_ref does not match declared output type float_ref"):
            await session.run([], targets="r")


def _delayed(micros: int) -> GraphBuilder:
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    b.op("Neg", b.op("Delay", x, name="d", micros=micros), name="y")
    return b


async def test_delays_pass_at_the_same_time(autojump_clock: JumpingClock) -> None:
    """Two steps that wait one second each take one second together."""
    async with open_session(_delayed(10**6).graph_def()) as session:
        fetched = {}

        async def one(value: float) -> None:
            fetched[value] = (await session.run("y", {"x": value}))[0].tolist()

        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, 1.0)
            nursery.start_soon(one, 2.0)
        assert trio.current_time() - start == pytest.approx(1.0)
        assert fetched == {1.0: -1.0, 2.0: -2.0}


async def test_a_delay_ends_with_its_step(autojump_clock: JumpingClock) -> None:
    """No timer is left after a time-out or after the session was closed."""
    async with open_session(_delayed(LONG_US).graph_def()) as session:
        with pytest.raises(DeadlineExceededError):
            await session.run("y", {"x": 1.0}, options=RunOptions(timeout_in_ms=50))

        async def cancelled() -> None:
            with pytest.raises(CancelledError):
                await session.run("y", {"x": 1.0})

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancelled)
            await all_waiting()
            session.close()
    await all_waiting()
    assert trio.lowlevel.current_statistics().seconds_to_next_deadline == float("inf")
