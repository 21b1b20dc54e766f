"""What is fed into a graph, and what the graph says of it before the run.

Flows in: a joined graph, shapes or values by tensor name. Flows out: feeds by node, and the shapes of fed tensors once
graph and feed have been taken together. Always holds: a placeholder keeps what it declares; any other tensor that is
fed takes the place of what would have been computed.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import InvalidArgumentError
from ..analysis.fed_nodes import feed_nodes, means_anything
from ..analysis.joined import JoinedGraph
from ..analysis.shape_functions import merge
from ..dtypes import Array, Shape
from ..ops.record import record_of
from ..tensor_id import parse_tensor_name

Feeds = Mapping[str, Shape | Array]


class FedTensors:
    """The feeds of one inference."""

    def __init__(self, graph: JoinedGraph) -> None:
        self.graph = graph
        self._numbers = feed_nodes(graph)
        self.promised = self._promised()
        """nodes through which tensors are fed of which something is known before the run: name and shape"""

    def _promised(self) -> dict[int, tuple[str, Shape]]:
        shapes = self.graph.fed_shapes or {}
        return {n: (name, shapes[name]) for name, n in self._numbers.items() if shapes.get(name) is not None}

    def by_node(self, feeds: Feeds) -> tuple[dict[int, dict[int, Shape | Array]], list[str]]:
        """Feeds by node and output, wherever the node that stands for a fed tensor is by now; those of no node."""
        numbers = {name: n for n, name in enumerate(self.graph.names)} | self._numbers
        fed: dict[int, dict[int, Shape | Array]] = {}
        unused = []
        for text, value in feeds.items():
            tensor = parse_tensor_name(text)
            number = numbers.get(f"{tensor.node}:{tensor.index}")
            if number is not None:
                fed.setdefault(number, {})[0] = value
            elif tensor.node in numbers:
                fed.setdefault(numbers[tensor.node], {})[tensor.index] = value
            else:
                unused.append(text)
        return fed, unused

    def merged(self, n: int, declared: Shape, fed: Shape) -> Shape:
        """What graph and feed say together; any node that is computed may be fed whatever its consumers take.

        Raises InvalidArgumentError for a feed that the placeholder, or the graph that was cut, does not allow.
        """
        op, who = self.graph.ops[n], "the placeholder"
        if n in self.promised:
            who = f"the graph's {self.promised[n][0]!r}"
        elif not record_of(op).is_placeholder or means_anything(
            op, declared, self.graph.producers[self.graph.place[n]]
        ):
            return fed
        try:
            return merge(declared, fed)
        except InvalidArgumentError:
            raise InvalidArgumentError(
                f"the feed has shape {fed}, {who} wants {declared}", node=self.graph.names[n], op=op
            ) from None
