"""Partial runs: one step that is fed and fetched in several calls.

    setup -> BEGUN --call: a check fails--> BEGUN       nothing was sent; the call may be repeated, corrected
               |----call: some feeds sent, some fetches received--> BEGUN
               |----call: the last feeds and fetches--> OVER             when every part of the step is done
               `----error, cancellation, time limit, end of the session--> OVER   when no thread works for the step

Setup starts the step on the actors of its devices, which run it as far as they can without feeds. Each call sends feeds
and receives fetches at the rendezvous of the step. The step needs no task of its own, so an abandoned partial run costs
no task; it ends with the session. The handle of a run that is OVER is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from ...errors import CancelledError, InvalidArgumentError, PartitaError
from ...graph import passes
from ...graph.builder.tensor_names import Names, tensor_names
from ...graph.passes.client_graph import reachable_backwards
from ...graph.tensor_id import parse_tensor_name
from ..running.ports import Feeds, Port, split_feeds
from .options.deadline import deadline_exceeded
from .preparation import received_array
from .requests import RequestNames, copied, fed_values, full_name, rendezvous_signature

if TYPE_CHECKING:
    from ...devices.state import SessionTensors
    from ...graph.dtypes import Array
    from ...graph.graph import Graph
    from .preparation import Prepared
    from .worker_protocol import SessionStep, SessionWorkers, StepUnderWay


def partial_signature(feeds: Names, fetches: Names, targets: Names) -> RequestNames:
    """The signature of a partial run, see `rendezvous_signature`."""
    return rendezvous_signature(
        RequestNames(tensor_names(feeds), tensor_names(fetches), tensor_names(targets), is_partial=True)
    )


class PartialRun:
    """One run: its step, and the feeds and fetches that are still missing."""

    def __init__(self, handle: str, graph: Graph, prepared: Prepared, step: SessionStep) -> None:
        """`graph` is the uncut graph of the session."""
        self.handle = handle
        self.step = step
        self.prepared = prepared
        self.num_calls = 0  # calls that are running
        self.is_over = False
        self._graph = graph
        self._feeds = {port.name: port for port in prepared.feeds}
        self._shapes = passes.static_shapes(graph, list(self._feeds))
        self._fetches = {port.name: port for port in prepared.fetches}
        self._keys = dict(zip(self._feeds, prepared.feed_keys, strict=True))
        self._keys.update(zip(self._fetches, prepared.fetch_keys, strict=True))
        self._unfed = set(self._feeds)
        self._unfetched = set(self._fetches)

    @property
    def has_pending(self) -> bool:
        """Whether a feed or fetch is still missing."""
        return bool(self._unfed or self._unfetched)

    def claim(
        self, feeds: Feeds | None, fetches: Sequence[str], session_tensors: SessionTensors
    ) -> tuple[dict[str, Any], list[Port]]:
        """Checks a call and marks its feeds and fetches as used; returns the tensors to send by name, and the fetches.

        Raises InvalidArgumentError, with nothing changed, for names that setup did not name or that were used before,
        for fetches that need missing feeds, and for values of another type or shape.
        """
        names, values = split_feeds(feeds)
        fed = [self._pending_port(full_name(name), self._feeds, self._unfed, "feed", "fed") for name in names]
        fetch_names = dict.fromkeys(map(full_name, fetches))
        fetched = [self._pending_port(name, self._fetches, self._unfetched, "fetch", "fetched") for name in fetch_names]
        self._check_computable([port.name for port in fetched], self._unfed.difference(port.name for port in fed))
        tensors = dict(zip([port.name for port in fed], fed_values(fed, values, session_tensors), strict=True))
        for port in fed:
            passes.check_fed_shape(port.name, self._shapes[port.name], np.shape(tensors[port.name]))
        self._unfed.difference_update(tensors)
        self._unfetched.difference_update(fetch_names)
        return tensors, fetched

    def send(self, tensors: dict[str, Any]) -> None:
        """Sends tensors to the step; raises the error of the step if it has failed."""
        for name, tensor in tensors.items():
            self.step.rendezvous.send(self._keys[name], tensor)

    async def receive(self, port: Port) -> Array:
        """Waits for a fetched tensor; raises the error of the step, InvalidArgumentError for a dead tensor."""
        return received_array(port, await self.step.rendezvous.recv(self._keys[port.name]))

    def stop(self, error: PartitaError) -> None:
        """Ends the run; its step fails with `error` unless it is done or has failed before."""
        self.is_over = True
        self.step.fail(error)

    async def settle(self) -> None:
        """Waits until no actor works for the step any more, then drops the tensors that were not received."""
        try:
            await self.step.wait()
        finally:
            self.step.rendezvous.close()

    def _pending_port(self, name: str, ports: dict[str, Port], pending: set[str], noun: str, participle: str) -> Port:
        port = ports.get(name)
        if port is None:
            raise InvalidArgumentError(f"The {noun} {name} was not specified in partial_run_setup.")
        if name not in pending:
            raise InvalidArgumentError(f"The {noun} {name} has already been {participle}.")
        return port

    def _check_computable(self, fetches: list[str], missing: set[str]) -> None:
        """Raises InvalidArgumentError when a fetch depends on a feed that is still missing.

        As in TensorFlow, a missing feed counts even if it only leads to the fetch through a tensor that has been fed.
        """
        if not missing or not fetches:
            return
        graph = self._graph
        seeds = [node.id for name in fetches if (node := graph.find_node(parse_tensor_name(name).node)) is not None]
        reached = reachable_backwards(graph, seeds)
        edges = graph.edge_arrays()
        for name in sorted(missing):
            tensor = parse_tensor_name(name)
            node = graph.find_node(tensor.node)
            if node is None:
                continue
            consumers = edges.dst[(edges.src == node.id) & (edges.src_output == tensor.index)]
            if reached[consumers].any():
                raise InvalidArgumentError(f"Fetch {name} can't be computed from the feeds that have been fed so far.")


class PartialRuns:
    """The partial runs of one session, by handle."""

    def __init__(self, workers: SessionWorkers, steps: dict[StepUnderWay, frozenset[str]]) -> None:
        """`steps` are the running steps of the session, with their devices, which get those of partial runs too."""
        self._workers = workers
        self._steps = steps
        self._runs: dict[str, PartialRun] = {}
        self._num_begun = 0

    def __len__(self) -> int:
        """The number of runs that are not over."""
        return len(self._runs)

    def begin(self, prepared: Prepared, graph: Graph, step: SessionStep) -> str:
        """Starts the step on its workers and returns the handle of the run."""
        names = prepared.signature
        key = f"{','.join(names.feeds)}->{','.join(names.fetches)}/{','.join(sorted(names.targets))}"
        handle = f"{key}/1/;{self._num_begun}"
        self._num_begun += 1
        self._runs[handle] = PartialRun(handle, graph, prepared, step)
        self._steps[step] = prepared.devices
        prepared.running += 1
        step.start([], awaits_host=True)
        return handle

    async def run(self, handle: str, fetches: Names, feeds: Feeds | None, timeout_s: float) -> list[Array]:
        """One call: sends `feeds` and returns `fetches` in order. `Session.partial_run` lists the errors."""
        run = self._runs.get(handle)
        if run is None:
            raise InvalidArgumentError("Must run 'setup' before performing partial runs!")
        names = tensor_names(fetches)
        tensors, ports = run.claim(feeds, names, self._workers.tensors)
        run.num_calls += 1
        try:
            arrays = await self._exchange(run, tensors, ports, timeout_s)
        except BaseException as error:
            cancelled = CancelledError("the task that went on with the partial run was cancelled")
            run.stop(error if isinstance(error, PartitaError) else cancelled)
            with suppress(PartitaError):
                await self._end_call(run)
            raise
        await self._end_call(run)
        return [arrays[full_name(name)] for name in names]

    def clear(self, error: PartitaError) -> None:
        """Ends all runs with `error`, after the session has stopped their steps.

        The abort is for steps that were done before: tensors that were not fetched are still at their rendezvous.
        """
        for run in self._runs.values():
            run.step.rendezvous.abort(error)
        self._runs.clear()

    async def _exchange(
        self, run: PartialRun, tensors: dict[str, Any], ports: list[Port], timeout_s: float
    ) -> dict[str, Array]:
        with trio.move_on_after(timeout_s):
            values = await copied(list(tensors.values()))
            with np.errstate(all="ignore"):
                run.send(dict(zip(tensors, values, strict=True)))
                self._workers.serve()
            return {port.name: await run.receive(port) for port in ports}
        raise deadline_exceeded("Timed out waiting for notification", run.step.waiting())

    async def _end_call(self, run: PartialRun) -> None:
        """Ends a call; the last call of a finished run waits until its step has ended, and raises its error."""
        run.num_calls -= 1
        run.is_over |= not run.has_pending
        if not run.is_over:
            return
        if self._runs.pop(run.handle, None) is not None:
            run.prepared.running -= 1
        if not run.num_calls:
            try:
                await run.settle()
            finally:
                self._steps.pop(run.step, None)
                run.step.rendezvous.forget_error()
