"""Requests that run uncut: in the interpreter, for loops that cannot be compiled, or on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .. import plans, running

if TYPE_CHECKING:
    from ...graph import StepStats
    from ..running.device_actor import DeviceActor
    from ..running.interpretation import Interpretation
    from ..running.step import Step
    from ..running.virtual.body import VirtualBody
    from ..running.virtual.clock import VirtualClock
    from ..running.virtual.record import StepRecord
    from .worker_protocol import StepUnderWay

    Running = Callable[[StepUnderWay], AbstractContextManager[None]]


class WholeResult(NamedTuple):
    """A step that is done: what it fetched, by number, the times of its nodes if it was traced, and its record if it
    ran on a virtual clock."""

    fetched: Callable[[int], Any]
    stats: StepStats | None = None
    record: StepRecord | None = None


class WholeRequest(Protocol):
    """What runs the steps of a request uncut."""

    async def run(
        self,
        running_: Running,
        fed: list[Any],
        number: int,
        *,
        keeps_last: bool,
        begin: Callable[[StepRecord], None] | None = None,
        with_trace: bool = False,
    ) -> WholeResult:
        """Runs one step, inside of the block that `running_` gives for it.

        With `keeps_last` a fetch that has several values in a loop is the last one. `begin` is called with the record
        of a step on a virtual clock.
        """


class InterpretedRequest:
    """A graph whose loops cannot be compiled: it runs in the interpreter, on the actor of the client device."""

    def __init__(
        self,
        new_step: Callable[[int], Step],
        client: DeviceActor,
        graph: Interpretation,
        traced: Callable[[], Interpretation],
    ) -> None:
        """`traced` makes the same graph with functions that leave records."""
        self._new_step = new_step
        self._client = client
        self._graph = graph
        self._traced = traced

    async def run(
        self,
        running_: Running,
        fed: list[Any],
        number: int,
        *,
        keeps_last: bool,
        begin: Callable[[StepRecord], None] | None = None,
        with_trace: bool = False,
    ) -> WholeResult:
        """As `WholeRequest.run`; there is no virtual clock, so that nothing is begun."""
        step = self._new_step(number)
        graph = self._traced() if with_trace else self._graph
        scope = plans.TraceScope([]) if with_trace else None
        kind = running.TracedInterpretedPart if with_trace else running.InterpretedPart
        with running_(step):
            with np.errstate(all="ignore"):
                part = running.start_interpreted(step, graph, self._client, fed, kind, scope, keeps_last=keeps_last)
                self._client.group.serve_mailboxes()
            await step.wait()
        if scope is None:
            return WholeResult(part.result)
        return WholeResult(part.result, running.statistics_of_records(scope.records, dict.fromkeys(graph.devices)))


class VirtualRequest:
    """A graph that runs on the simulated hardware of a session, which keeps what its timeline is made of."""

    def __init__(
        self, new_step: Callable[[int], Step], client: DeviceActor, body: VirtualBody, clock: VirtualClock
    ) -> None:
        self._new_step = new_step
        self._client = client
        self._body = body
        self._clock = clock

    async def run(
        self,
        running_: Running,
        fed: list[Any],
        number: int,
        *,
        keeps_last: bool,
        begin: Callable[[StepRecord], None] | None = None,
        with_trace: bool = False,
    ) -> WholeResult:
        """As `WholeRequest.run`; `check_virtual_options` has refused traces."""
        from ..running.virtual.virtual_step import VirtualStep  # other sessions need no simulated hardware

        step = self._new_step(number)
        virtual = VirtualStep(step, self._clock)
        if begin is not None:
            begin(virtual.record)
        with running_(step):
            run = await virtual.run(self._body, self._client, fed, keeps_last=keeps_last)
        return WholeResult(run.result, record=virtual.record)
