"""Kernels of the ops on files: checkpoints."""
