"""What `FittedSource` says of its times: the terms of a product's formula, or of an op that moves bytes.

MatMul (512, 512) x (512, 512), bf16, on A100-80GB
    tile 64 x 64, k in 1 part, 1 wave; arithmetic 2489 ns, k-loop 1400 ns, bytes 925 ns; the formula 5604 ns, * 1.02
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....graph.dtypes import DataType
from ...kernels.op_cost import CostContext, bytes_of, is_layer, is_matrix
from ...kernels.op_forms import Product
from ...spec import DeviceSpec
from ..fits.memory_bound import MemoryBoundModel, kind_of
from ..fits.product_ops import OpProductTerms, products_in_columns, terms_of
from ..fits.products import NearRow, ProductModel
from .explanation import ExplainedNumber, Explanation
from .source import OpCost, rate_type

_UNKNOWN = OpCost(0, 0, 0, "fitted")  # the caller enters the cost


def explain_product(c: CostContext, product: Product, model: ProductModel, spec: DeviceSpec) -> Explanation:
    """Sizes, the tile that is fastest, the terms, the rows behind it, and what makes it less sure than those."""
    terms = terms_of(c, product, spec)
    said = model.explain(products_in_columns([product], terms))
    source = ", ".join(["fitted", *(text for text in (model.source, model.date) if text)])
    return Explanation(
        "",
        _UNKNOWN,
        "(floor + the soft maximum of arithmetic, k-loop and bytes, with the fastest tile) * residual factor",
        {
            "m, n, k, batch": ", ".join(map(str, product[:4])),
            "layout": product.layout or "unknown",
            "bytes per element": f"{terms.item_bytes:.4g}",
            "rate by that of bf16": f"{terms.rate_ratio:.4g}",
        },
        f"{said.tile[0]} x {said.tile[1]}, k in {_count(said.split_k, 'part')}, {_count(said.waves, 'wave')}",
        tuple(ExplainedNumber(name, f"{value:.6g} {unit}".rstrip(), source) for name, value, unit in said.numbers),
        _rows(model, said.nearest),
        assumed=tuple(_assumed(c, product, terms, model, is_outside=said.is_outside_range)),
        terms={
            "arithmetic": f"{said.arithmetic_ns:.0f} ns",
            "k-loop": f"{said.loop_ns:.0f} ns",
            "bytes": f"{said.bytes_ns:.0f} ns",
            "formula": f"{said.formula_ns:.0f} ns",
            "residual factor": f"{said.residual_factor:.4g}",
        },
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _rows(model: ProductModel, nearest: Sequence[NearRow]) -> str:
    """How many measured products the model has kept, and those that are most like the one asked about."""
    if model.surface is None:
        return "none are stored: the formula speaks alone"
    near = ", ".join(f"{row.m} x {row.n} x {row.k} (formula * {row.factor:.3g})" for row in nearest)
    return f"{len(model.surface.rows.m)} stored; the nearest m x n x k: {near}"


def _assumed(
    c: CostContext, product: Product, terms: OpProductTerms, model: ProductModel, *, is_outside: bool
) -> Iterator[str]:
    """What makes a product different from those that the model was fitted to."""
    if rate_type(c) is DataType.HALF and not terms.is_transferred:
        yield "float16 as bf16: the same units at the same rate, whose layouts and sizes were measured"
    if is_outside:
        yield "a size lies outside the fitted range: the formula speaks, and the interval is wider"
    if terms.rate_ratio != 1 or terms.item_bytes != 2:
        yield "another type than bf16: the rate is scaled by the peak of its units, there is no residual"
    if product.is_implicit:
        yield "an implicit product: convolutions were not measured, so there is no residual"
    if product.batch > 1:
        yield "a batch of products fills the device like one product with as many tiles"
    if not product.layout:
        yield "the layout of the factors is unknown"
    elif terms.is_transferred or model.surface is None or not model.surface.tells(product.layout):
        yield f"the layout {product.layout} makes no difference: the rows do not tell"


def explain_memory_bound(c: CostContext, model: MemoryBoundModel) -> Explanation:
    """Bytes, kind of op, and the numbers of that kind."""
    kind, units = kind_of(c.op), "matrix" if is_matrix(c.op) else "vector"
    numbers = model.numbers(kind)
    texts = (
        ("bandwidth", f"{numbers.bandwidth_bytes_per_s:.6g} B/s"),
        ("efficiency", f"{100 * numbers.efficiency:.4g} %"),
        ("constant", f"{numbers.constant_ns:.0f} ns"),
    )
    return Explanation(
        "",
        _UNKNOWN,
        f"max(bytes / (bandwidth * efficiency), operations / {units} rate) + constant",
        {"bytes": str(bytes_of(c)), "kind": kind},
        numbers=tuple(ExplainedNumber(name, text, model.source) for name, text in texts),
        assumed=tuple(_assumed_of_memory(c, model)),
    )


def _assumed_of_memory(c: CostContext, model: MemoryBoundModel) -> Iterator[str]:
    if is_layer(c.op):
        yield "no fit describes a layer of these sizes: as fast as its bytes are read, or its operations computed"
    if model.provenance == "assumed":
        yield "efficiency and constant: such ops of this device were not measured"
