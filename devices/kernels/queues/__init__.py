"""Kernels of the ops on queues, barriers, accumulators and staging areas: what steps leave for each other."""
