"""Kernels of the ops on quantised numbers."""
