"""A cluster with TLS: connections to workers, and between them, are encrypted as dask's own are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest
import trio

from partita.errors import FailedPreconditionError
from tests.actors.sessions.processes.talk import Talk, connected, message, two

if TYPE_CHECKING:
    from distributed import LocalCluster


@pytest.fixture(scope="module")
def encrypted() -> Iterator[LocalCluster]:
    """Two worker processes with certificates of their own."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: pip install '.[dask]'")
    pytest.importorskip("cryptography", reason="cryptography is not installed: pip install '.[dask]'")
    security = distributed.Security.temporary()
    with distributed.LocalCluster(2, security=security, dashboard_address=":0", threads_per_worker=1) as started:
        yield started


async def test_messages_go_over_tls(encrypted: LocalCluster) -> None:
    """Long ones, and those between workers, too; a client has the certificates."""
    from distributed import Client

    def open_client() -> Client:
        return Client(encrypted, set_as_default=False)

    with await trio.to_thread.run_sync(open_client) as client:
        async with connected(client) as opened:
            workers = await two(opened)
            assert all(worker.address.startswith("tls://") for worker in workers)
            talks = [Talk(await opened.open(worker)) for worker in workers]
            values = np.random.default_rng(1).integers(0, 256, 1 << 23, np.uint8)
            talks[0].post(message("echo", values))
            assert np.array_equal((await talks[0].hear())[0].tensors[0], values)
            talks[1].post(message("expect", to=workers[0].process_id, at=workers[0].address))
            talks[0].post(message("relay", values, to=workers[1].process_id, at=workers[1].address))
            assert np.array_equal((await talks[0].hear())[0].tensors[0], values)


async def test_an_address_alone_does_not_do(encrypted: LocalCluster) -> None:
    """The error says where certificates come from."""
    with pytest.raises(FailedPreconditionError, match="give a Client that has its `security`"):
        async with connected(encrypted.scheduler_address):
            pass
