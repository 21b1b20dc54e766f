"""Kernels of the ops on datasets and iterators: pipelines of elements that steps pull."""
