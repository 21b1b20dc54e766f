"""The table of value rules: op name -> how small integers that are known before a run go through the op.

Shapes are computed from such values. Only integers and booleans are followed, at most `MAX_ELEMENTS` of them, and only
where a run would compute the same. An op without a rule, or whose inputs are unknown, gives unknown values.

A scalar or vector may be partly known (the shape of a batch of unknown size). It is then a float64 array, a type that
fully known values never have, with NaN for every unknown element. NaN makes arithmetic with unknown numbers unknown,
and float64 is exact for sizes below `EXACT_BELOW`.

    Shape of (None, 28, 28)       array([nan, 28., 28.])
    StridedSlice [1:] of it       array([28, 28])           fully known: of the op's own type

To add a rule, write in a module `*_values` of the op's family

    array_rule("Neg", whole=())(lambda _, v: -v[0])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..dtypes import Array, DataType, Shape, known_dims, numpy_dtype
from ..ops.op_table import FAMILIES, OpTable
from ..ops.properties import NodeProperties

MAX_ELEMENTS = 1024
EXACT_BELOW = 2.0**53
_FOLLOWED = "iub"

InferredValues = Sequence[Array | None]


class ValueContext:
    """The arguments of a rule: attrs and types of the node, shapes and values of its inputs (None: unknown)."""

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
            sizes = known_dims(shape)
            if value is not None:
                values.append(value)
            elif numpy_dtype(dtype).kind in "iu" and sizes is not None and prod(sizes) <= MAX_ELEMENTS:
                values.append(np.full(sizes, np.nan))
            else:
                return None
        return values if any(value is not None for value in self.values) else None


ValueRule = Callable[[ValueContext], InferredValues | None]
"""gives one value per output, None for unknown ones, or None if all are unknown"""
ArrayFunction = Callable[[ValueContext, list[Array]], Any]  # Any: array, scalar or list of them
VALUES: OpTable[ValueRule] = OpTable("a value rule", FAMILIES, "_values", via=__name__)


def value_rule(*ops: str) -> Callable[[ValueRule], ValueRule]:
    """Registers the decorated rule for each of `ops`; AlreadyExistsError for an op that has one."""

    def register(rule: ValueRule) -> ValueRule:
        for op in ops:
            VALUES.add(op, rule)
        return rule

    return register


def array_rule(*ops: str, whole: Collection[int] | None = None) -> Callable[[ArrayFunction], None]:
    """Registers a function of all input values whose single result becomes an array of the output's type.

    With `whole`, it also gets partly known values; `whole` lists the inputs that must be fully known (-1: the last).
    """

    def register(function: ArrayFunction) -> None:
        @value_rule(*ops)
        def rule(c: ValueContext) -> InferredValues | None:
            known = c.known()
            if known is not None:
                return [np.asarray(function(c, known)).astype(c.dtype, copy=False)]
            partly = None if whole is None else c.partly_known(whole)
            return None if partly is None else [np.asarray(function(c, partly), np.float64)]

    return register


def is_small(value: Array) -> bool:
    """Whether a value is followed: shapes may be computed from it."""
    return value.dtype.kind in _FOLLOWED and value.size <= MAX_ELEMENTS


def is_partial(value: Array) -> bool:
    """Whether a value from `evaluate` has unknown elements."""
    return value.dtype.kind == "f"


def known_sizes(value: Array) -> tuple[int | None, ...]:
    """The elements of a partly known value in order, None for unknown ones."""
    return tuple(None if np.isnan(x) else int(x) for x in value.reshape(-1).tolist())


def sizes_value(shape: tuple[int | None, ...], dtype: np.dtype[Any]) -> Array:  # numpy's dtypes are generic
    """The value of a Shape op for that shape; partly known if a size is unknown."""
    if None not in shape:
        return np.array(shape, dtype)
    return np.array([np.nan if size is None else size for size in shape])


def follows_values(properties: NodeProperties) -> bool:
    """Whether `evaluate` may know anything of a node: its op has a rule, and an output a type whose values are kept."""
    return any(numpy_dtype(dtype).kind in _FOLLOWED for dtype in properties.output_types) and properties.op in VALUES


def evaluate(properties: NodeProperties, shapes: Sequence[Shape], values: InferredValues) -> list[Array | None]:
    """Values of a node's outputs, None for unknown ones; never raises for impossible values.

    Partly known values (see above) are accepted and returned.
    """
    types = properties.output_types
    rule = VALUES.get(properties.op) if follows_values(properties) else None
    try:
        results = None if rule is None else rule(ValueContext(properties, shapes, values))
    except (ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError):
        results = None  # the shape function or the run reports the error
    if results is None:
        return [None] * len(types)
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
