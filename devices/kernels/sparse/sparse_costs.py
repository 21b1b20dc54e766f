"""Costs of ops on sparse tensors, where they differ from one operation per element of the output."""

from __future__ import annotations

from ..op_cost import elements_read, flops

flops("SparseSegmentSum")(elements_read)
