"""Start times, in microseconds, of all nodes of a cut: those of the graph and those of its pairs.

The nodes of a pair on the sending side start when the producer of the tensor starts; those on the receiving side when
the earliest of the consumers starts that share the pair.
"""

from __future__ import annotations

import numpy as np

from ...errors import NotFoundError
from ..analysis.transfers import TransferTable
from ..arrays import positions
from ..graph import Graph
from ..ops.properties import NodeProperties
from ..protos import AttrValue
from .cut_edges import PairNumbers
from .kind_column import KindColumn
from .options import START_TIME, PartitionOptions
from .pairs import TransferPairs


class StartTimes:
    """The start times of one graph and of its cut."""

    def __init__(self, graph: Graph, options: PartitionOptions, num_given: int) -> None:
        """`num_given` is the number of ids before control loops were added: higher ids are nodes of control loops."""
        self._graph = graph
        self._options = options
        self._num_given = num_given

    def write(self, kinds: KindColumn, transfers: TransferTable, pairs: TransferPairs, pair_of: PairNumbers) -> None:
        """Writes `_start_time` where the options ask for it; NotFoundError for a node without a known start time."""
        if self._options.need_to_record_start_times:
            for node in self._graph.op_nodes():
                if START_TIME not in node.attrs:
                    kinds.replace(node.id, _started_at(kinds[node.id], self._of(node.id)))
        edges, nodes, scheduled = pairs.edges, pairs.nodes, self._options.scheduling_for_recvs
        # Without scheduling TensorFlow still writes a start time, 0, into receives of references.
        arrives = self._arrivals(pairs, pair_of) if scheduled else np.zeros(len(pairs.first), np.int64)
        for pair in positions(edges.is_ref[pairs.first] | scheduled).tolist():
            leaves = self._of(int(edges.edges.src[pairs.first[pair]])) if scheduled else None
            for number in range(int(nodes.const[pair]), int(nodes.arrival[pair]) + 1):
                is_sending = number <= nodes.send[pair]
                time = leaves if is_sending else int(arrives[pair])
                if time is None:
                    continue
                if nodes.send[pair] <= number <= nodes.recv[pair]:
                    transfers.starts[pair, not is_sending] = time
                else:
                    kinds.replace(number, _started_at(kinds[number], time))

    def _arrivals(self, pairs: TransferPairs, pair_of: PairNumbers) -> np.typing.NDArray[np.int64]:
        """By pair, when the earliest of its consumers starts."""
        arrives = np.full(len(pairs.first), np.iinfo(np.int64).max)
        consumers = np.array([self._of(node) for node in pairs.edges.edges.dst.tolist()], np.int64)
        np.minimum.at(arrives, pair_of, consumers)  # for k, time in zip(pair_of, consumers): arrives[k] = min(...)
        return arrives

    def _of(self, node_id: int) -> int:
        attrs = self._graph.node_properties(node_id).attrs
        if START_TIME in attrs:
            return int(attrs[START_TIME])
        name = self._graph.node_name(node_id)
        if self._options.need_to_record_start_times:
            if node_id >= self._num_given:
                return self._options.start_time_of_loop_nodes
            if name in self._options.start_times:
                return self._options.start_times[name]
        raise NotFoundError(f"No attr named {START_TIME!r} in NodeDef: {{{{node {name}}}}}", node=name)


def _started_at(properties: NodeProperties, microseconds: int) -> NodeProperties:
    return properties.with_attr(START_TIME, AttrValue(i=microseconds))
