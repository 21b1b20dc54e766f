"""Functions of scalars that ops of XLA apply to arrays: reducers, comparators, what a scatter combines.

A general function is called once per element. Two sorts of bodies need fewer calls:
- One that is elementwise itself (arithmetic on the arguments and on scalar constants) is called once with arrays.
- One that is a single operation of two numbers has a ufunc of numpy, and is not called at all.

    f(a, b) = a + b                      operation ("AddV2", (0, 1)), ufunc np.add
    f(a, b) = b                          operation ("Identity", (1,))
    f(a, b) = where(a > b, a, b * 2)     one call for all elements
    f(a, b) = reduce_sum([a, b])         a call per element
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from ....graph.dtypes import Array, DataType, dtype_name, numpy_dtype
from ....graph.functions.body import FunctionBody, instantiate_call
from ....graph.node import Node
from ....graph.ops.record import NodeClass, record_of
from ..datasets.dataset import CapturedFunction, PullSteps
from ..datasets.pulling import compute
from ..registry import Call, Construction

KnownComputation = tuple[str, tuple[int, ...]]
"""an op, and the positions of the arguments that it is applied to"""

UFUNCS = {
    "Add": np.add,
    "AddV2": np.add,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mul": np.multiply,
}
"""the commutative operations that numpy has, by op"""
_ONE_SHAPE = frozenset({"AccumulateNV2", "AddN", "ApproximateEqual", "Select"})
"""elementwise only where all inputs have one shape, which a constant in a body has not"""
_NOT_ELEMENTWISE = frozenset({"Bitcast", "BroadcastGradientArgs", "Cross"})
"""the other ops of the elementwise family"""
_ENDS = frozenset({NodeClass.ARG, NodeClass.RETVAL, NodeClass.NO_OP})


def is_elementwise(op: str) -> bool:
    """Whether element i of the output depends on elements i of the inputs only, after broadcasting."""
    return record_of(op).family == "elementwise" and op not in _ONE_SHAPE | _NOT_ELEMENTWISE


class XlaComputation:
    """The function that an attr of a node names."""

    def __init__(
        self, node: Construction, attr: str, arguments: Sequence[DataType], results: Sequence[DataType]
    ) -> None:
        """InvalidArgumentError unless arguments and results have these types; raises the errors of instantiation.

        A function that does not exist is a FailedPreconditionError where TensorFlow translates the node as a graph.
        """
        function = node.function(attr)
        try:
            body = instantiate_call(function.provider.library, function.function)
        except NotFoundError as error:
            raise error if node.op == "XlaScatter" else FailedPreconditionError(error.message) from None
        if (body.argument_types, body.result_types) != (tuple(arguments), tuple(results)):
            wanted, actual = _signature(arguments, results), _signature(body.argument_types, body.result_types)
            raise InvalidArgumentError(f"{attr} {body.name!r} must be a function {wanted}, but is {actual}")
        self._function = CapturedFunction(function, ())
        self._takes_arrays = all(_takes_arrays(node) for node in body.graph.op_nodes())
        self._types = [numpy_dtype(dtype) for dtype in results]
        self.operation = _operation(body)
        """what the function is, if it is a single operation of arguments"""

    @property
    def ufunc(self) -> np.ufunc | None:
        """The ufunc that a function of two arguments is, if it is one."""
        op, positions = self.operation or ("", ())
        return UFUNCS.get(op) if sorted(positions) == [0, 1] else None

    def each(self, *arrays: Array) -> PullSteps[tuple[Array, ...]]:
        """The results for each element of arrays of one shape: arrays of that shape."""
        shape = arrays[0].shape
        if self._takes_arrays:
            results = yield from self._function(*arrays)
            yield None
            return tuple([np.broadcast_to(result, shape) for result in results])
        outputs = tuple([np.empty(shape, dtype) for dtype in self._types])
        for place in np.ndindex(shape):
            results = yield from self._function(*[array[place] for array in arrays])
            for output, result in zip(outputs, results, strict=True):
                output[place] = result
            yield None
        return outputs


def reducer(node: Construction, attr: str, types: Sequence[DataType]) -> XlaComputation:
    """A function of numbers of these types, and as many more of them, that gives numbers of these types."""
    return XlaComputation(node, attr, (*types, *types), types)


def carry_out(call: Call, steps: PullSteps[Sequence[Any]]) -> None:
    """Carries out steps for a call, and ends it with what they return."""
    compute(call, steps, lambda results: call.done(*results), "XLA")


def _signature(arguments: Sequence[DataType], results: Sequence[DataType]) -> str:
    names = [", ".join(map(dtype_name, types)) for types in (arguments, results)]
    return f"({names[0]}) -> ({names[1]})"


def _takes_arrays(node: Node) -> bool:
    """Whether a node in a function of scalars computes element by element if the arguments are arrays."""
    if node.node_class is NodeClass.CONSTANT:
        return not np.shape(node.attrs["value"])
    return node.node_class in _ENDS or node.op_def.record.passes_on or is_elementwise(node.op)


def _source(node: Node, index: int) -> Node:
    """The node whose output reaches input `index`, through nodes that pass it on."""
    source = node.input_edge(index).src
    return _source(source, 0) if source.op_def.record.passes_on else source


def _operation(body: FunctionBody) -> KnownComputation | None:
    if len(body.results) != 1:
        return None
    last = _source(body.results[0], 0)
    if last in body.arguments:
        return "Identity", (body.arguments.index(last),)
    sources = [_source(last, index) for index in range(last.num_inputs)]
    if not all(source in body.arguments for source in sources):
        return None
    return last.op, tuple([body.arguments.index(source) for source in sources])
