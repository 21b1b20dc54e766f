"""Kernels of the ops on queues, barriers, accumulators, staging areas and mutexes, by which steps exchange tensors."""
