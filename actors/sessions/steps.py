"""Runs the steps of prepared requests, with what RunOptions ask for: a time limit, a trace, partition graphs.

A step runs in one of four ways:
- In a session on a virtual clock, it runs on simulated hardware, see `running/virtual`.
- A request with a single plan and no transfers runs in the task of the caller, which saves a switch to an actor.
- A request with an `interpretation` runs in the interpreter, on the actor of the client device.
- All others are started on the actors of their devices, see `worker_steps.start_step`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from ... import rendezvous
from ...devices.kernels.blas_threads import LIMIT
from ...graph import ConfigProto, RunMetadata, RunOptions
from .. import plans, running
from ..running.chunks.executor import fresh_slots, run_alone
from ..running.ports import shared_with
from ..running.step import Step
from .deadline import deadline_exceeded
from .requests import timeout_seconds, unshared
from .session_traces import CostSteps, add_costs, statistics_of
from .worker_steps import WorkerSteps, start_step

if TYPE_CHECKING:
    from ...errors import PartitaError
    from ...graph.dtypes import Array
    from ..plans.tracing import TraceScope
    from ..running.interpretation import Interpretation
    from ..running.part import Part
    from ..running.virtual.body import VirtualBody
    from ..running.virtual.record import StepRecord
    from .preparation import Prepared
    from .virtual_sessions import StepRecording
    from .workers import Workers


class Steps:
    """The steps of one session. `under_way` has those on actors and of partial runs, with their devices."""

    def __init__(
        self, workers: Workers, settings: ConfigProto, new_check: Callable[[frozenset[str]], Callable[[], None]]
    ) -> None:
        """`new_check` is called for each step in the task of its caller, with its devices, and returns a check for it.

        The step calls its check after each time it has let other tasks run; the check raises to stop it.
        """
        self.under_way: dict[Step | WorkerSteps, frozenset[str]] = {}
        self.last_record: StepRecord | None = None
        """what the last finished step has done on simulated hardware"""
        self._workers = workers
        self._settings = settings
        self._new_check = new_check
        self._costs = CostSteps(settings.graph_options, distributed=workers.is_distributed)
        self._is_plain = not (settings.operation_timeout_in_ms or self._costs.are_wanted)

    def fail(self, error: PartitaError, device: str | None = None) -> None:
        """Stops all steps under way, or those that use a device."""
        for step, devices in list(self.under_way.items()):
            if device is None or device in devices:
                step.fail(error)

    def _ended(self, step: Step | WorkerSteps) -> None:
        """A step is over: its rendezvous, which is its own, lets the error go that it was aborted with."""
        del self.under_way[step]
        step.rendezvous.forget_error()

    async def run(
        self,
        prepared: Prepared,
        fed: list[Any],
        number: int,
        options: RunOptions | None,
        metadata: RunMetadata | None,
        recording: StepRecording | None = None,
    ) -> list[Array]:
        """Runs one step on the tensors `fed` and returns the fetched arrays; `Session.run` lists the errors."""
        try:
            if options is None and metadata is None and recording is None and self._is_plain:
                fetched = await self._run(prepared, fed, number)
            else:
                options, metadata = options or RunOptions(), metadata or RunMetadata()
                fetched = await self._run_with(prepared, fed, number, options, metadata, recording)
            shared = shared_with(fetched, fed)
            return await unshared(fetched, shared) if shared else fetched
        finally:
            LIMIT.keep()

    async def _run(
        self,
        prepared: Prepared,
        fed: list[Any],
        number: int,
        waiting: list[str] | None = None,
        recording: StepRecording | None = None,
    ) -> list[Array]:
        if prepared.virtual is not None:
            return await self._run_virtually(prepared.virtual, prepared, fed, number, recording)
        if prepared.alone is not None:
            plan, actor = prepared.alone
            slots = fresh_slots(plan, fed)
            with np.errstate(all="ignore"):
                await run_alone(plan, slots, self._workers.pacer, actor.limiter, self._new_check(prepared.devices))
            return prepared.arrays({result.index: slots[result.slot] for result in plan.results})
        if prepared.interpretation is not None:
            return await self._interpret(prepared.interpretation, prepared, fed, number)
        step, parts = await self._run_step(prepared, fed, number, waiting)
        return prepared.fetched(parts, step.rendezvous)

    async def _interpret(
        self, graph: Interpretation, prepared: Prepared, fed: list[Any], number: int, scope: TraceScope | None = None
    ) -> list[Array]:
        """Runs a graph whose loops cannot be compiled, on the actor of the client device; a traced one in a scope."""
        kind = running.InterpretedPart if scope is None else running.TracedInterpretedPart
        step, keeps_last = self._workers.new_step(number), prepared.signature.is_callable
        assert isinstance(step, Step)  # sessions over several tasks interpret nothing
        self.under_way[step] = prepared.devices
        try:
            with np.errstate(all="ignore"):
                part = running.start_interpreted(
                    step, graph, self._workers.client_actor, fed, kind, scope, keeps_last=keeps_last
                )
                self._workers.actor_group.serve_mailboxes()
            await step.wait()
        finally:
            self._ended(step)
        return prepared.arrays({port.number: part.result(port.number) for port in prepared.fetches})

    async def _run_virtually(
        self,
        body: VirtualBody,
        prepared: Prepared,
        fed: list[Any],
        number: int,
        recording: StepRecording | None,
    ) -> list[Array]:
        """Runs a graph on the simulated hardware of the session, and keeps what its timeline is made of."""
        from ..running.virtual.virtual_step import VirtualStep  # other sessions need no simulated hardware

        step, clock = self._workers.new_step(number), self._workers.clock
        assert isinstance(step, Step)  # sessions over several tasks have no virtual clock
        assert clock is not None
        virtual = VirtualStep(step, clock)
        if recording is not None:
            recording.begin(virtual.record)
        self.under_way[step] = prepared.devices
        try:
            keeps_last = prepared.signature.is_callable
            run = await virtual.run(body, self._workers.client_actor, fed, keeps_last=keeps_last)
        finally:
            self._ended(step)
        self.last_record = virtual.record
        return prepared.arrays({port.number: run.result(port.number) for port in prepared.fetches})

    async def _run_step(
        self,
        prepared: Prepared,
        fed: list[Any],
        number: int,
        waiting: list[str] | None = None,
        *,
        with_trace: bool = False,
    ) -> tuple[Step | WorkerSteps, list[Part]]:
        """Runs a request on the actors of its workers and returns the finished step and its parts.

        If the step fails or is cancelled, the keys of its unserved receives are appended to `waiting`.
        """
        work = prepared.work(with_trace=with_trace)
        step = self._workers.new_step(number, with_trace=with_trace)
        self.under_way[step] = prepared.devices
        try:
            messages = zip(prepared.feed_keys, fed, strict=True) if prepared.feed_keys else ()
            parts = start_step(step, work, fed, self._workers.actor_group, messages=messages, with_trace=with_trace)
            await step.wait()
        except BaseException:
            if waiting is not None:
                waiting += step.rendezvous.waiting()
            raise
        finally:
            self._ended(step)
        return step, parts

    async def _run_with(
        self,
        prepared: Prepared,
        fed: list[Any],
        number: int,
        options: RunOptions,
        metadata: RunMetadata,
        recording: StepRecording | None,
    ) -> list[Array]:
        """Runs a step with the time limit, trace and metadata that its options and the settings ask for."""
        distributed = self._workers.is_distributed
        if options.output_partition_graphs:
            metadata.partition_graphs.extend(prepared.partition_graphs())
        if self._settings.experimental.HasField("session_metadata") and not distributed:
            metadata.session_metadata.CopyFrom(self._settings.experimental.session_metadata)
        with_costs = self._costs.begin(prepared.signature)
        wants_trace = options.trace_level == RunOptions.FULL_TRACE or (options.trace_level and not distributed)
        timeout_ms = options.timeout_in_ms if options.timeout_in_ms > 0 else self._settings.operation_timeout_in_ms
        waiting: list[str] = []
        with trio.move_on_after(timeout_seconds(timeout_ms)):
            if prepared.interpretation is not None and wants_trace:
                graph, scope = self._workers.traced(prepared.interpretation), plans.TraceScope([])
                fetched = await self._interpret(graph, prepared, fed, number, scope)
                metadata.step_stats.CopyFrom(running.statistics_of_records(scope.records, dict.fromkeys(graph.devices)))
                return fetched
            if not prepared.shares or not (with_costs or wants_trace):
                return await self._run(prepared, fed, number, waiting, recording)
            step, parts = await self._run_step(prepared, fed, number, waiting, with_trace=True)
            assert isinstance(step.rendezvous, rendezvous.TracedRendezvous)  # from `new_step(with_trace=True)`
            stats = statistics_of(parts, step.rendezvous)
            if wants_trace or not distributed:
                metadata.step_stats.CopyFrom(stats)
            if with_costs:
                add_costs(stats, prepared, metadata)
            return prepared.fetched(parts, step.rendezvous)
        late = f"Timed out waiting for notification: the step was not done after timeout_in_ms = {timeout_ms}"
        raise deadline_exceeded(late, waiting)
