"""What sources say of their times: the terms of a product add up to the time, and what is assumed is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.catalog import device_spec
from partita.devices.kernels.op_cost import product_of
from partita.devices.spec import DeviceSpec, without_tf32
from partita.devices.timing import OpCost, RooflineSource
from partita.devices.timing.costs.explanation import Explanation, explanation_of
from partita.devices.timing.costs.fitted_explanations import explain_product
from partita.devices.timing.costs.source import CostRequest, context
from partita.devices.timing.fits.product_formula import ProductNumbers
from partita.devices.timing.fits.product_surface import ProductRows, ProductSurface
from partita.devices.timing.fits.product_table import ProductRanges
from partita.devices.timing.fits.products import ProductModel
from partita.devices.timing.fits.surface import Residuals, SurfaceNumbers
from partita.graph.dtypes import DataType, Dims
from partita.graph.ops.properties import NodeProperties, properties_of

A100 = device_spec("A100-80GB")
NUMBERS = ProductNumbers(3000, 2.8e14, 3000, 1000, 50, 1.7e12, 0.5, 2.0)
SURFACE = ProductSurface(
    ProductRows(np.array([512, 2048]), np.array([512, 512]), np.array([512, 1024]), None),
    Residuals(np.array([0.1, -0.1]), np.array([0.01, 0.01])),
    SurfaceNumbers({"log2 m": 1.0, "log2 n": 1.0, "log2 k": 1.0}, 0.2, 0.05, 1.28),
    A100.sm_count,
)
MODEL = ProductModel(A100, NUMBERS, 0.1, ProductRanges(*4 * ((1, 4096),)), SURFACE, "gemm.csv", "2026-11-23")
sizes = st.integers(1, 8192)


def explained(m: int, n: int, k: int, dtype: DataType = DataType.BFLOAT16) -> Explanation:
    """What the model says of a product."""
    c = context(properties_of("MatMul", {"T": dtype}), ((m, k), (k, n)), ((m, n),))
    product = product_of(c)
    assert product is not None
    return explain_product(c, product, MODEL, A100)


@given(sizes, sizes, sizes)
def test_terms_make_the_formula(m: int, n: int, k: int) -> None:
    """No term is longer than the formula, which has the floor too; a size outside the fitted range is said."""
    said = explained(m, n, k)
    terms = {name: float(text.removesuffix(" ns")) for name, text in said.terms.items()}
    assert list(terms) == ["arithmetic", "k-loop", "bytes", "formula", "residual factor"]
    parts = [terms[name] for name in ("arithmetic", "k-loop", "bytes")]
    assert NUMBERS.floor_ns + max(parts) - 1 <= terms["formula"] <= 1.6 * NUMBERS.floor_ns + 3**0.25 * max(parts) + 2
    assert ("outside the fitted range" in " ".join(said.assumed)) == (max(m, n, k) > 4096)


def test_a_product_near_measured_ones() -> None:
    """Tile, numbers with unit and source, the rows that are most like it, and the layout that they do not tell."""
    said = explained(512, 512, 512)
    assert said.tile.endswith(("wave", "waves"))
    assert ("rate_flops_per_s", "2.8e+14 FLOP/s", "fitted, gemm.csv, 2026-11-23") in said.numbers
    assert ("half_area", "3000", "fitted, gemm.csv, 2026-11-23") in said.numbers
    assert said.rows.startswith("2 stored; the nearest m x n x k: 512 x 512 x 512 (formula * 1.")
    assert float(said.terms["residual factor"]) == pytest.approx(1.1, abs=0.03)
    assert said.assumed == ("the layout NN makes no difference: the rows do not tell",)


def test_another_type_has_no_residual() -> None:
    """A float32 product is scaled from bf16, and says so."""
    said = explained(512, 512, 512, DataType.FLOAT)
    assert said.terms["residual factor"] == "1"
    assert said.inputs["rate by that of bf16"] == "0.5"
    assert "another type than bf16" in said.assumed[0]


def test_tf32_is_stated() -> None:
    """Whether tensor cores compute float32 products, and how to change it."""
    matmul = properties_of("MatMul", {"T": DataType.FLOAT})
    texts = [
        RooflineSource().explain(matmul, ((64, 64), (64, 64)), ((64, 64),), spec).text()
        for spec in (A100, without_tf32(A100))
    ]
    assert "tf32 on tensor cores" in texts[0]
    assert "--no-tf32" in texts[0]
    assert "full precision" in texts[1]


def test_a_source_without_reasons() -> None:
    """Its name, time and provenance are all that is said."""

    class Constant:
        def cost(
            self, properties: NodeProperties, inputs: tuple[Dims, ...], outputs: tuple[Dims, ...], spec: DeviceSpec
        ) -> OpCost:
            return OpCost(1500, 0, 0, "measured")

    neg = properties_of("Neg", {"T": DataType.FLOAT})
    said = explanation_of(Constant(), CostRequest(neg, ((1,),), ((1,),), A100))
    assert said.text() == (
        "Neg on A100-80GB: 1.500 us, measured\n  formula   Constant gave the time; it explains no more"
    )
