"""A blocking session returns and raises what a `Session` does, in any thread."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from threading import active_count
from typing import Any

import numpy as np
import pytest

from partita.actors import BlockingSession, RunMetadata, RunOptions
from partita.devices.kernels import registry
from partita.errors import CancelledError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from partita.graph.structured import while_loop
from tests.strategies import cpu


def negation() -> GraphDef:
    builder = GraphBuilder()
    builder.op("Neg", builder.placeholder("x", "float32", device=cpu(0)), name="y", device=cpu(1))
    return builder.graph_def()


def test_it_runs_steps_and_leaves_no_thread() -> None:
    threads = active_count()
    with BlockingSession(negation(), "cpu:2") as session:
        assert session.devices == [cpu(0), cpu(1)]
        for value in (1.0, 2.0):
            (y,) = session.run("y", {"x": value})
            assert y == -value
        metadata = RunMetadata()
        session.run("y", {"x": 1.0}, options=RunOptions(output_partition_graphs=True), metadata=metadata)
        assert len(metadata.partition_graphs) == 2
    session.close()  # a second time does no harm
    assert active_count() <= threads + 1  # trio keeps an idle worker thread for a while


def test_errors_come_out_as_they_are() -> None:
    with BlockingSession(negation(), "cpu:2") as session:
        with pytest.raises(InvalidArgumentError, match=r"^Expects arg\[0\] to be float but int32 is provided"):
            session.run("y", {"x": np.int32(1)})
        session.run("y", {"x": 1.0})
    with pytest.raises(CancelledError, match=r"^Session has been closed"):
        session.run("y", {"x": 1.0})


def test_a_graph_that_cannot_be_opened_is_refused_at_once() -> None:
    with pytest.raises(InvalidArgumentError, match="Invalid GraphDef"):
        BlockingSession(b"\xff\xff")
    with pytest.raises(InvalidArgumentError, match="Cannot assign a device"):
        BlockingSession(negation(), "cpu:1")


def test_exceptions_of_the_user_come_out_and_close_the_session() -> None:
    with pytest.raises(KeyError, match="mine"), BlockingSession(negation(), "cpu:2") as session:
        raise KeyError("mine")
    with pytest.raises(CancelledError):
        session.run("y", {"x": 1.0})


def test_threads_share_a_session() -> None:
    def step(session: BlockingSession, value: float) -> bool:
        (y,) = session.run("y", {"x": np.full(3, value, np.float32)})
        return bool((y == -value).all())

    with BlockingSession(negation(), "cpu:2") as session, ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda value: step(session, value), range(20)))


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_cancels_the_call_and_not_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step is cancelled, and the session runs the next one."""
    assert registry.lookup("Neg") is not None  # loads the kernels before one is replaced
    is_first = True

    def negative(value: Any) -> Any:
        nonlocal is_first
        if is_first:
            is_first = False
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return -value

    monkeypatch.setitem(registry._FACTORIES, "Neg", lambda _node: negative)
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", ())
    (y,) = while_loop(
        builder,
        lambda value: builder.op("GreaterEqual", value, 0.0),
        lambda value: builder.op("Neg", builder.op("Neg", value)),
        [x],
    )
    builder.op("Identity", y, name="y")
    with BlockingSession(builder.graph_def(), "cpu:2") as session:
        with pytest.raises(KeyboardInterrupt):
            session.run("y", {"x": 1.0})  # a loop without end
        assert session.run("y", {"x": -2.0}) == [-2.0]
