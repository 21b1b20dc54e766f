"""Kernels of the ops on optimisers."""
