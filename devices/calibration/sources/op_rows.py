"""A timed op -> a row of the fit that it can train, or why there is none.

    MatMul of bfloat16 (8, 4) x (4, 2), 5 us     TimedProduct(8, 2, 4, 1, "NN", 5000)
    AddV2 of float (8, 4) + (4), 2 us            TimedMove(272 bytes, 2000)
    Conv2D, MatMul of float, Cholesky            Refused, with the reason

Which product an op is, and which bytes it moves, say the formulas that its cost comes from: what a fit is asked for is
what it was trained with.
"""

from __future__ import annotations

from ....errors import InvalidArgumentError
from ....graph.dtypes import DataType, base_type, dtype_name
from ...kernels import op_cost
from ...kernels.op_cost import CostContext
from ...spec import DeviceSpec
from ...timing.costs.roofline import ceil_ns
from ...timing.costs.source import rate_type
from ...timing.fits.memory_bound import kind_of
from ...timing.fits.products import bf16_peak
from .measurements import MeasuredRow, Refused, TimedMove, TimedProduct


def row_of(c: CostContext, time_ns: float, where: str, spec: DeviceSpec | None) -> MeasuredRow:
    """The row of one op; `spec` is the device that it was timed on, None if only bfloat16 can be told from its rate."""
    if op_cost.is_free(c.op):
        return Refused(where, f"{c.op} only passes tensors on, which takes no time here; leave it out")
    if op_cost.waits_ns(c):
        return Refused(where, f"{c.op} waits, and its time is not that of a kernel; leave it out")
    return _product(c, time_ns, where, spec) if op_cost.is_matrix(c.op) else _move(c, time_ns, where, spec)


def _product(c: CostContext, time_ns: float, where: str, spec: DeviceSpec | None) -> MeasuredRow:
    product = op_cost.product_of(c)
    if product is None:
        return Refused(where, f"{c.op} of these shapes is no single matrix product; the fit is for products")
    if product.is_implicit:
        return Refused(where, f"{c.op} reads no plain factors; the fit is for products, from which its time follows")
    reason = _no_two_byte_floats(c, spec)
    if reason:
        return Refused(where, reason)
    return TimedProduct(*product[:4], product.layout, time_ns)


def _no_two_byte_floats(c: CostContext, spec: DeviceSpec | None) -> str:
    """Why the fit of products, which is one of bfloat16, cannot use the element types; "" where it can."""
    types = {base_type(dtype) for dtype in (*c.input_types, *c.output_types)}
    named = " and ".join(sorted(map(dtype_name, types)))
    if len(types) > 1 or not types <= {DataType.BFLOAT16, DataType.HALF}:
        return f"{c.op} of {named}: the fit is for two-byte floats, bfloat16 or half alone; other types scale from it"
    if types == {DataType.HALF} and (
        spec is None or spec.peak_flops_per_s[spec.family(DataType.HALF, matrix=True)] != bf16_peak(spec)
    ):
        return f"{c.op} of half: the fit is for bfloat16, whose peak rate is another on this device"
    return ""


def _move(c: CostContext, time_ns: float, where: str, spec: DeviceSpec | None) -> MeasuredRow:
    if op_cost.is_on_host(c.op):
        return Refused(where, f"{c.op} takes a fixed time of the host, and moves no bytes; leave it out")
    if not op_cost.is_stated(c.op):
        return Refused(where, f"nothing says how many bytes {c.op} moves; give products and ops bound by memory")
    if kind_of(c.op) != "default":
        return Refused(
            where, f"{c.op} moves memory as {kind_of(c.op)!r} ops do; the fit is for those of kind 'default'"
        )
    try:
        operations, moved = op_cost.flops_of(c), op_cost.bytes_of(c)
    except InvalidArgumentError as error:
        return Refused(where, error.message)
    if not moved:
        return Refused(where, f"{c.op} of these shapes moves no bytes")
    if spec is not None and _is_bound_by_arithmetic(c, operations, moved, spec):
        return Refused(where, f"{c.op} of these shapes is bound by its arithmetic, not by memory")
    return TimedMove(moved, time_ns)


def _is_bound_by_arithmetic(c: CostContext, operations: int, moved: int, spec: DeviceSpec) -> bool:
    rate = spec.achieved_flops_per_s(rate_type(c), matrix=False)
    return ceil_ns(operations, rate) > ceil_ns(moved, spec.achieved_bytes_per_s)
