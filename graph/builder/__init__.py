"""Making nodes: `GraphBuilder` for whole graphs, node builders, and TensorFlow's testing library."""

from .builder import GraphBuilder

__all__ = ["GraphBuilder"]
