"""Ops by which devices exchange tensors while they run."""
