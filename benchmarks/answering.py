"""What serves a session of `bench_processes` in a worker: it answers each message by one without tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from partita.devices.wire import WireMessage

if TYPE_CHECKING:
    from partita.actors.sessions.processes.connection import Connection
    from partita.actors.sessions.processes.node import WorkerNode

HOST = "benchmarks.answering:serve"


async def serve(connection: Connection, node: WorkerNode) -> None:
    """Answers until the connection ends."""
    over = trio.Event()

    def answer(messages: list[WireMessage]) -> None:
        for message in messages:
            connection.post(WireMessage({"op": "taken", "count": len(message.tensors)}))

    connection.start(answer, lambda error: over.set())
    await over.wait()
