"""The roles of axes in general products, convolutions and gathers, read from the attr `dimension_numbers`.

The attr is a serialised protobuf message of `xla_data.proto` whose fields are all numbers of axes.

    0a 01 01 12 01 00    {1: [1], 2: [0]}: a dot that contracts axis 1 of the left with axis 0 of the right operand
"""

from __future__ import annotations

from typing import NamedTuple

from ....errors import DataLossError, InvalidArgumentError
from ...varint import read_varint

Axes = tuple[int, ...]


class DotNumbers(NamedTuple):
    """Axes of the operands of a dot; the others are free. The result has batch axes, free left, free right ones."""

    left_contracted: Axes
    right_contracted: Axes
    left_batch: Axes
    right_batch: Axes


class GatherNumbers(NamedTuple):
    """What the axes of operand, start indices and result of a gather are."""

    offset: Axes
    """axes of the result that run within a slice"""
    collapsed: Axes
    """axes of the operand, of slice size 1, that the result lacks"""
    start_map: Axes
    """the axis of the operand that each component of a start index is for"""
    vector_axis: int
    """the axis of the start indices along which the components of one index lie; the rank if there is none"""
    operand_batch: Axes
    index_batch: Axes


class ConvNumbers(NamedTuple):
    """The axes of operands and result of a convolution: (batch, features, spatial...) of each.

    For the filter they are (output features, input features, spatial...).
    """

    image: Axes
    window: Axes
    result: Axes


def _fields(data: bytes) -> dict[int, list[int]]:
    """All numbers of a message, by field, packed or not; InvalidArgumentError for other bytes."""
    numbers: dict[int, list[int]] = {}
    position = 0
    try:
        while position < len(data):
            tag, position = read_varint(data, position)
            end = position
            if tag & 7 == 2:
                size, position = read_varint(data, position)
                end = position + size
            elif tag & 7:
                raise DataLossError(f"wire type {tag & 7} is no number")
            items = numbers.setdefault(tag >> 3, [])
            while position < end or not tag & 7:
                item, position = read_varint(data, position)
                items.append(item)
                if not tag & 7:
                    break
    except DataLossError as error:
        raise InvalidArgumentError(f"Error parsing dimension numbers: {error.message}") from error
    return numbers


def _axes(fields: dict[int, list[int]], *numbers: int) -> Axes:
    """The axes in some fields, one after the other."""
    return tuple(axis for number in numbers for axis in fields.get(number, ()))


def _axis(fields: dict[int, list[int]], number: int) -> int:
    return fields.get(number, [0])[-1]


def dot_numbers(data: bytes) -> DotNumbers:
    """Reads `xla.DotDimensionNumbers`."""
    fields = _fields(data)
    return DotNumbers(_axes(fields, 1), _axes(fields, 2), _axes(fields, 3), _axes(fields, 4))


def gather_numbers(data: bytes) -> GatherNumbers:
    """Reads `xla.GatherDimensionNumbers`."""
    fields = _fields(data)
    return GatherNumbers(
        _axes(fields, 1), _axes(fields, 2), _axes(fields, 3), _axis(fields, 4), _axes(fields, 5), _axes(fields, 6)
    )


def uniform_conv_numbers(data: bytes, rank: int) -> ConvNumbers:
    """Reads `UniformQuantizedConvolutionDimensionNumbersAttr`; no bytes are axes in the order of `ConvNumbers`."""
    if not data:
        in_order = tuple(range(rank))
        return ConvNumbers(in_order, in_order, in_order)
    fields = _fields(data)
    return ConvNumbers(
        (_axis(fields, 1), _axis(fields, 2), *_axes(fields, 3)),
        (_axis(fields, 5), _axis(fields, 4), *_axes(fields, 6)),
        (_axis(fields, 7), _axis(fields, 8), *_axes(fields, 9)),
    )


def conv_numbers(data: bytes) -> ConvNumbers:
    """Reads `xla.ConvolutionDimensionNumbers`."""
    fields = _fields(data)
    return ConvNumbers(
        (_axis(fields, 7), _axis(fields, 8), *_axes(fields, 11)),
        (_axis(fields, 4), _axis(fields, 3), *_axes(fields, 6)),
        (_axis(fields, 9), _axis(fields, 10), *_axes(fields, 12)),
    )
