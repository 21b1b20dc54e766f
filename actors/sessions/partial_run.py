"""Partial runs: one step that is fed and fetched from in several calls.

Flows in: a prepared request in the Send/Recv convention, then, call by call, some of its feeds and fetches. Flows out:
arrays. Always holds:

    setup -> BEGUN --call: a check fails--> BEGUN          nothing was sent; the same call may be made again, corrected
               |----call: some feeds sent, some fetches received--> BEGUN
               |----call: nothing is pending any more--> OVER   when every part of the step is done
               `----error, cancelled or late call, end of the session--> OVER   when no thread works for it any more

The actors begin with the step at once and go as far as they can without feeds; the client is one more party at the
step's rendezvous. No task of a caller drives the step, so a run that nobody asks for again costs no task, and the
session ends it. A handle that is over is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from ...errors import CancelledError, InvalidArgumentError, PartitaError
from ...graph.builder.tensor_names import Names, tensor_names
from ...graph.passes.client_graph import reachable_backwards
from ...graph.passes.static_shapes import check_fed_shape, static_shapes
from ...graph.tensor_id import parse_tensor_name
from ..running.ports import Feeds, Port, split_feeds
from .lateness import late
from .preparation import arrived
from .requests import Signature, by_rendezvous, fed_values, full_name
from .worker_steps import WorkerSteps, start_step

if TYPE_CHECKING:
    from ...devices.state import SessionTensors
    from ...graph.dtypes import Array
    from ...graph.graph import Graph
    from ..running.device_actor import ActorGroup
    from ..running.part import Part
    from ..running.step import Step
    from .preparation import Prepared


def partial_signature(feeds: Names, fetches: Names, targets: Names) -> Signature:
    """What a partial run asks for: full names, sorted, each fetch once. A feed named twice stays, to be refused."""
    return by_rendezvous(Signature(tensor_names(feeds), tensor_names(fetches), tensor_names(targets), is_partial=True))


class PartialRun:
    """One run: its step, and which feeds and fetches are still to come."""

    def __init__(self, handle: str, graph: Graph, prepared: Prepared, step: Step | WorkerSteps) -> None:
        """`graph` is the session's, uncut."""
        self.handle = handle
        self.step = step
        self.parts: Sequence[Part] = ()  # kept here, as the step does not keep them
        self.calls = 0
        self.is_over = False
        self._graph = graph
        self._feeds = {port.name: port for port in prepared.feeds}
        self._shapes = static_shapes(graph, list(self._feeds))
        self._fetches = {port.name: port for port in prepared.fetches}
        self._keys = dict(zip(self._feeds, prepared.feed_keys, strict=True))
        self._keys.update(zip(self._fetches, prepared.fetch_keys, strict=True))
        self._unfed = set(self._feeds)
        self._unfetched = set(self._fetches)

    @property
    def has_pending(self) -> bool:
        """Whether anything is still to be fed or fetched."""
        return bool(self._unfed or self._unfetched)

    def claim(
        self, feeds: Feeds | None, fetches: Sequence[str], session_tensors: SessionTensors
    ) -> tuple[dict[str, Any], list[Port]]:
        """Checks a call and takes what it names off the lists; the tensors to send, by name, and what to receive.

        Raises InvalidArgumentError, with nothing changed, for names that were not announced or have been used, for
        fetches that need other feeds, and for values of another type or shape.
        """
        names, values = split_feeds(feeds)
        fed = [self._pending_port(full_name(name), self._feeds, self._unfed, "feed", "fed") for name in names]
        wanted = dict.fromkeys(map(full_name, fetches))
        fetched = [self._pending_port(name, self._fetches, self._unfetched, "fetch", "fetched") for name in wanted]
        self._check_computable([port.name for port in fetched], self._unfed.difference(port.name for port in fed))
        tensors = dict(zip([p.name for p in fed], fed_values(fed, values, session_tensors, copy=True), strict=True))
        for port in fed:
            check_fed_shape(port.name, self._shapes[port.name], np.shape(tensors[port.name]))
        self._unfed.difference_update(tensors)
        self._unfetched.difference_update(wanted)
        return tensors, fetched

    def send(self, tensors: dict[str, Any]) -> None:
        """Hands fed tensors to the step; raises its error when it has failed."""
        for name, tensor in tensors.items():
            self.step.rendezvous.send(self._keys[name], tensor)

    async def receive(self, port: Port) -> Array:
        """Waits for a fetched tensor; raises the error of the step, InvalidArgumentError when the tensor is dead."""
        return arrived(port, await self.step.rendezvous.recv(self._keys[port.name]))

    def stop(self, error: PartitaError) -> None:
        """Ends the run; its step fails with `error` unless it is done or has failed."""
        self.is_over = True
        self.step.fail(error)

    async def settle(self) -> None:
        """Waits until nobody works for the run any more, and drops what nobody has received."""
        try:
            await self.step.wait()
        finally:
            self.step.rendezvous.close()

    def _pending_port(self, name: str, announced: dict[str, Port], pending: set[str], what: str, done: str) -> Port:
        port = announced.get(name)
        if port is None:
            raise InvalidArgumentError(f"The {what} {name} was not specified in partial_run_setup.")
        if name not in pending:
            raise InvalidArgumentError(f"The {what} {name} has already been {done}.")
        return port

    def _check_computable(self, fetches: list[str], missing: set[str]) -> None:
        """Raises InvalidArgumentError when a fetch leads back to a tensor that is still to be fed.

        As in TensorFlow the walk goes on behind tensors that have been fed.
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

    def __init__(
        self, actor_group: ActorGroup, steps: set[Step | WorkerSteps], session_tensors: SessionTensors
    ) -> None:
        """`steps` are those of the session that are under way, kept up to date."""
        self._session_tensors = session_tensors
        self._actor_group = actor_group
        self._steps = steps
        self._runs: dict[str, PartialRun] = {}
        self._num_begun = 0

    def __len__(self) -> int:
        """How many are not over."""
        return len(self._runs)

    def begin(self, prepared: Prepared, graph: Graph, step: Step | WorkerSteps) -> str:
        """Starts the step on its actors and returns the handle of the run."""
        feeds, fetches, targets, _ = prepared.signature
        handle = f"{','.join(feeds)}->{','.join(fetches)}/{','.join(sorted(targets))}/1/;{self._num_begun}"
        self._num_begun += 1
        run = self._runs[handle] = PartialRun(handle, graph, prepared, step)
        self._steps.add(step)
        with np.errstate(all="ignore"):
            run.parts = start_step(step, prepared.work(), [])
            self._actor_group.serve_mailboxes()
        return handle

    async def run(self, handle: str, fetches: Names, feeds: Feeds | None, timeout_s: float) -> list[Array]:
        """One call: sends `feeds`, receives `fetches`, in order. See `Session.partial_run` for the errors."""
        run = self._runs.get(handle)
        if run is None:
            raise InvalidArgumentError("Must run 'setup' before performing partial runs!")
        names = tensor_names(fetches)
        tensors, ports = run.claim(feeds, names, self._session_tensors)
        run.calls += 1
        try:
            arrays = await self._exchange(run, tensors, ports, timeout_s)
        except BaseException as error:
            cancelled = CancelledError("the task that went on with the partial run was cancelled")
            run.stop(error if isinstance(error, PartitaError) else cancelled)
            with suppress(PartitaError):
                await self._leave(run)
            raise
        await self._leave(run)
        return [arrays[full_name(name)] for name in names]

    def clear(self, error: PartitaError) -> None:
        """Ends all runs with `error`; the session has stopped the steps that were not done.

        A step that is done cannot fail any more, but what nobody has fetched yet is still at its rendezvous.
        """
        for run in self._runs.values():
            run.step.rendezvous.abort(error)
        self._runs.clear()

    async def _exchange(
        self, run: PartialRun, tensors: dict[str, Any], ports: list[Port], timeout_s: float
    ) -> dict[str, Array]:
        with trio.move_on_after(timeout_s):
            with np.errstate(all="ignore"):
                run.send(tensors)
                self._actor_group.serve_mailboxes()
            return {port.name: await run.receive(port) for port in ports}
        raise late("Timed out waiting for notification", run.step.rendezvous.waiting())

    async def _leave(self, run: PartialRun) -> None:
        """A call is over. The last one of a run that is over waits until nobody works for it; raises its error."""
        run.calls -= 1
        run.is_over |= not run.has_pending
        if not run.is_over:
            return
        self._runs.pop(run.handle, None)
        if not run.calls:
            try:
                await run.settle()
            finally:
                self._steps.discard(run.step)
