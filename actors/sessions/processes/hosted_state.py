"""What the devices of a worker hold: told in words, so that a loss can be named, and variables on their way elsewhere.

CPU:0 holds two variables and a queue       StateKinds("CPU:0", ("queues", "variables"))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ....devices.cluster import Cluster
from ....devices.kernels.datasets.iterator_ops import ITERATOR_TYPE
from ....devices.kernels.queues.accumulator_ops import ACCUMULATOR_TYPE
from ....devices.kernels.queues.barriers import BARRIER_TYPE
from ....devices.kernels.queues.queue_ops import QUEUE_TYPE
from ....devices.kernels.tables.lookup_table import TABLE_TYPE
from ....devices.state import REFERENCE_VARIABLE_TYPE, VARIABLE_TYPE, DeviceState, Variable
from ....graph.dtypes import DataType
from .messages.control import PutVariables, StateKinds, VariablesTaken

if TYPE_CHECKING:
    from ...running.device_actor import DeviceActor

_WORDS = {
    VARIABLE_TYPE: "variables",
    REFERENCE_VARIABLE_TYPE: "variables",
    QUEUE_TYPE: "queues",
    TABLE_TYPE: "tables",
    ITERATOR_TYPE: "iterators",
    BARRIER_TYPE: "barriers",
    ACCUMULATOR_TYPE: "accumulators",
}
_OTHERS = "other resources"


def kinds_of(state: DeviceState) -> tuple[str, ...]:
    """What a device holds, in words and in order."""
    return tuple(sorted({_WORDS.get(type_name, _OTHERS) for _, type_name, _ in state.resources}))


class KindsToldLast:
    """What the session knows of the kinds of state of devices."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._kinds: dict[str, tuple[str, ...]] = {}

    def changed(self, actors: Mapping[str, DeviceActor]) -> Iterator[StateKinds]:
        """What the session does not know yet. Cheap while no resource is made or destroyed."""
        for name, actor in actors.items():
            state = actor.binder.state
            count = len(state.resources)
            if count == self._counts.get(name, 0):
                continue
            self._counts[name] = count
            kinds = kinds_of(state)
            if kinds != self._kinds.get(name, ()):
                self._kinds[name] = kinds
                yield StateKinds(name, kinds)


def part_of(cluster: Cluster, devices: Sequence[str]) -> Cluster:
    """These devices of a cluster, all of them if none are named."""
    if not devices:
        return cluster
    return Cluster([cluster.find(name) for name in devices], cluster.topology.rules, cluster.profiles)


def variables_of(device: str, state: DeviceState) -> VariablesTaken:
    """The variables of a device, which go on in another worker."""
    variables = [(key, each) for key, each in state.resources.items() if isinstance(each, Variable)]
    return VariablesTaken(
        device,
        tuple((*key, int(each.dtype), each.shape) for key, each in variables),
        {place: each.value for place, (_, each) in enumerate(variables) if each.value is not None},
    )


def put_variables(state: DeviceState, put: PutVariables) -> None:
    """Makes variables as they were elsewhere."""
    for place, (container, type_name, name, dtype, shape) in enumerate(put.variables):
        state.containers.add(container)
        state.resources[container, type_name, name] = Variable(name, DataType(dtype), put.values.get(place), shape)
