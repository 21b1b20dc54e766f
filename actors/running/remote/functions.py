"""The functions of a graph whose devices are in several processes, as one of these processes has them.

    devices of W1 CPU:0 CPU:1, of W2 CPU:2      f has nodes on CPU:0 and CPU:2
    callee(f) in W1                             plan of CPU:0, and what it has to ask of W2
    callee(f) in W2                             plan of CPU:2

Every process compiles all parts of a body, with kernels whose state nobody uses for the devices of others, and keeps
the plans of its own. So all decide alike (what is short, what travels together, which names and keys there are), and
whatever cannot be compiled fails with the error of one process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ....devices.state import DeviceState
from ....errors import UnimplementedError
from ...plans.binding import Binder
from ...plans.compiler import BoundGraph, compile_plans
from ..functions import Compilation, Functions
from .callee import RemoteCallee, RemoteTracedCallee, Share
from .shares import begin_share

if TYPE_CHECKING:
    from ....devices.cluster import Cluster
    from ....graph.library.function_library import FunctionLibrary
    from ...plans.plan import Plan
    from ..callee import Callee
    from ..device_actor import DeviceActor
    from ..interpretation import Interpretation
    from .messages import CallBegin
    from .step import RemoteStep


class Hosting(NamedTuple):
    """The process of each device of the cluster, and the name of this process."""

    own: str
    process_of: Mapping[str, str]


class RemoteFunctions(Functions):
    """The functions of one graph, which all processes know by the same `number`; a `step.ShareStarter`.

    `cluster` has the devices of all processes, with their incarnations; `actors` are those of this one.
    """

    def __init__(
        self,
        library: FunctionLibrary,
        cluster: Cluster,
        actors: Mapping[str, DeviceActor],
        *,
        soft: bool,
        every_node: bool = False,
        number: int,
        hosting: Hosting,
    ) -> None:
        """As `Functions`."""
        super().__init__(library, cluster, actors, soft=soft, every_node=every_node)
        self.number = number
        self._hosting = hosting
        elsewhere = {name: Binder(name, DeviceState(0)).calling(self) for name in cluster.names if name not in actors}
        own = self._binders
        self._binders = {name: own.get(name) or elsewhere[name] for name in cluster.names}

    def _again(self, *, every_node: bool = False) -> RemoteFunctions:
        return RemoteFunctions(
            self.library,
            self._cluster,
            self._actors,
            soft=self._soft,
            every_node=every_node,
            number=self.number,
            hosting=self._hosting,
        )

    def begin(self, step: RemoteStep, process: str, begin: CallBegin) -> None:
        """Starts the parts of a call that are in this process, for a caller in another one."""
        functions = self if begin.scope is None else self.traced
        begin_share(step, process, begin, functions.callee, next(iter(self._actors.values())))

    def _plans(self, bound: Sequence[BoundGraph]) -> Sequence[Plan]:
        return compile_plans(bound, every_node=self._every_node, called=True, process_of=self._hosting.process_of)

    def _made(
        self, compilation: Compilation, plans: Sequence[Plan], size: int, uncut: Interpretation | None = None
    ) -> Callee:
        """As `Functions._made`; UnimplementedError for an `uncut` body with nodes in several processes."""
        own, process_of = self._hosting
        devices = [plan.device for plan in plans] if uncut is None else [compilation.called.device, *uncut.devices]
        if all(process_of[device] == own for device in devices):
            return super()._made(compilation, plans, size, uncut)
        if uncut is not None:
            shares = [_share_of_uncut(compilation, devices, process_of)]
        else:
            shares = _shares_of([plan for plan in plans if process_of[plan.device] != own], process_of)
        body, called = compilation.body, compilation.called
        kind = RemoteTracedCallee if self._every_node else RemoteCallee
        return kind(
            name=body.name,
            work=tuple((plan, self._actors[plan.device]) for plan in plans if process_of[plan.device] == own),
            argument_types=body.argument_types,
            result_types=body.result_types,
            size=size,
            may_call_itself=self.may_call_itself(called.function.name, gradient=called.gradient),
            called=called,
            functions=self.number,
            elsewhere=tuple(shares),
        )


def _shares_of(plans: Sequence[Plan], process_of: Mapping[str, str]) -> list[Share]:
    """What each process has of these plans."""
    by_process: dict[str, list[Plan]] = {}
    for plan in plans:
        by_process.setdefault(process_of[plan.device], []).append(plan)
    return [
        Share(
            process,
            tuple(plan.device for plan in own),
            tuple(sorted({argument.index for plan in own for argument in plan.arguments})),
        )
        for process, own in by_process.items()
    ]


def _share_of_uncut(compilation: Compilation, devices: Sequence[str], process_of: Mapping[str, str]) -> Share:
    """The share of the process that interprets a body; UnimplementedError if it has nodes in several processes."""
    name, devices = compilation.body.name, sorted(set(devices))
    if len({process_of[device] for device in devices}) > 1:
        raise UnimplementedError(
            f"a loop of function {name!r} can only be interpreted, by one process, but its nodes are on {devices}, "
            "which are devices of several worker processes; put these on one worker by spread=, or build the loop as "
            "tf.while_loop does"
        ).inside(name)
    return Share(process_of[devices[0]], tuple(devices), tuple(range(len(compilation.body.argument_types))))
