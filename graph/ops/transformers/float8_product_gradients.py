"""Gradients of products in 8-bit floats: the same products of the same factors as in wider types, by the same op."""

from __future__ import annotations

from ...analysis.gradient_rules import gradient
from ..linalg.matmul_gradients import matrix_product

gradient("Partita>Float8MatMul")(matrix_product)
