"""Kernels of the ops on sound."""
