"""Kernels on numpy, one folder a family; `registry.py` has the table of kernels, `op_cost.py` that of costs."""
