"""Workers on hosts of their own: values are those of one process."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from partita.actors import open_session
from tests.actors.sessions.processes.graphs import stateful
from tests.actors.sessions.processes.two_hosts import HOSTS, NoNamespaces, two_hosts
from tests.strategies import cpu

X = {"x": np.float32(2)}
SPREAD = {cpu(number): host for number, host in enumerate(HOSTS)}


@pytest.fixture(scope="module")
def hosts(dask: None) -> Iterator[str]:
    """Two hosts with a worker each; a skipped test where there can be none."""
    from distributed import Client

    try:
        with two_hosts() as address:
            with Client(address, set_as_default=False) as client:
                client.wait_for_workers(len(HOSTS), timeout=60)
            yield address
    except NoNamespaces as missing:
        pytest.skip(f"no two network namespaces: {missing}")


async def test_each_host_has_a_device(hosts: str) -> None:
    """State stays on its host, and tensors go from one to the other."""
    async with open_session(stateful(), "cpu:2", workers=hosts, spread=SPREAD) as session:
        await session.run([], X, ["set0", "set1"])
        assert await session.run(["neg0", "neg1"]) == [-2, -2]
