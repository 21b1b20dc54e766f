"""Kernels of the ops on linear algebra, tensor contractions and Fourier transforms."""
