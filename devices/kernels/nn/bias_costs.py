"""Cost of the gradient of a bias: the gradient of the sum, summed over all axes but that of the channels."""

from __future__ import annotations

from ..op_cost import elements_read, flops

flops("BiasAddGrad")(elements_read)
