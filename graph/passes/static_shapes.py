"""The shapes of a few tensors as far as they are known before a run, and whether fed values fit them.

Only the ancestors of these tensors are visited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...errors import InvalidArgumentError
from ..analysis.dims import fits
from ..analysis.fed_nodes import means_anything
from ..dtypes import Shape
from ..graph import Graph
from ..shape_inference.infer import infer_shapes
from ..tensor_id import TensorId, parse_tensor_name
from .client_graph import reachable_backwards


def static_shapes(graph: Graph, names: Sequence[str]) -> Mapping[str, Shape]:
    """Name -> shape of tensors of `graph`; unknown if shapes contradict each other."""
    tensors = [parse_tensor_name(name) for name in names]
    nodes = [node for tensor in tensors if (node := graph.find_node(tensor.node)) is not None]
    needed = graph.copy(reachable_backwards(graph, [node.id for node in nodes]))
    try:
        shapes = infer_shapes(needed)
    except InvalidArgumentError:  # the wrong nodes may never run
        return dict.fromkeys(names)
    return {name: shapes[tensor.node][tensor.index] for name, tensor in zip(names, tensors, strict=True)}


def shapes_of_fed(graph: Graph, names: Iterable[str]) -> Mapping[str, Shape]:
    """ "node:output" -> shape of tensors of `graph`, for `Graph.fed_shapes`: a feed must match it.

    Names of tensors that do not exist are left out: building the client graph refuses them. A scalar placeholder of an
    old file counts as unknown: see `means_anything`.
    """
    tensors: dict[str, TensorId] = {}
    ops: dict[str, str] = {}
    for name in names:
        tensor = parse_tensor_name(name)
        node = graph.find_node(tensor.node)
        if node is not None and 0 <= tensor.index < node.num_outputs:
            tensors[name], ops[name] = tensor, node.op
    shapes = static_shapes(graph, list(tensors))
    return {
        str(tensor): None if means_anything(ops[name], shapes[name], graph.versions.producer) else shapes[name]
        for name, tensor in tensors.items()
    }


def check_fed_shape(name: str, shape: Shape, fed: tuple[int, ...]) -> None:
    """Raises InvalidArgumentError when a value of shape `fed` does not match the tensor `name` of `shape`."""
    if not fits(fed, shape):
        raise InvalidArgumentError(f"Cannot feed value of shape {fed} for Tensor {name}, which has shape {shape}")
