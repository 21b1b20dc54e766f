"""The table of op costs: the operations and bytes of one run of an op, from its attrs, types and shapes alone.

The modules `*_costs` of the families register the formulas. An elementwise op, as its record says, costs one operation
per output element without one; an op that passes references a fixed time of the host. Of any other op nothing is known:
its cost is guessed, as if it were elementwise. Counted or guessed, an op reads its inputs and writes its outputs once
where no count of bytes says otherwise. Ops that only wait have a time in place of a count. Costs may be memoised.

    TensorListPushBack    host time           1000 ns, no operations, no bytes
    AddV2                 in place (record)   an operation per output element
    Roll                  `moves`             no operation; inputs and outputs are moved
    StringLower           nothing             guessed: an operation per output element

An operation is one addition, multiplication or comparison: a fused multiply-add is two, as in datasheets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Literal, NamedTuple, TypeVar

from ...errors import InvalidArgumentError
from ...graph.dtypes import DataType, Dims, item_size
from ...graph.ops.op_table import OpTable
from ...graph.ops.record import record_of
from .op_forms import Convolution, Layer, Product

PortDims = tuple[Dims, ...]
"""the shapes of all inputs, or of all outputs, of a node, every size known"""


class CostContext(NamedTuple):
    """One use of an op: attrs, and the shapes and types of flattened inputs and outputs. All sizes are known."""

    op: str
    attrs: Mapping[str, Any]  # decoded attr values: their type depends on the attr
    inputs: PortDims
    outputs: PortDims
    input_types: tuple[DataType, ...]
    output_types: tuple[DataType, ...]

    def elements_in(self, index: int = 0) -> int:
        """Elements of input `index`; 0 where the op has no such input."""
        return prod(self.inputs[index]) if index < len(self.inputs) else 0

    def elements_out(self, index: int = 0) -> int:
        """Elements of output `index`; 0 where the op has no such output."""
        return prod(self.outputs[index]) if index < len(self.outputs) else 0

    def bytes_in(self, index: int) -> int:
        """Bytes of input `index`; 0 for elements without a fixed size."""
        return prod(self.inputs[index]) * item_size(self.input_types[index]) if index < len(self.inputs) else 0

    def bytes_out(self, index: int = 0) -> int:
        """Bytes of output `index`; 0 for elements without a fixed size."""
        return prod(self.outputs[index]) * item_size(self.output_types[index]) if index < len(self.outputs) else 0


T = TypeVar("T")
MatrixClass = Literal["product", "convolution", "attention", "grouped product", "factorisation"]
CountFunction = Callable[[CostContext], int]
ConvolutionOf = Callable[[CostContext], Convolution]
ProductOf = Callable[[CostContext], Product | None]
LayerOf = Callable[[CostContext], Layer | None]

_FLOPS: OpTable[CountFunction] = OpTable("a count of operations", __package__, "_costs", via=__name__)
_BYTES: OpTable[CountFunction] = OpTable("a count of bytes", __package__, "_costs", via=__name__)
_WAITS: OpTable[CountFunction] = OpTable("a count of nanoseconds", __package__, "_costs", via=__name__)
_HOST_TIMES: OpTable[CountFunction] = OpTable("a time of the host", __package__, "_costs", via=__name__)
_FREE: OpTable[bool] = OpTable("no cost", __package__, "_costs", via=__name__)
_COUNTS = (_FLOPS, _BYTES, _WAITS, _HOST_TIMES)
_PRODUCTS: OpTable[ProductOf] = OpTable("a matrix product", __package__, "_costs", via=__name__)
_CONVOLUTIONS: OpTable[ConvolutionOf] = OpTable("a convolution", __package__, "_costs", via=__name__)
_LAYERS: OpTable[LayerOf] = OpTable("a layer", __package__, "_costs", via=__name__)
_COMPUTED_IN: OpTable[DataType] = OpTable("a type to compute in", __package__, "_costs", via=__name__)
_MATRIX: dict[str, MatrixClass] = {}


def _register(table: OpTable[T], ops: Sequence[str]) -> Callable[[T], T]:
    def register(entry: T) -> T:
        for op in ops:
            table.add(op, entry)
        return entry

    return register


def flops(*ops: str, matrix: MatrixClass | None = None) -> Callable[[CountFunction], CountFunction]:
    """Registers the decorated operation count for each of `ops`.

    `matrix` marks ops that run on the units for matrix products (tensor cores), and is the class of ops whose times err
    in the same direction (`timing/costs/classes.py`).
    AlreadyExistsError if an op has a count.
    """
    if matrix is not None:
        _MATRIX.update(dict.fromkeys(ops, matrix))
    return _register(_FLOPS, ops)


def bytes_moved(*ops: str) -> Callable[[CountFunction], CountFunction]:
    """Registers the decorated count of bytes read and written for `ops`; AlreadyExistsError if one has a count."""
    return _register(_BYTES, ops)


def moves(*ops: str) -> None:
    """Registers ops that compute nothing, but read and write."""
    flops(*ops)(no_operations)


def products(*ops: str) -> Callable[[ProductOf], ProductOf]:
    """Registers the function that returns which matrix product one use of `ops` is, None for none.

    AlreadyExistsError if one of them has such a function.
    """
    return _register(_PRODUCTS, ops)


def convolutions(*ops: str) -> Callable[[ConvolutionOf], ConvolutionOf]:
    """Registers the function that returns which convolution of images one use of `ops` is.

    AlreadyExistsError if one of them has such a function.
    """
    return _register(_CONVOLUTIONS, ops)


def layers(*ops: str) -> Callable[[LayerOf], LayerOf]:
    """Registers the function that returns which layer one use of `ops` is, None for one that no fit describes.

    AlreadyExistsError if one of them has such a function.
    """
    return _register(_LAYERS, ops)


def computes_in(dtype: DataType, *ops: str) -> None:
    """Registers ops whose factors are rounded to a narrower type than tensors have: they run at its rate.

    AlreadyExistsError if one of them has such a type.
    """
    _register(_COMPUTED_IN, ops)(dtype)


def waits(*ops: str) -> Callable[[CountFunction], CountFunction]:
    """Registers the decorated count of nanoseconds that `ops` wait on any device, in addition to computing."""
    return _register(_WAITS, ops)


def takes_host_time(time_ns: int, *ops: str) -> None:
    """Registers ops that take a fixed time of the host and move no bytes, however large the tensors are that they pass.

    On a device that launches kernels, none is launched for them. InvalidArgumentError unless the time is a whole
    number from 0 on.
    """
    if type(time_ns) is not int or time_ns < 0:
        raise InvalidArgumentError(f"a time of {time_ns!r} ns of the host must be a whole number from 0 on")

    def host_time(c: CostContext) -> int:
        return time_ns

    _register(_HOST_TIMES, ops)(host_time)


def elementwise(*ops: str) -> None:
    """Registers ops that compute each output element with one operation, and do not say so in their records."""
    flops(*ops)(elements_written)


def free(*ops: str) -> None:
    """Registers ops that take no time on a device: they only pass on names or shapes. Views are free anyway."""
    _register(_FREE, ops)(True)


def tables() -> dict[str, OpTable[CountFunction]]:
    """All counts, by what they count and by op."""
    names = "operations", "bytes", "nanoseconds", "nanoseconds of the host"
    return dict(zip(names, _COUNTS, strict=True))


def is_free(op: str) -> bool:
    """Whether nodes of that op take no time."""
    return record_of(op).is_view or op in _FREE


def matrix_class(op: str) -> MatrixClass | None:
    """What an op computes on the units for matrix products; None for one that does not run there."""
    return _MATRIX.get(op) if op in _FLOPS else None


def is_matrix(op: str) -> bool:
    """Whether that op runs on the units for matrix products."""
    return matrix_class(op) is not None


def has_formula(op: str) -> bool:
    """Whether the operations or the bytes of that op have a formula of their own."""
    return op in _FLOPS or op in _BYTES


def is_stated(op: str) -> bool:
    """Whether anything says what that op costs: a count, a time, its record, or what it calls; else it is guessed."""
    record = record_of(op)
    return (
        op in _FREE
        or any(op in table for table in _COUNTS)
        or record.is_view
        or record.in_place
        or record.calls is not None
    )


def is_on_host(op: str) -> bool:
    """Whether that op takes a fixed time of the host, which launches no kernel for it."""
    return op in _HOST_TIMES


def host_ns(c: CostContext) -> int:
    """The fixed time of an op that `is_on_host`."""
    return _HOST_TIMES[c.op](c)


def flops_of(c: CostContext) -> int:
    """Operations of one run of the op; InvalidArgumentError when its shapes cannot be those of such an op."""
    if is_free(c.op) or is_on_host(c.op):
        return 0
    return counted(flops_rule(c.op), c)


def flops_rule(op: str) -> CountFunction:
    """The function that counts the operations of an op that takes time on its device; see `counted`."""
    return _FLOPS.get(op) or elements_written


def product_of(c: CostContext) -> Product | None:
    """The matrix product that the op is; None for other ops, for empty tensors and where shapes do not fit the op."""
    find = _PRODUCTS.get(c.op)
    if find is None:
        return None
    try:
        product = find(c)
    except (IndexError, ValueError, ZeroDivisionError):
        return None
    return product if product is not None and min(product[:4]) > 0 else None


def is_convolution(op: str) -> bool:
    """Whether uses of that op are convolutions of images."""
    return op in _CONVOLUTIONS


def convolution_of(c: CostContext) -> Convolution | None:
    """The convolution that the op is; None for other ops, for empty tensors and where shapes do not fit the op."""
    find = _CONVOLUTIONS.get(c.op)
    if find is None:
        return None
    try:
        convolution = find(c)
    except (IndexError, ValueError, ZeroDivisionError):
        return None
    return convolution if min(convolution[1:10]) > 0 else None


def is_layer(op: str) -> bool:
    """Whether uses of that op may be layers of which there are fits."""
    return op in _LAYERS


def layer_of(c: CostContext) -> Layer | None:
    """The layer that the op is; None for other ops, for empty tensors and where shapes do not fit the op."""
    find = _LAYERS.get(c.op)
    if find is None:
        return None
    try:
        layer = find(c)
    except (IndexError, ValueError, ZeroDivisionError):
        return None
    return layer if layer is not None and min(layer.sizes.values()) > 0 else None


def computed_in(op: str) -> DataType | None:
    """The type that the factors of an op are rounded to; None for one that computes in the types of its tensors."""
    if op not in _COMPUTED_IN:  # as nearly all: no KeyError is made
        return None
    return _COMPUTED_IN[op]


def factor_bytes(c: CostContext) -> int:
    """Bytes of an element of the first input, as the op reads it."""
    return item_size(_COMPUTED_IN.get(c.op) or c.input_types[0])


def may_wait(op: str) -> bool:
    """Whether that op waits at all: `waits_ns` is 0 for others."""
    return op in _WAITS


def waits_ns(c: CostContext) -> int:
    """Nanoseconds that one run of the op waits, whatever the device; 0 for nearly all ops."""
    count = _WAITS.get(c.op)
    return count(c) if count is not None else 0


def bytes_of(c: CostContext) -> int:
    """Bytes that one run of the op reads and writes; InvalidArgumentError when its shapes cannot be right."""
    if is_free(c.op) or is_on_host(c.op):
        return 0
    return counted(bytes_rule(c.op), c)


def bytes_rule(op: str) -> CountFunction:
    """The function that counts the bytes of an op that takes time on its device; see `counted`."""
    return _BYTES.get(op) or tensor_bytes


def counted(count: CountFunction, c: CostContext) -> int:
    """What a rule counts; InvalidArgumentError when the shapes cannot be those of such an op."""
    try:
        return count(c)
    except (IndexError, ValueError):
        raise InvalidArgumentError(
            f"no cost for shapes {list(c.inputs)} -> {list(c.outputs)}: they do not fit the op; feed the real shapes",
            op=c.op,
        ) from None


def no_operations(_: CostContext) -> int:
    """Of an op that only moves bytes."""
    return 0


def elements_written(c: CostContext) -> int:
    """Elements of all outputs together."""
    return sum(map(prod, c.outputs))


def elements_read(c: CostContext) -> int:
    """Elements of the first input: a reduction adds up or compares each of them once."""
    return c.elements_in()


def rows_picked(c: CostContext) -> int:
    """Bytes of a gather: the rows picked are read and written, the indices are read, the other rows are not touched."""
    return 2 * c.bytes_out() + c.bytes_in(1)


def input_bytes(c: CostContext) -> int:
    """Bytes of all inputs together."""
    return sum(prod(dims) * item_size(dtype) for dims, dtype in zip(c.inputs, c.input_types, strict=True))


def output_bytes(c: CostContext) -> int:
    """Bytes of all outputs together."""
    return sum(prod(dims) * item_size(dtype) for dims, dtype in zip(c.outputs, c.output_types, strict=True))


def tensor_bytes(c: CostContext) -> int:
    """Bytes of all inputs and outputs together."""
    return input_bytes(c) + output_bytes(c)


def copied_inputs(c: CostContext) -> int:
    """Bytes of a split, whose parts the op keeps elsewhere: the inputs are read, and written once."""
    return 2 * input_bytes(c)


def copied_outputs(c: CostContext) -> int:
    """Bytes of a join of what the op keeps elsewhere: it is read, and written as the outputs."""
    return 2 * output_bytes(c)
