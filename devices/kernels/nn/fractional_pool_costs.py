"""Operations of pooling by a fraction: each cell of the image is looked at once, or added once."""

from __future__ import annotations

from ..op_cost import CostContext, flops


@flops("FractionalMaxPool", "FractionalAvgPool", "FractionalMaxPoolGrad")
def each_cell_read(c: CostContext) -> int:
    return c.elements_in()


@flops("FractionalAvgPoolGrad")
def each_cell_written(c: CostContext) -> int:
    return c.elements_out()
