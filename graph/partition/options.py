"""Options of partitioning; the defaults are those of a session on local devices.

Each `PartitionOptions` has a name counter of its own unless it is given one, so using it twice continues the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..dtypes import DataType
from ..node import Edge, Node

START_TIME = "_start_time"  # attr: when a node starts, in microseconds
LOCAL_INCARNATION = 1  # of every device of a session on local devices


def assigned_device(node: Node) -> str:
    """The partition of a node in a local session: its device."""
    return node.assigned_device


def name_counter(start: int = 0, separator: str = "/_") -> Callable[[str], str]:
    """A function from a prefix to the name `prefix/_N`, where N goes on from call to call whatever the prefix is."""
    next_number = start

    def new_name(prefix: str) -> str:
        nonlocal next_number
        name = f"{prefix}{separator}{next_number}"
        next_number += 1
        return name

    return new_name


def local_incarnation(device: str) -> int:
    """The incarnation of every device of a local session."""
    return LOCAL_INCARNATION


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    """How to cut a graph.

    `node_to_loc` gives the partition of a node, `new_name` a fresh name with a prefix, `get_incarnation` the
    incarnation of a device (0: unknown). `should_cast` gives the element type that an edge is sent as; for a control
    edge it is that of the empty tensor which is sent instead. Without `should_cast` nothing is cast.
    `control_flow_added`: an earlier partitioning has moved the control flow and added control loops.

    With `need_to_record_start_times` every node gets the attr `_start_time`, in microseconds, from `start_times` by
    name; nodes of control loops get `start_time_of_loop_nodes`. With `scheduling_for_recvs` sends and receives get the
    start times of the nodes at their ends.
    """

    node_to_loc: Callable[[Node], str] = assigned_device
    new_name: Callable[[str], str] = field(default_factory=name_counter)
    get_incarnation: Callable[[str], int] = local_incarnation
    should_cast: Callable[[Edge], DataType] | None = None
    control_flow_added: bool = False
    scheduling_for_recvs: bool = False
    need_to_record_start_times: bool = False
    start_times: Mapping[str, int] = field(default_factory=dict)
    start_time_of_loop_nodes: int = 0
