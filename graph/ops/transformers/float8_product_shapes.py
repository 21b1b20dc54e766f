"""Shape function of products in 8-bit floats: that of MatMul. Grouped ones have that of grouped products."""

from __future__ import annotations

from ...analysis.shape_functions import shape_fn
from ..linalg.matmul_shapes import matmul

shape_fn("Partita>Float8MatMul")(matmul)
