"""Kernels of the ops on reductions, scans, segments and counts."""
