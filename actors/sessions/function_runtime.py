"""Functions that are called from outside of any graph: instantiated once, under a handle, and then run with values.

    async with open_function_runtime(library, "cpu:2") as runtime:
        handle = runtime.instantiate("scale", {"T": "float32"}, InstantiateOptions(target="/device:CPU:1"))
        (scaled,) = await runtime.run(handle, x)
        runtime.release(handle)

    instantiate --> the body placed on the target, compiled, with workers of its own --> handle
    instantiate, equal function, attrs and options --> the same handle, counted
    release, as often as instantiated --> later runs raise NotFoundError

All functions of a runtime share variables and other resources. Each instantiation has random generators of its own,
which begin anew, so another `state_handle` gives the sequence of a function from its start.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import trio

from ...devices.given_cluster import as_cluster
from ...devices.pipeline import Pipeline
from ...devices.pipeline.bodies import BodyDevices, body_of, ends_by_sources, placed_between
from ...devices.state import DeviceState
from ...errors import InvalidArgumentError, NotFoundError
from ...graph import ConfigProto, FunctionDefLibrary, NameAttrList, RunMetadata, RunOptions
from ...graph.attrs import encode
from ...graph.functions.call_frame import check_count
from ...graph.functions.canonical import canonical_name
from ...graph.graph import Graph
from ...graph.library.function_library import FunctionLibrary
from .lifetime import Block, OwnerThread, session_closed
from .preparation import Prepared, prepare_body
from .requests import RequestNames, copied, fed_values
from .steps import Steps
from .workers import Workers, WorkerSettings

if TYPE_CHECKING:
    from pathlib import Path

    from ...devices.cluster import Cluster
    from ...graph import AttrValue
    from ...graph.dtypes import Array
    from ...graph.functions.body import FunctionBody

_GRADIENT = "SymbolicGradient"


@dataclass(frozen=True, slots=True)
class InstantiateOptions:
    """How a function is instantiated; two instantiations with equal options share a handle.

    `target` is the device that the function is called from, by default the first; all nodes of the body are there, or
    with `is_multi_device` where the placer puts them. `library` has the function and all that it needs, in place of the
    library of the runtime; only the same object is equal. `state_handle` names the state of the random generators.

    Functions of several devices have `input_devices`, one for each argument, all of them the target by default, and
    `output_devices`, one for each result. "" leaves a device to the placer; without output devices a result is where
    the function requests the node to be that makes it.
    """

    target: str = ""
    library: FunctionDefLibrary | None = None
    state_handle: str = ""
    is_multi_device: bool = False
    input_devices: tuple[str, ...] | None = None
    output_devices: tuple[str, ...] = ()

    def entries(self) -> list[str]:
        """The entries of the options in a canonical name, but for the target."""
        entries = [] if self.input_devices is None else [f"_num_input_devs={len(self.input_devices)}"]
        entries += [f"_input_dev{i}={device}" for i, device in enumerate(self.input_devices or ())]
        entries += [f"_output_dev{i}={device}" for i, device in enumerate(self.output_devices)]
        if self.state_handle:
            entries.append(f"_state_handle={self.state_handle}")
        if self.is_multi_device:
            entries.append("_is_multi_device")
        return entries


_DEFAULTS = InstantiateOptions()


@dataclass(slots=True)
class _Instance:
    """One instantiated function: its plans, the workers that run it, and how often it is instantiated and running."""

    key: tuple[str, int]
    library: FunctionDefLibrary | None
    prepared: Prepared
    workers: Workers
    steps: Steps
    count: int = 1
    running: int = 0


class FunctionRuntime:
    """The functions of one library on one cluster; `open_function_runtime` makes it."""

    def __init__(self, library: FunctionDefLibrary, cluster: Cluster, seed: int | None) -> None:
        self.cluster = cluster
        self._graph = _graph(library)
        self._states = {name: DeviceState(seed) for name in cluster.names}
        self._thread = OwnerThread()
        self._handles: dict[tuple[str, int], int] = {}
        self._instances: dict[int, _Instance] = {}
        self._next_handle = count()
        self._next_step = count(1)
        self._nursery: trio.Nursery | None = None

    def start(self, nursery: trio.Nursery) -> None:
        """Makes actors of instances run in `nursery`."""
        self._nursery = nursery

    @trio.lowlevel.enable_ki_protection
    def instantiate(
        self, name: str, attrs: Mapping[str, Any] | None = None, options: InstantiateOptions = _DEFAULTS
    ) -> int:
        """The handle of a function for calls with `attrs`; "SymbolicGradient" is the gradient of its attr `f`.

        Raises NotFoundError for an unknown function and a missing attr, InvalidArgumentError for an unknown target, and
        what placing and compiling raise.
        """
        self._check_open()
        graph = self._graph if options.library is None else _graph(options.library)
        function = _function(graph.functions, name, attrs or {})
        target = self.cluster.find(options.target or self.cluster.client.name).name
        options = self._with_full_names(options)
        text = canonical_name(name, function.attr, [*options.entries(), f"_target={target}"])
        key = text, 0 if options.library is None else id(options.library)
        handle = self._handles.get(key)
        if handle is None:
            instance = self._instance(key, graph, function, target, options)
            handle = self._handles[key] = next(self._next_handle)
            self._instances[handle] = instance
        else:
            self._instances[handle].count += 1
        return handle

    def _instance(
        self,
        key: tuple[str, int],
        graph: Graph,
        function: NameAttrList,
        target: str,
        options: InstantiateOptions,
    ) -> _Instance:
        body = _body(graph.functions, function)
        ends = _ends(self.cluster, body, target, options) if options.is_multi_device else None
        pruned = placed_between(Pipeline(self.cluster), body, target, ends)
        workers = self._workers(graph)
        try:
            prepared = prepare_body(pruned, _names(body), workers)
        except BaseException:
            workers.shut_down(session_closed())
            raise
        steps = Steps(workers, ConfigProto(), lambda _devices: self._check_open)
        return _Instance(key, options.library, prepared, workers, steps)

    def _with_full_names(self, options: InstantiateOptions) -> InstantiateOptions:
        """The options with full names of devices; InvalidArgumentError for unknown ones, and for such without use."""
        inputs, outputs = options.input_devices, options.output_devices
        if (inputs or outputs) and not options.is_multi_device:
            raise InvalidArgumentError(
                "input_devices and output_devices are for functions of several devices; set is_multi_device, too"
            )
        full = [
            None if names is None else tuple([name and self.cluster.find(name).name for name in names])
            for names in (inputs, outputs)
        ]
        return replace(options, input_devices=full[0], output_devices=full[1] or ())

    def _workers(self, functions: Graph) -> Workers:
        """Workers that share the resources of the runtime and call its functions."""
        workers = Workers(self.cluster, WorkerSettings(), is_distributed=False)
        for name, actor in workers.actors.items():
            actor.binder.state = self._states[name].sibling()
        workers.bind_functions(functions, soft=False)
        assert self._nursery is not None  # from `start`
        workers.start(self._nursery)
        return workers

    @trio.lowlevel.enable_ki_protection
    async def run(
        self, handle: int, *arguments: Any, options: RunOptions | None = None, metadata: RunMetadata | None = None
    ) -> list[Array]:
        """Calls a function and returns its results as read-only arrays. Arguments are converted as feeds are.

        Raises NotFoundError for a handle that is unknown or released, InvalidArgumentError for arguments of another
        number or type and for a dead result, and the error of the first node that failed.
        """
        self._check_open()
        instance = self._find(handle)
        prepared = instance.prepared
        check_count(len(arguments), len(prepared.feeds))
        await trio.lowlevel.checkpoint_if_cancelled()
        instance.running += 1
        try:
            fed = fed_values(prepared.feeds, arguments, instance.workers.tensors)
            fed = await copied(fed) if prepared.keeps_feeds else fed
            self._check_open()  # again: another task may have closed the runtime
            return await instance.steps.run(prepared, fed, next(self._next_step), options, metadata)
        finally:
            instance.running -= 1
            self._end_if_unused(instance)

    @trio.lowlevel.enable_ki_protection
    def release(self, handle: int) -> None:
        """Takes one instantiation back; after the last one runs are refused, and those under way go on.

        Raises NotFoundError for a handle that is unknown or released.
        """
        self._check_open()
        instance = self._find(handle)
        instance.count -= 1
        if not instance.count:
            del self._handles[instance.key], self._instances[handle]
            self._end_if_unused(instance)

    def _find(self, handle: int) -> _Instance:
        instance = self._instances.get(handle)
        if instance is None:
            raise NotFoundError(f"Handle: {handle} not found.")
        return instance

    def _end_if_unused(self, instance: _Instance) -> None:
        if not (instance.count or instance.running):
            instance.workers.shut_down(session_closed())

    @trio.lowlevel.enable_ki_protection
    def close(self) -> None:
        """Ends the runtime: running calls fail with CancelledError, and so does every later one."""
        self._nursery = None
        for instance in self._instances.values():
            instance.steps.fail(session_closed())
            instance.workers.shut_down(session_closed())
        self._instances.clear()

    def _check_open(self) -> None:
        self._thread.check()
        if self._nursery is None:
            raise session_closed()


def _graph(library: FunctionDefLibrary) -> Graph:
    """A graph without nodes whose functions are those of `library`, which may be TensorFlow's message, as it is now."""
    return Graph(FunctionDefLibrary.FromString(library.SerializeToString()))


def _function(library: FunctionLibrary, name: str, attrs: Mapping[str, Any]) -> NameAttrList:
    """The function with the messages of its attrs; NotFoundError if the library does not have it."""
    signature = library.signature(name)
    if signature is None and name != _GRADIENT:
        raise NotFoundError(f"Function {name} is not defined.")
    declared = {} if signature is None else {key: attr.type for key, attr in signature.attrs.items()}
    function = NameAttrList(name=name)
    for key, value in attrs.items():
        message: AttrValue = encode(value, declared.get(key, "func" if signature is None else "string"))
        function.attr[key].CopyFrom(message)
    return function


def _body(library: FunctionLibrary, function: NameAttrList) -> FunctionBody:
    """The body of a function or of a gradient; raises as `body_of`."""
    if function.name != _GRADIENT or function.name in library:
        return body_of(library, function, gradient=False)
    if "f" not in function.attr:
        raise InvalidArgumentError("SymbolicGradient is missing attr: f")
    if function.attr["f"].func.name == _GRADIENT:
        raise InvalidArgumentError("Can't take gradient of SymbolicGradient")
    return body_of(library, function.attr["f"].func, gradient=True)


def _ends(cluster: Cluster, body: FunctionBody, target: str, options: InstantiateOptions) -> BodyDevices:
    """The devices of arguments and results; InvalidArgumentError for another number of them, in TensorFlow's words."""
    inputs = (target,) * len(body.arguments) if options.input_devices is None else options.input_devices
    if len(inputs) != len(body.arguments):
        raise InvalidArgumentError(
            "InstantiateOptions.input_devices must have the same length as the number of arguments: "
            f"input_devices length = {len(inputs)} number of arguments = {len(body.arguments)}"
        )
    if not options.output_devices:
        return ends_by_sources(cluster, body, inputs)
    outputs = options.output_devices
    if len(outputs) != len(body.results):
        raise InvalidArgumentError(
            "InstantiateOptions.output_devices must either be empty or have the same length as the number of "
            f"arguments: output_devices length = {len(outputs)} number of arguments = {len(body.results)}"
        )
    return BodyDevices(inputs, outputs)


def _names(body: FunctionBody) -> RequestNames:
    arguments, results = ([node.name for node in nodes] for nodes in (body.arguments, body.results))
    return RequestNames(tuple(arguments), tuple(results), ())


def open_function_runtime(
    library: FunctionDefLibrary, devices: str | Path | Cluster = "cpu:1", *, seed: int | None = None
) -> AbstractAsyncContextManager[FunctionRuntime]:
    """A runtime of the functions of `library` on `devices`, for the length of an `async with` block.

    `devices` and `seed` are as in `open_session`.
    """

    async def make() -> FunctionRuntime:
        return FunctionRuntime(library, as_cluster(devices), seed)

    return Block(make)
