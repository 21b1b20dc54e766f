"""Runs the steps of prepared requests, with what RunOptions ask for: a time limit, a trace, partition graphs.

A step runs in one of three ways:
- A request with a single plan and no transfers runs in the task of the caller, which saves a switch to an actor.
- A request that runs uncut, see `whole_requests`, runs on the actor of the client device.
- All others are started on the workers, see `worker_protocol.SessionStep`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from ...devices.kernels.blas_threads import LIMIT
from ...graph import ConfigProto, RunMetadata, RunOptions
from ..running.chunks.executor import fresh_slots, run_alone
from ..running.ports import shared_with
from .options.deadline import deadline_exceeded
from .requests import timeout_seconds, unshared
from .session_traces import CostSteps

if TYPE_CHECKING:
    from ...errors import PartitaError
    from ...graph.dtypes import Array
    from ..running.virtual.record import StepRecord
    from .preparation import Prepared
    from .virtual_sessions import StepRecording
    from .whole_requests import WholeRequest, WholeResult
    from .worker_protocol import SessionStep, SessionWorkers, StepUnderWay


class Steps:
    """The steps of one session. `under_way` has those on actors and of partial runs, with their devices."""

    def __init__(
        self, workers: SessionWorkers, settings: ConfigProto, new_check: Callable[[frozenset[str]], Callable[[], None]]
    ) -> None:
        """`new_check` is called for each step in the task of its caller, with its devices, and returns a check for it.

        The step calls its check after each time it has let other tasks run; the check raises to stop it.
        """
        self.under_way: dict[StepUnderWay, frozenset[str]] = {}
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

    def _ended(self, step: StepUnderWay) -> None:
        """A step is over: its rendezvous, which is its own, lets the error go that it was aborted with."""
        del self.under_way[step]
        step.rendezvous.forget_error()

    @contextmanager
    def _running(self, devices: frozenset[str], step: StepUnderWay) -> Iterator[None]:
        """A block in which a step is under way."""
        self.under_way[step] = devices
        try:
            yield
        finally:
            self._ended(step)

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
        if prepared.alone is not None:
            plan, actor = prepared.alone
            slots = fresh_slots(plan, fed)
            with np.errstate(all="ignore"):
                await run_alone(plan, slots, self._workers.pacer, actor.limiter, self._new_check(prepared.devices))
            return prepared.arrays({result.index: slots[result.slot] for result in plan.results})
        if prepared.whole is not None:
            return _whole_arrays(prepared, await self._run_whole(prepared.whole, prepared, fed, number, recording))
        return prepared.fetched(await self._run_step(prepared, fed, number, waiting))

    async def _run_whole(
        self,
        whole: WholeRequest,
        prepared: Prepared,
        fed: list[Any],
        number: int,
        recording: StepRecording | None = None,
        *,
        with_trace: bool = False,
    ) -> WholeResult:
        result = await whole.run(
            partial(self._running, prepared.devices),
            fed,
            number,
            keeps_last=prepared.signature.is_callable,
            begin=None if recording is None else recording.begin,
            with_trace=with_trace,
        )
        self.last_record = result.record
        return result

    async def _run_step(
        self,
        prepared: Prepared,
        fed: list[Any],
        number: int,
        waiting: list[str] | None = None,
        *,
        with_trace: bool = False,
    ) -> SessionStep:
        """Runs a request on its workers and returns the finished step.

        If the step fails or is cancelled, the keys of its unserved receives are appended to `waiting`.
        """
        step = prepared.request.new_step(number, with_trace=with_trace)
        self.under_way[step] = prepared.devices
        try:
            messages = zip(prepared.feed_keys, fed, strict=True) if prepared.feed_keys else ()
            step.start(fed, messages, prepared.fetch_keys)
            await step.wait()
        except BaseException:
            if waiting is not None:
                waiting += step.waiting()
            raise
        finally:
            self._ended(step)
        return step

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
            if prepared.whole is not None and wants_trace:
                result = await self._run_whole(prepared.whole, prepared, fed, number, with_trace=True)
                if result.stats is not None:
                    metadata.step_stats.CopyFrom(result.stats)
                return _whole_arrays(prepared, result)
            if prepared.whole is not None or not (with_costs or wants_trace):
                return await self._run(prepared, fed, number, waiting, recording)
            step = await self._run_step(prepared, fed, number, waiting, with_trace=True)
            stats = step.statistics()
            if wants_trace or not distributed:
                metadata.step_stats.CopyFrom(stats)
            if with_costs:
                prepared.request.add_costs(stats, metadata.cost_graph)
            return prepared.fetched(step)
        late = f"Timed out waiting for notification: the step was not done after timeout_in_ms = {timeout_ms}"
        raise deadline_exceeded(late, waiting)


def _whole_arrays(prepared: Prepared, result: WholeResult) -> list[Array]:
    """The fetched arrays of a step that ran uncut."""
    return prepared.arrays({port.number: result.fetched(port.number) for port in prepared.fetches})
