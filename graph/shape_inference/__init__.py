"""Shapes of all tensors of a graph, from the shapes of what is fed."""

from .infer import infer_shapes

__all__ = ["infer_shapes"]
