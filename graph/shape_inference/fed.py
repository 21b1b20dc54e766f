"""The tensors that are fed, and what the graph knows of their shapes before the run.

A fed placeholder must fit its declared shape; a feed of any other tensor replaces the computed value, shape included.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import InvalidArgumentError
from ..analysis.fed_nodes import feed_nodes, means_anything
from ..analysis.joined import JoinedGraph
from ..analysis.shape_functions import merge
from ..analysis.value_rules import is_small
from ..dtypes import Array, Shape
from ..ops.record import record_of
from ..tensor_id import parse_tensor_name
from .outcomes import InferenceOutcome

FedShapes = Mapping[str, Shape | Array]


class FedTensors:
    """The feeds of one inference."""

    def __init__(self, graph: JoinedGraph) -> None:
        self.graph = graph
        self._numbers = feed_nodes(graph)
        self.promised = self._promised()
        """name and shape of fed tensors whose shape is partly known before the run, by the node they are fed through"""

    def _promised(self) -> dict[int, tuple[str, Shape]]:
        shapes = self.graph.fed_shapes or {}
        return {n: (name, shapes[name]) for name, n in self._numbers.items() if shapes.get(name) is not None}

    def by_node(self, feeds: FedShapes) -> tuple[dict[int, dict[int, Shape | Array]], list[str]]:
        """Feeds by the node, and output, that a fed tensor comes from now; and the feeds that match no node."""
        tensors = {text: parse_tensor_name(text) for text in feeds}
        numbers = self.graph.numbers({tensor.node for tensor in tensors.values()}) | self._numbers
        fed: dict[int, dict[int, Shape | Array]] = {}
        unused = []
        for text, value in feeds.items():
            tensor = tensors[text]
            number = numbers.get(f"{tensor.node}:{tensor.index}")
            if number is not None:
                fed.setdefault(number, {})[0] = value
            elif tensor.node in numbers:
                fed.setdefault(numbers[tensor.node], {})[tensor.index] = value
            else:
                unused.append(text)
        return fed, unused

    def merged(self, n: int, declared: Shape, fed: Shape) -> Shape:
        """The shape from graph and feed together; a feed of a computed tensor may have any shape.

        Raises InvalidArgumentError for a feed that does not fit the placeholder, or the graph before it was cut.
        """
        op, who = self.graph.op(n), "the placeholder"
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

    def feed(self, n: int, outcome: InferenceOutcome, feeds: Mapping[int, Shape | Array]) -> None:
        """Puts fed shapes and values into the outcome of a node.

        Raises InvalidArgumentError for an output that does not exist, and what `merged` raises.
        """
        shapes = list(outcome.shapes)
        values = [*outcome.values, *[None] * len(shapes)]
        for output, feed in feeds.items():
            if not 0 <= output < len(shapes):
                problem = f"feed of output {output}: the node has {len(shapes)}; check the number"
                raise InvalidArgumentError(problem, node=self.graph.names[n], op=self.graph.op(n))
            values[output] = None
            if feed is None or isinstance(feed, tuple):
                shapes[output] = self.merged(n, shapes[output], feed)
                continue
            value = np.asarray(feed)
            shapes[output] = self.merged(n, shapes[output], value.shape)
            if is_small(value):
                values[output] = value
        outcome.shapes, outcome.values = tuple(shapes), values[: len(shapes)]
