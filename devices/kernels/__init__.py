"""Kernels on numpy, one module a family; `registry.py` has the table, `families.py` fills it."""
