"""A simulated step for TensorBoard: its graph, its figures as scalars, and its RunMetadata, in an event file.

    write_tensorboard(timeline, partitions, "runs/tp2")          tensorboard --logdir runs

    step/time_s                  the makespan, and with low_s and high_s between which times four of five steps take
    step/dependency_bound_s, step/transferred_bytes, step/operations
    busy/gpu:0                   the share of the makespan in which a device computes
    peak_memory_bytes/gpu:0      of the memory of a device; host_peak_memory_bytes of that of its host
    exposed_communication_s/gpu:0, hidden_communication_s/gpu:0      where there are collectives

The graph has the nodes of all partitions with their devices. A receive depends on its send, which is no edge of the
partitions, so that the picture shows what goes where. Attrs of more than 1 KiB, such as weights, are left out and
listed in the attr "_too_large_attrs", as TensorBoard does. The tag of the RunMetadata is "step_0". Times and sizes are
floats of 32 bits, as TensorBoard's scalars are: seven digits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph import Graph
from ....graph.analysis.joined import JoinedGraph
from ....graph.formats.event_file import EventFile
from ....graph.protos import GraphDef, Summary
from ..timeline import Timeline
from .run_metadata import run_metadata
from .utf8 import valid

_S_PER_NS = 1e-9
_LARGEST_ATTR = 1024
_LEFT_OUT = "_too_large_attrs"


def write_tensorboard(timeline: Timeline, graph: Graph | Mapping[str, Graph], folder: str | Path, step: int = 0) -> str:
    """Writes an event file into a folder, which is made if need be; returns its path.

    `graph` is what was simulated, whole or cut by device; `step` is the number under which TensorBoard shows it. Raises
    the error of the file system where that cannot be.
    """
    drawn = _drawn(graph if isinstance(graph, Mapping) else {"": graph}).SerializeToString(deterministic=True)
    values = [Summary.Value(tag=valid(tag), simple_value=value) for tag, value in scalars(timeline)]
    metadata = run_metadata(timeline).SerializeToString(deterministic=True)
    file = EventFile(str(folder))
    try:
        file.add_graph(step, drawn)
        file.add_summary(step, Summary(value=values).SerializeToString())
        file.add_run_metadata(step, f"step_{step}", metadata)
    except BaseException:
        file.close()
        Path(file.path).unlink(missing_ok=True)  # half of it would be shown as if it were all
        raise
    file.close()
    return file.path


def scalars(timeline: Timeline) -> Iterator[tuple[str, float]]:
    """The figures of a step by tag; those that the timeline does not know are left out."""
    yield "step/time_s", timeline.makespan_ns * _S_PER_NS
    try:
        low_ns, high_ns = timeline.interval_ns()
    except (InvalidArgumentError, UnimplementedError):
        pass  # a source of op times does not say how sure it is, or there are several steps
    else:
        yield "step/low_s", low_ns * _S_PER_NS
        yield "step/high_s", high_ns * _S_PER_NS
    yield "step/dependency_bound_s", timeline.dependency_bound_ns * _S_PER_NS
    yield "step/transferred_bytes", timeline.transferred_bytes
    yield "step/operations", timeline.flops
    short = timeline.cluster.short_names.shorten if timeline.cluster else str
    has_collectives = bool(timeline.columns.of_kind("collective").any())
    for device in timeline.devices:
        yield f"busy/{short(device)}", timeline.busy_fraction(device)
        if has_collectives:
            exposed_ns, hidden_ns = timeline.communication(device)
            yield f"exposed_communication_s/{short(device)}", exposed_ns * _S_PER_NS
            yield f"hidden_communication_s/{short(device)}", hidden_ns * _S_PER_NS
    for (device, place), size_bytes in timeline.peak_bytes.items():
        yield f"{'' if place == 'device' else 'host_'}peak_memory_bytes/{short(device)}", size_bytes


def _drawn(parts: Mapping[str, Graph]) -> GraphDef:
    """The nodes of all parts as one graph, for looking at."""
    joined = JoinedGraph(parts)
    sends: defaultdict[str, list[str]] = defaultdict(list)
    for recv in np.flatnonzero(joined.sender >= 0).tolist():
        sends[joined.names[recv]].append(joined.names[joined.sender[recv]])
    drawn = GraphDef()
    for place, part in parts.items():
        own = part.to_graph_def()
        drawn.versions.CopyFrom(own.versions)
        known = {function.signature.name for function in drawn.library.function}
        drawn.library.function.extend(it for it in own.library.function if it.signature.name not in known)
        for node in own.node:
            node.device = node.device or place
            node.input.extend(f"^{send}" for send in sends.get(node.name, ()))
            if large := [name for name, value in node.attr.items() if value.ByteSize() > _LARGEST_ATTR]:
                for name in large:
                    del node.attr[name]
                node.attr[_LEFT_OUT].list.s.extend(sorted(name.encode() for name in large))
        drawn.node.extend(own.node)
    return drawn
