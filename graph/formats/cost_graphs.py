"""CostGraphDef -> measured nodes in plain values: name, device, time, shapes of outputs.

A RunMetadata has a cost graph inside.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.message import DecodeError

from ...errors import InvalidArgumentError, NotFoundError
from ..graphdef.sources import Serialisable
from ..protos import CostGraphDef, RunMetadata
from ..tensor import recorded_shape

if TYPE_CHECKING:
    from ..dtypes import Shape


class MeasuredNode(NamedTuple):
    """A node of a cost graph that ran; the time is that of its longest run, in whole microseconds there."""

    name: str
    device: str
    time_ns: int
    shapes: tuple[Shape, ...]


def measured_nodes(source: Serialisable | bytes | str | Path) -> list[MeasuredNode]:
    """The nodes with a time of a CostGraphDef, or of the one in a RunMetadata: a message, bytes, or a path.

    InvalidArgumentError for what is no cost graph, NotFoundError for a file that cannot be read.
    """
    return [
        MeasuredNode(
            node.name,
            node.device,
            1000 * node.compute_cost,
            tuple(recorded_shape(output.shape) for output in node.output_info),
        )
        for node in _cost_graph(source).node
        if node.compute_cost > 0
    ]


def _cost_graph(source: Serialisable | bytes | str | Path) -> CostGraphDef:
    if isinstance(source, str | Path):
        try:
            data = Path(source).read_bytes()
        except OSError as error:
            raise NotFoundError(f"cost model {str(source)!r}: {error.strerror}; check the path") from None
    else:
        data = source if isinstance(source, bytes) else source.SerializeToString()
    for read in (lambda data: RunMetadata.FromString(data).cost_graph, CostGraphDef.FromString):
        try:
            message = read(data)
        except DecodeError:
            continue
        if message.node:
            return message
    raise InvalidArgumentError("the cost model has no nodes; give a CostGraphDef, or a RunMetadata with a cost graph")
