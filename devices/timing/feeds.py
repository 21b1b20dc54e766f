"""The feeds of a simulated step: shapes or values by tensor name, checked against the partitions.

A feed with another type or shape than its tensor, or of a tensor that the partitions were not cut for, is an error. No
value is converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError
from ...graph.analysis.fed_nodes import feed_nodes
from ...graph.analysis.joined import JoinedGraph
from ...graph.analysis.shape_functions import merge
from ...graph.builder.tensor_names import tensor_names
from ...graph.dtypes import Array, DataType, Shape, base_type, dtype_name, numpy_dtype
from ...graph.shape_inference.infer import FedShapes, Shapes, infer_joined
from ...graph.tensor import MOST_ELEMENTS
from ...graph.tensor_id import TensorId, parse_tensor_name

_TEXT_KINDS = "OSU"
_NUMBERS = (bool, int, float, complex)  # of Python: as in numpy they may be of any element type
_VALUES = (np.ndarray, np.generic, *_NUMBERS, bytes, str)


def checked_feeds(feeds: Mapping[Any, object], graph: JoinedGraph) -> dict[str, Shape | Array]:  # Any: a `Name`
    """The feeds of a step by name: a tuple for a shape, an array for a value. InvalidArgumentError for a wrong one."""
    if not isinstance(feeds, Mapping):
        raise InvalidArgumentError(
            f"feeds: {type(feeds).__name__} is not a mapping from tensors to shapes or arrays; "
            'write for example {"x": (32, 224, 224, 3)}'
        )
    texts = tensor_names(tuple(feeds))
    nodes, numbers = feed_nodes(graph), graph.numbers({parse_tensor_name(text).node for text in texts})
    seen: set[TensorId] = set()
    present: dict[str, Shape | Array] = {}
    elsewhere: dict[str, Shape | Array] = {}  # feeds of tensors that the partitions do not have
    computed: dict[str, int] = {}  # feeds of tensors that the partitions compute: the node
    for text, feed in zip(texts, feeds.values(), strict=True):
        tensor = parse_tensor_name(text)
        name = str(tensor)
        if tensor in seen:
            raise InvalidArgumentError(f"feed {text!r}: the tensor is fed twice; leave one of the two out")
        seen.add(tensor)
        value = _shape_or_value(text, feed)
        number, output = (nodes[name], 0) if name in nodes else (numbers.get(tensor.node), tensor.index)
        if number is None:
            _check_known(text, name, graph)
            elsewhere[text] = value
            continue
        present[text] = value
        if isinstance(feed, _VALUES):
            _check_type(text, feed, graph, number, output)
        if name not in nodes and not graph.properties[number].op_def.record.is_placeholder:
            computed[text] = number
    if computed:
        _check_computed(present, computed, graph)
    return {**present, **elsewhere}


def stated_shapes(shapes: Mapping[str, Shapes], feeds: FedShapes, graph: JoinedGraph) -> dict[str, Shape | Array]:
    """Shapes of outputs by node as shapes by tensor, without unknown ones and those of nodes elsewhere.

    The shape of a fed tensor is that in `feeds`, if there is one. InvalidArgumentError for one that is no shape, or
    contradicts what the graph computes from `feeds`.
    """
    if not isinstance(shapes, Mapping):
        raise InvalidArgumentError(f"shapes: {type(shapes).__name__} is not a mapping from nodes to lists of shapes")
    numbers = graph.numbers(shapes)
    fed = set(map(parse_tensor_name, feed_nodes(graph) if shapes else ())) - set(map(parse_tensor_name, feeds))
    stated: dict[str, Shape | Array] = {}
    computed: dict[str, int] = {}
    known = numbers.keys() | {tensor.node for tensor in fed}
    for node in [name for name in shapes if name in known]:
        if not isinstance(shapes[node], Sequence):
            raise InvalidArgumentError(f"shapes[{node!r}]: {shapes[node]} is not a list with a shape for each output")
        for output, shape in enumerate(shapes[node]):
            if shape is None or not (node in numbers or TensorId(node, output) in fed):
                continue
            text = f"{node}:{output}"
            stated[text] = _shape(f"shapes[{node!r}], output {output}", shape)
            if node in numbers:
                computed[text] = numbers[node]
    if computed:
        _check_computed({**feeds, **stated}, computed, graph, "shapes: output")
    return stated


def _shape_or_value(text: str, feed: object) -> Shape | Array:
    if feed is None:
        return None
    if isinstance(feed, tuple):
        return _shape(f"feed {text!r}", feed)
    if isinstance(feed, _VALUES):
        return np.asarray(feed)
    raise InvalidArgumentError(
        f"feed {text!r} is a {type(feed).__name__}; give a shape as a tuple of sizes, or a value as an array"
    )


def _shape(what: str, sizes: Any) -> Shape:  # Any: what a caller gave, checked here
    try:
        shape = tuple(None if size is None else index(size) for size in sizes)
    except TypeError:
        raise InvalidArgumentError(
            f"{what}: {sizes} is not a shape; sizes must be whole numbers, None where unknown"
        ) from None
    if any(size is not None and size < 0 for size in shape):
        raise InvalidArgumentError(f"{what}: {shape} is not a shape; a size cannot be negative")
    if prod(size for size in shape if size is not None) > MOST_ELEMENTS:
        raise InvalidArgumentError(f"{what}: a tensor of shape {shape} has more elements than can be counted")
    return shape


def _check_known(text: str, name: str, graph: JoinedGraph) -> None:
    """Refuses a tensor that is not among those that the partitions were cut for.

    A fed tensor without a node is fine when it was among the feeds of the cut, but the request does not need it.
    """
    if graph.fed_shapes is not None and name not in graph.fed_shapes:
        fed = ", ".join(map(repr, graph.fed_shapes)) or "nothing"
        raise InvalidArgumentError(
            f"feed {text!r}: the partitions have no such tensor; they were cut for feeds of {fed}: check the name"
        )


def _check_type(text: str, value: object, graph: JoinedGraph, number: int, output: int) -> None:
    types = graph.properties[number].output_types
    if not 0 <= output < len(types):
        return  # shape inference reports the missing output
    expected, actual = base_type(types[output]), np.asarray(value).dtype
    if expected is DataType.STRING:
        fits = actual.kind in _TEXT_KINDS
    else:
        fits = actual == numpy_dtype(expected) or (isinstance(value, _NUMBERS) and not isinstance(value, np.generic))
    if not fits:
        raise InvalidArgumentError(
            f"feed {text!r} holds {actual.name}, the graph wants {dtype_name(expected)}; give a value of that type",
            node=graph.names[number],
            op=graph.op(number),
        )


def _check_computed(
    feeds: FedShapes, computed: Mapping[str, int], graph: JoinedGraph, what: str = "the shape of feed"
) -> None:
    """The shape of a feed that replaces a computed tensor must agree with the shape that inference gives it."""
    inferred = infer_joined(graph, {text: feed for text, feed in feeds.items() if text not in computed})
    for text, number in computed.items():
        feed, output = feeds[text], parse_tensor_name(text).index
        shapes = inferred.of(number)
        shape = shapes[output] if 0 <= output < len(shapes) else None
        fed = feed if feed is None or isinstance(feed, tuple) else feed.shape
        try:
            merge(shape, fed)
        except InvalidArgumentError:
            raise InvalidArgumentError(
                f"{what} {text!r} has shape {fed}, where the graph computes {shape}; give what it could compute",
                node=graph.names[number],
                op=graph.op(number),
            ) from None
