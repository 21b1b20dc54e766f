"""Kernels of the ops on numbers on a coarse grid."""
