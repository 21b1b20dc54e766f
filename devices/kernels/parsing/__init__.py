"""Kernels of the ops that parse serialised Examples."""
