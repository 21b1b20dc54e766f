"""What a partitioning may be told, with the defaults of a session on local devices.

Flows in: callables on nodes, name prefixes, device names and edges. Flows out: `PartitionOptions`, read by the walk.
Always holds: options hold no state of their own except the default name counter, which belongs to one options object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..dtypes import DataType
from ..node import Edge, Node

START_TIME = "_start_time"  # attr: when a node starts, in microseconds
LOCAL_INCARNATION = 1  # what a session on local devices writes for every device


def assigned_device(node: Node) -> str:
    """The partition of a node in a local session: its device."""
    return node.assigned_device


def name_counter(start: int = 0, separator: str = "/_") -> Callable[[str], str]:
    """A source of names `prefix/_N`, one counter for all prefixes."""
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

    `node_to_loc` names the partition of a node; `new_name` makes a name from a prefix; `get_incarnation` gives the
    incarnation of a device name (0: unknown); `should_cast` gives the element type an edge is sent as, None for no
    casts (for a control edge the type of the empty tensor that stands for it). `control_flow_added` says that an
    earlier partitioning has added the control loops. With `need_to_record_start_times` every node gets `_start_time`
    from `start_times` (node name -> microseconds), those of control loops `start_time_of_loop_nodes`; with
    `scheduling_for_recvs` transfers get start times from their ends.
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
