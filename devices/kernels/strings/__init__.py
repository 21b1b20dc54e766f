"""Kernels of the ops on strings."""
