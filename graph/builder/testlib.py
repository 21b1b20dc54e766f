"""The builders of TensorFlow's graph testing library: one node per call, for tests and for scripts of scenarios.

    graph = Graph()
    a = testlib.constant(graph, [[1.0, 2.0]])
    y = testlib.matmul(graph, a, a, transpose_b=True)
    graph.fix_source_and_sink_edges()

An input is a node (its first output) or a (node, output) pair. A node without a name is called `n/_K`, K counting up in
the graph; edges from source and to sink are left to the caller. For whole graphs `GraphBuilder` is shorter.

The functions use `NodeBuilder` instead of `front_end.py` because, as in TensorFlow's library, each node is in the graph
at once, with the next ids for its edges and the name exactly as given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...errors import InvalidArgumentError
from ..dtypes import DataType, Shape, from_numpy
from ..graph import Graph
from ..node import Node
from ..tensor import numpy_to_tensor
from .node_builder import NodeBuilder

TensorLike: TypeAlias = Node | tuple[Node, int]
"""a tensor; a node stands for its first output"""


def _add(
    graph: Graph,
    op: str,
    *inputs: TensorLike | list[TensorLike],
    name: str = "",
    control: Sequence[Node] = (),
    **attrs: Any,  # whatever the op's attrs take
) -> Node:
    builder = NodeBuilder(name or graph.new_name("n"), op)
    for argument in inputs:
        if isinstance(argument, list):
            builder.input_list([_as_pair(item) for item in argument])
        else:
            builder.input(*_as_pair(argument))
    for node in control:
        builder.control_input(node)
    for key, value in attrs.items():
        builder.attr(key, value)
    return builder.finalize(graph)


def _as_pair(output: TensorLike) -> tuple[Node, int]:
    return (output, 0) if isinstance(output, Node) else output


# Sources


def constant(graph: Graph, value: npt.ArrayLike, name: str = "") -> Node:
    """A Const; Python numbers become float32 or int32."""
    return _constant(graph, "Const", value, name)


def host_constant(graph: Graph, value: npt.ArrayLike, name: str = "") -> Node:
    """A HostConst: a constant that is in host memory on every device."""
    return _constant(graph, "HostConst", value, name)


_DEFAULT_TYPES = {"f": np.float32, "i": np.int32, "S": np.object_}


def _constant(graph: Graph, op: str, value: npt.ArrayLike, name: str) -> Node:
    array = np.asarray(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        array = array.astype(_DEFAULT_TYPES.get(array.dtype.kind, array.dtype))
    dtype = from_numpy(array)
    return _add(graph, op, name=name, value=numpy_to_tensor(array, dtype), dtype=dtype)


def var(graph: Graph, dtype: DataType, shape: Shape, name: str = "") -> Node:
    """The reference to a variable, uninitialised until an `assign` has run."""
    return _add(graph, "Variable", name=name, dtype=dtype, shape=shape)


def random_uniform(graph: Graph, shape: TensorLike, dtype: DataType) -> Node:
    """Numbers in [0, 1)."""
    return _add(graph, "RandomUniform", shape, dtype=dtype)


def random_gaussian(graph: Graph, shape: TensorLike, dtype: DataType) -> Node:
    """Standard normal numbers."""
    return _add(graph, "RandomStandardNormal", shape, dtype=dtype)


def truncated_normal(graph: Graph, shape: TensorLike, dtype: DataType) -> Node:
    """Standard normal numbers within two standard deviations."""
    return _add(graph, "TruncatedNormal", shape, dtype=dtype)


def random_gamma(graph: Graph, shape: TensorLike, alpha: TensorLike) -> Node:
    """Gamma-distributed numbers, `shape` of them for every element of `alpha`."""
    return _add(graph, "RandomGamma", shape, alpha)


def random_poisson(graph: Graph, shape: TensorLike, rate: TensorLike) -> Node:
    """Poisson-distributed numbers of the type of `rate`, `shape` of them for every element of it."""
    source, port = _as_pair(rate)
    return _add(graph, "RandomPoissonV2", shape, rate, dtype=source.output_types[port])


def get_session_tensor(graph: Graph, handle: TensorLike, dtype: DataType = DataType.FLOAT) -> Node:
    """The tensor that a session stores under a handle."""
    return _add(graph, "GetSessionTensor", handle, dtype=dtype)


# Transfers


def send(
    graph: Graph, value: TensorLike, tensor_name: str, sender: str, sender_incarnation: int, receiver: str
) -> Node:
    """Sends a tensor from one device to another under a name."""
    route = _route(tensor_name, sender, sender_incarnation, receiver)
    return _add(graph, "_Send", value, **route)


def recv(graph: Graph, tensor_name: str, dtype: DataType, sender: str, sender_incarnation: int, receiver: str) -> Node:
    """Receives the tensor that another device sends under that name."""
    route = _route(tensor_name, sender, sender_incarnation, receiver)
    return _add(graph, "_Recv", tensor_type=dtype, **route)


def _route(
    tensor_name: str, sender: str, sender_incarnation: int, receiver: str
) -> dict[str, Any]:  # Any: names and a number
    return {
        "tensor_name": tensor_name,
        "send_device": sender,
        "send_device_incarnation": sender_incarnation,
        "recv_device": receiver,
    }


# Arithmetic


def unary(graph: Graph, op: str, value: TensorLike) -> Node:
    """Any op of one input."""
    return _add(graph, op, value)


def binary(graph: Graph, op: str, left: TensorLike, right: TensorLike) -> Node:
    """Any op of two inputs."""
    return _add(graph, op, left, right)


def multi(graph: Graph, op: str, values: Sequence[TensorLike]) -> Node:
    """Any op whose only argument takes several tensors."""
    return _add(graph, op, list(values))


def identity(graph: Graph, value: TensorLike) -> Node:
    return _add(graph, "Identity", value)


def add(graph: Graph, left: TensorLike, right: TensorLike) -> Node:
    return _add(graph, "AddV2", left, right)


def less(graph: Graph, left: TensorLike, right: TensorLike) -> Node:
    return _add(graph, "Less", left, right)


def assign(graph: Graph, variable: TensorLike, value: TensorLike) -> Node:
    return _add(graph, "Assign", variable, value)


def cast(graph: Graph, value: TensorLike, dtype: DataType) -> Node:
    return _add(graph, "Cast", value, DstT=dtype)


def reduce(graph: Graph, op: str, value: TensorLike, axes: TensorLike, *, keep_dims: bool = False) -> Node:
    """A reduction such as "Sum" along some axes."""
    return _add(graph, op, value, axes, keep_dims=keep_dims)


def matmul(
    graph: Graph, left: TensorLike, right: TensorLike, *, transpose_a: bool = False, transpose_b: bool = False
) -> Node:
    """The product of two matrices."""
    return _add(graph, "MatMul", left, right, transpose_a=transpose_a, transpose_b=transpose_b)


def batch_matmul(
    graph: Graph, left: TensorLike, right: TensorLike, *, adj_x: bool = False, adj_y: bool = False
) -> Node:
    """The products of many matrices."""
    return _add(graph, "BatchMatMul", left, right, adj_x=adj_x, adj_y=adj_y)


def quantize_to_uint8(graph: Graph, value: TensorLike) -> Node:
    """Numbers from -1 to 1 as quint8; outputs 1 and 2 are that range.

    The original makes a Quantize node, an op that TensorFlow has no longer; QuantizeV2 took its place.
    """
    low, high = constant(graph, -1.0), constant(graph, 1.0)
    return _add(graph, "QuantizeV2", value, low, high, T=DataType.QUINT8)


# Neural nets


def relu(graph: Graph, value: TensorLike) -> Node:
    """Negative numbers become 0."""
    return _add(graph, "Relu", value)


def relu6(graph: Graph, value: TensorLike) -> Node:
    """Clips numbers to 0 ... 6."""
    return _add(graph, "Relu6", value)


def bias_add(graph: Graph, value: TensorLike, bias: TensorLike) -> Node:
    """Adds one number per channel, the last dimension."""
    return _add(graph, "BiasAdd", value, bias)


def conv2d(graph: Graph, value: TensorLike, kernel: TensorLike) -> Node:
    """A convolution of images [batch, height, width, channels], stride 1, padded to the same size."""
    return _add(graph, "Conv2D", value, kernel, strides=[1, 1, 1, 1], padding="SAME")


# Arrays


def reverse(graph: Graph, value: TensorLike, axes: TensorLike) -> Node:
    """Reverses the elements along some axes."""
    return _add(graph, "ReverseV2", value, axes)


def concat(graph: Graph, axis: TensorLike, values: Sequence[TensorLike]) -> Node:
    """Concatenates tensors along an axis."""
    return _add(graph, "Concat", axis, list(values))


def concat_v2(graph: Graph, values: Sequence[TensorLike], axis: TensorLike) -> Node:
    """Concatenates tensors along an axis."""
    return _add(graph, "ConcatV2", list(values), axis)


def select(graph: Graph, condition: TensorLike, if_true: TensorLike, if_false: TensorLike) -> Node:
    """Elements of one tensor or the other, chosen by `condition`."""
    return _add(graph, "Select", condition, if_true, if_false)


def gather(graph: Graph, value: TensorLike, indices: TensorLike, axis: TensorLike) -> Node:
    """Slices of a tensor along an axis."""
    return _add(graph, "GatherV2", value, indices, axis)


# Control flow


def no_op(graph: Graph, control: Sequence[Node] = ()) -> Node:
    """A NoOp that runs after all of `control`."""
    return _add(graph, "NoOp", control=control)


def switch(graph: Graph, value: TensorLike, predicate: TensorLike) -> Node:
    """The tensor at output 1 if the predicate is true, else at output 0; the other one is dead."""
    return _add(graph, "Switch", value, predicate)


def merge(graph: Graph, first: TensorLike, *others: TensorLike | str) -> Node:
    """A Merge, whose output is the input that is alive.

    A string names a node that is made later: the `next_` that closes a loop. Such a graph has to go through a GraphDef,
    whose import adds the edge. Raises InvalidArgumentError when `others` is empty.
    """
    if not others:
        raise InvalidArgumentError("a Merge wants at least two inputs; use identity for one")
    known = _as_pair(first)
    node = _add(graph, "Merge", [known, *(known if isinstance(other, str) else other for other in others)])
    written = node.requested_inputs
    for slot, other in enumerate(others, 1):
        if isinstance(other, str):
            graph.remove_edge(node.input_edge(slot))
            written[slot] = other
    graph.set_requested_inputs(node.id, written)
    return node


def enter(graph: Graph, value: TensorLike, frame_name: str) -> Node:
    """An Enter, which brings a tensor into a loop."""
    return _add(graph, "Enter", value, frame_name=frame_name)


def exit_(graph: Graph, value: TensorLike) -> Node:
    """An Exit, which takes a tensor out of its loop."""
    return _add(graph, "Exit", value)


def next_(graph: Graph, name: str, value: TensorLike) -> Node:
    """A NextIteration; it needs a name because a `merge` made before refers to it."""
    return _add(graph, "NextIteration", value, name=name)


def loop_cond(graph: Graph, value: TensorLike) -> Node:
    """A LoopCond: the loop goes on while its input is true."""
    return _add(graph, "LoopCond", value)


# Nodes for tests of failures and delays


def error(graph: Graph, value: TensorLike, message: str, *, log_error: bool = False) -> Node:
    """A node that fails with a message."""
    return _add(graph, "Error", value, message=message, log_error=log_error)


def invalid_ref_type(graph: Graph, declared: DataType, given: DataType) -> Node:
    """A node that declares a reference of one type and returns one of another."""
    return _add(graph, "InvalidRefType", TIn=declared, TOut=given)


def delay(graph: Graph, value: TensorLike, micros: int) -> Node:
    """The tensor, some microseconds later."""
    return _add(graph, "Delay", value, micros=micros)
