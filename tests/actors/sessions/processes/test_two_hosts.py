"""Workers on hosts of their own: values are those of one process, and a host that falls silent is found and left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import UnavailableError
from tests.actors.sessions.processes.graphs import stateful
from tests.actors.sessions.processes.steps import failing
from tests.actors.sessions.processes.two_hosts import HOSTS, NoNamespaces, TwoHosts, two_hosts
from tests.strategies import cpu

X = {"x": np.float32(2)}
SPREAD = {cpu(number): host for number, host in enumerate(HOSTS)}


@pytest.fixture(scope="module")
def hosts(dask: None) -> Iterator[TwoHosts]:
    """Two hosts with a worker each; a skipped test where there can be none."""
    from distributed import Client

    try:
        with two_hosts() as made:
            with Client(made.address, set_as_default=False) as client:
                client.wait_for_workers(len(HOSTS), timeout=60)
            yield made
    except NoNamespaces as missing:
        pytest.skip(f"no two network namespaces: {missing}")


async def test_each_host_has_a_device(hosts: TwoHosts) -> None:
    """State stays on its host, and tensors go from one to the other."""
    async with open_session(stateful(), "cpu:2", workers=hosts.address, spread=SPREAD) as session:
        await session.run([], X, ["set0", "set1"])
        assert await session.run(["neg0", "neg1"]) == [-2, -2]


async def test_a_silent_host_is_found_and_left(hosts: TwoHosts) -> None:
    """Its socket stays open: the heartbeat finds it, here after 5 s: a busy worker may be silent for a while."""
    async with open_session(stateful(), "cpu:2", workers=hosts.address, spread=SPREAD, heartbeat_s=5) as session:
        await session.run([], X, ["set0", "put"])
        # A step whose request is ready begins at once. One that is prepared meanwhile would be prepared again, without
        # the host, and wait for an element for ever.
        assert await session.run("taken") == [-2]
        with ExitStack() as cut:
            async with failing(session, "taken", UnavailableError, match=f"worker b at .*no sign of life.*{cpu(1)}"):
                cut.enter_context(hosts.cut("b"))
            assert await session.run("neg0") == [-2]
            await session.run([], X, ["set1"])
            assert await session.run(["neg0", "neg1"]) == [-2, -2]
