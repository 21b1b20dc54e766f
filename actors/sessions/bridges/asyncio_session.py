"""What `open_session` and its like open, in asyncio programs: trio runs as a guest of the loop.

    async with open_asyncio_session(graph, "gpu:2") as session:
        (loss,) = await session.run("loss")

Parameters, defaults and errors are those of the functions and methods in trio; what waits for nothing there is awaited
too, because it changes what tasks of trio use. Properties are plain.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from ..cluster_session import open_cluster_session
from ..function_runtime import FunctionRuntime, open_function_runtime
from ..local_session import open_session
from ..saved_model import SavedModelSession, open_saved_model
from ..session import Session
from ..session_callable import SessionCallable
from .guest import Guest, guest_of_loop
from .parameters import parameters_of, parameters_of_method

if TYPE_CHECKING:
    from ....devices.cluster import Cluster
    from ....devices.timing import Timeline
    from ....devices.timing.session_timeline import SessionTimeline
    from ....graph import GraphDef
    from ....graph.dtypes import Array
    from ....graph.formats.saved_model import SavedGraph
    from ..session_statistics import SessionStatistics

# Any, of arguments and keywords: what they are is said by the decorator above the method.


class AsyncioSession:
    """A `Session` whose methods are awaited in asyncio; `open_asyncio_session` opens it."""

    def __init__(self, session: Session, guest: Guest) -> None:
        self._session = session
        self._guest = guest

    @parameters_of_method(Session.run)
    async def run(self, *arguments: Any, **keywords: Any) -> list[Array]:
        """Runs one step; see `Session.run`."""
        return await self._guest.call(self._session.run, *arguments, **keywords)

    @parameters_of_method(Session.make_callable)
    async def make_callable(self, *arguments: Any, **keywords: Any) -> AsyncioCallable:
        """Prepares a request to be called, and awaited, with values; see `Session.make_callable`."""
        made = await self._guest.call(self._session.make_callable, *arguments, **keywords)
        return AsyncioCallable(made, self._guest)

    @parameters_of_method(Session.make_callable_from_options)
    async def make_callable_from_options(self, *arguments: Any, **keywords: Any) -> AsyncioCallable:
        """Prepares a request as TensorFlow's message says; see `Session.make_callable_from_options`."""
        made = await self._guest.call(self._session.make_callable_from_options, *arguments, **keywords)
        return AsyncioCallable(made, self._guest)

    @parameters_of_method(Session.partial_run_setup)
    async def partial_run_setup(self, *arguments: Any, **keywords: Any) -> str:
        """Starts a step that is fed and fetched in several calls; see `Session.partial_run_setup`."""
        return await self._guest.call(self._session.partial_run_setup, *arguments, **keywords)

    @parameters_of_method(Session.partial_run)
    async def partial_run(self, *arguments: Any, **keywords: Any) -> list[Array]:
        """Continues such a step; see `Session.partial_run`."""
        return await self._guest.call(self._session.partial_run, *arguments, **keywords)

    @parameters_of_method(Session.extend)
    async def extend(self, *arguments: Any, **keywords: Any) -> int:
        """Adds nodes to the graph and returns its version; see `Session.extend`."""
        return await self._guest.call(self._session.extend, *arguments, **keywords)

    async def timeline(self) -> Timeline:
        """The last finished step of a session on a virtual clock; see `Session.timeline`."""
        return await self._guest.call_sync(self._session.timeline)

    async def whole_timeline(self) -> SessionTimeline:
        """All steps of a session on a virtual clock until now; see `Session.whole_timeline`."""
        return await self._guest.call_sync(self._session.whole_timeline)

    @parameters_of_method(Session.reset)
    async def reset(self, *arguments: Any, **keywords: Any) -> None:
        """Clears containers and closes the session; see `Session.reset`."""
        await self._guest.call_sync(self._session.reset, *arguments, **keywords)

    @parameters_of_method(Session.restart_device)
    async def restart_device(self, *arguments: Any, **keywords: Any) -> None:
        """Restarts a device, which loses its state; see `Session.restart_device`."""
        await self._guest.call_sync(self._session.restart_device, *arguments, **keywords)

    async def statistics(self) -> SessionStatistics:
        """Counts of steps and prepared requests; see `Session.statistics`."""
        return await self._guest.call_sync(self._session.statistics)

    async def close(self) -> None:
        """Ends the session before its block ends; see `Session.close`."""
        await self._guest.call_sync(self._session.close)

    @property
    def now_ns(self) -> int:
        """The present simulated time; see `Session.now_ns`."""
        return self._session.now_ns

    @property
    def graph_def(self) -> GraphDef:
        """The current graph; see `Session.graph_def`."""
        return self._session.graph_def

    @property
    def devices(self) -> list[str]:
        """The names of the devices, the client's first."""
        return self._session.devices


class AsyncioCallable:
    """A `SessionCallable` that is awaited in asyncio; `AsyncioSession.make_callable` makes it."""

    def __init__(self, session_callable: SessionCallable, guest: Guest) -> None:
        self._session_callable = session_callable
        self._guest = guest

    @property
    def handle(self) -> int:
        """The number of the callable in its session."""
        return self._session_callable.handle

    @parameters_of_method(SessionCallable.__call__)
    async def __call__(self, *values: Any, **keywords: Any) -> list[Array]:
        """Runs one step on values in the order of the feeds; see `SessionCallable.__call__`."""
        return await self._guest.call(self._session_callable, *values, **keywords)

    def release(self) -> None:
        """Refuses later calls; see `SessionCallable.release`."""
        self._session_callable.release()


class AsyncioSavedModel:
    """A `SavedModelSession` whose signatures are awaited in asyncio; `open_asyncio_saved_model` opens it."""

    def __init__(self, model: SavedModelSession, guest: Guest) -> None:
        self.session = AsyncioSession(model.session, guest)
        self._model = model
        self._guest = guest

    @property
    def saved(self) -> SavedGraph:
        """The graph of the model, and its signatures."""
        return self._model.saved

    @parameters_of_method(SavedModelSession.run)
    async def run(self, *arguments: Any, **keywords: Any) -> dict[str, Array]:
        """Runs a signature; see `SavedModelSession.run`."""
        return await self._guest.call(self._model.run, *arguments, **keywords)


class AsyncioFunctionRuntime:
    """A `FunctionRuntime` whose methods are awaited in asyncio; `open_asyncio_function_runtime` opens it."""

    def __init__(self, runtime: FunctionRuntime, guest: Guest) -> None:
        self._runtime = runtime
        self._guest = guest

    @property
    def cluster(self) -> Cluster:
        """The devices that functions run on."""
        return self._runtime.cluster

    @parameters_of_method(FunctionRuntime.instantiate)
    async def instantiate(self, *arguments: Any, **keywords: Any) -> int:
        """The handle of a function; see `FunctionRuntime.instantiate`."""
        return await self._guest.call_sync(self._runtime.instantiate, *arguments, **keywords)

    @parameters_of_method(FunctionRuntime.run)
    async def run(self, *arguments: Any, **keywords: Any) -> list[Array]:
        """Calls a function; see `FunctionRuntime.run`."""
        return await self._guest.call(self._runtime.run, *arguments, **keywords)

    @parameters_of_method(FunctionRuntime.release)
    async def release(self, *arguments: Any, **keywords: Any) -> None:
        """Takes one instantiation back; see `FunctionRuntime.release`."""
        await self._guest.call_sync(self._runtime.release, *arguments, **keywords)

    async def close(self) -> None:
        """Ends the runtime before its block ends; see `FunctionRuntime.close`."""
        await self._guest.call_sync(self._runtime.close)


@parameters_of(open_session)
def open_asyncio_session(*arguments: Any, **settings: Any) -> AbstractAsyncContextManager[AsyncioSession]:
    """A session for the length of an `async with` block of an asyncio program; see `open_session`.

    A call whose asyncio task is cancelled is cancelled like a step in a cancel scope. Errors come out as they are.
    Raises as `open_session`, and FailedPreconditionError where trio runs in the thread already.
    """
    return guest_of_loop(open_session(*arguments, **settings), AsyncioSession)


@parameters_of(open_cluster_session)
def open_asyncio_cluster_session(*arguments: Any, **settings: Any) -> AbstractAsyncContextManager[AsyncioSession]:
    """A session over several simulated tasks in an asyncio program; see `open_cluster_session`."""
    return guest_of_loop(open_cluster_session(*arguments, **settings), AsyncioSession)


@parameters_of(open_saved_model)
def open_asyncio_saved_model(*arguments: Any, **settings: Any) -> AbstractAsyncContextManager[AsyncioSavedModel]:
    """A SavedModel that is ready to run in an asyncio program; see `open_saved_model`."""
    return guest_of_loop(open_saved_model(*arguments, **settings), AsyncioSavedModel)


@parameters_of(open_function_runtime)
def open_asyncio_function_runtime(
    *arguments: Any, **settings: Any
) -> AbstractAsyncContextManager[AsyncioFunctionRuntime]:
    """A runtime of the functions of a library in an asyncio program; see `open_function_runtime`."""
    return guest_of_loop(open_function_runtime(*arguments, **settings), AsyncioFunctionRuntime)
