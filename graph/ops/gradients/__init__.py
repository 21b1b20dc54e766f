"""Gradients of ops, by family: what flows back into the inputs of a node, given what flows back into its outputs."""
