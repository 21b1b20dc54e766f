"""The memory, host or device, of the tensors of a placed graph, looked up for many ports at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import InternalError, InvalidArgumentError
from ..arrays import Flags, Numbers, positions
from ..columns import CONTROL_SLOT, EdgeArrays, Ids
from ..device_name import parse_full_name
from ..ops.device_kinds import device_kind
from ..ops.memory_types import memory_types
from ..port_table import PortTable
from .kind_column import KindColumn


class Memories:
    """The memory of every port, by kind of node and kind of device."""

    def __init__(self, kinds: KindColumn, devices: Ids, device_names: Sequence[str]) -> None:
        """`devices` has, by node id, an index into `device_names`. InternalError for a malformed name."""
        self._kinds = kinds
        self._devices = devices
        types = [_device_type(name) for name in device_names]
        self._types = sorted(set(types))
        number = {name: n for n, name in enumerate(self._types)}
        self._type = np.array([number[name] for name in types], np.int64)[devices]
        self.host_only: Flags = np.array([not device_kind(name).own_memory for name in self._types])[self._type]
        """by node id, whether its device has no memory but the host's"""

    def inputs_on_host(self, node: Ids, port: Ids) -> Flags:
        """Whether input `port[k]` of node `node[k]` is in host memory, for all k; control ports are not."""
        return self._on_host(node, port, outputs=False)

    def outputs_on_host(self, node: Ids, port: Ids) -> Flags:
        """Whether output `port[k]` of node `node[k]` is in host memory, for all k; control ports are not."""
        return self._on_host(node, port, outputs=True)

    def _on_host(self, node: Ids, port: Ids, *, outputs: bool) -> Flags:
        if not len(node):
            return np.zeros(0, np.bool_)
        # [memory_types(kind of n, type of n's device)[outputs][p] for n, p in zip(node, port)], with one call per
        # distinct (kind of node, type of device): some hundred calls for a graph of any size on any cluster.
        code = self._kinds.of[node] * len(self._types) + self._type[node]
        codes, index = np.unique(code, return_inverse=True)
        facts = []
        for kind, number in (divmod(c, len(self._types)) for c in codes.tolist()):
            facts.append(memory_types(self._kinds.kinds[kind], self._types[number])[1 if outputs else 0])
        return PortTable(facts).at(index.reshape(-1), port).astype(np.bool_)

    def changes(self, edges: EdgeArrays, among: Flags) -> Flags:
        """Which data edges of those in `among` connect host and device memory of one device, and need a transfer."""
        same_device = self._devices[edges.src] == self._devices[edges.dst]
        candidates = among & (edges.dst_input != CONTROL_SLOT) & ~self.host_only[edges.src] & same_device
        at: Numbers = positions(candidates)
        changes = np.zeros_like(among)
        changes[at] = self.outputs_on_host(edges.src[at], edges.src_output[at]) != self.inputs_on_host(
            edges.dst[at], edges.dst_input[at]
        )
        return changes


def _device_type(name: str) -> str:
    try:
        return parse_full_name(name).type or ""
    except InvalidArgumentError as error:
        raise InternalError(f"Malformed assigned device '{name}'", device=name) from error
