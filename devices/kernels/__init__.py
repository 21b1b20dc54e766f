"""Kernels on numpy, one module a family; importing this package registers them all."""
