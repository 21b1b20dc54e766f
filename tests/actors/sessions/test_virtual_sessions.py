"""Sessions on a virtual clock: how they are opened, what they refuse, what callables and blocking sessions do on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors import BlockingSession, RunMetadata, RunOptions, open_session
from partita.devices.timing import RooflineSource
from partita.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import ConfigProto, GraphDef
from tests.strategies import cpu


def graph() -> GraphDef:
    """y = -x, and a node that does nothing."""
    b = GraphBuilder()
    b.op("Neg", b.placeholder("x", "float32", (2,)), name="y", device=cpu(0))
    b.op("NoOp", name="nothing")
    return b.graph_def()


FEEDS = {"x": np.array([1, 2], np.float32)}


async def test_a_timeline_needs_a_virtual_clock_and_a_finished_step() -> None:
    """The errors say what to do."""
    async with open_session(graph()) as session:
        await session.run("y", FEEDS)
        with pytest.raises(FailedPreconditionError, match='clock="virtual"'):
            session.timeline()
    async with open_session(graph(), clock="virtual") as session:
        with pytest.raises(FailedPreconditionError, match="no step has finished"):
            session.timeline()
        await session.run("y", FEEDS)
        assert session.timeline().find("y").duration_ns > 0


async def test_a_step_that_takes_no_time_has_no_timeline() -> None:
    """As in a simulation, a timeline of 0 ns is an error; the step itself is not."""
    async with open_session(graph(), clock="virtual") as session:
        assert not await session.run([], targets="nothing")
        with pytest.raises(InvalidArgumentError, match="takes 0 ns"):
            session.timeline()


def with_cost_model() -> ConfigProto:
    config = ConfigProto()
    config.graph_options.build_cost_model = 1
    return config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clock": "sundial"}, r"clock='sundial' is none of 'real', 'virtual'"),
        ({"cost_source": RooflineSource()}, "cost_source"),
        ({"clock": "virtual", "config": with_cost_model()}, "build_cost_model"),
    ],
)
async def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        async with open_session(graph(), **settings):
            pass


async def test_partial_runs_and_traces_are_refused() -> None:
    """The session goes on."""
    async with open_session(graph(), clock="virtual") as session:
        with pytest.raises(UnimplementedError, match="all feeds at its start"):
            await session.partial_run_setup("y", "x")
        options = RunOptions(trace_level=RunOptions.FULL_TRACE)
        with pytest.raises(InvalidArgumentError, match="timeline"):
            await session.run("y", FEEDS, options=options, metadata=RunMetadata())
        assert (await session.run("y", FEEDS))[0].tolist() == [-1, -2]


async def test_callables_and_extensions_run_on_the_virtual_clock() -> None:
    """Their steps have timelines like those of `run`."""
    async with open_session(graph(), clock="virtual") as session:
        negate = await session.make_callable("x", "y")
        assert (await negate(FEEDS["x"]))[0].tolist() == [-1, -2]
        first = session.timeline()
        b = GraphBuilder()
        b.op("Neg", b.constant(np.ones(2, np.float32)), name="z", device=cpu(0))
        await session.extend(b.graph_def())
        await session.run("z")
        assert session.timeline().find("z").duration_ns == first.find("y").duration_ns


async def test_partition_graphs_are_those_that_were_cut() -> None:
    """They can be simulated."""
    metadata, options = RunMetadata(), RunOptions(output_partition_graphs=True)
    async with open_session(graph(), clock="virtual") as session:
        await session.run("y", FEEDS, options=options, metadata=metadata)
    assert [node.op for node in metadata.partition_graphs[0].node].count("Neg") == 1


def test_a_blocking_session_has_timelines() -> None:
    """Asked for in the caller's thread."""
    with BlockingSession(graph(), clock="virtual") as session:
        with pytest.raises(FailedPreconditionError):
            session.timeline()
        session.run("y", FEEDS)
        assert session.timeline().find("y").node == "y"
