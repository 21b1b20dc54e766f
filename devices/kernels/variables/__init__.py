"""Kernels of the ops on variables and on tensors that stay in a session."""
