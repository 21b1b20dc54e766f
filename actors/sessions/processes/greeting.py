"""How two processes meet: one dask message names who connects and for which session, one frame answers.

comm = distributed.comm.connect(...)              TLS and the worker's main port, as all of dask does
{"op": "partita", "reply": False, greeting...}    dask's loop in the worker calls the plugin's handler with the comm
frame: {"process_id": ..., "versions": ...}       from there on both sides write and read frames only
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from distributed.comm import connect

from ....errors import DataLossError, UnavailableError
from .framing import FramedStream

if TYPE_CHECKING:
    from distributed.comm import Comm

_ANSWER_S = 10.0  # a worker that lives answers at once, one that starts has not listened before


@dataclass(frozen=True)
class Greeting:
    """What the process that connects says of itself; no field may be called as a parameter of dask's messages."""

    session_id: str
    process_id: str
    address: str  # where its worker listens; "" for the process of the session
    heartbeat_s: float

    @property
    def whom(self) -> str:
        """The sender, in errors of the other side."""
        return f"the worker at {self.address}" if self.address else "the process of the session"


def read_greeting(message: Mapping[str, object]) -> Greeting:
    """A greeting from what came. DataLossError if it is none."""
    kinds = {"str": str, "float": float}
    if message.keys() != {field.name for field in fields(Greeting)} or not all(
        isinstance(message[field.name], kinds[str(field.type)]) for field in fields(Greeting)
    ):
        raise DataLossError(f"no greeting of Partita: {sorted(message)}")
    return Greeting(**message)  # type: ignore[arg-type]  # checked above


async def dial(
    address: str, op: str, greeting: Greeting, connection_args: Mapping[str, object]
) -> tuple[FramedStream, dict[str, object]]:
    """Connects to a worker: the stream, and its answer. UnavailableError if it does not answer."""
    comm: Comm | None = None
    try:
        comm = await connect(address, timeout=_ANSWER_S, **connection_args)
        stream = FramedStream(comm)
        await comm.write({"op": op, "reply": False, **asdict(greeting)}, serializers=(), on_error="raise")
        answer = await asyncio.wait_for(stream.read_hello(), _ANSWER_S)
    except (OSError, TimeoutError) as error:
        raise UnavailableError(f"the worker at {address} does not answer: {type(error).__name__}: {error}") from error
    except BaseException:
        if comm is not None:
            comm.abort()
        raise
    return stream, answer
