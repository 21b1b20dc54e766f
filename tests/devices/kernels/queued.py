"""A queue on a device of its own, for tests. Every call is in a step of its own unless a step is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.devices.state import DeviceState
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.calls import FakeCall, FakeStep, start
from tests.devices.kernels.harness import run

FLOAT, INT32, INT64, STRING = DataType.FLOAT, DataType.INT32, DataType.INT64, DataType.STRING


class Queued:
    """A device with one queue."""

    def __init__(
        self, kind: str = "FIFOQueue", types: tuple[DataType, ...] = (FLOAT,), version: str = "V2", **attrs: Any
    ) -> None:
        self.state = DeviceState(seed=0)
        self.version = version
        self.types = (INT64, *types) if kind == "PriorityQueue" else types
        self.handle = run(kind + version, state=self.state, name="q", component_types=types, **attrs)

    def start(self, op: str, *inputs: Any, step: FakeStep | None = None, **attrs: Any) -> FakeCall:
        """Starts an op that may wait."""
        return start(f"Queue{op}{self.version}", self.handle, *inputs, state=self.state, step=step, **attrs)

    def put(self, *components: Any, step: FakeStep | None = None) -> FakeCall:
        return self.start("Enqueue", list(map(np.asarray, components)), step=step)

    def put_many(self, *components: Any, step: FakeStep | None = None) -> FakeCall:
        return self.start("EnqueueMany", list(map(np.asarray, components)), step=step)

    def take(self, step: FakeStep | None = None) -> FakeCall:
        return self.start("Dequeue", step=step, component_types=self.types)

    def take_many(self, n: int, step: FakeStep | None = None) -> FakeCall:
        return self.start("DequeueMany", np.int32(n), step=step, component_types=self.types)

    def take_up_to(self, n: int, step: FakeStep | None = None) -> FakeCall:
        return self.start("DequeueUpTo", np.int32(n), step=step, component_types=self.types)

    def close(self, *, cancel: bool = False) -> FakeCall:
        return self.start("Close", cancel_pending_enqueues=cancel)

    @property
    def size(self) -> int:
        return int(run(f"QueueSize{self.version}", self.handle, state=self.state))

    @property
    def is_closed(self) -> bool:
        return bool(run(f"QueueIsClosed{self.version}", self.handle, state=self.state))


def floats(*items: float) -> Array:
    """A vector of float32."""
    return np.array(items, np.float32)


def scalars(**attrs: Any) -> Queued:
    """A first-in-first-out queue of float scalars."""
    return Queued(shapes=((),), **attrs)
