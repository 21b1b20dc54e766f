"""Kernels of the ops on random numbers."""
