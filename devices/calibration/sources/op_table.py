"""Op timings in a CSV: `op,shapes,dtype,latency_ms`, and `attrs` as JSON where an op is not called with its defaults.

    MatMul,1024x512;512x64,bfloat16,0.0125                                   a product of m 1024, n 64, k 512
    Einsum,8x64x512;512x64,bfloat16,0.0125,{"equation": "abc,cd->abd"}       the same product
    AddV2,4096x4096;4096x4096,float32,0.071                                  moves 3 * 64 MiB
    Sum,4096x1024;1,float32,0.012,{"_output_shapes": [[4096]]}               its axes are no shape: the output is stated

Any op of the registry can be given. The type attrs that `attrs` leaves out are `dtype` where the op allows it; numbers
of inputs follow from `shapes`, in which "scalar" stands for a scalar. Shapes of outputs follow from those of inputs, or
are stated as `_output_shapes`. `op_rows.py` says what a row trains; it refuses what trains nothing, with the reason.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....errors import InvalidArgumentError, NotFoundError, PartitaError
from ....graph.attrs import encode
from ....graph.dtypes import DataType, Dims, item_size, parse_dtype
from ....graph.ops.attr_checks import check_value
from ....graph.ops.properties import NodeProperties, properties_of
from ....graph.ops.registry import OpSignature, lookup_op, op_names
from ....graph.shape_inference.op_shapes import in_a_step, shapes_of
from ....graph.suggestions import suggestion
from ...spec import DeviceSpec
from ...tables import naming
from ...timing.costs.source import context
from ..tables import ColumnSpec, MeasuredTable, read_table
from .measurements import MeasuredRow, Measurements, Refused, sorted_rows
from .op_rows import row_of

COLUMNS = (
    ColumnSpec("op"),
    ColumnSpec("shapes"),
    ColumnSpec("dtype"),
    ColumnSpec("latency_ms", "positive"),
    ColumnSpec("attrs", needed=False, may_be_empty=True),
)
_STATED = "_output_shapes"
TextedAttrs = Mapping[str, Any]  # Any: JSON


def read_op_table(path: Path, spec: DeviceSpec | None = None) -> Measurements:
    """The rows of a table of op timings on a device; InvalidArgumentError for a wrong column or cell.

    Products of half are used where they run at the rate of bfloat16, so not without a spec.
    """
    table = read_table(path, COLUMNS)
    return sorted_rows(_row(table, row, spec) for row in range(len(table)))


def _row(table: MeasuredTable, row: int, spec: DeviceSpec | None) -> MeasuredRow:
    op, where = table.texts("op")[row], table.where(row)
    inputs = _shapes(table.texts("shapes")[row], where)
    dtype = _dtype(table.texts("dtype")[row], where)
    attrs = _attrs(table.texts("attrs")[row] if "attrs" in table else "", where)
    try:
        signature = lookup_op(op)
    except NotFoundError:
        return Refused(where, f"{op!r} is no op of the registry{suggestion(op, op_names())}")
    try:
        properties = _properties(signature, dtype, len(inputs), attrs)
        _check_inputs(properties, inputs)
        outputs = in_a_step(properties, shapes_of(properties, inputs, {}), ())
    except PartitaError as error:
        raise InvalidArgumentError(f"{where}: {op}: {error.message}; check op, shapes, dtype and attrs") from None
    known = [shape for shape in outputs if shape is not None and None not in shape]
    if len(known) < len(properties.output_types):
        return Refused(
            where, f"the shapes of inputs do not tell those of outputs; give attrs {_STATED!r}: [[...], ...]"
        )
    dims = tuple(tuple(int(size or 0) for size in shape) for shape in known)
    time_ns = float(table.floats("latency_ms")[row]) * 1e6
    return row_of(context(properties, inputs, dims), time_ns, where, spec)


def _properties(signature: OpSignature, dtype: DataType, inputs: int, attrs: TextedAttrs) -> NodeProperties:
    """The properties of an op with so many inputs; raises PartitaError for attrs that are not those of the op."""
    filled = {**_type_attrs(signature, dtype), **_number_attrs(signature, dtype, inputs), **attrs}
    stated = filled.pop(_STATED, None)
    for name, value in filled.items():
        declared = signature.attrs.get(name)
        if declared is None:
            raise InvalidArgumentError(f"it has no attr {name!r}{suggestion(name, list(signature.attrs))}")
        check_value(encode(value, declared.type), declared)
    missing = [name for name, attr in signature.attrs.items() if attr.default is None and name not in filled]
    if missing:
        raise InvalidArgumentError(f"the attr {missing[0]!r} has no default; give it in the column attrs")
    return properties_of(
        signature.name, filled if stated is None else {**filled, _STATED: encode(stated, "list(shape)")}
    )


def _type_attrs(signature: OpSignature, dtype: DataType) -> dict[str, DataType]:
    """The type of the first input, and all types without a default, of which those of indices do not allow `dtype`."""
    first = {arg.type_attr for arg in signature.input_args[:1]}
    filled = {}
    for name, attr in signature.attrs.items():
        if attr.type == "type" and (attr.default is None or name in first):
            is_allowed = name in first or not attr.allowed or dtype in attr.allowed
            filled[name] = dtype if is_allowed or not attr.allowed else attr.allowed[0]
    return filled


def _number_attrs(signature: OpSignature, dtype: DataType, inputs: int) -> dict[str, object]:
    """The number of inputs, or their types, where one attr says it: the inputs that the others leave."""
    lists = [arg.number_attr or arg.type_list_attr for arg in signature.input_args]
    arguments = Counter(name for name in lists if name)
    if len(arguments) != 1:
        return {}
    ((name, sharing),) = arguments.items()
    count = max(0, (inputs - lists.count("")) // sharing)
    return {name: count if signature.attrs[name].type == "int" else (dtype,) * count}


def _check_inputs(properties: NodeProperties, shapes: tuple[Dims, ...]) -> None:
    if len(properties.input_types) != len(shapes):
        raise InvalidArgumentError(
            f"it has {len(properties.input_types)} inputs, shapes has {len(shapes)}, written as in 8x4;4x2"
        )


def _shapes(text: str, where: str) -> tuple[Dims, ...]:
    try:
        shapes = tuple(
            () if shape.strip() == "scalar" else tuple(int(size) for size in shape.split("x"))
            for shape in text.split(";")
        )
    except ValueError:
        raise InvalidArgumentError(
            f"{where}: shapes = {text!r} must be sizes as in 1024x512;512x64, or the word scalar"
        ) from None
    if any(size < 1 for shape in shapes for size in shape):
        raise InvalidArgumentError(f"{where}: shapes = {text!r} must have sizes above 0")
    return shapes


def _dtype(text: str, where: str) -> DataType:
    with naming(f"{where}: dtype"):
        dtype = parse_dtype(text)
    if not item_size(dtype):
        raise InvalidArgumentError(f"{where}: dtype = {text!r} has elements of no fixed size; give a type of numbers")
    return dtype


def _attrs(text: str, where: str) -> TextedAttrs:
    try:
        attrs = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        raise InvalidArgumentError(f"{where}: attrs = {text!r} is not JSON: {error}") from None
    if not isinstance(attrs, dict):
        raise InvalidArgumentError(f'{where}: attrs = {text!r} must be a JSON object such as {{"transpose_b": true}}')
    return attrs
