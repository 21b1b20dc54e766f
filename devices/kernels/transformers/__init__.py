"""Kernels of the ops that transformers are made of: attention, RMSNorm, rotary positions."""
