"""How a session runs a step of a prepared request: plainly, or with a time limit, a trace, partition graphs.

Flows in: prepared requests, fed tensors, the options of the step. Flows out: fetched arrays, RunMetadata. Always holds:
a step that is under way is in `under_way`, unless it is one plan that the caller's own task runs; that asks its session
at each rest whether it may go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from ...graph import ConfigProto, RunMetadata, RunOptions
from ...graph.collector import collector_paused
from ...rendezvous import TracedRendezvous
from ..running.executor import fresh_slots, run_alone
from ..running.interpreted_part import start_interpreted
from ..running.step import Step
from .lateness import late
from .requests import seconds
from .session_traces import CostSteps, add_costs, statistics_of
from .worker_steps import WorkerSteps, start_step

if TYPE_CHECKING:
    from ...errors import PartitaError
    from ...graph.dtypes import Array
    from ..running.interpretation import Interpretation
    from ..running.part import Part
    from .preparation import Prepared
    from .workers import Workers


class Steps:
    """See the module."""

    def __init__(self, workers: Workers, settings: ConfigProto, check: Callable[[], Callable[[], None]]) -> None:
        """`check` gives what a step that begins now asks at each rest; that raises if the step must not go on."""
        self.under_way: set[Step | WorkerSteps] = set()
        self._workers = workers
        self._settings = settings
        self._check = check
        self._costs = CostSteps(settings.graph_options, distributed=workers.is_distributed)
        self._is_plain = not (settings.operation_timeout_in_ms or self._costs.are_wanted)

    def fail(self, error: PartitaError) -> None:
        """Stops all that are under way."""
        for step in list(self.under_way):
            step.fail(error)

    async def run(
        self,
        prepared: Prepared,
        fed: list[Any],
        number: int,
        options: RunOptions | None,
        metadata: RunMetadata | None,
    ) -> list[Array]:
        """Runs one step; see `Session.run`."""
        if options is None and metadata is None and self._is_plain:
            return await self._run(prepared, fed, number)
        return await self._run_with(prepared, fed, number, options or RunOptions(), metadata or RunMetadata())

    async def _run(
        self, prepared: Prepared, fed: list[Any], number: int, waiting: list[str] | None = None
    ) -> list[Array]:
        if prepared.alone is not None:
            plan, actor = prepared.alone
            slots = fresh_slots(plan, fed)
            with np.errstate(all="ignore"):
                await run_alone(plan, slots, self._workers.pacer, actor.limiter, self._check())
            return prepared.arrays({result.index: slots[result.slot] for result in plan.results}, fed)
        if prepared.interpretation is not None:
            return await self._interpret(prepared.interpretation, prepared, fed, number)
        step, parts = await self._run_step(prepared, fed, number, waiting)
        return prepared.fetched(parts, step.rendezvous, fed)

    async def _interpret(self, graph: Interpretation, prepared: Prepared, fed: list[Any], number: int) -> list[Array]:
        """Runs a graph with unusual loops in the tagged-frame interpreter, on the client's actor."""
        step = self._workers.new_step(number)
        assert isinstance(step, Step)  # over several tasks nothing is interpreted
        self.under_way.add(step)
        try:
            with np.errstate(all="ignore"):
                part = start_interpreted(step, graph, self._workers.client, fed)
                self._workers.actor_group.serve_mailboxes()
            await step.wait()
        finally:
            self.under_way.discard(step)
        return prepared.arrays({port.number: part.result(port.number) for port in prepared.fetches}, fed)

    async def _run_step(
        self,
        prepared: Prepared,
        fed: list[Any],
        number: int,
        waiting: list[str] | None = None,
        *,
        with_trace: bool = False,
    ) -> tuple[Step | WorkerSteps, list[Part]]:
        """Runs a request on the actors of its workers; the step, and its parts, when it is done.

        `waiting` gets the keys that were waited for when it ended otherwise.
        """
        work = prepared.work(with_trace=with_trace)
        step = self._workers.new_step(number, with_trace=with_trace)
        self.under_way.add(step)
        try:
            with np.errstate(all="ignore"), collector_paused():
                if prepared.feed_keys:
                    for key, value in zip(prepared.feed_keys, fed, strict=True):
                        step.rendezvous.send(key, value)
                parts = start_step(step, work, fed, with_trace=with_trace)
                self._workers.actor_group.serve_mailboxes()
            await step.wait()
        except BaseException:
            if waiting is not None:
                waiting += step.rendezvous.waiting()
            raise
        finally:
            self.under_way.discard(step)
        return step, parts

    async def _run_with(
        self, prepared: Prepared, fed: list[Any], number: int, options: RunOptions, metadata: RunMetadata
    ) -> list[Array]:
        """Runs a step with the extras that options ask for."""
        distributed = self._workers.is_distributed
        if options.output_partition_graphs:
            metadata.partition_graphs.extend(prepared.partition_graphs())
        if self._settings.experimental.HasField("session_metadata") and not distributed:
            metadata.session_metadata.CopyFrom(self._settings.experimental.session_metadata)
        with_costs = self._costs.begin(prepared.signature)
        wants_trace = options.trace_level == RunOptions.FULL_TRACE or (options.trace_level and not distributed)
        timeout_ms = options.timeout_in_ms if options.timeout_in_ms > 0 else self._settings.operation_timeout_in_ms
        waiting: list[str] = []
        with trio.move_on_after(seconds(timeout_ms)):
            if not prepared.shares or not (with_costs or wants_trace):
                return await self._run(prepared, fed, number, waiting)
            step, parts = await self._run_step(prepared, fed, number, waiting, with_trace=True)
            assert isinstance(step.rendezvous, TracedRendezvous)  # as every traced step has
            stats = statistics_of(parts, step.rendezvous)
            if wants_trace or not distributed:
                metadata.step_stats.CopyFrom(stats)
            if with_costs:
                add_costs(stats, prepared, metadata)
            return prepared.fetched(parts, step.rendezvous, fed)
        raise late(f"the step was not done after timeout_in_ms = {timeout_ms}", waiting)
