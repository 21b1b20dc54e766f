"""Making nodes: the short way to write graphs, one node at a time, and TensorFlow's testing library."""

from .builder import GraphBuilder

__all__ = ["GraphBuilder"]
