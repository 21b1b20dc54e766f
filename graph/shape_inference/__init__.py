"""Shapes of all tensors of a graph, from the shapes of what is fed."""
