"""The buffers of a simulated step, and how long each is in use.

A buffer lives from the start of its producer (of the transfer, for a received tensor) to the end of the last op that
reads it or a view of it, and at least until its producer ends. Constants and variables live for the whole step. An
output that is a view of another tensor has no buffer.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ...graph.dtypes import item_size
from ...graph.ops.device_kinds import device_kind
from ...graph.ops.memory_types import memory_types
from ...graph.ops.record import NodeClass
from ..cluster import Cluster
from ..kernels.op_cost import Dims
from ..memory import Buffer, Place
from .log import StepLog
from .work import Duty, Work

_WHOLE_STEP = (NodeClass.CONSTANT, NodeClass.VARIABLE)
_VARIABLE_HANDLE = "VarHandleOp"  # counted as the variable that the handle refers to

Output = tuple[int, int]  # joint node number, output


def buffers_of(work: Work, log: StepLog, cluster: Cluster) -> list[Buffer]:
    """All buffers of the step, in order of node and output."""
    last_use = _last_uses(work, log)
    makespan = max(log.end_ns, default=0)
    memories = _Memories(work, cluster)
    buffers = []
    for (n, output), end in sorted(last_use.items()):
        place, size = memories.of(n)[output]
        start = log.start_ns[n]
        if work.graph.node_class(n) in _WHOLE_STEP or work.graph.op(n) == _VARIABLE_HANDLE:
            start, end = 0, makespan
        buffers.append(Buffer(work.devices[work.device[n]], place, start, end, size))
    return buffers


def _last_uses(work: Work, log: StepLog) -> dict[Output, int]:
    """Outputs with a buffer of their own -> end of the last reader, in ns."""
    graph, end_ns = work.graph, log.end_ns
    roots = _roots(work)
    last_use = {root: end_ns[root[0]] for root in set(roots.values())}
    for n in range(len(graph)):
        for source in graph.inputs_of(n):
            root = roots.get(source)
            if root is not None and last_use[root] < end_ns[n]:
                last_use[root] = end_ns[n]
    for recv in np.flatnonzero(graph.sender >= 0).tolist():
        root = roots.get(graph.inputs_of(graph.sender[recv])[0])
        if root is not None and last_use[root] < end_ns[recv]:
            last_use[root] = end_ns[recv]
    return last_use


def _roots(work: Work) -> dict[Output, Output]:
    """Every live output -> the output whose buffer it uses: itself, or for views an output of another node."""
    graph = work.graph
    roots: dict[Output, Output] = {}
    for n in graph.order().tolist():
        if work.duty[n] is Duty.DEAD:
            continue
        record, inputs = graph.properties[n].op_def.record, graph.inputs_of(n)
        same_memory = n in work.routes and not work.routes[n].links
        if same_memory:
            inputs = graph.inputs_of(graph.sender[n])
        is_alias = bool(inputs) and (same_memory or record.is_view)
        for output in range(len(work.shapes[n])):
            own = n, output
            roots[own] = roots.get(inputs[output if record.regroups else 0], own) if is_alias else own
    return roots


class _Memories:
    """Memory and bytes of every output of a node, computed once per distinct properties, shapes and device."""

    def __init__(self, work: Work, cluster: Cluster) -> None:
        self._work = work
        self._types = [cluster.find(name).type for name in work.devices]
        self._known: dict[tuple[int, tuple[Dims, ...], int], list[tuple[Place, int]]] = {}

    def of(self, n: int) -> list[tuple[Place, int]]:
        """One (place, bytes) per output of node `n`."""
        work = self._work
        key = id(work.graph.properties[n]), work.shapes[n], work.device[n]
        outputs = self._known.get(key)
        if outputs is None:
            outputs = self._known[key] = self._outputs(n)
        return outputs

    def _outputs(self, n: int) -> list[tuple[Place, int]]:
        properties, device_type = self._work.graph.properties[n], self._types[self._work.device[n]]
        dims, types = list(self._work.shapes[n]), list(properties.output_types)
        is_handle = properties.op == _VARIABLE_HANDLE
        if is_handle:  # the handle is small and on the host; count the variable that it refers to
            dims, types = [tuple(size or 1 for size in properties.attrs["shape"] or ())], [properties.attrs["dtype"]]
        has_one_memory = is_handle or not device_kind(device_type).own_memory
        on_host = [False] * len(types) if has_one_memory else memory_types(properties, device_type)[1]
        return [
            ("host" if host else "device", prod(sizes) * item_size(dtype))
            for host, sizes, dtype in zip(on_host, dims, types, strict=True)
        ]
