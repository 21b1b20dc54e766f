"""What `open_session` and its like open, in asyncio programs: trio runs as a guest of the loop.

    async with open_asyncio_session(graph, "gpu:2") as session:
        (loss,) = await session.run("loss")

Parameters, defaults and errors are those of the functions and methods in trio; what waits for nothing there is awaited
too, because it changes what tasks of trio use. Properties are plain.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

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
    from ....graph import GraphDef
    from ....graph.dtypes import Array
    from ....graph.formats.saved_model import SavedGraph

_Opened = TypeVar("_Opened", covariant=True)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

# Any, of arguments and keywords: what they are is said by the decorator above the method.


class _Bridge(Generic[_Opened]):
    """What was opened in trio, and the guest in which its methods are called."""

    def __init__(self, opened: _Opened, guest: Guest) -> None:
        self._opened = opened
        self._guest = guest


def _awaited(
    method: Callable[Concatenate[_Opened, _Parameters], Awaitable[_Result]],
) -> Callable[Concatenate[_Bridge[_Opened], _Parameters], Coroutine[Any, Any, _Result]]:
    """A method of what was opened, awaited in asyncio; it has the parameters and the docstring of that in trio."""

    @wraps(method)
    async def call(self: _Bridge[_Opened], /, *arguments: _Parameters.args, **keywords: _Parameters.kwargs) -> _Result:
        return await self._guest.call(method, self._opened, *arguments, **keywords)

    return call


def _awaited_sync(
    method: Callable[Concatenate[_Opened, _Parameters], _Result],
) -> Callable[Concatenate[_Bridge[_Opened], _Parameters], Coroutine[Any, Any, _Result]]:
    """As `_awaited`, for a method that waits for nothing in trio."""

    @wraps(method)
    async def call(self: _Bridge[_Opened], /, *arguments: _Parameters.args, **keywords: _Parameters.kwargs) -> _Result:
        return await self._guest.call_sync(method, self._opened, *arguments, **keywords)

    return call


def _callable_from(
    method: Callable[Concatenate[Session, _Parameters], Awaitable[SessionCallable]],
) -> Callable[Concatenate[_Bridge[Session], _Parameters], Coroutine[Any, Any, AsyncioCallable]]:
    """As `_awaited`, for a method that makes a callable, which is awaited in asyncio too."""

    @wraps(method)
    async def call(
        self: _Bridge[Session], /, *arguments: _Parameters.args, **keywords: _Parameters.kwargs
    ) -> AsyncioCallable:
        made = await self._guest.call(method, self._opened, *arguments, **keywords)
        return AsyncioCallable(made, self._guest)

    return call


class AsyncioSession(_Bridge[Session]):
    """A `Session` whose methods are awaited in asyncio; `open_asyncio_session` opens it."""

    run = _awaited(Session.run)

    make_callable = _callable_from(Session.make_callable)
    make_callable_from_options = _callable_from(Session.make_callable_from_options)
    partial_run_setup = _awaited(Session.partial_run_setup)
    partial_run = _awaited(Session.partial_run)
    extend = _awaited(Session.extend)
    timeline = _awaited(Session.timeline_in_thread)
    graph_def_in_thread = _awaited(Session.graph_def_in_thread)
    whole_timeline = _awaited_sync(Session.whole_timeline)
    reset = _awaited_sync(Session.reset)
    restart_device = _awaited_sync(Session.restart_device)
    statistics = _awaited_sync(Session.statistics)
    close = _awaited_sync(Session.close)

    @property
    def now_ns(self) -> int:
        """The present simulated time; see `Session.now_ns`."""
        return self._opened.now_ns

    @property
    def graph_def(self) -> GraphDef:
        """The current graph; see `Session.graph_def`."""
        return self._opened.graph_def

    @property
    def devices(self) -> list[str]:
        """The names of the devices, the client's first."""
        return self._opened.devices


class AsyncioCallable(_Bridge[SessionCallable]):
    """A `SessionCallable` that is awaited in asyncio; `AsyncioSession.make_callable` makes it."""

    @property
    def handle(self) -> int:
        """The number of the callable in its session."""
        return self._opened.handle

    @parameters_of_method(SessionCallable.__call__)
    async def __call__(self, *values: Any, **keywords: Any) -> list[Array]:
        """Runs one step on values in the order of the feeds; see `SessionCallable.__call__`."""
        return await self._guest.call(self._opened, *values, **keywords)

    def release(self) -> None:
        """Refuses later calls; see `SessionCallable.release`."""
        self._opened.release()


class AsyncioSavedModel(_Bridge[SavedModelSession]):
    """A `SavedModelSession` whose signatures are awaited in asyncio; `open_asyncio_saved_model` opens it."""

    def __init__(self, model: SavedModelSession, guest: Guest) -> None:
        super().__init__(model, guest)
        self.session = AsyncioSession(model.session, guest)

    @property
    def saved(self) -> SavedGraph:
        """The graph of the model, and its signatures."""
        return self._opened.saved

    run = _awaited(SavedModelSession.run)


class AsyncioFunctionRuntime(_Bridge[FunctionRuntime]):
    """A `FunctionRuntime` whose methods are awaited in asyncio; `open_asyncio_function_runtime` opens it."""

    @property
    def cluster(self) -> Cluster:
        """The devices that functions run on."""
        return self._opened.cluster

    instantiate = _awaited_sync(FunctionRuntime.instantiate)
    run = _awaited(FunctionRuntime.run)
    release = _awaited_sync(FunctionRuntime.release)
    close = _awaited_sync(FunctionRuntime.close)


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
