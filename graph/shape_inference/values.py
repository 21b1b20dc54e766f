"""Small integer values that are known before a run, from which shapes are computed.

Only integers and booleans are followed, at most `MAX_ELEMENTS` of them, and only where a run would compute the same. An
op that is not listed, or whose inputs are unknown, gives unknown values.

A scalar or vector may be partly known (the shape of a batch of unknown size). It is then a float64 array, a type that
fully known values never have, with NaN for every unknown element. NaN makes arithmetic with unknown numbers unknown,
and float64 is exact for sizes below `EXACT_BELOW`.

    Shape of (None, 28, 28)       array([nan, 28., 28.])
    StridedSlice [1:] of it       array([28, 28])           fully known: of the op's own type
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError
from ..dtypes import Array, DataType, Shape, numpy_dtype
from ..ops.properties import NodeProperties

MAX_ELEMENTS = 1024
EXACT_BELOW = 2.0**53

InferredValues = Sequence[Array | None]


class ValueContext:
    """The arguments of an evaluator: attrs and types of the node, shapes and values of its inputs (None: unknown)."""

    __slots__ = ("properties", "shapes", "values")

    def __init__(self, properties: NodeProperties, shapes: Sequence[Shape], values: InferredValues) -> None:
        self.properties = properties
        self.shapes = shapes
        self.values = values

    @property
    def attrs(self) -> Mapping[str, Any]:  # decoded attr values: their type depends on the attr
        """Attrs of the node."""
        return self.properties.attrs

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy dtype of the first output."""
        return numpy_dtype(self.properties.output_types[0])

    def known(self) -> list[Array] | None:
        """All input values, or None if one is unknown."""
        values = [value for value in self.values if value is not None and not is_partial(value)]
        return values if len(values) == len(self.values) else None

    def partly_known(self, whole: Collection[int]) -> list[Array] | None:
        """All input values with NaN for unknown elements; None if an input in `whole` is not fully known.

        Also None if no value is known even in part, or if an input's number of elements is unknown.
        """
        count = len(self.values)
        if any((value := self.values[i % count]) is None or is_partial(value) for i in whole):
            return None
        values: list[Array] = []
        for value, shape, dtype in zip(self.values, self.shapes, self.properties.input_types, strict=True):
            sizes = _sizes(shape)
            if value is not None:
                values.append(value)
            elif numpy_dtype(dtype).kind in "iu" and sizes is not None and prod(sizes) <= MAX_ELEMENTS:
                values.append(np.full(sizes, np.nan))
            else:
                return None
        return values if any(value is not None for value in self.values) else None


ValueRule = Callable[[ValueContext], InferredValues | None]
_EVALUATORS: dict[str, ValueRule] = {}


def _evaluator(*ops: str) -> Callable[[ValueRule], ValueRule]:
    def register(function: ValueRule) -> ValueRule:
        _EVALUATORS.update(dict.fromkeys(ops, function))
        return function

    return register


def is_small(value: Array) -> bool:
    """Whether a value is followed: shapes may be computed from it."""
    return value.dtype.kind in "iub" and value.size <= MAX_ELEMENTS


def is_partial(value: Array) -> bool:
    """Whether a value from `evaluate` has unknown elements."""
    return value.dtype.kind == "f"


def known_sizes(value: Array) -> tuple[int | None, ...]:
    """The elements of a partly known value in order, None for unknown ones."""
    return tuple(None if np.isnan(x) else int(x) for x in value.reshape(-1).tolist())


def can_evaluate(op: str) -> bool:
    """Whether output values of that op can be computed from input values."""
    return op in _EVALUATORS


def evaluate(properties: NodeProperties, shapes: Sequence[Shape], values: InferredValues) -> list[Array | None]:
    """Values of a node's outputs, None for unknown ones; never raises for impossible values.

    Partly known values (see above) are accepted and returned.
    """
    evaluator = _EVALUATORS.get(properties.op)
    count = len(properties.output_types)
    if evaluator is None:
        return [None] * count
    try:
        results = evaluator(ValueContext(properties, shapes, values))
    except (ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError):
        return [None] * count  # the shape function or the run reports the error
    if results is None:
        return [None] * count
    types = properties.output_types
    return [None if value is None else _kept(value, types[i]) for i, value in enumerate(results)]


def _kept(value: Array, dtype: DataType) -> Array | None:
    """`value` if it is followed (small and not entirely unknown), in its own type if it is fully known; else None."""
    if not is_partial(value):
        return value if is_small(value) else None
    unknown, target = np.isnan(value), numpy_dtype(dtype)
    limit = min(EXACT_BELOW, 2.0 ** (8 * target.itemsize - 1))
    if target.kind not in "iu" or unknown.all() or value.size > MAX_ELEMENTS or np.nanmax(np.abs(value)) >= limit:
        return None
    return value if unknown.any() else value.astype(target)


@_evaluator("Const", "HostConst")
def _const(c: ValueContext) -> InferredValues | None:
    attrs = c.properties.attrs
    try:  # large constants are not decoded
        is_followed = c.dtype.kind in "iub" and prod(attrs.tensor_shape("value")) <= MAX_ELEMENTS
        return [attrs["value"]] if is_followed else None
    except InvalidArgumentError:
        return None  # damaged: the run reports it


@_evaluator(
    *(
        "Identity",
        "IdentityN",
        "StopGradient",
        "PreventGradient",
        "Snapshot",
        "EnsureShape",
        "Enter",
        "Exit",
        "LoopCond",
    ),
    *("RefIdentity", "RefEnter", "RefExit", "GuaranteeConst"),
)
def _unchanged(c: ValueContext) -> InferredValues:
    return c.values


@_evaluator("Switch", "RefSwitch")
def _switch(c: ValueContext) -> InferredValues:
    return [c.values[0], c.values[0]]


def _sizes(shape: Shape) -> list[int] | None:
    if shape is None:
        return None
    known = [size for size in shape if size is not None]
    return known if len(known) == len(shape) else None


@_evaluator("Shape", "ShapeN")
def _shape(c: ValueContext) -> InferredValues:
    return [None if shape is None else sizes_value(shape, c.dtype) for shape in c.shapes]


def sizes_value(shape: tuple[int | None, ...], dtype: np.dtype[Any]) -> Array:  # numpy's dtypes are generic
    """The value of a Shape op for that shape; partly known if a size is unknown."""
    if None not in shape:
        return np.array(shape, dtype)
    return np.array([np.nan if size is None else size for size in shape])


@_evaluator("Size")
def _size(c: ValueContext) -> InferredValues | None:
    sizes = _sizes(c.shapes[0])
    return None if sizes is None else [np.array(np.prod(sizes, dtype=np.int64), c.dtype)]


@_evaluator("Rank")
def _rank(c: ValueContext) -> InferredValues | None:
    shape = c.shapes[0]
    return None if shape is None else [np.array(len(shape), c.dtype)]


def _of_all(
    *ops: str, whole: Collection[int] | None = None
) -> Callable[[Callable[[ValueContext, list[Array]], Any]], None]:
    """Registers a function of all input values whose single result becomes an array of the output's type.

    With `whole`, it also gets partly known values; `whole` lists the inputs that must be fully known (-1: the last).
    """

    def register(function: Callable[[ValueContext, list[Array]], Any]) -> None:  # Any: array, scalar or list of them
        def evaluator(c: ValueContext) -> InferredValues | None:
            known = c.known()
            if known is not None:
                return [np.asarray(function(c, known)).astype(c.dtype, copy=False)]
            partly = None if whole is None else c.partly_known(whole)
            return None if partly is None else [np.asarray(function(c, partly), np.float64)]

        _EVALUATORS.update(dict.fromkeys(ops, evaluator))

    return register


_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {  # Any: numpy's ufuncs take and give arrays of any type
    "Add": np.add,
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
}
_LOGICAL: Mapping[str, Callable[[Any, Any], Any]] = {  # Any: as above
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
}


@_of_all(*_BINARY, whole=())
def _binary(c: ValueContext, v: list[Array]) -> Any:  # Any: see _of_all
    if c.properties.op in ("FloorDiv", "FloorMod") and not np.all(v[1]):
        raise ZeroDivisionError
    return _BINARY[c.properties.op](v[0], v[1])


@_of_all(*_LOGICAL)
def _logical(c: ValueContext, v: list[Array]) -> Any:  # Any: see _of_all
    return _LOGICAL[c.properties.op](v[0], v[1])


_of_all("Cast", whole=())(lambda _, v: v[0])
_of_all("Neg", whole=())(lambda _, v: -v[0])
_of_all("LogicalNot")(lambda _, v: ~v[0])
_of_all("Pack", whole=())(lambda c, v: np.stack(v, axis=c.attrs["axis"]))
_of_all("Concat", whole=(0,))(lambda _, v: np.concatenate(v[1:], axis=int(v[0])))
_of_all("ConcatV2", whole=(-1,))(lambda _, v: np.concatenate(v[:-1], axis=int(v[-1])))
_of_all("Reshape", whole=(1,))(lambda _, v: v[0].reshape(v[1].tolist()))
_of_all("Squeeze", whole=())(lambda c, v: v[0].squeeze(tuple(c.attrs["squeeze_dims"]) or None))
_of_all("ExpandDims", whole=(1,))(lambda _, v: np.expand_dims(v[0], int(v[1])))
_of_all("Tile", whole=(1,))(lambda _, v: np.tile(v[0], v[1].tolist()))
_of_all("Transpose", whole=(1,))(lambda _, v: v[0].transpose(v[1].tolist()))
_of_all("ReverseV2", whole=(1,))(lambda _, v: np.flip(v[0], tuple(v[1].reshape(-1).tolist())))
_of_all("InvertPermutation")(lambda _, v: np.argsort(v[0]))
_of_all("ZerosLike")(lambda _, v: np.zeros_like(v[0]))
_of_all("OnesLike")(lambda _, v: np.ones_like(v[0]))
_of_all("Select", "SelectV2", whole=(0,))(lambda _, v: np.where(v[0], v[1], v[2]))
_of_all("BroadcastArgs")(lambda _, v: np.broadcast_shapes(v[0].tolist(), v[1].tolist()))


@_of_all("Fill")
def _fill(_: ValueContext, v: list[Array]) -> Any:  # Any: see _of_all
    if np.prod(v[0], dtype=np.int64) > MAX_ELEMENTS:
        raise OverflowError
    return np.full(v[0].tolist(), v[1])


@_of_all("Range")
def _range(_: ValueContext, v: list[Array]) -> Any:  # Any: see _of_all
    numbers = range(int(v[0]), int(v[1]), int(v[2]))
    if len(numbers) > MAX_ELEMENTS:
        raise OverflowError
    return np.array(numbers)


_REDUCTIONS: Mapping[str, Callable[..., Any]] = {  # Any: as above
    "Sum": np.sum,
    "Prod": np.prod,
    "Max": np.max,
    "Min": np.min,
    "All": np.all,
    "Any": np.any,
}


def _reduce(c: ValueContext, v: list[Array]) -> Any:  # Any: see _of_all
    axes = tuple(v[1].reshape(-1).tolist())
    return _REDUCTIONS[c.properties.op](v[0], axis=axes, keepdims=bool(c.attrs["keep_dims"]))


_of_all("Sum", "Prod", "Max", "Min", whole=(1,))(_reduce)
_of_all("All", "Any")(_reduce)


@_of_all("Gather", "GatherV2", whole=(1, -1))
def _gather(c: ValueContext, v: list[Array]) -> Any:  # Any: see _of_all
    if c.attrs.get("batch_dims"):
        raise IndexError
    return np.take(v[0], v[1], axis=int(v[2]) if len(v) > 2 else 0)


@_of_all("Slice", whole=(1, 2))
def _slice(_: ValueContext, v: list[Array]) -> Any:  # Any: see _of_all
    cuts = zip(v[1].tolist(), v[2].tolist(), strict=True)
    return v[0][tuple(slice(begin, None if size < 0 else begin + size) for begin, size in cuts)]


@_of_all("StridedSlice", whole=(1, 2, 3))
def _strided_slice(c: ValueContext, v: list[Array]) -> Any:  # Any: see _of_all
    masks = {name: int(c.attrs[f"{name}_mask"]) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    index: list[slice | int | Any | None] = []  # Any: the ellipsis has a type without a public name
    for i, (begin, end, stride) in enumerate(zip(*(x.tolist() for x in v[1:]), strict=True)):
        bit = 1 << i
        if masks["ellipsis"] & bit:
            index.append(...)
        elif masks["new_axis"] & bit:
            index.append(None)
        elif masks["shrink_axis"] & bit:
            index.append(begin)
        else:
            index.append(slice(None if masks["begin"] & bit else begin, None if masks["end"] & bit else end, stride))
    return v[0][tuple(index)]


@_evaluator("Unpack")
def _unpack(c: ValueContext) -> InferredValues | None:
    known = c.known() or c.partly_known(())
    return None if known is None else list(np.moveaxis(known[0], c.attrs["axis"], 0))


@_evaluator("Split")
def _split(c: ValueContext) -> InferredValues | None:
    known = c.known() or c.partly_known((0,))
    return None if known is None else np.split(known[1], c.attrs["num_split"], axis=int(known[0]))


@_evaluator("BroadcastGradientArgs")
def _broadcast_gradient_args(c: ValueContext) -> InferredValues | None:
    """The axes along which either operand was broadcast: where it has size one (or no axis) in the common shape."""
    known = c.known()
    if known is None:
        return None
    shapes = [value.tolist() for value in known]
    if shapes[0] == shapes[1]:
        return [np.array([], c.dtype)] * 2
    rank = max(map(len, shapes))
    padded = ([1] * (rank - len(shape)) + shape for shape in shapes)
    return [np.array([i for i, size in enumerate(shape) if size == 1], c.dtype) for shape in padded]


@_evaluator("ConcatOffset")
def _concat_offset(c: ValueContext) -> InferredValues | None:
    known = c.known() or c.partly_known((0,))
    if known is None:
        return None
    axis, shapes, start = int(known[0]), known[1:], 0
    offsets = []
    for shape in shapes:
        offset = np.zeros(shape.shape, np.result_type(shape, start))
        offset[axis] = start
        start += shape[axis]
        offsets.append(offset)
    return offsets


@_evaluator("Unique")
def _unique(c: ValueContext) -> InferredValues | None:
    """The distinct elements in order of appearance, and by position the index of its element among them."""
    known = c.known()
    if known is None:
        return None
    numbers: dict[int, int] = {}
    places = [numbers.setdefault(element, len(numbers)) for element in known[0].tolist()]
    return [np.array(list(numbers), c.dtype), np.array(places, numpy_dtype(c.properties.output_types[1]))]


@_evaluator("ListDiff")
def _list_diff(c: ValueContext) -> InferredValues | None:
    """The elements of the first list that are not in the second, and their positions."""
    known = c.known()
    if known is None:
        return None
    places = np.flatnonzero(~np.isin(known[0], known[1]))
    return [known[0][places], places.astype(numpy_dtype(c.properties.output_types[1]))]
