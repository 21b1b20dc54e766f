"""What dask installs in each worker, those that start later included, so that sessions can use it.

It costs a worker one handler; a thread and modules come with the first session.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

from distributed import WorkerPlugin

from .acceptor import Acceptor

if TYPE_CHECKING:
    from distributed import Worker

    from .node import Serve

HOST = f"{__package__}.host:serve"


class PartitaPlugin(WorkerPlugin):
    """Accepts sessions in a worker. One is enough for all sessions and clients of a cluster; more are ignored."""

    idempotent = True

    def __init__(self, op: str = "partita", host: str = HOST) -> None:
        """`op` is the name of the handler, and of the plugin; `host` is what serves a session, as module:function."""
        self.name = self.op = op
        self.host = host

    async def setup(self, worker: Worker) -> None:
        """Registers the handler."""
        self._acceptor = Acceptor(worker, self.op, partial(load_host, self.host))
        worker.handlers[self.op] = self._acceptor.accept

    async def teardown(self, worker: Worker) -> None:
        """Lets the sessions leave, and ends them and their thread."""
        worker.handlers.pop(self.op, None)
        await self._acceptor.aclose()


def load_host(path: str) -> Serve:
    """The function that a module:function names."""
    module, _, name = path.partition(":")
    return cast("Serve", getattr(import_module(module), name))
