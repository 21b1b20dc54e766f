"""Cost of the gradient of a bias: a sum over all axes but that of the channels."""

from __future__ import annotations

from ..op_cost import elements_read, flops

flops("BiasAddGrad")(elements_read)
