"""Kernels of the ops on image files."""
