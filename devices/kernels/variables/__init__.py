"""Kernels of the ops on variables and what a session keeps."""
