"""Shapes given by `--shape`: of fed tensors, which have no value then, and of tensors that the graph computes.

A placeholder, and what `--feed` names, is fed. Any other node computes its outputs, and `--shape` says how large they
are; it may also be a node of a function: `call/inner`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ...graph import Graph, Node, TensorId, parse_tensor_name
from ...graph.dtypes import Dims, Shape
from ...graph.tensor import MOST_ELEMENTS
from .failure import ConfigurationError
from .feeds import Feed, shape_of, shape_text


def split_shape(text: str) -> tuple[str, Dims]:
    """Name and sizes of `NAME=2,3`, no sizes for a scalar; ConfigurationError for anything else."""
    name, equals, sizes = text.partition("=")
    texts = [size.strip() for size in sizes.split(",")] if sizes.strip() else []
    if not name or not equals or not all(size.isascii() and size.isdecimal() for size in texts):
        raise ConfigurationError(
            f"--shape {text!r} is not NAME=SIZES; write whole numbers with commas between, such as "
            f"--shape {name or 'x'}=2,3, and --shape {name or 'x'}= for a scalar"
        )
    shape = tuple(map(int, texts))
    if prod(shape) > MOST_ELEMENTS:
        raise ConfigurationError(f"--shape {text!r}: such a tensor has more elements than can be counted")
    return name, shape


def divide(
    shapes: Sequence[tuple[str, Dims]], feeds: Mapping[str, Feed], graph: Graph
) -> tuple[dict[str, Feed], dict[str, tuple[Shape, ...]]]:
    """`feeds` with the shapes of fed tensors; and by node the shapes of the outputs that it computes.

    Raises ConfigurationError for a tensor with two different shapes, and for an output that a node does not have.
    """
    fed: dict[str, Feed] = dict(feeds)
    computed: dict[TensorId, Dims] = {}
    for name, sizes in shapes:
        tensor = parse_tensor_name(name)
        known = next((other for other in fed if parse_tensor_name(other) == tensor), None)
        if known is None and not _is_fed(graph, tensor):
            _check_equal(name, sizes, computed.setdefault(tensor, sizes), "in another --shape")
        elif known is None or (feed := fed[known]) is None:
            fed[known or name] = sizes
        else:
            _check_equal(
                name, sizes, shape_of(feed), "in another --shape" if isinstance(feed, tuple) else "in its file"
            )
    return fed, _by_node(computed)


def _is_fed(graph: Graph, tensor: TensorId) -> bool:
    """Whether a shape of this tensor, which no `--feed` names, feeds it; so does one that nobody knows, an error."""
    node = graph.find_node(tensor.node)
    if node is not None:
        if not 0 <= tensor.index < node.num_outputs:
            outputs = f"node {node.name!r} ({node.op}) has {node.num_outputs} outputs"
            raise ConfigurationError(f"--shape {str(tensor)!r}: {outputs}")
        return node.properties.op_def.record.is_placeholder
    scopes = tensor.node.split("/")
    callers = (graph.find_node("/".join(scopes[:count])) for count in range(1, len(scopes)))
    return not any(caller is not None and _calls(graph, caller) for caller in callers)


def _calls(graph: Graph, node: Node) -> bool:
    return node.properties.op_def.takes_functions or node.op in graph.functions


def _check_equal(name: str, here: Dims, there: Dims, where: str) -> None:
    if here != there:
        both = f"{shape_text(here)} here and {shape_text(there)} {where}"
        raise ConfigurationError(f"--shape: tensor {name!r} has shape {both}; give one of them")


def _by_node(computed: Mapping[TensorId, Dims]) -> dict[str, tuple[Shape, ...]]:
    shapes: dict[str, list[Shape]] = {}
    for tensor, sizes in computed.items():
        outputs = shapes.setdefault(tensor.node, [])
        outputs += [None] * (tensor.index + 1 - len(outputs))
        outputs[tensor.index] = sizes
    return {node: tuple(outputs) for node, outputs in shapes.items()}
