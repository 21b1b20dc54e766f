"""What is known of the arguments of a call, and of the place that it is called from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from ....graph.analysis.trip_counts import KnownArguments
from ....graph.ops.record import NodeClass
from .paths import CallPath

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ....graph.analysis.counters import Value
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.dtypes import Array, DataType, Shape
    from ....graph.functions.body import FunctionBody
    from ....graph.shape_inference.infer import InferredShapes, Shapes
    from ....graph.shape_inference.unknown_sizes import CallSite
    from .scripts import Script

_PASSING = (NodeClass.IDENTITY, NodeClass.ENTER, NodeClass.EXIT, NodeClass.SWITCH, NodeClass.MERGE)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its shape; a small value that is the same in every call; the shapes behind a handle; a scalar by
    the iteration of the loop around; the device of the resource that it refers to.
    """

    dtype: DataType
    shape: Shape
    array: Array | None = None
    behind: Shapes | None = None
    value: Value = None
    resource: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for arguments for which a body is planned alike."""
        array = None if self.array is None else (self.array.dtype.str, self.array.shape, self.array.tobytes())
        return self.shape, array, self.behind, self.resource


@dataclass(frozen=True, slots=True)
class Site:
    """Where a graph is called from: the path of calls; what is known of its arguments; by joint number of the argument
    the devices of resources; the node that calls it; the arguments that are added to instances of collectives.
    """

    path: CallPath = field(default_factory=CallPath)
    caller: KnownArguments = field(default_factory=KnownArguments)
    resources: Mapping[int, str] = field(default_factory=dict)
    called: CallSite | None = None
    counted: frozenset[int] = frozenset()


@dataclass(eq=False)
class Callee:
    """The body of a function for certain arguments; `script` is its script if that does not depend on the path.

    It is that of all values of the arguments `counted`, by joint number.
    """

    body: FunctionBody
    shapes: InferredShapes
    counted: frozenset[int] = frozenset()
    script: Script | None = None

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.shapes.graph.names)}

    @cached_property
    def results(self) -> Shapes:
        """The shapes of the results."""
        graph = self.shapes.graph
        ends = [graph.inputs_of(self._numbers[node.name])[0] for node in self.body.results]
        return tuple(self.shapes.of(n)[output] for n, output in ends)

    def site(self, site: Site, arguments: Sequence[Argument]) -> Site:
        """The place that the body is called from; arguments that it does not read have no number in it."""
        numbered = [
            (self._numbers[node.name], argument)
            for node, argument in zip(self.body.arguments, arguments, strict=True)
            if node.name in self._numbers
        ]
        return Site(
            site.path,
            KnownArguments({n: argument.value for n, argument in numbered}, site.caller.count),
            {n: argument.resource for n, argument in numbered if argument.resource},
            site.called,
            self.counted,
        )


def resource_device(graph: JoinedGraph, source: tuple[int, int], site: Site, device_of: Callable[[int], str]) -> str:
    """The device of the resource that a handle refers to: that of the node which makes it."""
    n, output = source
    while True:
        if graph.sender[n] >= 0:
            n, output = graph.inputs_of(int(graph.sender[n]))[0]
        elif n in site.resources:
            return site.resources[n]
        elif graph.node_class(n) in _PASSING:
            n, output = graph.inputs_of(n)[0]
        elif graph.properties[n].op_def.record.regroups:
            n, output = graph.inputs_of(n)[output]
        else:
            return device_of(n)
