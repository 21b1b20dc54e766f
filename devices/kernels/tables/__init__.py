"""Kernels of the ops on look-up tables."""
